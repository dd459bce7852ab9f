//! `refrain check`: what is right and what is wrong, a line each.

use super::{ConfigFile, Failure, say};
use crate::app;
use crate::logging;

pub(super) async fn check(file: &ConfigFile) -> Result<(), Failure> {
    let config = match file.load() {
        Ok(config) => config,
        Err(error) => {
            line("config", Err(error.to_string()));
            return Err("1 of 1 checks failed; the others need a valid config".into());
        }
    };
    line("config", Ok(file.config.as_ref().map_or("defaults".into(), |path| path.display().to_string())));
    let checks = [
        (
            "log",
            logging::check(&config.log)
                .map(|()| config.log.filter.clone())
                .map_err(|error| error.to_string()),
        ),
        ("access", app::check_access(&config)),
        ("models", app::check_encoders(&config)),
        ("store", app::check_store(&config).await),
        ("providers", app::check_providers(&config)),
    ];
    let total = checks.len() + 1;
    let failed = checks.into_iter().filter(|(name, result)| line(name, result.clone())).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {total} checks failed").into()) }
}

/// Says how one check went; true when it failed.
fn line(name: &str, result: Result<String, String>) -> bool {
    let failed = result.is_err();
    let (mark, text) = match result {
        Ok(text) => ("ok   ", text),
        Err(text) => ("WRONG", text),
    };
    for text in text.lines() {
        say(&format!("{mark} {name}: {text}"));
    }
    failed
}

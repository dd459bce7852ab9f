//! The worked examples in config/examples: each can be used as it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Format, Toml};
use refrain::config::{Config, DEFAULTS};
use serde_json::Value;

/// Sections whose entries are named by whoever writes the file.
const NAMED: [&str; 6] = ["encoders", "providers", "models", "namespaces", "prices", "keys"];

/// Settings that hold names, not settings.
const NAMES: [&str; 1] = ["thresholds"];

fn examples() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/examples");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), std::fs::read_to_string(&file).unwrap())).collect()
}

/// The names of all settings in a file.
fn settings(value: &Value, is_named: bool, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if !is_named {
                    found.insert(name.clone());
                }
                if !NAMES.contains(&name.as_str()) {
                    settings(value, !is_named && NAMED.contains(&name.as_str()), found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| settings(value, false, found)),
        _ => {}
    }
}

/// Whether a text has the setting, as a value, a section or in a comment.
fn mentions(text: &str, setting: &str) -> bool {
    let is_part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(setting).any(|(at, _)| {
        let after = text[at + setting.len()..].trim_start();
        let is_section = text[..at].ends_with('[') && after.starts_with(['.', ']']);
        !text[..at].ends_with(is_part_of_a_name) && (after.starts_with('=') || is_section)
    })
}

#[test]
fn each_example_is_valid() {
    let examples = examples();
    assert!(examples.len() >= 5, "{examples:?}");
    for (file, text) in examples {
        let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(config.models.len() > 2, "{}: it has a model of its own", file.display());
    }
}

#[test]
fn each_setting_in_an_example_is_explained_in_the_defaults() {
    for (file, text) in examples() {
        let value: Value = Figment::from(Toml::string(&text)).extract().unwrap();
        let mut found = BTreeSet::new();
        settings(&value, false, &mut found);
        assert!(found.len() > 5, "{}: {found:?}", file.display());
        for setting in found {
            assert!(mentions(DEFAULTS, &setting), "{}: {setting}", file.display());
        }
    }
    assert!(!mentions(DEFAULTS, "targts") && !mentions(DEFAULTS, "arget") && !mentions(DEFAULTS, "deploym"));
}

#[test]
fn each_example_says_what_it_is_for_and_how_to_start_it() {
    for (file, text) in examples() {
        let place = format!("config/examples/{}", file.file_name().unwrap().display());
        let head: Vec<_> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.len() >= 4, "{place}");
        assert!(head.join("\n").contains(&format!("refrain serve --config {place}")), "{place}");
        for (number, line) in text.lines().enumerate() {
            assert!(line.len() <= 140, "{place}:{}: too long to read", number + 1);
        }
    }
}

#[test]
fn no_example_holds_a_key_or_belongs_to_one_machine() {
    for (file, text) in examples() {
        let value: Value = Figment::from(Toml::string(&text)).extract().unwrap();
        for provider in value["providers"].as_object().unwrap().values() {
            let keys = provider["api_keys"].as_array().cloned().unwrap_or_default();
            for key in keys.iter().chain(provider.get("api_key")) {
                assert!(key.as_str().unwrap().starts_with("env:"), "{}: {key}", file.display());
            }
        }
        for place in ["/home", "/root", "/Users", "/tmp", "file:/", "C:\\"] {
            assert!(!text.contains(place), "{}: {place}", file.display());
        }
    }
}

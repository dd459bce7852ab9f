//! `refrain reload`: take over what changed in the configuration, without a restart.

use clap::Args;
use serde_json::{Value, json};

use super::remote::Remote;
use crate::cli::{Failure, say};

/// `refrain reload`
#[derive(Debug, Args)]
pub(in crate::cli) struct ReloadArgs {
    #[command(flatten)]
    remote: Remote,
}

pub(in crate::cli) async fn reload(args: ReloadArgs) -> Result<(), Failure> {
    let reloaded = args.remote.post("/admin/reload", &[], &json!({})).await?;
    say(&in_words(&reloaded));
    Ok(())
}

fn in_words(reloaded: &Value) -> String {
    let names = |key: &str| {
        let names = reloaded[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    match (names("in_force"), names("after_restart")) {
        (live, waiting) if live.is_empty() && waiting.is_empty() => "nothing has changed".to_owned(),
        (live, waiting) if waiting.is_empty() => format!("in force now: {live}"),
        (live, waiting) if live.is_empty() => format!("needs a restart: {waiting}"),
        (live, waiting) => format!("in force now: {live}\nneeds a restart: {waiting}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_reads() {
        for (live, waiting, expected) in [
            (&[][..], &[][..], "nothing has changed"),
            (&["namespaces.hr.ttl", "switches.off"], &[], "in force now: namespaces.hr.ttl, switches.off"),
            (&[], &["server.listen"], "needs a restart: server.listen"),
            (&["a"], &["b"], "in force now: a\nneeds a restart: b"),
        ] {
            let reloaded = json!({ "in_force": live, "after_restart": waiting });
            assert_eq!(in_words(&reloaded), expected);
        }
    }
}

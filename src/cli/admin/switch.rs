//! `refrain switch`: what is switched, and flipping.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::remote::{Remote, percent_encoded};
use super::table::{Side, lines};
use super::user;
use crate::cli::{Failure, say};
use crate::server::FlipRequest;
use crate::switches::Target;

/// `refrain switch`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct SwitchArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Switch something off: a provider that answers nonsense, a feature that does harm.
    Off(SetArgs),
    /// Switch something on: as configured. Only `cache_only` is off otherwise.
    On(SetArgs),
    /// Take a switch away: everything is as configured again.
    Clear(ClearArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    remote: Remote,
    /// The last changes too: who, when and why.
    #[arg(long)]
    audit: bool,
    /// Print the JSON as it is.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SetArgs {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    what: What,
    /// For how long, such as 2h; until it is cleared unless said.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    lasting: Option<Duration>,
}

#[derive(Debug, Args)]
struct ClearArgs {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, Args)]
struct What {
    /// provider:NAME, model:NAME, target:PROVIDER/MODEL, namespace:NAME or feature:NAME.
    target: Target,
    /// Why, for the next shift.
    #[arg(long)]
    reason: String,
    /// Who; the user of this machine unless said.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl What {
    fn who(&self) -> Result<String, Failure> {
        let who = self.by.clone().or_else(user::name);
        who.ok_or_else(|| "say who you are by --by: this machine does not know".into())
    }
}

pub(in crate::cli) async fn switch(args: SwitchArgs) -> Result<(), Failure> {
    match args.action {
        None => list(&args.list).await,
        Some(Action::Off(args)) => set(args, false).await,
        Some(Action::On(args)) => set(args, true).await,
        Some(Action::Clear(args)) => clear(args).await,
    }
}

async fn set(args: SetArgs, on: bool) -> Result<(), Failure> {
    let by = args.what.who()?;
    let What { target, reason, .. } = args.what;
    let lasting = args.lasting;
    let request = FlipRequest { target: target.to_string(), on, by, reason, until: None, lasting };
    let flipped = args.remote.post("/admin/switches", &[], &serde_json::to_value(&request)?).await?;
    say(&in_words(&flipped).join("\n"));
    Ok(())
}

async fn clear(args: ClearArgs) -> Result<(), Failure> {
    let by = args.what.who()?;
    let What { target, reason, .. } = args.what;
    let path = format!(
        "/admin/switches/{}?by={}&reason={}",
        percent_encoded(&target.to_string()),
        percent_encoded(&by),
        percent_encoded(&reason)
    );
    let flipped = args.remote.delete(&path).await?;
    say(&in_words(&flipped).join("\n"));
    Ok(())
}

/// What a flip came to.
fn in_words(flipped: &Value) -> Vec<String> {
    let state = match flipped["on"].as_bool() {
        Some(true) => "on",
        Some(false) => "off",
        None => "as configured",
    };
    let until = flipped["until"].as_str().map(|until| format!(" until {until}"));
    let mut lines =
        vec![format!("{} is {state}{}, from now on", text(&flipped["target"]), until.unwrap_or_default())];
    if flipped["kept"] != json!("on_disk") {
        let error = text(&flipped["error"]);
        lines.push(format!("NOT ON DISK ({error}): after a restart it is as it was before"));
    }
    lines.extend(flipped["note"].as_str().map(|note| format!("note: {note}")));
    lines
}

async fn list(args: &ListArgs) -> Result<(), Failure> {
    let path = if args.audit { "/admin/switches?audit=true" } else { "/admin/switches" };
    let listed = args.remote.get(path).await?;
    if args.json {
        say(&serde_json::to_string_pretty(&listed)?);
        return Ok(());
    }
    say(&in_force(&listed).join("\n"));
    if args.audit {
        say("");
        say(&trail(&listed).join("\n"));
    }
    Ok(())
}

/// The switches in force, a line each.
pub(super) fn in_force(listed: &Value) -> Vec<String> {
    let switches: Vec<_> = listed["switches"].as_array().into_iter().flatten().collect();
    let configured = listed["config"].as_array().into_iter().flatten();
    let configured = configured
        .map(|line| format!("the config switches {} {}", text(&line["target"]), state(&line["on"])));
    if switches.is_empty() {
        let nothing = "nothing is switched: everything is as configured".to_owned();
        return std::iter::once(nothing).chain(configured).collect();
    }
    let heading = ["switch", "", "until", "since", "by", "reason"].map(str::to_owned);
    let row = |switch: &Value| {
        let on = state(&switch["on"]);
        let until = switch["until"].as_str().unwrap_or("cleared");
        let [target, since, by, reason] = ["target", "since", "by", "reason"].map(|key| text(&switch[key]));
        [target, on, until, since, by, reason].map(str::to_owned)
    };
    let rows: Vec<_> = std::iter::once(heading).chain(switches.into_iter().map(row)).collect();
    lines([Side::Left; 6], &rows).into_iter().chain(configured).collect()
}

/// The last changes, the latest last.
fn trail(listed: &Value) -> Vec<String> {
    let heading = ["change", "at", "switch", "", "until", "by", "reason"].map(str::to_owned);
    let row = |change: &Value| {
        let number = change["number"].to_string();
        let on = state(&change["on"]);
        let until = change["until"].as_str().unwrap_or("-");
        let [at, target, by, reason] = ["at", "target", "by", "reason"].map(|key| text(&change[key]));
        [number.as_str(), at, target, on, until, by, reason].map(str::to_owned)
    };
    let changes = listed["audit"].as_array().into_iter().flatten();
    let rows: Vec<_> = std::iter::once(heading).chain(changes.map(row)).collect();
    lines([Side::Left; 7], &rows)
}

fn state(on: &Value) -> &'static str {
    match on.as_bool() {
        Some(true) => "on",
        Some(false) => "off",
        None => "cleared",
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_and_changes_are_tables() {
        let listed = json!({
            "switches": [
                { "target": "feature:cache_only", "on": true, "by": "ops", "reason": "the bill",
                  "since": "2026-12-01T03:00:00Z", "until": null },
                { "target": "provider:openai", "on": false, "by": "night shift", "reason": "answers nonsense",
                  "since": "2026-12-01T03:05:00Z", "until": "2026-12-01T05:05:00Z" },
            ],
            "audit": [
                { "number": 7, "at": "2026-12-01T02:00:00Z", "target": "namespace:hr", "on": null, "by": "ops",
                  "reason": "fixed", "until": null },
            ],
        });
        insta::assert_snapshot!(in_force(&listed).join("\n"), @r"
        switch                   until                 since                 by           reason
        feature:cache_only  on   cleared               2026-12-01T03:00:00Z  ops          the bill
        provider:openai     off  2026-12-01T05:05:00Z  2026-12-01T03:05:00Z  night shift  answers nonsense
        ");
        insta::assert_snapshot!(trail(&listed).join("\n"), @r"
        change  at                    switch                 until  by   reason
        7       2026-12-01T02:00:00Z  namespace:hr  cleared  -      ops  fixed
        ");
        assert_eq!(
            in_force(&json!({ "switches": [] })),
            ["nothing is switched: everything is as configured"]
        );
    }

    #[test]
    fn a_flip_says_what_it_came_to() {
        let mut flipped = json!({ "target": "provider:openai", "on": false, "kept": "on_disk",
            "until": "2026-12-01T05:05:00Z" });
        assert_eq!(in_words(&flipped), ["provider:openai is off until 2026-12-01T05:05:00Z, from now on"]);
        flipped["on"] = Value::Null;
        flipped["until"] = Value::Null;
        flipped["kept"] = "in_memory".into();
        flipped["error"] = "disk full".into();
        flipped["note"] = "no such name".into();
        assert_eq!(
            in_words(&flipped),
            [
                "provider:openai is as configured, from now on",
                "NOT ON DISK (disk full): after a restart it is as it was before",
                "note: no such name",
            ]
        );
    }
}

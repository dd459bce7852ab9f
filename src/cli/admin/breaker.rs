//! `refrain breaker`: take hold of a target's breaker, and let it go again.

use clap::Args;
use clap::builder::PossibleValue;
use serde_json::json;

use super::remote::Remote;
use crate::cli::{Failure, say};

/// `refrain breaker`
#[derive(Debug, Args)]
pub(in crate::cli) struct BreakerArgs {
    #[command(flatten)]
    remote: Remote,
    /// The provider's name in the config.
    provider: String,
    /// The provider's name for the model, as `refrain stats --providers` shows it.
    model: String,
    /// Who decides whether it is asked.
    #[arg(value_parser = controls())]
    control: String,
}

/// Who may decide, as the admin API writes it.
fn controls() -> [PossibleValue; 4] {
    [
        ("automatic", "the breaker"),
        ("forced_open", "you: no calls while there is anybody else"),
        ("forced_closed", "you: all calls; what is usual is learned anew"),
        ("isolated", "you: no calls at all"),
    ]
    .map(|(name, meaning)| PossibleValue::new(name).help(meaning))
}

pub(in crate::cli) async fn breaker(args: BreakerArgs) -> Result<(), Failure> {
    let body = json!({ "provider": args.provider, "model": args.model, "control": args.control });
    let controlled = args.remote.post("/admin/breakers", &[], &body).await?;
    let state = controlled["breaker"]["state"].as_str().unwrap_or("-");
    let target = format!("{}/{}", args.provider, args.model);
    say(&match args.control.as_str() {
        "automatic" => format!("the breaker of {target} decides again: it is {state}"),
        _ => format!("the breaker of {target} is {state}, from now until a restart"),
    });
    Ok(())
}

//! `refrain serve`: start, say where, and stop in order.

use std::sync::Arc;

use tokio::signal;
use tokio_util::sync::CancellationToken;

use super::{ConfigFile, Failure, say};
use crate::app::{App, bind};
use crate::logging;
use crate::server::{ReloadError, Reloaded};

pub(super) async fn serve(file: &ConfigFile) -> Result<(), Failure> {
    let config = file.load()?;
    let _log = logging::init(&config.log)?;
    // Listen first: a port in use is said at once, and requests wait instead of being refused.
    let public = bind("server.listen", config.server.listen).await?;
    let admin = bind("admin.listen", config.admin.listen).await?;
    let (address, operators) = (public.local_addr()?, admin.local_addr()?);
    let app = App::try_new(config).await?;
    say(&welcome(&address.to_string(), &operators.to_string()));
    tokio::spawn(on_hangup(app.reloader()));
    let shutdown = CancellationToken::new();
    let stopped = shutdown.clone();
    let asked_twice = async {
        asked_to_stop().await;
        tracing::info!("asked to stop: finishing what is under way");
        stopped.cancel();
        // Only a person at the keyboard means it by asking again; a supervisor may just repeat itself.
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = app.serve(public, admin, shutdown) => Ok(()),
        () = asked_twice => Err("asked twice to stop: what was under way is cut".into()),
    }
}

/// What a newcomer sees: where to point a client, and three lines to try.
fn welcome(address: &str, operators: &str) -> String {
    let ask = |question: &str| {
        format!(
            "  curl -si http://{address}/v1/chat/completions -H 'content-type: application/json' -d \
             '{{\"model\": \"default\", \"messages\": [{{\"role\": \"user\", \"content\": \"{question}\"}}]}}'"
        )
    };
    format!(
        "Refrain {} listens on http://{address}/v1: point a client's base URL there.\n\n\
         A miss, the same again from memory, and the same in other words:\n\n{}\n{}\n{}\n\n\
         Look at the header cache-status. Dashboard: http://{operators}/dashboard\n\
         Statistics: http://{operators}/stats, metrics: http://{operators}/metrics",
        env!("CARGO_PKG_VERSION"),
        ask("How do I reset my password?"),
        ask("How do I reset my password?"),
        ask("How can I reset my password?"),
    )
}

/// Reads the settings again whenever a supervisor asks for it.
async fn on_hangup(reload: impl Fn() -> Result<Reloaded, ReloadError> + Send + Sync + 'static) {
    #[cfg(unix)]
    {
        use signal::unix::{SignalKind, signal};
        let reload = Arc::new(reload);
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
        while hangup.recv().await.is_some() {
            let reload = Arc::clone(&reload);
            // The outcome is in the log.
            let _ = tokio::task::spawn_blocking(move || reload().map(drop)).await;
        }
    }
    #[cfg(not(unix))]
    drop(reload);
}

/// Ctrl-C, or what a supervisor sends.
pub(super) async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = signal::ctrl_c().await;
}

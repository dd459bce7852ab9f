//! Callers and operators over HTTP: every route, every layer, in order.

pub mod auth;
pub mod body;
pub mod error;
pub mod fallback;
pub mod listener;
pub mod request_id;

mod admin;
mod breakers;
mod chat;
mod dashboard;
mod directives;
mod embeddings;
mod feedback;
mod health;
mod import;
mod models;
mod reload;
mod stats;
mod switches;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{delete, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::cache::embedder::Encoders;
use crate::cache::store::Store;
use crate::clock::Clock;
use crate::gateway::Gateway;
use crate::metrics::Metrics;
use crate::switches::Switches;
use auth::{AdminAuth, Auth};
use body::BodyLimits;
use error::Credential;
use listener::Connections;

pub use admin::EvictRequest;
pub use feedback::Recent;
pub use import::{ImportReply, ImportRequest, MAX_RECORDS, SkippedRecord};
pub use reload::{Reload, ReloadError, Reloaded, configured_switches};
pub use switches::{FlipRequest, Names, UnknownName};

/// What the handlers work with.
pub struct Context {
    /// The story of a request.
    pub gateway: Arc<Gateway>,
    /// Who calls.
    pub auth: ArcSwap<Auth>,
    /// Who operates.
    pub admin: AdminAuth,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What an operator has switched.
    pub switches: Arc<Switches>,
    /// What there is to switch.
    pub names: ArcSwap<Names>,
    /// How long callers wait.
    pub deadlines: Deadlines,
    /// For `/readyz`.
    pub encoders: Arc<Encoders>,
    /// For `/readyz` and the listing of entries.
    pub store: Arc<dyn Store>,
    /// Open connections of the callers' listener, once it serves.
    pub connections: OnceLock<Arc<Connections>>,
    /// Wall time.
    pub clock: Clock,
    /// How deep a body may nest.
    pub max_json_depth: usize,
    /// What a body may take.
    pub body_limits: BodyLimits,
    /// Whose credential providers see.
    pub credential: Credential,
    /// Which answers went out of late.
    pub recent: Recent,
    /// What the settings are, and were.
    pub reload: Reload,
    /// Tell callers why a stored question was refused.
    pub debug: bool,
    /// Write the text of questions into the log.
    pub log_prompts: bool,
}

/// How long a caller waits for a whole answer: unless it says so, and at most.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Unless the caller says so.
    pub default: Duration,
    /// At most.
    pub max: Duration,
}

/// What callers reach.
pub fn callers(context: &Arc<Context>) -> Router {
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat::completions))
        .route("/v1/responses", post(chat::responses))
        .route("/v1/messages", post(chat::messages))
        .route("/v1/messages/count_tokens", post(chat::count_tokens))
        .route("/v1/embeddings", post(embeddings::embeddings))
        .route("/v1/models", get(models::models))
        .route("/v1/feedback", post(feedback::of_caller))
        .route("/healthz", get(health::process))
        .route("/readyz", get(health::ready));
    layered(routes, context)
}

/// What operators reach.
pub fn operators(context: &Arc<Context>) -> Router {
    let guarded = Router::new()
        .route("/stats", get(stats::stats))
        .route("/stats/providers", get(stats::providers))
        .route("/metrics", get(stats::scrape))
        .route("/admin/evict", post(admin::evict))
        .route("/admin/import", post(import::import))
        .route("/admin/entries", get(admin::entries))
        .route("/admin/entries/{id}", get(admin::entry).delete(admin::remove))
        .route("/admin/explain", post(admin::explain))
        .route("/admin/switches", get(switches::list).post(switches::set))
        // A model's name may have slashes.
        .route("/admin/switches/{*target}", delete(switches::clear))
        .route("/admin/breakers", post(breakers::control))
        .route("/admin/reload", post(reload::reload))
        .route("/admin/feedback", post(feedback::of_operator))
        .route_layer(from_fn_with_state(Arc::clone(context), admin::guard));
    let open = Router::new()
        .route("/dashboard", get(dashboard::page))
        .route("/dashboard/", get(dashboard::moved))
        .route("/dashboard/{*file}", get(dashboard::file))
        .route("/healthz", get(health::process))
        .route("/readyz", get(health::ready));
    layered(guarded.merge(open), context)
}

/// What every request passes, the last one first.
fn layered(routes: Router<Arc<Context>>, context: &Arc<Context>) -> Router {
    routes
        .fallback(fallback::not_found)
        .method_not_allowed_fallback(fallback::method_not_allowed)
        .with_state(Arc::clone(context))
        // No body is read further, or longer, than the config allows.
        .layer(from_fn_with_state(context.body_limits, body::limit))
        // A fault of ours is an answer too.
        .layer(CatchPanicLayer::custom(fallback::panicked))
        // Outermost, so that every answer carries an id that is in the log.
        .layer(from_fn(request_id::assign))
}

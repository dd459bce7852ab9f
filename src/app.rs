//! The composition root: from a config to a running service. Only this file names adapters.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cache::embedder::{Encoders, LoadError};
use crate::cache::exact::ExactCache;
use crate::cache::purge::Purges;
use crate::cache::semantic::SemanticCache;
use crate::cache::store::edge::EdgeStore;
use crate::cache::store::qdrant::QdrantStore;
use crate::cache::store::{Selector, Store, StoreError};
use crate::clock::Clock;
use crate::config::{AuthMode, Config, Load, Secret, SecretRef};
use crate::gateway::{Gateway, Namespaces, Parts};
use crate::metrics::{Metrics, PriceTable};
use crate::server::auth::{AdminAuth, AdminAuthError, Auth, AuthConfigError};
use crate::server::body::BodyLimits;
use crate::server::error::Credential;
use crate::server::listener::{Limits, LimitsError, Listener};
use crate::server::{
    Context, Deadlines, Names, Recent, Reload, ReloadError, Reloaded, callers, configured_switches, operators,
};
use crate::switches::{Switches, UnreadableSwitches};
use crate::upstream::{Upstream, UpstreamConfigError};

/// The file of the operator's switches, in the data folder.
const SWITCHES: &str = "switches.jsonl";

/// Added to the longest answer's time when purges are remembered.
const PURGE_MARGIN: Duration = Duration::from_mins(1);

/// At shutdown, when no request is under way any more: how long writes may still take, and then
/// closing the store. A supervisor should wait for `server.shutdown_grace` and twice this.
const LAST_WRITES: Duration = Duration::from_secs(4);

/// Why the service does not start. Each is one sentence that says what to do.
#[derive(Debug, Error)]
pub enum StartError {
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The encoders.
    #[error("{0}")]
    Encoders(#[from] LoadError),
    /// The providers.
    #[error("{0}")]
    Upstream(#[from] UpstreamConfigError),
    /// A listener.
    #[error("{key} = \"{address}\" cannot be listened on: {reason}")]
    Listen {
        /// The setting.
        key: &'static str,
        /// Its value.
        address: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// A secret that is not there.
    #[error("{key} = \"{reference}\" cannot be read: {reason}")]
    Secret {
        /// The setting.
        key: String,
        /// Where the secret should be.
        reference: String,
        /// Why it is not.
        reason: String,
    },
    /// The callers' keys.
    #[error("{0}")]
    Auth(#[from] AuthConfigError),
    /// The admin token.
    #[error("{0}")]
    Admin(#[from] AdminAuthError),
    /// The operator's switches.
    #[error("{0}")]
    Switches(#[from] UnreadableSwitches),
    /// The switches in the config.
    #[error("{0}")]
    Settings(#[from] ReloadError),
    /// A listener's limits.
    #[error("{0}")]
    Limits(#[from] LimitsError),
}

/// The service, put together but not listening.
pub struct App {
    config: Config,
    context: Arc<Context>,
    limits: Limits,
}

impl App {
    /// Puts the service together as the config says.
    pub async fn try_new(config: Config) -> Result<Self, StartError> {
        let encoders = Encoders::try_new(&config.embedder, &config.encoders)?;
        let store = open_store(&config)?;
        for embedder in encoders.loaded() {
            match store.prepare(embedder.id(), embedder.dimensions()).await {
                Ok(()) => {}
                Err(error @ StoreError::Unusable(_)) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "the store is not there yet; it is used once it is"),
            }
        }
        let clock = Clock::system();
        let switches = Arc::new(Switches::open(&config.store.path.join(SWITCHES))?);
        let upstream = Upstream::try_new(&config, clock, Arc::clone(&switches))?;
        Self::from_parts(config, clock, Arc::new(encoders), store, upstream, switches).await
    }

    /// Puts the service together from given adapters; for tests.
    pub async fn from_parts(
        config: Config,
        clock: Clock,
        encoders: Arc<Encoders>,
        store: Arc<dyn Store>,
        upstream: Upstream,
        switches: Arc<Switches>,
    ) -> Result<Self, StartError> {
        let metrics = Metrics::new(clock, prices(&config));
        switches.configure(configured_switches(&config, &upstream)?);
        let stale_for = config.longest_stale();
        // No answer takes longer to come than this.
        let remembered = config.upstream.max_deadline + PURGE_MARGIN;
        let purges = Purges::load(Arc::clone(&store), clock, remembered).await?;
        let gateway = Gateway::new(Parts {
            clock,
            exact: ExactCache::new(config.cache.exact.max_bytes.as_u64(), stale_for, clock),
            semantic: SemanticCache::new(Arc::clone(&encoders), Arc::clone(&store), config.store.candidates),
            store: Arc::clone(&store),
            purges,
            upstream,
            switches: Arc::clone(&switches),
            stale_for,
            namespaces: ArcSwap::from_pointee(
                Namespaces::try_new(&config, &metrics).map_err(ReloadError::from)?,
            ),
            metrics: Arc::clone(&metrics),
            fill_on_disconnect: config.cache.fill_on_disconnect,
            write_queue: config.cache.write_queue,
        });
        let context = Arc::new(Context {
            gateway,
            auth: ArcSwap::from_pointee(Auth::try_new(&config.auth)?),
            admin: AdminAuth::try_new(&config.admin)?,
            metrics,
            switches,
            names: ArcSwap::from_pointee(Names::new(&config)),
            deadlines: Deadlines { default: config.upstream.deadline, max: config.upstream.max_deadline },
            encoders,
            store,
            connections: OnceLock::new(),
            clock,
            max_json_depth: config.server.max_json_depth,
            body_limits: BodyLimits::new(&config.server),
            credential: match config.auth.mode {
                AuthMode::Forward => Credential::Caller,
                AuthMode::Open | AuthMode::Keys => Credential::Service,
            },
            recent: Recent::default(),
            debug: config.server.debug,
            reload: Reload::new(&config),
            log_prompts: config.log.prompts,
        });
        let limits = Limits::try_new(&config.server)?;
        Ok(Self { config, context, limits })
    }

    /// What callers reach; for tests without a socket.
    pub fn callers(&self) -> axum::Router {
        callers(&self.context)
    }

    /// What operators reach; for tests without a socket.
    pub fn operators(&self) -> axum::Router {
        operators(&self.context)
    }

    /// The story of a request, for tests.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.context.gateway
    }

    /// Reads the settings again; for a signal, and for tests. Blocks on the disk.
    pub fn reloader(&self) -> impl Fn() -> Result<Reloaded, ReloadError> + Send + Sync + 'static {
        let context = Arc::clone(&self.context);
        move || context.reload_and_tell()
    }

    /// Serves both listeners until `shutdown` is cancelled, and then finishes what is under way.
    pub async fn serve(self, public: TcpListener, admin: TcpListener, shutdown: CancellationToken) {
        let chores =
            [tokio::spawn(self.sweeping()), tokio::spawn(self.purging()), tokio::spawn(self.watching())];
        let public = Listener::new(public, self.limits);
        let admin = Listener::new(admin, self.limits);
        let _ = self.context.connections.set(public.connections());
        tokio::join!(
            public.serve(self.callers(), shutdown.clone().cancelled_owned()),
            admin.serve(self.operators(), shutdown.cancelled_owned()),
        );
        if timeout(LAST_WRITES, self.context.gateway.drain()).await.is_err() {
            tracing::warn!(after = ?LAST_WRITES, "some answers were not written to the store");
        }
        for chore in chores {
            chore.abort();
        }
        if timeout(LAST_WRITES, self.context.store.close()).await.is_err() {
            tracing::warn!(after = ?LAST_WRITES, "the store is still busy; what it acknowledged is safe");
        }
    }

    /// Sweeps what has expired.
    fn sweeping(&self) -> impl Future<Output = ()> + Send + 'static {
        let gateway = Arc::clone(&self.context.gateway);
        every(self.config.store.sweep_interval, move || {
            let gateway = Arc::clone(&gateway);
            async move { gateway.sweep().await.map(drop) }
        })
    }

    /// Reads the settings again when their file is another one.
    fn watching(&self) -> impl Future<Output = ()> + Send + 'static {
        let reload = Arc::new(self.reloader());
        let watched = self.config.file().map(Path::to_owned).filter(|_| !self.interval().is_zero());
        let interval = self.interval();
        async move {
            let Some(path) = watched else { return };
            let mut seen = tokio::fs::read(&path).await.ok();
            let mut ticks = tokio::time::interval(interval);
            loop {
                ticks.tick().await;
                // One that is away, or half written and not valid, changes nothing.
                let Ok(content) = tokio::fs::read(&path).await else { continue };
                if seen.as_ref() != Some(&content) {
                    seen = Some(content);
                    let reload = Arc::clone(&reload);
                    let _ = tokio::task::spawn_blocking(move || reload().map(drop)).await;
                }
            }
        }
    }

    fn interval(&self) -> Duration {
        self.config.reload.poll_interval
    }

    /// Listens for purges by other instances, and makes up for deletions that failed.
    fn purging(&self) -> impl Future<Output = ()> + Send + 'static {
        let gateway = Arc::clone(&self.context.gateway);
        every(self.config.store.poll_interval, move || {
            let gateway = Arc::clone(&gateway);
            async move { gateway.learn_purges().await.map(drop) }
        })
    }
}

/// Does a chore on the store again and again. A failure is told once, until it is over.
async fn every<F: Future<Output = Result<(), StoreError>>>(interval: Duration, chore: impl Fn() -> F) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        ticks.tick().await;
        match chore().await {
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "a chore on the store failed; it is tried again until it works");
            }
            Ok(()) if failing => {
                failing = false;
                tracing::info!("the store works again");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

fn open_store(config: &Config) -> Result<Arc<dyn Store>, StartError> {
    let settings = &config.store;
    let (read, write) = (settings.read_timeout, settings.write_timeout);
    let Some(url) = &settings.url else { return Ok(Arc::new(EdgeStore::open(&settings.path, read, write)?)) };
    let api_key = secret("store.api_key", settings.api_key.as_ref())?;
    let store = QdrantStore::connect(url, &settings.collection_prefix, api_key, read, write)?;
    Ok(Arc::new(store.replicated(settings.replication_factor)))
}

/// Binds a listener, or says which setting is wrong.
pub async fn bind(key: &'static str, address: std::net::SocketAddr) -> Result<TcpListener, StartError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|reason| StartError::Listen { key, address: address.to_string(), reason })
}

fn secret(key: &str, reference: Option<&SecretRef>) -> Result<Option<Secret>, StartError> {
    let Some(reference) = reference else { return Ok(None) };
    let fault =
        |reason: String| StartError::Secret { key: key.to_owned(), reference: reference.to_string(), reason };
    match reference.resolve() {
        Ok(Some(secret)) => Ok(Some(secret)),
        Ok(None) => Err(fault("there is nothing there".to_owned())),
        Err(error) => Err(fault(error.to_string())),
    }
}

fn prices(config: &Config) -> PriceTable {
    let prices = config.prices.iter();
    PriceTable::new(prices.map(|(model, price)| (model.as_str(), price.input, price.output)))
}

/// For `refrain check`: who is let in, and within which limits.
pub fn check_access(config: &Config) -> Result<String, String> {
    let check = || -> Result<(), StartError> {
        Auth::try_new(&config.auth)?;
        AdminAuth::try_new(&config.admin)?;
        Limits::try_new(&config.server)?;
        Ok(())
    };
    check().map_err(|error| error.to_string())?;
    let callers = match config.auth.mode {
        AuthMode::Open => "anyone on this machine".to_owned(),
        AuthMode::Keys => format!("{} keys", config.auth.keys.len()),
        AuthMode::Forward => "anyone, by a key of the provider".to_owned(),
    };
    let operators = if config.admin.token.is_some() { "by token" } else { "anyone on this machine" };
    Ok(format!("callers: {callers}\noperators: {operators}"))
}

/// For `refrain check`: loads every encoder and has it test itself.
pub fn check_encoders(config: &Config) -> Result<String, String> {
    let mut config = config.clone();
    config.encoders.values_mut().for_each(|encoder| encoder.load = Load::Start);
    Encoders::try_new(&config.embedder, &config.encoders)
        .map(|_| config.embedder.models.join("\n"))
        .map_err(|error| error.to_string())
}

/// For `refrain check`: opens the store as the service would.
pub async fn check_store(config: &Config) -> Result<String, String> {
    let store = open_store(config).map_err(|error| error.to_string())?;
    let result = match store.check().await {
        Ok(()) => store.count(&Selector::default()).await,
        Err(error) => Err(error),
    };
    store.close().await;
    let place = config.store.url.clone().unwrap_or_else(|| config.store.path.display().to_string());
    result.map(|count| format!("{place}: {count} entries")).map_err(|error| format!("{place}: {error}"))
}

/// For `refrain check`: resolves providers, keys and routes; calls nobody.
pub fn check_providers(config: &Config) -> Result<String, String> {
    let upstream = providers(config).map_err(|error| error.to_string())?;
    Ok(upstream.routes().join("\n"))
}

/// For `refrain check`: the providers as the service would have them, with nothing switched off.
pub fn providers(config: &Config) -> Result<Upstream, UpstreamConfigError> {
    Upstream::try_new(config, Clock::system(), Arc::new(Switches::in_memory()))
}

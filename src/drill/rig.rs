//! The service and its providers, in this process and on loopback.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::DrillError;
use super::scenario::{KEYS, PROVIDERS, Plot};
use super::terms::Terms;
use crate::app::App;
use crate::chaos::{Chaos, Content, Rules, Script};

/// Between two pieces of a stream.
const PACE: Duration = Duration::from_millis(2);

/// A service with providers of its own. Dropping it ends all of them.
pub(super) struct Rig {
    address: SocketAddr,
    providers: Vec<Chaos>,
    shutdown: CancellationToken,
    service: AbortOnDropHandle<()>,
    _folder: Folder,
}

impl Rig {
    /// Starts everything, the providers as they are while all is well.
    pub(super) async fn start(plot: &Plot, terms: &Terms, seed: u64) -> Result<Self, DrillError> {
        let folder = Folder::new()?;
        let mut providers = Vec::new();
        for place in 0..PROVIDERS.len() as u64 {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let script = Script::new(plot.well.clone()).seed(seed.wrapping_add(place));
            providers.push(Chaos::start(listener, script.content(Content::Echo).pace(PACE))?);
        }
        let urls: Vec<String> =
            providers.iter().map(|provider| format!("http://{}/v1", provider.address())).collect();
        let config = terms.config(&urls, &keys(&folder.0)?, &folder.0.join("data"))?;
        let callers = TcpListener::bind("127.0.0.1:0").await?;
        let operators = TcpListener::bind("127.0.0.1:0").await?;
        let address = callers.local_addr()?;
        let app = App::try_new(config).await?;
        let shutdown = CancellationToken::new();
        let service: JoinHandle<()> = tokio::spawn(app.serve(callers, operators, shutdown.clone()));
        let service = AbortOnDropHandle::new(service);
        Ok(Self { address, providers, shutdown, service, _folder: folder })
    }

    /// Where callers ask.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A provider does this from now on.
    pub(super) fn play(&self, provider: usize, rules: &Rules) {
        if let Some(provider) = self.providers.get(provider) {
            provider.set_mode(rules.clone());
        }
    }

    /// All providers do this from now on.
    pub(super) fn play_all(&self, rules: &Rules) {
        for provider in &self.providers {
            provider.set_mode(rules.clone());
        }
    }

    /// The calls to all providers so far.
    pub(super) fn calls(&self) -> u64 {
        self.providers.iter().map(Chaos::begun).sum()
    }

    /// Stops the service in good order, and then the providers.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        // An error is a panic of the service, which the figures have shown already.
        let _ = self.service.await;
        for provider in self.providers {
            provider.stop().await;
        }
    }
}

/// Writes the keys into files, since a config names no key but where it is found.
fn keys(folder: &Path) -> io::Result<Vec<String>> {
    let key = |(place, key): (usize, &&str)| {
        let path = folder.join(format!("key-{}", place + 1));
        std::fs::write(&path, key)?;
        Ok(format!("file:{}", path.display()))
    };
    KEYS.iter().enumerate().map(key).collect()
}

/// A temporary folder, which goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("refrain-drill-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies among the system's temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

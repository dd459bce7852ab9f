//! Handlers and bodies that the test holds in its hand, and that say when they are dropped.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};

use crate::within;

/// The test's end of one request.
pub(crate) struct Probe {
    began: mpsc::Receiver<()>,
    events: Option<mpsc::Sender<&'static str>>,
    dropped: oneshot::Receiver<()>,
}

/// The handler's end; what it holds is dropped with it.
struct Held {
    began: mpsc::Sender<()>,
    events: mpsc::Receiver<&'static str>,
    _dropped: oneshot::Sender<()>,
}

fn probe() -> (Probe, Arc<Mutex<Option<Held>>>) {
    let (began, has_begun) = mpsc::channel(1);
    let (events, received) = mpsc::channel(1);
    let (dropping, dropped) = oneshot::channel();
    let held = Held { began, events: received, _dropped: dropping };
    (Probe { began: has_begun, events: Some(events), dropped }, Arc::new(Mutex::new(Some(held))))
}

fn take(held: &Mutex<Option<Held>>) -> Held {
    held.lock().unwrap().take().expect("one request only")
}

/// `/stream` answers at once and then streams what the test says.
pub(crate) fn stream() -> (Probe, Router) {
    let (probe, held) = probe();
    let handler = move || async move {
        let held = take(&held);
        held.began.send(()).await.unwrap();
        Body::from_stream(stream::unfold(held, |mut held| async {
            let event = held.events.recv().await?;
            Some((Ok::<_, Infallible>(event), held))
        }))
    };
    (probe, Router::new().route("/stream", get(handler)))
}

/// `/slow` answers with the first thing that the test says.
pub(crate) fn slow() -> (Probe, Router) {
    let (probe, held) = probe();
    let handler = move || async move {
        let mut held = take(&held);
        held.began.send(()).await.unwrap();
        held.events.recv().await.unwrap_or_default()
    };
    (probe, Router::new().route("/slow", get(handler)))
}

/// `/flood` streams without end, as fast as the client takes it.
pub(crate) fn flood() -> (Probe, Router) {
    let (probe, held) = probe();
    let handler = move || async move {
        let held = take(&held);
        held.began.send(()).await.unwrap();
        let chunk = Bytes::from(vec![b'x'; 16 << 10]);
        Body::from_stream(stream::repeat(chunk).map(move |chunk| {
            let _held = &held;
            Ok::<_, Infallible>(chunk)
        }))
    };
    (probe, Router::new().route("/flood", get(handler)))
}

impl Probe {
    /// The request has reached its handler.
    pub(crate) async fn began(&mut self) {
        within("the handler begins", self.began.recv()).await.unwrap();
    }

    pub(crate) async fn say(&self, event: &'static str) {
        within("the handler listens", self.events.as_ref().unwrap().send(event)).await.unwrap();
    }

    /// Ends the stream in good order.
    pub(crate) fn finish(&mut self) {
        self.events = None;
    }

    /// Handler or body are dropped.
    pub(crate) async fn dropped(self) {
        let _ = within("the handler or its body is dropped", self.dropped).await;
    }
}

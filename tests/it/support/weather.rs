//! A provider whose behaviour is a function of time, and the callers who live with it.
//!
//! Everything happens in paused time, so twenty minutes of a bad day take a second; the dice are
//! seeded. What the service itself draws (jitter, weights) is not, so a test leaves room for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use refrain::chat::{ChatRequest, EventKind};
use refrain::config::Secret;
use refrain::dialect::openai::reply::{Stamp, render_whole};
use refrain::upstream::fault::{Refusal, classify};
use refrain::upstream::provider::Provider;
use refrain::upstream::{
    Ask, Body, Completion, Event, Piece, PieceStream, Served, Upstream, UpstreamError, Whole,
};
use tokio::time::{Instant, sleep, sleep_until};

use super::START;
use super::provider::reply;

/// Calls to all providers of all tests.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// What becomes of a call.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// First content after `first`, the end `rest` later. A whole answer comes at the end.
    Answer { first: Duration, rest: Duration },
    /// Refused or broken after that long.
    Fail { after: Duration, failure: Failure },
    /// Nothing at all.
    Hang,
    /// Events without content, for ever.
    KeepAlive { every: Duration },
    /// Content, for ever.
    Trickle { every: Duration },
    /// Content once, then nothing.
    Stall { first: Duration },
    /// Content once, then a failure.
    Break { first: Duration, failure: Failure },
}

/// How a call fails.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The provider says so.
    Says { status: u16, headers: Vec<(&'static str, String)>, body: &'static str },
    /// No connection.
    Connect,
    /// Not what the protocol says.
    Broken,
}

/// A provider's word, as it comes over the wire.
pub(crate) fn says(status: u16, body: &'static str) -> Failure {
    Failure::Says { status, headers: Vec::new(), body }
}

/// Anthropic's 529.
pub(crate) fn overloaded() -> Failure {
    says(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#)
}

impl Failure {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Says { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }

    /// At once.
    pub(crate) fn now(self) -> Fate {
        self.after(0)
    }

    pub(crate) fn after(self, ms: u64) -> Fate {
        Fate::Fail { after: Duration::from_millis(ms), failure: self }
    }

    fn error(&self, provider: &Arc<str>) -> UpstreamError {
        let provider = Arc::clone(provider);
        match self {
            Self::Connect => UpstreamError::Connect { provider, reason: "refused".into() },
            Self::Broken => UpstreamError::Broken { provider, reason: "half".into() },
            Self::Says { status, headers, body } => {
                let headers: HeaderMap = headers
                    .iter()
                    .map(|(name, value)| {
                        (HeaderName::from_static(name), HeaderValue::try_from(value).unwrap())
                    })
                    .collect();
                let refusal =
                    Refusal { status: *status, headers: &headers, body: body.as_bytes(), now: START };
                let (fault, body) = (classify(&refusal), Bytes::from_static(body.as_bytes()));
                UpstreamError::Status { provider, status: *status, body, fault }
            }
        }
    }
}

/// A good answer: first content after so many milliseconds, and the rest at once.
pub(crate) fn answer(ms: u64) -> Fate {
    Fate::Answer { first: Duration::from_millis(ms), rest: Duration::ZERO }
}

/// What a provider knows when it is called.
pub(crate) struct Moment<'a> {
    /// Since the provider was made.
    pub(crate) at: Duration,
    /// Calls under way, this one included.
    pub(crate) in_flight: u32,
    /// Which call this is, from 0.
    pub(crate) nth: usize,
    /// Its name for the model asked for.
    pub(crate) model: &'a str,
    /// The key that came with it.
    pub(crate) key: Option<&'a str>,
    dice: &'a mut StdRng,
}

impl Moment<'_> {
    pub(crate) fn seconds(&self) -> f64 {
        self.at.as_secs_f64()
    }

    /// Whether the time lies in one of the bursts: the first `long` seconds of every `every`.
    pub(crate) fn in_burst(&self, long: f64, every: f64) -> bool {
        self.seconds() % every < long
    }

    /// True so often, out of one.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.dice.random_bool(share)
    }

    /// A time drawn from a lognormal distribution: half of them are below the median, and one in
    /// twenty is twice as long (as first contents of models are spread).
    pub(crate) fn about(&mut self, median_ms: f64) -> Duration {
        const SIGMA: f64 = 0.42;
        let (one, other): (f64, f64) = (self.dice.random(), self.dice.random());
        let normal = (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        Duration::from_secs_f64(median_ms / 1e3 * (SIGMA * normal).exp())
    }

    /// An answer with such a first content, written within two more seconds.
    pub(crate) fn usual(&mut self, median_ms: f64) -> Fate {
        Fate::Answer { first: self.about(median_ms), rest: Duration::from_secs(2) }
    }
}

/// A provider.
pub(crate) struct Weather {
    name: Arc<str>,
    keys: Vec<Secret>,
    forecast: Box<dyn Fn(&mut Moment<'_>) -> Fate + Send + Sync>,
    start: Instant,
    dice: Mutex<StdRng>,
    in_flight: Arc<AtomicU32>,
    calls: Arc<Mutex<Vec<Called>>>,
}

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// Its place among all calls to all providers.
    pub(crate) order: usize,
    /// Since the provider was made.
    pub(crate) at: Duration,
    pub(crate) model: String,
    pub(crate) key: Option<String>,
    pub(crate) body: Bytes,
    /// When and how it ended; `None` while it is under way.
    pub(crate) end: Option<(Duration, End)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    Failed,
    /// The service let go of it.
    Cancelled,
}

impl Weather {
    pub(crate) fn new(
        name: &str,
        forecast: impl Fn(&mut Moment<'_>) -> Fate + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            keys: Vec::new(),
            forecast: Box::new(forecast),
            start: Instant::now(),
            dice: Mutex::new(StdRng::seed_from_u64(name.bytes().map(u64::from).sum())),
            in_flight: Arc::default(),
            calls: Arc::default(),
        }
    }

    /// With keys `k1`, `k2` and so on.
    pub(crate) fn keys(mut self, keys: usize) -> Self {
        self.keys = (1..=keys).map(|key| Secret::new(&format!("k{key}"))).collect();
        self
    }

    pub(crate) fn with_keys(self: &Arc<Self>) -> (Arc<dyn Provider>, Vec<Secret>) {
        (Arc::clone(self) as _, self.keys.clone())
    }

    pub(crate) fn named(&self) -> &str {
        &self.name
    }

    pub(crate) fn calls(&self) -> Vec<Called> {
        self.calls.lock().unwrap().clone()
    }

    /// How many calls came in this stretch of seconds since the start.
    pub(crate) fn calls_within(&self, from: u64, to: u64) -> usize {
        let stretch = Duration::from_secs(from)..Duration::from_secs(to);
        self.calls.lock().unwrap().iter().filter(|call| stretch.contains(&call.at)).count()
    }

    /// Calls under way.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::SeqCst)
    }

    fn arrive(&self, request: &ChatRequest, model: &str, credential: Option<&Secret>) -> (Fate, Visit) {
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        let at = self.start.elapsed();
        let key = credential.map(Secret::expose);
        let mut calls = self.calls.lock().unwrap();
        let nth = calls.len();
        let (key_seen, body) = (key.map(str::to_owned), request.body_for(model));
        let order = CALLS.fetch_add(1, Ordering::SeqCst);
        calls.push(Called { order, at, model: model.to_owned(), key: key_seen, body, end: None });
        drop(calls);
        let visit = Visit {
            start: self.start,
            in_flight: Arc::clone(&self.in_flight),
            calls: Arc::clone(&self.calls),
            nth,
            end: End::Cancelled,
        };
        let dice = &mut self.dice.lock().unwrap();
        let fate = (self.forecast)(&mut Moment { at, in_flight, nth, model, key, dice });
        (fate, visit)
    }

    fn event(&self, kind: EventKind) -> Piece {
        let content = if kind == EventKind::Content { &*self.name } else { "" };
        let data = serde_json::json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "big-1",
            "choices": [{ "index": 0, "delta": { "content": content }, "finish_reason": null }],
        });
        Piece::Event(Event { data: data.to_string().into(), kind })
    }

    /// The pieces of a stream, each with the pause before it.
    fn pieces(
        &self,
        fate: Fate,
    ) -> Box<dyn Iterator<Item = (Duration, Result<Piece, UpstreamError>)> + Send> {
        let content = Ok(self.event(EventKind::Content));
        match fate {
            Fate::Answer { first, rest } => {
                let end = Ok(Piece::Complete(Box::new(Some(reply(&self.name)).into())));
                Box::new([(first, content), (rest, end)].into_iter())
            }
            Fate::Break { first, failure } => {
                Box::new([(first, content), (Duration::ZERO, Err(failure.error(&self.name)))].into_iter())
            }
            Fate::Stall { first } => Box::new([(first, content.clone()), (FOR_EVER, content)].into_iter()),
            Fate::Trickle { every } => Box::new(std::iter::repeat((every, content))),
            Fate::KeepAlive { every } => {
                Box::new(std::iter::repeat((every, Ok(self.event(EventKind::Other)))))
            }
            Fate::Fail { .. } | Fate::Hang => unreachable!("no stream comes of it"),
        }
    }
}

#[async_trait]
impl Provider for Weather {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Body, UpstreamError> {
        let (fate, mut visit) = self.arrive(request, model, credential);
        match fate {
            Fate::Fail { after, failure } => {
                sleep(after).await;
                visit.end = End::Failed;
                Err(failure.error(&self.name))
            }
            Fate::Hang => std::future::pending().await,
            fate if request.stream => Ok(Body::Stream(visit.through(self.pieces(fate)))),
            Fate::Answer { first, rest } => {
                sleep(first + rest).await;
                visit.end = End::Answered;
                let reply = reply(&self.name);
                let stamp = Stamp { id: "chatcmpl-fake", created: 1, cached: false };
                Ok(Body::Whole(Whole::new(render_whole(&reply, &stamp), Some(reply))))
            }
            Fate::Break { first, failure } => {
                sleep(first).await;
                visit.end = End::Failed;
                Err(failure.error(&self.name))
            }
            Fate::KeepAlive { .. } | Fate::Trickle { .. } | Fate::Stall { .. } => {
                std::future::pending().await
            }
        }
    }
}

/// A call under way; dropped, it has ended.
struct Visit {
    start: Instant,
    in_flight: Arc<AtomicU32>,
    calls: Arc<Mutex<Vec<Called>>>,
    nth: usize,
    end: End,
}

impl Visit {
    fn through(
        self,
        pieces: Box<dyn Iterator<Item = (Duration, Result<Piece, UpstreamError>)> + Send>,
    ) -> PieceStream {
        stream::unfold((self, pieces), |(mut visit, mut pieces)| async move {
            let (pause, piece) = pieces.next()?;
            sleep(pause).await;
            match &piece {
                Ok(Piece::Event(_)) => {}
                Ok(Piece::Complete(_)) => visit.end = End::Answered,
                Err(_) => visit.end = End::Failed,
            }
            Some((piece, (visit, pieces)))
        })
        .boxed()
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.calls.lock().unwrap()[self.nth].end = Some((self.start.elapsed(), self.end));
    }
}

/// Callers who ask one after the other, whether they are answered or not.
#[derive(Clone)]
pub(crate) struct Callers {
    pub(crate) request: ChatRequest,
    /// How many in a second.
    pub(crate) rate: u32,
    /// How long each waits.
    pub(crate) patience: Duration,
}

/// A caller's story.
#[derive(Debug)]
pub(crate) struct Story {
    /// When it asked, since the callers began.
    pub(crate) at: Duration,
    /// Until its first content, or whole answer.
    pub(crate) first: Option<Duration>,
    /// Until the end.
    pub(crate) took: Duration,
    pub(crate) end: Result<Served, UpstreamError>,
}

impl Callers {
    /// Asks for so many seconds, and waits for the last one's end.
    pub(crate) async fn ask_for(&self, seconds: u32, upstream: &Arc<Upstream>) -> Day {
        self.ask_times(self.rate * seconds, upstream).await
    }

    /// Asks so often.
    pub(crate) async fn ask_times(&self, count: u32, upstream: &Arc<Upstream>) -> Day {
        let start = Instant::now();
        let asking = (0..count).map(|nth| {
            let (upstream, callers) = (Arc::clone(upstream), self.clone());
            let at = start + Duration::from_secs(1) * nth / callers.rate;
            async move {
                sleep_until(at).await;
                callers.ask(&upstream, start).await
            }
        });
        let asking = asking.map(tokio::spawn).collect::<Vec<_>>();
        Day(join_all(asking).await.into_iter().map(Result::unwrap).collect())
    }

    async fn ask(&self, upstream: &Upstream, start: Instant) -> Story {
        let begun = Instant::now();
        let asked = upstream.send(Ask::new(&self.request, begun + self.patience)).await;
        let first = asked.is_ok().then(|| begun.elapsed());
        let end = match asked {
            Ok(Completion { served, body }) => read(body).await.map(|()| served),
            Err(error) => Err(error),
        };
        Story { at: begun - start, first, took: begun.elapsed(), end }
    }
}

/// Reads an answer to its end.
pub(crate) async fn read(body: Body) -> Result<(), UpstreamError> {
    let Body::Stream(mut pieces) = body else { return Ok(()) };
    while let Some(piece) = pieces.next().await {
        piece?;
    }
    Ok(())
}

/// What the callers say in the evening, in the order in which they asked.
pub(crate) struct Day(pub(crate) Vec<Story>);

impl Day {
    /// Those who asked in this stretch of seconds.
    pub(crate) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Story> {
        let stretch = Duration::from_secs(from)..Duration::from_secs(to);
        self.0.iter().filter(move |story| stretch.contains(&story.at))
    }

    /// The share of those who got a whole answer.
    pub(crate) fn success(&self) -> f64 {
        share(self.0.iter(), |story| story.end.is_ok())
    }

    /// How many were told what instead of an answer, for the message of a failed test.
    pub(crate) fn told(&self) -> BTreeMap<&'static str, usize> {
        let mut told = BTreeMap::new();
        for error in self.0.iter().filter_map(|story| story.end.as_ref().err()) {
            *told.entry(error.label()).or_default() += 1;
        }
        told
    }

    /// The first contents of those who asked in this stretch: 99 of 100 came within that.
    pub(crate) fn p99(&self, from: u64, to: u64) -> Duration {
        let mut firsts: Vec<_> = self.between(from, to).filter_map(|story| story.first).collect();
        assert!(!firsts.is_empty(), "nobody was answered between {from} and {to} s");
        firsts.sort_unstable();
        firsts[(firsts.len() * 99).div_ceil(100) - 1]
    }
}

/// The share of stories that are so.
pub(crate) fn share<'a>(stories: impl Iterator<Item = &'a Story>, is_so: impl Fn(&Story) -> bool) -> f64 {
    let (mut so, mut all) = (0, 0);
    for story in stories {
        so += usize::from(is_so(story));
        all += 1;
    }
    ratio(so, all)
}

/// One number over another; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

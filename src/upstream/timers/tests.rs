use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use tokio::time::sleep;

use super::*;
use crate::upstream::{Event, Whole};

const TIMERS: Timers = Timers {
    first_content: Duration::from_secs(10),
    stall: Duration::from_secs(5),
    total: Duration::from_mins(1),
};

/// A provider's stream: after each wait in milliseconds, a piece. Then silence, or the end.
struct Script {
    pieces: Vec<(u64, Piece)>,
    hangs: bool,
    dropped: Arc<AtomicBool>,
}

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Script {
    fn new(pieces: Vec<(u64, Piece)>, hangs: bool) -> Self {
        Self { pieces, hangs, dropped: Arc::default() }
    }

    fn dropped(&self) -> impl Fn() -> bool + use<> {
        let dropped = self.dropped.clone();
        move || dropped.load(Ordering::SeqCst)
    }

    fn body(self) -> Body {
        let Self { pieces, hangs, dropped } = self;
        let guard = Guard(dropped);
        let pieces = stream::iter(pieces).then(|(wait, piece)| async move {
            sleep(Duration::from_millis(wait)).await;
            Ok(piece)
        });
        let end = stream::poll_fn(move |_| {
            let _held = &guard;
            if hangs { Poll::Pending } else { Poll::Ready(None) }
        });
        Body::Stream(pieces.chain(end).boxed())
    }

    async fn watch(self) -> Result<PieceStream, UpstreamError> {
        let body = watch(async { Ok(self.body()) }).await?;
        let Body::Stream(pieces) = body else { panic!("no stream") };
        Ok(pieces)
    }
}

async fn watch(call: impl Future<Output = Result<Body, UpstreamError>>) -> Result<Body, UpstreamError> {
    TIMERS.watch(&"fake".into(), TIMERS.deadline(), FOREVER, call).await
}

fn event(kind: EventKind) -> Piece {
    Piece::Event(Event { data: Bytes::from_static(b"{}"), kind })
}

fn content() -> Piece {
    event(EventKind::Content)
}

fn other() -> Piece {
    event(EventKind::Other)
}

/// Reads to the end: how many pieces there were, and the error that cut them.
async fn read(mut pieces: PieceStream) -> (usize, Option<UpstreamError>) {
    let mut count = 0;
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(_) => count += 1,
            Err(error) => {
                assert!(pieces.next().await.is_none(), "an error is the last item");
                return (count, Some(error));
            }
        }
    }
    (count, None)
}

#[track_caller]
fn assert_timer(error: Option<UpstreamError>, wanted: &str) {
    match error {
        Some(UpstreamError::TimedOut { timer, provider }) => {
            assert_eq!((timer, &*provider), (wanted, "fake"));
        }
        error => panic!("{wanted} did not fire: {error:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_in_time_passes_whole() {
    let script = Script::new(
        vec![
            (9_000, other()),
            (900, content()),
            (4_900, content()),
            (4_900, Piece::Complete(Box::default())),
        ],
        true,
    );
    let dropped = script.dropped();
    let pieces = script.watch().await.unwrap();
    assert!(!dropped());
    let (count, error) = read(pieces).await;
    assert_eq!(count, 4);
    assert!(error.is_none(), "{error:?}");
    assert!(dropped());
}

#[tokio::test(start_paused = true)]
async fn only_content_stops_the_first_timer() {
    let script =
        Script::new(vec![(3_000, other()), (3_000, event(EventKind::Usage)), (5_000, content())], true);
    let dropped = script.dropped();
    let start = Instant::now();
    assert_timer(script.watch().await.err(), "first_content");
    assert_eq!(start.elapsed(), TIMERS.first_content);
    assert!(dropped());
}

#[tokio::test(start_paused = true)]
async fn the_first_timer_covers_the_call_itself_and_a_whole_body() {
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = Guard(dropped.clone());
    let hanging = async {
        let _held = guard;
        std::future::pending().await
    };
    assert_timer(watch(hanging).await.err(), "first_content");
    assert!(dropped.load(Ordering::SeqCst));
    let slow = async {
        sleep(Duration::from_secs(9)).await;
        Ok(Body::Whole(Whole::new(Bytes::new(), None)))
    };
    assert!(matches!(watch(slow).await, Ok(Body::Whole(_))));
}

#[tokio::test(start_paused = true)]
async fn a_stall_between_contents_cuts_and_cancels() {
    let script =
        Script::new(vec![(0, content()), (4_000, content()), (2_000, other()), (2_000, other())], true);
    let dropped = script.dropped();
    let start = Instant::now();
    let (count, error) = read(script.watch().await.unwrap()).await;
    assert_eq!(count, 4);
    assert_timer(error, "stall");
    // Events without content in between do not put it off.
    assert_eq!(start.elapsed(), Duration::from_secs(9));
    assert!(dropped());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_no_stall() {
    let pieces =
        Script::new(vec![(0, content()), (1_000, content()), (0, Piece::Complete(Box::default()))], true);
    let pieces = pieces.watch().await.unwrap();
    let slow = pieces.then(|piece| async {
        sleep(Duration::from_secs(15)).await;
        piece
    });
    let (count, error) = read(slow.boxed()).await;
    assert_eq!(count, 3);
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn the_total_ends_even_a_lively_stream() {
    for wait in [4_000, 0] {
        let pieces = std::iter::repeat_n((wait, content()), 16).collect();
        let script = Script::new(pieces, true);
        let dropped = script.dropped();
        let start = Instant::now();
        let pieces = script.watch().await.unwrap();
        if wait == 0 {
            // Everything is there at once, and the caller comes back too late.
            sleep(TIMERS.total).await;
        }
        let (_, error) = read(pieces).await;
        assert_timer(error, "total");
        assert_eq!(start.elapsed(), TIMERS.total);
        assert!(dropped());
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_comes_before_the_first_content() {
    let deadline = Instant::now() + Duration::from_secs(2);
    let call = std::future::pending();
    let error = TIMERS.watch(&"fake".into(), deadline, FOREVER, call).await.err();
    assert_timer(error, "total");
    assert_eq!(Instant::now(), deadline);
}

#[tokio::test(start_paused = true)]
async fn an_end_without_a_terminal_is_broken() {
    let late = Script::new(vec![(0, content()), (0, content())], false);
    let (count, error) = read(late.watch().await.unwrap()).await;
    assert_eq!(count, 2);
    assert!(matches!(error, Some(UpstreamError::Broken { .. })), "{error:?}");
    for pieces in [vec![], vec![(0, other())]] {
        let error = Script::new(pieces, false).watch().await.err();
        assert!(matches!(error, Some(UpstreamError::Broken { .. })), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_prelude_is_broken() {
    let flood = stream::repeat_with(|| Ok(other())).boxed();
    let error = watch(async { Ok(Body::Stream(flood)) }).await.err();
    assert!(matches!(error, Some(UpstreamError::Broken { .. })), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn errors_pass_before_and_after_the_first_content() {
    let broken = || UpstreamError::Broken { provider: "fake".into(), reason: "x".into() };
    let first = stream::iter([Ok(other()), Err(broken())]).boxed();
    assert!(matches!(watch(async { Ok(Body::Stream(first)) }).await, Err(UpstreamError::Broken { .. })));
    let later = stream::iter([Ok(content()), Err(broken()), Ok(content())]).boxed();
    let Ok(Body::Stream(pieces)) = watch(async { Ok(Body::Stream(later)) }).await else {
        panic!("no stream")
    };
    let (count, error) = read(pieces).await;
    assert_eq!(count, 1);
    assert!(matches!(error, Some(UpstreamError::Broken { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_content_is_an_answer() {
    let script = Script::new(vec![(0, other()), (0, Piece::Complete(Box::default()))], true);
    let dropped = script.dropped();
    let (count, error) = read(script.watch().await.unwrap()).await;
    assert_eq!((count, error.is_none()), (2, true));
    assert!(dropped());
}

#[tokio::test(start_paused = true)]
async fn silence_that_is_explained_is_no_stall() {
    let working = || event(EventKind::Working);
    let explained = vec![(0, content()), (4_000, working()), (4_000, working()), (4_000, content())];
    let end = [(0, Piece::Complete(Box::default()))];
    let script = Script::new(explained.into_iter().chain(end).collect(), true);
    let (count, error) = read(script.watch().await.unwrap()).await;
    assert_eq!((count, error.is_none()), (5, true), "{error:?}");
    let unexplained = vec![(0, content()), (4_000, other()), (4_000, content())];
    assert_timer(read(Script::new(unexplained, true).watch().await.unwrap()).await.1, "stall");
    // Nor is it content: whoever only says so has not begun.
    let only_so = vec![(4_000, working()), (4_000, working()), (4_000, content())];
    assert_timer(Script::new(only_so, true).watch().await.err(), "first_content");
}

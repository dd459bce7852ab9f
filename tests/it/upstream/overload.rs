//! More requests than a provider takes: as many are answered as ever, and the others hear so at
//! once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use refrain::upstream::Priority::{Batch, Interactive};
use refrain::upstream::fault::Class;
use refrain::upstream::{Ask, Priority, UpstreamError};
use tokio::time::{Instant, sleep};

use super::{ask, provider_report, seconds, streamed_request, upstream, whole_request};
use crate::support::weather::{Callers, Day, Fate, Story, Weather, answer, overloaded, ratio, says};
use crate::support::{TestApp, chat, provider};

/// Serves twenty at once within a second each; every further one makes all of them later.
fn crowded(name: &str) -> Arc<Weather> {
    Arc::new(Weather::new(name, |now| {
        let service = f64::max(1.0, f64::from(now.in_flight) / 20.0);
        let first = Duration::from_secs_f64(service / 2.0);
        Fate::Answer { first, rest: first }
    }))
}

/// Answers inside the deadline, a second.
fn goodput(day: &Day, from: u64, to: u64, deadline: Duration) -> f64 {
    let good = day.between(from, to).filter(|story| story.end.is_ok() && story.took <= deadline);
    ratio(good.count(), usize::try_from(to - from).unwrap())
}

#[tokio::test(start_paused = true)]
async fn five_times_the_load_costs_little_goodput() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let load = |rate| Callers { request: streamed_request(), rate, patience: DEADLINE };
    let peak = {
        let upstream = upstream("", &[&crowded("a")]);
        goodput(&load(20).ask_for(60, &upstream).await, 10, 50, DEADLINE)
    };
    assert!(peak >= 19.0, "{peak}");
    for request in [streamed_request(), whole_request()] {
        let a = crowded("a");
        let upstream = upstream("", &[&a]);
        let load = |rate| Callers { request: request.clone(), ..load(rate) };
        load(15).ask_for(300, &upstream).await;
        let day = load(100).ask_for(120, &upstream).await;
        let good = goodput(&day, 0, 120, DEADLINE);
        assert!(good >= 0.8 * peak, "{good} of {peak} a second under five times the load");
        let shed = |story: &&Story| matches!(&story.end, Err(UpstreamError::Overloaded { .. }));
        assert!(day.between(0, 120).filter(shed).count() > 5_000, "most of the others were shed");
        // And it is over when it is over.
        sleep(seconds(10)).await;
        let day = load(15).ask_for(30, &upstream).await;
        assert!(day.success() >= 0.999, "{}", day.success());
        assert_eq!(provider_report(&upstream, "a").in_flight, 0);
    }
}

/// The spill of a full reserved target goes to the next one, and nobody waits.
#[tokio::test(start_paused = true)]
async fn what_one_cannot_take_another_does() {
    let (a, b) = (crowded("a"), crowded("b"));
    let settings = "[providers.a]\nkind = \"openai\"\nurl = \"http://127.0.0.1:9\"\nmax_in_flight = 20";
    let upstream = upstream(settings, &[&a, &b]);
    let load = Callers { request: streamed_request(), rate: 35, patience: seconds(10) };
    let day = load.ask_for(60, &upstream).await;
    assert!(day.success() >= 0.999);
    let first = a.calls().len();
    assert!((1_000..=1_300).contains(&first), "the first one took {first} of 2,100: all it could");
    assert!(day.0.iter().all(|story| story.first.unwrap() < seconds(2)));
}

/// One slot, and so many may wait.
fn narrow(queue: usize) -> String {
    format!("[upstream.limit]\nmin_in_flight = 1\nmax_in_flight = 1\nqueue = {queue}\nqueue_timeout = \"5s\"")
}

#[tokio::test(start_paused = true)]
async fn who_cannot_wait_hears_so_at_once() {
    let a = Arc::new(Weather::new("a", |_| answer(10_000)));
    let upstream = upstream(&narrow(0), &[&a]);
    let request = whole_request();
    let asking = (0..3).map(|_| async {
        let begun = Instant::now();
        let error = ask(&upstream, &request, seconds(60)).await.err();
        (error, begun.elapsed())
    });
    let told = join_all(asking).await;
    assert!(told[0].0.is_none());
    for (error, after) in &told[1..] {
        assert!(matches!(error, Some(UpstreamError::Overloaded { .. })), "{error:?}");
        assert!(*after < Duration::from_millis(50), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_leaves_for_a_newcomer_and_batch_before_interactive() {
    let a = Arc::new(Weather::new("a", |_| answer(3_000)));
    let upstream = upstream(&narrow(2), &[&a]);
    let asked = |delay: u64, priority: Priority| {
        let (upstream, request) = (&upstream, whole_request());
        async move {
            sleep(Duration::from_millis(delay)).await;
            let ask = Ask { priority, ..Ask::new(&request, Instant::now() + seconds(60)) };
            let begun = Instant::now();
            let end = upstream.send(ask).await;
            (end.map(|_| ()).map_err(|error| error.label()), begun.elapsed().as_millis())
        }
    };
    let stories = join_all(vec![
        asked(0, Interactive),
        asked(100, Batch),
        asked(200, Interactive),
        // No room: the batch one leaves, then the older of the interactive ones.
        asked(300, Interactive),
        asked(400, Interactive),
        // And nobody leaves for a batch one.
        asked(500, Batch),
    ])
    .await;
    let dropped = |after| (Err("queue_full"), after);
    assert_eq!(stories[0], (Ok(()), 3_000));
    assert_eq!(stories[1], dropped(200));
    assert_eq!(stories[2], dropped(200));
    assert_eq!(stories[3].0, Ok(()));
    assert_eq!(stories[4], (Err("queue_timeout"), 5_000), "the second in line waits as long as allowed");
    assert_eq!(stories[5], dropped(0));
}

/// The only provider is ill and full: it is asked all the same, in turn and not by all at once.
#[tokio::test(start_paused = true)]
async fn the_last_one_standing_is_asked_even_if_there_is_a_line() {
    let a =
        Arc::new(Weather::new(
            "a",
            |now| {
                if now.at < seconds(10) { overloaded().after(20) } else { answer(100) }
            },
        ));
    let upstream = upstream(&narrow(100), &[&a]);
    let callers = Callers { request: streamed_request(), rate: 10, patience: seconds(20) };
    callers.ask_for(5, &upstream).await;
    assert_eq!(super::breaker(&upstream, "a"), "open");
    sleep(seconds(6)).await;
    let crowd = Callers { rate: 1_000_000, ..callers };
    let day = crowd.ask_times(20, &upstream).await;
    assert!(day.0.iter().all(|story| story.end.is_ok()), "{:?}", day.0);
    assert_eq!(a.in_flight(), 0);
}

/// Those who line up for a slot of a provider that turns out to be limited wait for its key, and do
/// not hand the slot to and fro.
#[tokio::test(start_paused = true)]
async fn those_in_line_for_a_limited_key_wait_for_it() {
    let a = Arc::new(
        Weather::new("a", |now| {
            if now.nth == 0 { says(429, "").with("retry-after", "20").after(1_000) } else { answer(100) }
        })
        .keys(1),
    );
    let upstream = upstream(&narrow(10).replace("5s", "60s"), &[&a]);
    let callers = Callers { request: streamed_request(), rate: 10, patience: seconds(60) };
    let day = callers.ask_times(4, &upstream).await;
    assert!(day.0.iter().all(|story| story.end.is_ok()), "{:?}", day.0);
    let calls: Vec<_> = a.calls().iter().skip(1).map(|call| call.at).collect();
    assert!(calls.len() == 4 && calls.iter().all(|at| *at >= seconds(21)), "{calls:?}");
}

/// A limit on the rate makes requests wait for their turn, one after the other.
#[tokio::test(start_paused = true)]
async fn requests_beyond_the_rate_wait_for_their_turn() {
    let a = Arc::new(Weather::new("a", |_| answer(10)));
    let settings = "[providers.a]\nkind = \"openai\"\nurl = \"http://127.0.0.1:9\"\nrequests_per_minute = 60";
    let upstream = upstream(settings, &[&a]);
    let crowd = Callers { request: streamed_request(), rate: 1_000_000, patience: seconds(15) };
    let day = crowd.ask_times(30, &upstream).await;
    // Ten at once, and one a second after that.
    assert!(a.calls().len() >= 23, "{} were asked", a.calls().len());
    assert!((1..15).all(|second| a.calls_within(second, second + 1) <= 1 + 1));
    let told = day.0.iter().filter_map(|story| story.end.as_ref().err());
    assert!(
        told.clone().all(|error| error.fault().class == Class::RateLimit),
        "{:?}",
        told.collect::<Vec<_>>()
    );
}

/// A key that is put aside is the operator's trouble, and no limit of the rate.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_refused_is_told_as_such() {
    for (status, class) in [(401, Class::Auth), (402, Class::Quota)] {
        let a = Arc::new(Weather::new("a", move |_| says(status, "").now()).keys(1));
        let upstream = upstream("", &[&a]);
        for _ in 0..3 {
            let error = ask(&upstream, &whole_request(), seconds(60)).await.err().unwrap();
            assert_eq!(error.fault().class, class, "{error}");
        }
        assert_eq!(a.calls().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tenant_does_not_take_all_slots() {
    let a = Arc::new(Weather::new("a", |_| answer(2_000)));
    let upstream = upstream("[upstream.limit]\ntenant_in_flight = 2\nqueue = 0", &[&a]);
    let request = whole_request();
    let asked = |tenant: &'static str| {
        let (upstream, request) = (&upstream, &request);
        async move {
            let ask = Ask { tenant, ..Ask::new(request, Instant::now() + seconds(60)) };
            upstream.send(ask).await.map(|_| ()).map_err(|error| error.label())
        }
    };
    let told = join_all(["greedy", "greedy", "greedy", "other"].map(asked)).await;
    assert_eq!(told, [Ok(()), Ok(()), Err("queue_full"), Ok(())]);
    assert!(provider_report(&upstream, "a").tenants.is_empty());
}

#[tokio::test(start_paused = true)]
async fn over_http_it_is_503_with_retry_after_at_once() {
    let app = TestApp::with(&narrow(0)).await;
    let held = app.provider.hold();
    let (first, other) = (chat("one"), chat("another"));
    let second = async {
        tokio::task::yield_now().await;
        sleep(Duration::from_millis(10)).await;
        let begun = Instant::now();
        let refused = app.post(&other, &[]).await;
        assert!(begun.elapsed() < Duration::from_millis(50), "{:?}", begun.elapsed());
        held.send(Ok(provider::reply("one"))).unwrap();
        refused
    };
    let (first, refused) = tokio::join!(app.post(&first, &[]), second);
    assert_eq!((first.status.as_u16(), refused.status.as_u16()), (200, 503));
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.json()["error"]["code"], "unavailable");
}

/// Without a limit of ours the provider's own is met: its 429s lower nothing, its 529s do.
#[tokio::test(start_paused = true)]
async fn the_limit_falls_with_capacity_errors_and_rises_again() {
    let a = Arc::new(Weather::new("a", |now| {
        let is_full = now.at < seconds(20) && now.in_flight > 30;
        if is_full { overloaded().now() } else { answer(1_000) }
    }));
    let upstream = upstream("[upstream.breaker]\nmin_calls = 1000000", &[&a]);
    let load = Callers { request: streamed_request(), rate: 60, patience: seconds(10) };
    load.ask_for(20, &upstream).await;
    let low = provider_report(&upstream, "a").limit;
    assert!((20..60).contains(&low), "{low}");
    load.ask_for(60, &upstream).await;
    assert!(provider_report(&upstream, "a").limit > low, "{low}");
}

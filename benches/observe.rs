//! What it costs a request to be counted and logged. Aims: an exact hit is counted in less than
//! 300 ns, and its log line costs the caller less than 3 µs.

use std::fs::File;
use std::thread;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use refrain::clock::Clock;
use refrain::logging::{self, Format};
use refrain::metrics::{Metrics, NamespaceMetrics, PriceTable, Source, Usage};
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;

fn count(criterion: &mut Criterion) {
    let metrics = Metrics::new(Clock::system(), PriceTable::new([("gpt-4o-mini", 0.15, 0.60)]));
    let namespace = metrics.namespace("faq");
    namespace.request(Source::Miss, Duration::from_millis(800), None);

    let mut group = criterion.benchmark_group("count");
    group.bench_function("exact hit", |bencher| bencher.iter(|| exact_hit(&namespace)));
    group.bench_function("exact hit, two threads", |bencher| {
        bencher.iter_custom(|times| {
            let start = Instant::now();
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| (0..times).for_each(|_| exact_hit(&namespace)));
                }
            });
            start.elapsed()
        });
    });
    group.bench_function("bypass", |bencher| {
        bencher.iter(|| namespace.request(Source::Bypass("no_store"), Duration::from_millis(800), None));
    });
    group.bench_function("in flight", |bencher| bencher.iter(|| drop(metrics.in_flight())));
    group.finish();
}

fn exact_hit(namespace: &NamespaceMetrics) {
    let model = "gpt-4o-mini-2024-07-18";
    let saved = Usage { model, prompt_tokens: 900, completion_tokens: 150, estimated: false };
    namespace.request(Source::Exact, Duration::from_micros(60), Some(saved));
}

fn log(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("log");
    for (name, format) in [("text", Format::Text { colors: false }), ("json", Format::Json)] {
        let nowhere = File::create("/dev/null").expect("the null device is there");
        let (dispatch, _guard) =
            logging::to(nowhere, format, EnvFilter::new("info")).expect("the log starts");
        tracing::dispatcher::with_default(&dispatch, || {
            group.bench_function(format!("a request as {name}"), |bencher| bencher.iter(request_line));
            group.bench_function(format!("a filtered event as {name}"), |bencher| {
                bencher.iter(|| tracing::debug!(similarity = 0.93, "candidate"));
            });
        });
    }
    group.finish();
}

fn request_line() {
    tracing::info!(
        namespace = "faq",
        model = "gpt-4o-mini",
        source = "exact",
        status = 200,
        latency_ms = 0.061,
        entry = "6f1f0e7c-52a3-4d0e-9c1b-0b6a1a2f3d4e",
        stream = false,
        "request"
    );
}

criterion_group!(benches, count, log);
criterion_main!(benches);

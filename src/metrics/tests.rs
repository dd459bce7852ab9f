use std::collections::BTreeSet;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

/// 2026-11-30 12:00:30, half a minute past a mark.
const START: Timestamp = Timestamp(1_796_040_030_000);

fn metrics() -> Arc<Metrics> {
    let prices = PriceTable::new([("gpt-4o-mini", 0.15, 0.60), ("gpt-4o", 2.50, 10.00)]);
    Metrics::new(Clock::starting_at(START), prices)
}

fn usage(model: &str) -> Usage<'_> {
    Usage { model, prompt_tokens: 1_000, completion_tokens: 200, estimated: false }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn ago(minutes: u64) -> Since {
    Since::Ago(Duration::from_mins(minutes))
}

fn levels() -> Levels {
    let exact = Layer { entries: 3, bytes: Some(4_096) };
    let semantic = Some(Layer { entries: 7, bytes: None });
    let memo = Layer { entries: 9, bytes: Some(27_648) };
    Levels { layers: Layers { exact, semantic, memo }, open_connections: 5, write_queue_depth: 2 }
}

/// One of everything.
fn a_day_at_the_help_desk(metrics: &Metrics) {
    let faq = metrics.namespace("faq");
    faq.semantic_bypass("too_long");
    faq.request(Source::Miss, millis(900), None);
    faq.spent(usage("gpt-4o-mini-2024-07-18"));
    faq.stored();
    faq.request(Source::Exact, Duration::from_micros(80), Some(usage("gpt-4o-mini-2024-07-18")));
    faq.request(Source::Semantic, millis(9), Some(usage("gpt-4o")));
    faq.request(Source::Coalesced, millis(700), Some(Usage { estimated: true, ..usage("llama") }));
    faq.refused("numbers_differ");
    faq.evicted("exact", 2);
    let chat = metrics.namespace("chat");
    chat.request(Source::Bypass("no_store"), millis(400), None);
    chat.request(Source::Error("deadline"), millis(30_000), None);
    chat.write_skip("finish_length");
    metrics.embed(millis(6));
    metrics.search(millis(2));
    metrics.upstream_call("openai", "gpt-4o-mini", Some(millis(300)), millis(850));
    metrics.upstream_error("openai", "rate_limited");
}

#[tokio::test(start_paused = true)]
async fn stats_of_a_day() {
    let metrics = metrics();
    a_day_at_the_help_desk(&metrics);
    let _under_way = metrics.in_flight();
    advance(Duration::from_mins(5)).await;
    insta::assert_json_snapshot!(metrics.snapshot(None, levels()));
}

#[tokio::test(start_paused = true)]
async fn the_page_for_prometheus_reads_back_whole() {
    let metrics = metrics();
    a_day_at_the_help_desk(&metrics);
    metrics.namespace("quotes \" and \\ and\nlines").stored();
    let _under_way = metrics.in_flight();
    let page = metrics.encode(levels());

    let mut described = BTreeSet::new();
    let mut families = BTreeSet::new();
    let mut series = BTreeSet::new();
    let mut samples = BTreeMap::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a help line has a text");
            assert!(text.ends_with('.'), "{line}");
            described.insert(name);
        } else if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a type line has a type");
            assert!(described.contains(name), "{name} has no help");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(families.insert((name, kind)), "{name} is described twice");
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a sample has a value");
            assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
            let (family, labels) = name.split_once('{').unwrap_or((name, "}"));
            let labels = labels.strip_suffix('}').expect("labels are closed");
            assert!(labels.is_empty() || labels.ends_with('"'), "{line}");
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| family.strip_suffix(suffix));
            assert!(
                families.contains(&(family, "counter"))
                    || families.contains(&(family, "gauge"))
                    || base.is_some_and(|base| families.contains(&(base, "histogram"))),
                "{line} belongs to no family"
            );
            assert!(series.insert(name), "{name} is there twice");
            samples.insert(name, value);
        }
    }

    for (name, value) in [
        (r#"refrain_requests_total{namespace="faq",source="exact"}"#, "1"),
        (r#"refrain_requests_total{namespace="chat",source="bypass"}"#, "1"),
        (r#"refrain_bypasses_total{namespace="chat",reason="no_store"}"#, "1"),
        (r#"refrain_stored_total{namespace="quotes \" and \\ and\nlines"}"#, "1"),
        (r#"refrain_request_duration_seconds_bucket{source="exact",le="5e-05"}"#, "0"),
        (r#"refrain_request_duration_seconds_bucket{source="exact",le="0.0001"}"#, "1"),
        (r#"refrain_request_duration_seconds_sum{source="exact"}"#, "0.00008"),
        (r#"refrain_tokens_saved_total{namespace="faq",kind="prompt"}"#, "3000"),
        (r#"refrain_saved_dollars_total{namespace="faq"}"#, "0.00477"),
        (r#"refrain_upstream_duration_seconds_count{provider="openai"}"#, "1"),
        (r#"refrain_upstream_first_content_seconds_count{provider="openai"}"#, "1"),
        (r#"refrain_upstream_errors_total{provider="openai",class="rate_limited"}"#, "1"),
        ("refrain_exact_bytes", "4096"),
        ("refrain_store_entries", "7"),
        ("refrain_write_queue_depth", "2"),
        ("refrain_in_flight_requests", "1"),
        (concat!(r#"refrain_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""}"#), "1"),
        ("process_start_time_seconds", "1796040030.0"),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name} in\n{page}");
    }
    assert!(!samples.contains_key("refrain_store_bytes"), "what is not known is not shown as zero");
    if cfg!(target_os = "linux") {
        let resident: u64 = samples["process_resident_memory_bytes"].parse().expect("a number of bytes");
        assert!(resident > 1_000_000, "{resident}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_holds_whole_minutes_up_to_now() {
    let metrics = metrics();
    let faq = metrics.namespace("faq");
    faq.request(Source::Miss, millis(500), None); // 12:00:30
    advance(Duration::from_secs(29)).await;
    faq.request(Source::Exact, millis(1), None); // 12:00:59
    advance(Duration::from_secs(1)).await;
    faq.request(Source::Exact, millis(1), None); // 12:01:00
    advance(Duration::from_secs(90)).await;
    faq.request(Source::Semantic, millis(8), None); // 12:02:30

    let stats = metrics.snapshot(Some(ago(1)), levels());
    assert_eq!((stats.since.as_str(), stats.window_seconds), ("2026-11-30T12:01:00Z", 90));
    assert_eq!((stats.totals.exact_hits, stats.totals.semantic_hits, stats.totals.misses), (1, 1, 0));
    assert_eq!(stats.latency["exact"].count, 1);
    assert_eq!(stats.latency["miss"].count, 0);

    let stats = metrics.snapshot(Some("2026-11-30T12:02:00Z".parse().expect("a time")), levels());
    assert_eq!((stats.totals.requests, stats.window_seconds), (1, 30));

    let life = metrics.snapshot(Some(ago(2)), levels());
    assert_eq!((life.since.as_str(), life.window_seconds), ("2026-11-30T12:00:30Z", 120));
    assert_eq!(life.totals, metrics.snapshot(None, levels()).totals);
}

#[tokio::test(start_paused = true)]
async fn an_idle_window_is_empty_and_the_next_is_not() {
    let metrics = metrics();
    let faq = metrics.namespace("faq");
    faq.request(Source::Error("deadline"), millis(1), None);
    metrics.upstream_error("openai", "rate_limited");
    advance(Duration::from_mins(10)).await;

    let idle = metrics.snapshot(Some(ago(5)), levels());
    assert_eq!((idle.totals.requests, idle.totals.hit_rate, idle.totals.hit_rate_all), (0, None, None));
    assert_eq!(idle.totals.errors.len(), 0);
    assert_eq!(idle.upstream["openai"].errors.len(), 0);

    faq.request(Source::Exact, millis(1), None);
    metrics.upstream_call("openai", "gpt-4o", None, millis(400));
    let busy = metrics.snapshot(Some(ago(5)), levels());
    assert_eq!((busy.totals.requests, busy.totals.hit_rate), (1, Some(1.0)));
    assert_eq!(busy.upstream["openai"].calls, 1);
    assert_eq!(busy.upstream["openai"].total.count, 1);
}

#[tokio::test(start_paused = true)]
async fn no_window_reaches_back_beyond_a_day() {
    let metrics = metrics();
    let faq = metrics.namespace("faq");
    for _ in 0..30 {
        faq.request(Source::Exact, millis(1), None);
        advance(Duration::from_hours(1)).await;
    }
    let day = metrics.snapshot(Some(ago(48 * 60)), levels());
    // From 18:00:00 on the day before to 18:00:30: the hits of 18:00:30 to 17:00:30.
    assert_eq!(day.since, "2026-11-30T18:00:00Z");
    assert_eq!((day.totals.exact_hits, day.window_seconds), (24, 24 * 3_600 + 30));
    assert_eq!(day.latency["exact"].count, 24);
    assert_eq!(metrics.snapshot(None, levels()).totals.exact_hits, 30);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_window_begins_at_the_start() {
    let first = metrics();
    first.namespace("faq").request(Source::Exact, millis(1), None);
    advance(Duration::from_mins(10)).await;

    let clock = Clock::starting_at(START.after(Duration::from_mins(10)));
    let second = Metrics::new(clock, PriceTable::default());
    advance(Duration::from_mins(2)).await;
    second.namespace("faq").request(Source::Miss, millis(1), None);
    let stats = second.snapshot(Some(ago(15)), levels());
    assert_eq!((stats.totals.requests, stats.totals.misses), (1, 1));
    assert_eq!((stats.since.as_str(), stats.window_seconds), ("2026-11-30T12:10:30Z", 120));
}

#[tokio::test(start_paused = true)]
async fn a_hit_saves_what_a_miss_took() {
    let metrics = metrics();
    let faq = metrics.namespace("faq");
    let saved = || metrics.snapshot(None, levels()).totals.seconds_saved;
    faq.request(Source::Exact, millis(1), None);
    assert!(saved().abs() < 1e-9, "there is no miss to compare with");
    faq.request(Source::Miss, millis(1_000), None);
    faq.request(Source::Miss, millis(3_000), None);
    faq.request(Source::Semantic, millis(500), None);
    assert!((saved() - 1.5).abs() < 1e-9);
    faq.request(Source::Coalesced, millis(9_000), None);
    assert!((saved() - 1.5).abs() < 1e-9, "a late answer saves nothing, and costs nothing");
}

#[tokio::test(start_paused = true)]
async fn a_guard_counts_a_request_until_it_is_dropped() {
    let metrics = metrics();
    let under_way = || metrics.snapshot(None, levels()).load.in_flight_requests;
    let first = metrics.in_flight();
    let second = metrics.in_flight();
    assert_eq!(under_way(), 2);
    drop(first);
    assert_eq!(under_way(), 1);
    drop(second);
    assert_eq!(under_way(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_providers_say_cannot_grow_the_tables() {
    let metrics = metrics();
    let faq = metrics.namespace("faq");
    for model in 0..500 {
        let model = format!("model-{model}");
        faq.request(Source::Exact, millis(1), Some(Usage { prompt_tokens: u64::MAX, ..usage(&model) }));
        metrics.upstream_call("openai", &model, None, millis(1));
        metrics.upstream_error(&format!("provider {model}"), "refused");
        metrics.namespace(&format!("namespace {model}"));
        metrics.namespace(&format!("another namespace {model}"));
    }
    let stats = metrics.snapshot(None, levels());
    assert_eq!(stats.unpriced_models.len(), 32);
    assert_eq!(stats.upstream["openai"].models.len(), 64);
    assert_eq!(stats.upstream["openai"].calls, 500);
    assert_eq!(stats.namespaces.len(), MAX_NAMES + 1);
    assert_eq!(stats.totals.tokens_saved.prompt, 500 * 10_000_000);
}

#[test]
fn nothing_is_lost_between_threads_and_minutes() {
    const EACH: u64 = 20_000;
    let clock = Clock::starting_at(START);
    let shared = Arc::new(Shared::new(clock, PriceTable::default()));
    let namespace = NamespaceMetrics::new(shared);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(|_| namespace.request(Source::Exact, millis(1), None)));
        }
    });
    assert_eq!(namespace.read().exact_hits, 4 * EACH);
}

proptest! {
    /// Whatever happens in whatever order: totals are the sum of the namespaces, requests the sum of
    /// their ends, and a window and what came before it make the whole.
    #[test]
    fn everything_adds_up(events in prop::collection::vec((0..3_u8, 0..9_u8, 0..200_u64), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime starts").block_on(async move {
            let metrics = metrics();
            let half = events.len() / 2;
            play(&metrics, &events[..half]).await;
            advance(Duration::from_mins(1)).await;
            let before = metrics.snapshot(None, levels());
            play(&metrics, &events[half..]).await;

            let life = metrics.snapshot(None, levels());
            let expected = events.iter().filter(|(_, kind, _)| *kind < 6).count() as u64;
            prop_assert_eq!(life.totals.requests, expected);
            prop_assert_eq!(life.latency.values().map(|it| it.count).sum::<u64>(), expected);
            for number in [
                (|it| it.requests) as fn(&Summary) -> u64,
                |it| it.exact_hits + it.semantic_hits + it.coalesced + it.misses,
                |it| it.bypasses.values().sum(),
                |it| it.errors.values().sum(),
                |it| it.refusals.values().sum(),
                |it| it.evicted.values().sum(),
                |it| it.tokens_saved.total,
                |it| it.tokens_spent.total,
            ] {
                prop_assert_eq!(number(&life.totals), life.namespaces.values().map(number).sum::<u64>());
            }
            let money: f64 = life.namespaces.values().map(|it| it.money_saved_usd).sum();
            prop_assert!((life.totals.money_saved_usd - money).abs() < 1e-9);

            let after = metrics.snapshot(Some(Since::At(before_minute(&before))), levels());
            prop_assert_eq!(before.totals.requests + after.totals.requests, life.totals.requests);
            Ok(())
        })?;
    }
}

/// The whole minute that `stats` was asked in. Nothing was counted in it.
fn before_minute(stats: &Stats) -> Timestamp {
    let now = START.after(Duration::from_secs(stats.window_seconds));
    Minute::of(now).start()
}

/// Plays events of namespace, kind and milliseconds to wait.
async fn play(metrics: &Metrics, events: &[(u8, u8, u64)]) {
    for (namespace, kind, wait) in events {
        let namespace = metrics.namespace(["faq", "chat", "docs"][usize::from(*namespace)]);
        match kind {
            0 => namespace.request(Source::Exact, millis(*wait), Some(usage("gpt-4o"))),
            1 => namespace.request(Source::Semantic, millis(*wait), Some(usage("gpt-4o-mini"))),
            2 => namespace.request(Source::Coalesced, millis(*wait), Some(usage("llama"))),
            3 => namespace.request(Source::Miss, millis(*wait), None),
            4 => namespace.request(Source::Bypass("tools"), millis(*wait), None),
            5 => namespace.request(Source::Error("deadline"), millis(*wait), None),
            6 => namespace.refused("numbers_differ"),
            7 => namespace.evicted("exact", *wait),
            _ => namespace.spent(usage("gpt-4o")),
        }
        advance(millis(*wait)).await;
    }
}

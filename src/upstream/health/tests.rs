use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn labels() -> Labels {
    Labels { provider: "openai".into(), model: "gpt-4o".into(), region: Some("eu".into()) }
}

fn tokens(output_tokens: u64) -> Finished {
    Finished { output_tokens: Some(output_tokens), cost_usd: None }
}

/// One target and the time, in which calls come one after the other.
struct Target {
    health: Arc<Health>,
    now: Instant,
}

impl Target {
    fn new() -> Self {
        let now = Instant::now();
        Self { health: Health::new(labels(), now), now }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// A stream of 101 tokens that begins after `first_content` and takes `total`.
    fn stream(&self, first_content: Duration, total: Duration) {
        let mut call = self.health.started(self.now);
        call.content(self.now + first_content);
        call.content(self.now + total);
        call.finished(tokens(101), self.now + total);
    }

    fn fail(&self, label: &'static str) {
        self.health.started(self.now).failed(label, self.now + millis(50));
    }

    /// A call a second; `each` makes the call with this number.
    fn every_second(&mut self, time: Duration, each: impl Fn(&Self, u64)) -> &mut Self {
        self.every(seconds(1), time, each)
    }

    fn every(&mut self, gap: Duration, time: Duration, each: impl Fn(&Self, u64)) -> &mut Self {
        for call in 0..time.as_secs() / gap.as_secs() {
            each(self, call);
            self.wait(gap);
        }
        self
    }

    fn a_usual_half_hour(&mut self) -> &mut Self {
        self.every_second(seconds(1_800), |target, _| target.stream(millis(400), millis(2_400)))
    }

    fn report(&self) -> HealthReport {
        self.health.report(self.now)
    }

    fn standing(&self) -> Vec<&'static str> {
        self.health.alerts(self.now).iter().map(|alert| alert.condition.label()).collect()
    }

    fn minute(&self) -> WindowReport {
        self.report().last_minute
    }
}

fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() / expected < 0.01)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_visible_at_dispatch_and_judged_at_its_first_content() {
    let mut target = Target::new();
    let mut call = target.health.started(target.now);
    let report = target.report();
    assert_eq!((report.in_flight, report.last_minute.attempts, report.last_minute.error_rate), (1, 1, None));

    call.content(target.wait(millis(300)).now);
    assert_eq!(target.minute().error_rate, Some(0.0));
    assert!(close(target.minute().first_content.p50_ms, 300.0));
    assert_eq!(target.minute().answers, 0);

    call.finished(tokens(101), target.wait(seconds(2)).now);
    let report = target.report();
    assert_eq!((report.in_flight, report.last_minute.answers, report.last_minute.output_tokens), (0, 1, 101));
    assert!(close(report.last_minute.total.p99_ms, 2_300.0));
}

#[tokio::test(start_paused = true)]
async fn what_is_past_leaves_its_window_and_stays_in_the_sums() {
    let mut target = Target::new();
    target.fail("capacity");
    target.stream(millis(400), millis(900));
    let error_rate =
        |window: WindowReport| (window.attempts, window.errors.values().sum(), window.error_rate);
    assert_eq!(error_rate(target.minute()), (2, 1, Some(0.5)));

    target.wait(seconds(54));
    assert_eq!(error_rate(target.minute()), (2, 1, Some(0.5)));
    target.wait(seconds(6));
    assert_eq!(error_rate(target.minute()), (0, 0, None));
    assert_eq!(target.minute().first_content.count, 0);

    assert_eq!(target.report().last_five_minutes.attempts, 2);
    target.wait(seconds(4 * 60));
    assert_eq!(target.report().last_five_minutes.attempts, 0);
    target.wait(seconds(54 * 60));
    assert_eq!(error_rate(target.report().last_hour), (2, 1, Some(0.5)));
    target.wait(seconds(60));
    assert_eq!(error_rate(target.report().last_hour), (0, 0, None));
    let life = target.report().since_start;
    assert_eq!((life.attempts, life.errors["capacity"]), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_counts_neither_for_nor_against() {
    let target = Target::new();
    drop(target.health.started(target.now));
    let report = target.report();
    assert_eq!((report.in_flight, report.last_minute.cancelled, report.last_minute.error_rate), (0, 1, None));

    let mut begun = target.health.started(target.now);
    begun.content(target.now + millis(200));
    drop(begun);
    let minute = target.minute();
    assert_eq!((minute.attempts, minute.cancelled, minute.error_rate), (2, 2, Some(0.0)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_counts_as_one_failed_call() {
    let target = Target::new();
    for _ in 0..4 {
        let mut call = target.health.started(target.now);
        call.content(target.now + millis(200));
        call.failed("broken", target.now + seconds(1));
    }
    assert_eq!(target.minute().error_rate, Some(1.0));

    // Judged in one minute, broken in a later one: the share stays one.
    let mut target = Target::new();
    let mut call = target.health.started(target.now);
    call.content(target.now);
    target.wait(seconds(120));
    call.failed("broken", target.now);
    assert_eq!(target.minute().error_rate, Some(1.0));
    assert_eq!(target.report().last_hour.error_rate, Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_is_shown_and_is_not_the_targets_fault() {
    let target = Target::new();
    for _ in 0..30 {
        target.health.started(target.now).refused("context_length", target.now);
    }
    let minute = target.minute();
    assert_eq!((minute.errors["context_length"], minute.error_rate), (30, Some(0.0)));
    assert_eq!(target.standing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_is_judged_at_its_end_and_has_no_first_content() {
    let target = Target::new();
    target.health.started(target.now).finished(tokens(500), target.now + seconds(9));
    let minute = target.minute();
    assert_eq!((minute.error_rate, minute.first_content.count, minute.inter_token.count), (Some(0.0), 0, 0));
    assert_eq!((minute.total.count, minute.output_tokens), (1, 500));
    assert_eq!(minute.output_tokens_per_second, None);
}

#[tokio::test(start_paused = true)]
async fn writing_is_measured_from_first_content_to_the_end() {
    let target = Target::new();
    target.stream(millis(500), millis(2_500));
    let minute = target.minute();
    assert!(close(minute.inter_token.p50_ms, 20.0), "100 tokens after the first in 2 s");
    assert_eq!(minute.output_tokens_per_second, Some(50.0));

    // One token has no pause, no usage says nothing, and a buffer that is emptied is no speed.
    target.health.started(target.now).finished(Finished::default(), target.now);
    for (output_tokens, writing) in [(1, seconds(3)), (0, seconds(3)), (5_000, millis(1))] {
        let mut call = target.health.started(target.now);
        call.content(target.now);
        call.finished(tokens(output_tokens), target.now + writing);
    }
    assert_eq!(target.minute().inter_token.count, 1);
    assert_eq!(target.minute().output_tokens_per_second, Some(50.0));
}

#[tokio::test(start_paused = true)]
async fn retries_hedges_goodput_and_cost() {
    let target = Target::new();
    let (health, now) = (&target.health, target.now);
    health.retried(now);
    health.hedge_won(now);
    health.hedge_lost(now);
    health.hedge_lost(now);
    for in_time in [true, true, false, true] {
        health.in_time(in_time, now);
    }
    let finished = Finished { output_tokens: None, cost_usd: Some(0.5) };
    health.started(now).finished(finished, now);
    health.booked(0.25, now);
    let minute = target.minute();
    assert_eq!((minute.retries, minute.hedges_won, minute.hedges_lost), (1, 1, 2));
    assert_eq!(minute.goodput, Some(0.75));
    assert!((minute.cost_usd - 0.75).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn nonsense_does_not_spoil_the_sums() {
    let target = Target::new();
    for cost in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        target.health.booked(cost, target.now);
    }
    for _ in 0..3 {
        let mut call = target.health.started(target.now);
        call.content(target.now + seconds(1));
        call.finished(tokens(u64::MAX), target.now + seconds(1_000_000_000));
    }
    let minute = target.minute();
    assert_eq!((minute.cost_usd, minute.output_tokens), (0.0, 3 * MOST_TOKENS));
    assert!(close(minute.total.p99_ms, 600_000.0), "ten minutes at most");
}

#[tokio::test(start_paused = true)]
async fn time_that_runs_backwards_is_counted_as_now() {
    let mut target = Target::new();
    let early = target.now;
    target.wait(seconds(600)).stream(millis(400), millis(500));
    target.health.started(early).failed("connect", early);
    assert_eq!(target.minute().attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn the_error_alarm_rises_within_the_minute_and_falls_after_it() {
    let mut target = Target::new();
    target.every_second(seconds(120), |target, _| target.stream(millis(400), millis(900)));
    assert_eq!(target.standing(), [""; 0]);

    // Every tenth call fails: at the third failure it is a twentieth of the minute's calls.
    let outage = target.now;
    target.every_second(seconds(40), |target, call| match call % 10 {
        0 => target.fail("capacity"),
        _ => target.stream(millis(400), millis(900)),
    });
    let [alert] = target.health.alerts(target.now)[..] else { panic!("one alarm") };
    assert_eq!((alert.condition, alert.limit), (Condition::ErrorRate, 0.05));
    assert!((0.05..0.11).contains(&alert.measured), "{}", alert.measured);
    assert!((20..=30).contains(&(alert.since - outage).as_secs()), "{:?}", alert.since - outage);
    let report = target.report();
    assert_eq!((report.alerts[0].condition.as_str(), report.alerts[0].limit_ratio), ("error_rate", 0.05));
    assert!((10..=20).contains(&report.alerts[0].standing_seconds));

    target.every_second(seconds(65), |target, _| target.stream(millis(400), millis(900)));
    assert_eq!(target.standing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_few_failures_ring_no_bell() {
    let mut target = Target::new();
    for _ in 0..9 {
        target.fail("timeout");
    }
    assert_eq!(target.standing(), [""; 0], "nine calls are too few");
    target.wait(seconds(120));
    target.fail("timeout");
    target.fail("timeout");
    for _ in 0..18 {
        target.stream(millis(400), millis(900));
    }
    assert_eq!(target.minute().error_rate, Some(0.1));
    assert_eq!(target.standing(), [""; 0], "two failures are too few");
}

#[tokio::test(start_paused = true)]
async fn an_alarm_stands_over_few_calls_and_is_over_with_none() {
    let mut target = Target::new();
    for _ in 0..20 {
        target.fail("capacity");
    }
    assert_eq!(target.standing(), ["error_rate"]);
    target.wait(seconds(30)).stream(millis(400), millis(500));
    target.wait(seconds(31));
    assert_eq!(target.minute().error_rate, Some(0.0));
    assert_eq!(target.standing(), ["error_rate"], "one good call is no recovery");

    let hanging = target.health.started(target.now);
    target.wait(seconds(90));
    assert_eq!(target.standing(), ["error_rate"], "somebody waits");
    drop(hanging);
    target.wait(seconds(90));
    assert_eq!(target.standing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn late_first_content_is_an_early_warning() {
    let mut target = Target::new();
    target.a_usual_half_hour();
    assert_eq!(target.standing(), [""; 0]);
    assert!(close(target.report().norms.first_content_p50_ms, 400.0));

    let slow = |target: &Target, _| target.stream(millis(520), millis(2_520));
    target.every_second(seconds(60), slow);
    assert_eq!(target.standing(), [""; 0], "a slow minute of five");
    target.every_second(seconds(120), slow);
    assert_eq!(target.standing(), ["first_content"]);
    let measured = target.health.alerts(target.now)[0].measured;
    assert!(close(Some(measured), 1.3), "{measured}");

    target.every_second(seconds(300), |target, _| target.stream(millis(400), millis(2_400)));
    assert_eq!(target.standing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_long_tail_rings_the_bell_of_the_p99() {
    let mut target = Target::new();
    target.a_usual_half_hour();
    target.every_second(seconds(300), |target, call| match call % 25 {
        0 => target.stream(millis(400), millis(9_000)),
        _ => target.stream(millis(400), millis(2_400)),
    });
    assert_eq!(target.standing(), ["p99"]);
    target.every_second(seconds(330), |target, _| target.stream(millis(400), millis(2_400)));
    assert_eq!(target.standing(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_a_past_nothing_is_slow() {
    let mut target = Target::new();
    target.every_second(seconds(600), |target, _| target.stream(seconds(30), seconds(90)));
    assert_eq!(target.standing(), [""; 0]);
    assert_eq!(target.report().norms, Norms::default());
}

#[tokio::test(start_paused = true)]
async fn an_hours_disturbance_does_not_become_normal_and_a_lasting_change_does() {
    let mut target = Target::new();
    let (usual, slow) = ((millis(400), millis(2_400)), (millis(800), millis(4_800)));
    let mut stream = |(first_content, total), minutes: u64| {
        target.every(seconds(2), seconds(minutes * 60), |target, _| target.stream(first_content, total));
        (target.report().norms.first_content_p50_ms, target.standing())
    };
    stream(usual, 240);
    let (norm, alarms) = stream(slow, 60);
    assert!(close(norm, 400.0));
    assert_eq!(alarms, ["first_content", "p99"]);
    let (norm, alarms) = stream(slow, 65);
    assert!(close(norm, 800.0));
    assert_eq!(alarms, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_speed_is_compared_with_its_own_norm() {
    let mut target = Target::new();
    target.a_usual_half_hour();
    assert_eq!(target.report().norms.output_tokens_per_second, Some(50.0));
    target.every_second(seconds(60), |target, _| target.stream(millis(400), millis(4_400)));
    let minute = target.minute();
    assert_eq!((minute.output_tokens_per_second, minute.output_speed_of_norm), (Some(25.0), Some(0.5)));
}

#[tokio::test(start_paused = true)]
async fn the_report_is_json_with_units_in_its_names() {
    let target = Target::new();
    target.stream(millis(400), millis(2_400));
    target.fail("rate_limit");
    let report = target.report();
    let json = serde_json::to_value(&report).expect("a report is JSON");
    assert_eq!(json["region"], "eu");
    assert_eq!(json["last_minute"]["errors"]["rate_limit"], 1);
    for name in ["p50_ms", "p95_ms", "p99_ms"] {
        assert!(json["last_hour"]["first_content"][name].is_f64(), "{name}");
    }
    assert_eq!(json["since_start"]["output_tokens_per_second"], 50.0);
    assert_eq!(serde_json::from_value::<HealthReport>(json).expect("it reads back"), report);
}

#[tokio::test(start_paused = true)]
async fn prometheus_gets_counters_quantiles_and_alarms() {
    let target = Target::new();
    for _ in 0..12 {
        target.fail("capacity");
    }
    target.stream(millis(400), millis(2_400));
    let nowhere = Labels { provider: "local".into(), model: "llama \"3\"".into(), region: None };
    let text = prometheus_text(vec![target.report(), Health::new(nowhere, target.now).report(target.now)]);
    let eu = r#"provider="openai",model="gpt-4o",region="eu""#;
    for line in [
        format!("refrain_target_attempts_total{{{eu}}} 13"),
        format!("refrain_target_errors_total{{{eu},class=\"capacity\"}} 12"),
        format!("refrain_target_alert{{{eu},condition=\"error_rate\"}} 1"),
        format!("refrain_target_alert{{{eu},condition=\"p99\"}} 0"),
        format!("refrain_target_in_flight{{{eu}}} 0"),
        format!("refrain_target_output_tokens_per_second{{{eu}}} 50.0"),
        r#"refrain_target_attempts_total{provider="local",model="llama \"3\""} 0"#.to_owned(),
        "# TYPE refrain_target_alert gauge".to_owned(),
        "# TYPE refrain_target_errors_total counter".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line} in\n{text}");
    }
    assert!(text.contains(&format!("refrain_target_first_content_seconds{{{eu},quantile=\"0.99\"}} 0.4")));
    assert!(!text.contains("NaN") && !text.contains("EOF"));
}

#[test]
fn threads_lose_no_count() {
    let target = Target::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (health, now) = (&target.health, target.now);
            scope.spawn(move || {
                for call in 0..500_u64 {
                    let mut started = health.started(now);
                    match (thread + call) % 4 {
                        0 => started.failed("timeout", now),
                        1 => drop(started),
                        _ => {
                            started.content(now);
                            started.finished(tokens(10), now);
                        }
                    }
                }
            });
        }
    });
    let report = target.report();
    let life = report.since_start;
    assert_eq!((report.in_flight, life.attempts), (0, 4_000));
    assert_eq!((life.answers, life.cancelled, life.errors["timeout"]), (2_000, 1_000, 1_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever calls do and however time goes: each is counted once, nothing stays in flight, and
    /// no window knows more than the life.
    #[test]
    fn every_call_is_counted_once(
        story in prop::collection::vec((0..5_u8, 0..400_u64, 0..90_000_u64), 1..60),
    ) {
        let mut target = Target::new();
        let (mut open, mut broken) = (Vec::new(), 0);
        for (act, gap, millis_later) in story {
            target.wait(seconds(gap));
            let mut call = target.health.started(target.now);
            let later = target.now + millis(millis_later);
            match act {
                0 => drop(call),
                1 => { call.failed("timeout", later); broken += 1; }
                2 if gap % 2 == 0 => { call.refused("invalid_request", later); broken += 1; }
                2 => call.finished(tokens(millis_later), later),
                3 => { call.content(later); call.failed("broken", later); broken += 1; }
                _ => { call.content(later); open.push(call); }
            }
            let report = target.report();
            prop_assert_eq!(report.in_flight, open.len() as u64);
            for window in [&report.last_minute, &report.last_five_minutes, &report.last_hour] {
                prop_assert!(window.attempts <= report.since_start.attempts);
                prop_assert!(window.error_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
            }
        }
        for call in open {
            call.finished(Finished::default(), target.now);
        }
        let report = target.report();
        let life = &report.since_start;
        prop_assert_eq!(report.in_flight, 0);
        prop_assert_eq!(life.attempts, life.answers + life.cancelled + broken);
        prop_assert_eq!(life.errors.values().sum::<u64>(), broken);
    }
}

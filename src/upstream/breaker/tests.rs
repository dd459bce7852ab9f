use proptest::prelude::*;

use super::*;

const CONTENT: Outcome = Outcome::Content { after: Duration::from_secs(1) };
const SLOW: Outcome = Outcome::Content { after: Duration::from_secs(3) };

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A breaker and the time.
struct Script {
    breaker: Breaker,
    now: Instant,
}

impl Script {
    fn new() -> Self {
        Self::with(Settings::default(), || 0.0)
    }

    fn with(settings: Settings, jitter: fn() -> f64) -> Self {
        let now = Instant::now();
        Self { breaker: Breaker::new(settings, jitter, now), now }
    }

    /// A breaker that knows what is normal: a second.
    fn with_norm() -> Self {
        let mut script = Self::new();
        script.each_second(200, CONTENT);
        script
    }

    /// A breaker that has just opened for ten failures.
    fn opened() -> Self {
        let script = Self::new();
        script.calls(10, Outcome::Failed);
        assert_eq!(script.label(), Label::Open);
        script
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn acquire(&self) -> Option<Permit> {
        self.breaker.try_acquire(self.now).ok()
    }

    /// Whether a call was let through; it came to `outcome` at once.
    fn call(&self, outcome: Outcome) -> bool {
        self.acquire().map(|permit| permit.record(outcome, self.now)).is_some()
    }

    fn calls(&self, calls: usize, outcome: Outcome) -> usize {
        (0..calls).filter(|_| self.call(outcome)).count()
    }

    fn each_second(&mut self, calls: u64, outcome: Outcome) {
        for _ in 0..calls {
            self.pass(seconds(1));
            self.call(outcome);
        }
    }

    /// Lets the cool-down pass, has a good probe, and lets the ramp pass.
    fn recover(&mut self) {
        self.now = self.state().until.expect("it is open");
        self.recover_from_half_open();
    }

    fn recover_from_half_open(&mut self) {
        assert!(self.call(CONTENT));
        self.pass(seconds(30));
        assert_eq!(self.label(), Label::Closed);
    }

    fn state(&self) -> BreakerState {
        self.breaker.state(self.now)
    }

    fn label(&self) -> Label {
        self.state().label
    }

    fn reason(&self) -> String {
        self.state().reason.map(|reason| reason.to_string()).unwrap_or_default()
    }

    /// The cool-down of a breaker that has just opened.
    fn cool_down(&self) -> Duration {
        self.state().until.expect("it is open") - self.now
    }
}

#[test]
fn a_quarter_of_failures_opens_it() {
    let script = Script::new();
    script.calls(6, CONTENT);
    script.calls(2, Outcome::Answered);
    script.calls(2, Outcome::Failed);
    assert_eq!(script.label(), Label::Closed);
    script.calls(1, Outcome::Failed);
    let until = Some(script.now + seconds(30));
    assert_eq!((script.label(), script.state().until), (Label::Open, until));
    assert_eq!(script.reason(), "error rate 27 % of 11 calls");
    assert_eq!(script.breaker.try_acquire(script.now).map(|_| ()), Err(Refused { until }));
}

#[test]
fn few_calls_prove_nothing() {
    let script = Script::new();
    assert_eq!(script.calls(9, Outcome::Failed), 9);
    assert_eq!(script.label(), Label::Closed);
}

#[test]
fn failures_are_forgotten_after_a_minute() {
    let mut script = Script::new();
    script.calls(9, Outcome::Failed);
    script.pass(seconds(60));
    script.calls(9, Outcome::Failed);
    assert_eq!(script.label(), Label::Closed);
}

#[test]
fn what_says_nothing_of_the_target_never_counts() {
    let script = Script::new();
    script.calls(100, Outcome::Neutral);
    (0..100).for_each(|_| drop(script.acquire()));
    assert_eq!(script.calls(9, Outcome::Failed), 9);
    assert_eq!(script.label(), Label::Closed);
    script.calls(1, Outcome::Failed);
    assert_eq!(script.reason(), "error rate 100 % of 10 calls");
}

#[test]
fn one_call_probes_after_the_cool_down() {
    let mut script = Script::opened();
    script.pass(seconds(29));
    assert_eq!(script.calls(1, CONTENT), 0);
    script.pass(seconds(1));
    assert_eq!(script.label(), Label::HalfOpen);
    let probe = script.acquire().expect("it is time to probe");
    assert!(probe.is_probe());
    let refused = script.breaker.try_acquire(script.now).map(|_| ());
    assert_eq!(refused, Err(Refused { until: None }));
    probe.record(CONTENT, script.now);
    assert_eq!(script.label(), Label::Ramp);
}

#[test]
fn a_growing_share_passes_on_the_ramp() {
    let mut script = Script::opened();
    script.pass(seconds(30));
    assert!(script.call(CONTENT));
    assert_eq!(script.calls(100, CONTENT), 10);
    script.pass(seconds(15));
    assert_eq!(script.calls(100, CONTENT), 55);
    let ramp_end = script.now + seconds(15);
    assert_eq!(script.state().until, Some(ramp_end));
    script.pass(seconds(14));
    assert_eq!(script.calls(100, CONTENT), 97);
    script.pass(seconds(7));
    assert_eq!(script.calls(100, CONTENT), 100);
    assert_eq!((script.label(), script.state().since), (Label::Closed, ramp_end));
    assert_eq!(script.reason(), "");
}

#[test]
fn each_failed_probe_doubles_the_cool_down() {
    let mut script = Script::opened();
    for cool_down in [30, 60, 120, 240, 300, 300] {
        assert_eq!(script.cool_down(), seconds(cool_down));
        script.pass(seconds(cool_down));
        assert!(script.call(Outcome::Failed));
        assert_eq!(script.reason(), "the probe failed");
    }
    script.recover();
}

#[test]
fn failures_on_the_ramp_open_it_for_longer() {
    let mut script = Script::opened();
    script.pass(seconds(30));
    assert!(script.call(CONTENT));
    script.pass(seconds(20));
    assert_eq!(script.calls(1_000, Outcome::Failed), 10);
    assert_eq!(script.cool_down(), seconds(60));
}

#[test]
fn after_five_good_minutes_an_outage_is_a_new_one() {
    let mut script = Script::opened();
    script.recover();
    script.pass(seconds(299));
    script.calls(10, Outcome::Failed);
    assert_eq!(script.cool_down(), seconds(60));
    script.recover();
    script.pass(seconds(300));
    script.calls(10, Outcome::Failed);
    assert_eq!(script.cool_down(), seconds(30));
}

#[test]
fn jitter_shortens_the_cool_down_by_up_to_a_fifth() {
    for (jitter, cool_down) in [(0.5, 27), (1.0, 24), (f64::NAN, 30), (9.0, 24)] {
        let fixed: fn() -> f64 = match jitter {
            0.5 => || 0.5,
            1.0 => || 1.0,
            9.0 => || 9.0,
            _ => || f64::NAN,
        };
        let script = Script::with(Settings::default(), fixed);
        script.calls(10, Outcome::Failed);
        assert_eq!(script.cool_down(), seconds(cool_down), "{jitter}");
    }
}

#[test]
fn a_probe_that_proves_nothing_leaves_the_place_to_another() {
    let mut script = Script::opened();
    script.pass(seconds(30));
    assert!(script.call(Outcome::Neutral));
    assert!(script.call(Outcome::Abandoned { after: seconds(1) }));
    drop(script.acquire().expect("the place is free"));
    assert_eq!(script.label(), Label::HalfOpen);
    script.recover_from_half_open();
}

#[test]
fn slow_calls_under_way_do_not_vanish() {
    let mut script = Script::new();
    let mut under_way: Vec<_> = (0..9).filter_map(|_| script.acquire()).collect();
    script.pass(seconds(600));
    script.calls(1, Outcome::Failed);
    assert_eq!(script.label(), Label::Closed, "one of ten failed");
    under_way.drain(..2).for_each(|permit| permit.record(Outcome::Failed, script.now));
    assert_eq!(script.label(), Label::Open);
    assert_eq!(script.reason(), "error rate 30 % of 10 calls");
}

#[test]
fn calls_under_way_keep_a_few_failures_few() {
    let script = Script::new();
    let under_way: Vec<_> = (0..100).filter_map(|_| script.acquire()).collect();
    script.calls(30, Outcome::Failed);
    assert_eq!(script.label(), Label::Closed);
    drop(under_way);
    script.calls(1, Outcome::Failed);
    assert_eq!(script.label(), Label::Open, "those that were cancelled count no longer");
}

#[test]
fn calls_from_before_an_outage_say_nothing_of_the_time_after() {
    let mut script = Script::new();
    let stragglers: Vec<_> = (0..40).filter_map(|_| script.acquire()).collect();
    script.calls(14, Outcome::Failed);
    assert_eq!(script.label(), Label::Open);
    let mut stragglers = stragglers.into_iter();
    let mut end = |outcome, now| stragglers.by_ref().take(10).for_each(|permit| permit.record(outcome, now));
    end(CONTENT, script.now);
    assert_eq!(script.label(), Label::Open);
    script.pass(seconds(30));
    let probe = script.acquire().expect("it is time to probe");
    end(Outcome::Failed, script.now);
    assert_eq!(script.label(), Label::HalfOpen);
    probe.record(CONTENT, script.now);
    end(Outcome::Failed, script.now);
    drop(stragglers);
    assert_eq!(script.label(), Label::Ramp);
}

#[test]
fn a_burst_of_slow_calls_does_not_open_it() {
    let mut script = Script::with_norm();
    script.each_second(200, SLOW);
    assert!(script.state().slow_since.is_some());
    script.each_second(100, CONTENT);
    assert_eq!((script.label(), script.state().slow_since), (Label::Closed, None));
    script.each_second(200, SLOW);
    assert_eq!(script.label(), Label::Closed, "the bursts do not add up");
}

#[test]
fn five_slow_minutes_open_it_until_a_probe_is_quick() {
    let mut script = Script::with_norm();
    script.each_second(300, SLOW);
    assert_eq!(script.label(), Label::Closed);
    script.each_second(10, SLOW);
    assert_eq!((script.label(), script.state().slow_since), (Label::Open, None));
    assert_eq!(script.reason(), "first content p95 3.0 s over 2 x 1.0 s for 5 min");

    script.now = script.state().until.expect("it is open");
    assert!(script.call(SLOW));
    assert_eq!(script.reason(), "first content of the probe after 3.0 s, over 2 x 1.0 s");
    assert_eq!(script.cool_down(), seconds(60));

    script.recover();
    script.each_second(400, CONTENT);
    assert_eq!((script.label(), script.state().slow_since), (Label::Closed, None));
}

#[test]
fn after_failures_a_slow_probe_will_do() {
    let mut script = Script::with_norm();
    script.calls(100, Outcome::Failed);
    script.pass(seconds(30));
    assert!(script.call(SLOW));
    assert_eq!(script.label(), Label::Ramp);
}

#[test]
fn a_slow_time_is_not_learned() {
    let mut script = Script::with_norm();
    let norm = script.breaker.first_content_p95(script.now);
    script.each_second(250, SLOW);
    assert_eq!(script.breaker.first_content_p95(script.now), norm);
}

#[test]
fn a_slow_tenth_is_seen_in_the_p95() {
    let mut script = Script::with_norm();
    for _ in 0..34 {
        script.each_second(9, CONTENT);
        script.each_second(1, SLOW);
    }
    assert_eq!(script.label(), Label::Open);
}

#[test]
fn the_slowest_calls_are_seen_though_nobody_waits_for_them() {
    let mut script = Script::with_norm();
    script.each_second(310, Outcome::Abandoned { after: seconds(5) });
    assert_eq!(script.label(), Label::Open);
}

#[test]
fn calls_that_were_given_up_early_are_not_slow() {
    let mut script = Script::with_norm();
    script.each_second(400, Outcome::Abandoned { after: seconds(1) });
    assert_eq!(script.label(), Label::Closed);
}

#[test]
fn calls_that_were_given_up_early_do_not_hide_slow_ones() {
    let mut script = Script::with_norm();
    for _ in 0..310 {
        script.each_second(1, SLOW);
        script.calls(30, Outcome::Abandoned { after: Duration::from_millis(1) });
    }
    assert_eq!(script.label(), Label::Open);
}

#[test]
fn a_few_slow_calls_prove_nothing() {
    let mut script = Script::with_norm();
    script.pass(seconds(60));
    for _ in 0..9 {
        script.pass(seconds(50));
        script.call(SLOW);
    }
    assert_eq!(script.label(), Label::Closed);
    script.pass(seconds(50));
    script.call(SLOW);
    assert_eq!(script.label(), Label::Open);
}

#[test]
fn slow_calls_with_pauses_between_do_not_add_up() {
    let mut script = Script::with_norm();
    for _ in 0..100 {
        script.pass(seconds(61));
        script.call(SLOW);
    }
    assert_eq!(script.label(), Label::Closed);
}

#[test]
fn with_no_norm_nothing_is_slow() {
    let mut script = Script::new();
    script.each_second(400, Outcome::Content { after: seconds(9) });
    assert_eq!(script.label(), Label::Closed);
    assert!(script.breaker.first_content_p95(script.now) > Some(seconds(8)), "that is its norm");
}

#[test]
fn nobody_waits_for_milliseconds() {
    let mut script = Script::new();
    script.each_second(200, Outcome::Content { after: Duration::from_millis(2) });
    script.each_second(400, Outcome::Content { after: Duration::from_millis(90) });
    assert_eq!(script.label(), Label::Closed);
}

#[test]
fn a_p95_takes_twenty_calls() {
    let script = Script::new();
    script.calls(19, CONTENT);
    script.calls(9, Outcome::Answered);
    assert_eq!(script.breaker.first_content_p95(script.now), None);
    script.calls(1, CONTENT);
    let p95 = script.breaker.first_content_p95(script.now).expect("twenty are enough");
    assert!(p95.abs_diff(seconds(1)) < Duration::from_millis(10), "{p95:?}");
}

#[test]
fn the_last_target_standing_is_never_shut() {
    let mut script = Script::opened();
    for _ in 0..29 {
        let permit = script.breaker.try_acquire_anyway(script.now).expect("it has nowhere else to go");
        permit.record(CONTENT, script.now);
        script.pass(seconds(1));
    }
    assert_eq!(script.label(), Label::Open, "such calls do not count");
    script.pass(seconds(1));
    let probe = script.breaker.try_acquire_anyway(script.now).expect("it has nowhere else to go");
    assert!(probe.is_probe());
    let another = script.breaker.try_acquire_anyway(script.now).expect("it has nowhere else to go");
    assert!(!another.is_probe());
    drop(another);
    probe.record(CONTENT, script.now);
    for _ in 0..10 {
        let permit = script.breaker.try_acquire_anyway(script.now).expect("it has nowhere else to go");
        permit.record(Outcome::Failed, script.now);
    }
    assert_eq!(script.label(), Label::Open, "on the ramp they do");
}

#[test]
fn forced_open_passes_only_what_has_nowhere_else_to_go() {
    let mut script = Script::new();
    script.breaker.set_control(Control::ForcedOpen, script.now);
    script.pass(seconds(3600));
    assert_eq!((script.label(), script.reason()), (Label::ForcedOpen, "the operator wants it so".to_owned()));
    assert!(!script.call(CONTENT) && !script.breaker.is_isolated());
    assert!(script.breaker.try_acquire_anyway(script.now).is_ok());
    script.breaker.set_control(Control::Automatic, script.now);
    assert_eq!(script.label(), Label::HalfOpen);
    script.recover_from_half_open();
}

#[test]
fn isolated_passes_nothing() {
    let mut script = Script::new();
    script.breaker.set_control(Control::Isolated, script.now);
    script.pass(seconds(3600));
    assert_eq!(script.label(), Label::Isolated);
    assert!(script.breaker.is_isolated() && !script.call(CONTENT));
    assert!(script.breaker.try_acquire_anyway(script.now).is_err());
    script.breaker.set_control(Control::Automatic, script.now);
    script.recover_from_half_open();
}

#[test]
fn forced_closed_passes_everything() {
    let script = Script::opened();
    script.breaker.set_control(Control::ForcedClosed, script.now);
    assert_eq!(script.calls(100, Outcome::Failed), 100);
    assert_eq!(script.label(), Label::ForcedClosed);
    script.breaker.set_control(Control::Automatic, script.now);
    assert_eq!(script.label(), Label::Closed);
    script.calls(1, Outcome::Failed);
    assert_eq!(script.label(), Label::Open, "it saw what came meanwhile");
    assert_eq!(script.cool_down(), seconds(30), "the operator's word ended the outage before");
}

#[test]
fn forcing_it_closed_accepts_a_new_norm() {
    let mut script = Script::with_norm();
    script.each_second(310, SLOW);
    script.breaker.set_control(Control::ForcedClosed, script.now);
    script.each_second(100, SLOW);
    script.breaker.set_control(Control::Automatic, script.now);
    script.each_second(400, SLOW);
    assert_eq!(script.label(), Label::Closed);
}

#[test]
fn a_probe_under_way_when_the_operator_takes_over_decides_nothing() {
    let mut script = Script::opened();
    script.pass(seconds(30));
    let probe = script.acquire().expect("it is time to probe");
    script.breaker.set_control(Control::Isolated, script.now);
    script.breaker.set_control(Control::Automatic, script.now);
    let next = script.acquire().expect("the place is free");
    drop(probe);
    assert!(!script.call(CONTENT), "the next one is under way");
    next.record(CONTENT, script.now);
    assert_eq!(script.label(), Label::Ramp);
}

#[test]
fn changes_are_told_once_and_in_order() {
    let mut script = Script::opened();
    script.pass(seconds(31));
    script.recover_from_half_open();
    let start = script.now - seconds(61);
    let rate = Some(Reason::ErrorRate { failed: 10, calls: 10 });
    let change = |at, from, to, reason| Transition { at: start + seconds(at), from, to, reason };
    assert_eq!(
        script.breaker.take_transitions(),
        [
            change(0, Label::Closed, Label::Open, rate),
            change(30, Label::Open, Label::HalfOpen, rate),
            change(31, Label::HalfOpen, Label::Ramp, rate),
            change(61, Label::Ramp, Label::Closed, None),
        ]
    );
    assert_eq!(script.breaker.take_transitions(), []);
}

#[test]
fn changes_that_nobody_asks_for_do_not_pile_up() {
    let script = Script::new();
    for _ in 0..100 {
        script.breaker.set_control(Control::Isolated, script.now);
        script.breaker.set_control(Control::ForcedClosed, script.now);
    }
    let changes = script.breaker.take_transitions();
    assert_eq!(changes.len(), 16);
    assert_eq!(changes.last().map(|change| change.to), Some(Label::ForcedClosed));
}

#[test]
fn extreme_settings_do_not_panic() {
    let longest = Settings {
        window: Duration::MAX,
        slow_for: Duration::MAX,
        cool_down: Duration::MAX,
        max_cool_down: Duration::MAX,
        ramp: Duration::MAX,
        ..Settings::default()
    };
    let zero = Duration::ZERO;
    let shortest = Settings {
        error_rate: 0.0,
        window: zero,
        min_calls: 0,
        slow_factor: 0.0,
        slow_for: zero,
        cool_down: zero,
        max_cool_down: zero,
        ramp: zero,
    };
    for settings in [longest, shortest] {
        let mut script = Script::with(settings, || 0.0);
        for outcome in [CONTENT, Outcome::Failed, SLOW, Outcome::Failed] {
            script.calls(200, outcome);
            script.pass(seconds(400 * 24 * 3600));
        }
    }
}

#[test]
fn permits_travel_with_their_calls() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Permit>();
    check::<Breaker>();
}

#[derive(Clone, Debug)]
enum Step {
    Acquire,
    AcquireAnyway,
    Record(usize, Outcome),
    Drop(usize),
    Pass(Duration),
    Control(Control),
}

fn steps(with_controls: bool) -> impl Strategy<Value = Vec<Step>> {
    let after = (0_u64..20_000).prop_map(Duration::from_millis);
    let outcome = prop_oneof![
        3 => after.clone().prop_map(|after| Outcome::Content { after }),
        3 => Just(Outcome::Failed),
        1 => Just(Outcome::Answered),
        1 => after.prop_map(|after| Outcome::Abandoned { after }),
        1 => Just(Outcome::Neutral),
    ];
    let control = prop::sample::select(vec![
        Control::Automatic,
        Control::ForcedOpen,
        Control::ForcedClosed,
        Control::Isolated,
    ]);
    let step = prop_oneof![
        8 => Just(Step::Acquire),
        2 => Just(Step::AcquireAnyway),
        6 => (any::<usize>(), outcome).prop_map(|(which, outcome)| Step::Record(which, outcome)),
        2 => any::<usize>().prop_map(Step::Drop),
        4 => (0_u64..60_000).prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
        u32::from(with_controls) => control.prop_map(Step::Control),
    ];
    prop::collection::vec(step, 1..300)
}

/// Small figures, so that a random walk gets everywhere.
fn nervous() -> Settings {
    Settings { min_calls: 3, slow_for: seconds(60), ..Settings::default() }
}

/// Takes the step; `false` when a call was refused.
fn walk(script: &mut Script, permits: &mut Vec<Permit>, step: &Step) -> bool {
    let granted = match *step {
        Step::Acquire => script.breaker.try_acquire(script.now),
        Step::AcquireAnyway => script.breaker.try_acquire_anyway(script.now),
        Step::Record(which, outcome) if !permits.is_empty() => {
            permits.swap_remove(which % permits.len()).record(outcome, script.now);
            return true;
        }
        Step::Drop(which) if !permits.is_empty() => {
            drop(permits.swap_remove(which % permits.len()));
            return true;
        }
        Step::Record(..) | Step::Drop(_) => return true,
        Step::Pass(time) => {
            script.pass(time);
            return true;
        }
        Step::Control(control) => {
            script.breaker.set_control(control, script.now);
            return true;
        }
    };
    granted.map(|permit| permits.push(permit)).is_ok()
}

proptest! {
    /// Half open never admits a second probe, and what time decides comes when it was said to.
    #[test]
    fn at_most_one_probes(steps in steps(false)) {
        let mut script = Script::with(nervous(), || 0.3);
        let mut permits = Vec::new();
        for step in steps {
            let before = script.state();
            let anyway = matches!(step, Step::AcquireAnyway);
            let acquire = matches!(step, Step::Acquire);
            let passed = walk(&mut script, &mut permits, &step);
            prop_assert!(passed || !anyway, "the last one standing is never shut");
            match before.label {
                Label::Closed => prop_assert!(passed),
                Label::Open => prop_assert!(!passed || !acquire),
                _ => {}
            }
            let probes = permits.iter().filter(|permit| permit.is_probe()).count();
            prop_assert!(probes <= usize::from(script.label() == Label::HalfOpen));
            if let (Label::Open | Label::Ramp, Some(until)) = (script.label(), script.state().until) {
                let longest = if script.label() == Label::Open { seconds(300) } else { seconds(30) };
                prop_assert!(until > script.now && until - script.now <= longest);
            }
        }
    }

    /// Whatever happened: with all calls gone, one good probe and the ramp close it, no place and
    /// no count is left over, and it opens as a new one does.
    #[test]
    fn nothing_leaks(steps in steps(true), drop_first: bool) {
        let mut script = Script::with(nervous(), || 0.3);
        let mut permits = Vec::new();
        for step in steps {
            walk(&mut script, &mut permits, &step);
        }
        script.breaker.set_control(Control::Automatic, script.now);
        if drop_first {
            permits.clear();
        } else {
            permits.drain(..).for_each(|permit| permit.record(Outcome::Neutral, script.now));
        }

        script.pass(seconds(300));
        if script.label() == Label::HalfOpen {
            prop_assert!(script.call(Outcome::Content { after: Duration::ZERO }), "the place is free");
        }
        script.pass(seconds(60));
        prop_assert_eq!(script.label(), Label::Closed);

        // With anything left over, three failures of three would not be all.
        prop_assert_eq!(script.calls(2, Outcome::Failed), 2);
        prop_assert_eq!(script.label(), Label::Closed);
        script.calls(1, Outcome::Failed);
        let all = Reason::ErrorRate { failed: 3, calls: 3 };
        prop_assert_eq!(script.state().reason, Some(all));
    }
}

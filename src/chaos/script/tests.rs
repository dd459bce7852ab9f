use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::chaos::mode::tests::modes;

const FAILS: &str = "status:529";

fn rules(text: &str) -> Rules {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A scene with a clock in hand.
struct Playing {
    scene: Scene,
    start: Instant,
}

impl Playing {
    fn new(text: &str, seed: u64) -> Self {
        let start = Instant::now();
        Self { scene: Scene::new(rules(text), seed, start), start }
    }

    fn meets(&mut self, key: &str, model: &str) -> String {
        self.meets_at(0, key, model)
    }

    fn meets_at(&mut self, seconds: u64, key: &str, model: &str) -> String {
        let now = self.start + Duration::from_secs(seconds);
        self.scene.draw(now, key, Some(model), false).expect("the model is given").mode.to_string()
    }

    fn first(mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.meets("", "")).collect()
    }
}

#[test]
fn a_script_says_whom_what_and_in_which_order() {
    let text = "
        # a bad day
        key:test-a:status:401            # the key is gone; for good
        model:big-1:2*status:529 | latency:1s | ok
        key:\"a:b\":model:\"m;#\":reset;; percent:5:close
    ";
    let read = rules(text);
    assert_eq!(
        read.to_string(),
        "key:test-a:status:401; model:big-1:2*status:529 | latency:1s | ok; key:\"a:b\":model:\"m;#\":reset; \
         percent:5:close"
    );
    assert_eq!(rules(""), Rules::default());
}

#[test]
fn what_is_no_rule_is_refused_in_words() {
    for (text, reason) in [
        ("ok | stal", "there is no mode `stal`"),
        ("key:test-a", "a selector is followed by a value and a mode"),
        ("key", "a selector is followed by a value and a mode"),
        ("0*ok", "there is no mode `0*ok`"),
        ("key:a:key:b:ok", "there is no mode `key`"),
    ] {
        let error = text.parse::<Rules>().expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn the_first_rule_that_fits_decides_and_each_counts_for_itself() {
    let mut scene = Playing::new("key:test-a:status:401 | ok; model:big-1:status:529; reset", 0);
    assert_eq!(scene.meets("test-b", "big-1"), FAILS);
    assert_eq!(scene.meets("test-b", "small-1"), "reset");
    assert_eq!(scene.meets("test-a2", "big-1"), "status:401");
    assert_eq!(scene.meets("test-a1", "small-1"), "ok");
    assert_eq!(Playing::new("model:big-1:reset", 0).meets("", "small-1"), "ok", "who fits no rule");
}

#[test]
fn modes_come_in_their_order_and_the_last_one_stays() {
    let expected = [FAILS, FAILS, "reset", "ok", "ok"];
    assert_eq!(Playing::new("2*status:529 | reset | ok", 0).first(5), expected);
}

#[test]
fn without_the_model_only_a_rule_that_needs_none_decides() {
    let mut scene = Playing::new("key:test-a:ok; model:big-1:reset | close; status:529", 0);
    let mut early = |key| scene.scene.draw(scene.start, key, None, false).map(|draw| draw.mode.to_string());
    assert_eq!(early("test-a").as_deref(), Some("ok"));
    assert_eq!(early("test-b"), None);
    assert_eq!(scene.meets("test-b", "big-1"), "reset", "asking counted nothing");
}

#[test]
fn bursts_come_and_go() {
    let mut scene = Playing::new("square:on=10s:off=20s:mode=status:529", 0);
    let met: Vec<_> = [0, 9, 10, 29, 30, 39, 40].map(|seconds| scene.meets_at(seconds, "", "")).into();
    assert_eq!(met, [FAILS, FAILS, "ok", "ok", FAILS, FAILS, "ok"]);
    assert_eq!(Playing::new("square:on=0s:off=0s:mode=reset", 0).first(1), ["ok"]);
}

#[test]
fn a_brown_out_strikes_as_many_as_it_says_and_ends() {
    let met = Playing::new("percent:30:status:529", 7).first(2000);
    let struck = met.iter().filter(|mode| *mode == FAILS).count();
    assert!((540..660).contains(&struck), "{struck}");
    let mut scene = Playing::new("percent:100:for=60s:reset", 0);
    assert_eq!([59, 60].map(|seconds| scene.meets_at(seconds, "", "")), ["reset", "ok"]);
}

#[test]
fn the_seed_alone_decides_what_is_random() {
    let draw = |seed| Playing::new("percent:30:status:529", seed).first(200);
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    // Other rules' attempts in between change nothing.
    let mut scene = Playing::new("key:test-a:reset; percent:30:status:529", 7);
    let alone = Playing::new("key:test-a:reset; percent:30:status:529", 7).first(50);
    let mixed: Vec<_> = (0..50)
        .map(|_| {
            scene.meets("test-a", "");
            scene.meets("", "")
        })
        .collect();
    assert_eq!(mixed, alone);
}

#[test]
fn a_stale_connection_is_one_that_answered_before() {
    let mut scene = Playing::new("stale", 0).scene;
    let mut meets = |reused| scene.draw(Instant::now(), "", Some(""), reused).unwrap().mode;
    assert_eq!([meets(false), meets(true)], [Mode::Ok, Mode::Close]);
}

#[test]
fn delays_have_the_median_that_was_asked_for() {
    let start = Instant::now();
    let mut scene = Scene::new(rules("latency:1s:sigma=0.5"), 1, start);
    let mut factors: Vec<f64> =
        (0..1001).map(|_| scene.draw(start, "", None, false).unwrap().log_normal(0.5)).collect();
    factors.sort_by(f64::total_cmp);
    assert!((0.93..1.07).contains(&factors[500]), "median {}", factors[500]);
    // One standard deviation up: e^0.5.
    assert!((1.5..1.8).contains(&factors[841]), "84th percentile {}", factors[841]);
}

#[test]
fn only_a_first_rule_for_everybody_strikes_at_accept() {
    let start = Instant::now();
    let mut strikes = Scene::new(rules("close-at-accept | ok"), 0, start);
    assert_eq!(strikes.strike_at_accept(start), Some(Mode::CloseAtAccept));
    assert_eq!(strikes.strike_at_accept(start), None);
    for text in ["key:test-a:close-at-accept", "ok; close-at-accept", "reset", ""] {
        assert_eq!(Scene::new(rules(text), 0, start).strike_at_accept(start), None, "{text}");
    }
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let name = || proptest::option::of("[ -~]{0,8}");
    let modes = proptest::collection::vec((1..9_u64, modes()), 1..3);
    (name(), name(), modes).prop_map(|(key, model, modes)| Rule { key, model, modes })
}

proptest! {
    #[test]
    fn rules_read_back_from_their_own_text(rules in proptest::collection::vec(any_rule(), 0..3)) {
        let rules = Rules(rules);
        prop_assert_eq!(rules.to_string().parse::<Rules>(), Ok(rules));
    }

    #[test]
    fn the_same_calls_meet_the_same_faults(
        rules in proptest::collection::vec(any_rule(), 0..3),
        seed: u64,
        calls in proptest::collection::vec(("[a-c]?", "[a-c]?", 0..100_u64, any::<bool>()), 0..20),
    ) {
        let start = Instant::now();
        let play = || -> Vec<Mode> {
            let mut scene = Scene::new(Rules(rules.clone()), seed, start);
            calls.iter().map(|(key, model, seconds, reused)| {
                let now = start + Duration::from_secs(*seconds);
                scene.draw(now, key, Some(model), *reused).unwrap().mode
            }).collect()
        };
        prop_assert_eq!(play(), play());
    }
}

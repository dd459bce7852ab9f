use std::fs;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const NOW: Timestamp = Timestamp(1_796_040_000_000);

fn after(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

fn target(text: &str) -> Target {
    text.parse().expect(text)
}

fn flip(text: &str, on: Option<bool>) -> Flip {
    Flip {
        target: target(text),
        on,
        by: "ops@night".to_owned(),
        reason: "answers are empty".to_owned(),
        until: None,
    }
}

fn off(text: &str) -> Flip {
    flip(text, Some(false))
}

/// A folder with the file of switches in it.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("state").join("switches.jsonl")
    }

    fn start(&self) -> Switches {
        Switches::open(&self.path()).expect("the file can be read")
    }

    fn lines(&self) -> usize {
        fs::read_to_string(self.path()).expect("the file is there").lines().count()
    }

    /// Writes what a restart will find.
    fn write(&self, content: &[u8]) {
        fs::create_dir_all(self.path().parent().expect("it has a folder")).expect("the folder is made");
        fs::write(self.path(), content).expect("the file is written");
    }

    /// Puts a folder in the file's place, so that nothing can be written.
    fn fail(&self) {
        let _ = fs::remove_file(self.path());
        fs::create_dir_all(self.path().join("in the way")).expect("the folder is made");
    }

    fn heal(&self) {
        fs::remove_dir_all(self.path()).expect("the folder is removed");
    }
}

impl Switches {
    fn kept(&self, flip: Flip) -> bool {
        self.flip(flip, NOW).expect("the flip is valid") == Kept::OnDisk
    }

    fn off_now(&self) -> Vec<String> {
        self.list(NOW).iter().filter(|switch| !switch.on).map(|switch| switch.target.to_string()).collect()
    }
}

#[test]
fn everything_is_as_configured_until_someone_switches() {
    let disk = Disk::new();
    let switches = disk.start();
    assert!(switches.is_on(Subject::Provider("openai"), NOW));
    assert!(switches.is_on(Subject::Feature(Feature::Semantic), NOW));
    assert!(!switches.is_on(Subject::Feature(Feature::CacheOnly), NOW));
    assert!(!disk.path().exists(), "asking writes nothing");

    assert!(switches.kept(off("provider:openai")));
    assert!(switches.kept(flip("feature:cache_only", Some(true))));
    assert!(!switches.is_on(Subject::Provider("openai"), NOW));
    assert!(!switches.is_on(&target("provider:openai"), NOW));
    assert!(switches.is_on(Subject::Feature(Feature::CacheOnly), NOW));
    for untouched in ["provider:azure", "model:openai", "target:openai/gpt-4o", "namespace:openai"] {
        assert!(switches.is_on(&target(untouched), NOW), "{untouched}");
    }

    assert!(switches.kept(flip("provider:openai", None)));
    assert!(switches.is_on(Subject::Provider("openai"), NOW));
    assert!(switches.kept(flip("feature:cache_only", None)));
    assert!(!switches.is_on(Subject::Feature(Feature::CacheOnly), NOW));
    assert!(!switches.any.load(Ordering::Relaxed), "asking is cheap again");
}

#[test]
fn a_later_switch_replaces_an_earlier_one() {
    let disk = Disk::new();
    let switches = disk.start();
    assert!(switches.kept(off("model:gpt-4o")));
    assert!(switches.kept(flip("model:gpt-4o", Some(true))));
    assert!(switches.is_on(Subject::Model("gpt-4o"), NOW));
    assert_eq!(switches.list(NOW).len(), 1);
    assert!(disk.start().is_on(Subject::Model("gpt-4o"), NOW));
}

#[test]
fn a_switch_with_an_end_falls_back_by_itself() {
    let disk = Disk::new();
    let switches = disk.start();
    for text in ["namespace:hr", "feature:cache_only"] {
        let on = Some(text != "namespace:hr");
        assert!(switches.kept(Flip { until: Some(after(60)), ..flip(text, on) }));
    }
    let look = |switches: &Switches, now| {
        let cache_only = switches.is_on(Subject::Feature(Feature::CacheOnly), now);
        (switches.is_on(Subject::Namespace("hr"), now), cache_only, switches.list(now).len())
    };
    assert_eq!(look(&switches, after(59)), (false, true, 2));
    assert_eq!(look(&switches, after(60)), (true, false, 0));
    assert_eq!(look(&disk.start(), after(59)), (false, true, 2), "the end survives a restart");
    assert_eq!(look(&disk.start(), after(61)), (true, false, 0));

    let _ = switches.flip(flip("model:x", None), after(61)).expect("the flip is valid");
    assert!(!switches.any.load(Ordering::Relaxed), "what has ended is forgotten with the next change");
}

#[test]
fn who_when_and_why_are_in_the_list_and_in_the_audit_trail() {
    let disk = Disk::new();
    let switches = disk.start();
    let by = |by: &str, flip| Flip { by: by.to_owned(), ..flip };
    for (seconds, flip) in [
        (0, by("night", Flip { until: Some(after(3_600)), ..off("target:openai/gpt-4o") })),
        (5, by("night", off("provider:azure"))),
        (9, by("day", flip("provider:azure", None))),
    ] {
        let _ = switches.flip(flip, after(seconds)).expect("the flip is valid");
    }
    let [switch] = &switches.list(after(10))[..] else { panic!("one switch") };
    assert_eq!((switch.by.as_str(), switch.since, switch.until), ("night", NOW, Some(after(3_600))));
    assert_eq!(switch.reason, "answers are empty");

    for switches in [switches, disk.start()] {
        let audit: Vec<_> = switches
            .audit()
            .into_iter()
            .map(|change| (change.number, change.at, change.target.to_string(), change.on, change.by))
            .collect();
        let target = |text: &str| text.to_owned();
        assert_eq!(
            audit,
            [
                (1, NOW, target("target:openai/gpt-4o"), Some(false), target("night")),
                (2, after(5), target("provider:azure"), Some(false), target("night")),
                (3, after(9), target("provider:azure"), None, target("day")),
            ]
        );
    }
}

#[test]
fn the_file_is_one_json_object_a_line() {
    let disk = Disk::new();
    let switches = disk.start();
    assert!(switches.kept(Flip { until: Some(after(60)), ..off("namespace:hr") }));
    assert!(switches.kept(flip("namespace:hr", None)));
    let text = fs::read_to_string(disk.path()).expect("the file is there");
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            r#"{"number":1,"at":1796040000000,"target":"namespace:hr","on":false,"by":"ops@night","reason":"answers are empty","until":1796040060000}"#,
            r#"{"number":2,"at":1796040000000,"target":"namespace:hr","on":null,"by":"ops@night","reason":"answers are empty"}"#,
        ]
    );
}

#[test]
fn only_some_words_are_fit_for_the_record() {
    let disk = Disk::new();
    let switches = disk.start();
    let by = |by: String| Flip { by, ..off("provider:openai") };
    let reason = |reason: String| Flip { reason, ..off("provider:openai") };
    for (flip, error) in [
        (by(String::new()), InvalidFlip::By),
        (by("  ".to_owned()), InvalidFlip::By),
        (by("a\nb".to_owned()), InvalidFlip::By),
        (by("夜".repeat(101)), InvalidFlip::By),
        (reason(String::new()), InvalidFlip::Reason),
        (reason("\u{1b}[2J".to_owned()), InvalidFlip::Reason),
        (reason("空".repeat(501)), InvalidFlip::Reason),
        (Flip { until: Some(NOW), ..off("provider:openai") }, InvalidFlip::Until),
        (Flip { until: Some(after(60)), ..flip("provider:openai", None) }, InvalidFlip::Until),
    ] {
        assert_eq!(switches.flip(flip, NOW), Err(error));
    }
    assert!(switches.audit().is_empty() && !disk.path().exists());
    assert!(switches.kept(Flip { reason: "空".repeat(500), ..by("夜".repeat(100)) }));
}

#[test]
fn there_is_an_end_to_the_number_of_switches() {
    let mut state = State::default();
    for number in 1..=MAX_SWITCHES {
        let Flip { target, on, by, reason, until } = off(&format!("model:m{number}"));
        state.apply(Change { number: number as u64, at: NOW, target, on, by, reason, until });
    }
    let disk = Disk::new();
    let switches = disk.start();
    *switches.state.write().expect("nobody panicked") = state;
    assert_eq!(switches.flip(off("model:one-more"), NOW), Err(InvalidFlip::TooMany));
    assert!(switches.kept(flip("model:m7", Some(true))), "one that is there can be flipped");
    assert!(switches.kept(flip("model:m7", None)));
    assert!(switches.kept(off("model:one-more")));
}

#[test]
fn a_torn_last_line_is_passed_over() {
    let disk = Disk::new();
    let first = disk.start();
    assert!(first.kept(off("provider:openai")));
    assert!(first.kept(off("provider:azure")));
    let whole = fs::read(disk.path()).expect("the file is there");
    let one = whole.iter().position(|byte| *byte == b'\n').expect("two lines") + 1;
    for cut in 0..whole.len() {
        disk.write(&whole[..cut]);
        let switches = disk.start();
        assert_eq!(switches.list(NOW).len(), usize::from(cut >= one), "cut after {cut} bytes");
    }
    // The next change leaves a file without the torn line.
    disk.write(&whole[..whole.len() - 4]);
    assert!(disk.start().kept(off("provider:local")));
    assert_eq!(disk.start().off_now(), ["provider:local", "provider:openai"]);
    assert_eq!(disk.lines(), 2);
}

#[test]
fn a_line_that_cannot_be_read_costs_that_change_alone() {
    let disk = Disk::new();
    let first = disk.start();
    for text in ["provider:openai", "provider:azure", "provider:local"] {
        assert!(first.kept(off(text)));
    }
    let text = fs::read_to_string(disk.path()).expect("the file is there");
    for broken in ["{\"number\":2", "\u{fffd}\0\0", "{}", "null", "[1, 2]", &"9".repeat(100_000)] {
        let mut lines: Vec<_> = text.lines().collect();
        lines[1] = broken;
        disk.write((lines.join("\n") + "\n").as_bytes());
        let switches = disk.start();
        assert_eq!(switches.off_now(), ["provider:local", "provider:openai"], "{broken:.20}");
        assert!(switches.kept(off("provider:azure")));
        assert_eq!(switches.audit().last().map(|change| change.number), Some(4));
    }
    disk.write(b"\xff\xfe\n\n\n");
    assert!(disk.start().list(NOW).is_empty());
}

#[test]
fn lines_in_another_order_mean_the_same() {
    let disk = Disk::new();
    let first = disk.start();
    assert!(first.kept(off("provider:openai")));
    assert!(first.kept(flip("provider:openai", None)));
    let text = fs::read_to_string(disk.path()).expect("the file is there");
    let mut lines: Vec<_> = text.lines().rev().collect();
    lines.push(lines[0]);
    disk.write((lines.join("\n") + "\n").as_bytes());
    let switches = disk.start();
    assert!(switches.is_on(Subject::Provider("openai"), NOW));
    assert_eq!(switches.audit(), first.audit());
}

#[test]
fn a_disk_that_cannot_be_written_stops_no_switch() {
    let disk = Disk::new();
    let switches = disk.start();
    assert!(switches.kept(off("provider:openai")));

    disk.fail();
    let kept = switches.flip(off("provider:azure"), NOW).expect("the flip is valid");
    let Kept::InMemory { error } = kept else { panic!("{kept:?}") };
    assert!(error.contains("directory"), "{error}");
    assert!(!switches.kept(flip("feature:cache_only", Some(true))));
    assert!(!switches.is_on(Subject::Provider("azure"), NOW));
    assert!(switches.is_on(Subject::Feature(Feature::CacheOnly), NOW));

    // The first change after it brings along what could not be written.
    disk.heal();
    assert!(switches.kept(off("provider:local")));
    let restarted = disk.start();
    assert_eq!(restarted.list(NOW), switches.list(NOW));
    assert_eq!(restarted.audit(), switches.audit());
    assert_eq!(restarted.audit().len(), 4);
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_stops_the_start() {
    let disk = Disk::new();
    disk.fail();
    let error = Switches::open(&disk.path()).expect_err("a folder is no file").to_string();
    assert!(error.contains("switches.jsonl") && error.contains("move it away"), "{error}");
    disk.heal();
    assert!(disk.start().kept(off("provider:openai")));
}

#[test]
fn a_file_that_vanishes_is_written_anew() {
    let disk = Disk::new();
    let switches = disk.start();
    assert!(switches.kept(off("provider:openai")));
    fs::remove_file(disk.path()).expect("the file is there");
    assert!(switches.kept(off("provider:azure")));
    assert_eq!(disk.start().off_now(), ["provider:azure", "provider:openai"]);
    fs::remove_dir_all(disk.path().parent().expect("it has a folder")).expect("the folder is there");
    assert!(switches.kept(off("provider:local")));
    assert_eq!(disk.start().off_now().len(), 3);
}

#[test]
fn a_large_file_is_made_smaller_and_keeps_what_is_in_force() {
    let disk = Disk::new();
    let mut text = String::new();
    for number in 1..=6_000_u64 {
        let Flip { by, reason, .. } = off("provider:old");
        let (name, on) = if number <= 2 {
            (format!("provider:old{number}"), Some(false))
        } else {
            ("model:busy".to_owned(), None)
        };
        let change = Change {
            number,
            at: NOW,
            target: target(&name),
            on,
            by,
            reason: reason + &"!".repeat(100),
            until: None,
        };
        text += &serde_json::to_string(&change).expect("a change is JSON");
        text.push('\n');
    }
    disk.write(text.as_bytes());
    let switches = disk.start();
    assert_eq!(disk.lines(), MAX_AUDIT + 2);
    assert_eq!(switches.audit().len(), MAX_AUDIT);
    assert_eq!(switches.off_now(), ["provider:old1", "provider:old2"]);

    let again = disk.start();
    assert_eq!((again.list(NOW), again.audit()), (switches.list(NOW), switches.audit()));
    assert!(again.kept(off("provider:new")));
    assert_eq!(again.audit().last().map(|change| change.number), Some(6_001));
    assert_eq!(disk.lines(), MAX_AUDIT + 3, "appended, not written anew");
}

#[test]
fn whoever_asks_after_the_flip_sees_it() {
    let disk = Disk::new();
    let switches = disk.start();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let switches = &switches;
            scope.spawn(move || {
                let name = format!("p{thread}");
                for _ in 0..20 {
                    assert!(switches.kept(off(&format!("provider:{name}"))));
                    assert!(!switches.is_on(Subject::Provider(&name), NOW));
                    assert!(switches.kept(flip(&format!("provider:{name}"), None)));
                    assert!(switches.is_on(Subject::Provider(&name), NOW));
                }
            });
        }
    });
    let numbers: Vec<_> = switches.audit().iter().map(|change| change.number).collect();
    assert_eq!(numbers, (1..=160).collect::<Vec<_>>());
    assert_eq!(disk.start().audit(), switches.audit());
}

#[test]
fn kept_says_so_in_json() {
    let json = |kept: Kept| serde_json::to_string(&kept).expect("it is JSON");
    assert_eq!(json(Kept::OnDisk), r#"{"kept":"on_disk"}"#);
    let failed = Kept::InMemory { error: "no space left".to_owned() };
    assert_eq!(json(failed), r#"{"kept":"in_memory","error":"no space left"}"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is flipped, whenever the disk fails and the service restarts: each subject is as the
    /// last flip that was kept, or that still is in memory, says.
    #[test]
    fn switches_are_as_the_last_flip_left_them(
        story in prop::collection::vec((0..4_usize, 0..8_u8, 0..40_u64, 1..60_u64), 1..40),
    ) {
        const NAMES: [&str; 4] = ["provider:a", "model:a", "target:a/b", "feature:cache_only"];
        let disk = Disk::new();
        let mut switches = disk.start();
        let mut expected: [Option<(bool, Option<Timestamp>)>; 4] = [None; 4];
        let mut now = NOW;
        let mut failing = false;
        for (name, act, wait, lasts) in story {
            now = now.after(Duration::from_secs(wait));
            let until = (act % 2 == 0).then(|| now.after(Duration::from_secs(lasts)));
            match act {
                0..=3 => {
                    let on = act >= 2;
                    let flip = Flip { until, ..flip(NAMES[name], Some(on)) };
                    let kept = switches.flip(flip, now).expect("the flip is valid");
                    prop_assert_eq!(kept == Kept::OnDisk, !failing);
                    expected[name] = Some((on, until));
                }
                4 => {
                    let kept = switches.flip(flip(NAMES[name], None), now).expect("the flip is valid");
                    prop_assert_eq!(kept == Kept::OnDisk, !failing);
                    expected[name] = None;
                }
                5 if failing => { disk.heal(); failing = false; }
                6 if !failing => { disk.fail(); failing = true; }
                7 if !failing && !switches.audit().is_empty() => {
                    // Something is always written first, for the disk may just have healed.
                    let _ = switches.flip(flip("model:other", None), now).expect("the flip is valid");
                    switches = disk.start();
                }
                _ => {}
            }
            for (name, expected) in NAMES.into_iter().zip(expected) {
                let target = target(name);
                let valid = expected.filter(|(_, until)| until.is_none_or(|until| now < until));
                let on = valid.map_or(target.subject().on_by_default(), |(on, _)| on);
                prop_assert_eq!(switches.is_on(&target, now), on, "{}", name);
            }
        }
    }
}

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;

/// Scores a pair by the number that its first text is, and serves by its own mind.
struct Told;

#[async_trait]
impl Judge for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    async fn judge(&self, asked: &str, stored: &str) -> Judgement {
        match (asked.parse(), stored) {
            (Ok(score), "serve") => Judgement { score, serves: true, stage: "head" },
            (Ok(score), "refuse") => Judgement { score, serves: false, stage: "head" },
            _ => Judgement::refused("numbers"),
        }
    }
}

fn pair(a: &str, b: &str, same: bool, kind: &str) -> Pair {
    Pair { a: a.into(), b: b.into(), same, kind: kind.into(), source: String::new() }
}

/// Ranked: + + - + -, and refused at any threshold: + -.
fn pairs() -> Vec<Pair> {
    vec![
        pair("0.9", "serve", true, "word"),
        pair("0.8", "refuse", true, "word"),
        pair("0.7", "serve", false, "word"),
        pair("0.6", "refuse", true, "order"),
        pair("0.5", "refuse", false, "order"),
        pair("x", "numbers", true, "word"),
        pair("x", "numbers", false, "word"),
    ]
}

async fn report(pairs: &[Pair]) -> Report<Figures> {
    let contender = Contender::shipped(Arc::new(Told)).and("told >= 0.60", Rule::AtLeast(0.6));
    measure("set", pairs, &contender, &[], &|_| ()).await
}

fn close(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-12)
}

#[tokio::test]
async fn figures_by_hand() {
    let report = report(&pairs()).await;
    let (name, shipped) = report.shipped().unwrap();
    assert_eq!((name, report.rows, shipped.same, shipped.different), ("told", 7, 4, 3));
    // Duels of each same one against the three: 3, 3, 2, and half of one for the refused.
    assert!(close(shipped.auc, 8.5 / 12.0));
    // Precision at each same one: 1, 1, 3/4, and 4/7 where all the rest comes at once.
    assert!(close(shipped.average_precision, (1.0 + 1.0 + 0.75 + 4.0 / 7.0) / 4.0));
    assert!(close(shipped.at_1_percent_wrong.map(|best| best.hit_rate), 0.5));
    assert_eq!(shipped.at_1_percent_wrong.map(|best| best.threshold), Some(0.8));

    assert!(close(shipped.hit_rate, 1.0 / 4.0) && close(shipped.wrong_rate, 1.0 / 3.0));
    assert_eq!((shipped.hit_interval, shipped.wrong_interval), (wilson(1, 4), wilson(1, 3)));
    assert_eq!(
        shipped.refused,
        BTreeMap::from([
            ("head", Refused { same: 2, different: 1 }),
            ("numbers", Refused { same: 1, different: 1 }),
        ])
    );

    let fixed = report.policies.get("told >= 0.60").unwrap();
    assert!(close(fixed.hit_rate, 3.0 / 4.0) && close(fixed.wrong_rate, 1.0 / 3.0));
    assert_eq!((fixed.auc, fixed.average_precision), (shipped.auc, shipped.average_precision));
    assert_eq!(fixed.refused["score"], Refused { same: 0, different: 1 });
}

#[tokio::test]
async fn each_kind_by_itself() {
    let report = report(&pairs()).await;
    assert!(report.kinds.iter().map(|(kind, _)| kind).eq(["word", "order"]));
    let of = |kind| report.kinds.get(kind).unwrap().get("told").unwrap();
    assert_eq!((of("word").same, of("word").different), (3, 2));
    assert!(close(of("word").hit_rate, 1.0 / 3.0) && close(of("word").wrong_rate, 0.5));
    assert_eq!(of("order").auc, Some(1.0));
    assert!(close(of("order").hit_rate, 0.0) && close(of("order").wrong_rate, 0.0));
}

#[tokio::test]
async fn a_kind_without_traps_has_no_rate_of_wrong_ones() {
    let report = report(&[pair("0.9", "serve", true, "easy"), pair("0.1", "serve", false, "")]).await;
    let easy = report.kinds.get("easy").unwrap().get("told").unwrap();
    assert_eq!((easy.wrong_rate, easy.auc, easy.at_1_percent_wrong), (None, None, None));
    assert_eq!(easy.wrong_interval, Interval(0.0, 1.0));
    assert_eq!(report.kinds.0.len(), 1, "no kind is no kind");
}

#[tokio::test]
async fn nothing_measures_nothing() {
    let report = report(&[]).await;
    let (_, shipped) = report.shipped().unwrap();
    assert_eq!((shipped.auc, shipped.hit_rate, shipped.wrong_rate), (None, None, None));
}

#[tokio::test]
async fn json_names_default_policies_kinds_and_curve() {
    let json = serde_json::to_string(&report(&pairs()).await).unwrap();
    assert!(!json.contains('\n'), "one line");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["default"]["hit_rate"], 0.25);
    assert_eq!(json["default"]["wrong_rate"], 1.0 / 3.0);
    assert_eq!(json["default"]["at_1_percent_wrong"]["hit_rate"], 0.5);
    assert_eq!(json["policies"]["told"], json["default"]);
    assert_eq!(json["policies"]["told >= 0.60"]["hit_rate"], 0.75);
    assert_eq!(json["kinds"]["order"]["told"]["auc"], 1.0);
    let curve = json["curve"].as_array().unwrap();
    assert_eq!(curve[0], json!({ "judge": "told", "threshold": null, "hit_rate": 0.0, "wrong_rate": 0.0 }));
    assert_eq!((curve.len(), &curve[2]["hit_rate"]), (6, &json!(0.5)));
}

#[tokio::test]
async fn the_table_names_every_policy_and_kind() {
    let table = report(&pairs()).await.to_string();
    let expected = "\
set: 7 rows
policy        same  different    AUC     AP  at <= 1 % wrong  at <= 2 %                   hits                    wrong
told             4          3  0.708  0.830           50.0 %     50.0 %   25.0 % (4.6 to 69.9)  33.33 % (6.15 to 79.23)
told >= 0.60     4          3  0.708  0.830           50.0 %     50.0 %  75.0 % (30.1 to 95.4)  33.33 % (6.15 to 79.23)

told by kind
";
    assert!(table.starts_with(expected), "{table}");
}

#[tokio::test]
async fn progress_goes_from_row_to_row() {
    let seen = Mutex::new(Vec::new());
    let tick = |progress: Progress<'_>| seen.lock().unwrap().push((progress.step.to_owned(), progress.done));
    let told = || Contender::shipped(Arc::new(Told));
    measure("set", &pairs(), &told(), &[told()], &tick).await;
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.first(), Some(&("told".to_owned(), AT_ONCE)));
    assert_eq!(seen.iter().filter(|(_, done)| *done == 7).count(), 2, "both contenders come to the end");
    assert!(seen.iter().all(|(_, done)| *done <= 7));
}

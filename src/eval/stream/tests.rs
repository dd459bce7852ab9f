use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::cache::embedder::{EmbedderId, Embedding};
use crate::eval::cosine::Cosine;
use crate::eval::curve::Curve;
use crate::eval::judge::Judge;

/// A question whose vector points at so many degrees; the class comes first.
fn question(class: &str, degrees: &str) -> Question {
    Question { class: class.into(), text: degrees.into(), source: class[..1].to_owned() }
}

/// The texts' vectors on a circle; a text that is no number has none.
async fn vectors(stream: &[Question]) -> Vectors {
    let embed = async |text: &str| {
        let degrees: f32 = text.trim().parse().map_err(|_| "not_covered")?;
        let (sin, cos) = degrees.to_radians().sin_cos();
        Ok(Embedding::new(EmbedderId::new("circle"), [cos, sin]))
    };
    Vectors::embed(stream.iter().map(|question| question.text.as_str()), embed, &|_| ()).await
}

/// Runs one policy over a stream.
async fn run(stream: &[Question], policy: &mut dyn Policy) -> Figures {
    let vectors = vectors(stream).await;
    let neighbours = Neighbours::among(stream, &vectors, &|_| ());
    let judge = Cosine::new("cosine", Arc::new(vectors), 0.9);
    let mut trial = Trial::new(stream, &neighbours, &judge, CANDIDATES);
    let run = trial.run(policy).await;
    run.figures("cosine", &Curve { points: Vec::new(), hits_of: 0, wrong_of: 0 })
}

fn close(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-12)
}

#[tokio::test]
async fn a_stream_by_hand() {
    let stream = [
        question("a", "0"),         // miss
        question("a", "5"),         // near the first: right
        question("b", "10"),        // near it as well: wrong
        question("a", "0"),         // the same text: exact
        question("c", "90"),        // miss
        question("b", "60"),        // miss: its answer was never stored, for the third was answered wrongly
        question("b", "175"),       // miss: stored at 60, but too far
        question("c", "no number"), // miss: no vector
    ];
    let figures = run(&stream, &mut Rule::AtLeast(0.95)).await;
    assert_eq!(figures.requests, 8);
    assert!(close(figures.ideal_hit_rate, 5.0 / 8.0));
    assert!(close(figures.hit_rate, 3.0 / 8.0) && close(figures.exact_rate, 1.0 / 8.0));
    assert!(close(figures.wrong_rate, 1.0 / 8.0) && close(figures.precision, 2.0 / 3.0));
    assert_eq!(figures.missed, BTreeMap::from([("score", 1), ("not_covered", 1)]));
    let last = figures.course.last().unwrap();
    assert_eq!((last.requests, last.hit_rate, last.wrong_rate), (8, figures.hit_rate, figures.wrong_rate));
    assert!(figures.course.iter().map(|it| it.requests).eq(1..=8));
}

#[tokio::test]
async fn what_is_served_decides_what_is_stored() {
    // Steps of 10 degrees: each is near the one before. If all were stored, each would hit; so every
    // second one does.
    let stream = ["0", "10", "20", "30", "40", "50"].map(|degrees| question("a", degrees));
    let figures = run(&stream, &mut Rule::AtLeast(0.98)).await;
    assert!(close(figures.hit_rate, 0.5), "{figures:?}");
}

#[tokio::test]
async fn a_text_that_was_answered_wrongly_is_asked_for_again() {
    let stream = [question("a", "0"), question("b", "5"), question("b", "5")];
    let figures = run(&stream, &mut Rule::AtLeast(0.95)).await;
    assert!(close(figures.exact_rate, 0.0) && close(figures.wrong_rate, 2.0 / 3.0));
    let figures = run(&stream, &mut Rule::AtLeast(0.9999)).await;
    assert!(close(figures.exact_rate, 1.0 / 3.0) && close(figures.wrong_rate, 0.0));
}

/// Likes what is far.
struct Contrary;

#[async_trait]
impl Judge for Contrary {
    fn name(&self) -> &'static str {
        "contrary"
    }

    async fn judge(&self, asked: &str, stored: &str) -> Judgement {
        let degrees = |text: &str| text.parse::<f32>().unwrap_or(0.0);
        let score = (degrees(asked) - degrees(stored)).abs();
        Judgement { score, serves: score < 15.0, stage: "contrary" }
    }
}

#[tokio::test]
async fn the_best_candidate_that_is_accepted_is_served() {
    let stream = [question("far", "0"), question("near", "20"), question("far", "29")];
    let vectors = vectors(&stream).await;
    let neighbours = Neighbours::among(&stream, &vectors, &|_| ());
    let wrong = async |rule: Rule, candidates| {
        let run = Trial::new(&stream, &neighbours, &Contrary, candidates).run(&mut rule.clone()).await;
        (run.hits(), run.wrong())
    };
    assert_eq!(wrong(Rule::AtLeast(25.0), 5).await, (1, 0), "29 degrees from the farther one");
    assert_eq!(wrong(Rule::AtLeast(25.0), 1).await, (0, 0), "only the nearest was looked at");
    assert_eq!(wrong(Rule::Shipped, 5).await, (1, 1), "the default takes the nearer one only");
}

/// Asks upstream until a question's nearest neighbour has agreed this often.
struct Cautious {
    agreed: usize,
    told: Vec<bool>,
}

impl Policy for Cautious {
    fn choose(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let enough = self.told.iter().filter(|same| **same).count() >= self.agreed;
        (enough && !candidates.is_empty()).then_some(0)
    }

    fn learn(&mut self, candidates: &[Candidate], same: &[bool]) {
        assert_eq!(candidates.len(), same.len());
        self.told.extend(same.first());
    }
}

#[tokio::test]
async fn a_policy_may_learn_on_the_way() {
    let stream = ["0", "1", "2", "3", "4"].map(|degrees| question("a", degrees));
    let mut cautious = Cautious { agreed: 2, told: Vec::new() };
    let figures = run(&stream, &mut cautious).await;
    assert_eq!(cautious.told, [true, true], "of the second and the third; the first had no neighbour");
    assert!(close(figures.hit_rate, 2.0 / 5.0));
    assert_eq!(figures.missed, BTreeMap::from([("policy", 2)]));
}

/// Counts how often it is asked.
struct Counting(Cosine, AtomicUsize);

#[async_trait]
impl Judge for Counting {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn judge(&self, asked: &str, stored: &str) -> Judgement {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.judge(asked, stored).await
    }
}

#[tokio::test]
async fn a_curve_asks_for_each_judgement_once() {
    let stream: Vec<Question> = (0..60)
        .map(|i| question(if i % 7 < 3 { "a" } else { "b" }, &(i * i * 37 % 359).to_string()))
        .collect();
    let vectors = Arc::new(vectors(&stream).await);
    let neighbours = Neighbours::among(&stream, &vectors, &|_| ());
    let judge = Counting(Cosine::new("cosine", vectors, 0.9), AtomicUsize::new(0));
    let mut trial = Trial::new(&stream, &neighbours, &judge, CANDIDATES);
    let curve = trial.sweep(&|_| ()).await;
    assert!(curve.points.len() > 20);
    let asked = judge.1.load(Ordering::Relaxed);
    assert!(asked <= 60 * 59 / 2, "{asked}");
    trial.sweep(&|_| ()).await;
    assert_eq!(judge.1.load(Ordering::Relaxed), asked, "all is known");

    let strictest = curve.points.first().unwrap();
    assert_eq!((strictest.threshold, strictest.hits), (f32::INFINITY, 0));
    for (higher, lower) in curve.points.iter().zip(&curve.points[1..]) {
        assert!(higher.threshold > lower.threshold);
    }
    // Each point is what a run of its own gives.
    for point in &curve.points {
        let run = trial.run(&mut Rule::AtLeast(point.threshold)).await;
        assert_eq!((run.hits(), run.wrong()), (point.hits, point.wrong));
    }
}

#[tokio::test]
async fn the_report_has_a_default_peers_sources_and_a_curve() {
    let stream: Vec<Question> =
        (0..50).map(|i| question(if i % 5 < 2 { "a" } else { "b" }, &(i * 37 % 360).to_string())).collect();
    let vectors = Arc::new(vectors(&stream).await);
    let peers = Cosine::peers("cosine", Arc::clone(&vectors));
    let shipped = Contender::shipped(Arc::new(Contrary));
    let report = measure("circle", &stream, &vectors, CANDIDATES, &shipped, &[peers], &|_| ()).await;
    let names = report.policies.iter().map(|(name, _)| name);
    assert!(names.eq(["contrary", "cosine >= 0.60", "cosine >= 0.80", "cosine >= 0.90", "cosine >= 0.95"]));
    let requests = |kind| report.kinds.get(kind).unwrap().get("contrary").unwrap().requests;
    assert_eq!((requests("a"), requests("b")), (20, 30));
    for (name, whole) in report.policies.iter() {
        let part = |kind| report.kinds.get(kind).unwrap().get(name).unwrap().hit_rate.unwrap();
        assert!(close(whole.hit_rate, (part("a") * 20.0 + part("b") * 30.0) / 50.0), "{name}");
    }

    let json: Value = serde_json::to_value(&report).unwrap();
    assert_eq!(json["default"]["judge"], "contrary");
    assert_eq!(json["default"]["course"].as_array().unwrap().len(), 17);
    assert_eq!(json["policies"]["contrary"]["hit_rate"], json["default"]["hit_rate"]);
    assert!(json["policies"]["cosine >= 0.95"]["wrong_rate"].is_number());
    let judges: Vec<&Value> = json["curve"].as_array().unwrap().iter().map(|row| &row["judge"]).collect();
    assert!(judges.contains(&&Value::from("contrary")) && judges.contains(&&Value::from("cosine")));
    assert!(report.to_string().contains("\ncontrary by kind\n"));
}

#[tokio::test]
async fn reports_of_two_encoders_stand_in_one() {
    let stream = ["0", "1", "90"].map(|degrees| question("a", degrees));
    let vectors = Arc::new(vectors(&stream).await);
    let of = async |name: &str| {
        measure("circle", &stream, &vectors, 5, &Cosine::peers(name, vectors.clone()), &[], &|_| ()).await
    };
    let both = of("cosine").await.and(of("other").await);
    assert_eq!(both.shipped().map(|(name, _)| name), Some("cosine >= 0.60"));
    assert_eq!((both.policies.0.len(), both.curves.0.len()), (8, 2));
    assert!(both.policies.get("other >= 0.95").is_some());
    assert_eq!((both.kinds.0.len(), both.kinds.get("a").unwrap().0.len()), (1, 8));
}

#[tokio::test]
async fn a_measurement_may_run_on_any_thread() {
    let stream = ["0", "1"].map(|degrees| question("a", degrees)).to_vec();
    let vectors = Arc::new(vectors(&stream).await);
    let report = tokio::spawn(async move {
        measure("s", &stream, &vectors, 5, &Cosine::peers("cosine", vectors.clone()), &[], &|_| ()).await
    });
    assert_eq!(report.await.unwrap().rows, 2);
}

#[tokio::test]
async fn nothing_asked_is_nothing_measured() {
    let vectors = Arc::new(vectors(&[]).await);
    let report =
        measure("none", &[], &vectors, 5, &Cosine::peers("cosine", vectors.clone()), &[], &|_| ()).await;
    let (_, figures) = report.shipped().unwrap();
    assert_eq!((figures.requests, figures.hit_rate, figures.precision), (0, None, None));
    assert_eq!((figures.at_1_percent_wrong, &figures.course), (None, &Vec::new()));
}

/// The same as [`Trial::run`] at a fixed cosine, with nothing prepared and nothing remembered.
fn plainly(stream: &[Question], vectors: &Vectors, threshold: f32, candidates: usize) -> (u32, u32) {
    let (mut stored, mut hits, mut wrong) = (Vec::<&Question>::new(), 0, 0);
    for asked in stream {
        let mut near: Vec<(f32, &Question)> = Vec::new();
        for other in &stored {
            if let (Ok(a), Ok(b)) = (vectors.of(&asked.text), vectors.of(&other.text)) {
                near.extend(crate::eval::cosine::cosine(a, b).map(|similarity| (similarity, *other)));
            }
        }
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.truncate(candidates);
        let exact = stored.iter().find(|other| other.text == asked.text).copied();
        let served = exact.or(near.first().filter(|near| near.0 >= threshold).map(|near| near.1));
        match served {
            Some(served) => {
                hits += 1;
                wrong += u32::from(served.class != asked.class);
            }
            None => stored.push(asked),
        }
    }
    (hits, wrong)
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn however_few_neighbours_are_kept_a_run_is_exact(
        asked in prop::collection::vec(("[a-d]", prop_oneof![9 => "[0-9]{1,3}", 1 => "x"]), 1..60),
        threshold in -1.0_f32..1.0,
        depth in 1_usize..20,
        candidates in 1_usize..6,
    ) {
        let stream: Vec<Question> = asked.iter().map(|(class, text)| question(class, text)).collect();
        let (found, expected) = now(async {
            let vectors = Arc::new(vectors(&stream).await);
            let neighbours = Neighbours::with_depth(&stream, &vectors, depth, &|_| ());
            let judge = Cosine::new("cosine", Arc::clone(&vectors), 0.9);
            let run = Trial::new(&stream, &neighbours, &judge, candidates).run(&mut Rule::AtLeast(threshold)).await;
            ((run.hits(), run.wrong()), plainly(&stream, &vectors, threshold, candidates))
        });
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn hits_and_misses_account_for_every_request(
        asked in prop::collection::vec(("[a-d]", "[0-9]{1,2}"), 1..60),
        threshold in -1.0_f32..1.0,
    ) {
        let stream: Vec<Question> = asked.iter().map(|(class, text)| question(class, text)).collect();
        let figures = now(run(&stream, &mut Rule::AtLeast(threshold)));
        let (hits, wrong) = (figures.hit_rate.unwrap(), figures.wrong_rate.unwrap());
        let missed: u32 = figures.missed.values().sum();
        let missed = f64::from(missed) / f64::from(figures.requests);
        prop_assert!(figures.exact_rate.unwrap() <= hits && wrong <= hits);
        // Whatever repeats is hit right, hit wrong, missed though stored, or was never stored.
        prop_assert!(hits - wrong + missed <= figures.ideal_hit_rate.unwrap() + 1e-12);
        prop_assert!(figures.course.iter().zip(&figures.course[1..]).all(|(a, b)| a.requests < b.requests));
    }
}

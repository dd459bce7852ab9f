use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::chaos::Chaos;

/// Longer than any answer here takes that comes at all.
const PATIENCE: Duration = Duration::from_secs(15);

async fn playing(script: &str) -> Chaos {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Chaos::start(listener, script.parse().unwrap()).unwrap()
}

/// A provider `far` at an address, with keys of these names in a folder.
fn settings(address: impl std::fmt::Display, folder: &TempDir, keys: &[&str]) -> String {
    let place = |key: &&str| format!("\"file:{}\"", folder.path().join(key).display());
    let places: Vec<_> = keys.iter().map(place).collect();
    format!(
        "[providers.far]\nkind = \"openai\"\nurl = \"http://{address}/v1\"\napi_keys = [{}]\n\
         [models.m]\ntargets = [{{ provider = \"far\", model = \"big\" }}]\n",
        places.join(", ")
    )
}

fn keys(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    folder
}

/// The lines about `far`, without the place of a key.
async fn lines(overlay: &str, within: Duration) -> Vec<String> {
    let config = Config::from_toml(overlay).unwrap();
    let mut lines = Vec::new();
    let tell = |subject: &str, verdict: Verdict| {
        let (mark, text) = match verdict {
            Verdict::Good(text) => ("ok", text),
            Verdict::Wrong(text) => ("WRONG", text),
            Verdict::Skipped(text) => ("skip", text),
        };
        let subject = subject.split(" (").next().unwrap_or_default();
        lines.push(format!("{mark} {subject}: {text}"));
    };
    check(&config, within, tell).await.unwrap();
    lines.retain(|line| line.contains(" far"));
    lines
}

#[track_caller]
fn assert_lines(lines: &[String], starts: &[&str]) {
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{lines:#?}\nlack {start}");
    }
}

#[tokio::test]
async fn each_key_has_its_own_line() {
    let chaos =
        playing("key:test-b:quota:openai; key:test-c:status:401; key:test-d:status:429:retry-after=20").await;
    let names = ["test-a", "test-b", "test-c", "test-d"];
    let folder = keys(&names);
    let lines = lines(&settings(chaos.address(), &folder, &names), PATIENCE).await;
    assert_lines(
        &lines,
        &[
            "ok far/big, key 1: answers after ",
            "WRONG far/big, key 2: quota exhausted on key 2: top up, or wait; it says: You exceeded",
            "WRONG far/big, key 3: key 3 is not accepted (status 401)",
            "WRONG far/big, key 4: rate limited for 20 s on key 4",
        ],
    );
    assert_eq!(chaos.attempts().len(), 4, "each once");
}

#[tokio::test]
async fn a_model_that_is_not_there_is_named() {
    let chaos = playing("model:big:error:openai-model-not-found").await;
    let models = "[models.n]\ntargets = [{ provider = \"far\", model = \"small\" }]\n[models.\"*\"]\ntargets = [{ provider = \"far\" }]";
    let overlay = settings(chaos.address(), &keys(&[]), &[]) + models;
    assert_lines(
        &lines(&overlay, PATIENCE).await,
        &[
            "skip far/*: callers name the model",
            "WRONG far/big: the provider has no model \"big\"",
            "ok far/small: answers after ",
        ],
    );
}

#[tokio::test]
async fn nobody_listens() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let overlay = settings(address, &keys(&[]), &[]);
    assert_lines(
        &lines(&overlay, PATIENCE).await,
        &["WRONG far/big: no connection: refused: is it running?"],
    );
}

#[tokio::test]
async fn too_slow_is_a_failure_and_slow_is_not() {
    let chaos = playing("silent | latency:60ms").await;
    let overlay = settings(chaos.address(), &keys(&[]), &[]);
    let silent = lines(&overlay, Duration::from_millis(50)).await;
    assert_lines(&silent, &["WRONG far/big: no content within "]);
    assert_lines(&lines(&overlay, PATIENCE).await, &["ok far/big: answers after "]);
}

#[tokio::test]
async fn a_page_in_place_of_an_api() {
    let chaos = playing("status:404:body=html | redirect | half-json | reset").await;
    let overlay = settings(chaos.address(), &keys(&[]), &[]);
    for start in [
        "WRONG far/big: it does not serve this here (status 404): is providers.far.url right?",
        "WRONG far/big: it sends callers elsewhere (status 302)",
        "WRONG far/big: what it sends is no answer",
        "WRONG far/big: no connection: ",
    ] {
        assert_lines(&lines(&overlay, PATIENCE).await, &[start]);
    }
}

#[tokio::test]
async fn a_key_that_is_not_set_is_missed_and_the_others_keep_their_numbers() {
    let chaos = playing("key:test-c:quota:openai").await;
    let overlay = settings(chaos.address(), &keys(&["test-b", "test-c"]), &["test-a", "test-b", "test-c"]);
    // The folder was dropped, and the keys with it.
    assert!(check(&Config::from_toml(&overlay).unwrap(), PATIENCE, |_, _| {}).await.is_err());

    let folder = keys(&["test-b", "test-c"]);
    let overlay = settings(chaos.address(), &folder, &["test-a", "test-b", "test-c"]);
    assert_lines(
        &lines(&overlay, PATIENCE).await,
        &[
            "WRONG far, key 1: no key is there: set it",
            "ok far/big, key 2: answers after ",
            "WRONG far/big, key 3: quota exhausted on key 3",
        ],
    );
}

#[tokio::test]
async fn who_is_not_asked_has_a_word() {
    let chaos = playing("").await;
    let overlay = settings(chaos.address(), &keys(&[]), &["test-a"])
        .replace("[models.m]", "optional = true\n[models.m]");
    assert_lines(&lines(&overlay, PATIENCE).await, &["skip far: left out, because no key is set: key 1 "]);
    let unused = settings(chaos.address(), &keys(&[]), &[]).replace("\"far\", model", "\"rules\", model");
    assert_lines(&lines(&unused, PATIENCE).await, &["skip far: no model has it as a target"]);
    assert!(chaos.attempts().is_empty());
}

#[tokio::test]
async fn where_callers_bring_keys_the_provider_need_only_be_there() {
    let chaos = playing("status:401 | status:500").await;
    let overlay = settings(chaos.address(), &keys(&[]), &["test-a"]) + "[auth]\nmode = \"forward\"";
    let there = "ok far/big: is there, and wants the key that callers bring";
    assert_lines(&lines(&overlay, PATIENCE).await, &[there]);
    assert_lines(&lines(&overlay, PATIENCE).await, &["WRONG far/big: it failed (status 500)"]);
    assert!(chaos.attempts().iter().all(|attempt| attempt.key.is_empty()), "no key of ours is sent");
}

#[tokio::test]
async fn a_provider_is_asked_one_thing_at_a_time() {
    let chaos = playing("latency:20ms").await;
    let folder = keys(&["test-a", "test-b"]);
    let models = "[models.n]\ntargets = [{ provider = \"far\", model = \"small\" }]";
    let overlay = settings(chaos.address(), &folder, &["test-a", "test-b"]) + models;
    assert_eq!(lines(&overlay, PATIENCE).await.len(), 4);
    chaos.settled().await;
    let attempts = chaos.attempts();
    for pair in attempts.windows(2) {
        let until = pair[0].at + Duration::from_millis(20);
        assert!(until <= pair[1].at, "{attempts:?}");
    }
}

#[tokio::test]
async fn providers_are_asked_side_by_side() {
    // Whoever is asked second would have to wait for the first for ever.
    let (first, second) = (playing("silent").await, playing("").await);
    let overlay = settings(first.address(), &keys(&[]), &[])
        + &format!("[providers.farther]\nkind = \"openai\"\nurl = \"http://{}/v1\"\n", second.address())
        + "[models.n]\ntargets = [{ provider = \"farther\", model = \"n\" }]";
    let config = Config::from_toml(&overlay).unwrap();
    let asked = check(&config, Duration::from_hours(1), |_, _| {});
    let answered = async {
        while second.attempts().is_empty() || first.attempts().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = asked => panic!("the first never answers"),
        () = answered => {}
    }
}

use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::chaos::Chaos;
use crate::clock::Clock;
use crate::config::Config;
use crate::switches::Switches;

const PATIENCE: Duration = Duration::from_secs(15);

/// A provider that plays a script, and an upstream that has it by the name `far`.
struct Stage {
    chaos: Chaos,
    upstream: Upstream,
    _folder: TempDir,
}

impl Stage {
    /// With these keys, and a model `m` that is `big` there.
    async fn new(script: &str, keys: &[&str]) -> Self {
        Self::with(script, keys, "[models.m]\ntargets = [{ provider = \"far\", model = \"big\" }]").await
    }

    async fn with(script: &str, keys: &[&str], models: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let chaos = Chaos::start(listener, script.parse().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut places = Vec::new();
        for key in keys {
            let file = folder.path().join(key);
            std::fs::write(&file, key).unwrap();
            places.push(format!("\"file:{}\"", file.display()));
        }
        let overlay = format!(
            "[providers.far]\nkind = \"openai\"\nurl = \"http://{}/v1\"\napi_keys = [{}]\n{models}",
            chaos.address(),
            places.join(", ")
        );
        let config = Config::from_toml(&overlay).unwrap();
        let switches = Arc::new(Switches::in_memory());
        let upstream = Upstream::try_new(&config, Clock::system(), switches).unwrap();
        Self { chaos, upstream, _folder: folder }
    }

    fn trials(&self) -> Vec<Trial> {
        let mut all = self.upstream.trials();
        all.find(|(provider, _)| *provider == "far").expect("it is there").1
    }

    fn probes(&self) -> Vec<Probe> {
        let probe = |trial| match trial {
            Trial::Call(probe) => Some(probe),
            Trial::AnyModel | Trial::File(_) => None,
        };
        self.trials().into_iter().filter_map(probe).collect()
    }

    /// The first probe, and what came of it.
    async fn call(&self) -> (Probe, Result<Duration, UpstreamError>) {
        let probe = self.probes().remove(0);
        let answer = probe.call(PATIENCE).await;
        (probe, answer)
    }

    fn attempts(&self) -> Vec<(String, String)> {
        let attempts = self.chaos.attempts().into_iter();
        attempts.map(|attempt| (attempt.key, attempt.model)).collect()
    }
}

#[tokio::test]
async fn each_model_with_each_key_once() {
    let models = r#"
        [models.one]
        targets = [{ provider = "far", model = "big" }, { provider = "far", model = "small", tier = 2 }]
        [models.two]
        targets = [{ provider = "far", model = "big" }, { provider = "rules", model = "faq" }]
        [models.plain]
        targets = [{ provider = "far" }]
        [models."*"]
        targets = [{ provider = "far" }]
    "#;
    let stage = Stage::with("", &["test-a", "test-b"], models).await;
    let probes = stage.probes();
    let named: Vec<_> = probes.iter().map(|probe| (probe.model(), probe.key())).collect();
    assert_eq!(
        named,
        [
            ("big", Some(0)),
            ("big", Some(1)),
            ("plain", Some(0)),
            ("plain", Some(1)),
            ("small", Some(0)),
            ("small", Some(1))
        ]
    );
    assert!(matches!(stage.trials()[0], Trial::AnyModel));
    let mut rules = stage.upstream.trials().filter(|(provider, _)| *provider == "rules");
    assert!(matches!(&rules.next().unwrap().1[..], [Trial::File(model)] if **model == *"faq"));

    let keyless = Stage::new("", &[]).await;
    assert_eq!(keyless.probes().iter().map(Probe::key).collect::<Vec<_>>(), [None]);
}

#[tokio::test]
async fn the_time_is_that_of_the_first_content() {
    let stage = Stage::new("slow-headers:80ms", &["test-a"]).await;
    let after = stage.call().await.1.unwrap();
    assert!((Duration::from_millis(80)..PATIENCE).contains(&after), "{after:?}");
    assert_eq!(stage.attempts(), [("test-a".to_owned(), "big".to_owned())]);
    assert!(stage.chaos.attempts()[0].stream);
}

#[tokio::test]
async fn a_call_goes_past_what_calls_before_it_met() {
    let stage = Stage::new("key:test-a:2*quota:openai | ok", &["test-a"]).await;
    for _ in 0..2 {
        assert_eq!(stage.call().await.1.unwrap_err().fault().class, Class::Quota);
    }
    assert!(stage.call().await.1.is_ok(), "no key is put aside");
    assert_eq!(stage.attempts().len(), 3, "nothing is tried again");
}

#[tokio::test]
async fn silence_ends_in_time() {
    let stage = Stage::new("silent", &[]).await;
    let probe = stage.probes().remove(0);
    let error = probe.call(Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_reasoning_model_is_asked_in_its_own_words() {
    let refusal =
        "status:400:message=\"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.\"";
    let stage = Stage::new(&format!("{refusal} | ok"), &[]).await;
    assert!(stage.call().await.1.is_ok());
    assert_eq!(stage.attempts().len(), 2);

    let stage = Stage::new(refusal, &[]).await;
    assert_eq!(stage.call().await.1.unwrap_err().fault().class, Class::InvalidRequest);
    assert_eq!(stage.attempts().len(), 2);
}

#[tokio::test]
async fn an_answer_that_has_no_room_is_one() {
    let cut = "Could not finish the message because max_tokens or model output limit was reached.";
    let stage = Stage::new(&format!("status:400:message=\"{cut}\""), &[]).await;
    assert!(stage.call().await.1.is_ok());
    let stage = Stage::new("finish:length", &[]).await;
    assert!(stage.call().await.1.is_ok());
}

#[tokio::test]
async fn what_it_says_is_one_line_without_the_key() {
    let message = "Incorrect API key provided:\\n\\u001b[31m test-secret.";
    let script =
        format!("error-in-200:openai-quota | status:401:message=\"{message}\" | status:401:body=html");
    let stage = Stage::new(&script, &["test-secret"]).await;
    let said = async || {
        let (probe, answer) = stage.call().await;
        probe.said(&answer.unwrap_err())
    };
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    assert_eq!(said().await.as_deref(), Some(quota));
    let refused = said().await.unwrap();
    assert!(refused.contains("provided:") && refused.ends_with("[key]."), "{refused}");
    assert_eq!(said().await, None, "a page is nobody's word");

    let probe = stage.probes().remove(0);
    let provider: Arc<str> = "far".into();
    let long = json!({ "error": { "message": format!("a\n\u{1b}[31m{}", "ü".repeat(1000)) } });
    let error = UpstreamError::inside_success(&provider, long.to_string().into());
    let said = probe.said(&error).unwrap();
    assert!(said.starts_with("a [31mü") && said.ends_with("ü…") && said.len() <= 304, "{said}");
}

#[test]
fn any_name_makes_a_sound_request() {
    for model in ["big", "a \"quoted\" one\\", "deepseek/世界:free"] {
        let request = question(model, "max_tokens");
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["model"], model);
        assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(16), &json!(true)));
        let name: String = serde_json::from_slice(&request.body[request.model_span]).unwrap();
        assert_eq!(name, model);
    }
}

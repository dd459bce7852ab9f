use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;

use super::*;
use crate::chat::ChatRequest;
use crate::chat::Question;
use crate::config::Secret;

/// Notes what it was asked, and answers with nothing in particular.
struct Fake {
    name: Arc<str>,
    asked: Mutex<Vec<(String, Option<String>)>>,
}

impl Fake {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Provider for Fake {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn complete(
        &self,
        _request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Body, UpstreamError> {
        let credential = credential.map(|secret| secret.expose().to_owned());
        self.asked.lock().unwrap().push((model.to_owned(), credential));
        Ok(Body::Whole(Whole::new(Bytes::from_static(b"{}"), None)))
    }
}

const CONFIG: &str = r#"
    [providers.one]
    kind = "rules"
    [providers.two]
    kind = "rules"
    [models.mapped]
    targets = [{ provider = "one", model = "big-1" }, { provider = "two" }]
    namespace = "hr"
    [models.plain]
    targets = [{ provider = "two" }]
    [models.default]
    targets = [{ provider = "openai" }]
    [models."*"]
    targets = [{ provider = "two" }]
    [namespaces.hr]
"#;

fn request(model: &str) -> ChatRequest {
    ChatRequest {
        body: format!(r#"{{"model":"{model}"}}"#).into(),
        model_span: 9..11 + model.len(),
        model: model.to_owned(),
        question: Question::try_new(vec!["What is Refrain?".to_owned()]),
        ..ChatRequest::default()
    }
}

fn config(overlay: &str) -> Config {
    Config::from_toml(overlay).unwrap()
}

fn try_new(overlay: &str) -> Result<Upstream, UpstreamConfigError> {
    Upstream::try_new(&config(overlay), Clock::system(), Arc::new(Switches::in_memory()))
}

fn with_providers(overlay: &str, providers: &[Arc<dyn Provider>]) -> Upstream {
    Upstream::with_providers(&config(overlay), Clock::system(), Arc::new(Switches::in_memory()), providers)
}

fn ask(request: &ChatRequest) -> Ask<'_> {
    Ask::new(request, Instant::now() + std::time::Duration::from_mins(1))
}

#[tokio::test]
async fn the_first_target_that_is_there_serves() {
    let (one, two) = (Fake::new("one"), Fake::new("two"));
    let upstream = with_providers(CONFIG, &[two.clone(), one.clone()]);
    let key = Secret::new("sk-caller");
    let served =
        upstream.send(Ask { credential: Some(&key), ..ask(&request("mapped")) }).await.unwrap().served;
    assert_eq!(
        served,
        Served { provider: "one".into(), model: "big-1".into(), attempts: 1, is_fallback: false }
    );
    assert_eq!(one.asked(), [("big-1".to_owned(), Some("sk-caller".to_owned()))]);

    let only_two: [Arc<dyn Provider>; 1] = [two.clone()];
    let upstream = with_providers(CONFIG, &only_two);
    for model in ["mapped", "plain", "any-other"] {
        let served = upstream.send(ask(&request(model))).await.unwrap().served;
        assert_eq!((&*served.provider, &*served.model), ("two", model));
        assert_eq!(two.asked(), [(model.to_owned(), None)]);
    }
}

#[tokio::test]
async fn an_unknown_model_is_named() {
    let upstream = with_providers(CONFIG, &[Fake::new("two")]);
    // It has a route of its own, so the one for any name does not stand in.
    let error = upstream.send(ask(&request("default"))).await.err().unwrap();
    assert_eq!(error.to_string(), "no provider serves the model \"default\"");
    assert_eq!(error.label(), "unknown_model");
    let nobody = with_providers(CONFIG, &[]);
    let error = nobody.send(ask(&request("any-other"))).await.err().unwrap();
    assert!(matches!(error, UpstreamError::UnknownModel { model } if model == "any-other"));
}

#[test]
fn models_and_namespaces() {
    let upstream = with_providers(CONFIG, &[Fake::new("two")]);
    assert_eq!(upstream.models().collect::<Vec<_>>(), ["mapped", "plain"]);
    assert_eq!(upstream.namespace_of("mapped"), Some("hr"));
    assert_eq!(upstream.namespace_of("plain"), None);
    assert_eq!(upstream.namespace_of("any-other"), None);
}

#[tokio::test]
async fn without_a_key_the_built_in_faq_answers() {
    let config = config("[providers.openai]\napi_key = \"env:REFRAIN_TEST_NO_SUCH_VARIABLE\"");
    let upstream = Upstream::try_new(&config, Clock::system(), Arc::new(Switches::in_memory())).unwrap();
    assert_eq!(upstream.models().collect::<Vec<_>>(), ["default"]);
    let completion = upstream.send(ask(&request("default"))).await.unwrap();
    assert_eq!((&*completion.served.provider, &*completion.served.model), ("rules", "faq"));
    let Body::Whole(whole) = completion.body else { panic!("a stream that was not asked for") };
    assert!(whole.reply.unwrap().text.contains("semantic cache"));
    let streamed = ChatRequest { stream: true, ..request("default") };
    let Body::Stream(pieces) = upstream.send(ask(&streamed)).await.unwrap().body else { panic!("no stream") };
    let last = pieces.collect::<Vec<_>>().await.pop().unwrap().unwrap();
    assert!(matches!(last, Piece::Complete(end) if end.reply.is_some()));
}

#[test]
fn a_provider_that_cannot_be_set_up_stops_the_start_with_a_sentence() {
    for (overlay, words) in [
        (
            "[providers.x]\nkind = \"openai\"\nurl = \"http://x\"\napi_key = \"env:REFRAIN_TEST_NO_SUCH_VARIABLE\"",
            &["providers.x.api_key", "env:REFRAIN_TEST_NO_SUCH_VARIABLE", "optional = true"][..],
        ),
        (
            "[providers.x]\nkind = \"openai\"\nurl = \"http://x\"\napi_key = \"file:/\"",
            &["providers.x.api_key", "file:/", "must be readable"],
        ),
        ("[providers.x]\nkind = \"openai\"\nurl = \"http://a b\"", &["providers.x", "http://a b"]),
        ("[providers.x]\nkind = \"rules\"\nfile = \"/no/such.toml\"", &["providers.x", "/no/such.toml"]),
    ] {
        let error = try_new(overlay).err().unwrap().to_string();
        for word in words {
            assert!(error.contains(word), "{overlay}\n-> {error}\nlacks {word:?}");
        }
    }
}

#[test]
fn where_callers_bring_their_keys_ours_is_not_needed() {
    let overlay = "[auth]\nmode = \"forward\"\n[providers.openai]\nurl = \"http://127.0.0.1:1\"\n\
                   api_key = \"env:REFRAIN_TEST_NO_SUCH_VARIABLE\"";
    let upstream = try_new(overlay).unwrap();
    assert_eq!(upstream.route_of("gpt-4o").as_deref(), Some("openai/gpt-4o"));
}

#[test]
fn a_client_for_https_can_be_built() {
    let overlay = "[providers.x]\nkind = \"openai\"\nurl = \"https://example.invalid/v1\"";
    let built = try_new(overlay);
    // A machine without root certificates gets a sentence, any other a client; none a panic.
    if let Err(error) = built {
        assert!(error.to_string().contains("certificates"), "{error}");
    }
}

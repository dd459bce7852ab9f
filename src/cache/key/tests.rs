use std::collections::HashSet;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::chat::placement::Placement;
use crate::dialect::openai::request::parse;

const NEVER_IN_THE_KEY: [&str; 6] = ["user", "metadata", "stream", "stream_options", "store", "service_tier"];

fn partition(namespace: &str, tenant: &str, epoch: u64) -> Partition {
    Partition { namespace: namespace.into(), tenant: Tenant::of_credential(tenant), epoch }
}

fn key_in(partition: Partition, body: &str, loosening: &Loosening) -> ExactKey {
    let request = parse(Bytes::copy_from_slice(body.as_bytes()), 64).unwrap();
    let scope = Scope::new(partition, &request, "provider/model", loosening);
    ExactKey::new(&scope, request.question.as_ref())
}

fn key(body: &str) -> ExactKey {
    key_in(partition("n", "t", 0), body, &Loosening::default())
}

fn ask(turns: &Value) -> String {
    json!({ "model": "m", "messages": turns }).to_string()
}

/// Any JSON a provider might be sent, unknown fields included.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
        "[a-z\u{e9}\u{4e2d}\u{1f600} ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn any_request()(
        unknown in prop::collection::hash_map("x_[a-z]{1,6}", any_json(), 0..5),
        history in prop::collection::vec(("user|assistant|system", "[a-z\u{4e2d} ]{0,8}"), 0..4),
        question in "[a-z\u{4e2d} ]{1,12}",
        temperature in prop::option::of(0.0_f64..2.0),
    ) -> Value {
        let mut turns: Vec<Value> =
            history.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        turns.push(json!({ "role": "user", "content": format!("q{question}") }));
        let mut body: Map<String, Value> = unknown.into_iter().collect();
        body.insert("model".into(), "m".into());
        body.insert("messages".into(), turns.into());
        if let Some(temperature) = temperature {
            body.insert("temperature".into(), temperature.into());
        }
        body.into()
    }
}

/// Writes JSON with the keys of every object in another order, and white space between tokens.
fn rewritten(value: &Value, rotate: usize, space: &str) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            if !fields.is_empty() {
                let by = rotate % fields.len();
                fields.rotate_left(by);
            }
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{}{space}:{}", json!(name), rewritten(value, rotate, space)))
                .collect();
            format!("{{{space}{}{space}}}", fields.join(&format!("{space},")))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| rewritten(item, rotate, space)).collect();
            format!("[{space}{}]", items.join(&format!(",{space}")))
        }
        leaf => leaf.to_string(),
    }
}

/// All bodies that differ from this one in one leaf.
fn with_one_leaf_changed(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, field)| {
                with_one_leaf_changed(field).into_iter().map(|changed| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), changed);
                    Value::Object(fields)
                })
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, item)| {
                with_one_leaf_changed(item).into_iter().map(move |changed| {
                    let mut items = items.clone();
                    items[index] = changed;
                    Value::Array(items)
                })
            })
            .collect(),
        Value::String(text) => vec![Value::String(format!("{text}x"))],
        Value::Bool(value) => vec![Value::Bool(!value)],
        Value::Null => vec![Value::Bool(false)],
        Value::Number(_) => vec![json!("a string instead")],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn order_of_keys_and_white_space_never_change_the_key(
        body in any_request(), rotate in 0_usize..5, space in "[ \n\t]{0,2}",
    ) {
        prop_assert_eq!(key(&body.to_string()), key(&rewritten(&body, rotate, &space)));
    }

    #[test]
    fn any_other_leaf_always_changes_the_key(body in any_request()) {
        let mut keys = HashSet::from([key(&body.to_string())]);
        for changed in with_one_leaf_changed(&body) {
            prop_assert!(keys.insert(key(&changed.to_string())), "{} and {}", body, changed);
        }
    }

    #[test]
    fn fields_that_never_reach_the_model_never_reach_the_key(body in any_request(), value in any_json()) {
        let plain = key(&body.to_string());
        for field in ["user", "metadata", "store", "service_tier"] {
            let mut body = body.clone();
            body[field] = value.clone();
            prop_assert_eq!(plain, key(&body.to_string()), "{}", field);
        }
    }

    #[test]
    fn whole_and_stream_share_a_key(body in any_request(), usage: bool) {
        let plain = key(&body.to_string());
        let mut body = body;
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": usage });
        prop_assert_eq!(plain, key(&body.to_string()));
    }
}

#[test]
fn the_deny_list_is_what_the_design_says() {
    for field in NEVER_IN_THE_KEY {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "q" }] });
        let plain = key(&body.to_string());
        body[field] = if field == "stream" { json!(true) } else { json!({}) };
        assert_eq!(plain, key(&body.to_string()), "{field}");
    }
}

#[test]
fn number_forms_are_equal() {
    let body =
        |seed: &str| format!(r#"{{"model":"m","seed":{seed},"messages":[{{"role":"user","content":"q"}}]}}"#);
    assert_eq!(key(&body("1")), key(&body("1.0")));
    assert_eq!(key(&body("1")), key(&body("1e0")));
    assert_ne!(key(&body("1")), key(&body("2")));
    assert_ne!(key(&body("9007199254740992")), key(&body("9007199254740993")));
}

#[test]
fn partitions_never_meet() {
    let body = ask(&json!([{ "role": "user", "content": "q" }]));
    let keys: HashSet<_> = [("a", "t", 0), ("b", "t", 0), ("a", "u", 0), ("a", "t", 1)]
        .map(|(namespace, tenant, epoch)| {
            key_in(partition(namespace, tenant, epoch), &body, &Loosening::default())
        })
        .into();
    assert_eq!(keys.len(), 4);
}

#[test]
fn borders_between_parts_count() {
    let parts = |texts: &[&str]| {
        let parts: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        key(&ask(&json!([{ "role": "user", "content": parts }])))
    };
    assert_ne!(parts(&["a\nb", "c"]), parts(&["a", "b\nc"]));
    assert_ne!(parts(&["ab"]), parts(&["a", "b"]));
    assert_ne!(parts(&["ab"]), key(&ask(&json!([{ "role": "user", "content": "ab" }]))));
}

#[test]
fn a_namespace_may_leave_out_history_and_fields() {
    let with = |history: &str, system: &str, temperature: f64| {
        json!({
            "model": "m", "temperature": temperature,
            "messages": [
                { "role": "system", "content": system },
                { "role": "user", "content": history },
                { "role": "user", "content": "How do I reset my password?" },
            ],
        })
        .to_string()
    };
    let ignoring = |ignore: &[&str], body: &str| {
        let ignore: Vec<String> = ignore.iter().map(|name| (*name).to_owned()).collect();
        key_in(partition("n", "t", 0), body, &Loosening::new(&ignore))
    };
    let (a, b) = (with("hi", "s", 0.0), with("hello", "s", 1.0));
    assert_eq!(ignoring(&["history", "temperature"], &a), ignoring(&["history", "temperature"], &b));
    assert_ne!(ignoring(&["history"], &a), ignoring(&["history"], &b));
    assert_ne!(ignoring(&["temperature"], &a), ignoring(&["temperature"], &b));
    assert_ne!(ignoring(&["history"], &a), ignoring(&["history"], &with("hi", "another", 0.0)));
}

#[test]
fn a_question_that_leans_on_the_history_keeps_it() {
    let ignoring = Loosening::new(&["history".to_owned()]);
    let key = |history: &str, question: &str| {
        let turns = json!([{ "role": "user", "content": history }, { "role": "user", "content": question }]);
        key_in(partition("n", "t", 0), &ask(&turns), &ignoring)
    };
    for leaning in ["And the second one?", "Is it safe?", "shorter please", "第二个呢？"] {
        assert_ne!(key("hi", leaning), key("hello", leaning), "{leaning}");
    }
    for alone in ["How do I reset my password?", "怎么重置密码？"] {
        assert_eq!(key("hi", alone), key("hello", alone), "{alone}");
    }
}

#[test]
fn what_stands_around_the_question_is_part_of_the_key() {
    let placement = Placement::try_new(Some("(?s)^(?:.*\n)?Q: (?<question>.+)$"), None).unwrap();
    let key = |turn: &str| {
        let body = ask(&json!([{ "role": "user", "content": turn }]));
        let request = parse(Bytes::from(body), 64).unwrap().placed(&placement);
        let scope = Scope::new(partition("n", "t", 0), &request, "r", &Loosening::default());
        (scope.digest, ExactKey::new(&scope, request.question.as_ref()))
    };
    let (scope, asked) = key("one\nQ: why?");
    assert_eq!(key("one\nQ: how?").0, scope, "another question");
    assert_ne!(key("one\nQ: how?").1, asked);
    assert_ne!(key("two\nQ: why?").0, scope, "another context");
    assert_ne!(key("Q: why?").0, scope, "no context");
    assert_ne!(key("Q: why?").1, key("why?").1, "nothing around it is not nothing found");
}

#[test]
fn a_last_turn_that_is_no_question_keeps_the_history() {
    let ignoring = Loosening::new(&["history".to_owned()]);
    let after = |history: &str, last: &Value| {
        let turns =
            json!([{ "role": "user", "content": history }, { "role": "assistant", "content": "yes" }, last]);
        key_in(partition("n", "t", 0), &ask(&turns), &ignoring)
    };
    for last in [
        json!({ "role": "assistant", "content": "{" }),
        json!({ "role": "tool", "tool_call_id": "c", "content": "rain" }),
        json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://a.test/b" } }] }),
    ] {
        assert_ne!(after("Capital of France?", &last), after("Delete my account?", &last), "{last}");
    }
    let question = json!({ "role": "user", "content": "What are the opening hours of the library?" });
    assert_eq!(after("Capital of France?", &question), after("Delete my account?", &question));
}

#[test]
fn a_field_that_only_one_dialect_has_is_ignored_by_its_plain_name() {
    use crate::dialect::anthropic::request::parse;
    let key = |top_k: u64, ignore: &[&str]| {
        let body = json!({ "model": "m", "max_tokens": 9, "top_k": top_k,
            "messages": [{ "role": "user", "content": "q" }] });
        let request = parse(body.to_string().into(), 64).unwrap();
        let ignore: Vec<_> = ignore.iter().map(|name| (*name).to_owned()).collect();
        let scope = Scope::new(partition("n", "t", 0), &request, "p/m", &Loosening::new(&ignore));
        ExactKey::new(&scope, request.question.as_ref())
    };
    assert_ne!(key(1, &[]), key(2, &[]));
    assert_eq!(key(1, &["top_k"]), key(2, &["top_k"]));
}

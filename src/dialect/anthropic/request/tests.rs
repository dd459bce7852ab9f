use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::dialect::openai;

fn of(body: &Value) -> Result<Reading, BadRequest> {
    read(body.to_string().into(), 32)
}

fn asked(body: &Value) -> ChatRequest {
    of(body).unwrap().request
}

fn openai(body: &Value) -> ChatRequest {
    openai::request::parse(body.to_string().into(), 32).unwrap()
}

fn same_key(one: &ChatRequest, other: &ChatRequest) -> bool {
    one.scope == other.scope && one.question == other.question && one.model == other.model
}

/// A request with a bit of everything that both dialects can say.
fn plain() -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 1024, "temperature": 0.5, "top_p": 0.9, "stream": true,
        "system": "Be kind.", "stop_sequences": ["END"], "metadata": {"user_id": "u"}, "service_tier": "auto",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
                {"type": "text", "text": "on this picture?"}
            ]}
        ]
    })
}

#[test]
fn the_same_question_in_both_dialects_is_one() {
    let reading = of(&plain()).unwrap();
    assert!(reading.passage.is_plain(), "{:?}", reading.passage);
    let ours = reading.request;
    let theirs = openai(&json!({
        "model": "claude-sonnet-4-5", "max_tokens": 1024, "temperature": 0.5, "top_p": 0.90, "stop": ["END"],
        "user": "somebody",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}},
                {"type": "text", "text": "on this picture?"}
            ]}
        ]
    }));
    assert_eq!(ours.question.as_ref().unwrap().parts(), ["What is", "on this picture?"]);
    assert_eq!(ours.scope, theirs.scope);
    assert_eq!(ours.question, theirs.question);
    assert!(ours.stream && ours.include_usage);
    assert_eq!(ours.body, plain().to_string());
    assert_eq!(ours.body_for("m"), plain().to_string().replace("claude-sonnet-4-5", "m"));
}

#[test]
fn tools_meet_too_and_pass_through() {
    let body = json!({
        "model": "m", "max_tokens": 9,
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"a": {}}}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "messages": [
            {"role": "user", "content": "How warm is it?"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "7"}]}
        ]
    });
    let reading = of(&body).unwrap();
    assert_eq!(reading.passage, Passage::Tools);
    assert_eq!(reading.request.question, None);
    let theirs = openai(&json!({
        "model": "m", "max_tokens": 9, "tool_choice": "required", "parallel_tool_calls": false,
        "tools": [{"type": "function", "function": {
            "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {}}}}}],
        "messages": [
            {"role": "user", "content": "How warm is it?"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [
                {"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "toolu_1", "content": "7"}
        ]
    }));
    assert_eq!(reading.request.scope, theirs.scope);
}

#[test]
fn text_beside_a_tools_result_is_no_question() {
    let request = asked(&json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "7"}, {"type": "text", "text": "So?"}]}]}));
    assert_eq!(request.question, None);
    assert!(format!("{:?}", request.scope).contains("So?"));
}

#[test]
fn what_has_no_common_form_is_marked_and_named() {
    let mut plain = plain();
    plain["messages"] = json!([{"role": "user", "content": "x"}]);
    let base = asked(&plain);
    let own = |name: &str, value: Value, field: &str| {
        let mut body = plain.clone();
        body[name] = value;
        let reading = of(&body).unwrap();
        let Passage::Own(reason) = &reading.passage else { panic!("{name} is not its own") };
        assert_eq!(reason.field, field, "{reason}");
        assert_ne!(reading.request.scope, base.scope, "{name}");
        // Nobody can write the same as an OpenAI field.
        let Json::Object(fields) = &reading.request.scope else { panic!("no object") };
        assert!(
            fields.iter().any(|(name, _)| name.starts_with('\0')) || field.starts_with("messages"),
            "{name}"
        );
        reading.request
    };
    own("thinking", json!({"type": "enabled", "budget_tokens": 1024}), "thinking");
    own("top_k", json!(5), "top_k");
    own("container", json!("c"), "container");
    own("mcp_servers", json!([{"type": "url", "url": "https://x"}]), "mcp_servers");
    own("max_tokens", json!(0), "max_tokens");
    own("tomorrow", json!(true), "tomorrow");
    own("tools", json!([{"type": "web_search_20250305", "name": "web_search"}]), "tools[0]");
    own(
        "system",
        json!([{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}]),
        "system[0].citations",
    );
    let document = own(
        "messages",
        json!([{"role": "user", "content": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "The grass is green."}},
            {"type": "text", "text": "What colour is it?"}]}]),
        "messages[0].content[0]",
    );
    assert_eq!(document.question.unwrap().parts(), ["What colour is it?"]);
    let scope = format!("{:?}", document.scope);
    assert!(scope.contains("grass") && !scope.contains("colour"), "{scope}");
    let prefill = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "It is"}]);
    assert_eq!(own("messages", prefill.clone(), "messages[1]").question, None);
    let mut theirs = json!({"model": "claude-sonnet-4-5", "messages": prefill});
    for name in ["max_tokens", "temperature", "top_p"] {
        theirs[name] = plain[name].clone();
    }
    let mut ours = theirs.clone();
    ours["stop_sequences"] = json!(["END"]);
    theirs["stop"] = json!(["END"]);
    assert_ne!(asked(&ours).scope, openai(&theirs).scope);
}

#[test]
fn betas_are_part_of_the_scope() {
    let with = |betas: &[&str]| of(&plain()).unwrap().with_betas(betas.iter().copied());
    assert_eq!(with(&[]).request.scope, asked(&plain()).scope);
    assert!(with(&[" "]).passage.is_plain());
    assert_ne!(with(&["a"]).request.scope, with(&["b"]).request.scope);
    assert_eq!(with(&["a", " b", "a"]).request.scope, with(&["b", "a"]).request.scope);
    assert_eq!(with(&["a, b", "c,"]).request.scope, with(&["c", "b,a"]).request.scope);
    assert!(matches!(with(&["a"]).passage, Passage::Own(_)));
    assert!(with(&["a"]).request.scope.get("temperature").is_some());
}

#[test]
fn what_never_changes_an_answer_does_not_count() {
    let base = asked(&plain());
    for (pointer, value) in [
        ("/metadata", json!({"user_id": "other"})),
        ("/service_tier", json!("standard_only")),
        ("/stream", json!(false)),
        ("/messages/0/content/0/cache_control", json!({"type": "ephemeral", "ttl": "1h"})),
        ("/messages/0/content/0/cache_control", json!(null)),
        ("/messages/0/content", json!("Hello")),
        ("/system", json!([{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])),
    ] {
        let mut body = plain();
        *body.pointer_mut(pointer).unwrap() = value;
        assert!(same_key(&asked(&body), &base), "{pointer}");
    }
    for (name, value) in [("top_k", json!(null)), ("cache_control", json!({"type": "ephemeral"}))] {
        let mut body = plain();
        body[name] = value;
        assert!(same_key(&asked(&body), &base), "{name}");
    }
}

#[test]
fn what_is_own_counts_whole_but_for_what_is_kept() {
    let base = asked(&own());
    let kept = json!({"type": "ephemeral"});
    for place in [
        "/tools/0",
        "/tools/1",
        "/messages/4/content/0",
        "/messages/4/content/0/content/0",
        "/messages/4/content/1",
    ] {
        let mut body = own();
        body.pointer_mut(place).unwrap()["cache_control"] = kept.clone();
        assert!(same_key(&asked(&body), &base), "{place}");
    }
    for place in [
        "/tools/0",
        "/messages/0",
        "/messages/3",
        "/messages/3/content/0",
        "/messages/3/content/1/input",
        "/messages/4/content/1",
        "/thinking",
    ] {
        let mut body = own();
        body.pointer_mut(place).unwrap()["tomorrow"] = json!(1);
        assert_ne!(asked(&body).scope, base.scope, "{place}");
    }
}

#[test]
fn bad_input_says_what_and_where() {
    let text = |body: &str| read(Bytes::copy_from_slice(body.as_bytes()), 16).unwrap_err();
    for (body, param, words) in [
        ("[]", None, "an array"),
        (r#"{"model":"m","model":"n"}"#, None, "duplicate key \"model\""),
        (r#"{"messages":[{"role":"user","content":"x"}]}"#, Some("model"), "missing"),
        (r#"{"model":"m"}"#, Some("messages"), "missing"),
        (r#"{"model":"m","messages":[]}"#, Some("messages"), "at least one"),
        (r#"{"model":"m","messages":["x"]}"#, Some("messages[0]"), "a string"),
        (r#"{"model":"m","messages":[{"content":"x"}]}"#, Some("messages[0].role"), "missing"),
        (r#"{"model":"m","messages":[{"role":"user"}]}"#, Some("messages[0].content"), "missing"),
        (
            r#"{"model":"m","messages":[{"role":"user","content":4}]}"#,
            Some("messages[0].content"),
            "a number",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}"#,
            Some("messages[0].content[0].text"),
            "must be a string",
        ),
        (
            r#"{"model":"m","system":[3],"messages":[{"role":"user","content":"x"}]}"#,
            Some("system[0]"),
            "a number",
        ),
        (
            r#"{"model":"m","stream":1,"messages":[{"role":"user","content":"x"}]}"#,
            Some("stream"),
            "a number",
        ),
        (r#"{"model":"m","messages":[{"role":"user","content":"\u0000"}]}"#, None, "NUL"),
    ] {
        let error = text(body);
        assert_eq!(error.param.as_deref(), param, "{body}: {error}");
        assert!(error.message.contains(words), "{body}: {error}");
    }
}

/// The places of all leaves of a value, as JSON pointers.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| leaves(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves(value, &format!("{at}/{name}"), found));
        }
        _ => found.push(at.to_owned()),
    }
}

fn own() -> Value {
    let mut body = plain();
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048});
    body["tools"] = json!([
        {"name": "f", "description": "d", "input_schema": {"type": "object", "cache_control": 1}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    ]);
    body["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQBCg=="},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"cache_control": 2}}
        ]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "7"}], "is_error": true},
            {"type": "document", "title": "t", "citations": {"enabled": true},
             "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
        ]}),
    ]);
    body
}

#[test]
fn every_leaf_that_reaches_the_model_counts() {
    for body in [plain(), own()] {
        let base = asked(&body);
        let mut places = Vec::new();
        leaves(&body, "", &mut places);
        assert!(places.len() > 20);
        for place in places {
            let silent = ["/metadata", "/service_tier", "/stream"]
                .iter()
                .any(|name| place == *name || place.starts_with(&format!("{name}/")))
                || place.contains("/cache_control/");
            let mut changed = body.clone();
            let leaf = changed.pointer_mut(&place).unwrap();
            *leaf = match &*leaf {
                Value::String(text) => json!(format!("{text}x")),
                Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
                Value::Bool(value) => json!(!value),
                other => other.clone(),
            };
            if place == "/stream" {
                continue;
            }
            // A role that is no user's and a type that is no text are other requests too.
            let Ok(reading) = of(&changed) else { continue };
            assert_eq!(same_key(&reading.request, &base), silent, "{place}");
        }
    }
}

prop_compose! {
    fn any_turns()(pairs in vec(("\\PC{0,12}", "\\PC{0,12}"), 0..3), last in vec("\\PC{0,12}", 1..4)) -> Vec<(bool, Vec<String>)> {
        let mut turns: Vec<_> =
            pairs.into_iter().flat_map(|(user, assistant)| [(true, vec![user]), (false, vec![assistant])]).collect();
        turns.push((true, last));
        turns
    }
}

fn any_request() -> impl Strategy<Value = (Value, Value)> {
    (
        any_turns(),
        proptest::option::of(vec("\\PC{0,12}", 1..3)),
        proptest::option::of(0..100_u32),
        1..9000_u32,
        proptest::option::of(vec("[a-z]{1,4}", 1..3)),
    )
        .prop_map(|(turns, system, temperature, max_tokens, stop)| {
            let content = |texts: &[String]| match texts {
                [text] => json!(text),
                texts => texts.iter().map(|text| json!({"type": "text", "text": text})).collect(),
            };
            let messages: Vec<_> = turns
                .iter()
                .map(|(user, texts)| {
                    json!({"role": if *user { "user" } else { "assistant" }, "content": content(texts)})
                })
                .collect();
            let mut ours = json!({"model": "m", "max_tokens": max_tokens, "messages": messages});
            let mut theirs = json!({"model": "m", "max_tokens": max_tokens, "messages": []});
            if let Some(system) = system {
                ours["system"] = content(&system);
                theirs["messages"] = json!([{"role": "system", "content": content(&system)}]);
            }
            theirs["messages"].as_array_mut().unwrap().extend(messages);
            if let Some(temperature) = temperature {
                ours["temperature"] = json!(f64::from(temperature) / 100.0);
                theirs["temperature"] = ours["temperature"].clone();
            }
            if let Some(stop) = stop {
                ours["stop_sequences"] = json!(stop);
                theirs["stop"] = json!(stop);
            }
            (ours, theirs)
        })
}

proptest! {
    #[test]
    fn equal_questions_have_equal_keys_in_any_dialect((ours, theirs) in any_request()) {
        let reading = of(&ours).unwrap();
        prop_assert!(reading.passage.is_plain());
        let theirs = openai(&theirs);
        prop_assert_eq!(&reading.request.scope, &theirs.scope);
        prop_assert_eq!(&reading.request.question, &theirs.question);
    }

    #[test]
    fn hostile_bodies_never_panic(blocks in vec(any_block(), 0..4), name in "[a-z_]{0,12}") {
        let body = json!({"model": "m", name: blocks, "system": blocks, "tools": blocks,
            "messages": [{"role": "assistant", "content": blocks}, {"role": "user", "content": blocks}]});
        let _ = of(&body);
    }
}

fn any_block() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof!["text", "image", "tool_use", "tool_result", "thinking", "base64", "[ab]{0,2}"]
            .prop_map(Value::String)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name = prop_oneof!["type", "text", "content", "source", "input", "id", "name", "cache_control"];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((name, inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect()))
        ]
    })
}

#[test]
fn a_version_counts_where_it_may_mean_another_answer() {
    let plain = || super::read(plain().to_string().into(), 32).unwrap();
    let own = || {
        let body = json!({"model": "m", "max_tokens": 9, "top_k": 5, "messages": [{"role": "user", "content": "q"}]});
        super::read(body.to_string().into(), 32).unwrap()
    };
    let scope = |reading: Reading, version: Option<&str>| reading.under_version(version).request.scope;
    for known in ["2023-06-01", " 2026-10-21"] {
        assert_eq!(scope(plain(), Some(known)), scope(plain(), None), "{known}");
    }
    assert_ne!(scope(plain(), Some("2031-01-01")), scope(plain(), None));
    assert_ne!(scope(own(), Some("2023-06-01")), scope(own(), Some("2026-10-21")));
}

#[test]
fn what_anthropic_keeps_makes_a_request_stateful() {
    let reading = |extra: Value| {
        let mut body = plain();
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        super::read(body.to_string().into(), 32).unwrap().request.is_stateful
    };
    assert!(!reading(json!({})) && !reading(json!({"thread": null, "container": null})));
    for said in [json!({"thread": {"type": "create"}}), json!({"container": "container_1"})] {
        assert!(reading(said.clone()), "{said}");
    }
}

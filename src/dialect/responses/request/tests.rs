use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::dialect::cross::responses::request::to_chat;
use crate::dialect::{anthropic, openai};

fn of(body: &Value) -> Result<Reading, BadRequest> {
    read(body.to_string().into(), 32)
}

fn asked(body: &Value) -> ChatRequest {
    of(body).unwrap().request
}

fn chat(body: &Value) -> ChatRequest {
    openai::request::parse(body.to_string().into(), 32).unwrap()
}

fn same_key(one: &ChatRequest, other: &ChatRequest) -> bool {
    one.scope == other.scope && one.question == other.question && one.model == other.model
}

/// A request with a bit of everything that any provider can be told.
fn plain() -> Value {
    json!({
        "model": "gpt-5", "instructions": "Be kind.", "max_output_tokens": 1024, "temperature": 0.5,
        "top_p": 0.9, "stream": true, "metadata": {"a": "b"}, "store": true, "user": "u",
        "safety_identifier": "s", "prompt_cache_key": "k", "service_tier": "flex",
        "stream_options": {"include_obfuscation": false}, "include": ["reasoning.encrypted_content"],
        "truncation": "disabled", "background": false, "parallel_tool_calls": true, "tool_choice": "auto",
        "tools": [], "previous_response_id": null, "top_logprobs": 0, "max_tool_calls": 3,
        "reasoning": {"effort": "low", "summary": null}, "text": {"format": {"type": "text"}, "verbosity": "low"},
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [
                {"type": "output_text", "text": "Hi.", "annotations": [], "logprobs": []}]},
            {"role": "user", "content": [
                {"type": "input_text", "text": "What is"},
                {"type": "input_image", "image_url": "https://example.com/a.jpg", "detail": "auto"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "high"},
                {"type": "input_text", "text": "on this picture?"}
            ]}
        ]
    })
}

#[test]
fn the_same_question_in_both_dialects_is_one() {
    let reading = of(&plain()).unwrap();
    assert!(reading.passage.is_plain(), "{:?}", reading.passage);
    let ours = reading.request;
    let theirs = chat(&json!({
        "model": "gpt-5", "max_completion_tokens": 1024, "temperature": 0.5, "top_p": 0.90,
        "reasoning_effort": "low", "verbosity": "low", "user": "somebody",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "high"}},
                {"type": "text", "text": "on this picture?"}
            ]}
        ]
    }));
    assert_eq!(ours.question.as_ref().unwrap().parts(), ["What is", "on this picture?"]);
    assert_eq!(ours.scope, theirs.scope);
    assert_eq!(ours.question, theirs.question);
    assert!(ours.stream && ours.include_usage);
    assert_eq!(ours.body, plain().to_string());
    assert_eq!(ours.body_for("m"), plain().to_string().replace("gpt-5", "m"));
}

#[test]
fn a_plain_question_is_one_in_three_dialects() {
    let ours = asked(&json!({"model": "m", "instructions": "Be kind.", "input": "How?", "temperature": 0}));
    let messages = json!([{"role": "user", "content": "How?"}]);
    let system = json!({"role": "system", "content": "Be kind."});
    let chat = chat(&json!({"model": "m", "temperature": 0, "messages": [system, messages[0]]}));
    let body = json!({"model": "m", "temperature": 0, "system": "Be kind.", "messages": messages});
    let anthropic = anthropic::request::parse(body.to_string().into(), 32).unwrap();
    assert!(same_key(&ours, &chat) && same_key(&ours, &anthropic));
    // However it is written.
    for input in [
        json!([{"role": "user", "content": "How?"}]),
        json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How?"}]}]),
    ] {
        let body = json!({"model": "m", "instructions": "Be kind.", "input": input, "temperature": 0.0});
        assert!(same_key(&asked(&body), &ours), "{body}");
    }
}

#[test]
fn tools_meet_too_and_pass_through() {
    let body = json!({
        "model": "m", "tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": false,
        "tools": [{"type": "function", "name": "f", "description": "d", "strict": false,
            "parameters": {"type": "object", "properties": {"a": {}}}}],
        "input": [
            {"role": "user", "content": "How warm is it?"},
            {"type": "message", "role": "assistant", "status": "completed", "id": "msg_1",
             "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
            {"type": "function_call_output", "call_id": "call_1", "output": "7"}
        ]
    });
    let reading = of(&body).unwrap();
    assert_eq!(reading.passage, Passage::Tools);
    assert_eq!(reading.request.question, None);
    let theirs = chat(&json!({
        "model": "m", "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
        "tools": [{"type": "function", "function": {
            "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {}}}}}],
        "messages": [
            {"role": "user", "content": "How warm is it?"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "7"}
        ]
    }));
    assert_eq!(reading.request.scope, theirs.scope);
    // The history alone makes it a step of a program's work.
    let mut later = body;
    later.as_object_mut().unwrap().retain(|name, _| matches!(name.as_str(), "model" | "input"));
    assert_eq!(of(&later).unwrap().passage, Passage::Tools);
}

/// Fields that only a provider of this dialect can serve, and what is named as the reason.
fn own_fields() -> Vec<(&'static str, Value, &'static str)> {
    let tool = |kind: &str| json!([{"type": kind}]);
    let say =
        |part: Value| json!([{"role": "user", "content": [part, {"type": "input_text", "text": "And?"}]}]);
    vec![
        ("previous_response_id", json!("resp_1"), "previous_response_id"),
        ("conversation", json!("conv_1"), "conversation"),
        ("conversation", json!({"id": "conv_1"}), "conversation"),
        ("background", json!(true), "background"),
        ("prompt", json!({"id": "pmpt_1"}), "prompt"),
        ("truncation", json!("auto"), "truncation"),
        ("top_logprobs", json!(2), "top_logprobs"),
        ("moderation", json!({"model": "omni"}), "moderation"),
        ("context_management", json!([{"type": "compaction"}]), "context_management"),
        ("include", json!(["message.output_text.logprobs"]), "include[0]"),
        ("reasoning", json!({"effort": "high", "summary": "auto"}), "reasoning.summary"),
        ("text", json!({"format": {"type": "grammar"}}), "text.format"),
        ("stop", json!("END"), "stop"),
        ("seed", json!(1), "seed"),
        ("tomorrow", json!(true), "tomorrow"),
        ("tools", tool("web_search"), "tools[0]"),
        ("tools", tool("file_search"), "tools[0]"),
        ("tools", tool("code_interpreter"), "tools[0]"),
        ("tools", tool("computer_use_preview"), "tools[0]"),
        ("tools", tool("mcp"), "tools[0]"),
        ("tools", tool("image_generation"), "tools[0]"),
        ("tools", json!([{"type": "custom", "name": "x"}]), "tools[0]"),
        ("tool_choice", json!({"type": "allowed_tools", "mode": "auto", "tools": []}), "tool_choice"),
        (
            "input",
            say(json!({"type": "input_image", "file_id": "f", "detail": "auto"})),
            "input[0].content[0].file_id",
        ),
        ("input", say(json!({"type": "input_file", "file_url": "u"})), "input[0].content[0].file_url"),
        ("input", say(json!({"type": "input_audio", "data": "x"})), "input[0].content[0]"),
        (
            "input",
            json!([{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "And?"}]),
            "input[0]",
        ),
        ("input", json!([{"id": "msg_1"}, {"role": "user", "content": "And?"}]), "input[0]"),
        (
            "input",
            json!([{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}, {"role": "user", "content": "And?"}]),
            "input[0]",
        ),
        (
            "input",
            json!([{"role": "assistant", "content": "Hm.", "phase": "commentary"}, {"role": "user", "content": "And?"}]),
            "input[0].phase",
        ),
        (
            "input",
            json!([{"type": "web_search_call", "id": "ws_1"}, {"role": "user", "content": "And?"}]),
            "input[0]",
        ),
    ]
}

#[test]
fn what_has_no_common_form_is_marked_and_named() {
    let base = json!({"model": "m", "input": "And?"});
    let mut scopes = vec![asked(&base).scope];
    for (name, value, field) in own_fields() {
        let mut body = base.clone();
        body[name] = value.clone();
        let Reading { request, passage } = of(&body).unwrap();
        let Passage::Own(reason) = &passage else { panic!("{name}: {value} is not its own") };
        assert_eq!(reason.field, field, "{reason}");
        assert!(!scopes.contains(&request.scope), "{name}: {value} is asked already");
        // Nobody can write the same as a field of a body.
        assert!(format!("{:?}", request.scope).contains("\\0responses "), "{name}: {value}");
        assert_eq!(request.question.as_ref().map(crate::chat::Question::text), Some("And?".to_owned()));
        assert_eq!(to_chat(&body).unwrap_err(), *reason);
        scopes.push(request.scope);
    }
}

#[test]
fn a_history_kept_elsewhere_needs_no_input() {
    for (name, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("c")),
        ("prompt", json!({"id": "p"})),
    ] {
        let reading = of(&json!({"model": "m", name: value})).unwrap();
        assert!(matches!(reading.passage, Passage::Own(reason) if reason.field == name));
        assert_eq!(reading.request.question, None);
    }
}

#[test]
fn only_what_a_user_says_last_is_a_question() {
    for input in [
        json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "It is"}]),
        json!([{"role": "user", "content": "x"}, {"role": "developer", "content": "y"}]),
        json!([{"type": "function_call_output", "call_id": "c", "output": "7"}]),
        json!([{"role": "user", "content": [{"type": "input_image", "image_url": "u", "detail": "auto"}]}]),
        json!(" "),
    ] {
        assert_eq!(asked(&json!({"model": "m", "input": input})).question, None, "{input}");
    }
}

#[test]
fn what_never_changes_an_answer_does_not_count() {
    let base = asked(&plain());
    for (name, value) in [
        ("metadata", json!({"a": "c"})),
        ("store", json!(false)),
        ("user", json!("v")),
        ("safety_identifier", json!("t")),
        ("prompt_cache_key", json!("l")),
        ("prompt_cache_retention", json!("24h")),
        ("prompt_cache_options", json!({"mode": "explicit"})),
        ("service_tier", json!("priority")),
        ("stream", json!(false)),
        ("stream_options", json!(null)),
        ("include", json!([])),
        ("include", json!(["web_search_call.action.sources"])),
        ("conversation", json!(null)),
    ] {
        let mut body = plain();
        body[name] = value;
        assert!(same_key(&asked(&body), &base), "{name}");
    }
    let mut body = plain();
    body["input"][1]["content"][0]["prompt_cache_breakpoint"] = json!({"mode": "explicit"});
    assert!(same_key(&asked(&body), &base));
}

#[test]
fn bad_input_says_what_and_where() {
    let text = |body: &str| read(Bytes::copy_from_slice(body.as_bytes()), 16).unwrap_err();
    for (body, param, words) in [
        ("[]", None, "an array"),
        (r#"{"model":"m","model":"n"}"#, None, "duplicate key \"model\""),
        (r#"{"input":"x"}"#, Some("model"), "missing"),
        (r#"{"model":"m"}"#, Some("input"), "missing"),
        (r#"{"model":"m","input":null}"#, Some("input"), "missing"),
        (r#"{"model":"m","input":[]}"#, Some("input"), "at least one"),
        (r#"{"model":"m","input":3}"#, Some("input"), "a number"),
        (r#"{"model":"m","previous_response_id":"r","input":3}"#, Some("input"), "a number"),
        (r#"{"model":"m","input":["x"]}"#, Some("input[0]"), "a string"),
        (r#"{"model":"m","input":[{"type":7}]}"#, Some("input[0].type"), "a number"),
        (r#"{"model":"m","input":[{"type":"message","content":"x"}]}"#, Some("input[0].role"), "missing"),
        (r#"{"model":"m","input":[{"role":1,"content":"x"}]}"#, Some("input[0].role"), "a number"),
        (r#"{"model":"m","input":[{"role":"user"}]}"#, Some("input[0].content"), "missing"),
        (r#"{"model":"m","input":[{"role":"user","content":4}]}"#, Some("input[0].content"), "a number"),
        (
            r#"{"model":"m","input":[{"role":"user","content":["x"]}]}"#,
            Some("input[0].content[0]"),
            "a string",
        ),
        (
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text"}]}]}"#,
            Some("input[0].content[0].text"),
            "must be a string",
        ),
        (r#"{"model":"m","instructions":[],"input":"x"}"#, Some("instructions"), "an array"),
        (r#"{"model":"m","stream":1,"input":"x"}"#, Some("stream"), "a number"),
        (r#"{"model":"m","input":"\u0000"}"#, None, "NUL"),
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

/// What is said in many ways, much of it for this dialect's providers only.
fn own() -> Value {
    let mut body = plain();
    body["previous_response_id"] = json!("resp_1");
    body["reasoning"]["summary"] = json!("auto");
    body["tools"] = json!([
        {"type": "function", "name": "f", "description": "d", "strict": true, "parameters": {"type": "object", "store": 1}},
        {"type": "web_search", "search_context_size": "low"}
    ]);
    body["input"].as_array_mut().unwrap().splice(1..1, [
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}),
        json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file", "file_url": "u"}]}),
    ]);
    body
}

#[test]
fn every_leaf_that_reaches_the_model_counts() {
    const SILENT: [&str; 9] = [
        "/metadata/",
        "/store",
        "/user",
        "/safety_identifier",
        "/prompt_cache_key",
        "/service_tier",
        "/stream_options/",
        "/stream",
        "/max_tool_calls",
    ];
    for (body, kept) in [(plain(), false), (own(), true)] {
        let base = asked(&body);
        let mut places = Vec::new();
        leaves(&body, "", &mut places);
        assert!(places.len() > 20);
        for place in places {
            let silent = SILENT.iter().any(|name| place == *name || name.ends_with('/') && place.starts_with(name))
                // In a conversation that nobody else can be told, items stand as they came.
                || !kept && place == "/input/2/id";
            let mut changed = body.clone();
            let leaf = changed.pointer_mut(&place).unwrap();
            *leaf = match &*leaf {
                Value::String(text) => json!(format!("{text}x")),
                Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
                Value::Bool(value) => json!(!value),
                Value::Null => json!("x"),
                other => other.clone(),
            };
            // A type that is no text and the like are other requests too.
            let Ok(reading) = of(&changed) else { continue };
            // Calls in parallel or one by one are the same without tools.
            let silent = silent || !kept && place == "/parallel_tool_calls";
            assert_eq!(same_key(&reading.request, &base), silent, "{place}");
        }
    }
}

fn any_content(texts: &[String], kind: &str) -> Value {
    match texts {
        [text] => json!(text),
        texts => texts.iter().map(|text| json!({"type": kind, "text": text})).collect(),
    }
}

/// A question in this dialect and as a client of chat completions would ask it.
fn any_question() -> impl Strategy<Value = (Value, Value)> {
    let turns = (vec(("\\PC{0,12}", vec("\\PC{0,12}", 1..3)), 0..3), vec("\\PC{0,12}", 1..4));
    let settings = (option::of("\\PC{0,12}"), option::of(0..100_u32), option::of(1..9000_u32));
    (turns, settings).prop_map(|((pairs, last), (instructions, temperature, limit))| {
        let mut ours = json!({"model": "m", "input": []});
        let mut theirs = json!({"model": "m", "messages": []});
        let mut say = |role: &str, texts: &[String], kind: &str| {
            ours["input"]
                .as_array_mut()
                .unwrap()
                .push(json!({"role": role, "content": any_content(texts, kind)}));
            let content = any_content(texts, "text");
            theirs["messages"].as_array_mut().unwrap().push(json!({"role": role, "content": content}));
        };
        for (user, assistant) in pairs {
            say("user", &[user], "input_text");
            say("assistant", &assistant, "output_text");
        }
        say("user", &last, "input_text");
        if let Some(instructions) = instructions {
            let system = json!({"role": "system", "content": instructions});
            theirs["messages"].as_array_mut().unwrap().insert(0, system);
            ours["instructions"] = json!(instructions);
        }
        if let Some(temperature) = temperature {
            ours["temperature"] = json!(f64::from(temperature) / 100.0);
            theirs["temperature"] = ours["temperature"].clone();
        }
        if let Some(limit) = limit {
            ours["max_output_tokens"] = json!(limit);
            theirs["max_completion_tokens"] = json!(limit);
        }
        (ours, theirs)
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "function",
            "user",
            "assistant",
            "input_text",
            "output_text",
            "reasoning_text",
            "input_image",
            "completed",
            "auto",
            "[ab]{0,2}"
        ]
        .prop_map(Value::String)
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let name = prop_oneof![
            "type",
            "role",
            "text",
            "content",
            "output",
            "call_id",
            "name",
            "arguments",
            "status",
            "id",
            "image_url",
            "parameters",
            "strict",
            "summary",
            "format",
            "effort",
            "prompt_cache_breakpoint"
        ];
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            vec((name, inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect()))
        ]
    })
}

/// An item that crosses, most of them.
fn any_item() -> impl Strategy<Value = Value> {
    let text = "[a-z]{0,3}";
    prop_oneof![
        (prop_oneof!["user", "developer", "assistant"], text)
            .prop_map(|(role, text)| json!({"role": role, "content": text})),
        vec(text, 0..3).prop_map(|texts| json!({"role": "user", "content": any_parts(&texts, "input_text")})),
        vec(text, 0..3).prop_map(|texts| json!({"type": "message", "id": "m", "status": "completed",
            "role": "assistant", "content": any_parts(&texts, "output_text")})),
        (text, text).prop_map(|(id, arguments)| json!({"type": "function_call", "call_id": id, "name": "f",
            "arguments": arguments})),
        (text, text).prop_map(
            |(id, output)| json!({"type": "function_call_output", "call_id": id, "output": output})
        ),
        "[a-z]{1,3}".prop_map(|text| json!({"type": "reasoning", "id": "r", "summary": [],
            "content": [{"type": "reasoning_text", "text": text}]})),
    ]
}

fn any_parts(texts: &[String], kind: &str) -> Value {
    texts.iter().map(|text| json!({"type": kind, "text": text})).collect()
}

fn any_field() -> impl Strategy<Value = (String, Value)> {
    let well = prop_oneof![
        Just(("instructions", json!("x"))),
        Just(("tools", json!([{"type": "function", "name": "f", "strict": true}]))),
        Just(("tools", json!([]))),
        Just(("tool_choice", json!("required"))),
        Just(("parallel_tool_calls", json!(false))),
        Just(("text", json!({"format": {"type": "json_object"}, "verbosity": "low"}))),
        Just(("reasoning", json!({"effort": "low"}))),
        Just(("include", json!(["reasoning.encrypted_content"]))),
        Just(("stream", json!(true))),
        Just(("store", json!(true))),
        Just(("max_output_tokens", json!(9))),
    ]
    .prop_map(|(name, value)| (name.to_owned(), value));
    let odd = prop_oneof!["tools", "tool_choice", "text", "reasoning", "include", "[a-z_]{1,8}"];
    prop_oneof![5 => well, 1 => (odd, any_value())]
}

/// Any body, more or less in this dialect.
fn any_body() -> impl Strategy<Value = Value> {
    let item = prop_oneof![12 => any_item(), 1 => any_value()];
    (vec(item, 1..6), vec(any_field(), 0..4)).prop_map(|(input, fields)| {
        let mut body = json!({"model": "m"});
        for (name, value) in fields {
            body[name] = value;
        }
        body["input"] = input.into();
        body
    })
}

proptest! {
    #[test]
    fn equal_questions_have_equal_keys_in_any_dialect((ours, theirs) in any_question()) {
        let reading = of(&ours).unwrap();
        prop_assert!(reading.passage.is_plain());
        let theirs = chat(&theirs);
        prop_assert_eq!(&reading.request.scope, &theirs.scope);
        prop_assert_eq!(&reading.request.question, &theirs.question);
    }

    /// What a provider of chat completions is asked has the key under which its answer is kept.
    #[test]
    fn the_key_is_that_of_the_crossed_request((ours, _) in any_question()) {
        prop_assert!(same_key(&asked(&ours), &chat(&to_chat(&ours).unwrap())));
    }

    #[test]
    fn the_passage_says_whether_it_crosses(body in any_body()) {
        let Ok(Reading { request, passage }) = of(&body) else { return Ok(()) };
        if let Ok(crossed) = to_chat(&body) {
            prop_assert!(!matches!(passage, Passage::Own(_)), "{:?}", passage);
            if let Ok(crossed) = openai::request::parse(crossed.to_string().into(), 64) {
                prop_assert_eq!(request.scope, crossed.scope);
            }
        } else {
            prop_assert!(matches!(passage, Passage::Own(_)));
            let scope = format!("{:?}", request.scope);
            prop_assert!(scope.contains("\\0responses "), "{}", scope);
        }
    }
}

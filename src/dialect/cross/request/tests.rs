use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::dialect::{anthropic, openai};

fn asked(messages: &Value) -> Value {
    json!({"model": "m", "max_tokens": 10, "messages": messages})
}

/// What is wrong when `body` goes to OpenAI with another field in it.
fn refused_openai(name: &str, value: Value) -> String {
    let mut body = asked(&json!([{"role": "user", "content": "x"}]));
    body[name] = value;
    to_openai(&body).unwrap_err().field
}

fn refused_anthropic(name: &str, value: Value) -> String {
    let mut body = asked(&json!([{"role": "user", "content": "x"}]));
    body[name] = value;
    to_anthropic(&body).unwrap_err().field
}

/// A whole piece of an agent's work, as Anthropic's documentation shows it.
fn work() -> Value {
    json!({
        "model": "claude-opus-4-6", "max_tokens": 1024, "stream": true, "temperature": 1.0, "top_p": 0.5,
        "stop_sequences": ["\n\nHuman:"],
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be right."}],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "tools": [{
            "name": "get_weather", "description": "Get the current weather in a given location", "strict": true,
            "input_schema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
        }],
        "tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": true},
        "messages": [
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "text", "text": "What is the weather like there?"}
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I'll look."},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"location": "Paris"}},
                {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "15 degrees"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no location", "is_error": true},
                {"type": "text", "text": "Well?"}
            ]},
            {"role": "assistant", "content": "It is warm."},
            {"role": "system", "content": "Now be long."},
            {"role": "user", "content": "Go on."}
        ]
    })
}

#[test]
fn an_agents_work_in_openais_words() {
    let expected = json!({
        "model": "claude-opus-4-6", "max_tokens": 1024, "stream": true,
        "stream_options": {"include_usage": true},
        "temperature": 1.0, "top_p": 0.5, "stop": ["\n\nHuman:"], "reasoning_effort": "low",
        "response_format": {"type": "json_schema",
            "json_schema": {"name": "answer", "strict": true, "schema": {"type": "object"}}},
        "tools": [{"type": "function", "function": {
            "name": "get_weather", "description": "Get the current weather in a given location", "strict": true,
            "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
        }}],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}}, "parallel_tool_calls": false,
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be right."}]},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQ"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "text", "text": "What is the weather like there?"}
            ]},
            {"role": "assistant", "content": "I'll look.", "tool_calls": [
                {"id": "toolu_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"location\":\"Paris\"}"}},
                {"id": "toolu_2", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": "toolu_1", "content": "15 degrees"},
            {"role": "tool", "tool_call_id": "toolu_2", "content": "[tool error] no location"},
            {"role": "user", "content": "Well?"},
            {"role": "assistant", "content": "It is warm."},
            {"role": "system", "content": "Now be long."},
            {"role": "user", "content": "Go on."}
        ]
    });
    assert_eq!(to_openai(&work()), Ok(expected.clone()));
    assert_eq!(to_anthropic(&expected), Ok(work()));
}

#[test]
fn what_never_changes_an_answer_stays_behind() {
    let kept = json!({"type": "ephemeral"});
    let body = json!({
        "model": "m", "max_tokens": 1, "metadata": {"user_id": "u"}, "service_tier": "auto", "cache_control": kept,
        "thinking": null, "system": [{"type": "text", "text": "s", "cache_control": kept}],
        "tools": [{"type": "custom", "name": "f", "input_schema": {}, "cache_control": kept}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": kept, "citations": null}]}]
    });
    let plain = json!({
        "model": "m", "max_tokens": 1, "system": "s", "tools": [{"name": "f", "input_schema": {}}],
        "messages": [{"role": "user", "content": "x"}]
    });
    assert_eq!(to_openai(&body), to_openai(&plain));
    let mut body = asked(&json!([{"role": "user", "content": "x"}]));
    let plain = to_anthropic(&body);
    for (name, value) in [
        ("user", json!("u")),
        ("store", json!(true)),
        ("metadata", json!({"a": "b"})),
        ("service_tier", json!("flex")),
        ("safety_identifier", json!("s")),
        ("prompt_cache_key", json!("k")),
        ("stream_options", json!({"include_usage": true})),
        ("n", json!(1)),
        ("logprobs", json!(false)),
        ("top_logprobs", json!(0)),
        ("presence_penalty", json!(0.0)),
        ("frequency_penalty", json!(0)),
        ("logit_bias", json!({})),
        ("modalities", json!(["text"])),
        ("response_format", json!({"type": "text"})),
        ("parallel_tool_calls", json!(true)),
        ("seed", json!(null)),
    ] {
        body[name] = value;
        assert_eq!(to_anthropic(&body), plain, "{name}");
    }
}

#[test]
fn what_openai_cannot_say_is_named() {
    for (name, value, field) in [
        ("thinking", json!({"type": "enabled", "budget_tokens": 1024}), "thinking"),
        ("thinking", json!({"type": "disabled"}), "thinking"),
        ("top_k", json!(3), "top_k"),
        ("max_tokens", json!(0), "max_tokens"),
        ("container", json!("c"), "container"),
        ("mcp_servers", json!([]), "mcp_servers"),
        ("inference_geo", json!("eu"), "inference_geo"),
        ("tomorrow", json!(false), "tomorrow"),
        ("tools", json!([{"type": "web_search_20250305", "name": "web_search"}]), "tools[0]"),
        ("tools", json!([{"name": "f"}]), "tools[0].input_schema"),
        (
            "tools",
            json!([{"name": "f", "input_schema": {}, "defer_loading": true}]),
            "tools[0].defer_loading",
        ),
        ("tool_choice", json!({"type": "tomorrow"}), "tool_choice"),
        ("output_config", json!({"effort": "max"}), "output_config.effort"),
        ("output_config", json!({"tomorrow": 1}), "output_config.tomorrow"),
        ("system", json!([{"type": "text", "text": "x", "citations": [1]}]), "system[0].citations"),
        ("messages", json!([]), "messages"),
    ] {
        assert_eq!(refused_openai(name, value), field);
    }
    let block = |block: Value| {
        let body =
            asked(&json!([{"role": "assistant", "content": [block]}, {"role": "user", "content": [block]}]));
        let mut fields = vec![to_openai(&body).unwrap_err().field];
        let body = asked(&json!([{"role": "user", "content": [block]}]));
        fields.extend(to_openai(&body).err().map(|reason| reason.field));
        fields
    };
    let both = ["messages[0].content[0]"; 2];
    assert_eq!(block(json!({"type": "document", "source": {}})), both);
    assert_eq!(block(json!({"type": "thinking", "thinking": "x", "signature": "s"})), both);
    assert_eq!(block(json!({"type": "redacted_thinking", "data": "x"})), both);
    assert_eq!(block(json!({"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}})), both);
    let file = json!({"type": "image", "source": {"type": "file", "file_id": "f"}});
    assert_eq!(block(file), ["messages[0].content[0]", "messages[0].content[0].source"]);
    for (messages, field) in [
        (json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "It is"}]), "messages[1]"),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "x"},
                {"type": "tool_result", "tool_use_id": "t", "content": "7"}]}]),
            "messages[0].content[1]",
        ),
        (
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "image", "source": {"type": "url", "url": "https://x"}}]}]}]),
            "messages[0].content[0].content[0]",
        ),
        (
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "[tool error] x"}]}]),
            "messages[0].content[0].content",
        ),
        (
            json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}},
                {"type": "text", "text": "x"}]}, {"role": "user", "content": "x"}]),
            "messages[0].content[1]",
        ),
    ] {
        assert_eq!(to_openai(&asked(&messages)).unwrap_err().field, field);
    }
}

#[test]
fn what_anthropic_cannot_say_is_named() {
    for (name, value, field) in [
        ("temperature", json!(1.1), "temperature"),
        ("n", json!(2), "n"),
        ("logprobs", json!(true), "logprobs"),
        ("top_logprobs", json!(2), "top_logprobs"),
        ("seed", json!(0), "seed"),
        ("presence_penalty", json!(0.1), "presence_penalty"),
        ("logit_bias", json!({"50256": -100}), "logit_bias"),
        ("audio", json!({"voice": "alloy", "format": "mp3"}), "audio"),
        ("modalities", json!(["text", "audio"]), "modalities"),
        ("prediction", json!({"type": "content", "content": "x"}), "prediction"),
        ("response_format", json!({"type": "json_object"}), "response_format"),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}),
            "response_format.json_schema",
        ),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": true, "description": "d"}}),
            "response_format.json_schema.description",
        ),
        ("reasoning_effort", json!("minimal"), "reasoning_effort"),
        ("verbosity", json!("low"), "verbosity"),
        ("web_search_options", json!({}), "web_search_options"),
        ("functions", json!([{"name": "f"}]), "functions"),
        ("function_call", json!("auto"), "function_call"),
        ("max_completion_tokens", json!(11), "max_tokens"),
        ("tools", json!([{"type": "custom", "custom": {"name": "f"}}]), "tools[0].custom"),
        ("tool_choice", json!({"type": "allowed_tools", "allowed_tools": {}}), "tool_choice.allowed_tools"),
        ("tomorrow", json!(0), "tomorrow"),
        ("messages", json!([{"role": "system", "content": "x"}]), "messages"),
        ("messages", json!([{"role": "function", "name": "f", "content": "x"}]), "messages[0].role"),
        ("messages", json!([{"role": "user", "name": "bob", "content": "x"}]), "messages[0].name"),
        (
            "messages",
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]),
            "messages[1]",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]),
            "messages[0].content[0]",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "low"}}]}]),
            "messages[0].content[0].image_url.detail",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/bmp;base64,x"}}]}]),
            "messages[0].content[0].image_url",
        ),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "gs://bucket/a.png"}}]}]),
            "messages[0].content[0].image_url",
        ),
        (
            "messages",
            json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                "function": {"name": "f", "arguments": "{\"a"}}]}, {"role": "user", "content": "x"}]),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            "messages",
            json!([{"role": "assistant", "content": "x", "reasoning_content": "hm"}, {"role": "user", "content": "x"}]),
            "messages[0].reasoning_content",
        ),
        (
            "messages",
            json!([{"role": "assistant", "content": null, "refusal": "no"}, {"role": "user", "content": "x"}]),
            "messages[0].refusal",
        ),
    ] {
        assert_eq!(refused_anthropic(name, value), field);
    }
}

#[test]
fn what_anthropic_refuses_and_openai_takes_is_named() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    for blank in ["", " ", "\n", "\u{3000}"] {
        let part = json!([{"type": "text", "text": "x"}, {"type": "text", "text": blank}]);
        for (name, value, field) in [
            ("stop", json!(blank), "stop"),
            ("stop", json!(["END", blank]), "stop"),
            ("messages", json!([{"role": "user", "content": blank}]), "messages[0].content[0]"),
            ("messages", json!([{"role": "user", "content": part}]), "messages[0].content[1]"),
            (
                "messages",
                json!([{"role": "assistant", "content": blank}, {"role": "user", "content": "x"}]),
                "messages[0].content",
            ),
            (
                "messages",
                json!([{"role": "assistant", "content": part, "tool_calls": [call("c")]}, {"role": "user", "content": "x"}]),
                "messages[0].content[1]",
            ),
            (
                "messages",
                json!([{"role": "system", "content": "x"}, {"role": "system", "content": blank}, {"role": "user", "content": "x"}]),
                "messages",
            ),
        ] {
            assert_eq!(refused_anthropic(name, value), field, "{blank:?}");
        }
    }
    for (messages, field) in [
        (json!([{"role": "user", "content": []}]), "messages[0].content"),
        (
            json!([{"role": "assistant", "content": null}, {"role": "user", "content": "x"}]),
            "messages[0].content",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a.b/c.png"}}]}]),
            "messages[0].content[0].image_url",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [call("functions.f:0")]}, {"role": "user", "content": "x"}]),
            "messages[0].tool_calls[0].id",
        ),
        (json!([{"role": "tool", "tool_call_id": "", "content": "x"}]), "messages[0].tool_call_id"),
    ] {
        assert_eq!(refused_anthropic("messages", messages), field);
    }
}

#[test]
fn an_empty_list_says_nothing() {
    let messages = json!([{"role": "user", "content": "x"}]);
    let ours = json!({"model": "m", "max_tokens": 9, "messages": messages});
    let mut empty = ours.clone();
    for name in ["system", "tools", "stop_sequences"] {
        empty[name] = json!([]);
    }
    assert_eq!(to_openai(&empty), to_openai(&ours));
    let key = |body: &Value| anthropic::request::parse(body.to_string().into(), 16).unwrap().scope;
    assert_eq!(key(&empty), key(&ours));
    let mut theirs = ours.clone();
    for name in ["tools", "stop"] {
        theirs[name] = json!([]);
    }
    theirs["parallel_tool_calls"] = json!(false);
    assert_eq!(to_anthropic(&theirs).unwrap(), ours);
}

#[test]
fn a_limit_is_never_missing() {
    let messages = json!([{"role": "user", "content": "x"}]);
    let limit = |body: Value| to_anthropic(&body).unwrap()["max_tokens"].clone();
    assert_eq!(limit(json!({"messages": messages})), DEFAULT_MAX_TOKENS);
    assert_eq!(limit(json!({"messages": messages, "max_tokens": null})), DEFAULT_MAX_TOKENS);
    assert_eq!(limit(json!({"messages": messages, "max_completion_tokens": 7})), 7);
    assert_eq!(limit(json!({"messages": messages, "max_completion_tokens": 7, "max_tokens": 7})), 7);
}

#[test]
fn instructions_before_the_conversation_are_the_system_prompt() {
    let crossed = |messages: &Value| to_anthropic(&asked(messages)).unwrap();
    let body = crossed(&json!([
        {"role": "developer", "content": "a"},
        {"role": "system", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": "x"}
    ]));
    assert_eq!(body["system"], json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]));
    assert_eq!(body["messages"], json!([{"role": "user", "content": "x"}]));
    let body = crossed(&json!([{"role": "developer", "content": "a"}, {"role": "user", "content": "x"}]));
    assert_eq!(body["system"], "a");
}

#[test]
fn an_answers_own_fields_may_come_back() {
    let body = to_anthropic(&asked(&json!([
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "refusal": null, "annotations": [], "audio": null, "reasoning_content": "",
         "function_call": null, "tool_calls": [
            {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "[tool error] a"}, {"type": "text", "text": "b"}]}
    ])))
    .unwrap();
    let expected = json!([
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": true,
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]}
    ]);
    assert_eq!(body["messages"], expected);
    // Thoughts that were OpenAI's at first.
    let body = asked(&json!([
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}, "caller": {"type": "direct"}}]},
        {"role": "user", "content": "x"}
    ]));
    assert_eq!(to_openai(&body).unwrap()["messages"][0]["reasoning_content"], "hm");
}

#[test]
fn every_choice_of_tools_comes_back() {
    for choice in [
        json!({"type": "auto"}),
        json!({"type": "any"}),
        json!({"type": "none"}),
        json!({"type": "tool", "name": "f"}),
        json!({"type": "auto", "disable_parallel_tool_use": true}),
        json!({"type": "any", "disable_parallel_tool_use": true}),
        json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true}),
    ] {
        let mut body = asked(&json!([{"role": "user", "content": "x"}]));
        body["tools"] = json!([{"name": "f", "input_schema": {"type": "object"}}]);
        body["tool_choice"] = choice;
        assert_eq!(to_anthropic(&to_openai(&body).unwrap()), Ok(body));
    }
    let mut body = asked(&json!([{"role": "user", "content": "x"}]));
    body["parallel_tool_calls"] = json!(false);
    assert_eq!(to_anthropic(&body).unwrap().get("tool_choice"), None);
    body["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
    let crossed = to_anthropic(&body).unwrap();
    assert_eq!(crossed["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(crossed["tools"][0]["input_schema"], json!({"type": "object", "properties": {}}));
}

/// Never blank, since Anthropic takes no such.
fn text() -> impl Strategy<Value = Value> {
    "\\PC{0,12}[a-z]".prop_map(|text| json!({"type": "text", "text": text}))
}

fn texts() -> impl Strategy<Value = Value> {
    vec(text(), 1..3).prop_map(content::joined)
}

fn image() -> impl Strategy<Value = Value> {
    prop_oneof![
        ("(png|gif|jpeg|webp)", "[A-Za-z0-9+/]{0,12}").prop_map(|(kind, data)| {
            let media_type = format!("image/{kind}");
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }),
        "https://[a-z]{1,5}\\.com/[a-z?=;,]{0,8}"
            .prop_map(|url| json!({"type": "image", "source": {"type": "url", "url": url}})),
    ]
}

fn input() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(2, 6, 3, |inner| vec(inner, 0..3).prop_map(Value::Array));
    vec(("\\PC{0,4}", value), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn results() -> impl Strategy<Value = Vec<Value>> {
    let content = prop_oneof![texts(), "\\PC{0,2}".prop_map(Value::from)];
    let result = ("[a-z0-9_]{1,6}", content, any::<bool>()).prop_map(|(id, content, failed)| {
        let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        if failed {
            result["is_error"] = true.into();
        }
        result
    });
    vec(result, 0..3)
}

fn users_turn() -> impl Strategy<Value = Value> {
    (results(), vec(prop_oneof![text(), image()], 0..3)).prop_filter_map(
        "says something",
        |(mut blocks, said)| {
            blocks.extend(said);
            (!blocks.is_empty()).then(|| json!({"role": "user", "content": content::joined(blocks)}))
        },
    )
}

fn assistants_turn() -> impl Strategy<Value = Value> {
    let call = ("[a-z0-9_]{1,6}", "[a-z]{1,6}", input())
        .prop_map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    // An empty text beside a call is no block, and neither dialect's models say one.
    let said = vec(text(), 0..3);
    (said, vec(call, 0..3)).prop_filter_map("says something", |(mut blocks, calls)| {
        blocks.extend(calls);
        (!blocks.is_empty()).then(|| json!({"role": "assistant", "content": content::joined(blocks)}))
    })
}

fn settings() -> impl Strategy<Value = Value> {
    let tool = ("[a-z]{1,6}", option::of("\\PC{0,8}"), input(), option::of(any::<bool>())).prop_map(
        |(name, words, schema, strict)| {
            let mut tool = json!({"name": name, "input_schema": schema});
            if let Some(words) = words {
                tool["description"] = words.into();
            }
            if let Some(strict) = strict {
                tool["strict"] = strict.into();
            }
            tool
        },
    );
    (
        option::of(texts()),
        option::of(0..=100_u8),
        option::of(vec("\\PC{0,4}[a-z]", 1..3)),
        option::of(vec(tool, 1..3)),
        option::of(any::<bool>()),
        option::of("(low|high)"),
        option::of(input()),
        1..9999_u32,
    )
        .prop_map(|(system, temperature, stop, tools, stream, effort, schema, max_tokens)| {
            let mut config = Map::new();
            config.extend(effort.map(|word| ("effort".to_owned(), word.into())));
            config.extend(
                schema.map(|schema| ("format".to_owned(), json!({"type": "json_schema", "schema": schema}))),
            );
            let fields = [
                ("system", system),
                ("temperature", temperature.map(|value| json!(f64::from(value) / 100.0))),
                ("stop_sequences", stop.map(Value::from)),
                ("tools", tools.map(Value::from)),
                ("stream", stream.map(Value::from)),
                ("output_config", (!config.is_empty()).then(|| config.into())),
                ("max_tokens", Some(max_tokens.into())),
                ("model", Some("m".into())),
            ];
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect::<Map<_, _>>()
                .into()
        })
}

prop_compose! {
    fn any_expressible()(
        mut body in settings(), pairs in vec((users_turn(), assistants_turn()), 0..4), last in users_turn(),
    ) -> Value {
        let mut turns: Vec<Value> = pairs.into_iter().flat_map(|(user, assistant)| [user, assistant]).collect();
        turns.push(last);
        body["messages"] = turns.into();
        body
    }
}

proptest! {
    #[test]
    fn to_openai_and_back(body in any_expressible()) {
        let crossed = to_openai(&body).unwrap();
        prop_assert_eq!(to_anthropic(&crossed).unwrap(), body.clone());
        // What came back says the same again.
        prop_assert_eq!(to_openai(&to_anthropic(&crossed).unwrap()).unwrap(), crossed);
    }

    #[test]
    fn crossed_or_not_it_is_one_key(body in any_expressible()) {
        // Keys are sorted in a scope, and so in what it holds of a tool's input.
        let body = sorted(body);
        let reading = anthropic::request::read(body.to_string().into(), 32).unwrap();
        prop_assert!(!matches!(reading.passage, anthropic::request::Passage::Own(_)));
        let ours = reading.request;
        let theirs = to_openai(&body).unwrap();
        let theirs = openai::request::parse(theirs.to_string().into(), 32).unwrap();
        // Beside a tool's result no text is a question here, see `anthropic::request`.
        if ours.question.is_some() || theirs.question.is_none() {
            prop_assert_eq!(ours.scope, theirs.scope);
            prop_assert_eq!(ours.question, theirs.question);
        }
    }

    #[test]
    fn another_leaf_is_another_key_and_another_request(body in any_expressible(), place in any::<prop::sample::Index>()) {
        let mut places = Vec::new();
        leaves_in(&body, "", &mut places);
        places.retain(|place| place != "/stream");
        let place = &places[place.index(places.len())];
        let mut changed = body.clone();
        let leaf = changed.pointer_mut(place).unwrap();
        *leaf = match &*leaf {
            Value::String(text) => json!(format!("{text}x")),
            Value::Number(number) => json!(u8::from(number.as_f64() == Some(0.0))),
            Value::Bool(value) => json!(!value),
            _ => json!(0),
        };
        let read = |body: &Value| anthropic::request::read(body.to_string().into(), 32).map(|reading| reading.request);
        if let Ok(changed) = read(&changed) {
            let base = read(&body).unwrap();
            prop_assert!(changed.scope != base.scope || changed.question != base.question || changed.model != base.model, "{}", place);
        }
        if let Ok(changed) = to_openai(&changed) {
            prop_assert_ne!(changed, to_openai(&body).unwrap(), "{}", place);
        }
        let theirs = to_openai(&body).unwrap();
        let mut places = Vec::new();
        leaves_in(&theirs, "", &mut places);
        // The label of a schema, and the usage of a stream, say nothing to Anthropic.
        places.retain(|place| !place.ends_with("/json_schema/name") && !place.starts_with("/stream"));
        for place in places {
            let mut changed = theirs.clone();
            let leaf = changed.pointer_mut(&place).unwrap();
            if let Value::String(text) = &*leaf {
                *leaf = json!(format!("x{text}"));
                prop_assert!(to_anthropic(&changed).map_or(true, |changed| changed != body), "{}", place);
            }
        }
    }

    #[test]
    fn an_unknown_field_is_never_dropped(body in any_expressible(), place in any::<prop::sample::Index>()) {
        let mut objects = Vec::new();
        objects_in(&body, "", &mut objects);
        let place = &objects[place.index(objects.len())];
        let mut changed = body.clone();
        changed.pointer_mut(place).unwrap()["tomorrow"] = json!(1);
        match to_openai(&changed) {
            Ok(crossed) => prop_assert_ne!(crossed, to_openai(&body).unwrap(), "{}", place),
            Err(reason) => prop_assert!(reason.field.ends_with("tomorrow"), "{}", reason),
        }
        let theirs = to_openai(&body).unwrap();
        let mut objects = Vec::new();
        objects_in(&theirs, "", &mut objects);
        objects.retain(|place| !place.starts_with("/stream_options"));
        for place in objects {
            let mut changed = theirs.clone();
            changed.pointer_mut(&place).unwrap()["tomorrow"] = json!(1);
            match to_anthropic(&changed) {
                Ok(crossed) => prop_assert_ne!(crossed, body.clone(), "{}", place),
                Err(reason) => prop_assert!(reason.field.ends_with("tomorrow"), "{}", reason),
            }
        }
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            fields.into_iter().collect::<Map<_, _>>().into()
        }
        value => value,
    }
}

fn leaves_in(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| leaves_in(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                leaves_in(value, &format!("{at}/{name}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

fn objects_in(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| objects_in(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            found.push(at.to_owned());
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                objects_in(value, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

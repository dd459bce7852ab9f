use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::chat::{ChatReply, EventKind, Extra, Usage};
use crate::dialect::openai;

const STAMP: Stamp<'_> = Stamp { id: "resp_1", created: 1_700_000_000, cached: false };

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("no object: {value}") };
    fields
}

/// A response with all that OpenAI sends today.
fn full() -> Value {
    json!({
        "id": "resp_67cb71b3", "object": "response", "created_at": 1, "status": "completed", "completed_at": 2,
        "background": false, "billing": {"payer": "developer"}, "error": null, "incomplete_details": null,
        "instructions": "Be kind.", "max_output_tokens": 99, "max_tool_calls": null, "model": "gpt-5-2025-08-07",
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "phase": "final_answer",
             "content": [{"type": "output_text", "text": "Grüße, 世界 🌍", "annotations": [], "logprobs": []}]}
        ],
        "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": "medium", "summary": null}, "safety_identifier": null, "service_tier": "default",
        "store": true, "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
        "usage": {
            "input_tokens": 9, "input_tokens_details": {"cache_write_tokens": 3, "cached_tokens": 4},
            "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 21
        },
        "user": null, "metadata": {}
    })
}

fn echo() -> Echo {
    Echo::of(
        br#"{"model":"gpt-5","input":"x","instructions":"Be kind.","max_output_tokens":99,"temperature":1.0,
            "store":true,"tomorrow":1,"user":null,"text":{"format":{"type":"json_object"}}}"#,
    )
}

fn plain(text: &str) -> ChatReply {
    ChatReply {
        model: "m".to_owned(),
        text: text.to_owned(),
        finish: Finish::Stop,
        usage: None,
        extra: Extra::default(),
    }
}

fn parse(value: &Value) -> Result<Option<ChatReply>, ReplyFault> {
    parse_whole(value.to_string().as_bytes())
}

fn whole(reply: &ChatReply) -> Value {
    serde_json::from_slice(&render_whole(reply, &STAMP, &echo())).unwrap()
}

fn events(reply: &ChatReply) -> Vec<Value> {
    let events = render_events(reply, &STAMP, &echo());
    events.iter().map(|data| serde_json::from_slice(data).unwrap()).collect()
}

fn assemble(events: &[Value]) -> Option<ChatReply> {
    let mut assembler = Assembler::default();
    for event in events {
        assembler.push(event.to_string().as_bytes()).unwrap();
    }
    assembler.finish()
}

/// A response, put together as OpenAI's SDKs do it: they fail on an item or a part out of its place,
/// or a piece without its item.
pub(in crate::dialect) fn accumulated(events: &[Value]) -> Value {
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[1]["type"], "response.in_progress");
    let mut output: Vec<Value> = Vec::new();
    let mut ended = Vec::new();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
        let place = usize::try_from(event["output_index"].as_u64().unwrap_or_default()).unwrap();
        let part = usize::try_from(event["content_index"].as_u64().unwrap_or_default()).unwrap();
        let grow = |whole: &mut Value| {
            *whole = format!("{}{}", whole.as_str().unwrap(), event["delta"].as_str().unwrap()).into();
        };
        if !event["item_id"].is_null() {
            assert_eq!(event["item_id"], output[place]["id"]);
            assert!(!ended.contains(&place), "{event}");
        }
        match event["type"].as_str().unwrap() {
            "response.created" | "response.in_progress" => assert!(number < 2),
            "response.output_item.added" => {
                assert_eq!(output.len(), place);
                assert_eq!(event["item"]["status"], "in_progress");
                output.push(event["item"].clone());
            }
            "response.content_part.added" => {
                let parts = output[place]["content"].as_array_mut().unwrap();
                assert_eq!(parts.len(), part);
                parts.push(event["part"].clone());
            }
            "response.output_text.delta" | "response.reasoning_text.delta" => {
                grow(&mut output[place]["content"][part]["text"]);
            }
            "response.refusal.delta" => grow(&mut output[place]["content"][part]["refusal"]),
            "response.function_call_arguments.delta" => grow(&mut output[place]["arguments"]),
            "response.output_text.done" | "response.reasoning_text.done" => {
                assert_eq!(event["text"], output[place]["content"][part]["text"]);
            }
            "response.refusal.done" => {
                assert_eq!(event["refusal"], output[place]["content"][part]["refusal"]);
            }
            "response.content_part.done" => assert_eq!(event["part"], output[place]["content"][part]),
            "response.function_call_arguments.done" => {
                assert_eq!(event["arguments"], output[place]["arguments"]);
            }
            "response.output_item.done" => {
                // A label of chat completions' message comes at its end.
                for name in ["status", "phase"] {
                    if let Some(value) = event["item"].get(name) {
                        output[place][name] = value.clone();
                    }
                }
                assert_eq!(event["item"], output[place]);
                ended.push(place);
            }
            name => {
                assert!(is_terminal_name(name), "{name}");
                assert_eq!(number + 1, events.len());
                assert_eq!(ended.len(), output.len());
                assert_eq!(event["response"]["output"], json!(output));
            }
        }
    }
    events.last().unwrap()["response"].clone()
}

#[test]
fn a_hit_equals_the_miss_but_for_what_is_of_its_request() {
    let reply = parse(&full()).unwrap().unwrap();
    assert_eq!(reply.text, "Grüße, 世界 🌍");
    assert_eq!(reply.usage, Some(Usage { prompt_tokens: 9, completion_tokens: 12 }));
    assert_eq!(reply.extra.reply["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
    assert!(!reply.extra.reply.contains_key("instructions"));
    let mut expected = full();
    for (name, value) in [
        ("id", json!("resp_1")),
        ("created_at", json!(1_700_000_000)),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("text", json!({"format": {"type": "json_object"}})),
        ("top_p", json!(null)),
        ("store", json!(false)),
    ] {
        expected[name] = value;
    }
    let output = expected["output"].as_array_mut().unwrap();
    output.remove(0);
    output[0]["id"] = json!("msg_1_0");
    for name in ["completed_at", "top_logprobs"] {
        expected.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(whole(&reply), expected);
    let cached = render_whole(&reply, &Stamp { cached: true, ..STAMP }, &echo());
    expected["usage"]["cached"] = json!(true);
    assert_eq!(serde_json::from_slice::<Value>(&cached).unwrap(), expected);
    // A Refrain behind a Refrain marks it once.
    let again = parse_whole(&cached).unwrap().unwrap();
    let text = render_whole(&again, &Stamp { cached: true, ..STAMP }, &echo());
    assert_eq!(String::from_utf8(text.to_vec()).unwrap().matches("\"cached\"").count(), 1);
}

#[test]
fn one_answer_in_both_dialects() {
    let chat = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "system_fingerprint": "fp",
        "choices": [{"index": 0, "logprobs": null, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hi.", "refusal": null, "annotations": []}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 1}}
    });
    let reply = openai::reply::parse_whole(chat.to_string().as_bytes()).unwrap().unwrap();
    let response = whole(&reply);
    assert_eq!(
        response["output"],
        json!([{"id": "msg_1_0", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": [], "logprobs": []}]}])
    );
    assert_eq!(
        response["usage"],
        json!({"input_tokens": 9, "output_tokens": 2, "total_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 1}})
    );
    assert_eq!(response["system_fingerprint"], "fp");
    assert!(response.get("refusal").is_none() && response.get("annotations").is_none());
    // And the other way round.
    let reply = parse(&full()).unwrap().unwrap();
    let stamp = Stamp { id: "chatcmpl-1", ..STAMP };
    let chat: Value = serde_json::from_slice(&openai::reply::render_whole(&reply, &stamp)).unwrap();
    assert_eq!(chat["choices"][0]["message"]["content"], "Grüße, 世界 🌍");
    assert_eq!(chat["usage"]["completion_tokens_details"]["reasoning_tokens"], 5);
    assert_eq!(chat["usage"]["total_tokens"], 21);
    for name in ["instructions", "tools", "output", "temperature", "store"] {
        assert!(chat.get(name).is_none(), "{name}");
    }
}

#[test]
fn why_an_answer_ended() {
    for (finish, status, details) in [
        (Finish::Stop, "completed", json!(null)),
        (Finish::ToolCalls, "completed", json!(null)),
        (Finish::Length, "incomplete", json!({"reason": "max_output_tokens"})),
        (Finish::ContentFilter, "incomplete", json!({"reason": "content_filter"})),
        (
            Finish::Other("insufficient_system_resource".to_owned()),
            "incomplete",
            json!({"reason": "insufficient_system_resource"}),
        ),
    ] {
        let mut reply = ChatReply { finish, ..plain("x") };
        if reply.finish == Finish::ToolCalls {
            let call = json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
            reply.extra.message = object(json!({"tool_calls": call}));
        }
        let response = whole(&reply);
        assert_eq!((&response["status"], &response["incomplete_details"]), (&json!(status), &details));
        assert_eq!(response["output"].as_array().unwrap().last().unwrap()["status"], status);
        assert_eq!(events(&reply).last().unwrap()["type"], format!("response.{status}"));
        assert_eq!(parse(&response).unwrap().as_ref(), Some(&reply));
        assert_eq!(assemble(&events(&reply)).as_ref(), Some(&reply));
    }
}

#[test]
fn what_cannot_be_repeated_is_no_reply() {
    let changed = |pointer: &str, value: Value| {
        let mut body = full();
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let message = full()["output"][1].clone();
    let call = json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"});
    let mut spaced = call.clone();
    spaced["namespace"] = json!("n");
    let thought = json!({"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]});
    let summary =
        json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "x"}]});
    for body in [
        changed("/status", json!("in_progress")),
        changed("/status", json!(null)),
        changed("/status", json!("incomplete")),
        changed("/previous_response_id", json!("resp_0")),
        changed("/output", json!([message, message])),
        changed("/output", json!([call, message])),
        changed("/output", json!([message, thought])),
        changed("/output", json!([thought, thought, message])),
        changed("/output", json!([summary, message])),
        changed("/output", json!([spaced])),
        changed("/output", json!([{"type": "web_search_call", "id": "ws", "status": "completed"}, message])),
        changed("/output/1/role", json!("critic")),
        changed("/output/1/content", json!([])),
        changed("/output/1/content/0/text", json!("")),
        changed("/output/1/content/0/type", json!("output_image")),
        changed("/output/1/content/0/annotations", json!([{"type": "url_citation"}])),
        changed("/output/1/content/0/logprobs", json!([{"token": "x"}])),
    ] {
        assert_eq!(parse(&body), Ok(None), "{body}");
    }
    for body in [changed("/output", json!([call, call])), changed("/output", json!([thought, message, call]))]
    {
        assert!(parse(&body).unwrap().is_some(), "{body}");
    }
}

#[test]
fn errors_inside_a_success_are_found() {
    for body in [
        json!({"error": {"message": "overloaded", "code": 502}}),
        json!({"object": "error", "message": "too long"}),
        json!({"status": "failed", "output": []}),
        json!({"status": "cancelled", "output": []}),
    ] {
        assert_eq!(parse(&body), Err(ReplyFault::Reported), "{body}");
    }
    for event in [
        json!({"type": "error", "code": "server_error", "message": "x", "param": null, "sequence_number": 3}),
        json!({"type": "response.failed", "response": {"status": "failed", "output": []}}),
        json!({"error": {"message": "overloaded"}}),
    ] {
        assert_eq!(Assembler::default().push(event.to_string().as_bytes()), Err(ReplyFault::Reported));
    }
    for body in [&b""[..], b"<html>502</html>", br#"{"output":[{"#, b"[]", b"{}", br#"{"output":3}"#, b"\xff"]
    {
        assert!(matches!(parse_whole(body), Err(ReplyFault::Malformed(_))), "{body:?}");
    }
    for data in [&b"OK"[..], b"[DONE]", br#"{"type":"#, b"1", b"{}", br#"{"type":7}"#] {
        assert!(matches!(Assembler::default().push(data), Err(ReplyFault::Malformed(_))), "{data:?}");
    }
}

#[test]
fn kinds_of_events() {
    let item = |kind: &str| json!({"type": "response.output_item.added", "item": {"type": kind}});
    for (event, kind) in [
        (json!({"type": "response.created", "response": {}}), EventKind::Other),
        (item("message"), EventKind::Other),
        (item("reasoning"), EventKind::Other),
        (item("function_call"), EventKind::Content),
        (item("web_search_call"), EventKind::Content),
        (json!({"type": "response.output_text.delta", "delta": "a"}), EventKind::Content),
        (json!({"type": "response.output_text.delta", "delta": ""}), EventKind::Other),
        (json!({"type": "response.reasoning_summary_text.delta", "delta": "a"}), EventKind::Content),
        (json!({"type": "response.function_call_arguments.delta", "delta": "{"}), EventKind::Content),
        (json!({"type": "response.output_text.done", "text": "a"}), EventKind::Other),
        (json!({"type": "response.tomorrow"}), EventKind::Other),
        (json!({"type": "response.completed", "response": full()}), EventKind::Other),
    ] {
        assert_eq!(Assembler::default().push(event.to_string().as_bytes()), Ok(kind), "{event}");
        assert_eq!(is_terminal(event.to_string().as_bytes()), event["type"] == "response.completed");
    }
    assert!(!is_terminal(b"[DONE]"));
}

#[test]
fn a_doubtful_stream_is_no_reply() {
    let told = events(&plain("Hello"));
    assert_eq!(assemble(&told), Some(plain("Hello")));
    // Cut.
    assert_eq!(assemble(&told[..told.len() - 1]), None);
    // Something after the end.
    let after = [&told[..], &told[2..3]].concat();
    assert_eq!(assemble(&after), None);
    // The end says something else than what the caller saw.
    let mut other = told.clone();
    other.last_mut().unwrap()["response"]["output"][0]["content"][0]["text"] = json!("Hell");
    assert_eq!(assemble(&other), None);
    // The end leaves out what was told.
    let mut short = told.clone();
    short.last_mut().unwrap()["response"]["output"] = json!(null);
    assert_eq!(assemble(&short), Some(plain("Hello")));
    let mut assembler = Assembler::default();
    for (number, event) in told.iter().enumerate() {
        assembler.push(event.to_string().as_bytes()).unwrap();
        assert!(assembler.has_begun());
        assert_eq!(assembler.has_finished(), number + 1 == told.len());
    }
}

#[test]
fn the_wire_form_of_a_stream() {
    let echo = Echo::of(b"");
    let frames: Vec<_> = render_stream(&plain("Hi"), &STAMP, &echo).collect();
    let frames: Vec<_> = frames.iter().map(|frame| std::str::from_utf8(frame).unwrap()).collect();
    let response = |status: &str, output: &str| {
        format!(
            concat!(
                r#"{{"id":"resp_1","object":"response","created_at":1700000000,"status":"{}","error":null,"#,
                r#""incomplete_details":null,"model":"m","output":[{}],"usage":null,"background":false,"#,
                r#""instructions":null,"max_output_tokens":null,"max_tool_calls":null,"metadata":{{}},"#,
                r#""parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"#,
                r#""reasoning":{{"effort":null,"summary":null}},"safety_identifier":null,"temperature":null,"#,
                r#""text":{{"format":{{"type":"text"}}}},"tool_choice":"auto","tools":[],"top_p":null,"#,
                r#""truncation":"disabled","user":null,"store":false}}"#
            ),
            status, output
        )
    };
    let item = |status: &str, content: &str| {
        format!(
            r#"{{"id":"msg_1_0","type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
        )
    };
    let part =
        |text: &str| format!(r#"{{"type":"output_text","text":"{text}","annotations":[],"logprobs":[]}}"#);
    let place = r#""item_id":"msg_1_0","output_index":0}"#;
    let expected = [
        ("response.created", format!(r#""response":{}}}"#, response("in_progress", ""))),
        ("response.in_progress", format!(r#""response":{}}}"#, response("in_progress", ""))),
        ("response.output_item.added", format!(r#""output_index":0,"item":{}}}"#, item("in_progress", ""))),
        ("response.content_part.added", format!(r#""content_index":0,"part":{},{place}"#, part(""))),
        ("response.output_text.delta", format!(r#""content_index":0,"delta":"Hi","logprobs":[],{place}"#)),
        ("response.output_text.done", format!(r#""content_index":0,"text":"Hi","logprobs":[],{place}"#)),
        ("response.content_part.done", format!(r#""content_index":0,"part":{},{place}"#, part("Hi"))),
        (
            "response.output_item.done",
            format!(r#""output_index":0,"item":{}}}"#, item("completed", &part("Hi"))),
        ),
        (
            "response.completed",
            format!(r#""response":{}}}"#, response("completed", &item("completed", &part("Hi")))),
        ),
    ];
    for (number, (name, rest)) in expected.iter().enumerate() {
        assert_eq!(
            frames[number],
            format!("event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number},{rest}\n\n")
        );
    }
    assert_eq!(frames.len(), expected.len());
}

#[test]
fn a_long_answer_is_several_events_and_an_empty_one_none() {
    let deltas = |reply: &ChatReply| {
        events(reply).iter().filter(|event| event["type"] == "response.output_text.delta").count()
    };
    assert_eq!(deltas(&plain(&"ü".repeat(5000))), 5);
    assert_eq!(events(&plain("")).len(), 3);
    assert_eq!(assemble(&events(&plain(""))), Some(plain("")));
}

#[test]
fn odd_usage_is_kept_as_it_is() {
    for usage in [
        json!(null),
        json!({"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 30}),
        json!({"input_tokens": 1, "total_tokens": 1}),
        json!("free"),
    ] {
        let mut body = full();
        body["usage"] = usage.clone();
        let reply = parse(&body).unwrap().unwrap();
        assert_eq!(whole(&reply)["usage"], usage);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "\\PC{0,40}", 1 => "[\"\\\\\n\r\tü🌍]{0,12}", 1 => "[aü🌍]{2000,5000}"]
}

fn any_call() -> impl Strategy<Value = Value> {
    ("[a-z0-9_]{1,8}", "[a-z]{1,8}", prop_oneof![Just("{}".to_owned()), any_text()]).prop_map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    })
}

prop_compose! {
    pub(in crate::dialect) fn any_reply()(
        text in any_text(),
        finish in prop_oneof![
            Just(Finish::Stop), Just(Finish::Length), Just(Finish::ContentFilter),
            "[a-z]{1,8}".prop_map(Finish::Other)
        ],
        counts in option::of((0..1_u64 << 40, 0..1_u64 << 40)),
        thoughts in option::of(any_text()),
        refusal in option::of("\\PC{1,20}"),
        phase in option::of("[a-z_]{1,8}"),
        calls in vec(any_call(), 0..3),
        tier in option::of("[a-z]{1,8}"),
    ) -> ChatReply {
        let mut extra = Extra::default();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                extra.message.insert(name.to_owned(), value);
            }
        };
        put("reasoning_content", thoughts.filter(|text| !text.is_empty()).map(Value::from));
        // A label of a message that is not there says nothing.
        put("phase", phase.filter(|_| !text.is_empty() || refusal.is_some()).map(Value::from));
        put("refusal", refusal.map(Value::from));
        put("tool_calls", Some(json!(calls)).filter(|_| !calls.is_empty()));
        if let Some(tier) = tier {
            extra.reply.insert("service_tier".to_owned(), tier.into());
        }
        let usage = counts.map(|(prompt_tokens, completion_tokens)| Usage { prompt_tokens, completion_tokens });
        // Calls are what a complete answer with calls ends with.
        let finish = if finish == Finish::Stop && !calls.is_empty() { Finish::ToolCalls } else { finish };
        ChatReply { model: "m".to_owned(), text, finish, usage, extra }
    }
}

/// The reply with the details of its usage that are written in any case.
fn detailed(mut reply: ChatReply) -> ChatReply {
    if reply.usage.is_some() {
        let details = json!({
            "prompt_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0}
        });
        reply.extra.reply.insert("usage".to_owned(), details);
    }
    reply
}

proptest! {
    #[test]
    fn whole_and_stream_say_the_same(reply in any_reply()) {
        let events = events(&reply);
        prop_assert_eq!(accumulated(&events), whole(&reply));
        prop_assert_eq!(assemble(&events), parse(&whole(&reply)).unwrap());
    }

    #[test]
    fn what_is_written_is_read_again(reply in any_reply()) {
        prop_assert_eq!(parse(&whole(&reply)).unwrap(), Some(detailed(reply)));
    }

    #[test]
    fn hostile_bodies_never_panic(data in "\\PC{0,40}", kind in "response\\.[a-z_.]{0,24}", item in "[a-z_]{0,16}") {
        let _ = parse_whole(data.as_bytes());
        let _ = Assembler::default().push(data.as_bytes());
        let item = json!({"type": item, "content": [data, {"type": data, "text": 1}], "summary": data});
        let body = json!({"output": [item, data, null], "status": "completed", "usage": [data], "model": 3});
        let _ = parse(&body);
        for kind in [kind.as_str(), "response.completed", "response.output_item.done"] {
            let event = json!({"type": kind, "response": body, "item": item, "delta": data});
            let _ = Assembler::default().push(event.to_string().as_bytes());
        }
    }
}

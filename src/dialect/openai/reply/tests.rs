use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::chat::{ChatReply, EventKind, Extra, Usage};

const STAMP: Stamp<'_> = Stamp { id: "chatcmpl-1", created: 1_700_000_000, cached: false };

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("no object: {value}") };
    fields
}

/// A completion with all that OpenAI sends today.
fn full() -> Value {
    json!({
        "id": "chatcmpl-abc", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini-2024-07-18",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": "Grüße, 世界 🌍", "refusal": null, "annotations": []},
            "logprobs": {"content": [{"token": "G", "logprob": -0.5, "bytes": [71], "top_logprobs": []}]},
            "finish_reason": "stop"
        }],
        "usage": {
            "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0}
        },
        "service_tier": "default", "system_fingerprint": "fp_1"
    })
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

/// The data of each event of a rendered stream, and what the assembler makes of it.
fn reassemble(reply: &ChatReply) -> (Vec<EventKind>, Option<ChatReply>) {
    let frames: Vec<_> = render_stream(reply, &STAMP, true).collect();
    let (last, events) = frames.split_last().unwrap();
    assert_eq!(last, "data: [DONE]\n\n");
    let mut assembler = Assembler::default();
    let kinds = events
        .iter()
        .map(|frame| {
            let data = frame.strip_prefix(b"data: ").and_then(|frame| frame.strip_suffix(b"\n\n")).unwrap();
            assembler.push(data).unwrap()
        })
        .collect();
    (kinds, assembler.finish())
}

fn assemble(events: &[Value]) -> Option<ChatReply> {
    let mut assembler = Assembler::default();
    for event in events {
        assembler.push(event.to_string().as_bytes()).unwrap();
    }
    assembler.finish()
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

#[test]
fn a_hit_equals_the_miss_but_for_id_and_time() {
    let reply = parse(&full()).unwrap().unwrap();
    assert_eq!(reply.text, "Grüße, 世界 🌍");
    assert_eq!(reply.usage, Some(Usage { prompt_tokens: 9, completion_tokens: 12 }));
    let mut expected = full();
    expected["id"] = json!("chatcmpl-1");
    expected["created"] = json!(1_700_000_000);
    let rendered: Value = serde_json::from_slice(&render_whole(&reply, &STAMP)).unwrap();
    assert_eq!(rendered, expected);
    let cached = render_whole(&reply, &Stamp { cached: true, ..STAMP });
    expected["usage"]["cached"] = json!(true);
    assert_eq!(serde_json::from_slice::<Value>(&cached).unwrap(), expected);
    // A Refrain behind a Refrain marks it once.
    let again = parse_whole(&cached).unwrap().unwrap();
    let text = String::from_utf8(render_whole(&again, &Stamp { cached: true, ..STAMP }).to_vec()).unwrap();
    assert_eq!(text.matches("\"cached\"").count(), 1, "{text}");
}

#[test]
fn odd_usage_is_kept_as_it_is() {
    for usage in [
        json!(null),
        json!({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 30}),
        json!({"prompt_tokens": 1, "total_tokens": 1}),
        json!({"prompt_tokens": 1.5, "completion_tokens": -2}),
        json!("free"),
    ] {
        let mut body = full();
        body["usage"] = usage.clone();
        let reply = parse(&body).unwrap().unwrap();
        let rendered: Value = serde_json::from_slice(&render_whole(&reply, &STAMP)).unwrap();
        assert_eq!(rendered.get("usage"), (!usage.is_null()).then_some(&usage));
        assert_eq!(reassemble(&reply).1.as_ref(), Some(&reply));
    }
}

#[test]
fn what_cannot_be_repeated_is_no_reply() {
    let changed = |pointer: &str, value: Value| {
        let mut body = full();
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let choice = full()["choices"][0].clone();
    for body in [
        changed("/choices", json!([choice, choice])),
        changed("/choices/0/index", json!(1)),
        changed("/choices/0/finish_reason", json!(null)),
        changed("/choices/0/finish_reason", json!("")),
        changed("/choices/0/message", json!(null)),
        changed("/choices/0/message/role", json!("tool")),
        changed("/choices/0/message/content", json!([{"type": "text", "text": "x"}])),
    ] {
        assert_eq!(parse(&body), Ok(None), "{body}");
    }
}

#[test]
fn errors_inside_a_success_are_found() {
    for body in [
        json!({"error": {"message": "overloaded", "code": 502}}),
        json!({"error": "an error was encountered while running the model"}),
        json!({"object": "error", "message": "maximum context length is 8 tokens", "code": 400}),
        json!({"choices": [{"index": 0, "finish_reason": "error", "message": {"content": "x"}}]}),
        json!({"choices": [{"index": 0, "error": {"code": 502}, "message": {"content": ""}}]}),
    ] {
        assert_eq!(parse(&body), Err(ReplyFault::Reported), "{body}");
        assert_eq!(Assembler::default().push(body.to_string().as_bytes()), Err(ReplyFault::Reported));
    }
    for body in
        [&b""[..], b"<html>502</html>", br#"{"choices":[{"#, b"[]", br#"{"choices":[]}"#, b"{}", b"\xff"]
    {
        assert!(matches!(parse_whole(body), Err(ReplyFault::Malformed(_))), "{body:?}");
    }
    for data in [&b"OK"[..], br#"{"choices":[{"#, b"1", b"[1]", br#"{"choices":{}}"#] {
        assert!(matches!(Assembler::default().push(data), Err(ReplyFault::Malformed(_))), "{data:?}");
    }
}

#[test]
fn kinds_of_events() {
    let cases = [
        (
            chunk(&json!({"role": "assistant", "content": "", "refusal": null}), &json!(null)),
            EventKind::Other,
        ),
        (chunk(&json!({"content": "a"}), &json!(null)), EventKind::Content),
        (chunk(&json!({"refusal": "no"}), &json!(null)), EventKind::Content),
        (chunk(&json!({"reasoning_content": "hm"}), &json!(null)), EventKind::Content),
        (chunk(&json!({"tool_calls": [{"index": 0}]}), &json!(null)), EventKind::Content),
        (chunk(&json!({"tool_calls": []}), &json!(null)), EventKind::Other),
        (chunk(&json!({}), &json!("stop")), EventKind::Other),
        (json!({"choices": [], "usage": {"prompt_tokens": 1}}), EventKind::Usage),
        (json!({"choices": [], "usage": null, "prompt_filter_results": []}), EventKind::Other),
        (json!({"model": "m"}), EventKind::Other),
    ];
    for (event, kind) in cases {
        assert_eq!(Assembler::default().push(event.to_string().as_bytes()), Ok(kind), "{event}");
    }
}

#[test]
fn a_real_stream_is_put_together() {
    let null = json!(null);
    let call = |fields: Value| chunk(&json!({"tool_calls": [fields]}), &null);
    let mut with_padding = chunk(&json!({"content": "Let me "}), &null);
    with_padding["obfuscation"] = json!("xyz");
    with_padding["choices"][0]["logprobs"] = json!({"content": [{"token": "Let"}], "refusal": null});
    let mut more = chunk(&json!({"content": "see."}), &null);
    more["choices"][0]["logprobs"] = json!({"content": [{"token": "see"}], "refusal": null});
    let events = [
        json!({"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
        chunk(&json!({"role": "assistant", "content": "", "refusal": null}), &null),
        chunk(&json!({"reasoning_content": "Hm, "}), &null),
        chunk(&json!({"reasoning_content": "tools."}), &null),
        with_padding,
        more,
        call(
            json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
        call(
            json!({"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}}),
        ),
        call(
            json!({"index": 0, "id": "", "type": "function", "function": {"name": "f", "arguments": ":1}"}}),
        ),
        chunk(&json!({}), &json!("tool_calls")),
        json!({"choices": [], "model": "m", "system_fingerprint": "fp",
               "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "x": 1}}),
    ];
    let reply = assemble(&events).unwrap();
    let expected = ChatReply {
        model: "m".to_owned(),
        text: "Let me see.".to_owned(),
        finish: Finish::ToolCalls,
        usage: Some(Usage { prompt_tokens: 3, completion_tokens: 4 }),
        extra: Extra {
            reply: object(json!({
                "prompt_filter_results": [{"prompt_index": 0}], "system_fingerprint": "fp", "usage": {"x": 1}
            })),
            choice: object(
                json!({"logprobs": {"content": [{"token": "Let"}, {"token": "see"}], "refusal": null}}),
            ),
            message: object(json!({
                "refusal": null, "reasoning_content": "Hm, tools.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                    {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
                ]
            })),
        },
    };
    assert_eq!(reply, expected);
    assert_eq!(reassemble(&reply).1, Some(expected));
}

#[test]
fn a_doubtful_stream_is_no_reply() {
    let (null, stop) = (json!(null), json!("stop"));
    let begin = chunk(&json!({"content": "a", "channel": "final"}), &null);
    let done = chunk(&json!({}), &stop);
    assert!(assemble(&[begin.clone(), done.clone()]).is_some());
    let mut second = begin.clone();
    second["choices"][0]["index"] = json!(1);
    for doubt in [
        second,
        chunk(&json!({"channel": "analysis"}), &null),
        chunk(&json!({"content": [{"type": "text"}]}), &null),
        chunk(&json!({"role": "tool"}), &null),
    ] {
        assert_eq!(assemble(&[begin.clone(), doubt, done.clone()]), None);
    }
    // No finish reason; an empty one is none.
    assert_eq!(assemble(&[begin.clone(), chunk(&json!({}), &json!(""))]), None);
    let calls = |index| chunk(&json!({"tool_calls": [{"index": index, "id": "x"}]}), &null);
    let mut many: Vec<_> = (0..2000).map(calls).collect();
    many.push(done);
    assert_eq!(assemble(&many), None);
}

#[test]
fn a_long_answer_is_several_events_and_an_empty_one_none() {
    let (kinds, _) = reassemble(&plain(&"ü".repeat(5000)));
    assert_eq!(kinds.iter().filter(|kind| **kind == EventKind::Content).count(), 5);
    let (kinds, reply) = reassemble(&plain(""));
    assert_eq!(kinds, [EventKind::Other; 2]);
    assert_eq!(reply, Some(plain("")));
}

#[test]
fn usage_is_streamed_only_when_asked_for() {
    let reply = ChatReply { usage: Some(Usage { prompt_tokens: 1, completion_tokens: 2 }), ..plain("x") };
    let text = |include_usage, cached| {
        let frames: Vec<_> = render_stream(&reply, &Stamp { cached, ..STAMP }, include_usage).collect();
        String::from_utf8(frames.concat()).unwrap()
    };
    assert!(!text(false, true).contains("usage"));
    let usage = r#""choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3"#;
    assert!(text(true, false).contains(&format!("{usage}}}")));
    assert!(text(true, true).contains(&format!(r#"{usage},"cached":true}}"#)));
}

#[test]
fn the_wire_form_of_a_stream() {
    let mut reply = plain("Hi");
    reply.extra.reply = object(json!({"system_fingerprint": "fp", "citations": ["u"]}));
    let frames: Vec<_> = render_stream(&reply, &STAMP, true).collect();
    let head = concat!(
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","#,
        r#""system_fingerprint":"fp""#
    );
    let expected = [
        format!(
            r#"{head},"choices":[{{"index":0,"delta":{{"role":"assistant","content":""}},"finish_reason":null}}]}}"#
        ),
        format!(r#"{head},"choices":[{{"index":0,"delta":{{"content":"Hi"}},"finish_reason":null}}]}}"#),
        format!(
            r#"{head},"citations":["u"],"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}]}}"#
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(frames, expected.map(|data| format!("data: {data}\n\n")));
}

#[test]
fn frames_hold_any_data() {
    for (data, framed) in [
        ("a", "data: a\n\n"),
        ("", "data: \n\n"),
        ("a\nb", "data: a\ndata: b\n\n"),
        ("a\r\nb\rc\n", "data: a\ndata: b\ndata: c\ndata: \n\n"),
    ] {
        assert_eq!(frame(data.as_bytes()), framed);
    }
}

#[test]
fn an_error_event_is_an_error_and_no_terminal() {
    let event = error_event("broke \"off\"", "upstream_error", None);
    assert_eq!(
        event,
        concat!(
            r#"data: {"error":{"message":"broke \"off\"","type":"upstream_error","param":null,"code":null}}"#,
            "\n\n"
        )
    );
    let data = event.strip_prefix(b"data: ").unwrap();
    assert_eq!(Assembler::default().push(data), Err(ReplyFault::Reported));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "\\PC{0,40}",
        1 => vec(prop_oneof![Just('\n'), Just('\r'), Just('"'), Just('\u{2028}'), any::<char>()], 0..40)
            .prop_map(String::from_iter),
        1 => ("\\PC{1,8}", 300..900_usize).prop_map(|(text, times)| text.repeat(times)),
    ]
}

fn any_finish() -> impl Strategy<Value = Finish> {
    prop_oneof![
        Just(Finish::Stop),
        Just(Finish::Length),
        Just(Finish::ToolCalls),
        Just(Finish::ContentFilter),
        Just(Finish::Other("eos".to_owned()))
    ]
}

fn some_of(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Map<String, Value>> {
    fields
        .into_iter()
        .map(|(name, value)| option::of(value).prop_map(move |value| Some((name.to_owned(), value?))))
        .collect::<Vec<_>>()
        .prop_map(|fields| fields.into_iter().flatten().collect())
}

fn string() -> BoxedStrategy<Value> {
    any_text().prop_map(Value::String).boxed()
}

fn tool_calls() -> BoxedStrategy<Value> {
    let call = ("[a-z0-9]{1,8}", "\\PC{0,20}").prop_map(
        |(id, arguments)| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}),
    );
    vec(call, 0..4).prop_map(Value::Array).boxed()
}

fn any_extra() -> impl Strategy<Value = Extra> {
    let reply = some_of(vec![
        ("system_fingerprint", string()),
        ("service_tier", Just(Value::Null).boxed()),
        ("citations", vec("\\PC{0,20}", 0..3).prop_map(|urls| json!(urls)).boxed()),
        ("seed", any::<u64>().prop_map(|seed| json!(seed)).boxed()),
        ("usage", any::<u32>().prop_map(|n| json!({"prompt_tokens_details": {"cached_tokens": n}})).boxed()),
    ]);
    let choice = some_of(vec![
        ("logprobs", vec("\\PC{0,3}", 0..3).prop_map(|tokens| json!({"content": tokens})).boxed()),
        ("content_filter_results", Just(json!({"hate": {"filtered": false, "severity": "safe"}})).boxed()),
    ]);
    let message = some_of(vec![
        ("reasoning_content", string()),
        ("refusal", prop_oneof![Just(Value::Null), any_text().prop_map(Value::String)].boxed()),
        ("channel", string()),
        ("annotations", vec("\\PC{0,20}", 0..3).prop_map(|urls| json!(urls)).boxed()),
        ("audio", any_text().prop_map(|data| json!({"id": "a", "data": data, "expires_at": 7})).boxed()),
        ("tool_calls", tool_calls()),
    ]);
    (reply, choice, message).prop_map(|(reply, choice, message)| Extra { reply, choice, message })
}

/// Anything, made of the names that mean something in a delta.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (0..3_u8).prop_map(|index| json!(index)),
        "[ab]{0,2}".prop_map(Value::String)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name = prop_oneof![Just("index"), Just("id"), Just("arguments"), Just("function"), Just("text")];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((name.prop_map(str::to_owned), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect()))
        ]
    })
}

prop_compose! {
    fn any_reply()(
        model in "\\PC{1,20}", text in any_text(), finish in any_finish(), extra in any_extra(),
        usage in option::of((any::<u32>(), any::<u32>())),
    ) -> ChatReply {
        let usage = usage.map(|(prompt, completion)| Usage {
            prompt_tokens: prompt.into(), completion_tokens: completion.into(),
        });
        ChatReply { model, text, finish, usage, extra }
    }
}

proptest! {
    #[test]
    fn whole_and_back(reply in any_reply()) {
        prop_assert_eq!(parse_whole(&render_whole(&reply, &STAMP)), Ok(Some(reply)));
    }

    #[test]
    fn streamed_and_back(reply in any_reply()) {
        prop_assert_eq!(reassemble(&reply).1, Some(reply));
    }

    #[test]
    fn frames_and_back(data in any_text()) {
        let lines = String::from_utf8(frame(data.as_bytes()).to_vec()).unwrap();
        let lines = lines.strip_suffix("\n\n").unwrap();
        let read: Vec<_> = lines.split('\n').map(|line| line.strip_prefix("data: ").unwrap()).collect();
        prop_assert_eq!(read.join("\n"), data.replace("\r\n", "\n").replace('\r', "\n"));
    }

    #[test]
    fn hostile_events_never_panic(deltas in vec((any_json(), any_json()), 0..8)) {
        let mut assembler = Assembler::default();
        for (delta, beside) in deltas {
            let event = json!({"x": beside, "choices": [{"index": 0, "delta": {
                "tool_calls": delta, "arguments": beside, "content": beside,
            }, "logprobs": delta, "finish_reason": "stop"}], "usage": delta});
            let _ = assembler.push(event.to_string().as_bytes());
        }
        if let Some(reply) = assembler.finish() {
            // Whatever was put together can be written and read again.
            prop_assert!(parse_whole(&render_whole(&reply, &STAMP)).is_ok());
            let _ = reassemble(&reply);
        }
    }

    #[test]
    fn hostile_bytes_never_panic(data in vec(any::<u8>(), 0..200)) {
        let _ = parse_whole(&data);
        let _ = Assembler::default().push(&data);
    }
}

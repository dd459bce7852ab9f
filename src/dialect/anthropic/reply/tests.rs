use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::chat::{ChatReply, EventKind, Extra, Usage};

const STAMP: Stamp<'_> = Stamp { id: "msg_1", created: 1_700_000_000, cached: false };
const CACHED: Stamp<'_> = Stamp { cached: true, ..STAMP };

/// A message with all that Anthropic sends today.
fn full() -> Value {
    json!({
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "Grüße, 世界 🌍"}],
        "stop_reason": "end_turn", "stop_sequence": null, "stop_details": null, "container": null,
        "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 12, "output_tokens_details": {"thinking_tokens": 0}, "server_tool_use": null,
            "service_tier": "standard", "inference_geo": "global"
        }
    })
}

fn changed(pointer: &str, value: Value) -> Value {
    let mut body = full();
    *body.pointer_mut(pointer).unwrap() = value;
    body
}

fn parse(value: &Value) -> Result<Option<ChatReply>, ReplyFault> {
    parse_whole(value.to_string().as_bytes())
}

fn rendered(reply: &ChatReply, stamp: &Stamp<'_>) -> Value {
    serde_json::from_slice(&render_whole(reply, stamp)).unwrap()
}

fn assemble(events: &[Value]) -> Option<ChatReply> {
    let mut assembler = Assembler::default();
    for event in events {
        assembler.push(event.to_string().as_bytes()).unwrap();
    }
    assembler.finish()
}

fn reassemble(reply: &ChatReply) -> (Vec<EventKind>, Option<ChatReply>) {
    let mut assembler = Assembler::default();
    let kinds = render_events(reply, &STAMP).iter().map(|data| assembler.push(data).unwrap()).collect();
    (kinds, assembler.finish())
}

/// The stream that Anthropic's documentation shows, with two more deltas.
fn stream() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY", "type": "message", "role": "assistant", "content": [],
            "model": "claude-opus-4-6", "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 25, "output_tokens": 1, "service_tier": "standard"}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": null}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "!"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
               "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_hit_equals_the_miss_but_for_the_id() {
    let reply = parse(&full()).unwrap().unwrap();
    assert_eq!(reply.text, "Grüße, 世界 🌍");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.usage, Some(Usage { prompt_tokens: 42, completion_tokens: 12 }));
    let mut expected = changed("/id", json!("msg_1"));
    assert_eq!(rendered(&reply, &STAMP), expected);
    expected["usage"]["cached"] = json!(true);
    assert_eq!(rendered(&reply, &CACHED), expected);
    // A Refrain behind a Refrain marks it once.
    let again = parse_whole(&render_whole(&reply, &CACHED)).unwrap().unwrap();
    assert_eq!(rendered(&again, &CACHED), expected);
    assert_eq!(reassemble(&reply).1, Some(reply));
}

#[test]
fn the_same_answer_in_openais_form() {
    let reply = parse(&full()).unwrap().unwrap();
    let stamp = crate::dialect::openai::reply::Stamp { id: "chatcmpl-1", ..STAMP };
    let body: Value =
        serde_json::from_slice(&crate::dialect::openai::reply::render_whole(&reply, &stamp)).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "Grüße, 世界 🌍");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["prompt_tokens"], 42);
    assert_eq!(body["usage"]["total_tokens"], 54);
    assert_eq!(body["usage"]["prompt_tokens_details"], json!({"cached_tokens": 30}));
    assert_eq!(body["usage"]["completion_tokens_details"], json!({"reasoning_tokens": 0}));
}

#[test]
fn stop_reasons_come_back_as_they_were() {
    for (word, finish) in [
        ("end_turn", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("tool_use", Finish::ToolCalls),
        ("refusal", Finish::ContentFilter),
        ("pause_turn", Finish::Other("pause_turn".to_owned())),
        ("model_context_window_exceeded", Finish::Other("model_context_window_exceeded".to_owned())),
    ] {
        let body = changed("/stop_reason", json!(word));
        let reply = parse(&body).unwrap().unwrap();
        assert_eq!(reply.finish, finish);
        assert_eq!(rendered(&reply, &STAMP)["stop_reason"], word);
    }
    let mut body = changed("/stop_reason", json!("stop_sequence"));
    body["stop_sequence"] = json!("END");
    let reply = parse(&body).unwrap().unwrap();
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(rendered(&reply, &STAMP)["stop_reason"], "stop_sequence");
    assert_eq!(rendered(&reply, &STAMP)["stop_sequence"], "END");
    assert_eq!(reassemble(&reply).1, Some(reply));
}

#[test]
fn what_cannot_be_repeated_is_no_reply() {
    let text = full()["content"][0].clone();
    for body in [
        changed("/content", json!([text, text])),
        changed("/content", json!([{"type": "text", "text": ""}])),
        changed("/content", json!([{"type": "thinking", "thinking": "hm", "signature": "x"}, text])),
        changed("/content", json!([{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}])),
        changed(
            "/content",
            json!([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}]),
        ),
        changed("/content", json!([{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}])),
        changed("/content", json!([{"type": "text", "text": "x", "tomorrow": 1}])),
        changed("/stop_reason", json!(null)),
        changed("/role", json!("user")),
        changed("/type", json!("completion")),
        // What the canonical form would say in another word.
        changed("/stop_reason", json!("stop_sequence")),
        changed("/stop_sequence", json!("END")),
        changed(
            "/usage",
            json!({"input_tokens": 9, "output_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}),
        ),
        changed("/container", json!({"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"})),
    ] {
        assert_eq!(parse(&body), Ok(None), "{body}");
    }
    // Names that mean something else in the other dialect.
    for name in ["choices", "created", "object"] {
        let mut body = full();
        body[name] = json!(null);
        assert_eq!(parse(&body), Ok(None), "{name}");
    }
    let empty = changed("/content", json!([]));
    let reply = parse(&empty).unwrap().unwrap();
    assert_eq!(rendered(&reply, &STAMP)["content"], json!([]));
    assert_eq!(reassemble(&reply).1, Some(reply));
}

#[test]
fn errors_inside_a_success_are_found() {
    for body in [
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        json!({"type": "error"}),
        json!({"error": "an error was encountered while running the model"}),
    ] {
        assert_eq!(parse(&body), Err(ReplyFault::Reported), "{body}");
        assert_eq!(Assembler::default().push(body.to_string().as_bytes()), Err(ReplyFault::Reported));
    }
    for body in [&b""[..], b"<html>502</html>", b"[]", b"{}", br#"{"type":"message"}"#, b"\xff"] {
        assert!(matches!(parse_whole(body), Err(ReplyFault::Malformed(_))), "{body:?}");
    }
    for data in [&b"OK"[..], b"[DONE]", b"1", br#"{"index":0}"#] {
        assert!(matches!(Assembler::default().push(data), Err(ReplyFault::Malformed(_))), "{data:?}");
    }
}

#[test]
fn a_real_stream_is_put_together() {
    let reply = assemble(&stream()).unwrap();
    let extra = Extra {
        reply: Map::from_iter([("usage".to_owned(), json!({"service_tier": "standard"}))]),
        ..Extra::default()
    };
    let expected = ChatReply {
        model: "claude-opus-4-6".to_owned(),
        text: "Hello!".to_owned(),
        finish: Finish::Stop,
        usage: Some(Usage { prompt_tokens: 25, completion_tokens: 15 }),
        extra,
    };
    assert_eq!(reply, expected);
    assert_eq!(reassemble(&reply).1, Some(expected));
}

#[test]
fn a_doubtful_stream_is_no_reply() {
    let with = |place: usize, event: Value| {
        let mut events = stream();
        events.insert(place, event);
        assemble(&events)
    };
    assert!(with(3, json!({"type": "ping"})).is_some());
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let block = |block: Value| json!({"type": "content_block_start", "index": 1, "content_block": block});
    let end = |delta: Value| json!({"type": "message_delta", "delta": delta});
    assert!(with(7, end(json!({"stop_details": null}))).is_some());
    for (place, event) in [
        (3, delta(json!({"type": "citations_delta", "citation": {}}))),
        (3, delta(json!({"type": "signature_delta", "signature": "x"}))),
        (3, delta(json!({"type": "tomorrow_delta", "text": "x"}))),
        (3, json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}})),
        (1, delta(json!({"type": "text_delta", "text": "x"}))),
        (7, block(json!({"type": "text", "text": ""}))),
        (7, block(json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}))),
        (1, block(json!({"type": "thinking", "thinking": "", "signature": ""}))),
        (3, json!({"type": "tomorrow"})),
        (2, json!({"type": "content_block_stop", "index": 1})),
        (7, delta(json!({"type": "text_delta", "text": "x"}))),
        (9, stream()[7].clone()),
        (9, stream()[8].clone()),
        (
            7,
            json!({"type": "message_delta", "delta": {"container": {"id": "c"}}, "usage": {"output_tokens": 1}}),
        ),
        (1, stream()[0].clone()),
        (0, json!({"type": "content_block_stop", "index": 0})),
        // What stands beside the known fields, or under names that rendering writes.
        (3, delta(json!({"type": "text_delta", "text": "x", "tomorrow": 1}))),
        (3, delta(json!({"type": "text_delta", "text": 1}))),
        (
            3,
            json!({"type": "content_block_delta", "index": 0, "tomorrow": 1, "delta": {"type": "text_delta", "text": ""}}),
        ),
        (7, end(json!({"usage": {"output_tokens": 1}}))),
        (7, end(json!({"content": [{"type": "text", "text": "x"}]}))),
        (7, end(json!({"error": null}))),
        (7, end(json!({"choices": []}))),
        (8, end(json!({"stop_sequence": "END"}))),
        (8, end(json!({"stop_reason": "stop_sequence"}))),
        (8, json!({"type": "message_delta", "delta": {}, "context_management": {"applied_edits": []}})),
        (8, json!({"type": "message_delta", "usage": {"prompt_tokens_details": {"cached_tokens": 1}}})),
    ] {
        assert_eq!(with(place, event.clone()), None, "{event}");
    }
    let mut events = stream();
    assert_eq!(events.pop().map(|event| is_terminal(event.to_string().as_bytes())), Some(true));
    assert_eq!(assemble(&events), None);
    let mut events = stream();
    events.remove(7);
    assert_eq!(assemble(&events), None);
    let mut assembler = Assembler::default();
    assert!(!assembler.has_begun());
    for event in &stream()[..8] {
        assert!(!assembler.has_finished());
        assembler.push(event.to_string().as_bytes()).unwrap();
    }
    assert!(assembler.has_begun() && assembler.has_finished());
}

#[test]
fn kinds_of_events() {
    use EventKind::{Content, Other};
    let kinds: Vec<_> = stream()
        .iter()
        .map(|event| Assembler::default().push(event.to_string().as_bytes()).unwrap())
        .collect();
    assert_eq!(kinds, [Other, Other, Other, Content, Other, Content, Other, Other, Other]);
    for (event, kind) in [
        (
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}}),
            Content,
        ),
        (
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}}),
            Content,
        ),
        (
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}}),
            Other,
        ),
        (
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}}),
            Other,
        ),
        (
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}),
            Content,
        ),
        (
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            Content,
        ),
        (json!({"type": "tomorrow"}), Other),
    ] {
        assert_eq!(Assembler::default().push(event.to_string().as_bytes()), Ok(kind), "{event}");
    }
}

#[test]
fn the_wire_form_of_a_stream() {
    let reply = assemble(&stream()).unwrap();
    let text = String::from_utf8(render_stream(&reply, &CACHED).collect::<Vec<_>>().concat()).unwrap();
    let expected = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","#,
        r#""model":"claude-opus-4-6","content":[],"stop_reason":null,"stop_sequence":null,"#,
        r#""usage":{"input_tokens":25,"output_tokens":0,"service_tier":"standard","cached":true}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello!"}}"#,
        "\n\nevent: content_block_stop\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\nevent: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"#,
        r#""usage":{"input_tokens":25,"output_tokens":15,"service_tier":"standard","cached":true}}"#,
        "\n\nevent: message_stop\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );
    assert_eq!(text, expected);
}

#[test]
fn an_answer_of_openais_is_told_in_blocks() {
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt", "system_fingerprint": "fp",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
            "role": "assistant", "content": "Let me see.", "refusal": null, "annotations": [],
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}},
                {"id": "call_3", "type": "function", "function": {"name": "h", "arguments": "{\"a"}}
            ]}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}
    });
    let reply = crate::dialect::openai::reply::parse_whole(body.to_string().as_bytes()).unwrap().unwrap();
    let expected = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "gpt",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "call_2", "name": "g", "input": {}},
            {"type": "tool_use", "id": "call_3", "name": "h", "input": "{\"a"}
        ],
        "stop_reason": "tool_use", "stop_sequence": null, "system_fingerprint": "fp",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3,
                  "output_tokens_details": {"thinking_tokens": 2}}
    });
    assert_eq!(rendered(&reply, &STAMP), expected);
}

#[test]
fn a_message_always_has_a_usage() {
    let mut body = full();
    body.as_object_mut().unwrap().remove("usage");
    let reply = parse(&body).unwrap().unwrap();
    assert_eq!(reply.usage, None);
    assert_eq!(rendered(&reply, &STAMP)["usage"], json!({"input_tokens": 0, "output_tokens": 0}));
    for odd in [json!({"input_tokens": 1}), json!({"input_tokens": -1, "output_tokens": 2}), json!("free")] {
        let reply = parse(&changed("/usage", odd.clone())).unwrap().unwrap();
        assert_eq!(reply.usage, None);
        assert_eq!(rendered(&reply, &STAMP)["usage"], odd);
    }
}

#[test]
fn a_stream_that_begins_without_counts_has_those_of_its_end() {
    for none in [json!(null), json!({}), json!({"input_tokens": null, "output_tokens": null})] {
        let mut events = stream();
        events[0]["message"]["usage"] = none;
        events[0]["message"]["error"] = json!(null);
        events[7]["usage"] = json!({"input_tokens": 5, "output_tokens": 7});
        let reply = assemble(&events).unwrap();
        assert_eq!(reply.usage, Some(Usage { prompt_tokens: 5, completion_tokens: 7 }));
        assert_eq!(rendered(&reply, &STAMP)["usage"], json!({"input_tokens": 5, "output_tokens": 7}));
        events[0]["message"]["usage"] = json!("free");
        assert_eq!(assemble(&events), None);
    }
}

#[test]
fn frames_are_named_by_their_type() {
    assert_eq!(frame(br#"{"type":"ping"}"#), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
    assert_eq!(frame(b"{\"type\":\"a\",\n\"b\":1}"), "event: a\ndata: {\"type\":\"a\",\ndata: \"b\":1}\n\n");
    assert_eq!(frame(b"[DONE]"), "data: [DONE]\n\n");
    assert_eq!(frame(br#"{"type":"a\nb"}"#), "data: {\"type\":\"a\\nb\"}\n\n");
}

fn any_usage() -> impl Strategy<Value = Value> {
    (any::<u32>(), any::<u32>(), option::of(any::<u32>()), option::of(any::<u32>()), option::of(0..9_u8))
        .prop_map(|(input, output, creation, read, thinking)| {
            let mut usage = json!({"input_tokens": input, "output_tokens": output, "service_tier": "standard",
                "cache_creation_input_tokens": creation, "cache_read_input_tokens": read});
            if let Some(count) = thinking {
                usage["output_tokens_details"] = json!({"thinking_tokens": count});
            }
            usage
        })
}

prop_compose! {
    /// Any message that can be repeated.
    fn any_message()(
        model in "\\PC{1,20}", text in prop_oneof![3 => "\\PC{0,40}", 1 => ("\\PC{1,8}", 300..900_usize).prop_map(|(text, times)| text.repeat(times))],
        finish in prop_oneof![Just("end_turn"), Just("max_tokens"), Just("refusal"), Just("eos")],
        sequence in option::of("\\PC{0,5}"), usage in any_usage(), geo in option::of("[a-z]{0,4}"),
    ) -> Value {
        let content = if text.is_empty() { json!([]) } else { json!([{"type": "text", "text": text}]) };
        let finish = if sequence.is_some() { "stop_sequence" } else { finish };
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": finish, "stop_sequence": sequence, "usage": usage, "stop_details": null, "x": geo})
    }
}

proptest! {
    #[test]
    fn whole_and_back(message in any_message()) {
        let reply = parse(&message).unwrap().unwrap();
        prop_assert_eq!(rendered(&reply, &STAMP), message);
    }

    #[test]
    fn streamed_and_back(message in any_message()) {
        let reply = parse(&message).unwrap().unwrap();
        prop_assert_eq!(reassemble(&reply).1, Some(reply));
    }

    #[test]
    fn chopped_anywhere_it_is_the_same_reply(message in any_message(), cuts in vec(any::<prop::sample::Index>(), 0..6)) {
        let reply = parse(&message).unwrap().unwrap();
        let mut events: Vec<Value> =
            render_events(&reply, &STAMP).iter().map(|data| serde_json::from_slice(data).unwrap()).collect();
        for cut in cuts {
            let place = cut.index(events.len());
            let Some(text) = events[place]["delta"]["text"].as_str().map(str::to_owned) else { continue };
            let (first, second) = text.split_at(text.floor_char_boundary(cut.index(text.len().max(1))));
            let mut rest = events[place].clone();
            rest["delta"]["text"] = json!(second);
            events[place]["delta"]["text"] = json!(first);
            events.insert(place + 1, rest);
            events.insert(place + 1, json!({"type": "ping"}));
        }
        prop_assert_eq!(assemble(&events), Some(reply));
    }

    #[test]
    fn hostile_bytes_never_panic(data in vec(any::<u8>(), 0..200)) {
        let _ = parse_whole(&data);
        let _ = Assembler::default().push(&data);
        let _ = frame(&data);
    }

    #[test]
    fn hostile_events_never_panic(kind in "(message|content_block)_(start|delta|stop)", index in 0..2_u8, text in option::of("[a-z]{0,3}")) {
        let part = json!({"type": "text", "text": text, "stop_reason": text, "usage": text, "content": text, "model": index});
        let mut assembler = Assembler::default();
        for kind in [kind.as_str(), "message_start", "message_delta", "message_stop"] {
            let event = json!({"type": kind, "message": part, "index": index, "content_block": part, "delta": part});
            let _ = assembler.push(event.to_string().as_bytes());
        }
        let _ = assembler.finish();
    }
}

#[test]
fn a_ping_tells_of_work_while_a_block_is_open_that_comes_at_once() {
    let ping = br#"{"type":"ping"}"#;
    for (block, kind) in
        [("tool_use", EventKind::Working), ("thinking", EventKind::Working), ("text", EventKind::Other)]
    {
        let mut assembler = Assembler::default();
        let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": block}});
        assert_eq!(assembler.push(ping), Ok(EventKind::Other), "before {block}");
        assembler.push(start.to_string().as_bytes()).unwrap();
        assert_eq!(assembler.push(ping), Ok(kind), "within {block}");
        assembler.push(br#"{"type":"content_block_stop","index":0}"#).unwrap();
        assert_eq!(assembler.push(ping), Ok(EventKind::Other), "after {block}");
    }
}

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::dialect::cross::reply::CrossFault;
use crate::dialect::cross::responses::reply::to_responses;
use crate::dialect::cross::stream::ToOpenAi;
use crate::dialect::responses::reply::tests::{accumulated, any_reply};
use crate::dialect::{openai, responses};

const STAMP: Stamp<'_> = Stamp { id: "resp_1", created: 1_700_000_000, cached: false };

fn echo() -> Echo {
    Echo::of(br#"{"model":"m","input":"x","temperature":0.5}"#)
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        value => value.to_string().into_bytes(),
    }
}

fn converted(chunks: &[Value]) -> (Vec<Value>, ToResponses) {
    let mut converter = ToResponses::new(&STAMP, &echo());
    let events = chunks.iter().flat_map(|chunk| converter.push(&bytes(chunk)).unwrap());
    (events.map(|data| serde_json::from_slice(&data).unwrap()).collect(), converter)
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response.")).collect()
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt", "system_fingerprint": "fp",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]})
}

fn piece(delta: &Value) -> Value {
    chunk(delta, &json!(null))
}

fn call(call: &Value) -> Value {
    piece(&json!({"tool_calls": [call]}))
}

/// A stream with a bit of everything, as OpenAI and others send it.
fn tool_stream() -> Vec<Value> {
    vec![
        json!({"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [1]}),
        piece(&json!({"role": "assistant", "content": "", "refusal": null})),
        piece(&json!({"reasoning_content": "H"})),
        piece(&json!({"reasoning_content": "m."})),
        piece(&json!({"content": "Let me "})),
        piece(&json!({"content": "see."})),
        call(
            &json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        call(&json!({"index": 0, "function": {"arguments": "{\"a\""}})),
        call(&json!({"index": 0, "function": {"arguments": ":1}"}})),
        call(&json!({"index": 1, "type": "function", "function": {"name": "g", "arguments": "{}"}})),
        chunk(&json!({}), &json!("tool_calls")),
        json!({"choices": [], "model": "gpt",
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}),
        json!("[DONE]"),
    ]
}

#[test]
fn a_tool_stream_in_events() {
    let (events, converter) = converted(&tool_stream());
    assert!(converter.is_done() && !converter.has_failed());
    assert_eq!(converter.sequence(), events.len() as u64);
    assert_eq!(
        names(&events),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "reasoning_text.delta",
            "reasoning_text.delta",
            "reasoning_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
    );
    let response = accumulated(&events);
    assert_eq!(
        response["output"],
        json!([
            {"id": "rs_1_0", "type": "reasoning", "status": "completed", "summary": [],
             "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"id": "msg_1_1", "type": "message", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": "Let me see.", "annotations": [], "logprobs": []}]},
            {"id": "fc_1_2", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "f",
             "arguments": "{\"a\":1}"},
            {"id": "fc_1_3", "type": "function_call", "status": "completed", "call_id": "call_1_1", "name": "g",
             "arguments": "{}"}
        ])
    );
    assert_eq!(response["model"], "gpt");
    assert_eq!(response["temperature"], 0.5);
    assert_eq!(response["system_fingerprint"], "fp");
    assert_eq!(response["prompt_filter_results"], json!([1]));
    assert_eq!(response["usage"]["input_tokens"], 3);
    assert_eq!(response["usage"]["total_tokens"], 7);
}

#[test]
fn calls_told_in_turns_stay_open_together() {
    let (events, _) = converted(&[
        call(&json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}})),
        call(&json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}})),
        call(&json!({"index": 0, "function": {"arguments": "}"}})),
        call(&json!({"index": 1, "function": {"arguments": "}"}})),
        // One without a name is told at the end.
        call(&json!({"index": 2, "id": "c", "function": {"arguments": "{}"}})),
        chunk(&json!({}), &json!("tool_calls")),
        json!("[DONE]"),
    ]);
    let response = accumulated(&events);
    let told: Vec<_> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["call_id"], &item["arguments"]))
        .collect();
    assert_eq!(told, [(&json!("a"), &json!("{}")), (&json!("b"), &json!("{}")), (&json!("c"), &json!("{}"))]);
}

#[test]
fn text_after_a_call_is_another_message() {
    let (events, _) = converted(&[
        piece(&json!({"content": "a"})),
        call(&json!({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}})),
        piece(&json!({"content": "b"})),
        chunk(&json!({}), &json!("stop")),
        json!("[DONE]"),
    ]);
    let response = accumulated(&events);
    let kinds: Vec<_> = response["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "function_call", "message"]);
    let (mut converter, stopped) = (ToResponses::new(&STAMP, &echo()), json!({"arguments": "{}"}));
    for chunk in [
        call(&json!({"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}})),
        piece(&json!({"content": "b"})),
    ] {
        converter.push(&bytes(&chunk)).unwrap();
    }
    let more = call(&json!({"index": 0, "function": stopped}));
    assert!(matches!(converter.push(&bytes(&more)), Err(ReplyFault::Malformed(_))));
    assert!(converter.has_failed() && converter.end().is_empty());
}

#[test]
fn a_refusal_is_a_part_of_the_message() {
    let (events, _) = converted(&[
        piece(&json!({"content": "Well. "})),
        piece(&json!({"refusal": "I must"})),
        piece(&json!({"refusal": " not."})),
        chunk(&json!({}), &json!("stop")),
        json!("[DONE]"),
    ]);
    let response = accumulated(&events);
    assert_eq!(response["output"][0]["content"][1], json!({"type": "refusal", "refusal": "I must not."}));
    assert_eq!(response["status"], "completed");
}

#[test]
fn how_a_stream_ends() {
    let begin = piece(&json!({"content": "a"}));
    let finish = |word: &str| chunk(&json!({}), &json!(word));
    let last = |chunks: &[Value]| converted(chunks).0.last().unwrap().clone();
    for (end, reason) in [
        (vec![finish("length"), json!("[DONE]")], json!("max_output_tokens")),
        (vec![finish("content_filter"), json!("[DONE]")], json!("content_filter")),
        (vec![json!("[DONE]")], json!(null)),
    ] {
        let event = last(&[vec![begin.clone()], end].concat());
        assert_eq!(event["type"], "response.incomplete");
        assert_eq!(event["response"]["incomplete_details"], json!({"reason": reason}));
        assert_eq!(event["response"]["output"][0]["status"], "incomplete");
    }
    // The connection ends: after a finish reason all is said, before it nothing may be made up.
    let (_, mut converter) = converted(&[begin.clone(), finish("stop")]);
    assert!(!converter.is_done());
    assert_eq!(converter.end().len(), 4);
    assert!(converter.is_done() && converter.end().is_empty());
    let (_, mut converter) = converted(&[begin]);
    assert!(converter.end().is_empty());
    assert!(matches!(ToResponses::new(&STAMP, &echo()).push(b"[DONE]"), Err(ReplyFault::Malformed(_))));
}

#[test]
fn errors_are_events_and_ends() {
    let begin = piece(&json!({"content": "a"}));
    for (fault, code, message) in [
        (
            json!({"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}),
            json!("rate_limit_exceeded"),
            "slow down",
        ),
        (json!({"error": {"message": "bad gateway", "code": 502}}), json!("502"), "bad gateway"),
        (json!({"error": {"message": "x", "type": "server_error"}}), json!("server_error"), "x"),
        (json!({"error": "broke"}), json!(null), "broke"),
        (
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}),
            json!(null),
            "the provider reports an error",
        ),
    ] {
        let (events, mut converter) = converted(&[begin.clone(), fault]);
        assert_eq!(
            *events.last().unwrap(),
            json!({"type": "error", "code": code, "message": message, "param": null, "sequence_number": 5})
        );
        assert!(converter.has_failed() && !converter.is_done() && converter.end().is_empty());
        assert!(converter.push(b"[DONE]").unwrap().is_empty());
    }
    let mut second = begin;
    second["choices"][0]["index"] = json!(1);
    for odd in [second, piece(&json!({"content": [{"type": "text"}]})), json!("{"), json!("[1]")] {
        let mut converter = ToResponses::new(&STAMP, &echo());
        assert!(matches!(converter.push(&bytes(&odd)), Err(ReplyFault::Malformed(_))), "{odd}");
    }
}

#[test]
fn whole_completions_cross_too() {
    let body = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "length",
        "message": {"role": "assistant", "content": "Hi", "annotations": [{"type": "url_citation"}]}}]});
    let response = to_responses(&bytes(&body), &STAMP, &echo()).unwrap();
    let response: Value = serde_json::from_slice(&response).unwrap();
    assert_eq!(response["status"], "incomplete");
    assert_eq!(response["temperature"], 0.5);
    assert_eq!(response["annotations"], json!([{"type": "url_citation"}]));
    let twice = json!({"choices": [body["choices"][0], body["choices"][0]]});
    assert!(matches!(to_responses(&bytes(&twice), &STAMP, &echo()), Err(CrossFault::Inexpressible(_))));
    let fault = json!({"error": {"message": "x"}});
    assert!(matches!(
        to_responses(&bytes(&fault), &STAMP, &echo()),
        Err(CrossFault::Reply(ReplyFault::Reported))
    ));
}

/// From Anthropic's events by way of chunks.
#[test]
fn an_anthropic_provider_can_answer() {
    let reply = openai::reply::parse_whole(
        br#"{"model":"claude","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}]}"#,
    )
    .unwrap()
    .unwrap();
    let mut chunks = ToOpenAi::new(&STAMP, true);
    let mut converter = ToResponses::new(&STAMP, &echo());
    let mut events = Vec::new();
    for event in crate::dialect::anthropic::reply::render_events(&reply, &STAMP) {
        for chunk in chunks.push(&event).unwrap() {
            events.extend(converter.push(&chunk).unwrap());
        }
    }
    let events: Vec<Value> = events.iter().map(|data| serde_json::from_slice(data).unwrap()).collect();
    let response = accumulated(&events);
    assert_eq!(response["output"][0]["content"][0]["text"], "Hi");
    assert_eq!(response["status"], "completed");
}

fn assembled(events: &[Bytes]) -> Option<crate::chat::ChatReply> {
    let mut assembler = responses::reply::Assembler::default();
    for event in events {
        assembler.push(event).unwrap();
    }
    assembler.finish()
}

proptest! {
    /// An answer is the same whole, from memory, and crossed as it comes.
    #[test]
    fn crossed_whole_and_streamed_are_the_same(reply in any_reply()) {
        let mut converter = ToResponses::new(&STAMP, &echo());
        let mut events = Vec::new();
        for chunk in openai::reply::render_chunks(&reply, &STAMP, true) {
            events.extend(converter.push(&chunk).unwrap());
        }
        events.extend(converter.push(b"[DONE]").unwrap());
        let whole = to_responses(&openai::reply::render_whole(&reply, &STAMP), &STAMP, &echo()).unwrap();
        let values: Vec<Value> = events.iter().map(|data| serde_json::from_slice(data).unwrap()).collect();
        let told = accumulated(&values);
        // Refusals stand before the text in chunks of a stored answer.
        if reply.extra.message.contains_key("refusal") {
            return Ok(());
        }
        prop_assert_eq!(told, serde_json::from_slice::<Value>(&whole).unwrap());
        prop_assert_eq!(assembled(&events), responses::reply::parse_whole(&whole).unwrap());
    }

    #[test]
    fn hostile_chunks_never_panic(
        pieces in vec((0..3_u64, "[a-z]{0,2}", "[{}a]{0,3}", "\\PC{0,4}", any::<bool>()), 0..12),
    ) {
        let mut converter = ToResponses::new(&STAMP, &echo());
        let mut events = Vec::new();
        for (index, name, arguments, text, stop) in pieces {
            let delta = json!({"content": text, "reasoning": name, "tool_calls": [
                {"index": index, "function": {"name": name, "arguments": arguments}}]});
            let finish = if stop { json!("stop") } else { json!(null) };
            let Ok(more) = converter.push(&bytes(&chunk(&delta, &finish))) else { return Ok(()) };
            events.extend(more);
        }
        events.extend(converter.end());
        if converter.is_done() {
            let events: Vec<Value> = events.iter().map(|data| serde_json::from_slice(data).unwrap()).collect();
            accumulated(&events);
        }
    }
}

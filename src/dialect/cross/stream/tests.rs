use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Map;

use super::*;
use crate::chat::{ChatReply, EventKind};
use crate::dialect::cross::{Inexpressible, reply};
use crate::dialect::openai::reply::{ReplyFault, Stamp, is_terminal, parse_whole};
use crate::dialect::{anthropic, openai};

const STAMP: Stamp<'_> = Stamp { id: "id_1", created: 1_700_000_000, cached: false };

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn value(data: &Bytes) -> Value {
    if is_terminal(data) { json!("[DONE]") } else { serde_json::from_slice(data).unwrap() }
}

fn to_openai(events: &[Value]) -> (Vec<Value>, ToOpenAi) {
    let mut converter = ToOpenAi::new(&STAMP, true);
    let chunks = events.iter().flat_map(|event| converter.push(&bytes(event)).unwrap());
    (chunks.map(|data| value(&data)).collect(), converter)
}

fn to_anthropic(chunks: &[Value]) -> (Vec<Value>, ToAnthropic) {
    let mut converter = ToAnthropic::new(&STAMP);
    let push = |chunk: &Value| match chunk {
        Value::String(done) => converter.push(done.as_bytes()).unwrap(),
        chunk => converter.push(&bytes(chunk)).unwrap(),
    };
    let events = chunks.iter().flat_map(push).map(|data| value(&data)).collect();
    (events, converter)
}

/// What OpenAI's side of this crate makes of chunks.
fn assembled(chunks: &[Value]) -> Option<ChatReply> {
    let (last, chunks) = chunks.split_last().unwrap();
    assert_eq!(last, "[DONE]");
    let mut assembler = openai::reply::Assembler::default();
    for chunk in chunks {
        assembler.push(&bytes(chunk)).unwrap();
    }
    assembler.finish()
}

/// A message, put together as Anthropic's SDKs do it: they fail on an event before the message, a
/// block out of its place, a delta without its block.
fn accumulated(events: &[Value]) -> Value {
    let (start, rest) = events.split_first().unwrap();
    assert_eq!(start["type"], "message_start");
    let mut message = start["message"].clone();
    let mut inputs: Vec<String> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for event in rest {
        let index = usize::try_from(event["index"].as_u64().unwrap_or_default()).unwrap();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                let blocks = message["content"].as_array_mut().unwrap();
                assert_eq!(blocks.len(), index);
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
                open.push(index);
            }
            "content_block_delta" => {
                assert!(open.contains(&index), "a delta of a closed block");
                let (delta, block) = (&event["delta"], &mut message["content"][index]);
                let mut grow = |field: &str| {
                    block[field] =
                        format!("{}{}", block[field].as_str().unwrap(), delta[field].as_str().unwrap())
                            .into();
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => grow("text"),
                    "thinking_delta" => grow("thinking"),
                    "input_json_delta" => inputs[index] += delta["partial_json"].as_str().unwrap(),
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" => open.retain(|block| *block != index),
            "message_delta" => {
                for (name, value) in event["delta"].as_object().unwrap() {
                    message[name.as_str()] = value.clone();
                }
                for (name, value) in event["usage"].as_object().unwrap() {
                    message["usage"][name.as_str()] = value.clone();
                }
            }
            "message_stop" => assert!(open.is_empty(), "{open:?}"),
            other => panic!("{other}"),
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    for (index, input) in inputs.iter().enumerate().filter(|(_, input)| !input.is_empty()) {
        message["content"][index]["input"] =
            serde_json::from_str(input).unwrap_or_else(|_| input.as_str().into());
    }
    message
}

/// The tool use stream that Anthropic's documentation shows, shortened, with a thought.
fn tool_stream() -> Vec<Value> {
    let delta =
        |index: u8, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    vec![
        json!({"type": "message_start", "message": {"id": "msg_014p7gG3wDgGV9EUtLvnow3U", "type": "message", "role": "assistant",
            "model": "claude-opus-4-6", "stop_sequence": null, "stop_reason": null, "content": [],
            "usage": {"input_tokens": 472, "cache_read_input_tokens": 28, "output_tokens": 2}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQBCgIYAhIM"})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        delta(1, json!({"type": "text_delta", "text": "Okay"})),
        delta(1, json!({"type": "tomorrow_delta", "tomorrow": "?"})),
        delta(1, json!({"type": "text_delta", "text": ", let's check."})),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {
            "type": "tool_use", "id": "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "name": "get_weather", "input": {}}}),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"location\":"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": " \"Paris\"}"})),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "tomorrow"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 89}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn anthropics_tool_stream_in_openais_chunks() {
    let (chunks, converter) = to_openai(&tool_stream());
    assert!(converter.is_done() && !converter.has_failed());
    let delta = |delta: Value| {
        json!({"id": "id_1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "claude-opus-4-6",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    };
    let call = |call: Value| delta(json!({"tool_calls": [call]}));
    let mut finish = delta(json!({}));
    finish["choices"][0]["finish_reason"] = json!("tool_calls");
    let mut usage = delta(json!({}));
    usage["choices"] = json!([]);
    usage["usage"] = json!({"prompt_tokens": 500, "completion_tokens": 89, "total_tokens": 589,
        "prompt_tokens_details": {"cached_tokens": 28}});
    let expected = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "Hm."})),
        delta(json!({"content": "Okay"})),
        delta(json!({"content": ", let's check."})),
        call(json!({"index": 0, "id": "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "type": "function",
            "function": {"name": "get_weather", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "{\"location\":"}})),
        call(json!({"index": 0, "function": {"arguments": " \"Paris\"}"}})),
        call(
            json!({"index": 1, "id": "toolu_2", "type": "function", "function": {"name": "now", "arguments": ""}}),
        ),
        call(json!({"index": 1, "function": {"arguments": "{}"}})),
        finish,
        usage,
        json!("[DONE]"),
    ];
    assert_eq!(chunks, expected);
    // Every event that is content for one dialect is for the other.
    let mut assembler = anthropic::reply::Assembler::default();
    let kinds =
        tool_stream().iter().filter(|event| assembler.push(&bytes(event)) == Ok(EventKind::Content)).count();
    let mut assembler = openai::reply::Assembler::default();
    let theirs =
        expected[..10].iter().filter(|chunk| assembler.push(&bytes(chunk)) == Ok(EventKind::Content)).count();
    // One input of a tool that takes none is told to OpenAI alone, and that thoughts begin to Anthropic's.
    assert_eq!(kinds, theirs);
}

#[test]
fn usage_is_a_chunk_only_when_it_is_wanted() {
    let mut converter = ToOpenAi::new(&STAMP, false);
    let chunks: Vec<_> =
        tool_stream().iter().flat_map(|event| converter.push(&bytes(event)).unwrap()).collect();
    assert!(chunks.iter().all(|chunk| !chunk.windows(5).any(|word| word == b"usage")));
    assert_eq!(chunks.last().unwrap(), "[DONE]");
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt", "system_fingerprint": "fp",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]})
}

#[test]
fn openais_tool_stream_in_anthropics_events() {
    let null = json!(null);
    let call = |call: Value| chunk(&json!({"tool_calls": [call]}), &null);
    let (events, converter) = to_anthropic(&[
        json!({"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [1]}),
        chunk(&json!({"role": "assistant", "content": "", "refusal": null}), &null),
        chunk(&json!({"reasoning_content": "Hm."}), &null),
        chunk(&json!({"content": "Let me "}), &null),
        chunk(&json!({"content": "see."}), &null),
        call(
            json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
        // Two calls told in turns, the second without an id and its name late.
        call(json!({"index": 1, "function": {"arguments": "{"}})),
        call(json!({"index": 1, "function": {"name": "g"}})),
        call(json!({"index": 0, "id": "", "function": {"name": "f", "arguments": ":1}"}})),
        call(json!({"index": 1, "function": {"arguments": "}"}})),
        chunk(&json!({}), &json!("tool_calls")),
        json!({"id": "chatcmpl-1", "model": "gpt", "choices": [], "citations": ["u"],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 3}}}),
        json!("[DONE]"),
    ]);
    assert!(converter.is_done());
    assert_eq!(
        accumulated(&events),
        json!({
            "id": "id_1", "type": "message", "role": "assistant", "model": "gpt",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": ""},
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "toolu_id_1_1", "name": "g", "input": {}}
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "system_fingerprint": "fp", "prompt_filter_results": [1], "citations": ["u"],
            "usage": {"input_tokens": 6, "cache_read_input_tokens": 3, "output_tokens": 4}
        })
    );
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_call_told_whole_ends_before_the_next_block() {
    let call = |index: u8, arguments: &str| {
        let function = json!({"name": "f", "arguments": arguments});
        chunk(
            &json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "function": function}]}),
            &json!(null),
        )
    };
    let begin =
        [call(0, "{\"a\":"), call(0, "1}"), call(1, "{}"), chunk(&json!({"content": "x"}), &json!(null))];
    let mut chunks = begin.to_vec();
    chunks.extend([call(0, " \n"), chunk(&json!({}), &json!("tool_calls")), json!("[DONE]")]);
    let (events, _) = to_anthropic(&chunks);
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| {
            Some((event["type"].as_str()?.strip_prefix("content_block_")?, event["index"].as_u64()?))
        })
        .collect();
    let block = |index| [("start", index), ("delta", index), ("stop", index)];
    let mut expected = [block(0), block(1), block(2)].concat();
    expected.insert(1, ("delta", 0));
    assert_eq!(told, expected);
    assert_eq!(accumulated(&events)["content"][0]["input"], json!({"a": 1}));
    let (_, mut converter) = to_anthropic(&begin);
    assert!(matches!(converter.push(&bytes(&call(0, ",\"b\":2}"))), Err(ReplyFault::Malformed(_))));
    assert!(converter.has_failed() && converter.push(b"[DONE]").unwrap().is_empty());
}

#[test]
fn a_refusal_is_text_that_ends_as_one() {
    let refusal = "I cannot help with that.";
    let (events, _) = to_anthropic(&[
        chunk(&json!({"role": "assistant", "content": null, "refusal": "I cannot"}), &json!(null)),
        chunk(&json!({"refusal": " help with that."}), &json!(null)),
        chunk(&json!({}), &json!("stop")),
        json!("[DONE]"),
    ]);
    let whole = json!({"model": "gpt", "system_fingerprint": "fp", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": null, "refusal": refusal}}]});
    let whole = reply::to_anthropic(&bytes(&whole), &STAMP).unwrap();
    assert_eq!(accumulated(&events), serde_json::from_slice::<Value>(&whole).unwrap());
    assert_eq!(accumulated(&events)["content"], json!([{"type": "text", "text": refusal}]));
    assert_eq!(accumulated(&events)["stop_reason"], "refusal");
}

#[test]
fn a_choices_own_fields_are_told_as_in_the_whole() {
    let mut chunks = [
        chunk(
            &json!({"role": "assistant", "content": "I can", "reasoning_content": "", "reasoning": "Hm."}),
            &json!(null),
        ),
        chunk(&json!({"content": " not."}), &json!(null)),
        chunk(&json!({"refusal": "No."}), &json!(null)),
        chunk(&json!({}), &json!("stop")),
        json!("[DONE]"),
    ];
    chunks[0]["choices"][0]["content_filter_results"] = json!({"hate": "low"});
    chunks[1]["choices"][0]["content_filter_results"] = json!({"hate": "safe"});
    chunks[1]["choices"][0]["system_fingerprint"] = json!("another");
    chunks[2]["choices"][0]["type"] = json!("choice");
    chunks[3]["choices"][0]["native_finish_reason"] = json!("STOP");
    chunks[3]["choices"][0]["none"] = json!([]);
    let whole = json!({"model": "gpt", "system_fingerprint": "fp", "choices": [{"index": 0, "finish_reason": "stop",
        "content_filter_results": {"hate": "safe"}, "native_finish_reason": "STOP", "type": "choice",
        "system_fingerprint": "another", "none": [], "message": {
            "role": "assistant", "content": "I can not.", "reasoning_content": "", "reasoning": "Hm.", "refusal": "No."}}]});
    let whole = reply::to_anthropic(&bytes(&whole), &STAMP).unwrap();
    let told = accumulated(&to_anthropic(&chunks).0);
    // Text and thoughts of one chunk are told in the order that models keep.
    assert_eq!(told, serde_json::from_slice::<Value>(&whole).unwrap());
    assert_eq!(told["content"].as_array().map(Vec::len), Some(3));
    assert_eq!(told["native_finish_reason"], "STOP");
}

#[test]
fn what_is_skipped_is_told_of() {
    let strange = ["signature_delta", "tomorrow"];
    let mut plain = tool_stream();
    plain.retain(|event| !strange.iter().any(|word| event.to_string().contains(word)));
    assert!(!to_openai(&plain).1.has_skipped() && to_openai(&tool_stream()).1.has_skipped());
    let skips = |place: usize, event: Value| {
        let mut events = plain.clone();
        events.insert(place, event);
        to_openai(&events).1.has_skipped()
    };
    let begin = |block: Value| json!({"type": "content_block_start", "index": 9, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 9, "delta": delta});
    assert!(!skips(3, json!({"type": "ping", "tomorrow": null})));
    assert!(!skips(3, begin(json!({"type": "text", "text": "", "citations": null}))));
    assert!(!skips(3, delta(json!({"type": "input_json_delta", "partial_json": ""}))));
    for event in [
        json!({"type": "tomorrow"}),
        json!({"type": "message_start", "message": {"content": [{"type": "text", "text": "x"}]}}),
        json!({"type": "message_delta", "delta": {}, "context_management": {"applied_edits": [1]}}),
        begin(json!({"type": "redacted_thinking", "data": "x"})),
        begin(json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        begin(json!({"type": "text", "text": "", "citations": [{"type": "char_location"}]})),
        begin(json!({"type": "thinking", "thinking": "", "signature": "x"})),
        begin(
            json!({"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "code_execution"}}),
        ),
        delta(json!({"type": "citations_delta", "citation": {}})),
        delta(json!({"type": "signature_delta", "signature": "x"})),
        delta(json!({"type": "text_delta", "text": "x", "tomorrow": 1})),
    ] {
        assert!(skips(3, event.clone()), "{event}");
    }
    let skips = |delta: Value| to_anthropic(&[chunk(&delta, &json!(null))]).1.has_skipped();
    assert!(!skips(
        json!({"role": "assistant", "content": "x", "refusal": null, "annotations": [], "audio": null})
    ));
    assert!(!skips(
        json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]})
    ));
    for delta in [
        json!({"annotations": [{"type": "url_citation"}]}),
        json!({"audio": {"id": "a"}}),
        json!({"function_call": {"name": "f", "arguments": "{}"}}),
        json!({"reasoning_details": [{"type": "reasoning.text"}]}),
        json!({"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}]}),
    ] {
        assert!(skips(delta.clone()), "{delta}");
    }
    let mut likely = chunk(&json!({"content": "x"}), &json!("stop"));
    likely["choices"][0]["logprobs"] = json!({"content": [{"token": "x", "logprob": 0.0}]});
    assert!(to_anthropic(&[likely]).1.has_skipped());
}

#[test]
fn a_call_ends_as_one_whatever_the_provider_says() {
    let call =
        json!({"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    for (word, reason) in [("stop", "tool_use"), ("tool_calls", "tool_use"), ("length", "max_tokens")] {
        let (events, _) =
            to_anthropic(&[chunk(&json!({"tool_calls": [call]}), &json!(word)), json!("[DONE]")]);
        let whole = json!({"model": "gpt", "system_fingerprint": "fp", "choices": [{"index": 0, "finish_reason": word,
            "message": {"role": "assistant", "content": null, "tool_calls": [call]}}]});
        let whole = reply::to_anthropic(&bytes(&whole), &STAMP).unwrap();
        assert_eq!(accumulated(&events), serde_json::from_slice::<Value>(&whole).unwrap());
        assert_eq!(accumulated(&events)["stop_reason"], reason, "{word}");
    }
}

#[test]
fn calls_of_one_place_are_told_apart() {
    let call = |place: Option<u8>, id: &str, name: Option<&str>, arguments: &str| {
        let call = json!({"index": place, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        chunk(&json!({"tool_calls": [call]}), &json!(null))
    };
    let blocks = |chunks: &[Value]| {
        let mut chunks = chunks.to_vec();
        chunks.extend([chunk(&json!({}), &json!("tool_calls")), json!("[DONE]")]);
        accumulated(&to_anthropic(&chunks).0)["content"].clone()
    };
    let block = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "f", "input": input});
    for place in [Some(0), None] {
        let told = [
            call(place, "a", Some("f"), "{\"x\":1}"),
            call(place, "b", Some("f"), "{\"y\""),
            call(place, "b", None, ":2}"),
            call(place, "c", Some("f"), ""),
        ];
        let expected = [block("a", json!({"x": 1})), block("b", json!({"y": 2})), block("c", json!({}))];
        assert_eq!(blocks(&told), json!(expected));
    }
    // One call, although its id changes, or its name is repeated.
    let told = [
        call(Some(0), "a", Some("f"), "{\"x\""),
        call(Some(0), "b", None, ":"),
        call(Some(0), "a", Some("f"), "1"),
        call(Some(0), "", Some("f"), "}"),
    ];
    assert_eq!(blocks(&told), json!([block("a", json!({"x": 1}))]));
}

#[test]
fn every_call_has_a_number_of_its_own() {
    let call = |id: &str| json!({"type": "content_block_start", "content_block": {"type": "tool_use", "id": id, "name": "f", "input": {}}});
    let (chunks, _) = to_openai(&[tool_stream()[0].clone(), call("a"), call("b"), call("c")]);
    let numbers: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64())
        .collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_call_without_an_id_gets_the_same_one_whole_and_streamed() {
    let call =
        json!({"index": 0, "id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let (events, _) = to_anthropic(&[
        chunk(&json!({"role": "assistant", "tool_calls": [call]}), &json!("tool_calls")),
        json!("[DONE]"),
    ]);
    let whole = json!({"model": "gpt", "system_fingerprint": "fp", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": [call]}}]});
    let whole = reply::to_anthropic(&bytes(&whole), &STAMP).unwrap();
    assert_eq!(accumulated(&events), serde_json::from_slice::<Value>(&whole).unwrap());
    assert_eq!(accumulated(&events)["content"][0]["id"], "toolu_id_1_0");
}

#[test]
fn reasons_of_the_end_in_both_directions() {
    for (word, reason) in [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "tool_use"),
        ("eos", "eos"),
    ] {
        let (events, _) = to_anthropic(&[chunk(&json!({"content": "x"}), &json!(word)), json!("[DONE]")]);
        assert_eq!(accumulated(&events)["stop_reason"], reason);
    }
    for (reason, word) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
    ] {
        let mut events = tool_stream();
        events[19]["delta"] =
            json!({"stop_reason": reason, "stop_sequence": (reason == "stop_sequence").then_some("END")});
        let reply = assembled(&to_openai(&events).0).unwrap();
        let body = openai::reply::render_whole(&reply, &STAMP);
        let choice = serde_json::from_slice::<Value>(&body).unwrap()["choices"][0].clone();
        assert_eq!(choice["finish_reason"], word);
        assert_eq!(choice.get("stop_sequence"), (reason == "stop_sequence").then_some(&json!("END")));
    }
}

#[test]
fn errors_are_errors_in_the_other_dialect() {
    for (error, kind, code) in [
        (
            json!({"type": "overloaded_error", "message": "Overloaded"}),
            "server_error",
            json!("overloaded_error"),
        ),
        (json!({"type": "rate_limit_error", "message": "Overloaded"}), "rate_limit_error", json!(null)),
        (
            json!({"type": "not_found_error", "message": "Overloaded"}),
            "invalid_request_error",
            json!("not_found_error"),
        ),
    ] {
        let mut events = tool_stream();
        events[9] = json!({"type": "error", "error": error});
        let (chunks, mut converter) = to_openai(&events);
        let expected = json!({"error": {"message": "Overloaded", "type": kind, "param": null, "code": code}});
        assert_eq!(chunks.last(), Some(&expected));
        assert!(converter.has_failed() && !converter.is_done() && converter.end().is_empty());
        let mut assembler = openai::reply::Assembler::default();
        assert_eq!(assembler.push(&bytes(&expected)), Err(ReplyFault::Reported));
    }
    let begin = chunk(&json!({"content": "x"}), &json!(null));
    for (chunk, kind, message) in [
        (json!({"error": {"message": "m", "type": "server_error", "code": null}}), "api_error", "m"),
        (
            json!({"error": {"message": "m", "type": "server_error", "code": "unavailable"}}),
            "overloaded_error",
            "m",
        ),
        (json!({"error": {"message": "m", "code": 429}}), "rate_limit_error", "m"),
        (json!({"error": {"message": "m", "code": "529"}}), "overloaded_error", "m"),
        (
            json!({"error": {"message": "m", "type": "invalid_request_error", "code": "x"}}),
            "invalid_request_error",
            "m",
        ),
        (json!({"error": "it broke"}), "api_error", "it broke"),
        (json!({"object": "error", "message": "flat"}), "api_error", "flat"),
        (json!({"choices": [{"index": 0, "error": {"code": 502, "message": "m"}}]}), "api_error", "m"),
        (
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}),
            "api_error",
            "the provider reports an error",
        ),
    ] {
        let (events, mut converter) = to_anthropic(&[begin.clone(), chunk.clone(), json!("[DONE]")]);
        let expected = json!({"type": "error", "error": {"type": kind, "message": message}});
        assert_eq!(events.last(), Some(&expected), "{chunk}");
        assert!(converter.has_failed() && !converter.is_done() && converter.end().is_empty());
    }
}

#[test]
fn a_stream_without_its_terminal_ends_only_after_its_reason() {
    let begin = chunk(&json!({"content": "x"}), &json!(null));
    let (_, mut cut) = to_anthropic(std::slice::from_ref(&begin));
    assert!(cut.end().is_empty() && !cut.is_done());
    let (mut events, mut whole) = to_anthropic(&[begin, chunk(&json!({}), &json!("stop"))]);
    events.extend(whole.end().iter().map(value));
    assert_eq!(accumulated(&events)["stop_reason"], "end_turn");
    assert!(whole.is_done() && whole.end().is_empty());
    let events = tool_stream();
    let (_, mut cut) = to_openai(&events[..19]);
    assert!(cut.end().is_empty());
    let (mut chunks, mut whole) = to_openai(&events[..20]);
    chunks.extend(whole.end().iter().map(value));
    assert!(assembled(&chunks).is_some() && whole.is_done());
    assert!(whole.push(&bytes(&events[9])).unwrap().is_empty());
}

#[test]
fn what_is_no_stream_is_a_fault() {
    for data in [
        &b"OK"[..],
        b"[1]",
        b"[DONE]",
        br#"{"choices":[{"index":1,"delta":{"content":"x"}}]}"#,
        br#"{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"x"}]}}]}"#,
    ] {
        assert!(matches!(ToAnthropic::new(&STAMP).push(data), Err(ReplyFault::Malformed(_))), "{data:?}");
    }
    for data in [&b"OK"[..], b"[1]", b"[DONE]", b"{}", br#"{"type":"message_stop"}"#] {
        assert!(matches!(ToOpenAi::new(&STAMP, true).push(data), Err(ReplyFault::Malformed(_))), "{data:?}");
    }
}

#[test]
fn whole_answers_that_have_no_other_form() {
    let message = json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": [
        {"type": "text", "text": "x"}, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]});
    let reason = Inexpressible::new("content[1]", "holds more than text, thoughts and tool calls");
    assert_eq!(reply::to_openai(&bytes(&message), &STAMP), Err(reason.into()));
    let choice =
        json!({"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"});
    let two = json!({"choices": [choice, choice]});
    assert!(matches!(reply::to_anthropic(&bytes(&two), &STAMP), Err(reply::CrossFault::Inexpressible(_))));
    let custom = json!({"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}]}});
    let reason =
        Inexpressible::new("message.tool_calls[0]", "calls no function, and Anthropic has no other calls");
    assert_eq!(reply::to_anthropic(&bytes(&json!({"choices": [custom]})), &STAMP), Err(reason.into()));
    let unfinished =
        json!({"type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": null});
    let reason = reply::to_openai(&bytes(&unfinished), &STAMP).unwrap_err();
    assert!(
        matches!(&reason, reply::CrossFault::Inexpressible(reason) if reason.field == "stop_reason"),
        "{reason}"
    );
    let error = json!({"error": {"message": "m"}});
    assert_eq!(reply::to_anthropic(&bytes(&error), &STAMP), Err(ReplyFault::Reported.into()));
    assert_eq!(reply::to_openai(&bytes(&error), &STAMP), Err(ReplyFault::Reported.into()));
}

/// Cuts a text wherever `cuts` say.
fn chopped(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let mut places: Vec<_> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
        .chain([0, text.len()])
        .collect();
    places.sort_unstable();
    places.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

fn any_input() -> impl Strategy<Value = Value> {
    vec(
        ("[a-z]{1,4}", prop_oneof!["\\PC{0,6}".prop_map(Value::from), any::<i32>().prop_map(Value::from)]),
        0..3,
    )
    .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
}

/// A message of Anthropic's with thoughts, text and tools, in the order that models keep.
fn any_message() -> impl Strategy<Value = Value> {
    let call = ("[a-z0-9]{1,5}", "[a-z]{1,5}", any_input());
    (
        option::of("\\PC{1,12}"),
        option::of("\\PC{1,40}"),
        vec(call, 0..3),
        "[a-z]{1,4}",
        any::<[u32; 3]>(),
        option::of("\\PC{1,3}"),
    )
        .prop_map(|(thoughts, text, calls, model, [input, read, output], sequence)| {
            let mut content = Vec::new();
            content
                .extend(thoughts.map(|text| json!({"type": "thinking", "thinking": text, "signature": ""})));
            content.extend(text.map(|text| json!({"type": "text", "text": text})));
            content.extend(calls.iter().map(
                |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            ));
            let reason = if sequence.is_some() {
                "stop_sequence"
            } else if calls.is_empty() {
                "end_turn"
            } else {
                "tool_use"
            };
            json!({"id": "id_1", "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": reason, "stop_sequence": sequence, "x": model,
                "usage": {"input_tokens": input, "cache_read_input_tokens": read, "output_tokens": output}})
        })
}

/// A message as its stream, every text and input in pieces.
fn streamed(message: &Value, cuts: &[prop::sample::Index]) -> Vec<Value> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = json!(null);
    start["stop_sequence"] = json!(null);
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in message["content"].as_array().unwrap().iter().enumerate() {
        let mut begun = block.clone();
        let (kind, field, text) = match block["type"].as_str().unwrap() {
            "tool_use" => {
                begun["input"] = json!({});
                ("input_json_delta", "partial_json", block["input"].to_string())
            }
            "thinking" => ("thinking_delta", "thinking", block["thinking"].as_str().unwrap().to_owned()),
            _ => ("text_delta", "text", block["text"].as_str().unwrap().to_owned()),
        };
        if begun.get(field).is_some() {
            begun[field] = json!("");
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        for piece in chopped(&text, cuts) {
            events.push(
                json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}),
            );
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events
        .push(json!({"type": "message_delta", "usage": {"output_tokens": message["usage"]["output_tokens"]},
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}}));
    events.push(json!({"type": "message_stop"}));
    events
}

proptest! {
    #[test]
    fn a_stream_of_anthropics_says_what_the_whole_says(message in any_message(), cuts in vec(any::<prop::sample::Index>(), 0..5)) {
        let (chunks, converter) = to_openai(&streamed(&message, &cuts));
        prop_assert!(converter.is_done());
        let whole = reply::to_openai(&bytes(&message), &STAMP).unwrap();
        prop_assert_eq!(assembled(&chunks), parse_whole(&whole).unwrap());
        // And from there back, whole and streamed.
        let back = reply::to_anthropic(&whole, &STAMP).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&back).unwrap(), message.clone());
        prop_assert_eq!(accumulated(&to_anthropic(&chunks).0), message);
    }

    #[test]
    fn a_stream_of_openais_says_what_the_whole_says(message in any_message(), cuts in vec(any::<prop::sample::Index>(), 0..5)) {
        let whole = reply::to_openai(&bytes(&message), &STAMP).unwrap();
        let reply = parse_whole(&whole).unwrap().unwrap();
        let mut chunks = Vec::new();
        for data in openai::reply::render_stream(&reply, &STAMP, true) {
            let data = Bytes::copy_from_slice(&data[6..data.len() - 2]);
            let chunk = value(&data);
            let delta = &chunk["choices"][0]["delta"];
            let name = ["content", "reasoning_content"].into_iter().find(|name| delta[*name].as_str().is_some_and(|text| !text.is_empty()));
            let Some(name) = name else { chunks.push(chunk); continue };
            for piece in chopped(delta[name].as_str().unwrap(), &cuts) {
                let mut part = chunk.clone();
                part["choices"][0]["delta"][name] = piece.into();
                chunks.push(part);
            }
        }
        let (events, converter) = to_anthropic(&chunks);
        prop_assert!(converter.is_done());
        prop_assert_eq!(accumulated(&events), message);
    }

    #[test]
    fn a_hit_equals_the_miss_it_repeats(message in any_message()) {
        // Asked by an OpenAI client, answered by an OpenAI provider, asked again by an Anthropic client.
        let whole = reply::to_openai(&bytes(&message), &STAMP).unwrap();
        let kept = parse_whole(&whole).unwrap().unwrap();
        prop_assert_eq!(anthropic::reply::render_whole(&kept, &STAMP), reply::to_anthropic(&whole, &STAMP).unwrap());
        let events: Vec<_> = anthropic::reply::render_events(&kept, &STAMP).iter().map(value).collect();
        prop_assert_eq!(accumulated(&events), message);
    }

    #[test]
    fn so_does_one_of_anthropics(mut message in any_message(), creation in option::of(0..9_u8), details in option::of("[a-z]{1,3}"), cuts in vec(any::<prop::sample::Index>(), 0..5)) {
        // Asked by an Anthropic client, answered by Anthropic, asked again by an OpenAI client.
        message["content"] = json!([{"type": "text", "text": format!("x{}", message["model"])}]);
        message["stop_reason"] = if message["stop_sequence"].is_null() { json!("end_turn") } else { json!("stop_sequence") };
        message["stop_details"] = json!(details);
        message["usage"]["cache_creation_input_tokens"] = json!(creation);
        message["usage"]["service_tier"] = json!("standard");
        message["usage"]["output_tokens_details"] = json!({"thinking_tokens": creation});
        let events = streamed(&message, &cuts);
        let mut assembler = anthropic::reply::Assembler::default();
        for event in &events {
            assembler.push(&bytes(event)).unwrap();
        }
        let kept = assembler.finish().unwrap();
        let told = anthropic::reply::parse_whole(&bytes(&message)).unwrap();
        prop_assert_eq!(Some(&kept), told.as_ref());
        let whole = |body: &Bytes| serde_json::from_slice::<Value>(body).unwrap();
        let hit = openai::reply::render_whole(&kept, &STAMP);
        prop_assert_eq!(whole(&hit), whole(&reply::to_openai(&bytes(&message), &STAMP).unwrap()));
        let hit: Vec<_> = openai::reply::render_chunks(&kept, &STAMP, true).map(|data| value(&data)).chain([json!("[DONE]")]).collect();
        prop_assert_eq!(assembled(&hit), assembled(&to_openai(&events).0));
        let hit: Vec<_> = anthropic::reply::render_events(&kept, &STAMP).iter().map(value).collect();
        prop_assert_eq!(accumulated(&hit), message);
    }

    #[test]
    fn hostile_events_never_panic(kinds in vec("(message|content_block)_(start|delta|stop)", 0..8), index in option::of(0..2_u8), text in option::of("[a-z]{0,3}")) {
        let part = json!({"type": "tool_use", "text": text, "stop_reason": text, "usage": text, "input": index});
        let mut converter = ToOpenAi::new(&STAMP, true);
        for kind in kinds {
            let event = json!({"type": kind, "message": part, "index": index, "content_block": part, "delta": part, "usage": part});
            let _ = converter.push(&bytes(&event));
        }
        let mut converter = ToAnthropic::new(&STAMP);
        for delta in [&part, &json!(text), &json!({"tool_calls": [part, text, {"index": index}], "content": text, "refusal": index})] {
            let _ = converter.push(&bytes(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": text}], "usage": part})));
            let _ = converter.push(&bytes(&json!({"choices": delta, "usage": text, "content": index})));
        }
        let _ = converter.push(b"[DONE]");
    }
}

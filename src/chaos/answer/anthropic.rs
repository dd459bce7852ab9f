//! The wire form of Anthropic's messages.

use serde_json::{Map, Value, json};

use super::{Answer, Event, Kind, Shape};

pub(super) fn whole(answer: &Answer) -> String {
    let mut body = message(answer);
    let block = if answer.calls_a_tool() {
        tool_use(answer, &json!({ "number": 1 }))
    } else {
        json!({ "type": "text", "text": answer.text() })
    };
    if answer.shape == Shape::Full {
        body.insert("content".to_owned(), json!([block]));
    }
    body.insert("stop_reason".to_owned(), stop_reason(answer));
    if answer.usage {
        let usage = json!({ "input_tokens": answer.prompt_tokens, "output_tokens": answer.pieces.len() });
        body.insert("usage".to_owned(), usage);
    }
    Value::Object(body).to_string()
}

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut message = message(answer);
    if answer.usage {
        let usage = json!({ "input_tokens": answer.prompt_tokens, "output_tokens": 1 });
        message.insert("usage".to_owned(), usage);
    }
    let mut events = vec![event(Kind::Start, "message_start", json!({ "message": message }))];
    if answer.shape == Shape::Full {
        let tool = answer.calls_a_tool();
        let block = if tool { tool_use(answer, &json!({})) } else { json!({ "type": "text", "text": "" }) };
        events.push(event(Kind::Start, "content_block_start", json!({ "index": 0, "content_block": block })));
        events.push(event(Kind::Start, "ping", json!({})));
        if tool {
            events.push(delta(&json!({ "type": "input_json_delta", "partial_json": "{\"number\":1}" })));
        } else {
            events.extend(answer.pieces.iter().map(|text| piece(text)));
        }
        events.push(event(Kind::Finish, "content_block_stop", json!({ "index": 0 })));
    }
    let mut stop = json!({ "delta": { "stop_reason": stop_reason(answer), "stop_sequence": null } });
    if answer.usage {
        stop["usage"] = json!({ "output_tokens": answer.pieces.len() });
    }
    events.push(event(Kind::Finish, "message_delta", stop));
    events.push(event(Kind::Done, "message_stop", json!({})));
    events
}

pub(super) fn piece(text: &str) -> Event {
    delta(&json!({ "type": "text_delta", "text": text }))
}

fn delta(delta: &Value) -> Event {
    event(Kind::Content, "content_block_delta", json!({ "index": 0, "delta": delta }))
}

fn event(kind: Kind, name: &'static str, mut data: Value) -> Event {
    data["type"] = name.into();
    Event { kind, name: Some(name), data: data.to_string() }
}

/// A message without its content.
fn message(answer: &Answer) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("id".to_owned(), format!("msg_{}", answer.number).into());
    body.insert("type".to_owned(), "message".into());
    body.insert("role".to_owned(), "assistant".into());
    body.insert("model".to_owned(), answer.model.as_str().into());
    if answer.shape != Shape::NoList {
        body.insert("content".to_owned(), json!([]));
    }
    body.insert("stop_reason".to_owned(), Value::Null);
    body.insert("stop_sequence".to_owned(), Value::Null);
    body
}

fn tool_use(answer: &Answer, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": format!("toolu_{}", answer.number), "name": "look_up", "input": input })
}

/// OpenAI's reasons in Anthropic's words; others as they are.
fn stop_reason(answer: &Answer) -> Value {
    match answer.finish.as_deref() {
        None => Value::Null,
        Some("stop") => "end_turn".into(),
        Some("length") => "max_tokens".into(),
        Some("content_filter") => "refusal".into(),
        Some("tool_calls") => "tool_use".into(),
        Some(other) => other.into(),
    }
}

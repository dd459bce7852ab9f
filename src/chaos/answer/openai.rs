//! The wire form of OpenAI's chat completions.

use serde_json::{Map, Value, json};

use super::{Answer, Event, Kind, Shape};

pub(super) fn whole(answer: &Answer) -> String {
    let mut message = json!({ "role": "assistant", "content": answer.text(), "refusal": null });
    if answer.calls_a_tool() {
        message["content"] = Value::Null;
        message["tool_calls"] = json!([tool_call(answer)]);
    }
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": answer.finish });
    let mut body = envelope(answer, "chat.completion", &choice);
    if answer.usage {
        body.insert("usage".to_owned(), usage(answer));
    }
    Value::Object(body).to_string()
}

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut events = vec![chunk(answer, Kind::Start, &json!({ "role": "assistant", "content": "" }), None)];
    if answer.calls_a_tool() {
        let mut call = tool_call(answer);
        call["index"] = 0.into();
        events.push(chunk(answer, Kind::Content, &json!({ "tool_calls": [call] }), None));
    } else {
        events.extend(answer.pieces.iter().map(|text| piece(answer, text)));
    }
    events.push(chunk(answer, Kind::Finish, &json!({}), answer.finish.as_deref()));
    if answer.usage && answer.include_usage {
        let mut body = envelope(answer, "chat.completion.chunk", &Value::Null);
        body.insert("choices".to_owned(), json!([]));
        body.insert("usage".to_owned(), usage(answer));
        events.push(event(Kind::Usage, Value::Object(body).to_string()));
    }
    events.push(event(Kind::Done, "[DONE]".to_owned()));
    events
}

pub(super) fn piece(answer: &Answer, text: &str) -> Event {
    chunk(answer, Kind::Content, &json!({ "content": text }), None)
}

fn chunk(answer: &Answer, kind: Kind, delta: &Value, finish: Option<&str>) -> Event {
    let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
    event(kind, Value::Object(envelope(answer, "chat.completion.chunk", &choice)).to_string())
}

fn event(kind: Kind, data: String) -> Event {
    Event { kind, name: None, data }
}

fn envelope(answer: &Answer, object: &str, choice: &Value) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("id".to_owned(), format!("chatcmpl-{}", answer.number).into());
    body.insert("object".to_owned(), object.into());
    body.insert("created".to_owned(), answer.created.as_secs().into());
    body.insert("model".to_owned(), answer.model.as_str().into());
    match answer.shape {
        Shape::Full => body.insert("choices".to_owned(), json!([choice])),
        Shape::EmptyList => body.insert("choices".to_owned(), json!([])),
        Shape::NoList => None,
    };
    body
}

fn tool_call(answer: &Answer) -> Value {
    let function = json!({ "name": "look_up", "arguments": "{\"number\":1}" });
    json!({ "id": format!("call_{}", answer.number), "type": "function", "function": function })
}

fn usage(answer: &Answer) -> Value {
    let (prompt, completion) = (answer.prompt_tokens, answer.pieces.len());
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    })
}

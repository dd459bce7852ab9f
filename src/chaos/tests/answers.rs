//! When all is well, and faults of what the answer says.

use super::*;

fn parsed(data: &[String]) -> Vec<Value> {
    data.iter().filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn texts(data: &[String]) -> Vec<String> {
    let texts = parsed(data);
    texts
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}

/// The names of an Anthropic stream's events, and its data.
async fn named(rules: &str) -> (Vec<String>, Vec<Value>) {
    let response = answer(rules, ANTHROPIC, true).await;
    let text = response.text();
    let names = text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect();
    (names, parsed(&response.data()))
}

#[tokio::test]
async fn openai_whole() {
    let response = whole("ok").await;
    assert_eq!((response.status(), response.is_complete()), (200, true));
    assert_eq!(response.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(response.header("x-request-id").as_deref(), Some("req_1"));
    let body = response.json();
    assert_eq!(body["id"], "chatcmpl-1");
    assert_eq!(body["model"], "big-1");
    assert_eq!(body["choices"][0]["message"]["content"], "answer 1");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"], json!({ "prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8 }));
}

#[tokio::test]
async fn openai_streamed() {
    let response = stream("ok").await;
    assert!(response.is_complete());
    assert_eq!(response.chunks().len(), 9, "each event in a chunk of its own, and the last chunk");
    let data = response.data();
    assert_eq!(texts(&data), ["", "an", "sw", "er", " 1"]);
    assert_eq!(data.last().map(String::as_str), Some("[DONE]"));
    let events = parsed(&data);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events[5]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[6]["choices"], json!([]));
    assert_eq!(events[6]["usage"]["total_tokens"], 8);
}

#[tokio::test]
async fn openai_streams_name_their_usage_only_when_asked() {
    let chaos = playing("ok").await;
    let mut client = Client::connect(&chaos).await;
    let body = json!({ "model": "big-1", "stream": true, "messages": [{ "role": "user", "content": "Hi" }] });
    client.ask_last(OPENAI, &body).await;
    assert!(!client.rest().await.text().contains("usage"));
}

#[tokio::test]
async fn anthropic_whole() {
    let response = answer("ok", ANTHROPIC, false).await;
    assert_eq!(response.header("request-id").as_deref(), Some("req_1"));
    let body = response.json();
    assert_eq!(
        (&body["id"], &body["type"], &body["role"]),
        (&json!("msg_1"), &json!("message"), &json!("assistant"))
    );
    assert_eq!(body["content"], json!([{ "type": "text", "text": "answer 1" }]));
    assert_eq!(body["stop_reason"], "end_turn");
    assert_eq!(body["usage"], json!({ "input_tokens": 4, "output_tokens": 4 }));
}

#[tokio::test]
async fn anthropic_streamed() {
    let (names, data) = named("ok").await;
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    assert!(data.iter().zip(&names).all(|(data, name)| data["type"] == name.as_str()));
    assert_eq!(data[0]["message"]["model"], "big-1");
    assert_eq!(data[3]["delta"], json!({ "type": "text_delta", "text": "an" }));
    assert_eq!(data[8]["delta"]["stop_reason"], "end_turn");
    assert_eq!(data[8]["usage"]["output_tokens"], 4);
}

#[tokio::test]
async fn the_answer_is_numbered_an_echo_or_fixed() {
    for (content, expected) in [
        (Content::Numbered, ["answer 1", "answer 2"]),
        (Content::Echo, ["How are you today?", "How are you today?"]),
        (Content::Fixed("Grüß dich 🌍".to_owned()), ["Grüß dich 🌍", "Grüß dich 🌍"]),
    ] {
        let chaos = start(script("ok").content(content)).await;
        let mut client = Client::connect(&chaos).await;
        for expected in expected {
            client.ask(OPENAI, &question(false)).await;
            assert_eq!(client.response().await.json()["choices"][0]["message"]["content"], expected);
        }
    }
}

#[tokio::test]
async fn a_success_may_be_empty() {
    let body = whole("empty:choices").await.json();
    assert_eq!(body["choices"], json!([]));
    assert!(whole("empty:missing").await.json().get("choices").is_none());
    assert_eq!(whole("empty:content").await.json()["choices"][0]["message"]["content"], "");
    let response = whole("empty:body").await;
    assert_eq!((response.status(), response.raw(), response.is_complete()), (200, &b""[..], true));

    assert!(texts(&stream("empty:choices").await.data()).is_empty());
    assert!(!stream("empty:missing").await.data()[0].contains("choices"));
    assert_eq!(texts(&stream("empty:content").await.data()), [""]);
    assert_eq!(stream("empty:body").await.raw(), b"0\r\n\r\n");

    assert_eq!(answer("empty:choices", ANTHROPIC, false).await.json()["content"], json!([]));
    assert!(answer("empty:missing", ANTHROPIC, false).await.json().get("content").is_none());
    let (names, _) = named("empty:choices").await;
    assert_eq!(names, ["message_start", "message_delta", "message_stop"]);
}

#[tokio::test]
async fn every_finish_reason_is_in_the_dialects_own_words() {
    for (reason, openai, anthropic) in [
        ("length", json!("length"), json!("max_tokens")),
        ("content_filter", json!("content_filter"), json!("refusal")),
        ("tool_calls", json!("tool_calls"), json!("tool_use")),
        ("error", json!("error"), json!("error")),
        ("null", Value::Null, Value::Null),
        ("unheard_of", json!("unheard_of"), json!("unheard_of")),
    ] {
        let rules = format!("finish:{reason}");
        assert_eq!(whole(&rules).await.json()["choices"][0]["finish_reason"], openai);
        let data = stream(&rules).await.data();
        let finish = &parsed(&data)[data.len() - 3]["choices"][0]["finish_reason"];
        assert_eq!(*finish, openai, "{data:?}");
        assert_eq!(answer(&rules, ANTHROPIC, false).await.json()["stop_reason"], anthropic);
        let (_, data) = named(&rules).await;
        assert_eq!(data[data.len() - 2]["delta"]["stop_reason"], anthropic);
    }
}

#[tokio::test]
async fn tool_calls_bring_a_call_along() {
    let message = &whole("finish:tool_calls").await.json()["choices"][0]["message"];
    assert_eq!(
        (&message["content"], &message["tool_calls"][0]["function"]["name"]),
        (&Value::Null, &json!("look_up"))
    );
    let data = parsed(&stream("finish:tool_calls").await.data());
    assert_eq!(data[1]["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
    let body = answer("finish:tool_calls", ANTHROPIC, false).await.json();
    assert_eq!(body["content"][0]["type"], "tool_use");
    assert_eq!(named("finish:tool_calls").await.1[3]["delta"]["type"], "input_json_delta");
}

#[tokio::test]
async fn the_answer_may_name_another_model() {
    assert_eq!(whole("wrong-model").await.json()["model"], "another-model");
    assert_eq!(parsed(&stream("wrong-model:small-1").await.data())[0]["model"], "small-1");
}

#[tokio::test]
async fn a_swapped_answer_is_that_of_the_attempt_before() {
    let chaos = start(script("swapped").content(Content::Echo)).await;
    let mut client = Client::connect(&chaos).await;
    let mut told = Vec::new();
    for text in ["One?", "Two?", "Three?"] {
        let body = json!({ "model": text, "messages": [{ "role": "user", "content": text }] });
        client.ask(OPENAI, &body).await;
        let body = client.response().await.json();
        told.push((
            body["id"].clone(),
            body["model"].clone(),
            body["choices"][0]["message"]["content"].clone(),
        ));
    }
    let other = |id: &str, model: &str, text: &str| (json!(id), json!(model), json!(text));
    assert_eq!(told[0], other("chatcmpl-0", "One?", "another question"));
    assert_eq!(told[1], other("chatcmpl-1", "One?", "One?"));
    assert_eq!(told[2], other("chatcmpl-2", "Two?", "Two?"));
}

#[tokio::test]
async fn chunks_come_twice_in_another_order_or_late() {
    assert_eq!(texts(&stream("chunks:duplicate").await.data()), ["", "an", "an", "sw", "er", " 1"]);
    assert_eq!(texts(&stream("chunks:reordered").await.data()), ["", "sw", "an", "er", " 1"]);
    let data = parsed(&stream("chunks:late").await.data());
    assert_eq!(data[4]["choices"][0]["finish_reason"], "stop");
    assert_eq!(data[5]["choices"][0]["delta"]["content"], " 1");
    assert!(!stream("chunks:no-usage").await.text().contains("usage"));
    assert!(!whole("chunks:no-usage").await.text().contains("usage"));
    assert!(!answer("chunks:no-usage", ANTHROPIC, true).await.text().contains("usage"));
}

#[tokio::test]
async fn the_terminal_event_comes_twice_too_early_or_never() {
    let twice = stream("done:twice").await.data();
    assert_eq!(twice[twice.len() - 2..], ["[DONE]", "[DONE]"]);
    let more = stream("done:then-more").await.data();
    assert_eq!(more[more.len() - 2], "[DONE]");
    assert!(more[more.len() - 1].contains(" and more"));
    let missing = stream("done:missing").await;
    assert!(missing.is_complete() && !missing.text().contains("[DONE]"));
    let (names, _) = named("done:twice").await;
    assert_eq!(names[names.len() - 2..], ["message_stop", "message_stop"]);
    assert_eq!(named("done:missing").await.0.last().map(String::as_str), Some("message_delta"));
}

#[tokio::test]
async fn half_json_is_cut_within_an_event_or_in_a_body_of_the_right_length() {
    let response = whole("half-json").await;
    assert!(response.is_complete());
    assert!(serde_json::from_slice::<Value>(&response.body()).is_err());
    let data = stream("half-json").await.data();
    assert_eq!(data.len(), 8, "the stream goes on");
    let broken = data.iter().filter(|data| *data != "[DONE]" && serde_json::from_str::<Value>(data).is_err());
    assert_eq!(broken.count(), 1);
}

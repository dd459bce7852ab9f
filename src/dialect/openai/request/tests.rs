use super::*;

fn read(body: &str) -> Result<ChatRequest, BadRequest> {
    parse(Bytes::copy_from_slice(body.as_bytes()), 16)
}

#[test]
fn the_question_is_the_last_user_turn_and_leaves_the_scope() {
    let request = read(
        r#"{"model":"m","temperature":0,"user":"bob","messages":[
            {"role":"system","content":"be kind"},{"role":"user","content":"how?"}]}"#,
    )
    .unwrap();
    assert_eq!(request.question.unwrap().parts(), ["how?"]);
    assert_eq!(
        request.scope,
        Json::parse(
            br#"{"temperature":0,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":null}]}"#,
            16
        )
        .unwrap()
    );
}

#[test]
fn media_stay_in_the_scope_and_text_parts_leave_it() {
    let request = read(
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},
            {"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"b"}]}]}"#,
    )
    .unwrap();
    assert_eq!(request.question.unwrap().parts(), ["a", "b"]);
    let scope = format!("{:?}", request.scope);
    assert!(scope.contains("image_url") && !scope.contains("\"a\""), "{scope}");
}

#[test]
fn a_turn_of_another_role_is_no_question() {
    for last in [
        r#"{"role":"assistant","content":"Well"}"#,
        r#"{"role":"tool","tool_call_id":"1","content":"42"}"#,
        r#"{"role":"user","content":"  "}"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#,
        r#"{"role":"user"}"#,
    ] {
        let request = read(&format!(r#"{{"model":"m","messages":[{last}]}}"#)).unwrap();
        assert_eq!(request.question, None, "{last}");
    }
}

#[test]
fn only_the_models_name_is_replaced() {
    let body = "{ \"messages\" : [{\"role\":\"user\",\"content\":\"model\"}],\n \"model\" : \"a\\u0062\" , \"x\":1.0}";
    let request = read(body).unwrap();
    assert_eq!(request.model, "ab");
    assert_eq!(request.body_for("ab"), body);
    assert_eq!(request.body_for("big \"one\""), body.replace(r#""a\u0062""#, r#""big \"one\"""#));
}

#[test]
fn bad_input_says_what_and_where() {
    for (body, param, words) in [
        ("", None, "JSON"),
        ("[]", None, "an array"),
        ("{\"model\":\"m\"", None, "line 1"),
        (r#"{"model":"m","model":"n","messages":[]}"#, None, "duplicate key \"model\""),
        (r#"{"messages":[{"role":"user","content":"x"}]}"#, Some("model"), "missing"),
        (r#"{"model":3,"messages":[{"role":"user","content":"x"}]}"#, Some("model"), "a number"),
        (r#"{"model":" ","messages":[{"role":"user","content":"x"}]}"#, Some("model"), "empty"),
        (r#"{"model":"m"}"#, Some("messages"), "missing"),
        (r#"{"model":"m","messages":[]}"#, Some("messages"), "at least one"),
        (r#"{"model":"m","messages":{}}"#, Some("messages"), "an object"),
        (r#"{"model":"m","messages":["x"]}"#, Some("messages[0]"), "a string"),
        (r#"{"model":"m","messages":[{"content":"x"}]}"#, Some("messages[0].role"), "missing"),
        (r#"{"model":"m","messages":[{"role":1}]}"#, Some("messages[0].role"), "a number"),
        (
            r#"{"model":"m","messages":[{"role":"user","content":4}]}"#,
            Some("messages[0].content"),
            "a number",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}"#,
            Some("messages[0].content[0].text"),
            "must be a string",
        ),
        (r#"{"model":"m","stream":"yes","messages":[{"role":"user"}]}"#, Some("stream"), "a string"),
        (
            r#"{"model":"m","stream_options":7,"messages":[{"role":"user"}]}"#,
            Some("stream_options"),
            "a number",
        ),
        (r#"{"model":"m","messages":[{"role":"user","content":"\u0000"}]}"#, None, "NUL"),
        (r#"{"model":"m","messages":[{"role":"user","content":"\udc00"}]}"#, None, "surrogate"),
    ] {
        let error = read(body).unwrap_err();
        assert_eq!(error.param.as_deref(), param, "{body}: {error}");
        assert!(error.message.contains(words), "{body}: {error}");
    }
    let deep = format!(r#"{{"model":"m","messages":[],"x":{}{}}}"#, "[".repeat(20), "]".repeat(20));
    assert!(read(&deep).unwrap_err().message.contains("deeper than 16"));
}

use serde_json::json;

use super::*;

fn refused(body: &Value) -> String {
    to_chat(body).unwrap_err().to_string()
}

#[test]
fn all_that_crosses() {
    let body = json!({
        "model": "gpt-5", "instructions": "Be kind.", "stream": true, "temperature": 0.5, "top_p": 1,
        "max_output_tokens": 99, "store": false, "user": "u", "metadata": {}, "truncation": "disabled",
        "reasoning": {"effort": "minimal", "summary": null}, "models": ["m"], "provider": {"order": []},
        "text": {"verbosity": "high", "format": {
            "type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}},
        "tools": [{"type": "function", "name": "f", "parameters": null, "strict": null}],
        "tool_choice": "required", "parallel_tool_calls": false,
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "Read this."},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [
                {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{\"a\":1}", "caller": {"type": "direct"}},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "function_call_output", "call_id": "c2", "output": [
                {"type": "input_text", "text": "2"}, {"type": "input_text", "text": "3"}]},
            {"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c3", "output": "4", "status": "completed", "id": "fco"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I must not."}]},
            {"role": "assistant", "content": "Sorry."},
            {"role": "user", "content": "Go on."}
        ]
    });
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let expected = json!({
        "model": "gpt-5", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "top_p": 1,
        "max_completion_tokens": 99, "reasoning_effort": "minimal", "models": ["m"], "provider": {"order": []},
        "verbosity": "high", "response_format": {"type": "json_schema", "json_schema": {
            "name": "n", "schema": {"type": "object"}, "strict": true}},
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": "required", "parallel_tool_calls": false,
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [
                {"type": "text", "text": "Read this."},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}}]},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.",
             "tool_calls": [call("c1", "{}"), call("c2", "{\"a\":1}")]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {"role": "tool", "tool_call_id": "c2", "content": [
                {"type": "text", "text": "2"}, {"type": "text", "text": "3"}]},
            {"role": "assistant", "content": null, "tool_calls": [call("c3", "{}")]},
            {"role": "tool", "tool_call_id": "c3", "content": "4"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I must not."}]},
            {"role": "assistant", "content": "Sorry."},
            {"role": "user", "content": "Go on."}
        ]
    });
    assert_eq!(to_chat(&body).unwrap(), expected);
}

#[test]
fn fields_for_tools_stay_behind_without_tools() {
    // Chat completions refuse them.
    let body =
        json!({"model": "m", "input": "x", "tools": [], "tool_choice": "none", "parallel_tool_calls": false});
    assert_eq!(
        to_chat(&body).unwrap(),
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}]})
    );
}

#[test]
fn a_function_is_strict_where_it_says_so_or_its_schema_is() {
    let strict = |strict: Value, schema: Value| {
        let tool = json!({"type": "function", "name": "f", "strict": strict, "parameters": schema});
        let chat = to_chat(&json!({"model": "m", "input": "x", "tools": [tool]})).unwrap();
        chat["tools"][0]["function"]["strict"] == true
    };
    let ready = json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
        "a": {"type": ["string", "null"]},
        "b": {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": false}}}});
    let mut loose = ready.clone();
    loose["properties"]["b"]["items"]["additionalProperties"] = json!(true);
    let mut optional = ready.clone();
    optional["required"] = json!(["a"]);
    assert!(strict(json!(null), ready.clone()) && strict(json!(true), optional.clone()));
    assert!(!strict(json!(false), ready) && !strict(json!(null), loose) && !strict(json!(null), optional));
    assert!(!strict(json!(null), json!(null)) && !strict(json!(null), json!({"type": "object"})));
}

#[test]
fn what_cannot_be_said_is_refused_by_name() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let with = |item: &Value, name: &str, value: Value| {
        let mut item = item.clone();
        item[name] = value;
        item
    };
    let thought = json!({"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let user = json!({"role": "user", "content": "x"});
    for (input, words) in [
        (json!([]), "input must be a string or an array of at least one item"),
        (json!([with(&call, "namespace", json!("n"))]), "input[0].namespace has no counterpart"),
        (json!([with(&call, "status", json!("incomplete"))]), "input[0].status has no counterpart"),
        (json!([with(&call, "async", json!(true))]), "input[0].async has no counterpart"),
        (json!([with(&call, "caller", json!({"type": "program", "caller_id": "p"}))]), "input[0].caller has"),
        (json!([with(&call, "arguments", json!({}))]), "input[0].arguments must be a string"),
        (json!([with(&user, "status", json!("incomplete"))]), "input[0].status has no counterpart"),
        (json!([with(&user, "role", json!("critic"))]), "input[0].role has no counterpart"),
        (json!([with(&user, "content", json!(null))]), "input[0].content must be a string or an array"),
        (
            json!([with(&user, "content", json!([{"type": "output_text", "text": "x"}]))]),
            "input[0].content[0] has no counterpart",
        ),
        (
            json!([{"role": "assistant", "content": [{"type": "output_text", "text": "x",
                "annotations": [{"type": "url_citation"}]}]}]),
            "input[0].content[0].annotations has no counterpart",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_image", "image_url": "u", "detail": "original"}]}]),
            "input[0].content[0].detail has no counterpart",
        ),
        (
            json!([{"type": "function_call_output", "call_id": "c", "output": [
                {"type": "input_image", "image_url": "u", "detail": "auto"}]}]),
            "input[0].output[0] has no counterpart",
        ),
        (json!([thought, user]), "input[0] is a thought that nothing follows"),
        (json!([user, thought]), "input[1] is a thought that nothing follows"),
        (json!([thought, thought, call]), "input[1] is a thought amid others"),
        (json!([call, thought, call]), "input[1] is a thought amid others"),
        (
            json!([with(&thought, "encrypted_content", json!("gAAA")), call]),
            "input[0] is a thought that only its provider",
        ),
        (
            json!([with(&thought, "content", json!(null)), call]),
            "input[0] is a thought that only its provider",
        ),
        (json!([{"type": "item_reference", "id": "x"}]), "input[0] refers to an item"),
        (json!([{"type": "mcp_call", "id": "x"}]), "input[0] has no counterpart"),
    ] {
        let refusal = refused(&json!({"model": "m", "input": input}));
        assert!(refusal.starts_with(words), "{input}: {refusal}");
    }
    for (name, value, words) in [
        ("tools", json!({}), "tools must be an array"),
        (
            "tools",
            json!([{"type": "function", "name": "f", "defer_loading": true}]),
            "tools[0].defer_loading has",
        ),
        (
            "tools",
            json!([{"type": "function", "name": "f", "strict": "no"}]),
            "tools[0].strict must be a boolean",
        ),
        ("tool_choice", json!("any"), "tool_choice has no counterpart"),
        ("tool_choice", json!({"type": "web_search"}), "tool_choice has no counterpart"),
        ("parallel_tool_calls", json!(1), "parallel_tool_calls must be a boolean"),
        ("include", json!("x"), "include must be an array"),
        ("text", json!({"tomorrow": 1}), "text.tomorrow has no counterpart"),
        ("text", json!({"format": {"type": "json_object", "x": 1}}), "text.format.x has no counterpart"),
        ("reasoning", json!({"mode": "pro"}), "reasoning.mode has no counterpart"),
        ("instructions", json!([]), "instructions must be a string"),
    ] {
        let refusal = refused(&json!({"model": "m", "input": "x", name: value}));
        assert!(refusal.starts_with(words), "{name}: {refusal}");
    }
    assert_eq!(refused(&json!([])), "the body is no object");
}

//! Servers of one's own: vLLM, Ollama, llama.cpp.

use crate::upstream::fault::Class::{Capacity, ContextLength, InvalidRequest, NotServed, ServerError};

use super::*;

const VLLM: &[Case] = &[
    case(
        "400",
        400,
        r#"{"error":{"message":"temperature must be non-negative, got -1.0.","type":"BadRequestError","param":null,"code":400}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, too long",
        400,
        r#"{"error":{"message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "400, too long, flat as in old versions",
        400,
        r#"{"object":"error","message":"This model's maximum context length is 32768 tokens. However, you requested 41648 tokens (37552 in the messages, 4096 in the completion). Please reduce the length of the messages or completion. None","type":"BadRequestError","param":null,"code":400}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "400, too long, in an older version's words",
        400,
        r#"{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "404",
        404,
        r#"{"error":{"message":"The model `llama-9` does not exist.","type":"NotFoundError","param":null,"code":404}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "422",
        422,
        r#"{"error":{"message":"Unprocessable","type":"UnprocessableEntityError","param":null,"code":422}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "500",
        500,
        r#"{"error":{"message":"EngineCore encountered an issue.","type":"InternalServerError","param":null,"code":500}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    // The server is well, and cannot do this one thing: neither a retry nor the breaker helps.
    case(
        "501",
        501,
        r#"{"error":{"message":"Beam search is not supported","type":"NotImplementedError","param":null,"code":501}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "400 in a stream",
        200,
        r#"{"error":{"message":"This model's maximum context length is 1024 tokens. However, you requested 1029 tokens.","type":"BadRequestError","param":null,"code":400}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "500 in a stream, flat",
        200,
        r#"{"object":"error","message":"EngineCore died","type":"InternalServerError","param":null,"code":500}"#,
        ServerError,
        "RETRY NEXT",
    ),
];

const OLLAMA: &[Case] = &[
    case(
        "503",
        503,
        r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case("404", 404, r#"{"error":"model \"llama9\" not found, try pulling it first"}"#, NotServed, "NEXT"),
    case(
        "400, too long",
        400,
        r#"{"error":"the input length exceeds the context length"}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "400, no tools",
        400,
        r#"{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}"#,
        NotServed,
        "NEXT",
    ),
    case("499, our own doing", 499, r#"{"error":"request canceled"}"#, InvalidRequest, "FAIL"),
    case(
        "500",
        500,
        r#"{"error":"llama runner process has terminated: exit status 2"}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case("502", 502, r#"{"error":"remote model is not reachable"}"#, ServerError, "RETRY NEXT"),
    case(
        "the last line of a 200",
        200,
        r#"{"error":"an error was encountered while running the model: unexpected EOF"}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "the last line of a 200, unheard of",
        200,
        r#"{"error":"the llama has left the building"}"#,
        ServerError,
        "RETRY NEXT",
    )
    .unknown(),
];

const LLAMA_CPP: &[Case] = &[
    case(
        "400, too long",
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":13392,"n_ctx":8192}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "503, the model still loads",
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
];

#[test]
fn vllm() {
    check(VLLM);
}

#[test]
fn ollama() {
    check(OLLAMA);
}

#[test]
fn llama_cpp() {
    check(LLAMA_CPP);
}

#[test]
fn a_history_that_was_cut_in_silence_looks_like_an_answer() {
    let body = br#"{"model":"llama3","message":{"role":"assistant","content":"Hello"},"done":true,"prompt_eval_count":2048}"#;
    assert!(!holds_error(body));
}

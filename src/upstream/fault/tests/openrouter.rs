//! OpenRouter, which answers for itself and for the providers behind it.

use crate::upstream::fault::Class::{
    Auth, Capacity, ContentFilter, ContextLength, InvalidRequest, NotServed, Quota, RateLimit, ServerError,
    Timeout,
};

use super::*;

const REFUSALS: &[Case] = &[
    case(
        "402, a budget that is full of calls under way",
        402,
        r#"{"error":{"code":402,"message":"Your in-flight requests already fill your spending budget.","metadata":{"reason":"in_flight_budget_exhausted","limit_source":"openrouter_in_flight_budget"}}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after", "4")])
    .waits(4_000),
    case(
        "402, the same, and only the header says so",
        402,
        r#"{"error":{"code":402,"message":"Payment required","metadata":{"error_type":"payment_required"}}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after", "4")])
    .waits(4_000),
    case(
        "402, the same in Anthropic's form",
        402,
        r#"{"type":"error","error":{"type":"billing_error","message":"in_flight_budget_exhausted"}}"#,
        RateLimit,
        "KEY NEXT",
    ),
    case(
        "402, no credits",
        402,
        r#"{"error":{"code":402,"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "402, no credits, with its source",
        402,
        r#"{"error":{"code":402,"message":"This request requires more credits.","metadata":{"limit_source":"openrouter_credits"}}}"#,
        Quota,
        "KEY NEXT",
    ),
    // The key is good for smaller requests, so it is not put aside.
    case(
        "402, a request that is too dear",
        402,
        r#"{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens. You requested up to 393216 tokens, but can only afford 369211.","metadata":{"reason":"weight_exceeds_budget","limit_source":"openrouter_credits"}}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "403, moderation",
        403,
        r#"{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged","metadata":{"reasons":["violence"],"flagged_input":"how do I kill ... a process","provider_name":"OpenAI","model_slug":"openai/gpt-4o"}}}"#,
        ContentFilter,
        "FAIL",
    ),
    case(
        "403, a guardrail",
        403,
        r#"{"error":{"code":403,"message":"Request blocked by guardrail"}}"#,
        ContentFilter,
        "FAIL",
    ),
    case(
        "403, the key's own limit",
        403,
        r#"{"error":{"code":403,"message":"Budget limit exceeded","metadata":{"limit_source":"openrouter_key_limit","limit_usd":5,"spend_usd":5.01}}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "401",
        401,
        r#"{"error":{"message":"No auth credentials found","code":401}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "408",
        408,
        r#"{"error":{"code":408,"message":"Your request timed out"}}"#,
        Timeout,
        "NEXT",
    ),
    case(
        "429",
        429,
        r#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min."}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after", "20")])
    .waits(20_000),
    case(
        "429, the free requests of the day",
        429,
        r#"{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, of the provider behind, whom all share",
        429,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits","provider_name":"BaseTen","limit_source":"upstream_provider_shared_pool"}}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "502",
        502,
        r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"error_type":"provider_unavailable","provider_name":"NextBit"}}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "503, overloaded",
        503,
        r#"{"error":{"code":503,"message":"Provider returned error","metadata":{"error_type":"provider_overloaded"}}}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("retry-after", "2")])
    .waits(2_000),
    case(
        "503, nobody left",
        503,
        r#"{"error":{"code":503,"message":"There is no available model provider that meets your routing requirements"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "529",
        529,
        r#"{"error":{"code":529,"message":"Provider returned error"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "500 around a wrong request",
        500,
        r#"{"error":{"code":500,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Unknown parameter: logprobs\"}}","provider_name":"Crucible"}}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "500 around a wrong request, by its type",
        500,
        r#"{"error":{"code":500,"message":"Schema is not supported","metadata":{"error_type":"invalid_request"}}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "500 that is one",
        500,
        r#"{"error":{"code":500,"message":"Internal Server Error"}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "400 around a length",
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}},"provider_name":"Together"}}}"#,
        ContextLength,
        "MODEL",
    ),
    // The key that the provider behind refuses is not ours.
    case(
        "400 around the quota of somebody else",
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Your credit balance is too low\"}}","provider_name":"Anthropic"}}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400 around the quota of somebody else, as a text",
        400,
        r#"{"error":{"code":400,"metadata":{"raw":"Your credit balance is too low","provider_name":"Anthropic"}}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, a model",
        400,
        r#"{"error":{"message":"openai/gpt-77 is not a valid model ID","code":400},"user_id":"user_x"}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "404, a model",
        404,
        r#"{"error":{"message":"No endpoints found for openai/gpt-77.","code":404}}"#,
        NotServed,
        "NEXT",
    ),
];

const INSIDE_A_200: &[Case] = &[
    case(
        "the body",
        200,
        r#"{"error":{"code":502,"message":"Provider returned error"},"user_id":"user_x"}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "the body, of a time-out behind",
        200,
        r#"{"error":{"message":"Provider returned error","code":504,"metadata":{"raw":"error code: 504","provider_name":"NextBit","is_byok":false}}}"#,
        Timeout,
        "NEXT",
    ),
    case(
        "a choice",
        200,
        r#"{"id":"gen-1","object":"chat.completion","choices":[{"index":0,"finish_reason":"error","error":{"code":429,"message":"Rate limited"},"message":{"role":"assistant","content":""}}]}"#,
        RateLimit,
        "KEY NEXT",
    ),
    case(
        "an event",
        200,
        r#"{"id":"gen-1","object":"chat.completion.chunk","error":{"code":"server_error","message":"Provider disconnected unexpectedly"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "an event without a word",
        200,
        r#"{"id":"gen-1","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        ServerError,
        "RETRY NEXT",
    )
    .unknown(),
];

#[test]
fn refusals() {
    check(REFUSALS);
}

#[test]
fn errors_inside_a_200() {
    check(INSIDE_A_200);
}

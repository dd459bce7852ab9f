//! OpenAI: chat completions and responses.

use crate::upstream::fault::Class::{
    Auth, Capacity, ContextLength, InvalidRequest, NotServed, Quota, RateLimit, ServerError,
};

use super::*;

const REFUSALS: &[Case] = &[
    case(
        "401, a wrong key",
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-abc*******xyz. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "401, no key",
        401,
        r#"{"error":{"message":"You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.","type":"invalid_request_error","param":null,"code":null}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "401, no member of an organization",
        401,
        r#"{"error":{"message":"You must be a member of an organization to use the API.","type":"invalid_request_error","param":null,"code":"invalid_organization"}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "401, an address that is not on the list",
        401,
        r#"{"error":{"message":"Your IP 203.0.113.7 is not authorized.","type":"invalid_request_error","param":null,"code":"ip_not_authorized"}}"#,
        Auth,
        "KEY NEXT",
    ),
    // Not the key's fault: no key of ours works from here, and another provider may.
    case(
        "403, a country",
        403,
        r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "404, a model",
        404,
        r#"{"error":{"message":"The model `gpt-7` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "403, a model that the project may not use",
        403,
        r#"{"error":{"message":"Project `proj_abc` does not have access to model `gpt-5`","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "400, a wrong request",
        400,
        r#"{"error":{"message":"Invalid type for 'messages': expected an array of objects, but got a string instead.","type":"invalid_request_error","param":"messages","code":"invalid_type"}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, too long",
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130053 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "429, requests per minute",
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-abc on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "29000"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ])
    .waits(120),
    case(
        "429, tokens per minute, both headers",
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Used 29500, Requested 1200. Please try again in 1.4s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after-ms", "1400"), ("retry-after", "2"), ("x-ratelimit-reset-tokens", "1.4s")])
    .waits(1_400),
    case(
        "429, requests per day",
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-abc on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .waits(432_000),
    case(
        "429, a ramp that is too steep",
        429,
        r#"{"error":{"message":"Request rate increased too quickly. Please slow down.","type":"rate_limit_error","param":null,"code":"slow_down"}}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("retry-after", "30")])
    .waits(30_000),
    case(
        "503, the same of old",
        503,
        r#"{"error":{"message":"Slow down.","type":"service_unavailable_error","param":null,"code":"slow_down"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "429, no credits",
        429,
        r#"{"error":{"message":"Your organization has no remaining credits.","type":"insufficient_quota","param":null,"code":"credit_balance_exhausted"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, the organization's limit",
        429,
        r#"{"error":{"message":"Your organization has reached its monthly spend limit.","type":"insufficient_quota","param":null,"code":"organization_spend_limit_exceeded"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, the project's limit",
        429,
        r#"{"error":{"message":"Your project has reached its monthly spend limit.","type":"insufficient_quota","param":null,"code":"project_spend_limit_exceeded"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, the approved usage",
        429,
        r#"{"error":{"message":"Your organization has reached its approved usage limit.","type":"insufficient_quota","param":null,"code":"organization_usage_limit_exceeded"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, the same of old, and a header that invites to come again",
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        Quota,
        "KEY NEXT",
    )
    .with(&[("retry-after", "1"), ("x-should-retry", "true")])
    .waits(1_000),
    case(
        "500",
        500,
        r#"{"error":{"message":"The server had an error processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "503, overloaded",
        503,
        r#"{"error":{"message":"Our servers are currently overloaded. Please try again later.","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("retry-after", "5")])
    .waits(5_000),
];

const INSIDE_A_STREAM: &[Case] = &[
    case(
        "chat, an error of the server",
        200,
        r#"{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "chat, out of money",
        200,
        r#"{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "responses, overloaded",
        200,
        r#"{"type":"error","sequence_number":2,"code":"server_is_overloaded","message":"Our servers are currently overloaded. Please try again later.","param":null}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "responses, the same as an object",
        200,
        r#"{"type":"error","error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"Our servers are currently overloaded. Please try again later.","param":null},"sequence_number":2}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "responses, failed",
        200,
        r#"{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"The model failed to generate a response."},"output":[]}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "responses, failed for a limit, where no header can say how long",
        200,
        r#"{"type":"response.failed","response":{"id":"resp_1","error":{"code":"rate_limit_exceeded","message":"Rate limit reached for gpt-5.1 in organization org-abc on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s. Visit https://platform.openai.com/account/rate-limits to learn more."}}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .waits(11_054),
    case(
        "responses, failed for length",
        200,
        r#"{"type":"response.failed","response":{"id":"resp_1","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "a model at capacity, in words only",
        200,
        r#"{"type":"error","message":"Selected model is at capacity. Please try a different model."}"#,
        Capacity,
        "RETRY NEXT",
    ),
];

#[test]
fn refusals() {
    check(REFUSALS);
}

#[test]
fn errors_inside_a_stream() {
    check(INSIDE_A_STREAM);
}

#[test]
fn answers_that_hold_no_error() {
    for body in [
        r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"error"},"finish_reason":"stop"}]}"#,
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"id":"resp_1","object":"response","status":"completed","error":null,"output":[]}"#,
        r#"{"type":"response.created","response":{"id":"resp_1","status":"in_progress","error":null}}"#,
        "[DONE]",
        "",
    ] {
        assert!(!holds_error(body.as_bytes()), "{body}");
    }
}

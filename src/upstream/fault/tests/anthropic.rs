//! Anthropic.

use crate::upstream::fault::Class::{
    Auth, Capacity, ContentFilter, ContextLength, InvalidRequest, NotServed, Quota, RateLimit, ServerError,
    Timeout,
};

use super::*;

const REFUSALS: &[Case] = &[
    case(
        "400, a wrong request",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content: Input should be a valid list"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, too long",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 206102 tokens > 200000 maximum"}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "400, too long with the answer",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "400, the organization's limit",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-11-01 at 00:00 UTC."},"request_id":"req_011CZLrUfBVkVHn5T6EqQaf7"}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "400, the workspace's limit",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits. You will regain access on 2026-11-01 at 00:00 UTC."}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "400, no credits",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "400, a caller who quotes the same",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"tool_choice: Input tag 'Your credit balance is too low' found using 'type' does not match any of the expected tags"}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, filtered",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
        ContentFilter,
        "FAIL",
    ),
    case(
        "401",
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "403",
        403,
        r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "404",
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-opus-9"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "402",
        402,
        r#"{"type":"error","error":{"type":"billing_error","message":"There is an issue with your payment method."}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "409",
        409,
        r#"{"type":"error","error":{"type":"conflict_error","message":"The request conflicts with another one."}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "413, of the API",
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "413, of Cloudflare",
        413,
        "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body><center>cloudflare</center></body></html>",
        InvalidRequest,
        "FAIL",
    ),
    case(
        "429, a limit",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50,000 input tokens per minute."}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[
        ("retry-after", "12"),
        ("x-should-retry", "true"),
        ("anthropic-ratelimit-input-tokens-remaining", "0"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-10-07T12:00:12Z"),
    ])
    .waits(12_000),
    case(
        "429, acceleration",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's maximum usage increase rate for input tokens per minute. Please scale up your input tokens usage more gradually."}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after", "3")])
    .waits(3_000),
    case(
        "429, only a reset",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit"}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-10-07T12:05:00Z"),
        ("anthropic-ratelimit-tokens-remaining", "0"),
        ("anthropic-ratelimit-tokens-reset", "2026-10-07T12:00:41Z"),
    ])
    .waits(41_000),
    case(
        "429 without Retry-After, the spend cap of the tier",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your API usage limits: your organization has crossed its monthly API usage threshold, set based on your organization's API tier. You will regain access on 2026-11-01 at 00:00 UTC.","details":{"error_code":"enforced_spend_limit_reached"}},"request_id":"req_018EeWyXxfu5pfWkrYcMdjWG"}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, the same in its code only",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Paused.","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, the same in words only",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your API usage limits: your organization has crossed its monthly API usage threshold."}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, a length that this plan does not serve",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "500",
        500,
        r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "504",
        504,
        r#"{"type":"error","error":{"type":"timeout_error","message":"Request timed out"}}"#,
        Timeout,
        "NEXT",
    ),
    case(
        "529",
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("x-should-retry", "true")]),
    case(
        "529, while our own limits are far",
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-10-07T12:01:00Z"),
    ]),
    case(
        "529 without a body",
        529,
        "",
        Capacity,
        "RETRY NEXT",
    ),
];

const INSIDE_A_STREAM: &[Case] = &[
    case(
        "overloaded as the first event",
        200,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "an error of the server",
        200,
        r#"{"type":"error","error":{"details":null,"type":"api_error","message":"Internal server error"}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "a limit",
        200,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests has exceeded your rate limit"}}"#,
        RateLimit,
        "KEY NEXT",
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
    for reason in
        ["refusal", "max_tokens", "model_context_window_exceeded", "pause_turn", "tool_use", "end_turn"]
    {
        let body = format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":"{reason}","usage":{{"input_tokens":9,"output_tokens":0}}}}"#
        );
        assert!(!holds_error(body.as_bytes()), "{body}");
    }
    assert!(!holds_error(br#"{"type":"ping"}"#));
    assert!(!holds_error(
        br#"{"type":"message_start","message":{"id":"msg_1","type":"message","content":[]}}"#
    ));
}

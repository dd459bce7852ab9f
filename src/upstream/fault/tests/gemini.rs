//! Gemini: its own API, the one that speaks OpenAI's, and Vertex.

use crate::upstream::fault::Class::{
    Auth, Capacity, ContextLength, InvalidRequest, NotServed, Quota, RateLimit, ServerError, Timeout,
};

use super::*;

const REFUSALS: &[Case] = &[
    case(
        "429, per minute",
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10, model: gemini-2.5-flash\nPlease retry in 46.578569677s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaDimensions":{"location":"global","model":"gemini-2.5-flash"},"quotaValue":"10"}]},{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"Learn more about Gemini API quotas","url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46.5s"}]}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .waits(46_500),
    case(
        "429, per day, whatever the delay says",
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"},{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46s"}]}}"#,
        Quota,
        "KEY NEXT",
    )
    .waits(46_000),
    case(
        "429, a model that has no free limit",
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-2.5-pro\nPlease retry in 20.04466179s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36000s"}]}}"#,
        Quota,
        "KEY NEXT",
    )
    .waits(36_000_000),
    case(
        "429, in a list, as the API that speaks OpenAI's sends it",
        429,
        r#"[{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}]"#,
        RateLimit,
        "KEY NEXT",
    ),
    case(
        "429, an error in an error",
        429,
        r#"{"error":{"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3-pro\\nPlease retry in 45.5s.\",\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n","code":429,"status":"Too Many Requests"}}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, Vertex: the shared pool is empty",
        429,
        r#"[{"error":{"code":429,"message":"Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.","status":"RESOURCE_EXHAUSTED"}}]"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "503",
        503,
        r#"{"error":{"code":503,"message":"This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later.","status":"UNAVAILABLE"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "504",
        504,
        r#"{"error":{"code":504,"message":"The request timed out. Please try again.","status":"DEADLINE_EXCEEDED"}}"#,
        Timeout,
        "NEXT",
    ),
    // It is sent for a prompt that is too long as well; nothing in it tells the two apart.
    case(
        "500",
        500,
        r#"{"error":{"code":500,"message":"An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting","status":"INTERNAL"}}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "400, a wrong request",
        400,
        r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"temprature\": Cannot find field.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"Invalid JSON payload received."}]}]}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, too long",
        400,
        r#"{"error":{"code":400,"message":"The input token count (2845475) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ContextLength,
        "MODEL",
    ),
    case(
        "400, a wrong key",
        400,
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}]}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "400, a wrong key, in words only",
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "400, a precondition",
        400,
        r#"{"error":{"code":400,"message":"The cached content has expired.","status":"FAILED_PRECONDITION"}}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, a country",
        400,
        r#"{"error":{"code":400,"message":"Gemini API free tier is not available in your country. Please enable billing on your project in Google AI Studio.","status":"FAILED_PRECONDITION"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "400, a place",
        400,
        r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "403",
        403,
        r#"{"error":{"code":403,"message":"Permission denied: Consumer 'api_key:AIza' has been suspended.","status":"PERMISSION_DENIED"}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "404",
        404,
        r#"{"error":{"code":404,"message":"models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "an error inside a 200",
        200,
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
        Capacity,
        "RETRY NEXT",
    ),
];

#[test]
fn refusals() {
    check(REFUSALS);
}

#[test]
fn answers_that_hold_no_error() {
    for body in [
        r#"{"candidates":[{"finishReason":"SAFETY","index":0}]}"#,
        r#"{"candidates":[{"finishReason":"RECITATION","index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]},"finishReason":"MAX_TOKENS"}]}"#,
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#,
    ] {
        assert!(!holds_error(body.as_bytes()), "{body}");
    }
}

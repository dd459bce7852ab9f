//! Azure OpenAI.

use crate::upstream::fault::Class::{Auth, Capacity, ContentFilter, NotServed, RateLimit};

use super::*;

const REFUSALS: &[Case] = &[
    case(
        "400, filtered",
        400,
        r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"}}}}}"#,
        ContentFilter,
        "FAIL",
    ),
    case(
        "400, filtered, and only the inner error says so",
        400,
        r#"{"error":{"message":"Bad request","code":"BadRequest","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
        ContentFilter,
        "FAIL",
    ),
    case(
        "429, a limit",
        429,
        r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 37 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit."}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after-ms", "36800"), ("retry-after", "37")])
    .waits(36_800),
    case(
        "429, a limit, the other header",
        429,
        r#"{"error":{"code":"429","message":"Rate limit is exceeded. Try again in 2 seconds."}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("x-ms-retry-after-ms", "1750")])
    .waits(1_750),
    case(
        "429, a limit for a day",
        429,
        r#"{"error":{"code":"429","message":"Rate limit is exceeded. Try again in 86400 seconds."}}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("retry-after", "86400")])
    .waits(86_400_000),
    case(
        "429, of the gateway in front, without headers",
        429,
        r#"{"statusCode":429,"message":"Rate limit is exceeded. Try again in 5 seconds."}"#,
        RateLimit,
        "KEY NEXT",
    )
    .waits(5_000),
    case(
        "429, full",
        429,
        r#"{"error":{"code":"429","message":"The system is currently experiencing high demand and cannot process your request. Your request exceeds the maximum usage size allowed during peak load. For improved capacity reliability, consider switching to Provisioned Throughput."}}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("retry-after-ms", "20000")])
    .waits(20_000),
    case(
        "429, full, in other words",
        429,
        r#"{"error":{"code":"too_many_requests","message":"The service is temporarily unable to process your request. Please try again later."}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "429, the limit lowered for a while",
        429,
        r#"{"error":{"code":"429","message":"Rate limits are temporarily reduced while the service is experiencing high demand."}}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("retry-after", "10"), ("x-ratelimit-limit-tokens", "12000")])
    .waits(10_000),
    case(
        "401",
        401,
        r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "403, the network's rules",
        403,
        r#"{"error":{"code":"403","message":"Access denied due to Virtual Network/Firewall rules."}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "403, a resource that is blocked",
        403,
        r#"{"error":{"code":"403","message":"Your resource has been temporarily blocked because we detected behavior that may violate our content policy."}}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "404, a deployment",
        404,
        r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."}}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "404, a resource",
        404,
        r#"{"error":{"code":"404","message":"Resource not found"}}"#,
        NotServed,
        "NEXT",
    ),
];

#[test]
fn refusals() {
    check(REFUSALS);
}

#[test]
fn answers_that_hold_no_error() {
    for body in [
        r#"{"choices":[{"index":0,"finish_reason":"content_filter","message":{"role":"assistant"},"content_filter_results":{"hate":{"filtered":true,"severity":"high"}}}]}"#,
        // The filter was down and the text passed unfiltered: an answer, which is not to be stored.
        r#"{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hello"},"content_filter_results":{"error":{"code":"content_filter_error","message":"The contents are not filtered"}}}]}"#,
    ] {
        assert!(!holds_error(body.as_bytes()), "{body}");
    }
}

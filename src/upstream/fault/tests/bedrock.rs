//! Bedrock, whose exceptions have their names in a header, in `__type`, or around them.

use crate::upstream::fault::Class::{
    Auth, Capacity, ContextLength, InvalidRequest, NotServed, Quota, RateLimit, ServerError, Timeout,
};

use super::*;

const REFUSALS: &[Case] = &[
    case(
        "429, throttled",
        429,
        r#"{"message":"Too many tokens, please wait before trying again."}"#,
        RateLimit,
        "KEY NEXT",
    )
    .with(&[("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/")]),
    case(
        "429, throttled, the name in the body",
        429,
        r#"{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Too many requests, please wait before trying again."}"#,
        RateLimit,
        "KEY NEXT",
    ),
    case(
        "429, the tokens of the day",
        429,
        r#"{"__type":"ThrottlingException","message":"Too many tokens per day, please wait before trying again."}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "429, cold",
        429,
        r#"{"message":"The model is not ready for inference. Please wait."}"#,
        Capacity,
        "RETRY NEXT",
    )
    .with(&[("x-amzn-errortype", "ModelNotReadyException")]),
    case(
        "503",
        503,
        r#"{"__type":"ServiceUnavailableException","message":"Bedrock is unable to process your request."}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "408",
        408,
        r#"{"__type":"ModelTimeoutException","message":"Model has timed out in processing the request. Try your request again."}"#,
        Timeout,
        "NEXT",
    ),
    case(
        "424, the model",
        424,
        r#"{"__type":"ModelErrorException","message":"The system encountered an unexpected error during processing. Try your request again.","originalStatusCode":500}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "424, the stream",
        424,
        r#"{"__type":"ModelStreamErrorException","message":"The system encountered an unexpected error during processing. Try your request again."}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "500",
        500,
        r#"{"__type":"InternalServerException","message":"The system encountered an unexpected error during processing."}"#,
        ServerError,
        "RETRY NEXT",
    ),
    case(
        "400, a wrong request",
        400,
        r#"{"__type":"ValidationException","message":"1 validation error detected: Value at 'inferenceConfig.temperature' failed to satisfy constraint"}"#,
        InvalidRequest,
        "FAIL",
    ),
    case(
        "400, too long",
        400,
        r#"{"message":"Input is too long for requested model."}"#,
        ContextLength,
        "MODEL",
    )
    .with(&[("x-amzn-errortype", "ValidationException")]),
    case(
        "400, a model that is not here",
        400,
        r#"{"__type":"ValidationException","message":"The provided model identifier is invalid."}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "400, a model without on-demand",
        400,
        r#"{"__type":"ValidationException","message":"Invocation of model ID anthropic.claude-sonnet-4-20250514-v1:0 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "400, the service's quota",
        400,
        r#"{"__type":"ServiceQuotaExceededException","message":"Your request exceeds the service quota for your account."}"#,
        Quota,
        "KEY NEXT",
    ),
    case(
        "403, no access",
        403,
        r#"{"__type":"AccessDeniedException","message":"User: arn:aws:iam::123456789012:user/x is not authorized to perform: bedrock:InvokeModel"}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "403, no access to a model",
        403,
        r#"{"__type":"AccessDeniedException","message":"You don't have access to the model with the specified model ID."}"#,
        NotServed,
        "NEXT",
    ),
    case(
        "403, a signature of another time",
        403,
        r#"{"message":"Signature expired: 20261007T110000Z is now earlier than 20261007T115500Z (20261007T120000Z - 5 min.)"}"#,
        Auth,
        "KEY NEXT",
    )
    .with(&[("x-amzn-errortype", "InvalidSignatureException")]),
    case(
        "403, an expired token",
        403,
        r#"{"__type":"ExpiredTokenException","message":"The security token included in the request is expired"}"#,
        Auth,
        "KEY NEXT",
    ),
    case(
        "404",
        404,
        r#"{"__type":"ResourceNotFoundException","message":"Could not resolve the foundation model from the provided model identifier."}"#,
        NotServed,
        "NEXT",
    ),
];

const INSIDE_A_STREAM: &[Case] = &[
    case(
        "throttled",
        200,
        r#"{"throttlingException":{"message":"Too many requests, please wait before trying again."}}"#,
        RateLimit,
        "KEY NEXT",
    ),
    case(
        "throttled, the type of the frame as the body's",
        200,
        r#"{"__type":"throttlingException","message":"Too many requests, please wait before trying again."}"#,
        RateLimit,
        "KEY NEXT",
    ),
    case(
        "unavailable",
        200,
        r#"{"serviceUnavailableException":{"message":"The service is currently unavailable."}}"#,
        Capacity,
        "RETRY NEXT",
    ),
    case(
        "a model that broke off",
        200,
        r#"{"modelStreamErrorException":{"message":"An error occurred while streaming","originalStatusCode":400}}"#,
        ServerError,
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

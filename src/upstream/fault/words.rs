//! What the types, codes and reasons of providers mean.
//!
//! Some can mean one thing only, whatever the status. Others say no more than a status does
//! (OpenAI's `invalid_request_error` covers a wrong key and a wrong model too), and count where
//! the status is silent, as inside a 200. Case and separators make no difference:
//! `RATE_LIMIT_EXCEEDED` and `RateLimitExceeded` are one word.

use super::Class::{
    self, Auth, Capacity, ContentFilter, ContextLength, InvalidRequest, NotServed, Quota, RateLimit,
    ServerError, Timeout,
};

/// The words of each class as their providers write them, separated by spaces. The first match
/// counts.
type Vocabulary = &'static [(Class, &'static str)];

const CERTAIN: Vocabulary = &[
    (
        Capacity,
        "server_is_overloaded service_unavailable_error slow_down overloaded_error overloaded
         engine_overloaded_error ServiceUnavailableException ModelNotReadyException UNAVAILABLE
         unavailable_error service_unavailable provider_overloaded upstream_provider_shared_pool no_capacity
         capacity_exceeded",
    ),
    (RateLimit, "in_flight_budget_exhausted openrouter_in_flight_budget"),
    // Too dear for what is left: the key still serves smaller requests, and other targets this one.
    (NotServed, "weight_exceeds_budget"),
    (
        Quota,
        "insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded
         project_spend_limit_exceeded organization_usage_limit_exceeded billing_hard_limit_reached
         billing_not_active usage_limit_reached usage_not_included enforced_spend_limit_reached
         ServiceQuotaExceededException openrouter_credits openrouter_key_limit openrouter_workspace_budget
         openrouter_guardrail_budget exceeded_current_quota_error insufficient_balance",
    ),
    (
        Auth,
        "invalid_api_key invalid_organization mismatched_organization ip_not_authorized account_deactivated
         authentication_error authentication UNAUTHENTICATED API_KEY_INVALID API_KEY_EXPIRED
         ExpiredTokenException InvalidSignatureException SignatureDoesNotMatch IncompleteSignature
         UnrecognizedClientException InvalidClientTokenId MissingAuthenticationTokenException",
    ),
    (
        NotServed,
        "model_not_found model_not_available model_decommissioned not_found_error DeploymentNotFound
         OperationNotSupported ResourceNotFoundException unsupported_country_region_territory",
    ),
    (
        ContextLength,
        "context_length_exceeded context_window_exceeded exceed_context_size_error tokens_limit_reached",
    ),
    (
        ContentFilter,
        "content_filter content_policy_violation ResponsibleAIPolicyViolation moderation_blocked
         flagged_input refusal cyber_policy data_inspection_failed",
    ),
    (Timeout, "timeout_error timeout ModelTimeoutException DEADLINE_EXCEEDED"),
    (
        ServerError,
        "provider_unavailable InternalServerException ModelErrorException ModelStreamErrorException",
    ),
];

const VAGUE: Vocabulary = &[
    (
        RateLimit,
        "rate_limit_exceeded rate_limit_error rate_limit_reached rate_limited too_many_requests requests
         tokens RESOURCE_EXHAUSTED ThrottlingException throttling_error TooManyRequestsException",
    ),
    (Quota, "billing_error payment_required"),
    (
        Auth,
        "permission_error permission_denied request_forbidden AccessDeniedException unauthorized forbidden",
    ),
    (NotServed, "not_found NotImplementedError"),
    (
        InvalidRequest,
        "invalid_request_error invalid_request BadRequestError bad_request UnprocessableEntityError
         INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE ValidationException invalid_value invalid_type
         invalid_prompt invalid_image missing_required_parameter unknown_parameter unsupported_parameter
         unsupported_value string_too_long max_tokens_exceeded token_limit_exceeded request_too_large
         payload_too_large precondition_failed unprocessable",
    ),
    (
        ServerError,
        "server_error server api_error internal_error internal_server_error INTERNAL conflict_error",
    ),
];

/// The class that a type or code settles.
pub(super) fn certain(word: &str) -> Option<Class> {
    // Google's ids of quotas: "GenerateRequestsPerDayPerProjectPerModel-FreeTier".
    if word.contains("PerDay") { Some(Quota) } else { look_up(CERTAIN, word) }
}

/// The class that a type or code names, where the status does not.
pub(super) fn vague(word: &str) -> Option<Class> {
    if word.contains("PerMinute") { Some(RateLimit) } else { look_up(VAGUE, word) }
}

fn look_up(vocabulary: Vocabulary, word: &str) -> Option<Class> {
    let has =
        |(_, words): &&(Class, &str)| words.split_whitespace().any(|known| letters(known).eq(letters(word)));
    vocabulary.iter().find(has).map(|(class, _)| *class)
}

fn letters(word: &str) -> impl Iterator<Item = u8> + '_ {
    word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_whatever_their_case_and_separators() {
        for word in
            ["server_is_overloaded", "SERVER_IS_OVERLOADED", "serverIsOverloaded", "Server is overloaded"]
        {
            assert_eq!(certain(word), Some(Capacity), "{word}");
        }
        assert_eq!(vague("Too Many Requests"), Some(RateLimit));
        assert_eq!(certain("server_is_overloaded_not"), None);
        assert_eq!(certain(""), None);
        assert_eq!(certain("___"), None);
    }

    #[test]
    fn no_word_is_listed_twice() {
        let listed = CERTAIN.iter().chain(VAGUE).flat_map(|(_, words)| words.split_whitespace());
        let mut words: Vec<Vec<u8>> = listed.map(|word| letters(word).collect()).collect();
        words.sort();
        for pair in words.windows(2) {
            assert_ne!(pair[0], pair[1], "{}", String::from_utf8_lossy(&pair[0]));
        }
    }
}

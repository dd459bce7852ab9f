//! What the messages of providers say that neither their codes nor the status do.
//!
//! The last resort: words for people change without notice, and may quote the caller. So a
//! message only corrects a class that is still coarse, into another class that is plausible for
//! it, and needs a whole phrase to do so.

use super::Class::{
    self, Auth, Capacity, ContentFilter, ContextLength, InvalidRequest, NotServed, Quota, RateLimit,
    ServerError,
};

/// Whether a phrase may stand anywhere, or must open the message. Where a wrong request is taken
/// for a wrong key it must: the message may quote the caller, who shall not be able to talk our
/// keys away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Anywhere,
}

/// Phrases that turn one class into another: what it looks like, what it is, and the proof.
const PHRASES: &[(&[Class], Class, At, &[&str])] = &[
    (
        &[InvalidRequest, ServerError],
        ContextLength,
        At::Anywhere,
        &[
            "maximum context length",
            "context_length_exceeded",
            "context window",
            "prompt is too long",
            "input is too long",
            "exceed context limit",
            "exceeds the context length",
            "exceeds the available context size",
            "exceeds the maximum number of tokens allowed",
            "longer than the maximum model length",
            "max_tokens must be at least 1, got -",
        ],
    ),
    (
        &[InvalidRequest],
        Quota,
        At::Start,
        &[
            "you have reached your specified api usage limits",
            "you have reached your specified workspace api usage limits",
            "your credit balance is too low",
        ],
    ),
    (&[InvalidRequest], Auth, At::Start, &["api key not valid", "api key expired"]),
    (
        &[InvalidRequest],
        ContentFilter,
        At::Anywhere,
        &["content management policy", "content filtering policy", "safety system"],
    ),
    (
        &[InvalidRequest, Auth],
        NotServed,
        At::Anywhere,
        &[
            "country, region, or territory not supported",
            "user location is not supported",
            "not available in your country",
            "model identifier is invalid",
            "is not a valid model id",
            "request too large for model",
            "access to the model with the specified model id",
            "with on-demand throughput",
            "does not support tools",
        ],
    ),
    (&[Auth], Quota, At::Start, &["key limit exceeded", "budget limit exceeded"]),
    (&[Auth], ContentFilter, At::Anywhere, &["moderation", "flagged", "guardrail"]),
    (
        &[RateLimit],
        Quota,
        At::Anywhere,
        &[
            "limit: 0",
            "too many tokens per day",
            "free-models-per-day",
            "you have reached your api usage limits",
            "enforced_spend_limit_reached",
        ],
    ),
    (&[RateLimit], NotServed, At::Anywhere, &["required for long context requests"]),
    (
        &[RateLimit, ServerError],
        Capacity,
        At::Anywhere,
        &[
            "high demand",
            "at capacity",
            "overloaded",
            "server busy",
            "temporarily unable to process your request",
            "temporarily rate-limited upstream",
            // Of Vertex, where nobody has a quota of their own: the shared pool is empty.
            "resource exhausted. please try again later",
        ],
    ),
    (&[Quota], RateLimit, At::Anywhere, &["in_flight_budget_exhausted"]),
    (&[ServerError], InvalidRequest, At::Anywhere, &["invalid_request_error"]),
    // Known, and what it looks like.
    (&[ServerError], ServerError, At::Start, &["an error was encountered while running the model"]),
];

/// What the message makes of a class; `None` when it says nothing more.
pub(super) fn corrected(class: Class, message: &str) -> Option<Class> {
    let message = message.to_lowercase();
    let found = PHRASES.iter().find(|(of, _, at, phrases)| {
        of.contains(&class) && phrases.iter().any(|phrase| says(&message, phrase, *at))
    });
    found.map(|(_, class, ..)| *class)
}

/// Whether a phrase stands in a text as whole words ("limit: 0" is not in "limit: 05").
fn says(text: &str, phrase: &str, at: At) -> bool {
    text.match_indices(phrase).take_while(|(from, _)| at == At::Anywhere || *from == 0).any(|(from, _)| {
        let before = text[..from].chars().next_back();
        let after = text[from + phrase.len()..].chars().next();
        let open = phrase.starts_with(char::is_alphanumeric) && before.is_some_and(char::is_alphanumeric);
        let more = phrase.ends_with(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric);
        !open && !more
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_counts_where_it_may_stand() {
        for (of, are, at, phrases) in PHRASES {
            for phrase in *phrases {
                assert_eq!(*phrase, phrase.to_lowercase());
                assert_eq!(corrected(of[0], &phrase.to_uppercase()), Some(*are), "{phrase}");
                let quoted = corrected(of[0], &format!("you said \"{phrase}\""));
                assert_eq!(quoted.is_some(), *at == At::Anywhere, "{phrase}");
            }
        }
    }

    #[test]
    fn a_phrase_is_whole_words() {
        assert_eq!(corrected(RateLimit, "Quota exceeded, limit: 0, model: x"), Some(Quota));
        assert_eq!(corrected(RateLimit, "Quota exceeded, limit: 05"), None);
        assert_eq!(corrected(RateLimit, "Quota exceeded, sublimit: 0"), None);
    }

    #[test]
    fn only_a_coarse_class_is_corrected() {
        assert_eq!(corrected(Auth, "this model's maximum context length is 4096 tokens"), None);
        assert_eq!(corrected(ContentFilter, "the system is experiencing high demand"), None);
    }

    #[test]
    fn no_caller_can_talk_a_key_away() {
        let quoted = "Invalid value: 'Your credit balance is too low'. Supported values are: 'auto'.";
        assert_eq!(corrected(InvalidRequest, quoted), None);
        assert_eq!(corrected(InvalidRequest, "Unknown parameter: 'api key not valid'."), None);
    }
}

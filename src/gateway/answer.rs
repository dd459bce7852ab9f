//! What a caller gets, and where it is from.

use std::sync::Arc;

use super::flight::{EventTail, Follower, Head, Notes};
use super::{Call, GatewayError};
use crate::cache::Entry;
use crate::cache::key::ExactKey;
use crate::chat::ChatReply;
use crate::upstream::{Served, Whole};

/// An answer, and where it is from.
#[derive(Debug)]
pub struct Answer {
    /// Where it is from.
    pub source: Source,
    /// The id under which the answer is, or would be, kept.
    pub key: ExactKey,
    /// Why the whole cache was passed by.
    pub bypass: Option<&'static str>,
    /// Why only the semantic layer was.
    pub semantic_bypass: Option<&'static str>,
    /// The similarity of the nearest stored question that was refused, and why it was.
    pub refused: Option<(f32, &'static str)>,
    /// The answer was accepted for storing. Known before a whole answer is sent, and too late
    /// for the headers of a streamed one.
    pub stored: bool,
    /// The answer itself.
    pub body: AnswerBody,
}

/// Where an answer is from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The same request was answered before.
    Exact,
    /// The same question was answered in other words.
    Semantic {
        /// Cosine similarity of the two questions.
        similarity: f32,
        /// That one answer serves both, by the encoder's head, where it has one.
        probability: Option<f32>,
    },
    /// The same was answered before, and the answer's time is over; no provider could answer.
    Stale,
    /// No provider could answer, and this is no answer to the question itself.
    Substitute(Substitute),
    /// A provider.
    Upstream {
        /// Which, and how.
        served: Served,
        /// The call was made for another caller who asked the same.
        coalesced: bool,
    },
}

/// What stands in for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// Stored answers to similar questions.
    Related,
    /// What the rules say.
    Rules,
}

impl Substitute {
    /// A word for headers, metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Related => "related",
            Self::Rules => "rules",
        }
    }
}

/// An answer, in the form nearest to how it was got.
#[derive(Debug)]
pub enum AnswerBody {
    /// A stored entry, to be rendered in the caller's dialect.
    Kept(Arc<Entry>),
    /// A reply made for another caller in another form, to be rendered likewise.
    Reply(Arc<ChatReply>),
    /// The provider's whole body, to be passed on.
    Verbatim(Arc<Whole>),
    /// The provider's events, to be passed on as they come.
    Events(EventTail),
}

impl Answer {
    fn new(
        source: Source,
        key: ExactKey,
        bypass: Option<&'static str>,
        notes: Notes,
        body: AnswerBody,
    ) -> Self {
        let Notes { semantic_bypass, refused, stored } = notes;
        Self { source, key, bypass, semantic_bypass, refused, stored, body }
    }

    pub(super) fn kept(key: ExactKey, source: Source, entry: Arc<Entry>, notes: Notes) -> Self {
        Self::new(source, key, None, notes, AnswerBody::Kept(entry))
    }

    pub(super) fn substitute(
        key: ExactKey,
        bypass: Option<&'static str>,
        substitute: Substitute,
        reply: Arc<ChatReply>,
        notes: Notes,
    ) -> Self {
        let (source, body) = (Source::Substitute(substitute), AnswerBody::Reply(reply));
        Self::new(source, key, bypass, notes, body)
    }
}

/// Waits for a flight's beginning and gives the caller what it asked for: whole or streamed.
/// `None` when what was fetched for another caller cannot be given in this one's form.
pub(super) async fn follow(
    mut follower: Follower,
    key: ExactKey,
    bypass: Option<&'static str>,
    coalesced: bool,
    call: &Call,
) -> Result<Option<Answer>, GatewayError> {
    let stream = call.request.stream;
    let (served, notes, body) = match follower.head().await? {
        Head::Kept(source, entry, notes) => return Ok(Some(Answer::kept(key, source, entry, notes))),
        Head::Substitute(substitute, reply, notes) => {
            return Ok(Some(Answer::substitute(key, bypass, substitute, reply, notes)));
        }
        Head::Whole(served, whole, notes) if stream => match &whole.reply {
            Some(reply) => (served, notes, AnswerBody::Reply(Arc::new(reply.clone()))),
            None => return Ok(None),
        },
        Head::Whole(served, whole, notes) => (served, notes, AnswerBody::Verbatim(whole)),
        Head::Streaming(served, notes) if stream => {
            (served, notes, AnswerBody::Events(follower.events(call.deadline)))
        }
        Head::Streaming(served, notes) => match follower.reply().await? {
            Some(reply) => (served, notes, AnswerBody::Reply(reply)),
            None => return Ok(None),
        },
    };
    let source = Source::Upstream { served, coalesced };
    Ok(Some(Answer::new(source, key, bypass, notes, body)))
}

//! The closed sets of words among a mode's parameters.

/// An enum whose variants are words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// As it stands in a mode's text.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            pub(super) fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }
    };
}

words! {
    /// What an early end cuts through.
    Cut {
        /// Nothing: it falls between two events.
        Event = "event",
        /// A line.
        Line = "line",
        /// A character of several bytes.
        Char = "char",
    }
}

words! {
    /// Failures of HTTP/2.
    Http2 {
        /// The connection goes away and has not begun the request.
        Goaway = "goaway",
        /// The request is refused, unprocessed.
        Refused = "refused",
        /// The stream is reset after the head and the first bytes.
        Reset = "reset",
    }
}

words! {
    /// How a success is empty.
    Empty {
        /// A list of choices (Anthropic: of content blocks) with nothing in it.
        Choices = "choices",
        /// Content of no text.
        Content = "content",
        /// No list of choices at all.
        Missing = "missing",
        /// No body at all.
        Body = "body",
    }
}

words! {
    /// A content length that lies.
    Length {
        /// More than comes; then the connection closes.
        Long = "long",
        /// Less than comes; the rest is taken for the next answer.
        Short = "short",
        /// The right one, and chunks too.
        Both = "both",
    }
}

words! {
    /// A content coding, or an offence against one.
    Coding {
        /// gzip.
        Gzip = "gzip",
        /// Brotli, in blocks that are not compressed.
        Br = "br",
        /// Zstandard, in blocks that are not compressed.
        Zstd = "zstd",
        /// Plain, and called gzip.
        Mislabelled = "mislabelled",
        /// gzip, and not called so.
        Unlabelled = "unlabelled",
        /// Half of a gzip body.
        Truncated = "truncated",
    }
}

words! {
    /// How the lines of an event stream are written.
    Form {
        /// A byte order mark first.
        Bom = "bom",
        /// Lines end in CR LF.
        Crlf = "crlf",
        /// Lines end in CR.
        Cr = "cr",
        /// No space after the colon.
        NoSpace = "no-space",
        /// Several data lines in one event.
        MultiLine = "multi-line",
    }
}

words! {
    /// Disorder among the events of a stream.
    Chunks {
        /// The first piece of content twice.
        Duplicate = "duplicate",
        /// The first two pieces in the other order.
        Reordered = "reordered",
        /// The last piece after the finish reason.
        Late = "late",
        /// No usage.
        NoUsage = "no-usage",
    }
}

words! {
    /// What is wrong with the terminal event.
    Done {
        /// It comes twice.
        Twice = "twice",
        /// Content follows it.
        ThenMore = "then-more",
        /// It never comes, and the stream ends in good order.
        Missing = "missing",
    }
}

words! {
    /// A body that is not the provider's JSON.
    Page {
        /// What a CDN says.
        Html = "html",
        /// A line of text.
        Text = "text",
        /// Nothing.
        Empty = "empty",
    }
}

//! Errors as providers send them.
//!
//! They stand in a file of their own because they are data: shapes, types, codes and the words
//! that decide come from the providers' documentation, their SDKs and issues where somebody
//! pasted what came; only the prose around them is paraphrased. A classifier that is tested
//! against bodies made up for the test knows only its own inventions.

use std::fmt;
use std::sync::LazyLock;

const TABLE: &str = include_str!("provider_error/table.txt");

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| rows(TABLE));

/// One error that a provider sends.
#[derive(Clone, Copy)]
pub struct ProviderError(&'static Row);

struct Row {
    name: &'static str,
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: &'static str,
}

impl ProviderError {
    /// All that are known.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Self)
    }

    /// The one of that name, such as `openai-quota`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|error| error.name() == name)
    }

    /// Provider, and what is wrong.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The status it comes with.
    pub fn status(self) -> u16 {
        self.0.status
    }

    /// The headers that belong to it; values may be relative to now, as in
    /// [`Status::headers`](super::Status::headers).
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        &self.0.headers
    }

    /// Its body, in one line.
    pub fn body(self) -> &'static str {
        self.0.body
    }

    /// Its content type.
    pub fn content_type(self) -> &'static str {
        match self.0.body.as_bytes().first() {
            Some(b'{') => "application/json",
            Some(b'<') => "text/html",
            _ => "text/plain",
        }
    }
}

impl PartialEq for ProviderError {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for ProviderError {}

impl fmt::Debug for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProviderError").field(&self.name()).finish()
    }
}

/// Two lines each: name, status and headers; then the body. A row that is not of this form is
/// left out, which a test would notice.
fn rows(table: &'static str) -> Vec<Row> {
    let mut lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut rows = Vec::new();
    while let (Some(head), Some(body)) = (lines.next(), lines.next()) {
        let mut words = head.split(' ');
        let Some(name) = words.next() else { continue };
        let Some(status) = words.next().and_then(|status| status.parse().ok()) else { continue };
        rows.push(Row {
            name,
            status,
            headers: words.filter_map(|pair| pair.split_once('=')).collect(),
            body,
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        assert_eq!(ROWS.len() * 2, lines);
        assert_eq!(ProviderError::all().map(ProviderError::name).collect::<HashSet<_>>().len(), ROWS.len());
        for error in ProviderError::all() {
            assert!((400..600).contains(&error.status()), "{error:?}");
            assert!(error.headers().iter().all(|(name, _)| *name == name.to_lowercase()), "{error:?}");
            if error.content_type() == "application/json" {
                serde_json::from_str::<Value>(error.body()).unwrap_or_else(|why| panic!("{error:?}: {why}"));
            }
        }
    }

    #[test]
    fn every_provider_can_run_out_of_its_quota() {
        for provider in ["openai", "anthropic", "gemini", "openrouter", "bedrock"] {
            assert!(ProviderError::named(&format!("{provider}-quota")).is_some(), "{provider}");
        }
        assert_eq!(ProviderError::named("openai-unheard-of"), None);
    }
}

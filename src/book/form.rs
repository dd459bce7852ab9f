//! Which form a book has: as its name says, or as one is told.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

/// How a book is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A table with a heading.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// A document with a heading for each question.
    Markdown,
}

impl Form {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Jsonl, Self::Markdown];

    /// Its name, as [`Form::from_str`] reads it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
        }
    }

    /// What the path's extension says, whatever its case: `csv`, `jsonl`, `ndjson`, `md` or
    /// `markdown`.
    pub fn of(path: &Path) -> Result<Self, UnknownForm> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        extension.parse()
    }
}

/// No form has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no form of an answer book: csv, jsonl and markdown are")]
pub struct UnknownForm(String);

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        match name.to_ascii_lowercase().as_str() {
            "csv" => Ok(Self::Csv),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "markdown" | "md" => Ok(Self::Markdown),
            _ => Err(UnknownForm(name.to_owned())),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_tells() {
        for (path, form) in [
            ("faq.csv", Form::Csv),
            ("a/faq.v2.JSONL", Form::Jsonl),
            ("faq.ndjson", Form::Jsonl),
            ("faq.md", Form::Markdown),
            ("faq.markdown", Form::Markdown),
        ] {
            assert_eq!(Form::of(Path::new(path)), Ok(form), "{path}");
        }
        for path in ["faq", "faq.json", "csv", ".csv", "faq.csv.gz", "-"] {
            Form::of(Path::new(path)).unwrap_err();
        }
        let said = Form::of(Path::new("faq.xlsx")).unwrap_err().to_string();
        assert_eq!(said, "\"xlsx\" is no form of an answer book: csv, jsonl and markdown are");
    }

    #[test]
    fn a_form_is_read_as_it_is_shown() {
        for form in Form::ALL {
            assert_eq!(form.to_string().parse(), Ok(form));
        }
    }
}

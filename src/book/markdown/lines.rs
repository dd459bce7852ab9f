//! The lines that mean something, and how an answer has lines that look like them.

/// Whether a record begins with this line.
pub(super) fn is_heading(line: &[u8]) -> bool {
    level(line) == Some(2)
}

/// Whether this is a document's title, or a part's.
pub(super) fn is_title(line: &[u8]) -> bool {
    level(line) == Some(1)
}

/// 1 for a line `# Title`, 2 for `## Heading`, none for all others.
fn level(line: &[u8]) -> Option<usize> {
    let level = line.iter().take_while(|byte| **byte == b'#').count();
    let ends = line.get(level).is_none_or(|byte| matches!(byte, b' ' | b'\t'));
    ((1..=2).contains(&level) && ends).then_some(level)
}

/// Whether the line is a title or heading behind one backslash or more, all of them ours or doubled.
fn is_escaped(line: &str) -> bool {
    let bare = line.trim_start_matches('\\');
    bare.len() < line.len() && level(bare.as_bytes()).is_some()
}

/// The line as the answer has it.
pub(super) fn unescaped(line: &str) -> &str {
    if is_escaped(line) { &line[1..] } else { line }
}

/// Whether an answer's line needs a backslash so that [`unescaped`] gives it back. A title needs it
/// where it is the `last` line, which is passed over otherwise.
pub(super) fn needs_escape(line: &str, last: bool) -> bool {
    is_heading(line.as_bytes()) || is_escaped(line) || (last && is_title(line.as_bytes()))
}

/// A line of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Also,
    Tags,
    Ttl,
    Pinned,
}

impl Key {
    const ALL: [Self; 4] = [Self::Also, Self::Tags, Self::Ttl, Self::Pinned];

    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Also => "Also",
            Self::Tags => "Tags",
            Self::Ttl => "TTL",
            Self::Pinned => "Pinned",
        }
    }

    /// The key and the value, if the line is metadata.
    pub(super) fn of(line: &str) -> Option<(Self, &str)> {
        let (name, value) = line.split_once(':')?;
        let key = Self::ALL.into_iter().find(|key| key.name().eq_ignore_ascii_case(name))?;
        Some((key, value.trim()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headings_stand_in_the_first_column() {
        for line in ["## Question", "##\tQuestion", "##", "## "] {
            assert!(is_heading(line.as_bytes()) && !is_title(line.as_bytes()), "{line:?}");
        }
        for line in ["# Title", "#"] {
            assert!(is_title(line.as_bytes()) && !is_heading(line.as_bytes()), "{line:?}");
        }
        for line in ["", " ## x", "##x", "#x", "### x", "x ## x", "\\## x"] {
            assert!(!is_heading(line.as_bytes()) && !is_title(line.as_bytes()), "{line:?}");
        }
    }

    #[test]
    fn keys_are_known_in_any_case() {
        assert_eq!(Key::of("Also: how?"), Some((Key::Also, "how?")));
        assert_eq!(Key::of("ttl:7d "), Some((Key::Ttl, "7d")));
        for line in ["Alsо: x", " Also: x", "Also x", "See: x", "Tags : x", ""] {
            assert_eq!(Key::of(line), None, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn escapes_read_back(line in "\\\\{0,3}#{0,3}[ \ta]{0,2}", last: bool) {
            let written = if needs_escape(&line, last) { format!("\\{line}") } else { line.clone() };
            prop_assert!(!is_heading(written.as_bytes()));
            prop_assert!(!last || !is_title(written.as_bytes()));
            prop_assert_eq!(unescaped(&written), line);
        }
    }
}

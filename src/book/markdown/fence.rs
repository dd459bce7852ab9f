//! Blocks of code: what looks like a heading in one is none.
//!
//! An author who forgets to close one would put the next questions into this answer. Nobody can know
//! that for sure; but where a fence holds a line that looks like a heading, and then one that can
//! only open another fence, it is likely enough to pass the record over.

use super::lines::is_heading;
use crate::book::skipped::Reason;

/// Follows the fences through a document.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fences {
    open: Option<Fence>,
    doubt: Option<Nested>,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    run: Run,
    line: u64,
    /// Whether something in it looks like a heading.
    heading: bool,
}

#[derive(Clone, Copy, Debug)]
struct Nested {
    outer: u64,
    inner: u64,
}

/// Three or more of one mark that begin a line.
#[derive(Clone, Copy, Debug)]
struct Run {
    mark: u8,
    length: usize,
    /// What follows: nothing, or what an opening fence says of its code.
    bare: bool,
}

impl Fences {
    /// Reads on: whether the line is text, outside and no fence itself.
    pub(super) fn is_text(&mut self, line: &[u8], number: u64) -> bool {
        let run = Run::of(line);
        match (&mut self.open, run) {
            (None, None) => true,
            (None, Some(run)) => {
                self.open = Some(Fence { run, line: number, heading: false });
                false
            }
            (Some(fence), Some(run)) if run.mark == fence.run.mark && run.length >= fence.run.length => {
                if run.bare {
                    self.open = None;
                } else if fence.heading && self.doubt.is_none() {
                    self.doubt = Some(Nested { outer: fence.line, inner: number });
                }
                false
            }
            (Some(fence), _) => {
                fence.heading |= is_heading(line);
                false
            }
        }
    }

    /// Whether the next line is in a block of code.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether all fences are closed, and by the marks that were meant to.
    pub(super) fn check(&self) -> Result<(), Reason> {
        match (self.doubt, self.open) {
            (Some(Nested { outer, inner }), _) => Err(Reason::NestedFence { outer, inner }),
            (None, Some(fence)) => Err(Reason::OpenFence(fence.line)),
            (None, None) => Ok(()),
        }
    }
}

impl Run {
    fn of(line: &[u8]) -> Option<Self> {
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        let line = &line[indent..];
        let mark = *line.first().filter(|mark| indent <= 3 && matches!(mark, b'`' | b'~'))?;
        let length = line.iter().take_while(|byte| **byte == mark).count();
        let rest = &line[length..];
        // Backticks behind it make it code within a line.
        if length < 3 || (mark == b'`' && rest.contains(&b'`')) {
            return None;
        }
        Some(Self { mark, length, bare: rest.iter().all(|byte| matches!(byte, b' ' | b'\t')) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each line a `t` if it is text, else a dot; and what is wrong in the end.
    fn follow(text: &str) -> (String, Result<(), String>) {
        let mut fences = Fences::default();
        let lines = (1..).zip(text.lines());
        let seen =
            lines.map(|(n, line)| if fences.is_text(line.as_bytes(), n) { 't' } else { '.' }).collect();
        (seen, fences.check().map_err(|reason| reason.to_string()))
    }

    #[test]
    fn a_fence_is_closed_by_its_own_marks() {
        for (text, seen) in [
            ("a\n```\n## x\n```\nb", "t...t"),
            ("~~~ rust\n```\n~~\n~~~x\n~~~~  \nb", ".....t"),
            ("````md\n```rust\n## x\n```\n````\nb", ".....t"),
            ("   ```\nx\n  ```\nb", "...t"),
            ("    ```\n`` x\n```a`b```\nb", "tttt"),
            ("```\n    ```\n```", "..."),
        ] {
            let (found, end) = follow(text);
            assert_eq!((found.as_str(), end), (seen, Ok(())), "{text:?}");
        }
    }

    #[test]
    fn a_fence_that_is_not_closed_is_seen() {
        let (_, end) = follow("a\n```\nb\n~~~");
        assert_eq!(end.unwrap_err(), "the code fence on line 2 is not closed up to the end of the file");
        let (_, end) = follow("```sh\n## next\n```py\nx\n```");
        let expected = "the code fence on line 1 holds a `## ` line, and another fence opens on line 3";
        assert_eq!(end.unwrap_err(), expected);
        let (_, end) = follow("```md\n```py\n## x\n```");
        assert_eq!(end, Ok(()), "nothing was swallowed before the second");
    }
}

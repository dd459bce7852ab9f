//! Takes a document apart in records.

use std::io::BufRead;

use super::fence::Fences;
use super::lines::is_heading;
use super::parse::parse;
use crate::book::source::{Bounded, Found, Source};

/// The sections of a document that begin with a question.
pub(in crate::book) struct Sections<R> {
    source: Source<R>,
    line: Bounded,
    /// Of the section that is being read, or of what stands before the first.
    fences: Fences,
    section: Option<Section>,
    ended: bool,
}

/// A heading and what is beneath it.
struct Section {
    line: u64,
    text: Bounded,
}

impl<R: BufRead> Sections<R> {
    pub(in crate::book) fn new(source: Source<R>) -> Self {
        Self { source, line: Bounded::default(), fences: Fences::default(), section: None, ended: false }
    }

    /// What the next section holds.
    pub(in crate::book) fn next(&mut self) -> Option<Found> {
        while !self.ended {
            self.line.clear();
            match self.source.take_line(|piece| self.line.push(piece)) {
                Err(error) => {
                    self.ended = true;
                    let line = self.source.line();
                    return Some(Found { line, last_line: line, draft: Err(error.into()) });
                }
                Ok(false) => {
                    self.ended = true;
                    return self.finish(self.source.line());
                }
                Ok(true) => {}
            }
            let number = self.source.line();
            if !self.fences.is_open() && is_heading(self.line.kept()) {
                let finished = self.finish(number - 1);
                let mut text = Bounded::default();
                text.append(&self.line);
                self.section = Some(Section { line: number, text });
                if finished.is_some() {
                    return finished;
                }
            } else {
                self.fences.is_text(self.line.kept(), number);
                if let Some(section) = &mut self.section {
                    section.text.append(&self.line);
                }
            }
        }
        None
    }

    /// The section that was read up to this line, if there is one.
    fn finish(&mut self, last_line: u64) -> Option<Found> {
        let fences = std::mem::take(&mut self.fences).check();
        let Some(section) = self.section.take() else {
            // What stands before the first question is of no interest, unless questions are in it.
            return fences.err().map(|reason| Found { line: 1, last_line, draft: Err(reason) });
        };
        let Section { line, text } = section;
        let draft = fences.and_then(|()| parse(text.text()?, line));
        Some(Found { line, last_line, draft })
    }
}

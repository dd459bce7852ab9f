//! A text as the rules see it: what each word does, and where clauses and sentences end.
//!
//! Everything that a rule may ask is counted once, so that asking costs the same in long texts
//! as in short ones.

use super::word::{Break, Class, Word, split};

/// How far a rule looks for a word, in words.
const NEAR: usize = 64;

/// What a word does where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is listed: it names nothing by itself.
    Empty,
    /// It says what is done.
    Verb,
    /// It names something (or is an adjective that nobody listed).
    Name,
}

/// A text, read.
pub(super) struct Text<'a> {
    pub(super) words: Vec<Word<'a>>,
    kinds: Vec<Kind>,
    /// Names before each word, and in all.
    names: Vec<usize>,
    /// Names and verbs, likewise.
    says: Vec<usize>,
    /// Where the clause of each word begins.
    clauses: Vec<usize>,
    /// After each word's sentence.
    ends: Vec<usize>,
    /// The first word of what is given to work on: text after a colon or on lines of its own.
    given: Option<usize>,
    last_quoted: Option<usize>,
    first_person: Option<usize>,
    second_line: Option<usize>,
    /// It holds signs that no prose has.
    pub(super) is_formula: bool,
}

impl<'a> Text<'a> {
    /// Reads a text in lower case.
    pub(super) fn read(lower: &'a str) -> Self {
        let words = split(lower);
        let mut kinds = Vec::with_capacity(words.len());
        let (mut names, mut says) = (vec![0], vec![0]);
        let mut clauses = Vec::with_capacity(words.len());
        for at in 0..words.len() {
            let kind = kind(&words, at);
            kinds.push(kind);
            names.push(names[at] + usize::from(kind == Kind::Name));
            says.push(says[at] + usize::from(kind != Kind::Empty));
            let begins = at == 0 || begins_clause(&words, &kinds, at, clauses[at - 1]);
            clauses.push(if begins { at } else { clauses[at - 1] });
        }
        let mut ends = vec![words.len(); words.len()];
        for at in (1..words.len()).rev() {
            ends[at - 1] = if words[at].before >= Break::Sentence { at } else { ends[at] };
        }
        let given = (1..words.len())
            .find(|at| matches!(words[*at].before, Break::Colon | Break::Line))
            .filter(|at| names[words.len()] > names[*at]);
        Self {
            last_quoted: words.iter().rposition(|word| word.quoted),
            first_person: words.iter().position(|word| word.is(&[Class::Person]) || word.text == "one"),
            second_line: (1..words.len()).find(|at| words[*at].before == Break::Line),
            is_formula: lower.contains(FORMULA),
            words,
            kinds,
            names,
            says,
            clauses,
            ends,
            given,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word at `at`; nothing beyond the ends.
    pub(super) fn word(&self, at: usize) -> &'a str {
        self.words.get(at).map_or("", |word| word.text)
    }

    pub(super) fn is(&self, at: usize, classes: &[Class]) -> bool {
        self.words.get(at).is_some_and(|word| word.is(classes))
    }

    pub(super) fn is_name(&self, at: usize) -> bool {
        self.kinds.get(at) == Some(&Kind::Name)
    }

    /// A listed verb, or another that its neighbours make one.
    pub(super) fn is_verb(&self, at: usize) -> bool {
        self.kinds.get(at) == Some(&Kind::Verb) || self.is(at, &[Class::Command, Class::Verb])
    }

    /// The word before, when nothing stands between.
    pub(super) fn before(&self, at: usize) -> Option<usize> {
        (at > 0 && self.words.get(at)?.before == Break::None).then(|| at - 1)
    }

    /// The word after, when nothing stands between.
    pub(super) fn after(&self, at: usize) -> Option<usize> {
        (self.words.get(at + 1)?.before == Break::None).then_some(at + 1)
    }

    pub(super) fn previous(&self, at: usize) -> &'a str {
        self.before(at).map_or("", |at| self.word(at))
    }

    pub(super) fn next(&self, at: usize) -> &'a str {
        self.after(at).map_or("", |at| self.word(at))
    }

    /// Nothing follows, or a mark does.
    pub(super) fn ends(&self, at: usize) -> bool {
        self.after(at).is_none()
    }

    pub(super) fn before_is(&self, at: usize, classes: &[Class]) -> bool {
        self.before(at).is_some_and(|before| self.is(before, classes))
    }

    pub(super) fn after_is(&self, at: usize, classes: &[Class]) -> bool {
        self.after(at).is_some_and(|after| self.is(after, classes))
    }

    /// One after the last word of the sentence.
    pub(super) fn sentence_end(&self, at: usize) -> usize {
        self.ends.get(at).copied().unwrap_or(self.len())
    }

    /// Where the clause begins.
    pub(super) fn clause(&self, at: usize) -> usize {
        self.clauses[at]
    }

    /// How many words from `from` on, and before `to`, name something.
    pub(super) fn names(&self, from: usize, to: usize) -> usize {
        between(&self.names, from, to)
    }

    /// How many name something or say what is done.
    pub(super) fn says(&self, from: usize, to: usize) -> usize {
        between(&self.says, from, to)
    }

    pub(super) fn has_names(&self) -> bool {
        self.names(0, self.len()) > 0
    }

    /// People, or "one", before `at`.
    pub(super) fn has_person_before(&self, at: usize) -> bool {
        self.first_person.is_some_and(|person| person < at)
    }

    /// Whether some word names or does something by itself, other than a language.
    pub(super) fn is_about(&self) -> bool {
        self.words
            .iter()
            .zip(&self.kinds)
            .any(|(word, kind)| *kind != Kind::Empty && (!word.is_listed() || word.quoted))
    }

    /// How many words of the text are of one of these classes.
    pub(super) fn count(&self, classes: &[Class]) -> usize {
        self.words.iter().filter(|word| word.is(classes)).count()
    }

    /// Text to work on is given.
    pub(super) fn has_given(&self) -> bool {
        self.given.is_some()
    }

    /// Text to work on stands after `at`.
    pub(super) fn is_given_after(&self, at: usize) -> bool {
        self.given.is_some_and(|given| given > at)
    }

    pub(super) fn is_quoted_after(&self, at: usize) -> bool {
        self.last_quoted.is_some_and(|quoted| quoted > at)
    }

    /// So much text stands before that "above" may mean it.
    pub(super) fn is_long_before(&self, at: usize) -> bool {
        at > 24 || self.second_line.is_some_and(|line| line <= at)
    }

    /// Whether one of these words stands from `from` on, before `to`, and near.
    pub(super) fn has(&self, from: usize, to: usize, any: &[&str]) -> bool {
        let to = to.min(self.len()).min(from.saturating_add(NEAR));
        self.words[from.min(to)..to].iter().any(|word| any.contains(&word.text))
    }

    /// Whether one of these words stands near the beginning.
    pub(super) fn opens_with_any(&self, any: &[&str]) -> bool {
        self.has(0, NEAR, any)
    }

    /// Where the word stands last in the clause, before `at` and near.
    pub(super) fn last_before(&self, at: usize, word: &str) -> Option<usize> {
        let from = self.clause(at).max(at.saturating_sub(NEAR));
        (from..at).rev().find(|before| self.word(*before) == word)
    }

    /// Whether the words from `at` on are these.
    pub(super) fn follows(&self, at: usize, words: &str) -> bool {
        words.split(' ').enumerate().all(|(n, word)| self.word(at + n) == word)
    }
}

/// Signs that stand in formulas and code, and make a question of few words a question.
const FORMULA: [char; 17] =
    ['=', '<', '>', '[', ']', '{', '}', '^', '~', '|', '\\', '*', '↔', '∧', '∨', '√', '∫'];

fn between(counts: &[usize], from: usize, to: usize) -> usize {
    let at = |at: usize| counts[at.min(counts.len() - 1)];
    at(to).saturating_sub(at(from))
}

/// What the word at `at` does, from itself and the words around.
fn kind(words: &[Word<'_>], at: usize) -> Kind {
    let word = words[at];
    let names = word.quoted
        || word.is(&[Class::Language])
        || word.text == "us" && at > 0 && words[at - 1].text == "the"
        || word.is(&[Class::Noun]) && is_introduced(words, at);
    if names || word.is_listed() {
        return if names { Kind::Name } else { Kind::Empty };
    }
    let next = words.get(at + 1).filter(|next| next.before == Break::None);
    let has_object = next.is_some_and(|next| next.is(&[Class::Determiner, Class::Third, Class::Subject]));
    if at == 0 || word.before != Break::None {
        return if has_object { Kind::Verb } else { Kind::Name };
    }
    // "Why do not cats …", "when will India …": the subject.
    let inverted = |aux: usize| {
        words[aux].is(&[Class::Aux, Class::Be])
            && (aux == 0 || words[aux - 1].is(&[Class::Wh]) || words[aux].before > Break::None)
    };
    let is_verb = match words[at - 1].text {
        "i" | "you" | "we" | "they" | "he" | "she" | "please" | "let" => true,
        "not" => at < 2 || !inverted(at - 2),
        "can" | "could" | "will" | "would" | "should" | "must" => !has_object && !inverted(at - 1),
        "to" | "and" | "or" | "just" | "then" => has_object,
        _ => false,
    };
    if is_verb { Kind::Verb } else { Kind::Name }
}

/// "An error", "a good idea": the article brings in something to speak of.
fn is_introduced(words: &[Word<'_>], at: usize) -> bool {
    let article =
        |at: usize| matches!(words[at].text, "a" | "an" | "one" | "some" | "any" | "every" | "each");
    at > 0 && (article(at - 1) || at > 1 && words[at - 1].is(&[Class::Adjective]) && article(at - 2))
}

/// Whether a new clause begins with the word at `at`: by a mark, by a conjunction, by a question
/// word, by a preposition before "-ing", or because a subject stands where none is expected.
/// `clause` is where the clause before begins.
fn begins_clause(words: &[Word<'_>], kinds: &[Kind], at: usize, clause: usize) -> bool {
    let (word, before) = (words[at], words[at - 1]);
    let next = words.get(at + 1);
    let next_is = |classes: &[Class]| next.is_some_and(|next| next.is(classes));
    if word.before >= Break::Comma || word.is(&[Class::Conjunction]) || before.text == "that" {
        return true;
    }
    if word.is(&[Class::Wh]) {
        return !before.is(&[Class::Preposition, Class::Reply]);
    }
    if word.is(&[Class::Preposition]) && next.is_some_and(|next| next.text.ends_with("ing")) {
        return true;
    }
    let inverts = before.is(&[Class::Be, Class::Aux, Class::Wh, Class::Conjunction]);
    match word.text {
        "without" => true,
        "i" | "we" | "they" | "he" | "she" => !inverts,
        "it" if before.text == "as" => true,
        "it" => !inverts && !before.is(&[Class::Preposition]) && next_is(&[Class::Be, Class::Aux]),
        // "A letter to the head | asking him …"
        gerund if gerund.ends_with("ing") && kinds[at - 1] == Kind::Name => {
            next_is(&[Class::Third, Class::Determiner])
        }
        // "If you cannot see cats | does that mean …"
        _ => {
            kinds[at - 1] == Kind::Name
                && words[clause].is(&[Class::Conjunction])
                && word.is(&[Class::Be, Class::Aux])
                && next_is(&[Class::Third, Class::Subject])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_names_or_does_something() {
        let text = Text::read("can you paint a cat and feed it when you see an error");
        let kinds: Vec<_> = (0..text.len())
            .filter(|at| text.kinds[*at] != Kind::Empty)
            .map(|at| (text.word(at), text.kinds[at]))
            .collect();
        assert_eq!(
            kinds,
            [("paint", Kind::Verb), ("cat", Kind::Name), ("feed", Kind::Verb), ("error", Kind::Name)]
        );
    }

    #[test]
    fn clauses_begin_where_a_pronoun_may_be_bound() {
        let text = Text::read("does the cat that i saw purr when it sleeps, or not");
        let begins: Vec<_> =
            (0..text.len()).filter(|at| text.clause(*at) == *at).map(|at| text.word(at)).collect();
        assert_eq!(begins, ["does", "i", "when", "or"]);
    }

    #[test]
    fn given_text_stands_after_a_colon_or_on_a_line() {
        assert!(Text::read("fix this: cat").is_given_after(1));
        assert!(Text::read("fix this\ncat").is_given_after(1));
        assert!(!Text::read("fix this").has_given());
        assert!(!Text::read("fix this:\nthanks").has_given());
    }
}

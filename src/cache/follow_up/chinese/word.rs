//! A Chinese text as the rules see it: tokens by the longest listed word, and what is left over.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::is_han;
use super::super::list::sections;

/// Sections, each a line `# name` and words between spaces.
const WORDS: &str = include_str!("words.txt");

/// Pairs of a traditional character and the one it is read as; only those that the lists hold.
const FOLDED: &str = include_str!("fold.txt");

/// What a listed word can be; a word may be several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Question,
    /// I, you, we.
    Person,
    /// Pronouns that need an antecedent.
    Third,
    /// Verbs that tell the other side what to do with a text.
    Command,
    Adjective,
    Language,
    /// Words that answer or thank.
    Reply,
    /// What a request begins with.
    Frame,
    /// It names something, although words it is made of do not.
    Name,
    /// Whatever else names nothing.
    Rest,
}

impl Class {
    fn named(name: &str) -> Self {
        match name {
            "question" => Self::Question,
            "person" => Self::Person,
            "third" => Self::Third,
            "command" => Self::Command,
            "adjective" => Self::Adjective,
            "language" => Self::Language,
            "reply" => Self::Reply,
            "frame" => Self::Frame,
            "name" => Self::Name,
            _ => Self::Rest,
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

struct Listed {
    words: HashMap<&'static str, u32>,
    /// In characters.
    longest: usize,
    folded: HashMap<char, char>,
}

static LISTED: LazyLock<Listed> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for (class, lines) in sections(WORDS) {
        for word in lines.iter().flat_map(|line| line.split(' ')) {
            *words.entry(word).or_insert(0) |= Class::named(class).bit();
        }
    }
    let longest = words.keys().map(|word| word.chars().count()).max().unwrap_or(0);
    let pairs: Vec<char> = FOLDED.chars().filter(|c| c.is_alphanumeric()).collect();
    let folded = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    Listed { words, longest, folded }
});

/// A word, or what no list holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// Where it stands in what is said, in bytes.
    pub(super) at: usize,
    bytes: usize,
    /// In characters.
    pub(super) length: usize,
    /// How much it names: characters of Chinese, two for a word of other letters.
    pub(super) names: usize,
    /// It is the first one after a mark.
    pub(super) begins: bool,
    class: u32,
}

impl Token {
    pub(super) fn is(&self, class: Class) -> bool {
        self.class & class.bit() != 0
    }
}

/// A text, read.
pub(super) struct Text {
    /// Letters and numbers only, in lower case and simplified characters.
    pub(super) said: String,
    pub(super) tokens: Vec<Token>,
    given: bool,
}

impl Text {
    pub(super) fn read(text: &str) -> Self {
        let mut read = Self { said: String::with_capacity(text.len()), tokens: Vec::new(), given: false };
        let mut rest = text;
        let mut begins = true;
        while !rest.is_empty() {
            let run = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            read.add(&rest[..run], begins);
            begins &= run == 0;
            rest = &rest[run..];
            let Some(mark) = rest.chars().next() else { break };
            begins |= !mark.is_whitespace();
            rest = &rest[mark.len_utf8()..];
            read.given |= matches!(mark, '：' | ':' | '\n' | '“' | '"' | '「' | '《' | '`')
                && rest.chars().filter(|c| c.is_alphanumeric()).take(2).count() == 2;
        }
        read
    }

    fn add(&mut self, run: &str, mut begins: bool) {
        let start = self.said.len();
        let lower = run.chars().flat_map(char::to_lowercase);
        self.said.extend(lower.map(|c| LISTED.folded.get(&c).copied().unwrap_or(c)));
        let mut at = start;
        while at < self.said.len() {
            let token = token(&self.said[at..], at, begins);
            at += token.bytes;
            begins = false;
            self.tokens.push(token);
        }
    }

    /// Text to work on is given: after a colon, in quotes, or on a line of its own.
    pub(super) fn has_given(&self) -> bool {
        self.given
    }

    /// Letters and numbers.
    pub(super) fn length(&self) -> usize {
        self.tokens.iter().map(|token| token.length).sum()
    }

    /// How much is named from a token on.
    pub(super) fn names(&self, from: usize) -> usize {
        self.tokens[from.min(self.tokens.len())..].iter().map(|token| token.names).sum()
    }

    pub(super) fn text(&self, token: &Token) -> &str {
        &self.said[token.at..token.at + token.bytes]
    }

    /// The token at `at`; nothing beyond the end.
    pub(super) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| self.text(token))
    }

    /// What is said from a token on.
    pub(super) fn rest(&self, from: usize) -> &str {
        self.tokens.get(from).map_or("", |token| &self.said[token.at..])
    }

    /// After "请", "你能不能", "帮我" and their like, where a command follows.
    pub(super) fn after_frame(&self) -> usize {
        let frames = self.tokens.iter().take_while(|token| token.is(Class::Frame)).count();
        let bare = frames > 0 && matches!(self.word(frames - 1), "你" | "您");
        let commands = self.tokens.get(frames).is_some_and(|token| {
            let word = self.text(token);
            token.is(Class::Command) && !(bare && word == "说")
                || token.is(Class::Adjective) && !bare
                || word.starts_with(['再', '更'])
        });
        if commands { frames } else { 0 }
    }

    /// After "好的，" and its like.
    pub(super) fn after_reply(&self) -> usize {
        let replies = self.tokens.iter().take_while(|token| token.is(Class::Reply)).count();
        let marked = self.tokens.get(replies).is_some_and(|token| token.begins);
        if marked { replies } else { 0 }
    }
}

/// The first token of what is left of a run.
fn token(rest: &str, at: usize, begins: bool) -> Token {
    let ends: Vec<usize> =
        rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(LISTED.longest).collect();
    for (length, bytes) in ends.iter().enumerate().rev() {
        if let Some(class) = LISTED.words.get(&rest[..*bytes]) {
            let length = length + 1;
            let names = if class & Class::Name.bit() == 0 { 0 } else { length };
            return Token { at, bytes: *bytes, length, names, begins, class: *class };
        }
    }
    let bytes = rest.find(is_han).unwrap_or(rest.len());
    let foreign = &rest[..bytes];
    match foreign.chars().count() {
        0 => Token { at, bytes: ends[0], length: 1, names: 1, begins, class: 0 },
        // One digit counts, two may name, more do.
        length @ 1..3 if foreign.bytes().all(|byte| byte.is_ascii_digit()) => {
            Token { at, bytes, length, names: length - 1, begins, class: 0 }
        }
        length => Token { at, bytes, length, names: 2, begins, class: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_longest_listed_words() {
        let text = Text::read("請再詳細說明一下，手机Wi");
        let tokens: Vec<_> = text.tokens.iter().map(|token| (text.text(token), token.names)).collect();
        assert_eq!(
            tokens,
            [("请", 0), ("再", 0), ("详细", 0), ("说明", 0), ("一下", 0), ("手", 1), ("机", 1), ("wi", 2)]
        );
        assert!(text.tokens[5].begins && !text.tokens[6].begins);
    }

    #[test]
    fn given_text_stands_after_a_mark() {
        assert!(Text::read("翻译：早上好").has_given());
        assert!(!Text::read("翻译一下：").has_given());
    }

    #[test]
    fn every_word_is_written_as_texts_are_read() {
        for (section, lines) in sections(WORDS) {
            for word in lines.iter().flat_map(|line| line.split(' ')) {
                assert_eq!(Text::read(word).said, word, "{section}");
                assert!(!word.is_empty(), "{section}");
            }
        }
    }

    #[test]
    fn folding_goes_one_step() {
        for to in LISTED.folded.values() {
            assert_eq!(LISTED.folded.get(to), None, "{to}");
        }
    }
}

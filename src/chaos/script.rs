//! Which mode an attempt meets.
//!
//! A script is a list of rules, the first that fits decides, and everything random in it comes
//! from the seed and the attempt's number within its rule: the same sequence of calls meets the
//! same faults, whatever else goes on, so that a failure seen once can be seen again.

mod draw;
mod scene;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::mode::{Mode, ModeError, cut, quote, unquote};

pub(super) use draw::Draw;
pub(super) use scene::Scene;

/// What the upstream does, to whom, and in which order.
///
/// The text form is rules separated by `;` or line ends; `#` begins a comment:
///
/// ```text
/// key:test-a:status:401                      # for keys that begin with test-a
/// model:big-1:2*status:529 | latency:1s | ok # two attempts fail, one is late, then all is well
/// percent:5:reset                            # everybody else
/// ```
///
/// A rule is selectors (`key:<prefix>:`, `model:<name>:`), then modes in the order in which its
/// attempts meet them, the last one for ever. Who fits no rule meets `ok`.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) rules: Rules,
    pub(super) seed: u64,
    pub(super) content: Content,
    pub(super) pace: Duration,
}

/// The rules of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules(pub(super) Vec<Rule>);

/// Modes in their order, and whom they meet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    /// A prefix of the key.
    pub(super) key: Option<String>,
    /// The model's whole name.
    pub(super) model: Option<String>,
    /// Each with how often it is met; never empty.
    pub(super) modes: Vec<(u64, Mode)>,
}

/// What answers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// "answer 7" for the seventh attempt.
    #[default]
    Numbered,
    /// The last text of the user.
    Echo,
    /// Always this.
    Fixed(String),
}

impl Script {
    /// A script of these rules, with seed 0, numbered answers and no pause between pieces.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Draws from another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Answers something else.
    pub fn content(self, content: Content) -> Self {
        Self { content, ..self }
    }

    /// Pauses before each piece of content of a stream, also when all is well.
    pub fn pace(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }
}

impl FromStr for Script {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::new)
    }
}

impl From<Mode> for Rules {
    fn from(mode: Mode) -> Self {
        Self(vec![Rule { key: None, model: None, modes: vec![(1, mode)] }])
    }
}

impl FromStr for Rules {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rules = statements(text).into_iter().filter(|statement| !statement.trim().is_empty());
        let rules: Vec<Rule> = rules.map(|rule| rule.trim().parse()).collect::<Result<_, _>>()?;
        Ok(Self(rules))
    }
}

/// Cuts into rules, and the comments off.
fn statements(text: &str) -> Vec<String> {
    let (mut quoted, mut comment) = (false, false);
    let (mut statements, mut current) = (Vec::new(), String::new());
    for character in text.chars() {
        match character {
            '\n' | ';' if !(quoted || comment && character == ';') => {
                comment = false;
                statements.push(std::mem::take(&mut current));
            }
            _ if comment => {}
            '#' if !quoted => comment = true,
            _ => {
                quoted ^= character == '"';
                current.push(character);
            }
        }
    }
    statements.push(current);
    statements
}

impl FromStr for Rule {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut key, mut model, mut rest) = (None, None, text);
        loop {
            let (word, after) = cut(rest, &[':']);
            let selector = match word.trim() {
                "key" if key.is_none() => &mut key,
                "model" if model.is_none() => &mut model,
                _ => break,
            };
            let (name, after) = cut(after.unwrap_or_default(), &[':']);
            let Some(after) = after else {
                let reason = "a selector is followed by a value and a mode".to_owned();
                return Err(ModeError { mode: text.to_owned(), reason });
            };
            *selector = Some(unquote(name));
            rest = after;
        }
        let mut order = Vec::new();
        let mut rest = Some(rest);
        while let Some(text) = rest {
            let (mode, after) = cut(text, &['|']);
            order.push(times(mode)?);
            rest = after;
        }
        Ok(Self { key, model, modes: order })
    }
}

/// `2*status:529`
fn times(text: &str) -> Result<(u64, Mode), ModeError> {
    match cut(text, &['*']) {
        (times, Some(mode)) if times.trim().parse::<u64>().is_ok_and(|times| times > 0) => {
            Ok((times.trim().parse().unwrap_or(1), mode.parse()?))
        }
        _ => Ok((1, text.parse()?)),
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, rule) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{rule}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in [("key", &self.key), ("model", &self.model)] {
            if let Some(value) = value {
                write!(f, "{name}:{}:", quote(value))?;
            }
        }
        for (position, (times, mode)) in self.modes.iter().enumerate() {
            let separator = if position == 0 { "" } else { " | " };
            f.write_str(separator)?;
            if *times > 1 {
                write!(f, "{times}*")?;
            }
            write!(f, "{mode}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! A script being played: how far each rule has come.

use tokio::time::Instant;

use super::{Draw, Rule, Rules};
use crate::chaos::mode::Mode;

/// Rules, since when they hold, and how many attempts each has met.
#[derive(Debug)]
pub(in crate::chaos) struct Scene {
    rules: Vec<(Rule, u64)>,
    seed: u64,
    since: Instant,
}

impl Scene {
    /// The rules hold from `now`; nobody has met them yet.
    pub(in crate::chaos) fn new(rules: Rules, seed: u64, now: Instant) -> Self {
        Self { rules: rules.0.into_iter().map(|rule| (rule, 0)).collect(), seed, since: now }
    }

    /// The draw of the next attempt, which counts as met. Without the model, `None` when the
    /// model decides: then nothing was counted, and the caller asks again once it knows.
    pub(in crate::chaos) fn draw(
        &mut self,
        now: Instant,
        key: &str,
        model: Option<&str>,
        reused: bool,
    ) -> Option<Draw> {
        for place in 0..self.rules.len() {
            let rule = &self.rules[place].0;
            if !rule.key.as_deref().is_none_or(|prefix| key.starts_with(prefix)) {
                continue;
            }
            match (&rule.model, model) {
                (Some(_), None) => return None,
                (Some(wanted), Some(model)) if wanted != model => {}
                _ => {
                    let draw = self.peek(place, now, reused);
                    self.rules[place].1 += 1;
                    return Some(draw);
                }
            }
        }
        Some(Draw::new(&Mode::Ok, self.seed, (0, 0), now - self.since, reused))
    }

    /// What strikes the next connection before anybody has said a word. Only a first rule
    /// without selectors can: nobody knows yet who calls. Counts as met when it strikes.
    pub(in crate::chaos) fn strike_at_accept(&mut self, now: Instant) -> Option<Mode> {
        let (Rule { key: None, model: None, .. }, _) = self.rules.first()? else { return None };
        let mode = self.peek(0, now, false).mode;
        if !mode.strikes_at_accept() {
            return None;
        }
        self.rules[0].1 += 1;
        Some(mode)
    }

    fn peek(&self, place: usize, now: Instant, reused: bool) -> Draw {
        let (rule, met) = &self.rules[place];
        let mut before = 0_u64;
        let current = rule.modes.iter().find(|(times, _)| {
            before = before.saturating_add(*times);
            before > *met
        });
        let mode = current.or(rule.modes.last()).map_or(&Mode::Ok, |(_, mode)| mode);
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        Draw::new(mode, self.seed, (place, *met), now - self.since, reused)
    }
}

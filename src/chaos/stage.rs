//! What all connections share: the scene that is played, the record, and who is on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::asked::Asked;
use super::attempt::{Attempt, fingerprint};
use super::compose::{Circumstances, compose};
use super::draft::Draft;
use super::mode::Mode;
use super::script::{Content, Draw, Rules, Scene, Script};
use crate::clock::Clock;

/// Attempts remembered; of more, the latest.
const KEPT: usize = 100_000;

/// Kinds of attempts counted by name; of more, the others are one.
const KINDS: usize = 1_000;

/// Shared by reference; every lock is held for a few instructions.
#[derive(Debug)]
pub(super) struct Stage {
    seed: u64,
    content: Content,
    pace: Duration,
    clock: Clock,
    start: Instant,
    state: Mutex<State>,
    under_way: watch::Sender<usize>,
    down: watch::Sender<Option<Instant>>,
}

#[derive(Debug)]
struct State {
    rules: Rules,
    scene: Scene,
    /// Attempts so far, forgotten ones included.
    number: u64,
    attempts: VecDeque<Attempt>,
    /// Attempts that ended, by what they met.
    tally: BTreeMap<String, u64>,
    previous: Option<(Asked, u64)>,
}

impl Stage {
    pub(super) fn new(script: Script, now: Instant) -> Self {
        let Script { rules, seed, content, pace } = script;
        let scene = Scene::new(rules.clone(), seed, now);
        let state = State {
            rules,
            scene,
            number: 0,
            attempts: VecDeque::new(),
            tally: BTreeMap::new(),
            previous: None,
        };
        Self {
            seed,
            content,
            pace,
            clock: Clock::system(),
            start: now,
            state: Mutex::new(state),
            under_way: watch::Sender::new(0),
            down: watch::Sender::new(None),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays other rules from now on, from their beginning; attempts under way keep theirs.
    pub(super) fn play(&self, rules: Rules) {
        let mut state = self.state();
        state.scene = Scene::new(rules.clone(), self.seed, Instant::now());
        state.rules = rules;
    }

    pub(super) fn rules(&self) -> Rules {
        self.state().rules.clone()
    }

    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.state().attempts.iter().cloned().collect()
    }

    pub(super) fn begun(&self) -> u64 {
        self.state().number
    }

    pub(super) fn tally(&self) -> BTreeMap<String, u64> {
        self.state().tally.clone()
    }

    /// Forgets the attempts; their numbers go on.
    pub(super) fn forget(&self) {
        self.state().attempts.clear();
    }

    /// Waits until no attempt is under way.
    pub(super) async fn settled(&self) {
        // Fails only when the sender is gone, which is a part of `self`.
        let _ = self.under_way.subscribe().wait_for(|under_way| *under_way == 0).await;
    }

    /// What the next attempt meets; `None` when the model decides, which is not known yet.
    pub(super) fn draw_early(&self, key: &str, reused: bool) -> Option<Draw> {
        self.state().scene.draw(Instant::now(), key, None, reused)
    }

    /// What the next attempt meets.
    pub(super) fn draw(&self, key: &str, model: &str, reused: bool) -> Draw {
        let draw = self.state().scene.draw(Instant::now(), key, Some(model), reused);
        draw.expect("only a missing model leaves it open")
    }

    /// What strikes a connection that has just been accepted.
    pub(super) fn strike_at_accept(&self) -> Option<Mode> {
        self.state().scene.strike_at_accept(Instant::now())
    }

    /// Nobody listens for this long.
    pub(super) fn go_down(&self, pause: Duration) {
        self.down.send_replace(Some(Instant::now() + pause));
    }

    /// Until when nobody listens.
    pub(super) fn down(&self) -> Option<Instant> {
        (*self.down.borrow()).filter(|until| Instant::now() < *until)
    }

    /// Told when the server goes down.
    pub(super) fn watch_down(&self) -> watch::Receiver<Option<Instant>> {
        self.down.subscribe()
    }

    /// Records an attempt whose head has just come.
    pub(super) fn begin(self: &Arc<Self>, path: &str, key: &str) -> Running {
        let now = Instant::now();
        let mut state = self.state();
        state.number += 1;
        let number = state.number;
        if state.attempts.len() >= KEPT {
            state.attempts.pop_front();
        }
        state.attempts.push_back(Attempt {
            number,
            at: now - self.start,
            path: path.to_owned(),
            key: fingerprint(key),
            ..Attempt::default()
        });
        drop(state);
        self.under_way.send_modify(|under_way| *under_way += 1);
        Running {
            stage: Arc::clone(self),
            number,
            began: now,
            sent: AtomicU64::new(0),
            mode: Mutex::default(),
        }
    }
}

impl State {
    fn count(&mut self, mode: String) {
        let is_new = !self.tally.contains_key(&mode);
        let kind = match mode.as_str() {
            "" => "the client left before its mode was known".to_owned(),
            _ if is_new && self.tally.len() >= KINDS => "others".to_owned(),
            _ => mode,
        };
        *self.tally.entry(kind).or_default() += 1;
    }
}

/// An attempt under way. Dropping it ends it, and completes the record.
#[derive(Debug)]
pub(super) struct Running {
    stage: Arc<Stage>,
    number: u64,
    began: Instant,
    /// Bytes sent so far.
    pub(super) sent: AtomicU64,
    /// The mode's text, once it is known.
    mode: Mutex<String>,
}

impl Running {
    /// Notes what the attempt meets; said again, the last word counts.
    pub(super) fn meets(&self, mode: &Mode) {
        let text = mode.to_string();
        self.note(|attempt| attempt.mode.clone_from(&text));
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Adds to the record, unless it was forgotten.
    pub(super) fn note(&self, note: impl FnOnce(&mut Attempt)) {
        let mut state = self.stage.state();
        let first = state.attempts.front().map_or(0, |first| first.number);
        let place = self.number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(attempt) = place.and_then(|place| state.attempts.get_mut(place)) {
            note(attempt);
        }
    }

    /// The answer to what was asked, which becomes the attempt before the next one.
    pub(super) fn compose(&self, draw: &mut Draw, asked: &Asked) -> Draft {
        let stage = &self.stage;
        let known = !asked.model.is_empty();
        let previous = {
            let mut shared = stage.state();
            let previous = shared.previous.clone();
            if known {
                shared.previous = Some((asked.clone(), self.number));
            }
            previous
        };
        let around = Circumstances {
            number: self.number,
            now: stage.clock.now(),
            under_way: *stage.under_way.borrow(),
            previous,
            content: &stage.content,
            pace: stage.pace,
        };
        compose(draw, asked, &around)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let (took, bytes) = (self.began.elapsed(), self.sent.load(Ordering::Relaxed));
        self.note(|attempt| {
            attempt.took = Some(took);
            attempt.bytes = bytes;
        });
        let mode = std::mem::take(self.mode.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.stage.state().count(mode);
        self.stage.under_way.send_modify(|under_way| *under_way -= 1);
    }
}

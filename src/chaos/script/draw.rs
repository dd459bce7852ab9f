//! What a mode comes to for one attempt.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::chaos::mode::Mode;

/// One attempt's mode, nothing left open but how long a random delay takes.
#[derive(Debug)]
pub(in crate::chaos) struct Draw {
    /// Bursts and percentages resolved: what happens, or `ok`.
    pub(in crate::chaos) mode: Mode,
    rng: SmallRng,
}

impl Draw {
    /// `elapsed` since the script was set; `reused` when the connection has answered before.
    /// `place` tells the attempt from all others: its rule and its number there.
    pub(super) fn new(mode: &Mode, seed: u64, place: (u64, u64), elapsed: Duration, reused: bool) -> Self {
        let mut rng = SmallRng::seed_from_u64(mix(mix(mix(seed) ^ place.0) ^ place.1));
        let mode = resolve(mode, &mut rng, elapsed, reused);
        Self { mode, rng }
    }

    /// A number of the log-normal distribution with median 1, by Box and Muller.
    pub(in crate::chaos) fn log_normal(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        let (radius, angle): (f64, f64) = (self.rng.random(), self.rng.random());
        // 1 - radius is never 0, whose logarithm is none.
        let normal = (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        (sigma * normal).exp()
    }
}

fn resolve(mode: &Mode, rng: &mut SmallRng, elapsed: Duration, reused: bool) -> Mode {
    let mut inner = |mode: &Mode| resolve(mode, rng, elapsed, reused);
    match mode {
        Mode::Square { on, off, mode } => {
            let period = (*on + *off).as_nanos();
            let strikes = period > 0 && elapsed.as_nanos() % period < on.as_nanos();
            if strikes { inner(mode) } else { Mode::Ok }
        }
        Mode::Percent { percent, span, mode } => {
            // Drawn even when it cannot strike, so that the numbers after it stay the same.
            let drawn = rng.random_bool((percent / 100.0).clamp(0.0, 1.0));
            let strikes = drawn && span.is_none_or(|span| elapsed < span);
            if strikes { resolve(mode, rng, elapsed, reused) } else { Mode::Ok }
        }
        Mode::Latency { median, sigma, then } => {
            Mode::Latency { median: *median, sigma: *sigma, then: Box::new(inner(then)) }
        }
        Mode::Header { name, value, mode } => {
            Mode::Header { name: name.clone(), value: value.clone(), mode: Box::new(inner(mode)) }
        }
        Mode::Stale => {
            if reused {
                Mode::Close
            } else {
                Mode::Ok
            }
        }
        mode => mode.clone(),
    }
}

/// Numbers in a row come out far apart: the finaliser of `SplitMix64`.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

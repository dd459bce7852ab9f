//! How many calls may be made on top of the requests that came in.
//!
//! Why a budget and not "three attempts each": a number of attempts multiplies the load just when
//! the provider cannot bear it, and the clients' own retries multiply it again. A share of the
//! latest requests lets a few failures be retried freely, and when everything fails the extra
//! load stays at that share, whoever asks. The shape is that of Finagle's `RetryBudget` and
//! tower's `TpsBudget` (deposits that expire, and a floor for quiet hours); the figures are
//! Envoy's (20 %, 3). Retries and hedges have one each.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::slices::Slices;

/// Slices of a window; it ends with the running one, so a deposit counts for nine to ten tenths.
const SLICES: u32 = 10;

/// Forgives what `0.29 * 100.0` is short of 29.
const ROUNDING: f64 = 1e-9;

/// How much may be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Withdrawals for each deposit.
    pub ratio: f64,
    /// Withdrawals in a window that need no deposit.
    pub floor: u32,
    /// How long deposits and withdrawals count.
    pub window: Duration,
}

impl Default for Settings {
    /// For retries: one for five requests of the last 10 s, and 3.
    fn default() -> Self {
        Self { ratio: 0.2, floor: 3, window: Duration::from_secs(10) }
    }
}

/// A budget, shared by all who spend of it.
///
/// Whatever the order of deposits and withdrawals:
/// - the withdrawals in any window are at most `floor + ratio × d`, with `d` the deposits in the
///   window that ends with the last of them;
/// - the withdrawals since the start are at most `floor × windows begun + ratio × deposits`: no
///   deposit is spent twice.
///
/// (A window is nine to ten tenths of the configured time: what is counted goes by tenths.)
///
/// Each call takes one lock for a few nanoseconds, and none waits.
#[derive(Debug)]
pub struct Budget {
    settings: Settings,
    window: Mutex<Window>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    deposits: u32,
    withdrawals: u32,
}

#[derive(Debug)]
struct Window {
    /// The sum of the slices.
    total: Counts,
    slices: Slices<Counts>,
}

impl Budget {
    /// A budget without deposits.
    pub fn new(settings: Settings, now: Instant) -> Self {
        let slices = Slices::new(settings.window, SLICES, now);
        Self { settings, window: Mutex::new(Window { total: Counts::default(), slices }) }
    }

    /// A request came in: its first attempt is free, and pays for a share of others.
    pub fn deposit(&self, now: Instant) {
        let mut window = self.at(now);
        window.total.deposits += 1;
        window.slices.current().deposits += 1;
    }

    /// Takes one extra call, when there is one to take.
    pub fn try_withdraw(&self, now: Instant) -> bool {
        let mut window = self.at(now);
        let Counts { deposits, withdrawals } = window.total;
        let allowed = f64::from(self.settings.floor) + self.settings.ratio * f64::from(deposits);
        let granted = f64::from(withdrawals) + 1.0 <= allowed + ROUNDING;
        if granted {
            window.total.withdrawals += 1;
            window.slices.current().withdrawals += 1;
        }
        granted
    }

    fn at(&self, now: Instant) -> MutexGuard<'_, Window> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let Window { total, slices } = &mut *window;
        slices.roll(now, |old| {
            total.deposits -= old.deposits;
            total.withdrawals -= old.withdrawals;
        });
        window
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn withdrawn(budget: &Budget, now: Instant) -> usize {
        std::iter::repeat_with(|| budget.try_withdraw(now)).take_while(|granted| *granted).count()
    }

    #[test]
    fn the_floor_needs_no_requests_and_comes_back() {
        let start = Instant::now();
        let budget = Budget::new(Settings::default(), start);
        assert_eq!(withdrawn(&budget, start), 3);
        assert_eq!(withdrawn(&budget, start + seconds(9)), 0);
        assert_eq!(withdrawn(&budget, start + seconds(10)), 3);
    }

    #[test]
    fn one_for_five_requests() {
        let start = Instant::now();
        let budget = Budget::new(Settings { floor: 0, ..Settings::default() }, start);
        (0..4).for_each(|_| budget.deposit(start));
        assert!(!budget.try_withdraw(start));
        budget.deposit(start);
        assert_eq!(withdrawn(&budget, start), 1);
        (0..95).for_each(|_| budget.deposit(start));
        assert_eq!(withdrawn(&budget, start + seconds(9)), 19);
    }

    #[test]
    fn deposits_expire() {
        let start = Instant::now();
        let budget = Budget::new(Settings { floor: 0, ..Settings::default() }, start);
        (0..100).for_each(|_| budget.deposit(start));
        assert_eq!(withdrawn(&budget, start + seconds(10)), 0);
    }

    #[test]
    fn the_last_of_a_hundred_is_not_lost_in_rounding() {
        let start = Instant::now();
        let budget = Budget::new(Settings { ratio: 0.29, floor: 0, ..Settings::default() }, start);
        (0..100).for_each(|_| budget.deposit(start));
        assert_eq!(withdrawn(&budget, start), 29);
    }

    #[test]
    fn a_budget_of_nothing_gives_nothing() {
        let start = Instant::now();
        let budget = Budget::new(Settings { ratio: 0.0, floor: 0, ..Settings::default() }, start);
        (0..100).for_each(|_| budget.deposit(start));
        assert!(!budget.try_withdraw(start));
    }

    /// Fifty requests a second, each of which would try four more times.
    #[test]
    fn with_everything_down_a_request_makes_one_call_and_a_fifth() {
        let mut now = Instant::now();
        let budget = Budget::new(Settings::default(), now);
        let (mut requests, mut retries) = (0_u32, 0_u32);
        for _ in 0..50 * 60 {
            now += Duration::from_millis(20);
            budget.deposit(now);
            requests += 1;
            retries += (0..4).map(|_| u32::from(budget.try_withdraw(now))).sum::<u32>();
        }
        assert!(retries <= requests / 5 + 3 * 7, "{retries} retries of {requests} requests");
        assert!(retries >= requests / 5 - 100, "{retries} retries of {requests} requests");
    }

    proptest! {
        #[test]
        fn no_more_than_the_budget(
            floor in 0_u32..5,
            percent in 0_u32..150,
            steps in prop::collection::vec((0_u64..4_000, 0_u32..20, 0_u32..20), 1..60),
        ) {
            let start = Instant::now();
            let ratio = f64::from(percent) / 100.0;
            let budget = Budget::new(Settings { ratio, floor, window: seconds(10) }, start);
            let (mut now, mut deposits, mut withdrawals) = (start, Vec::new(), Vec::new());
            for (pause, asked, wanted) in steps {
                now += Duration::from_millis(pause);
                (0..asked).for_each(|_| budget.deposit(now));
                deposits.extend((0..asked).map(|_| now));
                let granted = (0..wanted).filter(|_| budget.try_withdraw(now));
                withdrawals.extend(granted.map(|_| now));

                // Slices are a second wide, so a count is forgotten after 9 s at the earliest.
                let within = |times: &[Instant], span| {
                    u32::try_from(times.iter().filter(|at| now - **at <= span).count()).expect("it is small")
                };
                if withdrawals.last() == Some(&now) {
                    let allowed = floor * 100 + percent * within(&deposits, seconds(10));
                    prop_assert!(within(&withdrawals, seconds(9)) * 100 <= allowed);
                }

                let windows = u32::try_from((now - start).as_secs() / 9 + 1).expect("it is small");
                let ever = u32::try_from(withdrawals.len()).expect("it is small") * 100;
                let paid = u32::try_from(deposits.len()).expect("it is small") * percent;
                prop_assert!(ever <= floor * 100 * windows + paid);
            }
        }
    }
}

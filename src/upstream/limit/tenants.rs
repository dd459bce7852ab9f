//! One limiter for each tenant, so that none of them takes every slot.
//!
//! The map is bounded, or names could fill the memory. A limiter in use is never forgotten, or its
//! tenant would get its slots twice; one that nobody uses holds nothing worth keeping.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::{AdaptiveLimit, Limiter, LimiterStats, Waiting};

/// The limiters of tenants who are busy, or were lately.
#[derive(Debug)]
pub struct Tenants {
    limit: u32,
    waiting: Waiting,
    most: usize,
    limiters: Mutex<HashMap<Box<str>, Limiter>>,
    /// For those who come when `most` others are busy.
    rest: Limiter,
}

impl Tenants {
    /// Every tenant gets `limit` slots and a line of its own. At most `most` tenants are told apart:
    /// if so many are busy, all others share one limiter until one of them is not.
    pub fn new(limit: u32, waiting: Waiting, most: usize) -> Self {
        let rest = Limiter::new(AdaptiveLimit::fixed(limit), waiting);
        Self { limit, waiting, most, limiters: Mutex::default(), rest }
    }

    /// The tenant's limiter. Held only for one request, since it counts as busy as long as someone
    /// has it.
    pub fn limiter(&self, tenant: &str) -> Limiter {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.get(tenant) {
            return limiter.clone();
        }
        if limiters.len() >= self.most {
            limiters.retain(|_, limiter| !limiter.is_idle());
        }
        if limiters.len() >= self.most {
            return self.rest.clone();
        }
        let limiter = Limiter::new(AdaptiveLimit::fixed(self.limit), self.waiting);
        limiters.insert(tenant.into(), limiter.clone());
        limiter
    }

    /// What each tenant's limiter does at the moment, by name, for those that have
    /// slots; without the shared one.
    pub fn stats(&self, now: Instant) -> Vec<(Box<str>, LimiterStats)> {
        let limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let stats = limiters.iter().map(|(tenant, limiter)| (tenant.clone(), limiter.stats(now)));
        let mut stats: Vec<_> = stats.filter(|(_, stats)| stats.in_flight > 0).collect();
        stats.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        stats
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::upstream::limit::Priority::Interactive;

    const NO_WAITING: Waiting = Waiting { room: 0, longest: Duration::ZERO };

    #[tokio::test(start_paused = true)]
    async fn one_tenant_does_not_take_the_slots_of_another() {
        let tenants = Tenants::new(1, NO_WAITING, 10);
        let soon = Instant::now() + Duration::from_secs(1);
        let ours = tenants.limiter("ours").acquire(Interactive, soon).await.expect("a slot is free");
        let more = tenants.limiter("ours").acquire(Interactive, soon).await;
        assert_eq!(more.expect_err("its only slot is taken").label(), "queue_full");
        let theirs = tenants.limiter("theirs").acquire(Interactive, soon).await.expect("a slot is free");
        let busy: Vec<_> = tenants.stats(Instant::now()).into_iter().map(|(tenant, _)| tenant).collect();
        assert_eq!(busy, ["ours".into(), "theirs".into()]);
        drop((ours, theirs));
        assert_eq!(tenants.stats(Instant::now()), []);
        assert!(tenants.limiter("ours").acquire(Interactive, soon).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_tenants_make_room_and_busy_ones_do_not() {
        let tenants = Tenants::new(1, NO_WAITING, 2);
        let soon = Instant::now() + Duration::from_secs(1);
        let first = tenants.limiter("first").acquire(Interactive, soon).await.expect("a slot is free");
        for tenant in 0..1_000 {
            let _ = tenants.limiter(&format!("tenant {tenant}"));
        }
        let known = tenants.limiters.lock().expect("nothing panicked").len();
        assert!(known <= 2, "{known} tenants");
        assert!(
            tenants.limiter("first").acquire(Interactive, soon).await.is_err(),
            "its slot is not forgotten"
        );

        let second = tenants.limiter("second").acquire(Interactive, soon).await.expect("a slot is free");
        let third = tenants.limiter("third").acquire(Interactive, soon).await.expect("a slot is free");
        assert!(tenants.limiter("fourth").acquire(Interactive, soon).await.is_err(), "shared with the third");
        drop((first, second));
        assert!(tenants.limiter("fourth").acquire(Interactive, soon).await.is_ok(), "one of its own");
        drop(third);
    }
}

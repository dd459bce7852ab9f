//! The settings under which the service is drilled.
//!
//! A breaker's window of a minute and a cool-down of half a minute would outlast a drill, so they
//! are scaled with its length. What is a constant of the service cannot be, and is named in the
//! report: the memory of the retry budget, how long a failure weighs a target down, and how long a
//! key without quota stays aside.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use super::Settings;
use super::scenario::{MODEL, PROVIDERS};
use super::timetable::Timetable;
use crate::config::{Config, ConfigError};

/// The fewest calls at once that a provider's limit falls to.
const LEAST_IN_FLIGHT: u32 = 4;

/// Requests that wait for a slot at a provider.
const QUEUE: u32 = 32;

/// All that differs from `config/default.toml` and matters on a bad day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    deadline: Duration,
    first_content: Duration,
    stall: Duration,
    backoff: (Duration, Duration),
    window: Duration,
    slow_for: Duration,
    cool_down: (Duration, Duration),
    ramp: Duration,
    in_flight: (u32, u32),
    queue_timeout: Duration,
    /// Of stored answers: short, so that repeated questions come past their time during the drill.
    ttl: Duration,
}

impl Terms {
    /// Scaled to the drill, with so many calls at once to a provider at most.
    pub(super) fn new(settings: &Settings, limit: u32) -> Self {
        let Settings { length, deadline, .. } = *settings;
        let times = Timetable::of(length);
        Self {
            deadline: whole(deadline),
            first_content: whole(deadline / 2),
            stall: whole(deadline / 2),
            backoff: (whole(deadline / 60), whole(deadline / 6)),
            window: whole(times.window()),
            slow_for: whole(length / 20),
            cool_down: (whole(times.cool_down()), whole(times.cool_down() * 2)),
            ramp: whole(times.ramp()),
            in_flight: (LEAST_IN_FLIGHT.min(limit), limit),
            queue_timeout: whole(deadline / 6),
            ttl: whole(length / 10),
        }
    }

    /// The service's config: providers at these base URLs in the order of [`PROVIDERS`], the keys
    /// of the first one in these files, and the store in `folder`. No encoder is loaded.
    pub(super) fn config(
        &self,
        urls: &[String],
        keys: &[String],
        folder: &Path,
    ) -> Result<Config, ConfigError> {
        let mut config = Config::from_toml(&self.toml(urls, keys))?;
        folder.clone_into(&mut config.store.path);
        config.providers.retain(|name, _| PROVIDERS.iter().any(|provider| provider.name == name));
        config.models.retain(|name, _| name == MODEL);
        Ok(config)
    }

    fn toml(&self, urls: &[String], keys: &[String]) -> String {
        let time = |duration: Duration| humantime::format_duration(duration).to_string();
        let mut providers = String::new();
        for (place, (provider, url)) in PROVIDERS.iter().zip(urls).enumerate() {
            let keys = if place == 0 { keys } else { &[] };
            let name = provider.name;
            // Writing into a string cannot fail.
            let _ = writeln!(
                providers,
                "[providers.{name}]\nkind = \"openai\"\nurl = {url:?}\napi_keys = {keys:?}"
            );
        }
        let targets: Vec<String> = PROVIDERS
            .iter()
            .map(|provider| {
                let (name, model, tier) = (provider.name, provider.model, provider.tier);
                format!("{{ provider = {name:?}, model = {model:?}, tier = {tier} }}")
            })
            .collect();
        format!(
            "embedder.models = []
             cache.fill_on_disconnect = false
             server.shutdown_grace = \"1s\"
             [namespaces.default]
             semantic = false
             ttl = \"{ttl}\"
             stale_if_error = \"1h\"
             [upstream]
             deadline = \"{deadline}\"
             max_deadline = \"{deadline}\"
             connect_timeout = \"{first_content}\"
             first_content_timeout = \"{first_content}\"
             stall_timeout = \"{stall}\"
             total_timeout = \"{deadline}\"
             [upstream.retry]
             base = \"{base}\"
             cap = \"{cap}\"
             [upstream.breaker]
             window = \"{window}\"
             slow_for = \"{slow_for}\"
             cool_down = \"{cool_down}\"
             max_cool_down = \"{max_cool_down}\"
             ramp = \"{ramp}\"
             [upstream.limit]
             min_in_flight = {least}
             max_in_flight = {most}
             queue = {QUEUE}
             queue_timeout = \"{queue_timeout}\"
             {providers}
             [models.{MODEL}]
             targets = [{targets}]
            ",
            ttl = time(self.ttl),
            deadline = time(self.deadline),
            first_content = time(self.first_content),
            stall = time(self.stall),
            base = time(self.backoff.0),
            cap = time(self.backoff.1),
            window = time(self.window),
            slow_for = time(self.slow_for),
            cool_down = time(self.cool_down.0),
            max_cool_down = time(self.cool_down.1),
            ramp = time(self.ramp),
            least = self.in_flight.0,
            most = self.in_flight.1,
            queue_timeout = time(self.queue_timeout),
            targets = targets.join(", "),
        )
    }
}

/// Whole milliseconds, one at least: what a setting can say.
fn whole(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1))
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = humantime::format_duration;
        writeln!(
            f,
            "deadline {}, first content and stall {}, retries after {} to {}, answers kept for {}",
            time(self.deadline),
            time(self.first_content),
            time(self.backoff.0),
            time(self.backoff.1),
            time(self.ttl),
        )?;
        writeln!(
            f,
            "breaker: window {}, slow for {}, cool-down {} to {}, ramp {}",
            time(self.window),
            time(self.slow_for),
            time(self.cool_down.0),
            time(self.cool_down.1),
            time(self.ramp),
        )?;
        writeln!(
            f,
            "limit: {} to {} calls at once a provider, {QUEUE} wait for {} at most",
            self.in_flight.0,
            self.in_flight.1,
            time(self.queue_timeout),
        )?;
        f.write_str(
            "not scaled: retry budget over 10s, a failed target asked after its neighbours for 30s, a key without \
             quota aside for 15m",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls() -> Vec<String> {
        (1..=3).map(|port| format!("http://127.0.0.1:{port}/v1")).collect()
    }

    #[test]
    fn the_config_is_valid_whatever_the_length() {
        let keys = ["env:DRILL_A".to_owned(), "env:DRILL_B".to_owned()];
        for (length, deadline) in [(1, 1), (20_000, 3_000), (3_600_000, 600_000)] {
            let settings = Settings {
                length: Duration::from_millis(length),
                deadline: Duration::from_millis(deadline),
                ..Settings::default()
            };
            let terms = Terms::new(&settings, 2);
            let config = terms.config(&urls(), &keys, Path::new("somewhere")).unwrap();
            assert_eq!(config.upstream.deadline, settings.deadline);
            assert_eq!(config.providers.keys().collect::<Vec<_>>(), ["a", "b", "small"]);
            assert_eq!(config.models.keys().collect::<Vec<_>>(), ["drill"]);
            assert!(config.embedder.models.is_empty() && !config.namespace("default").unwrap().semantic);
        }
    }

    #[test]
    fn what_is_scaled_is_stated() {
        let stated = Terms::new(&Settings::default(), 64).to_string();
        for words in ["deadline 3s", "window 2s", "cool-down 2s to 4s", "ramp 1s", "4 to 64 calls"] {
            assert!(stated.contains(words), "{stated}");
        }
    }
}

//! What the policies of the upstream module need to make sense, and what its providers and targets
//! must not say twice.

use std::time::Duration;

use crate::config::{Config, Provider, Target};

/// No deadline is longer: adding it to any time must not overflow.
const LONGEST_DEADLINE: Duration = Duration::from_hours(365 * 24);

impl Config {
    pub(super) fn validate_upstream(&self, faults: &mut Vec<String>) {
        self.validate_times(faults);
        self.validate_numbers(faults);
        for (name, provider) in &self.providers {
            validate_keys(name, provider, faults);
        }
        for (alias, model) in &self.models {
            for (place, target) in model.targets.iter().enumerate() {
                validate_target(&format!("models.{alias}.targets[{place}]"), target, faults);
            }
        }
    }

    fn validate_times(&self, faults: &mut Vec<String>) {
        let upstream = &self.upstream;
        let (retry, breaker) = (&upstream.retry, &upstream.breaker);
        for (key, value) in [
            ("deadline", upstream.deadline),
            ("connect_timeout", upstream.connect_timeout),
            ("first_content_timeout", upstream.first_content_timeout),
            ("stall_timeout", upstream.stall_timeout),
            ("total_timeout", upstream.total_timeout),
            ("breaker.window", breaker.window),
            ("breaker.slow_for", breaker.slow_for),
            ("breaker.cool_down", breaker.cool_down),
        ] {
            if value.is_zero() {
                faults.push(format!("upstream.{key} = \"0s\": more than that is allowed"));
            }
        }
        for (key, value, bound, most) in [
            ("deadline", upstream.deadline, "max_deadline", upstream.max_deadline),
            ("retry.base", retry.base, "retry.cap", retry.cap),
            ("breaker.cool_down", breaker.cool_down, "breaker.max_cool_down", breaker.max_cool_down),
        ] {
            if value > most {
                faults.push(format!(
                    "upstream.{key} = \"{}\" is longer than upstream.{bound} = \"{}\"",
                    written(value),
                    written(most)
                ));
            }
        }
        if upstream.max_deadline > LONGEST_DEADLINE {
            faults.push(format!(
                "upstream.max_deadline = \"{}\": up to 365d is allowed",
                written(upstream.max_deadline)
            ));
        }
    }

    fn validate_numbers(&self, faults: &mut Vec<String>) {
        let upstream = &self.upstream;
        let (retry, breaker, limit) = (&upstream.retry, &upstream.breaker, &upstream.limit);
        for (key, value) in [
            ("max_reply", upstream.max_reply.as_u64()),
            ("retry.attempts", retry.attempts.into()),
            ("retry.per_target", retry.per_target.into()),
            ("breaker.min_calls", breaker.min_calls.into()),
        ] {
            if value == 0 {
                faults.push(format!("upstream.{key} = 0: 1 or more is allowed"));
            }
        }
        for (key, value) in [("retry.budget", retry.budget), ("hedge.budget", upstream.hedge.budget)] {
            if !(0.0..=1.0).contains(&value) {
                faults.push(format!("upstream.{key} = {value}: 0 to 1 is allowed"));
            }
        }
        // Written so that what is not a number is refused too.
        if !(breaker.error_rate > 0.0 && breaker.error_rate <= 1.0) {
            faults.push(format!(
                "upstream.breaker.error_rate = {}: more than 0, up to 1 is allowed",
                breaker.error_rate
            ));
        }
        if !(breaker.slow_factor >= 1.0 && breaker.slow_factor.is_finite()) {
            faults.push(format!(
                "upstream.breaker.slow_factor = {}: 1 or more is allowed",
                breaker.slow_factor
            ));
        }
        if limit.min_in_flight > limit.max_in_flight {
            faults.push(format!(
                "upstream.limit.min_in_flight = {} is more than upstream.limit.max_in_flight = {}",
                limit.min_in_flight, limit.max_in_flight
            ));
        }
    }
}

/// Each key once: two places in the line would be one key that is asked twice as much.
fn validate_keys(name: &str, provider: &Provider, faults: &mut Vec<String>) {
    let places: Vec<_> = provider.key_places().collect();
    for (index, place) in places.iter().enumerate() {
        if places[..index].contains(place) {
            faults.push(format!(
                "providers.{name}.api_keys = [\"{place}\"]: it is there already; each key once is allowed, in \
                 api_key (config/default.toml may set it) or in api_keys"
            ));
        }
    }
}

fn validate_target(key: &str, target: &Target, faults: &mut Vec<String>) {
    if target.context_window == Some(0) {
        faults.push(format!("{key}.context_window = 0: 1 or more is allowed"));
    }
    let parameters = target.parameters.as_deref().unwrap_or_default();
    for (index, parameter) in parameters.iter().enumerate() {
        let is_field =
            !parameter.is_empty() && parameter.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_field || parameters[..index].contains(parameter) {
            faults.push(format!(
                "{key}.parameters = [{parameter:?}]: names of a request's fields are allowed, such as \"tools\", \
                 each once"
            ));
        }
    }
}

/// As people write it, without a space: `1m30s`.
fn written(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use crate::config::validate::tests::assert_faults;

    #[test]
    fn a_policy_that_makes_no_sense_is_refused() {
        assert_faults(&[
            ("[upstream]\ndeadline = \"0s\"", &["upstream.deadline = \"0s\"", "more than that"]),
            (
                "[upstream]\ndeadline = \"1h\"",
                &["upstream.deadline = \"1h\"", "upstream.max_deadline = \"30m\""],
            ),
            ("[upstream]\nmax_deadline = \"366d\"", &["upstream.max_deadline", "365d"]),
            ("[upstream]\nconnect_timeout = \"0s\"", &["upstream.connect_timeout = \"0s\""]),
            ("[upstream]\nfirst_content_timeout = \"0s\"", &["upstream.first_content_timeout = \"0s\""]),
            ("[upstream]\nstall_timeout = \"0s\"", &["upstream.stall_timeout = \"0s\""]),
            ("[upstream]\ntotal_timeout = \"0s\"", &["upstream.total_timeout = \"0s\""]),
            ("[upstream]\nmax_reply = 0", &["upstream.max_reply = 0", "1 or more"]),
            ("[upstream.retry]\nattempts = 0", &["upstream.retry.attempts = 0", "1 or more"]),
            ("[upstream.retry]\nper_target = 0", &["upstream.retry.per_target = 0", "1 or more"]),
            ("[upstream.retry]\nbudget = 1.5", &["upstream.retry.budget = 1.5", "0 to 1"]),
            ("[upstream.retry]\nbudget = nan", &["upstream.retry.budget = NaN", "0 to 1"]),
            (
                "[upstream.retry]\nbase = \"1m 30s\"",
                &["upstream.retry.base = \"1m30s\"", "retry.cap = \"8s\""],
            ),
            (
                "[upstream.breaker]\nerror_rate = 0.0",
                &["upstream.breaker.error_rate = 0", "more than 0, up to 1"],
            ),
            ("[upstream.breaker]\nerror_rate = 25.0", &["upstream.breaker.error_rate = 25", "up to 1"]),
            ("[upstream.breaker]\nmin_calls = 0", &["upstream.breaker.min_calls = 0", "1 or more"]),
            ("[upstream.breaker]\nslow_factor = 0.5", &["upstream.breaker.slow_factor = 0.5", "1 or more"]),
            ("[upstream.breaker]\nslow_factor = inf", &["upstream.breaker.slow_factor = inf", "1 or more"]),
            ("[upstream.breaker]\nwindow = \"0s\"", &["upstream.breaker.window = \"0s\""]),
            ("[upstream.breaker]\nslow_for = \"0s\"", &["upstream.breaker.slow_for = \"0s\""]),
            ("[upstream.breaker]\ncool_down = \"0s\"", &["upstream.breaker.cool_down = \"0s\""]),
            (
                "[upstream.breaker]\ncool_down = \"10m\"",
                &["upstream.breaker.cool_down = \"10m\"", "max_cool_down = \"5m\""],
            ),
            ("[upstream.hedge]\nbudget = -0.1", &["upstream.hedge.budget = -0.1", "0 to 1"]),
            (
                "[upstream.limit]\nmin_in_flight = 300",
                &["upstream.limit.min_in_flight = 300", "upstream.limit.max_in_flight = 256"],
            ),
            ("[upstream.limit]\nmin_in_flight = 0", &["upstream.limit.min_in_flight"]),
        ]);
    }

    #[test]
    fn providers_and_targets_are_checked() {
        let keys = |keys: &str| format!("[providers.x]\nkind = \"openai\"\nurl = \"http://x\"\n{keys}");
        assert_faults(&[
            (
                &*keys("api_keys = [\"env:A\", \"env:B\", \"env:A\"]"),
                &["providers.x.api_keys", "env:A", "once"],
            ),
            (
                &keys("api_key = \"env:A\"\napi_keys = [\"env:A\"]"),
                &["providers.x.api_keys", "env:A", "once"],
            ),
            // The defaults have its first key already.
            (
                "[providers.openai]\napi_keys = [\"env:OPENAI_API_KEY\", \"env:B\"]",
                &["providers.openai.api_keys", "env:OPENAI_API_KEY", "default.toml"],
            ),
            (
                "[models.m]\ntargets = [{ provider = \"openai\", context_window = 0 }]",
                &["models.m.targets[0].context_window = 0", "1 or more"],
            ),
            (
                "[models.m]\ntargets = [{ provider = \"openai\" }, { provider = \"openai\", parameters = [\"\"] }]",
                &["models.m.targets[1].parameters", "tools"],
            ),
            (
                "[models.m]\ntargets = [{ provider = \"openai\", parameters = [\"tools\", \"tools\"] }]",
                &["models.m.targets[0].parameters", "each once"],
            ),
            (
                "[models.m]\ntargets = [{ provider = \"openai\", parameters = [\"response format\"] }]",
                &["models.m.targets[0].parameters", "response format"],
            ),
        ]);
    }
}

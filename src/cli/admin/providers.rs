//! `refrain stats --providers`: how the providers stand, as tables for whoever was just woken.

use std::time::Duration;

use serde_json::Value;

use super::remote::Remote;
use super::switch::in_force;
use super::table::{Side, lines};
use crate::cli::{Failure, say};
use crate::upstream::health::HealthReport;
use crate::upstream::{BreakerReport, KeyReport, ProviderReport, ProvidersReport, TargetReport};

pub(super) async fn show(remote: &Remote, as_json: bool) -> Result<(), Failure> {
    let report = remote.get("/stats/providers").await?;
    if as_json {
        say(&serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    let report: ProvidersReport = serde_json::from_value(report)
        .map_err(|error| format!("the service is of another version ({error}): try --json"))?;
    let switches = remote.get("/admin/switches").await?;
    say(&page(&report, &switches).join("\n"));
    Ok(())
}

fn page(report: &ProvidersReport, switches: &Value) -> Vec<String> {
    let mut page = providers(&report.providers);
    page.push(String::new());
    page.extend(targets(&report.targets));
    page.push(String::new());
    page.extend(in_force(switches));
    page
}

fn providers(providers: &[ProviderReport]) -> Vec<String> {
    let heading = ["provider", "in flight", "limit", "waiting", "keys"].map(str::to_owned);
    let row = |provider: &ProviderReport| {
        let waiting = match provider.queue_age_ms {
            Some(age) => format!("{}, up to {}", provider.queue_depth, span(age)),
            None => provider.queue_depth.to_string(),
        };
        [
            provider.provider.clone(),
            provider.in_flight.to_string(),
            provider.limit.to_string(),
            waiting,
            keys(&provider.keys),
        ]
    };
    let rows: Vec<_> = std::iter::once(heading).chain(providers.iter().map(row)).collect();
    lines([Side::Left, Side::Right, Side::Right, Side::Right, Side::Left], &rows)
}

/// How many are ready, and each that is not.
fn keys(keys: &[KeyReport]) -> String {
    let is_ready = |key: &&KeyReport| key.state == "ready";
    let ready = keys.iter().filter(is_ready).count();
    let resting = keys.iter().filter(|key| !is_ready(key)).map(|key| {
        let reason = key.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let rest = key.for_ms.map(|rest| format!(" for {}", span(rest))).unwrap_or_default();
        format!(", {} {}{reason}{rest}", key.key, key.state)
    });
    if keys.is_empty() { "none".to_owned() } else { format!("{ready} ready{}", resting.collect::<String>()) }
}

fn targets(targets: &[TargetReport]) -> Vec<String> {
    if targets.is_empty() {
        return vec!["no provider was asked since the start".to_owned()];
    }
    let heading =
        ["target", "breaker", "in flight", "errors (1m)", "first content p50 (5m)", "p99 (5m)", "alerts"]
            .map(str::to_owned);
    let row = |target: &TargetReport| {
        let HealthReport { in_flight, last_minute, last_five_minutes, .. } = &target.health;
        let first_content = &last_five_minutes.first_content;
        [
            name(target),
            state(&target.breaker),
            in_flight.to_string(),
            last_minute.error_rate.map_or("-".to_owned(), |rate| format!("{:.1} %", rate * 100.0)),
            millis(first_content.p50_ms),
            millis(first_content.p99_ms),
            alerts(&target.health),
        ]
    };
    let rows: Vec<_> = std::iter::once(heading).chain(targets.iter().map(row)).collect();
    let right = [Side::Right; 4];
    let sides = [Side::Left, Side::Left, right[0], right[1], right[2], right[3], Side::Left];
    let mut page = lines(sides, &rows);
    let why = |target: &TargetReport| {
        let reason = target.breaker.reason.as_ref()?;
        Some(format!("  {} is {}: {reason}", name(target), target.breaker.state))
    };
    page.extend(targets.iter().filter_map(why));
    page
}

fn name(target: &TargetReport) -> String {
    let HealthReport { provider, model, .. } = &target.health;
    format!("{provider}/{model}")
}

fn state(breaker: &BreakerReport) -> String {
    match breaker.for_ms {
        Some(rest) => format!("{} for {}", breaker.state, span(rest)),
        None => breaker.state.clone(),
    }
}

fn alerts(health: &HealthReport) -> String {
    let alert = |alert: &crate::upstream::health::AlertReport| {
        let standing = span(alert.standing_seconds.saturating_mul(1_000));
        if alert.condition == "error_rate" {
            format!("error_rate {:.1} % for {standing}", alert.measured_ratio * 100.0)
        } else {
            format!("{} {:.2} x usual for {standing}", alert.condition, alert.measured_ratio)
        }
    };
    let alerts: Vec<_> = health.alerts.iter().map(alert).collect();
    if alerts.is_empty() { "-".to_owned() } else { alerts.join(", ") }
}

fn millis(millis: Option<f64>) -> String {
    millis.map_or("-".to_owned(), |millis| format!("{millis:.0} ms"))
}

/// In whole seconds, rounded up.
fn span(millis: u64) -> String {
    humantime::format_duration(Duration::from_secs(millis.div_ceil(1_000))).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::metrics::Quantiles;
    use crate::upstream::health::{AlertReport, Norms, WindowReport};

    fn key(number: u8, state: &str, reason: Option<&str>, for_ms: Option<u64>) -> KeyReport {
        KeyReport {
            key: format!("key {number}"),
            state: state.to_owned(),
            reason: reason.map(str::to_owned),
            for_ms,
        }
    }

    fn provider(name: &str, keys: Vec<KeyReport>) -> ProviderReport {
        ProviderReport {
            provider: name.to_owned(),
            region: None,
            limit: 64,
            in_flight: 3,
            queue_depth: 0,
            queue_age_ms: None,
            keys,
            tenants: std::collections::BTreeMap::new(),
        }
    }

    fn target(model: &str, state: &str) -> TargetReport {
        TargetReport {
            breaker: BreakerReport { state: state.to_owned(), since_ms: 12_000, for_ms: None, reason: None },
            health: HealthReport {
                provider: "openai".to_owned(),
                model: model.to_owned(),
                region: None,
                in_flight: 3,
                alerts: Vec::new(),
                norms: Norms::default(),
                last_minute: WindowReport::default(),
                last_five_minutes: WindowReport::default(),
                last_hour: WindowReport::default(),
                since_start: WindowReport::default(),
            },
        }
    }

    #[test]
    fn a_bad_night_at_a_glance() {
        let cooling = key(2, "cooling", None, Some(11_001));
        let quarantined = key(3, "quarantined", Some("quota"), Some(840_000));
        let full = ProviderReport {
            queue_depth: 12,
            queue_age_ms: Some(4_000),
            ..provider("openai", vec![key(1, "ready", None, None), cooling, quarantined])
        };
        let mut ill = target("gpt-4o", "open");
        ill.breaker.for_ms = Some(17_300);
        ill.breaker.reason = Some("error rate 43 % of 21 calls".to_owned());
        ill.health.last_minute.error_rate = Some(0.4286);
        ill.health.last_five_minutes.first_content =
            Quantiles { p50_ms: Some(410.2), p99_ms: Some(8_080.0), ..Quantiles::default() };
        let alert = |condition: &str, measured_ratio, limit_ratio| AlertReport {
            condition: condition.to_owned(),
            measured_ratio,
            limit_ratio,
            standing_seconds: 75,
        };
        ill.health.alerts = vec![alert("error_rate", 0.4286, 0.05), alert("p99", 1.716, 1.5)];
        let report = ProvidersReport {
            providers: vec![full, provider("rules", Vec::new())],
            targets: vec![ill, target("gpt-4o-mini", "closed")],
        };
        insta::assert_snapshot!(page(&report, &json!({ "switches": [] })).join("\n"), @r"
        provider  in flight  limit       waiting  keys
        openai            3     64  12, up to 4s  1 ready, key 2 cooling for 12s, key 3 quarantined (quota) for 14m
        rules             3     64             0  none

        target              breaker       in flight  errors (1m)  first content p50 (5m)  p99 (5m)  alerts
        openai/gpt-4o       open for 18s          3       42.9 %                  410 ms   8080 ms  error_rate 42.9 % for 1m 15s, p99 1.72 x usual for 1m 15s
        openai/gpt-4o-mini  closed                3            -                       -         -  -
          openai/gpt-4o is open: error rate 43 % of 21 calls

        nothing is switched: everything is as configured
        ");
    }

    #[test]
    fn before_the_first_call_there_is_no_target() {
        let report = ProvidersReport { providers: Vec::new(), targets: Vec::new() };
        assert_eq!(targets(&report.targets), ["no provider was asked since the start"]);
    }
}

//! A target's health as `GET /stats/providers` gives it: plain data with units in the names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::State;
use super::alert::Alert;
use super::board::Labels;
use super::window::Slot;
use crate::metrics::Quantiles;

/// Everything about one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthReport {
    /// The provider's name in the config.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// Where it runs, when the config says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region: Option<String>,
    /// Calls under way.
    pub in_flight: u64,
    /// The alarms that stand.
    pub alerts: Vec<AlertReport>,
    /// What is usual.
    pub norms: Norms,
    /// The last 55 to 60 seconds.
    pub last_minute: WindowReport,
    /// The last 4 1/2 to 5 minutes.
    pub last_five_minutes: WindowReport,
    /// The last 55 to 60 minutes.
    pub last_hour: WindowReport,
    /// Since the process or the target began.
    pub since_start: WindowReport,
}

/// An alarm that stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertReport {
    /// `error_rate`, `first_content` or `p99`.
    pub condition: String,
    /// A share of the calls for `error_rate`, else a multiple of what is usual.
    pub measured_ratio: f64,
    /// The ratio it rose at.
    pub limit_ratio: f64,
    /// How long it has stood.
    pub standing_seconds: u64,
}

/// What is usual for a target, as the median of its blocks of five minutes over its last four busy
/// hours. `None` before a quarter of an hour with enough calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Norms {
    /// The median time to first content.
    pub first_content_p50_ms: Option<f64>,
    /// The p99 of whole calls.
    pub total_p99_ms: Option<f64>,
    /// How fast streams are written.
    pub output_tokens_per_second: Option<f64>,
}

/// What happened in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowReport {
    /// Calls sent off.
    pub attempts: u64,
    /// Calls answered to the end.
    pub answers: u64,
    /// Calls given up by us: the caller left, or another call was faster.
    pub cancelled: u64,
    /// Calls without an answer by class, those included that the request is to blame for.
    pub errors: BTreeMap<String, u64>,
    /// Of the calls that were judged (first content, whole answer, failure), the share that failed
    /// and the target is to blame for.
    pub error_rate: Option<f64>,
    /// Attempts that were made again here.
    pub retries: u64,
    /// Second calls that were first to have content.
    pub hedges_won: u64,
    /// Second calls made in vain.
    pub hedges_lost: u64,
    /// Of the requests that ended here, the share that had its answer inside its deadline.
    pub goodput: Option<f64>,
    /// From dispatch to first content, of streams.
    pub first_content: Quantiles,
    /// Between two tokens, each stream by its average.
    pub inter_token: Quantiles,
    /// From dispatch to the end of complete answers.
    pub total: Quantiles,
    /// Tokens of complete answers.
    pub output_tokens: u64,
    /// How fast streams were written, from first content to end.
    pub output_tokens_per_second: Option<f64>,
    /// The same as a multiple of the norm.
    pub output_speed_of_norm: Option<f64>,
    /// What the calls cost, in US dollars, where the price is known.
    pub cost_usd: f64,
}

impl HealthReport {
    pub(super) fn of(labels: &Labels, state: &State, now: Instant) -> Self {
        let baseline = &state.baseline;
        let norms = Norms {
            first_content_p50_ms: baseline.first_content_ms(),
            total_p99_ms: baseline.p99_ms(),
            output_tokens_per_second: baseline.tokens_per_second().map(rounded),
        };
        let window = |slot: &Slot| WindowReport::of(slot, baseline.tokens_per_second());
        Self {
            provider: labels.provider.to_string(),
            model: labels.model.to_string(),
            region: labels.region.as_deref().map(str::to_owned),
            in_flight: state.in_flight,
            alerts: state.alarms.standing().iter().map(|alert| AlertReport::of(alert, now)).collect(),
            norms,
            last_minute: window(&state.windows.minute()),
            last_five_minutes: window(&state.windows.five_minutes()),
            last_hour: window(&state.windows.hour()),
            since_start: window(state.windows.life()),
        }
    }
}

impl AlertReport {
    fn of(alert: &Alert, now: Instant) -> Self {
        Self {
            condition: alert.condition.label().to_owned(),
            measured_ratio: rounded(alert.measured),
            limit_ratio: alert.limit,
            standing_seconds: now.saturating_duration_since(alert.since).as_secs(),
        }
    }
}

impl WindowReport {
    fn of(slot: &Slot, usual_speed: Option<f64>) -> Self {
        let speed = slot.tokens_per_second();
        let of_norm = speed.zip(usual_speed).filter(|(_, usual)| *usual > 0.0);
        Self {
            attempts: slot.attempts,
            answers: slot.answers,
            cancelled: slot.cancelled,
            errors: slot.errors.iter().map(|(label, n)| ((*label).to_owned(), *n)).collect(),
            error_rate: slot.error_rate().map(rounded),
            retries: slot.retries,
            hedges_won: slot.hedges_won,
            hedges_lost: slot.hedges_lost,
            goodput: slot.goodput().map(rounded),
            first_content: slot.first_content.quantiles(),
            inter_token: slot.inter_token.quantiles(),
            total: slot.total.quantiles(),
            output_tokens: slot.output_tokens,
            output_tokens_per_second: speed.map(rounded),
            output_speed_of_norm: of_norm.map(|(speed, usual)| rounded(speed / usual)),
            cost_usd: slot.cost_usd,
        }
    }
}

/// To four decimals.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1e4).round() / 1e4
}

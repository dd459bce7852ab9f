//! In what order targets are asked, and who is left out and why.
//!
//! The tiers come first: the model asked for at all its providers, then the models to fall back
//! to. Within a tier what is paid for anyhow comes first, then the configured or wished order; a
//! target in trouble goes behind its healthy neighbours, and is not lost.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use super::ask::Ask;
use super::preferences::{FIELDS, Preferences, Sort};
use super::route::{Candidate, Choice, Route, Routes};
use super::target::Targets;
use crate::chat::json::Json;
use crate::chat::{ChatRequest, plain_name};
use crate::config::Order;
use crate::dialect::cross::Inexpressible;

/// The fields of a request that every target supports.
const ALWAYS_SUPPORTED: [&str; 6] = ["model", "messages", "stream", "stream_options", FIELDS[0], FIELDS[1]];

/// How many targets were left after each filter, for a caller whose wishes left none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Funnel {
    /// The providers that the caller named.
    pub requested_providers: Vec<String>,
    /// The providers that serve the models asked for.
    pub available_providers: Vec<String>,
    /// The filters in their order.
    pub steps: Vec<FunnelStep>,
    /// The filter after which nobody was left.
    pub emptied_by: &'static str,
}

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunnelStep {
    /// Its name.
    pub filter: &'static str,
    /// Targets left after it.
    pub left: usize,
}

/// Why there is nobody to ask.
#[derive(Debug)]
pub(super) enum Nobody {
    /// No route has this name, or none of its providers is there.
    Unknown,
    /// An operator switched all of them off.
    SwitchedOff,
    /// None can be asked this, the first of them for this reason.
    Inexpressible(Arc<str>, Inexpressible),
    /// The caller's wishes left none.
    Wishes(Funnel),
}

/// Narrows the choices down, and counts.
struct Sieve {
    choices: Vec<(Choice, Place)>,
    steps: Vec<FunnelStep>,
    emptied_by: Option<&'static str>,
}

/// Where a choice comes from.
#[derive(Clone)]
struct Place {
    /// The model asked for, by its place among those the request names.
    rank: usize,
    asked: Arc<str>,
    order: Order,
}

impl Sieve {
    fn keep(&mut self, filter: &'static str, mut keep: impl FnMut(&Choice, &Place) -> bool) {
        self.choices.retain(|(choice, place)| keep(choice, place));
        self.steps.push(FunnelStep { filter, left: self.choices.len() });
        if self.choices.is_empty() {
            self.emptied_by.get_or_insert(filter);
        }
    }
}

/// Those who may be asked, first the best. `is_on` says whether an operator lets a choice be asked
/// under a model's name; `jitter` gives numbers in 0..1.
pub(super) fn plan(
    routes: &Routes,
    targets: &Targets,
    ask: &Ask<'_>,
    is_on: &dyn Fn(&Choice, &str) -> bool,
    jitter: &dyn Fn() -> f64,
    now: Instant,
) -> Result<Vec<Candidate>, Nobody> {
    let Ask { request, preferences: wishes, credential, .. } = *ask;
    let asked = || std::iter::once(&request.model).chain(&wishes.models);
    let named: Vec<(&String, &Route)> = asked().filter_map(|name| Some((name, routes.of(name)?))).collect();
    let configured = named.iter().map(|(_, route)| route.choices.len() + route.absent).sum();
    let place =
        |rank: usize, name: &str, route: &Route| Place { rank, asked: name.into(), order: route.order };
    let choices: Vec<_> = named
        .iter()
        .enumerate()
        .flat_map(|(rank, (name, route))| {
            let place = place(rank, name, route);
            route.choices.iter().map(move |choice| (choice.clone(), place.clone()))
        })
        .collect();
    if choices.is_empty() {
        return Err(Nobody::Unknown);
    }
    // The model itself is what the lowest tier serves whose provider is there, whoever is left of it.
    let own_tier = choices.iter().filter(|(_, place)| place.rank == 0).map(|(choice, _)| choice.tier).min();
    let available = names(choices.iter().map(|(choice, _)| choice));
    let steps = vec![FunnelStep { filter: "configured", left: configured }];
    let mut sieve = Sieve { choices, steps, emptied_by: None };
    sieve.keep("there", |_, _| true);
    // A caller's own key is for the host that it asks for, and no other vendor's.
    let first = sieve.choices.iter().find(|(_, place)| place.rank == 0);
    let host = first.map(|(choice, _)| choice.host().map(str::to_owned));
    let is_theirs = |choice: &Choice| host.as_ref().is_some_and(|host| choice.host() == host.as_deref());
    sieve.keep("credential", |choice, _| credential.is_none() || is_theirs(choice));
    sieve.keep("switched on", |choice, place| is_on(choice, &place.asked));
    if sieve.choices.is_empty() {
        return Err(Nobody::SwitchedOff);
    }
    let listed =
        |list: &[String], choice: &Choice| list.iter().any(|name| **name == **choice.endpoint.name());
    sieve.keep("provider.only", |choice, _| wishes.only.is_empty() || listed(&wishes.only, choice));
    sieve.keep("provider.ignore", |choice, _| !listed(&wishes.ignore, choice));
    let strictly = !wishes.allow_fallbacks && !wishes.order.is_empty();
    sieve.keep("provider.order without allow_fallbacks", |choice, _| {
        !strictly || listed(&wishes.order, choice)
    });
    sieve.keep("provider.require_parameters", |choice, _| {
        !wishes.require_parameters || supports(choice, request)
    });
    if let Some(emptied_by) = sieve.emptied_by {
        let requested_providers = [&wishes.order[..], &wishes.only, &wishes.ignore].concat();
        let available_providers = available;
        let steps = sieve.steps;
        return Err(Nobody::Wishes(Funnel { requested_providers, available_providers, steps, emptied_by }));
    }
    // The last one, since it reads the whole request for each of those who are left.
    let first = Arc::clone(sieve.choices[0].0.endpoint.name());
    let mut refusal = None;
    sieve.keep("dialect", |choice, _| match choice.endpoint.provider.takes(request) {
        Ok(()) => true,
        Err(what) => {
            refusal.get_or_insert(what);
            false
        }
    });
    if let (true, Some(what)) = (sieve.choices.is_empty(), refusal) {
        return Err(Nobody::Inexpressible(first, what));
    }
    let mut ranked: Vec<_> = sieve
        .choices
        .into_iter()
        .map(|(choice, place)| {
            let is_fallback = place.rank > 0 || Some(choice.tier) != own_tier;
            let candidate = choice.candidate(&place.asked, targets, place.rank, is_fallback, now);
            let rank = Rank::of(&candidate, &place, wishes, jitter, now);
            (rank, candidate)
        })
        .collect();
    // Stable, so that what is equal stays as written.
    ranked.sort_by(|(a, _), (b, _)| a.compare(b));
    let mut candidates: Vec<Candidate> = Vec::with_capacity(ranked.len());
    for (_, candidate) in ranked {
        // Two models may lead to the same target, and a caller may name one twice.
        if !candidates.iter().any(|other| other.is_same_as(&candidate)) {
            candidates.push(candidate);
        }
    }
    if !wishes.allow_fallbacks && wishes.order.is_empty() {
        candidates.truncate(1);
    }
    Ok(candidates)
}

/// What decides between two candidates, the most telling first.
struct Rank {
    /// The place in the caller's own order of providers.
    wished: usize,
    tier: (usize, u32),
    troubled: bool,
    reserved: bool,
    /// The smaller the better.
    measure: f64,
}

impl Rank {
    fn of(
        candidate: &Candidate,
        place: &Place,
        wishes: &Preferences,
        jitter: &dyn Fn() -> f64,
        now: Instant,
    ) -> Self {
        let choice = &candidate.choice;
        let place_in_order = wishes.order.iter().position(|name| **name == **choice.endpoint.name());
        let target = &candidate.target;
        // Whoever was not measured yet comes first, or it never would be.
        let latency = || target.breaker.first_content_p95(now).map_or(0.0, |p95| p95.as_secs_f64());
        let price = || choice.price.map_or(f64::MAX, |price| price.input + price.output);
        let throughput = || target.health.report(now).last_hour.output_tokens_per_second.unwrap_or(f64::MAX);
        let measure = match (wishes.sort, place.order) {
            (Some(Sort::Latency), _) | (None, Order::Latency) => latency(),
            (Some(Sort::Price), _) | (None, Order::Price) => price(),
            (Some(Sort::Throughput), _) => -throughput(),
            // Efraimidis and Spirakis (2006): sorted by u^(1/w), descending, each order comes with the
            // probability that drawing without replacement gives it.
            (None, Order::Weight) => -jitter().powf(1.0 / f64::from(choice.weight)),
            (None, Order::Priority) => 0.0,
        };
        Self {
            wished: place_in_order.unwrap_or(usize::MAX),
            tier: (place.rank, choice.tier),
            troubled: target.goes_behind(now),
            reserved: choice.reserved,
            measure,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.tier
            .cmp(&other.tier)
            .then(self.wished.cmp(&other.wished))
            .then(self.troubled.cmp(&other.troubled))
            .then(other.reserved.cmp(&self.reserved))
            .then(self.measure.total_cmp(&other.measure))
    }
}

/// Whether the choice supports every field of the request.
fn supports(choice: &Choice, request: &ChatRequest) -> bool {
    let Some(parameters) = &choice.parameters else { return true };
    let Json::Object(fields) = &request.scope else { return true };
    fields
        .iter()
        .filter(|(name, value)| *value != Json::Null && !ALWAYS_SUPPORTED.contains(&name.as_str()))
        .all(|(name, _)| parameters.iter().any(|known| known == plain_name(name)))
}

fn names<'a>(choices: impl Iterator<Item = &'a Choice>) -> Vec<String> {
    let mut names: Vec<String> = choices.map(|choice| choice.endpoint.name().to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

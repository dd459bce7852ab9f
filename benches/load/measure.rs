//! Rounds of requests, and two contenders taking turns.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::Failure;
use crate::client::Connection;
use crate::process::Process;

/// How long is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) length: Duration,
}

/// Who is asked, and what.
pub(crate) struct Contender<'a> {
    pub(crate) address: SocketAddr,
    /// Whose time on a core counts; none where it is not a process of its own.
    pub(crate) process: Option<&'a Process>,
    /// Writes the next request into an empty buffer.
    pub(crate) next: &'a dyn Fn(&mut Vec<u8>),
    /// What `x-refrain-source` has to say.
    pub(crate) source: Option<&'static str>,
}

/// What one contender did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) rps: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Microseconds on a core for each request.
    pub(crate) cpu_us: f64,
}

/// Two contenders' medians, and the medians of what lies between them in each pair of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Duel {
    pub(crate) concurrency: usize,
    pub(crate) subject: Sample,
    pub(crate) reference: Sample,
    /// The subject's requests per second in the reference's.
    pub(crate) ratio: f64,
    /// The subject's p50 less the reference's.
    pub(crate) added_p50_ms: f64,
    /// The largest share of the subject's answers in any round that came from elsewhere than they should.
    pub(crate) stray_share: f64,
}

/// Lets both take turns.
pub(crate) async fn duel(
    plan: Plan,
    concurrency: usize,
    subject: &Contender<'_>,
    reference: &Contender<'_>,
) -> Result<Duel, Failure> {
    let (mut ours, mut theirs, mut strays) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        theirs.push(round(plan.length, concurrency, reference).await?.0);
        let (sample, stray) = round(plan.length, concurrency, subject).await?;
        ours.push(sample);
        strays.push(stray);
    }
    let pairs = || ours.iter().zip(&theirs);
    Ok(Duel {
        concurrency,
        subject: Sample::median(&ours),
        reference: Sample::median(&theirs),
        ratio: median(pairs().map(|(ours, theirs)| ours.rps / theirs.rps)),
        added_p50_ms: median(pairs().map(|(ours, theirs)| ours.p50_ms - theirs.p50_ms)),
        stray_share: strays.iter().copied().fold(0.0, f64::max),
    })
}

impl Sample {
    fn median(samples: &[Self]) -> Self {
        let of = |field: fn(&Self) -> f64| median(samples.iter().map(field));
        Self {
            rps: of(|sample| sample.rps),
            p50_ms: of(|sample| sample.p50_ms),
            p99_ms: of(|sample| sample.p99_ms),
            cpu_us: of(|sample| sample.cpu_us),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One round on connections of its own; also says what share of the answers strayed.
async fn round(
    length: Duration,
    concurrency: usize,
    contender: &Contender<'_>,
) -> Result<(Sample, f64), Failure> {
    let mut connections = Vec::new();
    for _ in 0..concurrency {
        connections.push(Connection::open(contender.address).await?);
    }
    let cpu = || contender.process.map_or(Ok(Duration::ZERO), Process::cpu);
    let (used, begun) = (cpu()?, Instant::now());
    let end = begun + length;
    let slots = connections.into_iter().map(|connection| slot(connection, end, contender));
    let slots = try_join_all(slots).await?;
    let (took, used) = (begun.elapsed(), cpu()?.saturating_sub(used));
    let mut times = no_times()?;
    let mut strays = 0;
    for (of_slot, stray) in slots {
        times.add(of_slot)?;
        strays += stray;
    }
    let requests = as_f64(times.len());
    let sample = Sample {
        rps: requests / took.as_secs_f64(),
        p50_ms: as_f64(times.value_at_quantile(0.5)) / 1e6,
        p99_ms: as_f64(times.value_at_quantile(0.99)) / 1e6,
        cpu_us: used.as_secs_f64() * 1e6 / requests,
    };
    Ok((sample, as_f64(strays) / requests))
}

async fn slot(
    mut connection: Connection,
    end: Instant,
    contender: &Contender<'_>,
) -> Result<(Histogram<u64>, u64), Failure> {
    let mut times = no_times()?;
    let mut strays = 0;
    let mut request = Vec::new();
    let mut now = Instant::now();
    while now < end {
        request.clear();
        (contender.next)(&mut request);
        let sent = Instant::now();
        let reply = connection.exchange(&request).await?;
        now = Instant::now();
        times.saturating_record(u64::try_from((now - sent).as_nanos())?);
        if reply.status != 200 {
            let body = String::from_utf8_lossy(reply.body).into_owned();
            return Err(format!("status {}: {body}", reply.status).into());
        }
        if let Some(source) = contender.source
            && reply.header("x-refrain-source") != Some(source)
        {
            strays += 1;
        }
    }
    Ok((times, strays))
}

/// An empty distribution of nanoseconds, up to a minute.
fn no_times() -> Result<Histogram<u64>, Failure> {
    Ok(Histogram::new_with_max(60_000_000_000, 3)?)
}

#[expect(clippy::cast_precision_loss, reason = "exact up to a hundred days of nanoseconds")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

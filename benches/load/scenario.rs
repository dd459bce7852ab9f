//! What is measured: hits from memory, whole and streamed, hits in other words, and misses.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::client::Connection;
use crate::measure::{Contender, Duel, Plan, duel};
use crate::process::{Process, Service};
use crate::questions::{STORED, chat, post, spelt, unheard};
use crate::report::{Report, Row};

const CHAT: &str = "/v1/chat/completions";
const CONCURRENCY: [usize; 2] = [1, 32];
/// So large a share of the answers may come from elsewhere, as when a busy machine makes the
/// timeout of a search pass; beyond it the figures are not what they say.
const STRAYS: f64 = 0.1;

/// Measures all of it.
pub(crate) async fn run_all(
    report: &mut Report,
    plan: Plan,
    echo: (SocketAddr, &Process),
    service: &Service,
    upstream: SocketAddr,
) -> Result<(), Failure> {
    let whole = chat(STORED[0], false);
    let streamed = chat(STORED[0], true);
    let number = Cell::new(0);
    let count = || number.replace(number.get() + 1);
    store_answers(service.callers, count).await?;
    let echoed = |request: &mut Vec<u8>| post(request, "/echo", "", &whole);
    let echo = Contender { address: echo.0, process: Some(echo.1), next: &echoed, source: None };
    let ask = |source, next| Contender {
        address: service.callers,
        process: Some(&service.process),
        next,
        source: Some(source),
    };

    let exact = |request: &mut Vec<u8>| post(request, CHAT, "", &whole);
    let duels = both(plan, &ask("exact", &exact), &echo).await?;
    report.scenarios.push(Row::new("exact_hit", duels));

    let stream = |request: &mut Vec<u8>| post(request, CHAT, "", &streamed);
    let duels = both(plan, &ask("exact", &stream), &echo).await?;
    report.scenarios.push(Row::new("streamed_hit", duels));

    let other_words = |request: &mut Vec<u8>| post(request, CHAT, "", &chat(&spelt(count()), false));
    let semantic = ask("semantic", &other_words);
    let alone = one(plan, CONCURRENCY[0], &semantic, &echo).await?;
    // Asked for before callers queue for the model.
    let forward = embed_p50_ms(service.operators).await?;
    let crowd = one(plan, CONCURRENCY[1], &semantic, &echo).await?;
    let row = Row::new("semantic_hit", [alone, crowd]);
    report.scenarios.push(row.with("ratio_to_forward", alone.subject.p50_ms / forward));

    // Without the semantic layer, beside the provider itself: what is added before embedding.
    let exact_only = "x-refrain-namespace: exact-only\r\n";
    let unembedded = |request: &mut Vec<u8>| post(request, CHAT, exact_only, &chat(&unheard(count()), false));
    let direct = |request: &mut Vec<u8>| post(request, CHAT, "", &whole);
    let direct = Contender { address: upstream, process: None, next: &direct, source: None };
    let unembedded = one(plan, CONCURRENCY[0], &ask("upstream", &unembedded), &direct).await?;

    let unheard = |request: &mut Vec<u8>| post(request, CHAT, "", &chat(&unheard(count()), false));
    let duels = both(plan, &ask("upstream", &unheard), &echo).await?;
    report
        .scenarios
        .push(Row::new("miss", duels).with("added_before_embedding_p50_ms_c1", unembedded.added_p50_ms));
    Ok(())
}

async fn both(plan: Plan, subject: &Contender<'_>, echo: &Contender<'_>) -> Result<[Duel; 2], Failure> {
    let [one_at_a_time, many] = CONCURRENCY;
    Ok([one(plan, one_at_a_time, subject, echo).await?, one(plan, many, subject, echo).await?])
}

async fn one(
    plan: Plan,
    concurrency: usize,
    subject: &Contender<'_>,
    reference: &Contender<'_>,
) -> Result<Duel, Failure> {
    let duel = duel(plan, concurrency, subject, reference).await?;
    if duel.stray_share > STRAYS {
        let (share, source) = (duel.stray_share * 100.0, subject.source.unwrap_or_default());
        return Err(format!("{share:.1} % of the answers were not from {source}").into());
    }
    Ok(duel)
}

/// Asks the stored questions, and then in other words until every one of them is found: their
/// vectors are written off the caller's path.
async fn store_answers(service: SocketAddr, count: impl Fn() -> u64) -> Result<(), Failure> {
    let mut connection = Connection::open(service).await?;
    for question in STORED {
        ask(&mut connection, question).await?;
    }
    let patience = Instant::now() + Duration::from_secs(10);
    let mut found = 0;
    while found < STORED.len() {
        let question = spelt(count());
        if ask(&mut connection, &question).await? == "semantic" {
            found += 1;
            continue;
        }
        found = 0;
        if Instant::now() > patience {
            return Err(format!("no hit in other words: {question}").into());
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Asks in a language that the first encoder does not cover, until the second is there.
pub(crate) async fn load_second_encoder(service: &Service) -> Result<(), Failure> {
    let mut connection = Connection::open(service.callers).await?;
    let patience = Instant::now() + Duration::from_secs(30);
    for number in 0_u64.. {
        let mut request = Vec::new();
        post(&mut request, CHAT, "", &chat(&format!("我想问第{number}号表格在哪里可以找到？"), false));
        let reply = connection.exchange(&request).await?;
        if !reply.header("cache-status").unwrap_or_default().contains("encoder_loading") {
            break;
        }
        if Instant::now() > patience {
            return Err("the multilingual encoder does not load".into());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Asks, and says where the answer is from.
async fn ask(connection: &mut Connection, question: &str) -> Result<String, Failure> {
    let mut request = Vec::new();
    post(&mut request, CHAT, "", &chat(question, false));
    let reply = connection.exchange(&request).await?;
    Ok(reply.header("x-refrain-source").unwrap_or("nowhere").to_owned())
}

/// What the service itself says embedding took.
async fn embed_p50_ms(operators: SocketAddr) -> Result<f64, Failure> {
    let mut connection = Connection::open(operators).await?;
    let reply = connection.exchange(b"GET /stats HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let stats: Value = serde_json::from_slice(reply.body)?;
    Ok(stats["latency"]["embed"]["p50_ms"].as_f64().ok_or("no time of embedding in the statistics")?)
}

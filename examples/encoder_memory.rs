//! What the encoders cost: memory resident in the process and time to load.
//!
//! `cargo run --example encoder_memory [--release]`, after `models/fetch`.

use std::path::Path;

use refrain::cache::embedder::{EmbedError, Encoders};
use refrain::config::Config;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::from_toml("")?;
    report("start");
    let begun = Instant::now();
    let encoders = Encoders::try_new(&config.embedder, &config.encoders)?;
    report(&format!("English loaded in {:.2?}", begun.elapsed()));
    embed(&encoders, "How do I change the password of account").await?;
    report("200 English questions");
    let begun = Instant::now();
    while matches!(encoders.embed("怎么重置密码").await, Err(EmbedError::Loading)) {
        tokio::task::yield_now().await;
    }
    report(&format!("multilingual loaded in {:.2?}", begun.elapsed()));
    embed(&encoders, "怎么修改账户的密码，账户号是").await?;
    report("200 Chinese questions");
    encoders.embed(&"word ".repeat(500)).await?;
    encoders.embed(&"单词".repeat(200)).await?;
    report("a question of 500 tokens for each");
    Ok(())
}

async fn embed(encoders: &Encoders, text: &str) -> Result<(), EmbedError> {
    let begun = Instant::now();
    for n in 0..200 {
        encoders.embed(&format!("{text} {n}?")).await?;
    }
    println!("{:>44} {:.2?} a question", "", begun.elapsed() / 200);
    Ok(())
}

/// Resident memory now and at its peak, as the kernel tells it (Linux only).
fn report(when: &str) {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let kib = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    println!(
        "{when:>44} {:>4} MiB resident ({} anonymous, {} of files), peak {}",
        kib("VmRSS:"),
        kib("RssAnon:"),
        kib("RssFile:"),
        kib("VmHWM:")
    );
}

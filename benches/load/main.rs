//! Requests per second, beside a bare echo in the same run.
//!
//! `make load`, or `cargo bench --bench load -- [--quick] [--json] [--entries N]`. A machine's
//! figures mean little elsewhere; their ratio to the echo, which is axum behind the same accept
//! loop and in a process of its own too, means more. Echo and service take turns in short
//! rounds, so that a noisy neighbour hits both, and every figure is a median over the rounds.
//!
//! Closed loop: each connection asks again when it has its answer, so a stall delays what would
//! have been asked meanwhile, and the p99 of an open loop would be worse.

mod client;
mod echo;
mod measure;
mod process;
mod questions;
mod report;
mod scenario;
mod stock;
mod upstream;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use measure::Plan;
use process::Service;
use report::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Anything may go wrong; all of it ends the run with one line.
type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct Args {
    /// Short rounds, few of them: done in less than 20 seconds.
    #[arg(long)]
    quick: bool,
    /// The last line is one JSON object.
    #[arg(long)]
    json: bool,
    /// Measure over a store that holds so many entries already.
    #[arg(long, default_value_t = 0)]
    entries: u64,
    /// Be the echo: what the run starts beside itself.
    #[arg(long, hide = true)]
    echo: bool,
    /// Said by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = if args.echo { echo::serve() } else { run(&args) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("load: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    // One thread asks for all connections: the service has the other core, or shares this one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plan = if args.quick {
        Plan { rounds: 3, length: Duration::from_millis(200) }
    } else {
        Plan { rounds: 7, length: Duration::from_secs(1) }
    };
    let report = runtime.block_on(measured(args.entries, plan))?;
    print!("{report}");
    if args.json {
        println!("{}", report.to_json());
    }
    Ok(())
}

async fn measured(entries: u64, plan: Plan) -> Result<Report, Failure> {
    let upstream = upstream::start()?;
    let echo = echo::start()?;
    let service = Service::start(upstream, entries).await?;
    let mut report = Report { ready: service.ready_after, entries, ..Report::default() };
    report.rss.push(("start", service.rss_mib()?));
    scenario::run_all(&mut report, plan, echo.address(), &service, upstream).await?;
    report.rss.push(("after", service.rss_mib()?));
    scenario::load_second_encoder(&service).await?;
    report.rss.push(("multilingual", service.rss_mib()?));
    Ok(report)
}

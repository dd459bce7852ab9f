//! The processes of a run, and what the kernel says of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use refrain::cache::embedder::Embedder;
use refrain::cache::store::edge::EdgeStore;
use tokio::time::Instant;

use crate::{Failure, stock};

/// A child that ends with its owner.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self, Failure> {
        Ok(Self(command.stdin(Stdio::null()).spawn()?))
    }

    /// What it prints, once.
    pub(crate) fn stdout(&mut self) -> Result<ChildStdout, Failure> {
        Ok(self.0.stdout.take().ok_or("its output is taken already")?)
    }

    /// Time on a core so far, all threads together.
    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        // proc_pid_stat(5): the name may hold spaces, so the fields are counted from behind it;
        // 11 and 12 are the ticks in user and kernel mode, a hundred a second.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no process state")?;
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    fn rss_mib(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no resident size")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The service under load: the release binary, with folder, ports and log of its own.
pub(crate) struct Service {
    pub(crate) callers: SocketAddr,
    pub(crate) operators: SocketAddr,
    pub(crate) ready_after: Duration,
    pub(crate) process: Process,
    _folder: tempfile::TempDir,
}

impl Service {
    /// Starts it in front of `upstream`, over a store that holds so many entries.
    pub(crate) async fn start(upstream: SocketAddr, entries: u64) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        if entries > 0 {
            copy(&stocked(entries).await?, &data)?;
        }
        let config = folder.path().join("refrain.toml");
        fs::write(&config, settings(upstream, &data))?;
        let log = fs::File::create(folder.path().join("log"))?;
        let begun = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_refrain"));
        command.arg("serve").arg("--config").arg(&config).current_dir(env!("CARGO_MANIFEST_DIR"));
        let mut process = Process::spawn(command.stdout(Stdio::piped()).stderr(log))?;
        let mut lines = BufReader::new(process.stdout()?).lines();
        let mut address = |before: &str| -> Result<SocketAddr, Failure> {
            loop {
                let Some(line) = lines.next().transpose()? else {
                    let log = fs::read_to_string(folder.path().join("log"))?;
                    return Err(format!("the service did not start: {log}").into());
                };
                if let Some((_, rest)) = line.split_once(before) {
                    return Ok(rest.split('/').next().unwrap_or_default().parse()?);
                }
            }
        };
        let callers = address("listens on http://")?;
        let ready_after = begun.elapsed();
        let operators = address("Statistics: http://")?;
        Ok(Self { callers, operators, ready_after, process, _folder: folder })
    }

    /// Memory that it holds now.
    pub(crate) fn rss_mib(&self) -> Result<u64, Failure> {
        self.process.rss_mib()
    }
}

fn settings(upstream: SocketAddr, data: &Path) -> String {
    format!(
        r#"
[server]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[log]
format = "json"
[store]
path = "{}"
[providers.instant]
kind = "openai"
url = "http://{upstream}/v1"
[models.bench]
targets = [{{ provider = "instant" }}]
[namespaces.exact-only]
semantic = false
"#,
        data.display()
    )
}

/// A folder with so many entries, kept between runs.
async fn stocked(entries: u64) -> Result<PathBuf, Failure> {
    let encoder = stock::encoder().ok_or("there is no encoder: run models/fetch")?;
    let folder = stock::folder(encoder.id(), entries);
    let store = EdgeStore::open(&folder, stock::PATIENCE, stock::PATIENCE)?;
    stock::fill(&store, encoder.id(), entries).await?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

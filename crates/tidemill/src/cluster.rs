//! `--workers` and `--cluster`: who evaluates the trials of a search in place of this process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use clap::Args;
use tidemill_fleet::{ChildProcesses, FleetEvent, Sockets, Token};
use tidemill_lab::{Cluster, DeviceChoice};

/// The most processes that are started here.
const MOST_LOCAL: usize = 256;

/// Workers of a search.
#[derive(Args, Clone)]
pub struct ClusterArgs {
    /// Evaluate on workers: local:N starts N processes here, HOST:PORT,… connects to `tidemill worker --listen`. No result depends on it.
    #[arg(long, value_name = "WORKERS")]
    workers: Option<String>,
    /// Evaluate on the workers of a cluster: ray, with the Python package and RAY_ADDRESS. No result depends on it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["workers", "token_file"])]
    cluster: Option<String>,
    /// File with the secret that this side and the workers behind sockets share.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// What workers evaluate on where they are started here.
#[derive(Clone)]
pub struct LocalWorkers {
    /// Threads of all of them together; all cores if it is not given.
    pub threads: Option<usize>,
    /// Their device.
    pub device: DeviceChoice,
    /// Their settings file, if one was named.
    pub config: Option<PathBuf>,
}

/// Opens a cluster by its name, for workers on a device.
pub type ClusterOpener = fn(&str, &str) -> Result<Cluster>;

static OPENER: OnceLock<ClusterOpener> = OnceLock::new();

/// Names who opens the clusters of `--cluster`; without it there are none. The Python package does, because Ray speaks Python.
pub fn open_clusters_by(opener: ClusterOpener) {
    // Whoever was first stays: there is one package around this library.
    let _ = OPENER.set(opener);
}

static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Names the command that starts this program; without it, it is the file of this process. In the Python package that is the interpreter,
/// whose name, and not its file, says which environment it belongs to.
pub fn start_workers_by(program: Vec<OsString>) {
    let _ = PROGRAM.set(program);
}

impl ClusterArgs {
    /// Whether anybody else than this process evaluates.
    pub fn is_remote(&self) -> bool {
        self.workers.is_some() || self.cluster.is_some()
    }

    /// The workers that were asked for, if any were.
    pub fn open(&self, local: LocalWorkers) -> Result<Option<Cluster>> {
        if let Some(name) = &self.cluster {
            let Some(open) = OPENER.get() else {
                bail!(
                    "--cluster {name} needs the Python package\n  hint: pip install 'tidemill[ray]', whose `tidemill` takes the same arguments"
                );
            };
            return open(name, &local.device.to_string()).map(Some);
        }
        let Some(workers) = &self.workers else {
            if self.token_file.is_some() {
                bail!(
                    "--token-file is for workers behind sockets\n  hint: name them with --workers HOST:PORT,…"
                );
            }
            return Ok(None);
        };
        if let Some(number) = workers.strip_prefix("local:") {
            return Ok(Some(Cluster::new(Box::new(processes(number, local)?))));
        }
        let addresses: Vec<String> = workers.split(',').map(|address| address.trim().to_owned()).collect();
        if let Some(wrong) = addresses.iter().find(|address| !is_address(address)) {
            bail!("--workers {wrong}: expected local:N, or HOST:PORT and more of them separated by commas");
        }
        let Some(file) = &self.token_file else {
            bail!(
                "--workers {workers} needs --token-file: the secret that the workers were started with\n  hint: `tidemill worker --help` says how to make one"
            );
        };
        let token = Token::read(file)?;
        let sockets =
            Sockets::new(&addresses, &token).context("cannot start the threads of the connections")?;
        Ok(Some(Cluster::new(Box::new(sockets))))
    }

    /// Where trials are evaluated, in words.
    pub fn shown(&self) -> Option<String> {
        if let Some(name) = &self.cluster {
            return Some(format!("the cluster {name}"));
        }
        let workers = self.workers.as_deref()?;
        Some(match workers.strip_prefix("local:") {
            Some("1") => "one worker process".into(),
            Some(number) => format!("{number} worker processes"),
            None => format!("the workers {workers}"),
        })
    }
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

fn processes(number: &str, LocalWorkers { threads, device, config }: LocalWorkers) -> Result<ChildProcesses> {
    let n_workers = match number.parse() {
        Ok(n_workers) if (1..=MOST_LOCAL).contains(&n_workers) => n_workers,
        _ => bail!("--workers local:{number}: write a number of processes from 1 to {MOST_LOCAL}"),
    };
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (threads.unwrap_or(n_cores) / n_workers).max(1).to_string();
    let program = match PROGRAM.get() {
        Some(program) => program.clone(),
        None => vec![std::env::current_exe().context("cannot find this program to start workers")?.into()],
    };
    Ok(ChildProcesses::new(n_workers, move || {
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]);
        command.args(["worker", "--threads", &threads, "--device", &device.to_string()]);
        if let Some(config) = &config {
            command.arg("--config").arg(config);
        }
        command
    }))
}

/// What users are told of an event, and whether it is a detail.
pub fn sentence(event: &FleetEvent) -> Option<(String, bool)> {
    Some(match event {
        FleetEvent::Joined { name, device, .. } => (format!("worker {name} joined, on {device}"), true),
        FleetEvent::Refused { name, reason } => {
            (format!("warning: worker {name} takes no part: {reason}"), false)
        }
        FleetEvent::Lost { name, reason, n_shards, .. } => {
            let again = if *n_shards > 0 { "; what it had is evaluated again" } else { "" };
            (format!("note: worker {name} was lost: {reason}{again}"), false)
        }
        FleetEvent::Hedged { late, name, n_trials } => {
            (format!("worker {late} is late with {n_trials} trials; {name} evaluates them too"), true)
        }
        FleetEvent::Failed { name, reason } => (
            format!("warning: worker {name} could not evaluate some trials, which others do: {reason}"),
            false,
        ),
        FleetEvent::Hungry(hunger) => (format!("note: {hunger}"), false),
        FleetEvent::Waiting { since } => {
            (format!("note: no worker has been there for {} s; waiting for one", since.as_secs()), false)
        }
        FleetEvent::ShardDone(_) => return None,
    })
}

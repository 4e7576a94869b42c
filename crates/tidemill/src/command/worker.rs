//! `tidemill worker`: evaluates trials for a search that runs elsewhere.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use tidemill_fleet::{Token, link, socket};
use tidemill_lab::{DeviceChoice, Devices, Runtime, WorkerOptions, study_worker};

use super::sweep::device_choice;
use crate::exit::ExitCode;
use crate::input::set_threads;
use crate::settings::Settings;

/// Evaluate trials for a search that runs elsewhere.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill sweep ema-cross --data btc.parquet --workers local:3     starts three workers itself
  head -c 32 /dev/urandom | base64 > token                          a secret for workers behind sockets
  tidemill worker --listen 7700 --token-file token                  on this machine only; others through `ssh -L`
  tidemill worker --listen 10.0.0.5:7700 --token-file token --data /data/btc.parquet
  tidemill sweep ema-cross --data btc.parquet --workers 127.0.0.1:7700 --token-file token

Without --listen it speaks the protocol of docs/cluster.md on standard input and output.
It needs the same version of Tidemill and the same data as the search; both are compared before it gets a trial.")]
pub struct WorkerArgs {
    /// Wait for searches at this port of this machine, or at ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", requires = "token_file")]
    listen: Option<String>,
    /// File with the secret that searches have to know.
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// Files or folders that hold the data here, if not where the search has them.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    data: Vec<PathBuf>,
    /// Where trials are evaluated: auto, cpu, cuda (all GPUs) or cuda:N. No result depends on it [default: auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Name in messages of the search [default: host and process].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: WorkerArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.config.as_deref())?;
    if let Some(missing) = args.data.iter().find(|path| !path.exists()) {
        bail!("--data {}: there is no such file or folder", missing.display());
    }
    set_threads(args.threads.or(settings.run.threads))?;
    let devices = Devices::choose(device_choice(args.device, &settings)?)?;
    let default = Runtime::default();
    let runtime = Runtime {
        devices: Arc::new(devices.with_wait_limit(settings.gpu.wait_limit())),
        device_options: settings.gpu.device_options(),
        cache_bytes: settings.run.cache_mb.map_or(default.cache_bytes, |mb| mb << 20),
        ..default
    };
    let options = WorkerOptions { name: args.name, data: None, files: args.data, runtime };
    let worker = Arc::new(study_worker(options).context("cannot start the worker")?);
    let (Some(address), Some(token_file)) = (&args.listen, &args.token_file) else {
        // Whatever is under way is of no use to anybody once the search has gone.
        link::serve(&worker, std::io::stdin(), std::io::stdout()).context("cannot speak with the search")?;
        std::process::exit(0);
    };
    let token = Token::read(token_file)?;
    let address = parse_address(address)?;
    let listener = match TcpListener::bind(address) {
        Ok(listener) => listener,
        Err(error) => {
            let hint = match error.kind() {
                ErrorKind::AddrInUse => "another program uses this port; choose another one",
                ErrorKind::AddrNotAvailable => {
                    "this machine has no such address; a port alone waits at 127.0.0.1"
                }
                _ => "ports below 1024 are for the administrator",
            };
            bail!("cannot listen at {address}: {error}\n  hint: {hint}");
        }
    };
    let address = listener.local_addr().unwrap_or(address);
    eprintln!("waiting for searches at {address}");
    if !address.ip().is_loopback() {
        eprintln!(
            "note: what passes over the network is not encrypted; outside of a network that you trust use `ssh -L` (docs/cluster.md)"
        );
    }
    socket::listen(&listener, &token, &worker, |text| eprintln!("{text}"))
        .context("cannot serve searches")?;
    Ok(ExitCode::SUCCESS)
}

/// A port of this machine, or an address with a port.
fn parse_address(text: &str) -> Result<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) => bail!(
            "--listen {text}: write a port, or a numeric address of this machine with a port, for example 10.0.0.5:7700"
        ),
    }
}

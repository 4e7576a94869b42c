//! `tidemill dash`: runs in a browser, live or afterwards.
//!
//! It only reads, and nothing it does can disturb a run. Pages and server are in `tidemill-dash`; here is what they ask for beyond the journal.

mod chart;
mod evaluation;
mod parameters;
mod source;
mod summary;
mod table;
mod trials;
mod walk;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tidemill_dash::web::{Options, Token, WebError, serve};

use super::monitor::choose::has_journal;
use crate::exit::ExitCode;
use source::Studies;

/// Show runs in a browser: live progress, trials, parameters, charts.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill dash runs --open                           all runs beneath a folder
  tidemill dash runs/ema                              one run
  tidemill dash runs --address 127.0.0.1:0            any free port; the first line printed has the address
  tidemill dash runs --address 0.0.0.0:7700           for other machines too: it prints a random token
  ssh -L 7700:localhost:7700 host                     … or a tunnel, which needs none

It runs until Ctrl-C, needs no network and disturbs no run.")]
pub struct DashArgs {
    /// A folder with runs beneath it, or one run.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Open it in the browser.
    #[arg(long)]
    open: bool,
    /// Address to listen on. One that other machines can reach needs a token.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    address: SocketAddr,
    /// Token that requests must carry, 16 characters or more [default: none on this machine, otherwise a random one].
    #[arg(long, value_name = "TOKEN", env = "TIDEMILL_DASH_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

pub fn run(args: DashArgs) -> Result<ExitCode> {
    if !args.dir.is_dir() {
        let hint = "`tidemill sweep --out runs/NAME` makes a run in runs";
        bail!("there is no folder {}\n  hint: {hint}", args.dir.display());
    }
    let token = match &args.token {
        Some(text) => Some(Token::new(text).context("--token")?),
        None if args.address.ip().is_loopback() => None,
        None => Some(made_up()?),
    };
    let options = Options {
        is_run: has_journal(&args.dir),
        folder: args.dir,
        address: args.address,
        token,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let server = match serve(options, Studies::default()) {
        Err(error @ WebError::Listen { .. }) => {
            let hint = "--address 127.0.0.1:0 takes any free port";
            return Err(anyhow!(error).context(format!("the dashboard cannot start; {hint}")));
        }
        other => other?,
    };
    let link = server.link();
    // Set before the line is printed, so that whoever waits for the line may send Ctrl-C at once.
    let (stop, stopped) = std::sync::mpsc::channel();
    ctrlc::set_handler(move || {
        // The receiver is gone only when the dashboard is ending.
        let _ = stop.send(());
    })
    .context("cannot listen for Ctrl-C")?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{link}")?;
    out.flush()?;
    eprintln!("Ctrl-C ends it");
    if args.open
        && let Err(error) = open::that_detached(&link)
    {
        eprintln!("note: no browser could be opened ({error}); open the address above");
    }
    // An error would mean that the handler is gone, which ends the program as well.
    let _ = stopped.recv();
    drop(server);
    Ok(ExitCode::from(130))
}

fn made_up() -> Result<Token> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow!("cannot make a random token ({error})\n  hint: --token sets one"))?;
    Ok(Token::from_bytes(bytes))
}

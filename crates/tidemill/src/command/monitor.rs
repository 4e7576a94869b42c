//! `tidemill monitor`: shows a run, live from another process or afterwards from its folder.
//!
//! It only reads, and nothing it does can disturb the run.

pub(super) mod choose;
pub(super) mod glimpse;
mod picture;
pub(super) mod pulse;
mod tail;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use tidemill_coloring::phase::PhaseKind;
use tidemill_dash::terminal::screen::{self, App, ScreenExit};
use tidemill_dash::terminal::{RunStatus, Summary, Theme, View, check_phases, summary};
use tidemill_telemetry::{Follower, Snapshot, Timestamp};

use crate::exit::ExitCode;

/// Time between two looks at a live journal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watch a run: a full screen, its lines, or a summary.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill monitor runs/ema                                the full screen; `?` there shows the keys
  tidemill monitor runs/ema --tail                         one line per event, until the run ends
  tidemill monitor runs/ema --tail --phase kernel --phase improvement
  tidemill monitor runs/ema --summary                      times of all phases, what was found, what went wrong
  tidemill monitor runs/ema --summary --json | jq .best
  tidemill monitor runs --latest                           the newest of several runs
  tidemill monitor runs/new --tail --wait && echo done     start first, and wait for the run

Without a terminal the summary is printed. Nothing here disturbs the run.

Exit codes: 0 done, 1 with --tail if the run failed, was killed or fell silent, 2 bad input, 130 stopped by Ctrl-C.")]
pub struct MonitorArgs {
    /// Folder or journal of a run; of a folder with several runs, a list of them.
    #[arg(value_name = "RUN", default_value = ".")]
    path: PathBuf,
    /// Print the newest events, then every new one, until the run ends.
    #[arg(long, conflicts_with = "summary")]
    tail: bool,
    /// Print a summary of the run: state, times by phase, improvements, fall-backs, actions.
    #[arg(long)]
    summary: bool,
    /// Only this phase, such as `kernel`. Repeatable.
    #[arg(long = "phase", value_name = "NAME")]
    phases: Vec<String>,
    /// Print JSON: one object with everything, or with --tail one event per line.
    #[arg(long)]
    json: bool,
    /// With --tail: how many earlier events to show first, up to 200.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=200))]
    lines: u16,
    /// Wait for a journal that does not exist yet.
    #[arg(long)]
    wait: bool,
    /// Take the newest of several runs.
    #[arg(long)]
    latest: bool,
    /// Write the screen as an SVG picture.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["tail", "summary", "json"])]
    picture: Option<PathBuf>,
    /// Columns and rows of the picture.
    #[arg(long, value_name = "WxH", hide = true, default_value = "120x36", value_parser = picture::parse_size)]
    size: (u16, u16),
}

/// Runs the command.
pub fn run(mut args: MonitorArgs) -> Result<ExitCode> {
    for name in &mut args.phases {
        if let Some(known) = PhaseKind::recorded_as(name) {
            *name = known.to_owned();
        }
    }
    let path = choose::run_of(&args.path, args.latest, args.wait)?;
    if let Some(file) = &args.picture {
        return picture::write(&load(&path, false, &AtomicBool::new(false))?, &path, file, args.size);
    }
    let is_screen = !args.tail && !args.summary && !args.json && is_interactive();
    let stop = stop_on_signal(!is_screen);
    if args.tail {
        return tail::run(&path, &args, &stop);
    }
    if is_screen {
        if !args.phases.is_empty() && !args.wait {
            check_phases(&load(&path, false, &stop)?, &args.phases)?;
        }
        let view = View { filter: args.phases.join(","), ..View::default() };
        let app = App::new(&path, view, Theme::from_environment(), || pulse::of(&path));
        return Ok(match screen::run(app, &stop)? {
            ScreenExit::Quit => ExitCode::SUCCESS,
            ScreenExit::Interrupted => ExitCode::from(130),
        });
    }
    let snapshot = load(&path, args.wait, &stop)?;
    if stop.load(Ordering::SeqCst) {
        return Ok(ExitCode::from(130));
    }
    check_phases(&snapshot, &args.phases)?;
    print(&snapshot, &path, &args)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the command runs in a terminal that can show a full screen and read keys.
fn is_interactive() -> bool {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb
}

/// The fold of a journal; with `--wait` it waits for the first event.
fn load(path: &Path, wait: bool, stop: &AtomicBool) -> Result<Snapshot> {
    let mut follower = Follower::open(path);
    loop {
        follower.poll(|_| {})?;
        if follower.snapshot().last.is_some() || stop.load(Ordering::SeqCst) {
            break;
        }
        if !wait {
            bail!(
                "the journal {} has no events\n  hint: --wait waits for the first one",
                follower.path().display()
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
    warn_of_malformed(&follower);
    Ok(follower.into_snapshot())
}

/// Prints which lines could not be read.
fn warn_of_malformed(follower: &Follower) {
    if let Some(malformed) = follower.malformed() {
        let n = tidemill_lab::number::counted(follower.n_malformed(), "line");
        let (path, line) = (malformed.path.display(), malformed.line);
        eprintln!(
            "note: {n} of the journal could not be read, the last one at {path}:{line}: {}",
            malformed.reason
        );
    }
}

/// A snapshot, and whether the run is alive, which the snapshot alone does not show.
#[derive(Serialize)]
struct MonitorJson<'a> {
    /// `running`, `silent`, `killed`, `complete`, `stopped` or `failed`.
    standing: &'static str,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

fn print(snapshot: &Snapshot, path: &Path, args: &MonitorArgs) -> Result<()> {
    let (now, pulse) = (Timestamp::now(), pulse::of(path));
    let mut out = std::io::stdout().lock();
    if args.json {
        let snapshot = &only(snapshot, &args.phases);
        let standing = RunStatus::of(snapshot, now, pulse).word();
        writeln!(out, "{}", serde_json::to_string_pretty(&MonitorJson { standing, snapshot })?)?;
    } else {
        let phases = &args.phases;
        write!(out, "{}", summary(&Summary { snapshot, phases, now, process: pulse }))?;
    }
    Ok(out.flush()?)
}

/// A snapshot with these phases only; none means all.
fn only(snapshot: &Snapshot, phases: &[String]) -> Snapshot {
    let mut snapshot = snapshot.clone();
    let is_wanted = |name: &str| phases.is_empty() || phases.iter().any(|phase| phase == name);
    snapshot.phases.retain(|name, _| is_wanted(name));
    snapshot.spans.retain(|span| is_wanted(&span.phase));
    snapshot.recent.retain(|event| is_wanted(&event.phase));
    snapshot
}

/// Set by Ctrl-C. Where a second one ends the process at once, nothing may have to be put back.
fn stop_on_signal(is_second_final: bool) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    // A process can set one handler only; the first one stays, which works too.
    let _ = ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::SeqCst) && is_second_final {
            std::process::exit(130);
        }
    });
    stop
}

//! `--tail`: the events of a run as lines, while it writes them.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tidemill_dash::terminal::{RunStatus, Theme, check_phases, coloured_line, line};
use tidemill_telemetry::{Event, Follower, Snapshot, Timestamp};

use super::{LOOK_EVERY, MonitorArgs, pulse, warn_of_malformed};
use crate::exit::ExitCode;

/// Prints the newest events and then every new one, until the run is over or `stop` is set.
pub fn run(path: &Path, args: &MonitorArgs, stop: &AtomicBool) -> Result<ExitCode> {
    let mut follower = Follower::open(path);
    follower.poll(|_| {})?;
    if args.wait && follower.snapshot().last.is_none() {
        eprintln!("waiting for {}", follower.path().display());
    } else if let Err(unknown) = check_phases(follower.snapshot(), &args.phases) {
        // A phase of a live run may be yet to come.
        if standing(&follower, path).is_over() {
            return Err(unknown.into());
        }
        eprintln!("note: no `{}` yet; so far there are {}", unknown.name, unknown.known.join(", "));
    }
    let form = LineFormat::of(args.json);
    let recent = &follower.snapshot().recent;
    let newest = recent.iter().rev().filter(|event| is_wanted(event, &args.phases)).take(args.lines.into());
    let mut events: Vec<Event> = newest.cloned().collect();
    events.reverse();
    let standing = loop {
        form.print(&events, follower.snapshot())?;
        events.clear();
        // Before the last look at the journal, so that the records of a run that ends just now are not lost.
        let was = standing(&follower, path);
        let polled = follower.poll(|event| {
            if is_wanted(event, &args.phases) {
                events.push(event.clone());
            }
        })?;
        if polled.is_restarted {
            eprintln!("note: the journal was replaced; reading the new one from its beginning");
        }
        if polled.n_events == 0 && was.is_over() {
            break was;
        }
        if stop.load(Ordering::SeqCst) {
            form.print(&events, follower.snapshot())?;
            return Ok(ExitCode::from(130));
        }
        if !was.is_over() {
            std::thread::sleep(LOOK_EVERY);
        }
    };
    warn_of_malformed(&follower);
    let snapshot = follower.snapshot();
    eprintln!("{}: {}", snapshot.run, standing.sentence(snapshot, Timestamp::now()));
    Ok(if standing.is_good() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn standing(follower: &Follower, path: &Path) -> RunStatus {
    RunStatus::of(follower.snapshot(), Timestamp::now(), pulse::of(path))
}

fn is_wanted(event: &Event, phases: &[String]) -> bool {
    let is_alive = event.is("run", "alive");
    !is_alive && (phases.is_empty() || phases.iter().any(|phase| *phase == event.phase))
}

/// How events are printed.
#[derive(Clone, Copy)]
enum LineFormat {
    Json,
    Plain,
    Coloured,
}

impl LineFormat {
    fn of(is_json: bool) -> Self {
        match std::io::stdout().is_terminal() && Theme::from_environment() == Theme::coloured() {
            _ if is_json => Self::Json,
            true => Self::Coloured,
            false => Self::Plain,
        }
    }

    fn print(self, events: &[Event], snapshot: &Snapshot) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for event in events {
            let text = match self {
                Self::Json => serde_json::to_string(event)?,
                Self::Plain => line(event, snapshot),
                Self::Coloured => coloured_line(event, snapshot),
            };
            writeln!(out, "{text}")?;
        }
        Ok(out.flush()?)
    }
}

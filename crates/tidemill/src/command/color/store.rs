//! `--out` and `--journal`: where colourings and events are kept.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tidemill_coloring::{Certificate, ColoringError, Instance, Outcome, RunFolder, State};
use tidemill_telemetry::{Event, Journal};

use super::ColorArgs;
use super::resolve::Resolved;

/// Endings of files that somebody may expect, but that are not written. (`runs/DSJC125.5` is a folder.)
const OTHER_ENDINGS: [&str; 6] = ["json", "txt", "csv", "col", "gz", "parquet"];

/// Files that a run writes.
pub struct Store {
    file: Option<PathBuf>,
    folder: Option<RunFolder>,
    state: Option<State>,
    /// Of the folder, or kept in memory for the rules.
    pub journal: Arc<Journal>,
    also: Option<Journal>,
}

impl Store {
    /// Checks the paths, reads what is there, and opens the journals.
    pub fn open(args: &ColorArgs, instance: &Instance, resolved: &Resolved) -> Result<Self> {
        let also = match &args.journal {
            Some(path) => Some(Journal::open_append(path).context("--journal")?),
            None => None,
        };
        let is_file = |path: &PathBuf| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("sol"));
        let Some(out) = args.out.as_ref().filter(|out| !is_file(out)) else {
            if args.resume {
                bail!("--resume needs the folder of a run: --out FOLDER");
            }
            if let Some(file) = &args.out {
                // A file that is there stays until there is a better one, but it must be possible to write one.
                Certificate::check_place(file).context("--out")?;
            }
            let journal = Arc::new(Journal::without_file()?);
            return Ok(Self { file: args.out.clone(), folder: None, state: None, journal, also });
        };
        let ending = out.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if OTHER_ENDINGS.contains(&ending.as_str()) && !out.is_dir() {
            let hint = format!("for JSON write --json > {}", out.with_extension("json").display());
            bail!("--out {}: expected a .sol file or a folder\n  hint: {hint}", out.display());
        }
        let (folder, state) = if args.resume {
            let folder = RunFolder::open(out)?;
            same(&folder.read_options(instance)?, resolved)?;
            let state = folder.read_state()?;
            (folder, state)
        } else {
            let folder = RunFolder::create(out).context("--out")?;
            folder.write_options(instance, Value::Object(resolved.config()))?;
            (folder, None)
        };
        let journal = Arc::new(Journal::open_append(&folder.journal_file())?);
        Ok(Self { file: None, folder: Some(folder), state, journal, also })
    }

    /// Where the run was, if it goes on.
    pub fn take_state(&mut self) -> Option<State> {
        self.state.take()
    }

    /// Whether there is a folder.
    pub fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// The journal in the folder, if there is one.
    pub fn journal_file(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(RunFolder::journal_file)
    }

    /// Records an event.
    pub fn record(&self, event: Event) {
        if let Some(also) = &self.also {
            also.record(event.clone());
        }
        self.journal.record(event);
    }

    /// Records an event that has to be there before the run goes on.
    pub fn record_durable(&self, event: Event) -> Result<(), ColoringError> {
        if let Some(also) = &self.also {
            also.record(event.clone());
        }
        let failed = |error: &dyn std::fmt::Display| ColoringError::Observer { reason: error.to_string() };
        self.journal.record_durable(event).map_err(|error| failed(&error))
    }

    /// Keeps a colouring that passed the verifier.
    pub fn improve(&self, instance: &Instance, k: usize, colors: &[u32]) -> Result<(), ColoringError> {
        if let Some(file) = &self.file {
            Certificate::new(instance, k, colors.to_vec()).write(file)?;
        }
        match &self.folder {
            Some(folder) => folder.write_best(instance, k, colors),
            None => Ok(()),
        }
    }

    /// Keeps what the run needs to go on.
    pub fn checkpoint(&self, state: &State) -> Result<(), ColoringError> {
        match &self.folder {
            Some(folder) => folder.write_state(state),
            None => Ok(()),
        }
    }

    /// Keeps the best at the end, also where a resumed run found nothing better, and says where.
    pub fn keep(&self, instance: &Instance, outcome: &Outcome) -> Result<()> {
        self.improve(instance, outcome.k, &outcome.colors)?;
        let path = self.file.clone().or_else(|| self.folder.as_ref().map(RunFolder::best_file));
        if let Some(path) = path {
            eprintln!("wrote {}", path.display());
        }
        Ok(())
    }

    /// Brings the journals to their end; what is recorded later is lost.
    pub fn close(&mut self) -> Result<()> {
        if let Some(also) = self.also.take() {
            also.close()?;
        }
        Ok(())
    }
}

/// What decides the way of a run must be as it was; how long it lasts may change.
fn same(before: &Value, resolved: &Resolved) -> Result<()> {
    let now = Value::Object(resolved.config());
    for key in ["seed", "phases", "knobs"] {
        if before[key] != now[key] {
            bail!(
                "--resume: the run was begun with {key} = {}, not {}\n  hint: give the same, or begin a new run in another folder",
                before[key],
                now[key]
            );
        }
    }
    Ok(())
}

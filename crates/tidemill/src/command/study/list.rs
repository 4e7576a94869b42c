//! `tidemill study list`: the studies beneath a folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use tidemill_search::StudyFolder;
use tidemill_search::folder::HEADER_FILE;

use crate::exit::ExitCode;
use crate::table::{ColumnArgs, Display, Table, TextColumn};
use tidemill_lab::StudyConfig;
use tidemill_lab::number;
use tidemill_lab::stored::find::find_folders;
use tidemill_lab::stored::state::State;

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study list
  tidemill study list runs --json")]
pub struct ListArgs {
    /// Folder to search; folders whose names begin with a dot are skipped.
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One study, or why it cannot be read.
struct StudyEntry {
    dir: PathBuf,
    study: Result<Study>,
}

struct Study {
    config: StudyConfig,
    n_trials: u64,
    n_valid: u64,
    best: Option<f64>,
    state: State,
}

pub fn run(args: &ListArgs, display: &Display) -> Result<ExitCode> {
    let is_study = |dir: &Path| dir.join(HEADER_FILE).is_file();
    let dirs =
        find_folders(&args.dir, is_study).with_context(|| format!("cannot list {}", args.dir.display()))?;
    let entries: Vec<StudyEntry> =
        dirs.into_iter().map(|dir| StudyEntry { study: look(&dir), dir }).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        let studies: Vec<Value> = entries.iter().map(entry_json).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&studies)?)?;
    } else if entries.is_empty() {
        eprintln!("no studies beneath {}", args.dir.display());
    } else {
        let mut table = table(&entries);
        args.columns.choose(&mut table)?;
        write!(out, "{}", table.render(4, &display.screen))?;
    }
    out.flush()?;
    for StudyEntry { dir, study } in &entries {
        if let Err(error) = study {
            eprintln!("note: {} cannot be read: {error:#}", dir.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn look(dir: &Path) -> Result<Study> {
    let folder = StudyFolder::open(dir)?;
    let config = StudyConfig::read(folder.header());
    let (mut n_trials, mut n_valid, mut best) = (0, 0, None);
    for batch in folder.trials()? {
        let scores = batch?.scores;
        n_trials += scores.len() as u64;
        for value in scores.iter().filter_map(|score| score.value()) {
            n_valid += 1;
            if best.is_none_or(|best| value > best) {
                best = Some(value);
            }
        }
    }
    let state = State::of(dir, n_trials, config.n_requested());
    Ok(Study { config, n_trials, n_valid, best, state })
}

/// The columns, and how much each matters on a narrow screen.
const COLUMNS: [(&str, u8); 8] = [
    ("study", 9),
    ("strategy", 6),
    ("sampler", 2),
    ("state", 8),
    ("trials", 7),
    ("of", 3),
    ("best", 8),
    ("objective", 5),
];

fn table(entries: &[StudyEntry]) -> Table {
    let mut table = Table::new(COLUMNS.map(|(title, keep)| TextColumn::new(title).keep(keep)));
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".into());
    for StudyEntry { dir, study } in entries {
        let dir = dir.display().to_string();
        match study {
            Ok(study) => table.row([
                dir,
                text(&study.config.strategy.name),
                text(&study.config.sweep.sampler),
                study.state.name().to_string(),
                number::count(study.n_trials),
                study.config.n_requested().map_or_else(|| "–".into(), number::count),
                number::short(study.best),
                text(&Some(study.config.objective.maximize.join("; ")).filter(|text| !text.is_empty())),
            ]),
            Err(_) => table.row([dir, "–".into(), "–".into(), "damaged".into()]),
        }
    }
    table
}

fn entry_json(StudyEntry { dir, study }: &StudyEntry) -> Value {
    match study {
        Ok(study) => json!({
            "study": dir,
            "state": study.state.name(),
            "process": study.state.process(),
            "strategy": study.config.strategy.name,
            "profile": study.config.strategy.profile,
            "objectives": study.config.objective.maximize,
            "sampler": study.config.sweep.sampler,
            "seed": study.config.seed,
            "trials": study.n_trials,
            "asked": study.config.n_requested(),
            "valid": study.n_valid,
            "best": study.best,
        }),
        Err(error) => json!({ "study": dir, "state": "damaged", "error": format!("{error:#}") }),
    }
}

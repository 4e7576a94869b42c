//! `tidemill study delete`, `rename` and `judge`: the commands that change what is on disk.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;
use tidemill_lab::stored::manage::LockedStudy;
use tidemill_lab::{InvalidCounts, Runtime, number};

use crate::command::sweep::stop_flag;
use crate::exit::ExitCode;
use crate::table::Display;
use crate::verdict_text;

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study delete runs/old
  tidemill study delete runs/a runs/b --yes

It deletes the files of the study; what else is in the folder stays. A study that is running is refused.")]
pub struct DeleteArgs {
    /// The study folders.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study rename runs/ema ema-2024
  tidemill study rename runs/ema archive/ema

A study that is running is refused, and so is a name that is taken.")]
pub struct RenameArgs {
    /// The study folder.
    dir: PathBuf,
    /// Its new name, or a path.
    new: PathBuf,
}

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study judge runs/ema
  tidemill study judge runs/ema --data moved/btc.parquet --json

It judges the trials that are there, also of a study that was stopped, and stores the verdict in the study.")]
pub struct JudgeArgs {
    /// The study folder.
    dir: PathBuf,
    /// The data of the study, if it is not where it was; it must hold the same bars.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
    /// Compare with this symbol or file instead of the benchmark of the study.
    #[arg(long, value_name = "SYMBOL|FILE")]
    benchmark: Option<String>,
    /// Most trials to judge.
    #[arg(long, value_name = "K", default_value_t = 10)]
    top: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn delete(args: &DeleteArgs) -> Result<ExitCode> {
    // All are checked and locked before the first goes.
    let studies: Vec<LockedStudy> =
        args.dirs.iter().map(|dir| Ok(super::stored(dir)?.lock()?)).collect::<Result<_>>()?;
    let n_trials: u64 = studies.iter().filter_map(|study| study.study().folder.n_trials().ok()).sum();
    let what = match &args.dirs[..] {
        [dir] => dir.display().to_string(),
        dirs => format!("{} studies", dirs.len()),
    };
    let what = format!("{what} with {}", number::counted(n_trials, "trial"));
    if !args.yes {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            bail!("{what} would be deleted\n  hint: add --yes");
        }
        eprint!("delete {what}? [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        stdin.lock().read_line(&mut answer)?;
        if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            eprintln!("nothing is deleted");
            return Ok(ExitCode::FAILURE);
        }
    }
    for (study, dir) in studies.into_iter().zip(&args.dirs) {
        let others = study.delete()?;
        if !others.is_empty() {
            let names: Vec<_> = others.iter().map(|name| name.to_string_lossy()).collect();
            eprintln!("note: {} stays, because it also holds {}", dir.display(), names.join(", "));
        }
    }
    eprintln!("deleted {what}");
    Ok(ExitCode::SUCCESS)
}

pub fn rename(args: &RenameArgs) -> Result<ExitCode> {
    let to = super::stored(&args.dir)?.lock()?.rename(&args.new)?;
    eprintln!("{} is now {}", args.dir.display(), to.display());
    Ok(ExitCode::SUCCESS)
}

pub fn judge(args: &JudgeArgs, display: &Display) -> Result<ExitCode> {
    let study = super::stored(&args.dir)?;
    let experiment = study.experiment(super::data(&study, &args.data, args.benchmark.as_deref())?)?;
    let experiment = experiment.runtime(Runtime { stop: stop_flag(), ..Runtime::default() });
    let Some(judged) = study.judge(&experiment, args.top)? else {
        eprintln!("stopped: nothing is stored");
        return Ok(ExitCode::from(130));
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let document = json!({ "study": args.dir, "trials": judged.n_trials, "holding_up": judged.report });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    } else if judged.report.winners.is_empty() {
        let invalid = InvalidCounts::of_study(&study.folder, &study.config)?;
        write!(out, "{}", super::why_invalid(invalid.as_ref()))?;
    } else {
        write!(out, "{}", verdict_text::text(&judged.report, &display.screen).trim_start())?;
        out.flush()?;
        eprintln!("{}", verdict_text::line(&judged.report));
    }
    if !judged.is_stored && !judged.report.winners.is_empty() {
        eprintln!("note: the study keeps its verdict, which judges more trials");
    }
    Ok(ExitCode::SUCCESS)
}

//! `tidemill study`: lists, shows, exports, compares, judges, merges, renames and deletes studies.
//!
//! All but the commands in `manage` and `merge` read only, without taking the lock, so that they work while a study runs.

pub(super) mod best;
mod compare;
mod list;
mod manage;
mod merge;
pub(super) mod page;
pub mod show;
pub(super) mod text;

use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use tidemill_market::LoadProgress;
use tidemill_search::{ExportFormat, FolderError, StudyFolder, export};

use crate::exit::ExitCode;
use crate::progress::while_loading;
use crate::table::Display;
use tidemill_lab::stored::StoredStudy;
use tidemill_lab::stored::survey::Survey;
use tidemill_lab::{Dataset, InvalidCounts, StudyConfig, number};

/// List, show and compare studies, export their trials, judge, rename and delete them.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study list runs
  tidemill study show runs/ema --html ema.html
  tidemill study best runs/ema --json
  tidemill study compare runs/ema runs/rsi
  tidemill study export runs/ema --format csv --out ema.csv
  tidemill study merge runs/ema runs/ema-*

All but judge, merge, rename and delete only read, and they work while a study runs.")]
pub struct StudyArgs {
    #[command(subcommand)]
    command: StudyCommand,
}

#[derive(Subcommand)]
enum StudyCommand {
    /// List the studies beneath a folder.
    List(list::ListArgs),
    /// Show one study: settings, best trials, convergence, importance of parameters.
    Show(show::ShowArgs),
    /// Print the best trial with all its parameters and metrics, or the best few.
    Best(best::BestArgs),
    /// Write all trials as one CSV, Parquet or JSON file.
    Export(ExportArgs),
    /// Show studies side by side: what differs, the best trials by part of the data, convergence, verdicts.
    Compare(compare::CompareArgs),
    /// Check whether the winners of a stored study hold up, and store the verdict.
    Judge(manage::JudgeArgs),
    /// Put parts of a study together that were searched with `sweep --part`.
    Merge(merge::MergeArgs),
    /// Give a study another name.
    Rename(manage::RenameArgs),
    /// Delete studies.
    Delete(manage::DeleteArgs),
}

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study export runs/ema --format csv > ema.csv
  tidemill study export runs/ema --format parquet --out ema.parquet
  tidemill study export runs/ema --format json | jq '.[0].params'

Trials are in order; their columns are number, parameters, metrics, objective. Equal studies give equal bytes.")]
struct ExportArgs {
    /// The study folder.
    dir: PathBuf,
    /// What to write: csv, parquet or json.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    format: ExportFormat,
    /// Where to write [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn parse_format(name: &str) -> Result<ExportFormat, String> {
    name.parse().map_err(|error: tidemill_search::folder::UnknownFormat| error.to_string())
}

pub fn run(args: StudyArgs, display: &Display) -> Result<ExitCode> {
    match args.command {
        StudyCommand::List(args) => list::run(&args, display),
        StudyCommand::Show(args) => show::run(&args, display),
        StudyCommand::Best(args) => best::run(&args, display),
        StudyCommand::Export(args) => export_trials(&args),
        StudyCommand::Compare(args) => compare::run(&args, display),
        StudyCommand::Judge(args) => manage::judge(&args, display),
        StudyCommand::Merge(args) => merge::run(&args),
        StudyCommand::Rename(args) => manage::rename(&args),
        StudyCommand::Delete(args) => manage::delete(&args),
    }
}

/// Opens a study for reading.
fn open(dir: &Path) -> Result<StudyFolder> {
    match StudyFolder::open(dir) {
        Err(FolderError::NotAStudy { .. }) if !dir.exists() => {
            bail!("there is no folder {}", dir.display())
        }
        Err(error @ FolderError::NotAStudy { .. }) => {
            bail!("{error}\n  hint: `tidemill study list {}` lists the studies beneath it", dir.display())
        }
        other => Ok(other?),
    }
}

/// The same with what it says about itself.
pub(super) fn stored(dir: &Path) -> Result<StoredStudy> {
    let folder = open(dir)?;
    Ok(StoredStudy { config: StudyConfig::read(folder.header()), folder })
}

/// The data of a study, loaded again.
pub(super) fn data(study: &StoredStudy, files: &[PathBuf], benchmark: Option<&str>) -> Result<Dataset> {
    let progress = LoadProgress::default();
    let study = study.clone().watched(&progress);
    Ok(while_loading(&progress, || study.data(files, benchmark))?)
}

/// Why no trial of a study is valid, where none is and the study can tell.
fn invalid(folder: &StudyFolder, config: &StudyConfig, survey: &Survey) -> Result<Option<InvalidCounts>> {
    let has_none = survey.n_trials > 0 && survey.n_valid == 0;
    Ok(if has_none { InvalidCounts::of_study(folder, config)? } else { None })
}

/// The same in words.
fn why_invalid(invalid: Option<&InvalidCounts>) -> String {
    const UNKNOWN: &str = "No trial was valid: none traded, or none met the requirements.\n";
    invalid.map_or_else(|| UNKNOWN.into(), InvalidCounts::text)
}

fn export_trials(args: &ExportArgs) -> Result<ExitCode> {
    open(&args.dir)?;
    let n_trials = match &args.out {
        Some(path) => write_whole(path, |file| Ok(export(&args.dir, args.format, file)?))?,
        None => {
            let out = std::io::stdout();
            if args.format == ExportFormat::Parquet && out.is_terminal() {
                bail!("Parquet cannot be printed to a terminal\n  hint: add --out FILE");
            }
            export(&args.dir, args.format, out)?
        }
    };
    let to = args.out.as_ref().map_or_else(String::new, |path| format!(" to {}", path.display()));
    eprintln!("exported {}{to}", number::counted(n_trials, "trial"));
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that appears under its name only once it is complete. A target that exists and
/// is no plain file, such as a pipe, is written directly.
pub(super) fn write_whole<T>(path: &Path, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let cannot = || format!("cannot write {}", path.display());
    if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return File::create(path)
            .map_err(anyhow::Error::from)
            .and_then(|mut file| write(&mut file))
            .with_context(cannot);
    }
    let name = path.file_name().with_context(|| format!("{} is not a file name", path.display()))?;
    let mut unfinished = std::ffi::OsString::from(".");
    unfinished.push(name);
    unfinished.push(format!(".{}.tmp", std::process::id()));
    let unfinished = path.with_file_name(unfinished);
    let written = File::create(&unfinished).map_err(anyhow::Error::from).and_then(|mut file| {
        let value = write(&mut file)?;
        std::fs::rename(&unfinished, path)?;
        Ok(value)
    });
    if written.is_err() {
        // The error that is returned says more than one about the leftover could.
        let _ = std::fs::remove_file(&unfinished);
    }
    written.with_context(cannot)
}

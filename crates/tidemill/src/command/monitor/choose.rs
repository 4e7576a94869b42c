//! Finds the run that the user means: the one that a path names, or one of those beneath it.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use tidemill_dash::terminal::{RunStatus, moment};
use tidemill_telemetry::Timestamp;

use super::{glimpse, pulse};
use crate::table::{Table, stderr_screen};
use tidemill_lab::number;
use tidemill_lab::stored::find::find_folders;

/// Name of the journal in the folder of a run.
pub const JOURNAL: &str = "journal.jsonl";

/// Name of the first file that a journal put aside because it was full.
pub const FIRST_FULL: &str = "journal-000001.jsonl";

/// Runs that are listed, the newest.
const LISTED: usize = 20;

/// The folder or journal of the run that is meant.
pub fn run_of(path: &Path, latest: bool, wait: bool) -> Result<PathBuf> {
    if path.is_file() || has_journal(path) {
        return Ok(path.to_owned());
    }
    if wait && !latest {
        let is_file = path.extension().is_some_and(|extension| extension == "jsonl");
        return Ok(if is_file { path.to_owned() } else { path.join(JOURNAL) });
    }
    if !path.exists() {
        bail!("there is no {}\n  hint: --wait waits for it", path.display());
    }
    let runs = beneath(path).with_context(|| format!("cannot look for runs in {}", path.display()))?;
    match runs.as_slice() {
        [] => bail!(
            "no journal in {0}\n  hint: `tidemill sweep --out {1}` writes one",
            path.display(),
            if path == Path::new(".") { "DIR".to_owned() } else { path.display().to_string() }
        ),
        [one] => Ok(one.dir.clone()),
        [newest, ..] if latest => Ok(newest.dir.clone()),
        _ => ask(path, &runs),
    }
}

/// A folder with a journal in it.
pub struct RunDir {
    /// The folder.
    pub dir: PathBuf,
    /// When its journal was written last.
    written: SystemTime,
}

/// Whether a folder holds a journal; while a full file is put aside there may be no live one for a moment.
pub fn has_journal(dir: &Path) -> bool {
    dir.join(JOURNAL).is_file() || dir.join(FIRST_FULL).is_file()
}

/// The runs at and beneath a folder, newest first.
pub fn beneath(root: &Path) -> std::io::Result<Vec<RunDir>> {
    let with_time = |dir: PathBuf| {
        let written = std::fs::metadata(dir.join(JOURNAL)).and_then(|file| file.modified());
        RunDir { dir, written: written.unwrap_or(SystemTime::UNIX_EPOCH) }
    };
    let mut found: Vec<RunDir> = find_folders(root, has_journal)?.into_iter().map(with_time).collect();
    found.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.dir.cmp(&b.dir)));
    Ok(found)
}

/// Lists the runs and, in a terminal, asks for one.
fn ask(root: &Path, runs: &[RunDir]) -> Result<PathBuf> {
    let listed = &runs[..runs.len().min(LISTED)];
    let mut list = table(listed);
    if runs.len() > LISTED {
        list += &format!("… and {} older ones\n", number::count((runs.len() - LISTED) as u64));
    }
    let is_interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !is_interactive {
        bail!(
            "{} holds {}, newest first:\n{list}  hint: name one of them, or take the newest with --latest",
            root.display(),
            number::counted(runs.len() as u64, "run")
        );
    }
    eprint!("{list}");
    let mut input = std::io::stdin().lock();
    loop {
        eprint!("which one? [1] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        if input.read_line(&mut answer)? == 0 {
            bail!("no run was chosen\n  hint: name one, or take the newest with --latest");
        }
        if let Some(run) = pick(answer.trim(), listed) {
            return Ok(run.dir.clone());
        }
        eprintln!("enter a number from 1 to {}, or press Enter for the newest", listed.len());
    }
}

fn pick<'a>(answer: &str, runs: &'a [RunDir]) -> Option<&'a RunDir> {
    let number = if answer.is_empty() { 1 } else { answer.parse::<usize>().ok()? };
    runs.get(number.checked_sub(1)?)
}

fn table(runs: &[RunDir]) -> String {
    let mut table = Table::new(["#", "run", "what", "state", "last event", "done", "best"]);
    for (at, run) in runs.iter().enumerate() {
        let number = (at + 1).to_string();
        let dir = run.dir.display().to_string();
        let snapshot = match glimpse::of(&run.dir) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                table.row([number, dir, error.to_string()]);
                continue;
            }
        };
        let done = match snapshot.total {
            Some(total) if total > 0.0 => format!("{:.0}%", snapshot.done / total * 100.0),
            _ => number::short(Some(snapshot.done)),
        };
        table.row([
            number,
            dir,
            snapshot.workload.clone(),
            RunStatus::of(&snapshot, Timestamp::now(), pulse::of(&run.dir)).word().to_owned(),
            snapshot.last.map(moment).unwrap_or_default(),
            done,
            number::short(snapshot.best),
        ]);
    }
    table.render(5, &stderr_screen())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_number_or_nothing() {
        let run = |dir: &str| RunDir { dir: dir.into(), written: SystemTime::UNIX_EPOCH };
        let runs = [run("a"), run("b")];
        let picked = |answer| pick(answer, &runs).map(|run| run.dir.display().to_string());
        assert_eq!(picked(""), Some("a".into()));
        assert_eq!(picked("2"), Some("b".into()));
        assert!(["0", "3", "-1", "b"].iter().all(|answer| picked(answer).is_none()));
    }
}

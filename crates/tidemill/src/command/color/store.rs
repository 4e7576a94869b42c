//! From `--out`, `--resume` and `--journal` to the files of a run.

use std::path::PathBuf;

use anyhow::{Context, Error, Result, bail};
use tidemill_coloring::{ColoringError, Instance, RunConfig, RunFolder, RunStore};
use tidemill_telemetry::Journal;

use super::ColorArgs;

/// Endings of files that a user may expect, but that are not written. (`runs/DSJC125.5` is a folder.)
const OTHER_ENDINGS: [&str; 6] = ["json", "txt", "csv", "col", "gz", "parquet"];

/// Checks the paths, reads what an interrupted run left, and opens the journals.
pub fn open(args: &ColorArgs, instance: &Instance, config: &RunConfig) -> Result<RunStore> {
    let copy = match &args.journal {
        Some(path) => Some(Journal::open_append(path).context("--journal")?),
        None => None,
    };
    Ok(kept(args, instance, config)?.with_copy(copy))
}

fn kept(args: &ColorArgs, instance: &Instance, config: &RunConfig) -> Result<RunStore> {
    let is_file = |path: &PathBuf| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("sol"));
    let Some(out) = args.out.as_ref().filter(|out| !is_file(out)) else {
        if args.resume {
            bail!("--resume needs the folder of a run: --out FOLDER");
        }
        return match &args.out {
            Some(file) => RunStore::certificate(file).context("--out"),
            None => Ok(RunStore::in_memory()?),
        };
    };
    let ending = out.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if OTHER_ENDINGS.contains(&ending.as_str()) && !out.is_dir() {
        let hint = format!("for JSON write --json > {}", out.with_extension("json").display());
        bail!("--out {}: expected a .sol file or a folder\n  hint: {hint}", out.display());
    }
    if args.resume {
        return RunStore::resume(RunFolder::open(out)?, instance, config).map_err(|error| match error {
            ColoringError::OtherConfig { .. } => Error::new(error).context("--resume"),
            error => error.into(),
        });
    }
    let folder = RunFolder::create(out).context("--out")?;
    Ok(RunStore::create(folder, instance, config)?)
}

//! `tidemill study merge`: parts of a study as one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use tidemill_lab::stored::merge;
use tidemill_lab::{Runtime, number};
use tidemill_market::LoadProgress;

use crate::command::sweep::stop_flag;
use crate::exit::ExitCode;
use crate::progress::while_loading;

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill sweep ema-cross --data btc.parquet --sampler sobol --trials 1e6 --part 1/2 --out runs/ema-1
  tidemill sweep ema-cross --data btc.parquet --sampler sobol --trials 1e6 --part 2/2 --out runs/ema-2
  tidemill study merge runs/ema runs/ema-1 runs/ema-2

The result is the study that a sweep without --part would have made, with the same bytes in an export; its winners are judged here.
Nothing is evaluated again but these. The parts stay; `tidemill study delete` removes them.")]
pub struct MergeArgs {
    /// Where the whole study is to be.
    out: PathBuf,
    /// The folders of all parts, in any order.
    #[arg(required = true, value_name = "PART")]
    parts: Vec<PathBuf>,
    /// The data of the study, if it is not where it was; it must hold the same bars.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
}

pub fn run(args: &MergeArgs) -> Result<ExitCode> {
    let runtime = Runtime { stop: stop_flag(), ..Runtime::default() };
    let load = |study: &tidemill_lab::StoredStudy| {
        let progress = LoadProgress::default();
        let study = study.clone().watched(&progress);
        while_loading(&progress, || study.data(&args.data, None)).map(Arc::new)
    };
    let report = merge::merge(&args.parts, &args.out, load, runtime)?.run()?;
    eprintln!(
        "merged {} of {} into {}",
        number::counted(report.summary.n_trials, "trial"),
        number::counted(args.parts.len() as u64, "part"),
        args.out.display()
    );
    if !report.is_complete {
        eprintln!("stopped before the end\n  hint: the same command resumes it");
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

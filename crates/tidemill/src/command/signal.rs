//! `tidemill signal`: what a strategy holds and wants after the last closed bar.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tidemill_lab::signal::{at_ms, now_ms};
use tidemill_lab::{Recipe, SignalReport, SignalWatch};
use tidemill_market::LoadProgress;

use super::backtest::{TrialName, parse_trial};
use super::sweep::stop_flag;
use crate::exit::ExitCode;
use crate::input::{ReadingArgs, StrategyArgs};
use crate::progress::while_loading;
use crate::settings::Settings;

/// Length of one sleep, so that Ctrl-C ends a watch at once, and how many are between two looks at the files.
const STEP: (Duration, u32) = (Duration::from_millis(50), 20);

/// Say what to do now: enter, exit, hold or nothing, with the levels of the next bar.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill signal ema-cross --data btc.parquet --set fast=12 --set slow=180
  tidemill signal --trial runs/ema:4711 --data btc-today.parquet --json
  tidemill signal my.toml --data btc.csv --at 2024-03-01T12:00Z
  tidemill signal my.toml --data live.csv --watch")]
pub struct SignalArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(required_unless_present = "trial")]
    strategy: Option<String>,
    /// Take strategy and parameters of this trial of a study, and its data unless --data names newer files.
    #[arg(long, value_name = "DIR:N", value_parser = parse_trial, conflicts_with_all = [
        "strategy", "set", "profile", "objective", "symbols", "resample", "timezone", "stamp",
    ])]
    trial: Option<TrialName>,
    #[command(flatten)]
    options: StrategyArgs,
    /// CSV, Parquet, Arrow or zip files, or folders of them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Say it of these symbols alone, separated by commas; strategies read the others all the same [default: those of the trial, or all].
    #[arg(long, value_name = "A,B*", value_delimiter = ',')]
    trade: Option<Vec<String>>,
    /// Know only bars that had closed by this time [default: now].
    #[arg(long, value_name = "TIME", conflicts_with = "watch")]
    at: Option<String>,
    /// Go on, and say every change while the files grow.
    #[arg(long)]
    watch: bool,
    /// Print JSON; with --watch a line for every change.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &SignalArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    let (strategy, recipe, traded) = match &args.trial {
        Some(TrialName { dir, trial }) => {
            let study = super::study::stored(dir)?;
            (
                study.trial_strategy(*trial)?,
                study.recipe(&args.data, None)?,
                study.config.segments.trade.clone(),
            )
        }
        None => {
            let files = if args.data.is_empty() { &settings.data.files } else { &args.data };
            if files.is_empty() {
                bail!("a signal needs data\n  hint: name files with --data");
            }
            let strategy = args.options.open(args.strategy.as_deref().unwrap_or_default(), &settings)?;
            (strategy, Recipe::new(files, args.reading.options(&settings.data)?), None)
        }
    };
    let progress = LoadProgress::default();
    let mut signal = SignalWatch::new(strategy, recipe.watched(&progress), args.trade.clone().or(traded));
    let at_ms = at_ms(args.at.as_deref())?;
    if let Some((report, notes)) = while_loading(&progress, || signal.poll(at_ms))? {
        print(args, &report, &notes)?;
    }
    let stop = args.watch.then(stop_flag);
    let is_stopped = || stop.as_ref().is_none_or(|stop| stop.load(Ordering::SeqCst));
    while !is_stopped() {
        (0..STEP.1).take_while(|_| !is_stopped()).for_each(|_| std::thread::sleep(STEP.0));
        match while_loading(&progress, || signal.poll(now_ms())) {
            Ok(None) => {}
            Ok(Some((report, notes))) => print(args, &report, &notes)?,
            // Whoever writes the file may not be done with it.
            Err(error) => eprintln!("note: {error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(args: &SignalArgs, report: &SignalReport, notes: &[String]) -> Result<()> {
    for note in notes.iter().chain(&report.notes) {
        eprintln!("note: {note}");
    }
    let mut out = std::io::stdout().lock();
    match (args.json, args.watch) {
        (true, true) => writeln!(out, "{}", serde_json::to_string(report)?)?,
        (true, false) => writeln!(out, "{}", serde_json::to_string_pretty(report)?)?,
        (false, _) => write!(out, "{report}")?,
    }
    Ok(out.flush()?)
}

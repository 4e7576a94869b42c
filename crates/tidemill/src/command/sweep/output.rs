//! What a sweep prints.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};
use tidemill_backtest::{POOL_NOTE, Strategy};
use tidemill_dash::terminal::wrapped;
use tidemill_lab::backtest::param_values;
use tidemill_lab::score::ObjectiveScores;
use tidemill_lab::stored::reopen::backtest_command;
use tidemill_lab::{
    DeviceUse, Experiment, InvalidCounts, SearchOptions, StudyConfig, SweepReport, edge, number,
};
use tidemill_search::StudyFolder;
use tidemill_telemetry::hypertune::Mode;

use super::table;
use crate::parts_text;
use crate::table::{ColumnArgs, Screen};
use crate::verdict_text;
use crate::year;

/// A sweep that has ended.
pub struct Finished<'a> {
    pub experiment: &'a Experiment,
    pub search: &'a SearchOptions,
    /// Notes that were printed before it began.
    pub notes: &'a [String],
    pub report: &'a SweepReport,
}

/// The best trials as a table.
pub fn text(finished: &Finished<'_>, columns: &ColumnArgs, screen: &Screen) -> Result<String> {
    let Finished { experiment, report, .. } = finished;
    let strategy = &experiment.strategy;
    if report.best.is_empty() {
        if report.n_valid > 0 {
            return Ok(String::new());
        }
        return Ok(report.invalid.as_ref().map_or_else(String::new, InvalidCounts::text));
    }
    let mut table = table::filled(experiment, report);
    columns.choose(&mut table)?;
    let mut out = winner(strategy, report, screen);
    out += &table.render(0, screen);
    let symbols = &experiment.data.universe.symbols;
    let names = symbols.iter().map(|bars| bars.symbol.as_str());
    let years = names.zip(report.symbol_year_days.iter().copied());
    out += &format!("({})\n", year::describe(report.year_days, years));
    if symbols.len() > 1 {
        out += &format!("{POOL_NOTE}\n");
    }
    if strategy.objectives.len() > 1 {
        out += "No other trial is better in every objective.\n";
    }
    let n_free = strategy.params.iter().filter(|param| param.fixed.is_none()).count();
    if n_free > table::MOST_PARAMS {
        let n_more = n_free - table::MOST_PARAMS;
        out += &format!("({n_more} more parameters; use --columns, --json or --out to see them)\n");
    }
    let verdict = report.verdict.as_deref();
    Ok(out + &verdict.map_or_else(String::new, |verdict| verdict_text::text(verdict, screen)))
}

/// The verdict on the best trial and its figures on every part of the data.
fn winner(strategy: &Strategy, report: &SweepReport, screen: &Screen) -> String {
    let (Some(best), Some(parts)) = (report.best.first(), &report.parts) else { return String::new() };
    let judged = report.verdict.as_ref().and_then(|verdict| verdict.winners.first());
    let headline = judged
        .map_or_else(|| format!("Trial {} is not judged", best.trial.number), |winner| winner.headline());
    let title = format!("trial {}", best.trial.number);
    let mut out = format!("{headline}\n\n{}", parts_text::text(&title, parts, screen));
    if let Some(sentence) = edge::sentence(&edge::range_ends(strategy, &best.trial.row)) {
        let room = screen.width.map_or(usize::MAX, |width| width.max(20));
        out += &format!("{}\n", wrapped(&sentence, room).join("\n"));
    }
    out + "\n"
}

/// How long it took, and what the sampler cost.
fn summary_line(report: &SweepReport, is_verbose: bool) -> String {
    let summary = &report.summary;
    let seconds = summary.wall.as_secs_f64();
    let n_new = summary.n_trials - summary.n_replayed;
    let mut line = number::counted(summary.n_trials, "trial");
    if summary.n_replayed > 0 {
        line += &format!(", {} of them from earlier runs,", number::count(summary.n_replayed));
    }
    let per_second = number::count((n_new as f64 / seconds) as u64);
    let bars = match is_verbose {
        true => format!(", {:.2e} bar-evaluations/s", n_new as f64 * report.n_bars as f64 / seconds),
        false => String::new(),
    };
    line += &format!(
        " in {} ({per_second} trials/s{bars}), {} valid",
        number::seconds(seconds),
        number::count(report.n_valid)
    );
    let timing = &summary.timing;
    let sampler = (timing.ask + timing.tell).as_secs_f64();
    if is_verbose && n_new > 0 && seconds > 0.0 {
        line += &format!(
            "; evaluating {:.0} % of the time{}, sampler {:.0} % ({:.0} % of it beside the evaluation)",
            100.0 * timing.evaluate.as_secs_f64() / seconds,
            fullness(report),
            100.0 * sampler / seconds,
            if sampler > 0.0 { 100.0 * timing.overlap.as_secs_f64() / sampler } else { 100.0 },
        );
    }
    line
}

/// How full the devices were. The CPU is as full as it is busy, so that nothing is said of it.
fn fullness(report: &SweepReport) -> String {
    match report.device_use {
        Some(DeviceUse { fill, n_devices, .. }) if n_devices > 0 => {
            let devices = if n_devices == 1 { "device" } else { "devices" };
            format!(", {devices} {:.0} % full", 100.0 * fill.min(1.0))
        }
        _ => String::new(),
    }
}

/// Prints the notes that go with the table.
pub fn remarks(finished: &Finished<'_>, hypertune: Mode, is_verbose: bool) {
    let report = finished.report;
    if report.n_valid == 0
        && let Some(window) = report.impossible_windows.last()
    {
        eprintln!("note: no symbol has enough bars for a window of {window}, a default of this strategy");
    }
    eprintln!("{}", summary_line(report, is_verbose));
    if report.summary.is_exhausted && finished.search.sampler.learns() {
        eprintln!(
            "the study ended before its {} trials: it tried every parameter set of the space",
            number::count(finished.search.trials)
        );
    }
    if let Some(verdict) = report.verdict.as_ref().filter(|_| report.n_valid > 0) {
        eprintln!("{}", verdict_text::line(verdict));
    }
    if !is_verbose {
        return;
    }
    report.advice.iter().for_each(|sentence| eprintln!("{sentence}"));
    if hypertune == Mode::Advise && !report.advice.is_empty() {
        eprintln!("  hint: --hypertune on applies this, --hypertune off stops the advice");
    }
}

/// Prints how to look at the best trial of a stored study.
pub fn point_to_trial(dir: &Path, trial: u64) {
    let command = StudyFolder::open(dir)
        .ok()
        .and_then(|folder| backtest_command(&StudyConfig::read(folder.header()), dir, trial));
    if let Some(command) = command {
        eprintln!("the best trial: {command}");
    }
}

/// Prints how far a stopped sweep got; `is_kept` if it has a folder.
pub fn interrupted(finished: &Finished<'_>, is_kept: bool) {
    let report = finished.report;
    let (done, asked) = (number::count(report.summary.n_trials), number::count(report.n_asked));
    if report.summary.is_complete {
        eprintln!("stopped: all {asked} trials are done, but the winners are not scored yet");
    } else {
        eprintln!("stopped: {done} of {asked} trials are done{}", if is_kept { " and kept" } else { "" });
    }
    if is_kept {
        eprintln!("  hint: the same command resumes it");
    }
}

/// Everything as JSON.
pub fn json(finished: &Finished<'_>, interrupted: bool) -> Value {
    let Finished { experiment, search, notes, report } = finished;
    let strategy = &experiment.strategy;
    let several = strategy.objectives.len() > 1;
    let best: Vec<Value> = report
        .best
        .iter()
        .map(|scored| {
            let values = |scores: &ObjectiveScores| -> Vec<Option<f64>> {
                scores.iter().map(|score| score.ok()).collect()
            };
            let objective = |scores: &ObjectiveScores| scores[0].ok();
            let mut trial = json!({
                "trial": scored.trial.number,
                "objective": objective(&scored.scores),
                "parameters": Map::from_iter(param_values(&report.space, &scored.trial.row)),
                "metrics": scored.train,
                "out_of_sample": scored.test.as_ref().map(|(scores, metrics)| {
                    let mut part = json!({ "objective": objective(scores), "metrics": metrics });
                    if several {
                        part["objectives"] = json!(values(scores));
                    }
                    part
                }),
            });
            if several {
                trial["objectives"] = json!(values(&scored.scores));
            }
            trial
        })
        .collect();
    let summary = &report.summary;
    let seconds = summary.wall.as_secs_f64();
    let n_new = (summary.n_trials - summary.n_replayed) as f64;
    let timing = &summary.timing;
    let mut out = json!({
        "strategy": strategy.name,
        "profile": strategy.overrides.profile,
        "data": experiment.origin(),
        "objective": strategy.objective().text,
        "execution": strategy.execution,
        "sampler": search.sampler.name(),
        "seed": search.seed,
        "batch": report.batch,
        "lag": report.lag,
        "segments": report.segments.len(),
        "notes": notes,
        "trials": summary.n_trials,
        "resumed_from": summary.n_replayed,
        "asked": report.n_asked,
        "valid": report.n_valid,
        "exhausted": summary.is_exhausted,
        "interrupted": interrupted,
        "seconds": seconds,
        "trials_per_second": n_new / seconds,
        "bar_evaluations_per_second": n_new * report.n_bars as f64 / seconds,
        "busy": report.device_use.map(|used| used.busy),
        "fill": report.device_use.map(|used| used.fill),
        "timing": {
            "ask": timing.ask.as_secs_f64(),
            "evaluate": timing.evaluate.as_secs_f64(),
            "tell": timing.tell.as_secs_f64(),
            "overlap": timing.overlap.as_secs_f64(),
            "idle": timing.idle.as_secs_f64(),
        },
        "year_days": report.year_days,
        "parts": report.parts,
        "best": best,
        "invalid": report.invalid,
    });
    if let Some(verdict) = &report.verdict {
        out["holding_up"] = json!(**verdict);
    }
    if several {
        out["objectives"] = json!(strategy.objective_texts());
    }
    out
}

//! What a sweep prints.

use serde_json::{Map, Value, json};
use tidemill_backtest::segment::Role;
use tidemill_backtest::{METRICS, Metric, POOL_NOTE};
use tidemill_lab::backtest::param_values;
use tidemill_lab::score::{ObjectiveScores, ScoredTrial};
use tidemill_lab::{DeviceUse, Experiment, SearchOptions, SweepReport, number};
use tidemill_telemetry::hypertune::Mode;

use crate::command::backtest::metrics_json;
use crate::table::Table;
use crate::verdict_text::{self, drop_text};
use crate::year;

/// Metrics shown in the table besides the objective.
const SHOWN: [Metric; 6] = [
    Metric::Sharpe,
    Metric::TotalReturn,
    Metric::MaxDrawdown,
    Metric::Trades,
    Metric::WinRate,
    Metric::ProfitFactor,
];

/// A sweep that has ended.
pub struct Finished<'a> {
    pub experiment: &'a Experiment,
    pub search: &'a SearchOptions,
    /// Notes that were printed before it began.
    pub notes: &'a [String],
    pub report: &'a SweepReport,
}

fn is_ambiguous(scored: &ScoredTrial) -> bool {
    scored.train.get(Metric::Ambiguous).is_some_and(|count| count > 0.0)
}

/// The best trials as a table.
pub fn text(finished: &Finished<'_>) -> String {
    let Finished { experiment, report, .. } = finished;
    let strategy = &experiment.strategy;
    if report.best.is_empty() {
        if report.n_valid > 0 {
            return String::new();
        }
        return format!(
            "No trial was valid: {}.\n",
            if strategy.require.is_some() {
                "none traded, or none met `require` of [objective]"
            } else {
                "none traded, or the objective was never defined"
            }
        );
    }
    let label = |metric: Metric| METRICS.iter().find(|(m, ..)| *m == metric).map_or("", |(.., label)| *label);
    // A plain metric as objective is shown under its name; of one segment it is not shown a second time.
    let texts = strategy.objective_texts();
    let plain = |text: &str| METRICS.iter().find(|(_, name, _)| *name == text).map(|(metric, ..)| *metric);
    let titles: Vec<String> = match texts[..] {
        [text] if plain(text).is_none() => vec!["objective".into()],
        _ => texts.iter().map(|text| (*text).to_string()).collect(),
    };
    let several = report.segments.iter().filter(|segment| segment.role == Role::Train).count() > 1;
    let shown: Vec<Metric> = SHOWN
        .into_iter()
        .filter(|metric| several || texts.iter().all(|text| plain(text) != Some(*metric)))
        .chain(report.best.iter().any(is_ambiguous).then_some(Metric::Ambiguous))
        .collect();
    let mut header = vec!["#".to_string()];
    header.extend(titles.iter().cloned());
    header.extend(shown.iter().map(|metric| label(*metric).to_string()));
    let tested = report.best.iter().any(|scored| scored.test.is_some());
    if tested {
        header.extend(titles.iter().map(|title| format!("OOS {title}")));
        header.extend(["drop [%]".to_string(), "OOS Return [%]".to_string(), "OOS Trades".to_string()]);
    }
    let held_out = experiment.layout.holdout_from_ms.is_some();
    let winner = |scored: &ScoredTrial| {
        let winners = &report.verdict.as_ref()?.winners;
        winners.iter().find(|winner| winner.trial == scored.trial.number)
    };
    if held_out {
        header.extend([format!("holdout {}", titles[0]), "drop [%]".to_string()]);
    }
    let space = &report.space;
    let free: Vec<usize> = (0..space.len()).filter(|at| space.params[*at].fixed.is_none()).collect();
    let shown_params: Vec<usize> = free.iter().copied().take(16).collect();
    header.extend(shown_params.iter().map(|at| space.params[*at].name.clone()));
    let mut table = Table::new(header);
    for scored in &report.best {
        let mut row = vec![scored.trial.number.to_string()];
        row.extend(scored.scores.iter().map(|score| number::short(score.ok())));
        row.extend(shown.iter().map(|metric| number::metric(label(*metric), scored.train.get(*metric))));
        if tested {
            let test = |metric: Metric| scored.test.as_ref().and_then(|(_, metrics)| metrics.get(metric));
            let score = |at: usize| scored.test.as_ref().and_then(|(scores, _)| scores[at].ok());
            row.extend((0..titles.len()).map(|at| number::short(score(at))));
            row.push(drop_text(scored.objective(), score(0)));
            row.push(number::metric("[%]", test(Metric::TotalReturn)));
            row.push(number::short(test(Metric::Trades)));
        }
        if held_out {
            let value = winner(scored).and_then(|winner| winner.objective.holdout);
            row.extend([number::short(value), drop_text(scored.objective(), value)]);
        }
        for at in &shown_params {
            let value = space.params[*at].domain.decode(scored.trial.row[*at]);
            row.push(match value {
                None => "·".into(),
                Some(tidemill_search::Value::Float(value)) => number::short(Some(value)),
                Some(value) => value.to_string(),
            });
        }
        table.row(row);
    }
    let mut out = table.render(0);
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
    if free.len() > shown_params.len() {
        out += &format!(
            "({} more parameters; use --json or --out to see them)\n",
            free.len() - shown_params.len()
        );
    }
    out + &report.verdict.as_deref().map_or_else(String::new, verdict_text::text)
}

/// How long it took, and what the sampler cost.
fn summary_line(report: &SweepReport) -> String {
    let summary = &report.summary;
    let seconds = summary.wall.as_secs_f64();
    let n_new = summary.n_trials - summary.n_replayed;
    let mut line = number::counted(summary.n_trials, "trial");
    if summary.n_replayed > 0 {
        line += &format!(", {} of them from earlier runs,", number::count(summary.n_replayed));
    }
    line += &format!(
        " in {seconds:.2} s ({} trials/s, {:.2e} bar-evaluations/s), {} valid",
        number::count((n_new as f64 / seconds) as u64),
        n_new as f64 * report.n_bars as f64 / seconds,
        number::count(report.n_valid)
    );
    let timing = &summary.timing;
    let sampler = (timing.ask + timing.tell).as_secs_f64();
    if n_new > 0 && seconds > 0.0 {
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
pub fn remarks(finished: &Finished<'_>, hypertune: Mode) {
    let report = finished.report;
    if report.n_valid == 0
        && let Some(window) = report.impossible_windows.last()
    {
        eprintln!("note: no symbol has enough bars for a window of {window}, a default of this strategy");
    }
    eprintln!("{}", summary_line(report));
    if report.summary.is_exhausted && finished.search.sampler.learns() {
        eprintln!(
            "the study ended before its {} trials: it tried every parameter set of the space",
            number::count(finished.search.trials)
        );
    }
    if let Some(verdict) = &report.verdict {
        eprintln!("{}", verdict_text::line(verdict));
    }
    report.advice.iter().for_each(|sentence| eprintln!("{sentence}"));
    if hypertune == Mode::Advise && !report.advice.is_empty() {
        eprintln!("  hint: --hypertune on applies this, --hypertune off stops the advice");
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
                "metrics": metrics_json(&scored.train),
                "out_of_sample": scored.test.as_ref().map(|(scores, metrics)| {
                    let mut part = json!({ "objective": objective(scores), "metrics": metrics_json(metrics) });
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
        "profile": strategy.profile,
        "data": experiment.data.origin,
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
        "best": best,
    });
    if let Some(verdict) = &report.verdict {
        out["holding_up"] = json!(**verdict);
    }
    if several {
        out["objectives"] = json!(strategy.objective_texts());
    }
    out
}

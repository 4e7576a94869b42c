//! What a sweep prints.

use serde_json::{Map, Value, json};
use tidemill_backtest::segment::Role;
use tidemill_backtest::{Engine, METRICS, Metric, POOL_NOTE};
use tidemill_telemetry::hypertune::Mode;

use super::Finished;
use crate::command::backtest::{metrics_json, param_values};
use crate::holding::text::drop_text;
use crate::number;
use crate::table::Table;
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

fn is_ambiguous(judged: &super::evaluate::Judged) -> bool {
    judged.train.get(Metric::Ambiguous).is_some_and(|count| count > 0.0)
}

/// The best trials as a table.
pub fn text(finished: &Finished<'_>, engine: &Engine<'_>) -> String {
    let strategy = &finished.strategies[0];
    if finished.best.is_empty() {
        if finished.n_valid > 0 {
            return String::new();
        }
        return format!(
            "No trial was valid: {}.\n",
            if strategy.objective.require.is_some() {
                "none traded, or none met `require` of [objective]"
            } else {
                "none traded, or the objective was never defined"
            }
        );
    }
    let label = |metric: Metric| METRICS.iter().find(|(m, ..)| *m == metric).map_or("", |(.., label)| *label);
    // A plain metric as objective is shown under its name; of one segment it is not shown a second time.
    let texts: Vec<&str> =
        finished.strategies.iter().map(|strategy| strategy.objective.text.as_str()).collect();
    let plain = |text: &str| METRICS.iter().find(|(_, name, _)| *name == text).map(|(metric, ..)| *metric);
    let titles: Vec<String> = match texts[..] {
        [text] if plain(text).is_none() => vec!["objective".into()],
        _ => texts.iter().map(|text| (*text).to_string()).collect(),
    };
    let several = engine.segments().iter().filter(|segment| segment.role == Role::Train).count() > 1;
    let shown: Vec<Metric> = SHOWN
        .into_iter()
        .filter(|metric| several || texts.iter().all(|text| plain(text) != Some(*metric)))
        .chain(finished.best.iter().any(is_ambiguous).then_some(Metric::Ambiguous))
        .collect();
    let mut header = vec!["#".to_string()];
    header.extend(titles.iter().cloned());
    header.extend(shown.iter().map(|metric| label(*metric).to_string()));
    let tested = finished.best.iter().any(|judged| judged.test.is_some());
    if tested {
        header.extend(titles.iter().map(|title| format!("OOS {title}")));
        header.extend(["drop [%]".to_string(), "OOS Return [%]".to_string(), "OOS Trades".to_string()]);
    }
    let held_out = finished.input.layout.holdout_from_ms.is_some();
    let winner = |judged: &super::evaluate::Judged| {
        let winners = &finished.holding.as_ref()?.winners;
        winners.iter().find(|winner| winner.trial == judged.trial.number)
    };
    if held_out {
        header.extend([format!("holdout {}", titles[0]), "drop [%]".to_string()]);
    }
    let space = finished.space;
    let free: Vec<usize> = (0..space.len()).filter(|at| space.params[*at].fixed.is_none()).collect();
    let shown_params: Vec<usize> = free.iter().copied().take(16).collect();
    header.extend(shown_params.iter().map(|at| space.params[*at].name.clone()));
    let mut table = Table::new(header);
    for judged in &finished.best {
        let mut row = vec![judged.trial.number.to_string()];
        row.extend(judged.scores.iter().map(|score| number::short(score.value())));
        row.extend(shown.iter().map(|metric| number::metric(label(*metric), judged.train.get(*metric))));
        if tested {
            let test = |metric: Metric| judged.test.as_ref().and_then(|(_, metrics)| metrics.get(metric));
            let score = |at: usize| judged.test.as_ref().and_then(|(scores, _)| scores[at].value());
            row.extend((0..titles.len()).map(|at| number::short(score(at))));
            row.push(drop_text(judged.scores[0].value(), score(0)));
            row.push(number::metric("[%]", test(Metric::TotalReturn)));
            row.push(number::short(test(Metric::Trades)));
        }
        if held_out {
            let value = winner(judged).and_then(|winner| winner.objective.holdout);
            row.extend([number::short(value), drop_text(judged.scores[0].value(), value)]);
        }
        for at in &shown_params {
            let value = space.params[*at].domain.decode(judged.trial.row[*at]);
            row.push(match value {
                None => "·".into(),
                Some(tidemill_search::Value::Float(value)) => number::short(Some(value)),
                Some(value) => value.to_string(),
            });
        }
        table.row(row);
    }
    let mut out = table.render(0);
    let symbols = finished.input.universe.symbols.iter().enumerate();
    let years = symbols.map(|(at, bars)| (bars.symbol.as_str(), engine.symbol_year_days(at)));
    out += &format!("({})\n", year::describe(engine.year_days(Role::Train), years));
    if finished.input.universe.symbols.len() > 1 {
        out += &format!("{POOL_NOTE}\n");
    }
    if finished.strategies.len() > 1 {
        out += "No other trial is better in every objective.\n";
    }
    if free.len() > shown_params.len() {
        out += &format!(
            "({} more parameters; use --json or --out to see them)\n",
            free.len() - shown_params.len()
        );
    }
    out + &finished.holding.as_ref().map_or_else(String::new, crate::holding::text::text)
}

/// How long it took, and what the sampler cost.
fn summary_line(finished: &Finished<'_>) -> String {
    let summary = &finished.summary;
    let seconds = summary.wall.as_secs_f64();
    let n_new = summary.n_trials - summary.n_replayed;
    let mut line = number::counted(summary.n_trials, "trial");
    if summary.n_replayed > 0 {
        line += &format!(", {} of them from before,", number::count(summary.n_replayed));
    }
    line += &format!(
        " in {seconds:.2} s ({} trials/s, {:.2e} bar-evaluations/s), {} valid",
        number::count((n_new as f64 / seconds) as u64),
        n_new as f64 * finished.n_bars as f64 / seconds,
        number::count(finished.n_valid)
    );
    let timing = &summary.timing;
    let sampler = (timing.ask + timing.tell).as_secs_f64();
    if n_new > 0 && seconds > 0.0 {
        line += &format!(
            "; evaluating {:.0} % of the time, sampler {:.0} % ({:.0} % of it beside the evaluation)",
            100.0 * timing.evaluate.as_secs_f64() / seconds,
            100.0 * sampler / seconds,
            if sampler > 0.0 { 100.0 * timing.overlap.as_secs_f64() / sampler } else { 100.0 },
        );
    }
    line
}

/// What is said beside the table.
pub fn remarks(finished: &Finished<'_>, engine: &Engine<'_>, advice: &[String], hypertune: Mode) {
    if finished.n_valid == 0
        && let Some(window) = engine.impossible_windows(&finished.space.default_point()).last()
    {
        eprintln!("note: no symbol has enough bars for a window of {window}, a default of this strategy");
    }
    eprintln!("{}", summary_line(finished));
    if let Some(report) = &finished.holding {
        eprintln!("{}", crate::holding::text::line(report));
    }
    advice.iter().for_each(|sentence| eprintln!("{sentence}"));
    if hypertune == Mode::Advise && !advice.is_empty() {
        eprintln!("  hint: --hypertune on does it, off is silent");
    }
}

/// What is said of a sweep that was stopped; `is_kept` says that it has a folder.
pub fn interrupted(finished: &Finished<'_>, is_kept: bool) {
    let (done, asked) = (number::count(finished.summary.n_trials), number::count(finished.n_asked));
    if finished.summary.is_complete {
        eprintln!("stopped: all {asked} trials are done, their winners are not judged");
    } else {
        eprintln!("stopped: {done} of {asked} trials are done{}", if is_kept { " and kept" } else { "" });
    }
    if is_kept {
        eprintln!("  hint: the same command goes on with the rest");
    }
}

/// Everything as JSON.
pub fn json(finished: &Finished<'_>, engine: &Engine<'_>, interrupted: bool) -> Value {
    let strategy = &finished.strategies[0];
    let several = finished.strategies.len() > 1;
    let best: Vec<Value> = finished
        .best
        .iter()
        .map(|judged| {
            let values = |scores: &[tidemill_search::Score]| -> Vec<Option<f64>> {
                scores.iter().map(|score| score.value()).collect()
            };
            let objective = |scores: &[tidemill_search::Score]| scores[0].value();
            let mut trial = json!({
                "trial": judged.trial.number,
                "objective": objective(&judged.scores),
                "parameters": Map::from_iter(param_values(finished.space, &judged.trial.row)),
                "metrics": metrics_json(&judged.train),
                "out_of_sample": judged.test.as_ref().map(|(scores, metrics)| {
                    let mut part = json!({ "objective": objective(scores), "metrics": metrics_json(metrics) });
                    if several {
                        part["objectives"] = json!(values(scores));
                    }
                    part
                }),
            });
            if several {
                trial["objectives"] = json!(values(&judged.scores));
            }
            trial
        })
        .collect();
    let summary = &finished.summary;
    let seconds = summary.wall.as_secs_f64();
    let n_new = (summary.n_trials - summary.n_replayed) as f64;
    let timing = &summary.timing;
    let mut out = json!({
        "strategy": strategy.name,
        "profile": strategy.profile,
        "data": finished.input.origin,
        "objective": strategy.objective.text,
        "execution": strategy.execution,
        "sampler": finished.sampler.name(),
        "seed": finished.settings.seed,
        "batch": finished.settings.batch,
        "lag": finished.lag,
        "segments": engine.segments().len(),
        "notes": finished.input.notes,
        "trials": summary.n_trials,
        "resumed_from": summary.n_replayed,
        "asked": finished.n_asked,
        "valid": finished.n_valid,
        "interrupted": interrupted,
        "seconds": seconds,
        "trials_per_second": n_new / seconds,
        "bar_evaluations_per_second": n_new * finished.n_bars as f64 / seconds,
        "timing": {
            "ask": timing.ask.as_secs_f64(),
            "evaluate": timing.evaluate.as_secs_f64(),
            "tell": timing.tell.as_secs_f64(),
            "overlap": timing.overlap.as_secs_f64(),
            "idle": timing.idle.as_secs_f64(),
        },
        "year_days": engine.year_days(Role::Train),
        "best": best,
    });
    if let Some(report) = &finished.holding {
        out["holding_up"] = json!(report);
    }
    if several {
        let texts: Vec<&str> = finished.strategies.iter().map(|s| s.objective.text.as_str()).collect();
        out["objectives"] = json!(texts);
    }
    out
}

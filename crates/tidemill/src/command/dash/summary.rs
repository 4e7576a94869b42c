//! What a study found: its verdict, and its best trial on every part of the data.

use serde::Deserialize;
use serde_json::{Value, json};
use tidemill_dash::web::{BestEvaluated, BestTrial, SourceError, StudySummary, VerdictSummary};
use tidemill_lab::edge::{self, stored_range_ends};
use tidemill_lab::parts::{EquityMark, PartFigures, Parts};
use tidemill_lab::stored::rows::fetch;
use tidemill_lab::stored::state::State;
use tidemill_lab::stored::survey::Survey;
use tidemill_lab::verdict::store;
use tidemill_lab::{StudyConfig, number};
use tidemill_market::{DAY_MS, timestamp};
use tidemill_page::report::{Curve, TimeMark};
use tidemill_search::StudyFolder;

use super::chart;
use super::evaluation::Evaluations;
use super::source::failed;
use crate::parts_text::page_table;

/// Summary of a study as it is now.
pub fn of(
    study: &StudyFolder,
    evaluations: &Evaluations,
    points: usize,
) -> Result<StudySummary, SourceError> {
    let config = StudyConfig::read(study.header());
    let survey = Survey::new(study, &config).map_err(|error| failed(&error))?;
    let judged = store::read(study.dir(), survey.n_trials).map_err(|error| failed(&error))?;
    let winner = judged.as_ref().map(|judged| &judged["winners"][0]).filter(|winner| winner.is_object());
    let verdict = match winner {
        Some(winner) => told(winner),
        None => not_judged(study, &config, &survey),
    };
    // The verdict keeps the figures of its winner; without one, the trial is evaluated again.
    let stored = judged.as_ref().and_then(|judged| {
        let winner = store::winners(judged).into_iter().next()?;
        Some((winner.parts?, Vec::<EquityMark>::deserialize(&judged["equity"]).ok()?))
    });
    let first =
        winner.and_then(|winner| winner["trial"].as_u64()).or_else(|| survey.best(1).first().copied());
    let best = match first {
        Some(trial) => {
            let evaluated = match stored {
                Some((parts, equity)) => drawn(&parts, &equity, points),
                None => match evaluations.of(study, trial) {
                    Ok(evaluated) => drawn(&evaluated.parts, &evaluated.parts.equity(), points),
                    // What is stored is there without the data too.
                    Err(error) => BestEvaluated::No { unavailable: error.to_string() },
                },
            };
            Some(best(study, &config, &survey, trial, evaluated)?)
        }
        None => None,
    };
    Ok(StudySummary {
        strategy: config.strategy.name.clone(),
        objective: config.objective_names(survey.n_objectives()).join("; "),
        n_trials: survey.n_trials,
        n_valid: survey.n_valid,
        verdict,
        best,
    })
}

/// Figures by part, and equity over the whole period.
fn drawn(parts: &Parts, equity: &[EquityMark], points: usize) -> BestEvaluated {
    let begins = [&parts.out_of_sample, &parts.holdout].into_iter().flatten();
    let mark = |part: &PartFigures| {
        Some(TimeMark { ms: timestamp::parse_ms(&part.from)?, label: part.part.label().to_owned() })
    };
    let curve = Curve {
        start: if parts.additive { 0.0 } else { 1.0 },
        equity: equity.iter().map(|mark| (mark.0 * DAY_MS, mark.1)).collect(),
        buy_hold: equity.iter().map(|mark| (mark.0 * DAY_MS, mark.2)).collect(),
    };
    BestEvaluated::Yes {
        parts: page_table(parts),
        benchmark: (!parts.additive).then(|| parts.benchmark.clone()),
        is_additive: parts.additive,
        curve: chart::curve(&curve, parts.additive, points),
        marks: begins.filter_map(mark).collect(),
    }
}

/// The stored verdict on a winner.
fn told(winner: &Value) -> VerdictSummary {
    let text = |key: &str| winner[key].as_str().unwrap_or_default().to_owned();
    let sentence = text("sentence");
    // "survives 4 of 9 checks: probably luck"
    let (survives, words) = sentence.rsplit_once(": ").unwrap_or((&sentence, &sentence));
    VerdictSummary {
        grade: Some(text("grade")),
        words: words.to_owned(),
        sentence: format!("Trial {} {survives}", number::count(winner["trial"].as_u64().unwrap_or(0))),
        checks: winner["checks"].clone(),
    }
}

/// Why there is no verdict.
fn not_judged(study: &StudyFolder, config: &StudyConfig, survey: &Survey) -> VerdictSummary {
    let trials = number::counted(survey.n_trials, "trial");
    let (words, sentence) = match State::of(study.dir(), survey.n_trials, config.n_requested()) {
        State::Running(_) => ("not judged yet", "Winners are judged when the search is over".to_owned()),
        State::Stopped => ("not judged", format!("The search was stopped after {trials}")),
        State::Complete if survey.n_valid == 0 => {
            ("no valid trial", format!("{trials}, and none traded or met the requirements"))
        }
        State::Complete => ("not judged", format!("There is no verdict on these {trials}")),
    };
    VerdictSummary { grade: None, words: words.into(), sentence, checks: json!([]) }
}

fn best(
    study: &StudyFolder,
    config: &StudyConfig,
    survey: &Survey,
    trial: u64,
    evaluated: BestEvaluated,
) -> Result<BestTrial, SourceError> {
    let rows = fetch(study, survey, &[trial].into()).map_err(|error| failed(&error))?;
    let rows = rows.of(&[trial]);
    let row =
        rows.first().ok_or_else(|| SourceError::Missing { what: format!("there is no trial {trial}") })?;
    let params = survey.axes.0.iter().zip(&row.params);
    // A study without the text of its strategy does not know its ranges.
    let strategy = config.searched_strategy().map_err(|error| failed(&error))?;
    let ends = strategy.map_or_else(Vec::new, |strategy| stored_range_ends(&strategy, survey, row));
    Ok(BestTrial {
        trial,
        objective: row.objectives.first().copied().filter(|value| value.is_finite()),
        parameters: params.map(|(axis, value)| (axis.name.clone(), json!(value))).collect(),
        edge: edge::sentence(&ends),
        evaluated,
    })
}

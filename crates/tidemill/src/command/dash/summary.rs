//! What a study found: its verdict, and its best trial on every part of the data.

use serde_json::{Value, json};
use tidemill_dash::web::{BestEvaluated, BestTrial, SourceError, StudySummary, VerdictSummary};
use tidemill_lab::stored::rows::fetch;
use tidemill_lab::stored::state::State;
use tidemill_lab::stored::survey::Survey;
use tidemill_lab::{StudyConfig, number, verdict};
use tidemill_search::StudyFolder;

use super::chart;
use super::evaluation::Evaluations;
use super::source::failed;

/// Summary of a study as it is now.
pub fn of(
    study: &StudyFolder,
    evaluations: &Evaluations,
    points: usize,
) -> Result<StudySummary, SourceError> {
    let config = StudyConfig::read(study.header());
    let survey = Survey::new(study, &config).map_err(|error| failed(&error))?;
    let judged = verdict::store::read(study.dir(), survey.n_trials).map_err(|error| failed(&error))?;
    let winner = judged.as_ref().map(|judged| &judged["winners"][0]).filter(|winner| winner.is_object());
    let verdict = match winner {
        Some(winner) => told(winner),
        None => not_judged(study, &config, &survey),
    };
    let first =
        winner.and_then(|winner| winner["trial"].as_u64()).or_else(|| survey.best(1).first().copied());
    let best = first.map(|trial| best(study, evaluations, &survey, trial, points)).transpose()?;
    Ok(StudySummary {
        strategy: config.strategy.name.clone(),
        objective: config.objective_names(survey.n_objectives()).join("; "),
        n_trials: survey.n_trials,
        n_valid: survey.n_valid,
        verdict,
        best,
    })
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
    let (words, sentence) = match State::of(study.dir(), survey.n_trials, config.sweep.trials) {
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
    evaluations: &Evaluations,
    survey: &Survey,
    trial: u64,
    points: usize,
) -> Result<BestTrial, SourceError> {
    let rows = fetch(study, survey, &[trial].into()).map_err(|error| failed(&error))?;
    let rows = rows.of(&[trial]);
    let row =
        rows.first().ok_or_else(|| SourceError::Missing { what: format!("there is no trial {trial}") })?;
    let evaluated = match evaluations.of(study, trial) {
        Ok(evaluated) => BestEvaluated::Yes {
            parts: evaluated.parts.clone(),
            benchmark: evaluated.benchmark.clone(),
            is_additive: chart::is_additive(&evaluated.report),
            curve: chart::all_symbols(&evaluated.report, points),
            marks: evaluated.report.series.first().map(|series| series.marks.clone()).unwrap_or_default(),
        },
        // What is stored is there without the data too.
        Err(error) => BestEvaluated::No { unavailable: error.to_string() },
    };
    let params = survey.axes.0.iter().zip(&row.params);
    Ok(BestTrial {
        trial,
        objective: row.objectives.first().copied().filter(|value| value.is_finite()),
        parameters: params.map(|(axis, value)| (axis.name.clone(), json!(value))).collect(),
        edges: Vec::new(),
        evaluated,
    })
}

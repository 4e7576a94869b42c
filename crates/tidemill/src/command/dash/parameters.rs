//! The parameters of a study, and the trials drawn across them.

use anyhow::Result;
use tidemill_dash::web::Parameters;
use tidemill_search::StudyFolder;

use crate::command::study::page::{DrawnTrials, drawn_axes};
use tidemill_lab::StudyConfig;
use tidemill_lab::stored::rows::fetch_with_importance;
use tidemill_lab::stored::survey::Survey;

/// Reads the study twice: once to choose the trials that are drawn, once to fetch them and to weigh the parameters.
pub fn of(study: &StudyFolder) -> Result<Parameters> {
    let config = StudyConfig::read(study.header());
    let survey = Survey::new(study, &config)?;
    let drawn = DrawnTrials::choose(&survey, 0);
    let (rows, importance) = fetch_with_importance(study, &survey, &drawn.trials().collect())?;
    Ok(Parameters {
        objectives: config.objective_names(survey.n_objectives()),
        n_trials: survey.n_trials,
        n_valid: survey.n_valid,
        axes: drawn_axes(&survey, &importance),
        plotted: drawn.plotted(&survey, &rows),
    })
}

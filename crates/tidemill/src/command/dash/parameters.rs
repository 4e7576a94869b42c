//! What the trials of a study say about its parameters.

use anyhow::Result;
use tidemill_dash::web::{Axis, AxisValues, Parameters};
use tidemill_page::study::PlottedTrials;
use tidemill_search::StudyFolder;

use crate::command::study::page::DrawnTrials;
use tidemill_lab::StudyConfig;
use tidemill_lab::stored::axis::{self, Values};
use tidemill_lab::stored::rows::fetch_with_importance;
use tidemill_lab::stored::survey::Survey;

/// Reads the study twice: once to choose the trials that are drawn, once to fetch them and to weigh the parameters.
pub fn of(study: &StudyFolder) -> Result<Parameters> {
    let config = StudyConfig::read(study.header());
    let survey = Survey::new(study, &config)?;
    let drawn = DrawnTrials::choose(&survey, 0);
    let (rows, importance) = fetch_with_importance(study, &survey, &drawn.trials().collect())?;
    let PlottedTrials { trials, n_best, scores, values } = drawn.plotted(&survey, &rows);
    let varied = survey.axes.0.iter().zip(importance).filter(|(axis, _)| axis.is_varied());
    Ok(Parameters {
        objectives: config.objective_names(survey.n_objectives()),
        n_trials: survey.n_trials,
        n_valid: survey.n_valid,
        axes: varied.map(|(axis, importance)| told(axis, importance)).collect(),
        trials,
        n_best,
        scores,
        values,
    })
}

fn told(axis: &axis::Axis, importance: f64) -> Axis {
    let values = match &axis.values {
        Values::Number { low, high, whole, log } => {
            AxisValues::Number { low: *low, high: *high, is_whole: *whole, is_log: *log }
        }
        Values::Switch { .. } => AxisValues::Names { options: vec!["off".into(), "on".into()] },
        Values::Names { options } => AxisValues::Names { options: options.iter().cloned().collect() },
    };
    Axis { name: axis.name.clone(), importance, values }
}

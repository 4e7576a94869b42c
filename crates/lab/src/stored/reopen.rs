//! A stored study as what can be evaluated again: its strategy, its data, its trials.

use std::path::PathBuf;

use tidemill_backtest::METRICS;
use tidemill_search::{Evaluated, Points, Space, TrialBatch};

use super::StoredStudy;
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::experiment::Experiment;

impl StoredStudy {
    /// The data that the study was made on, as it was loaded then. Other files take the place of its own and must hold the same bars; another
    /// benchmark may be any.
    pub fn data(&self, files: &[PathBuf], benchmark: Option<&str>) -> Result<Dataset, LabError> {
        let dir = || self.folder.dir().to_owned();
        let recipe = match &self.config.about.source {
            None if files.is_empty() => return Err(LabError::NoRecipe { dir: dir() }),
            recipe => recipe.clone().unwrap_or_default().replaced(files, benchmark),
        };
        if let (Some(path), []) = (recipe.missing(), files) {
            return Err(LabError::DataGone { dir: dir(), path: path.to_owned() });
        }
        let data = recipe.load_bars()?;
        let found = data.universe.fingerprint();
        if found != self.config.data_hash {
            return Err(LabError::OtherData { dir: dir(), stored: self.config.data_hash.clone(), found });
        }
        data.with_own_benchmark()
    }

    /// What was searched, on this data; the parameters that were searched are free.
    pub fn experiment(&self, data: Dataset) -> Result<Experiment, LabError> {
        let strategy = self.config.searched_strategy()?;
        let strategy = strategy.ok_or_else(|| LabError::NoSource { dir: self.folder.dir().to_owned() })?;
        Ok(Experiment::new(strategy, data).layout(self.config.segments.clone()))
    }
}

/// Stored trials as the points and results that a search had; `None` if the space or the program has other columns by now.
pub(crate) fn evaluated(batch: &TrialBatch, space: &Space) -> Option<(Points, Evaluated)> {
    let of = |name: &str| batch.metrics.iter().find(|(stored, _)| stored == name);
    let column = |values: &[Option<f64>]| values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    let metrics: Option<_> =
        METRICS.iter().map(|(_, name, _)| of(name).map(|(_, values)| column(values))).collect();
    Some((batch.to_points(space)?, Evaluated { scores: batch.to_scores(), metrics: metrics? }))
}

//! A stored study as what can be evaluated again: its strategy, its data, its trials.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidemill_backtest::{METRICS, Strategy};
use tidemill_market::LoadProgress;
use tidemill_search::{Evaluated, Points, Space, TrialBatch};

use super::StoredStudy;
use crate::backtest::BacktestReport;
use crate::config::{NamedSet, SearchOptions, StudyConfig};
use crate::dataset::{Dataset, Recipe};
use crate::enqueue::QueuedSets;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::number;
use crate::runtime::Runtime;
use crate::sweep::Sweep;
use crate::verdict;

impl StoredStudy {
    /// The data that the study was made on, as it was loaded then. Other files take the place of its own and must hold the same bars; another
    /// benchmark may be any.
    pub fn data(&self, files: &[PathBuf], benchmark: Option<&str>) -> Result<Dataset, LabError> {
        let data = self.recipe(files, benchmark)?.load_bars()?;
        self.check_data(&data)?;
        data.with_own_benchmark()
    }

    /// The same study, whose data tells this how far loading is.
    pub fn watched(mut self, progress: &LoadProgress) -> Self {
        let source = &mut self.config.about.source;
        *source = source.take().map(|recipe| recipe.watched(progress));
        self
    }

    /// How the data of the study is loaded again, with other files in place of its own where some are named.
    pub fn recipe(&self, files: &[PathBuf], benchmark: Option<&str>) -> Result<Recipe, LabError> {
        let dir = || self.folder.dir().to_owned();
        let recipe = match &self.config.about.source {
            None if files.is_empty() => return Err(LabError::NoRecipe { dir: dir() }),
            recipe => recipe.clone().unwrap_or_default().replaced(files, benchmark),
        };
        match (recipe.missing(), files) {
            (Some(path), []) => Err(LabError::DataGone { dir: dir(), path: path.to_owned() }),
            _ => Ok(recipe),
        }
    }

    /// The strategy with the parameters of a trial.
    pub fn trial_strategy(&self, trial: u64) -> Result<Strategy, LabError> {
        Ok(self.trial(trial)?.0)
    }

    /// The strategy with the parameters of a trial, and its first objective.
    fn trial(&self, trial: u64) -> Result<(Strategy, Option<f64>), LabError> {
        let (params, stored) = self.params(trial)?;
        let params = params.iter().map(|(name, value)| (name.as_str(), value));
        let strategy = self.config.strategy(params)?;
        let strategy = strategy.ok_or_else(|| LabError::NoSource { dir: self.folder.dir().to_owned() })?;
        Ok((strategy, stored))
    }

    /// Data that is in memory, if it is that of the study.
    pub fn same_data(&self, data: Arc<Dataset>) -> Result<Arc<Dataset>, LabError> {
        self.check_data(&data)?;
        Ok(data)
    }

    fn check_data(&self, data: &Dataset) -> Result<(), LabError> {
        let found = data.universe.fingerprint();
        if found == self.config.data_hash {
            return Ok(());
        }
        let (dir, stored) = (self.folder.dir().to_owned(), self.config.data_hash.clone());
        Err(LabError::OtherData { dir, stored, found })
    }

    /// The search that made the study, to go on with it; `trials` may be more than it was made for. Without data it loads its own.
    pub fn sweep(
        &self,
        data: Option<Arc<Dataset>>,
        trials: Option<u64>,
        runtime: Runtime,
    ) -> Result<Sweep, LabError> {
        let data = match data {
            Some(data) => self.same_data(data)?,
            None => self.data(&[], None)?.into(),
        };
        let stored = &self.config.sweep;
        let default = SearchOptions::default();
        let sampler = stored.sampler.as_deref().and_then(|name| name.parse().ok());
        let options = SearchOptions {
            trials: trials.or(stored.trials).unwrap_or(default.trials),
            sampler: sampler.unwrap_or(default.sampler),
            seed: self.config.seed,
            plan_trials: stored.plan_trials,
            batch: stored.batch,
            lag: stored.lag,
            part: stored.part.as_deref().and_then(|part| part.parse().ok()),
        };
        let experiment = self.experiment(data)?.runtime(runtime);
        let queue = QueuedSets::read(&stored.enqueue, &experiment.strategy)?;
        Ok(experiment.sweep().options(options).enqueue(queue.sets).folder(self.folder.dir()))
    }

    /// The strategy; the parameters that were searched are free.
    pub fn searched_strategy(&self) -> Result<Strategy, LabError> {
        let strategy = self.config.searched_strategy()?;
        strategy.ok_or_else(|| LabError::NoSource { dir: self.folder.dir().to_owned() })
    }

    /// What was searched, on this data.
    pub fn experiment(&self, data: impl Into<Arc<Dataset>>) -> Result<Experiment, LabError> {
        Ok(Experiment::new(self.searched_strategy()?, data).layout(self.config.segments.clone()))
    }

    /// Evaluates a trial in full, with the settings of the study. A warning says if it does not give the objective that the study has.
    pub fn backtest(&self, trial: u64, data: impl Into<Arc<Dataset>>) -> Result<BacktestReport, LabError> {
        let (strategy, stored) = self.trial(trial)?;
        let experiment = Experiment::new(strategy, data).layout(self.config.segments.clone());
        let mut report = Experiment { is_searched: true, ..experiment }.backtest()?;
        let judged = self.verdict(self.folder.n_trials()?)?;
        let winners = judged.as_ref().map_or_else(Vec::new, verdict::store::winners);
        report.verdict =
            winners.into_iter().find(|winner| winner.trial == trial).map(|winner| winner.headline);
        if report.score.ok() != stored {
            let [stored, now] = [stored, report.score.ok()].map(number::short);
            let made_by = &self.config.program;
            report.warnings.push(format!(
                "the study, made by version {made_by}, has the objective {stored} for trial {trial}; this version gives {now}"
            ));
        }
        Ok(report)
    }

    /// The active parameters of a trial, and its first objective.
    fn params(&self, trial: u64) -> Result<(NamedSet, Option<f64>), LabError> {
        let mut n_trials = 0;
        for batch in self.folder.trials()? {
            let batch = batch?;
            if let Some(at) = batch.trials.iter().position(|number| *number == trial) {
                let params = batch.params.iter();
                let active = params.filter_map(|(name, column)| Some((name.clone(), column.value(at)?)));
                return Ok((active.collect(), batch.scores[at].value()));
            }
            n_trials += batch.trials.len() as u64;
        }
        Err(LabError::NoTrial { dir: self.folder.dir().to_owned(), trial, n_trials })
    }
}

/// The command that evaluates a trial again and gives the figures that the study has of it; none if the study does not hold what it needs.
pub fn backtest_command(config: &StudyConfig, dir: &Path, trial: u64) -> Option<String> {
    let can_run = config.strategy.source.is_some() && config.about.source.is_some();
    can_run.then(|| format!("tidemill backtest --trial {}", quoted(&format!("{}:{trial}", dir.display()))))
}

/// A word that a shell takes as one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./+:".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Stored trials as the points and results that a search had; `None` if the space or the program has other columns by now.
pub(crate) fn evaluated(batch: &TrialBatch, space: &Space) -> Option<(Points, Evaluated)> {
    let of = |name: &str| batch.metrics.iter().find(|(stored, _)| stored == name);
    let column = |values: &[Option<f64>]| values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    let metrics: Option<_> =
        METRICS.iter().map(|(_, name, _)| of(name).map(|(_, values)| column(values))).collect();
    Some((batch.to_points(space)?, Evaluated { scores: batch.to_scores(), metrics: metrics? }))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_split_them() {
        assert_eq!(quoted("runs/my-study:12"), "runs/my-study:12");
        assert_eq!(quoted("it's mine:3"), r"'it'\''s mine:3'");
    }
}

//! Trials evaluated again, from nothing but the folder of their study.
//!
//! The study keeps the strategy's text, its settings and how the data was loaded; the hash of the data says whether it is still the same. Loading
//! takes longest, so that the data of the last few studies stays in memory, and so do the last few trials.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use tidemill_backtest::Strategy;
use tidemill_dash::web::SourceError;
use tidemill_lab::parts::Parts;
use tidemill_lab::{Dataset, Experiment, StudyConfig};
use tidemill_page::report::ReportPage;
use tidemill_search::StudyFolder;

use super::trials::{self, Params};
use crate::command::backtest;

/// Studies whose data stays in memory.
const KEPT_DATASETS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Trials whose charts stay in memory.
const KEPT_TRIALS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// A trial that was evaluated again.
pub struct Evaluated {
    /// Its result, without the prices.
    pub report: ReportPage,
    /// Its figures on every part of the data.
    pub parts: Parts,
    /// Whether its objective is the one that the study has.
    pub is_as_stored: bool,
}

/// What was loaded and evaluated last.
pub struct Evaluations {
    data: Mutex<LruCache<Key, Arc<Dataset>>>,
    trials: Mutex<LruCache<Key, Arc<Evaluated>>>,
}

/// A study, by its folder and the hash of its data, and a number in it.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    dir: PathBuf,
    data_hash: String,
    number: u64,
}

impl Key {
    fn new(study: &StudyFolder, number: u64) -> Self {
        Self { dir: study.dir().to_owned(), data_hash: study.header().data_hash.clone(), number }
    }
}

impl Default for Evaluations {
    fn default() -> Self {
        Self {
            data: Mutex::new(LruCache::new(KEPT_DATASETS)),
            trials: Mutex::new(LruCache::new(KEPT_TRIALS)),
        }
    }
}

impl Evaluations {
    /// The data of a study.
    pub fn data(&self, study: &StudyFolder) -> Result<Arc<Dataset>, SourceError> {
        let key = Key::new(study, 0);
        // Held while it loads: two who ask for the same do not load it twice.
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = data.try_get_or_insert(key, || load(study).map(Arc::new))?;
        Ok(loaded.clone())
    }

    /// One trial.
    pub fn of(&self, study: &StudyFolder, trial: u64) -> Result<Arc<Evaluated>, SourceError> {
        let key = Key::new(study, trial);
        let trials = || self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = trials().get(&key) {
            return Ok(known.clone());
        }
        let (told, params) = trials::one(study, trial)?;
        let config = StudyConfig::read(study.header());
        let experiment = Experiment::new(strategy(&config, &params)?, self.data(study)?);
        let mut evaluation = experiment.layout(config.segments).backtest().map_err(|error| failed(&error))?;
        evaluation.parts.searched = true;
        let mut report = backtest::page_report(&evaluation);
        for series in &mut report.series {
            // The chart reads prices from the data itself.
            for column in
                [&mut series.open, &mut series.high, &mut series.low, &mut series.close, &mut series.volume]
            {
                *column = Vec::new();
            }
            series.ts_ms = Vec::new();
        }
        let stored = told.figures.first().and_then(|figure| figure.value.as_f64());
        let is_as_stored = evaluation.score.ok() == stored;
        let evaluated = Arc::new(Evaluated { report, parts: evaluation.parts, is_as_stored });
        trials().put(key, evaluated.clone());
        Ok(evaluated)
    }
}

fn load(study: &StudyFolder) -> Result<Dataset, SourceError> {
    let config = StudyConfig::read(study.header());
    let unavailable =
        |message: String, hint: &str| SourceError::Unavailable { message, hint: Some(hint.into()) };
    let Some(recipe) = config.about.source else {
        let message = "the study does not record where its data came from".to_owned();
        return Err(unavailable(message, "`tidemill backtest` with --data shows a trial of it"));
    };
    let recipe = recipe.in_full();
    if let Some(path) = recipe.missing() {
        let message = format!("the data {} is not there any more", path.display());
        return Err(unavailable(message, "put it back where it was, or use `tidemill backtest` with --data"));
    }
    let data = recipe.load().map_err(|error| failed(&error))?;
    if data.universe.fingerprint() != config.data_hash {
        let message = "the data has changed since the study was made".to_owned();
        return Err(unavailable(message, "a chart of other data would not be the chart of this trial"));
    }
    Ok(data)
}

/// The strategy with the settings of the study and the parameters of a trial.
fn strategy(config: &StudyConfig, params: &Params) -> Result<Strategy, SourceError> {
    let active = params.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)));
    match config.strategy(active) {
        Ok(Some(strategy)) => Ok(strategy),
        Ok(None) => {
            let message = "the study does not have the text of its strategy".to_owned();
            Err(SourceError::Unavailable { message, hint: None })
        }
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &tidemill_lab::LabError) -> SourceError {
    SourceError::Failed { message: error.to_string() }
}

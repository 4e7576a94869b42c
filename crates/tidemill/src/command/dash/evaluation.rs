//! Trials evaluated again, from nothing but the folder of their study.
//!
//! The study keeps the strategy's text, its settings and how the data was loaded; the hash of the data says whether it is still the same. Loading
//! takes longest, so that the data of the last few studies stays in memory, and so do the last few trials.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use tidemill_backtest::report::Report;
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Overrides, Strategy};
use tidemill_dash::web::SourceError;
use tidemill_search::StudyFolder;
use toml::Value;

use super::source::unreadable;
use super::trials::{self, Params};
use crate::command::backtest;
use crate::command::study::facts::Facts;
use crate::input::{Input, Recipe};

/// Studies whose data stays in memory.
const KEPT_INPUTS: usize = 2;

/// Trials whose charts stay in memory.
const KEPT_TRIALS: usize = 8;

/// A trial that was evaluated again.
pub struct Evaluated {
    /// Its result, without the prices.
    pub report: Report,
    /// Whether its objective is the one that the study has.
    pub is_as_stored: bool,
}

/// What was loaded and evaluated last.
#[derive(Default)]
pub struct Evaluations {
    inputs: Mutex<Kept<Input>>,
    trials: Mutex<Kept<Evaluated>>,
}

/// The newest few of something that takes long to make.
struct Kept<T>(Vec<(Key, Arc<T>)>);

/// A study, by its folder and the hash of its data, and a number in it.
#[derive(Clone, PartialEq)]
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

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Kept<T> {
    fn find(&self, key: &Key) -> Option<Arc<T>> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, kept)| kept.clone())
    }

    fn add(&mut self, key: Key, made: T, most: usize) -> Arc<T> {
        if self.0.len() >= most {
            self.0.remove(0);
        }
        let made = Arc::new(made);
        self.0.push((key, made.clone()));
        made
    }
}

impl Evaluations {
    /// The data of a study.
    pub fn input(&self, study: &StudyFolder) -> Result<Arc<Input>, SourceError> {
        let key = Key::new(study, 0);
        // Held while it loads: two who ask for the same do not load it twice.
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        match inputs.find(&key) {
            Some(input) => Ok(input),
            None => Ok(inputs.add(key, load(study)?, KEPT_INPUTS)),
        }
    }

    /// One trial.
    pub fn of(&self, study: &StudyFolder, trial: u64) -> Result<Arc<Evaluated>, SourceError> {
        let key = Key::new(study, trial);
        let trials = || self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = trials().find(&key) {
            return Ok(known);
        }
        let (told, params) = trials::one(study, trial)?;
        let input = self.input(study)?;
        let strategy = strategy(study, &params)?;
        let (mut report, score) = backtest::report(&strategy, &input).map_err(|error| unreadable(&error))?;
        for series in &mut report.series {
            // Prices are told from the data itself.
            for column in
                [&mut series.open, &mut series.high, &mut series.low, &mut series.close, &mut series.volume]
            {
                *column = Vec::new();
            }
            series.ts_ms = Vec::new();
        }
        let stored = told.figures.first().and_then(|figure| figure.value.as_f64());
        let evaluated = Evaluated { report, is_as_stored: score.value() == stored };
        Ok(trials().add(key, evaluated, KEPT_TRIALS))
    }
}

fn load(study: &StudyFolder) -> Result<Input, SourceError> {
    let header = study.header();
    let unavailable =
        |message: String, hint: &str| SourceError::Unavailable { message, hint: Some(hint.into()) };
    let source = header.config.get("about").and_then(|about| about.get("source"));
    let Some(source) = source else {
        let message = "the study does not say where its data came from".to_owned();
        return Err(unavailable(message, "`tidemill backtest` with --data shows a trial of it"));
    };
    let bad =
        |error: toml::de::Error| SourceError::Failed { message: format!("study.toml: {}", error.message()) };
    let recipe = Recipe::deserialize(source.clone()).map_err(bad)?.in_full();
    if let Some(path) = recipe.missing() {
        let message = format!("the data {} is not there any more", path.display());
        return Err(unavailable(message, "put it back where it was, or use `tidemill backtest` with --data"));
    }
    let input = recipe.load(layout(&header.config)).map_err(|error| unreadable(&error))?;
    if input.universe.fingerprint() != header.data_hash {
        let message = "the data has changed since the study was made".to_owned();
        return Err(unavailable(message, "a chart of other data would not be the chart of this trial"));
    }
    Ok(input)
}

/// How the study cut its data.
fn layout(config: &toml::Table) -> Layout {
    let at = |key: &str| config.get("segments").and_then(|segments| segments.get(key));
    let time = |key: &str| at(key).and_then(Value::as_integer);
    Layout {
        from_ms: time("from_ms"),
        to_ms: time("to_ms"),
        split: at("split").and_then(Value::as_float),
        cut_ms: time("cut_ms"),
        folds: time("folds").and_then(|folds| usize::try_from(folds).ok()),
        holdout_from_ms: time("holdout_from_ms"),
        holdout_to_ms: time("holdout_to_ms"),
        embargo_ms: time("embargo_ms"),
    }
}

/// The strategy with the settings of the study and the parameters of a trial.
fn strategy(study: &StudyFolder, params: &Params) -> Result<Strategy, SourceError> {
    let config = &study.header().config;
    let facts = Facts::new(study.header());
    let Some(source) = &facts.source else {
        let message = "the study does not have the text of its strategy".to_owned();
        return Err(SourceError::Unavailable { message, hint: None });
    };
    let mut set = Vec::new();
    if let Some(Value::Table(execution)) = config.get("execution") {
        set.extend(execution.iter().map(|(key, value)| (format!("execution.{key}"), value.to_string())));
    }
    let active = params.iter().filter_map(|(name, value)| Some((name.clone(), value.as_ref()?.to_string())));
    set.extend(active);
    let objective = facts.objectives.first().cloned();
    let file = facts.file.as_deref().unwrap_or("strategy.toml");
    let parse = |objective: Option<String>| {
        let overrides = Overrides { profile: facts.profile.clone(), set: set.clone(), objective };
        Strategy::parse(file, source, &overrides)
            .map_err(|error| SourceError::Failed { message: error.to_string() })
    };
    let strategy = parse(None)?;
    if objective.as_ref().is_some_and(|text| *text != strategy.objective.text) {
        parse(objective)
    } else {
        Ok(strategy)
    }
}

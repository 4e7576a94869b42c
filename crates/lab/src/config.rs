//! `StudyConfig`: everything that decides the results of a study, as `study.toml` stores it.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Overrides, POOL_NOTE, SEMANTICS, Strategy};
use tidemill_search::folder::OpenedFolder;
use tidemill_search::{SamplerKind, StudyFolder, StudyHeader, Value};

use crate::dataset::{Dataset, Recipe};
use crate::error::LabError;
use crate::number;
use crate::part::StudyPart;
use former::{requested, set_requested, upgrade};

mod former;
mod spread;

/// Version of the stored form. The first one had no number and named the first objective apart from the others.
pub const CONFIG_VERSION: u32 = 2;

/// How trials are proposed. All of it decides which trials a study has.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Trials in all; a grid, or a space whose parameter sets are all tried, may have fewer. A stored study may be given more.
    pub trials: u64,
    /// The trials that sampler, batch and lag are chosen for; those of the stored study, or `trials`, if it is not given.
    pub plan_trials: Option<u64>,
    /// What proposes them.
    pub sampler: SamplerKind,
    /// Trials proposed at a time; chosen by [`auto_batch`](crate::batch::auto_batch) if it is not given.
    pub batch: Option<usize>,
    /// By how many batches the sampler lags behind; 0 waits for every result. Chosen by [`auto_lag`](crate::batch::auto_lag) if it is not given.
    pub lag: Option<usize>,
    /// The same seed gives the same trials.
    pub seed: u64,
    /// Only this part of the trials, where the study is searched in several.
    pub part: Option<StudyPart>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            trials: 10_000,
            plan_trials: None,
            sampler: SamplerKind::Auto,
            batch: None,
            lag: None,
            seed: 1,
            part: None,
        }
    }
}

/// What a study decides once, when it is made, and keeps when it gets more trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenPlan {
    /// The trials that sampler, batch and lag are chosen for.
    pub trials: u64,
    /// Trials of a batch.
    pub batch: usize,
    /// By how many batches the sampler lags behind.
    pub lag: usize,
}

/// A parameter set by name; what it does not name has its default.
pub type NamedSet = Vec<(String, Value)>;

/// A set as text, the same for the same set.
pub fn shown(set: &NamedSet) -> String {
    set.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// What decides the results of a study. Reading is lenient: missing and unknown entries are skipped.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StudyConfig {
    /// Version of this form.
    pub version: u32,
    /// The strategy.
    pub strategy: StrategyConfig,
    /// Its execution settings, overrides included.
    pub execution: toml::Table,
    /// What is maximised.
    pub objective: ObjectiveConfig,
    /// Parameters that are not searched.
    pub fixed: toml::Table,
    /// How the data is cut.
    pub segments: Layout,
    /// How trials are proposed.
    pub sweep: SweepConfig,
    /// How much data there is; its hash stands beside the configuration.
    pub data: DataSize,
    /// Settings that may differ when the study resumes.
    pub about: AboutStudy,
    /// Seed of the sampler, which `study.toml` has beside the configuration.
    #[serde(skip)]
    pub seed: u64,
    /// Hash of the data, likewise.
    #[serde(skip)]
    pub data_hash: String,
    /// Number of the semantics, likewise.
    #[serde(skip)]
    pub semantics: u32,
    /// Version of the program, likewise.
    #[serde(skip)]
    pub program: String,
}

/// The strategy of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StrategyConfig {
    /// Name of the strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The profile that was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The text of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Version of the time-zone database, if it has sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_database: Option<String>,
}

/// What a study maximises.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectiveConfig {
    /// One expression per objective.
    pub maximize: Vec<String>,
    /// What a trial must meet to be valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<String>,
    /// How the values of segments become one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce: Option<String>,
}

/// How the trials of a study are proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepConfig {
    /// Requested number of trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<u64>,
    /// The number of trials that sampler, batch and lag were chosen for: as a rule those requested when the study was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_trials: Option<u64>,
    /// Name of the sampler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampler: Option<String>,
    /// Trials of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// By how many batches the sampler lags behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<usize>,
    /// Parameter sets that are tried first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enqueue: Vec<String>,
    /// The part of the trials that the folder holds, where the study is searched in several: `2/8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// How much data a study has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSize {
    /// Symbols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<usize>,
    /// Bars of all symbols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bars: Option<usize>,
}

/// Settings that describe a study and may differ when it resumes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AboutStudy {
    /// Where the data came from, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The file of the strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How the data is loaded again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Recipe>,
}

impl StudyConfig {
    /// The configuration of a study that is about to run; `chosen` is what follows from the options and the data.
    pub fn new(
        strategy: &Strategy,
        data: &Dataset,
        layout: &Layout,
        search: &SearchOptions,
        chosen: ChosenPlan,
        queue: &[NamedSet],
    ) -> Result<Self, LabError> {
        let fixed = strategy.params.iter().filter_map(|param| {
            let value = param.domain.decode(param.fixed?)?;
            Some(toml::Value::try_from(&value).map(|value| (param.name.clone(), value)))
        });
        let execution = toml::Table::try_from(&strategy.execution)?;
        let reduce = toml::Value::try_from(strategy.reduce)?;
        Ok(Self {
            version: CONFIG_VERSION,
            strategy: StrategyConfig {
                name: Some(strategy.name.clone()),
                profile: strategy.overrides.profile.clone(),
                source: Some(strategy.source.clone()),
                zone_database: strategy.zone_database().map(Into::into),
            },
            execution,
            objective: ObjectiveConfig {
                maximize: strategy.objective_texts().into_iter().map(Into::into).collect(),
                require: strategy.require.as_ref().map(|require| require.text.clone()),
                reduce: reduce.as_str().map(Into::into),
            },
            fixed: fixed.collect::<Result<_, _>>()?,
            segments: layout.clone(),
            sweep: SweepConfig {
                trials: Some(search.trials),
                plan_trials: Some(chosen.trials),
                sampler: Some(search.sampler.name().into()),
                batch: Some(chosen.batch),
                lag: Some(chosen.lag),
                enqueue: queue.iter().map(shown).collect(),
                part: search.part.map(|part| part.to_string()),
            },
            data: DataSize { symbols: Some(data.universe.symbols.len()), bars: Some(data.universe.n_bars()) },
            about: AboutStudy {
                data: Some(data.origin.clone()),
                file: Some(strategy.file.clone()),
                source: data.recipe.stored(),
            },
            seed: search.seed,
            data_hash: data.universe.fingerprint(),
            semantics: SEMANTICS,
            program: env!("CARGO_PKG_VERSION").into(),
        })
    }

    /// Reads the configuration of a stored study of any version.
    pub fn read(header: &StudyHeader) -> Self {
        let mut table = header.config.clone();
        upgrade(&mut table);
        Self {
            version: section(&table, "version"),
            strategy: section(&table, "strategy"),
            execution: section(&table, "execution"),
            objective: section(&table, "objective"),
            fixed: section(&table, "fixed"),
            segments: section(&table, "segments"),
            sweep: section(&table, "sweep"),
            data: section(&table, "data"),
            about: section(&table, "about"),
            seed: header.seed,
            data_hash: header.data_hash.clone(),
            semantics: header.semantics,
            program: header.version.clone(),
        }
    }

    /// The contents of `study.toml`.
    pub fn header(&self) -> Result<StudyHeader, LabError> {
        Ok(StudyHeader {
            version: self.program.clone(),
            semantics: self.semantics,
            seed: self.seed,
            data_hash: self.data_hash.clone(),
            config: toml::Table::try_from(self)?,
        })
    }

    /// Opens the folder of this study for writing, or makes it. A study of another configuration is refused.
    pub fn open_folder(&self, dir: &Path) -> Result<OpenedFolder, LabError> {
        Ok(StudyFolder::open_or_create_upgraded(dir, &self.header()?, |config| self.upgrade(config))?)
    }

    /// The same for a study that may have got more trials: `study.toml` then names them from here on.
    ///
    /// A grid is refused, because its points follow from the number of trials, and so are fewer trials than the study has.
    pub fn open_or_raise(&self, dir: &Path) -> Result<OpenedFolder, LabError> {
        let header = self.header()?;
        let raised = match StudyFolder::open(dir) {
            Ok(stored) => self.raised(dir, stored.header(), &header)?,
            Err(_) => None,
        };
        let opened = StudyFolder::open_or_create_upgraded(dir, &header, |config| {
            self.upgrade(config);
            if let Some(trials) = raised {
                set_requested(config, trials);
            }
        })?;
        if raised.is_some() {
            opened.folder.store_header()?;
        }
        Ok(opened)
    }

    /// The number of trials that the stored study is raised to, if more trials are all that differs; an error if it cannot have the
    /// requested number. Where more differs, the folder lists all of it.
    fn raised(&self, dir: &Path, stored: &StudyHeader, asked: &StudyHeader) -> Result<Option<u64>, LabError> {
        let mut same = self.worded_alike(stored);
        let (Some(n_stored), Some(n_asked)) = (requested(&same.config), self.sweep.trials) else {
            return Ok(None);
        };
        // The trials of a part follow from how many the study has.
        if n_stored == n_asked || stored.semantics != asked.semantics || self.sweep.part.is_some() {
            return Ok(None);
        }
        set_requested(&mut same.config, n_asked);
        if !same.differences(asked).is_empty() {
            return Ok(None);
        }
        let dir = dir.to_owned();
        if self.sweep.sampler.as_deref() == Some(SamplerKind::Grid.name()) {
            return Err(LabError::GridTrials { dir, stored: n_stored, asked: n_asked });
        }
        if n_asked < n_stored {
            return Err(LabError::FewerTrials { dir, stored: n_stored, asked: n_asked });
        }
        Ok(Some(n_asked))
    }

    /// The strategy of the study with the parameters of a trial; `None` if the study does not have its text.
    pub fn strategy<'a>(
        &self,
        params: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Option<Strategy>, LabError> {
        let Some(source) = &self.strategy.source else { return Ok(None) };
        let mut set: Vec<(String, String)> = self
            .execution
            .iter()
            .map(|(key, value)| (format!("execution.{key}"), value.to_string()))
            .collect();
        set.extend(params.map(|(name, value)| (name.to_owned(), value.to_string())));
        let file = self.about.file.as_deref().unwrap_or("strategy.toml");
        let mut overrides = Overrides { profile: self.strategy.profile.clone(), set, objectives: Vec::new() };
        let strategy = Strategy::parse(file, source, &overrides)?;
        // Positions in messages are those of the file as long as the file says what is maximised.
        if self.objective.maximize.is_empty() || strategy.objective_texts() == self.objective.maximize {
            return Ok(Some(strategy));
        }
        overrides.objectives.clone_from(&self.objective.maximize);
        Ok(Some(Strategy::parse(file, source, &overrides)?))
    }

    /// The strategy as it was searched: with the parameters that are fixed, and all others free.
    pub fn searched_strategy(&self) -> Result<Option<Strategy>, LabError> {
        let fixed: NamedSet = self
            .fixed
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.clone().try_into().ok()?)))
            .collect();
        self.strategy(fixed.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// Whether figures are those of several symbols together.
    pub fn is_pooled(&self) -> bool {
        self.data.symbols.is_some_and(|symbols| symbols > 1)
    }

    /// How the objectives of several segments become one, such as `mean`; `None` where an objective is that of the pool or of one segment,
    /// and so the metric of the same name.
    pub fn reduction(&self) -> Option<&str> {
        let has_several = self.is_pooled() || self.segments.folds.is_some_and(|folds| folds > 1);
        self.objective.reduce.as_deref().filter(|reduce| has_several && *reduce != "pooled")
    }

    /// Names for this many objectives: what was maximised, or the names of the columns.
    pub fn objective_names(&self, n_objectives: usize) -> Vec<String> {
        if self.objective.maximize.len() == n_objectives {
            return self.objective.maximize.clone();
        }
        (1..=n_objectives)
            .map(|number| if number == 1 { "objective".into() } else { format!("objective_{number}") })
            .collect()
    }

    /// What was run, as pairs of a name and a text for users.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let suffix = |text: Option<String>, before: &str, after: &str| {
            text.map_or_else(String::new, |text| format!("{before}{text}{after}"))
        };
        let strategy = self.strategy.name.as_ref().map(|name| {
            let file = suffix(self.about.file.clone(), " (", ")");
            format!("{name}{file}{}", suffix(self.strategy.profile.clone(), ", profile ", ""))
        });
        let objective =
            Some(self.objective.maximize.join("; ")).filter(|text| !text.is_empty()).map(|text| {
                let reduce = suffix(self.objective.reduce.clone(), ", ", " of segments");
                format!("{text}{reduce}{}", suffix(self.objective.require.clone(), ", where ", ""))
            });
        let seed = self.seed;
        let sampler = self.sweep.sampler.as_ref().map_or_else(
            || format!("seed {seed}"),
            |name| {
                let batch = suffix(self.sweep.batch.map(|batch| batch.to_string()), ", batch ", "");
                let lag = suffix(self.sweep.lag.map(|lag| lag.to_string()), ", lag ", "");
                let first = suffix(self.enqueued_text(), ", after ", "");
                format!("{name}, seed {seed}{batch}{lag}{first}")
            },
        );
        let lines = [
            ("strategy", strategy),
            ("data", self.data_text()),
            ("pool", self.is_pooled().then(|| POOL_NOTE.to_owned())),
            ("parts", self.parts()),
            ("objective", objective),
            ("sampler", Some(sampler)),
            ("fixed", pairs(&self.fixed)),
            ("execution", pairs(&self.execution)),
            ("version", Some(format!("{}, semantics {}", self.program, self.semantics))),
        ];
        lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }

    /// How many known points were tried first, in words.
    pub fn enqueued_text(&self) -> Option<String> {
        let n_enqueued = self.sweep.enqueue.len() as u64;
        (n_enqueued > 0).then(|| number::counted(n_enqueued, "known point"))
    }

    /// Parameters that are not searched, as texts.
    pub fn fixed_texts(&self) -> Vec<(String, String)> {
        texts(&self.fixed)
    }

    /// Where the data came from, and how much there was, in words.
    pub fn data_text(&self) -> Option<String> {
        self.about.data.clone().or_else(|| {
            let count = |count: Option<usize>, noun| count.map(|count| number::counted(count as u64, noun));
            let parts = [count(self.data.symbols, "symbol"), count(self.data.bars, "bar")];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
        })
    }

    /// What the search saw and what it did not.
    fn parts(&self) -> Option<String> {
        let date = |ts_ms: Option<i64>, before: &str| {
            let day: String = tidemill_market::timestamp::format_ms(ts_ms?).chars().take(10).collect();
            Some(format!("{before} {day}"))
        };
        let cut = &self.segments;
        let parts = [
            date(cut.from_ms, "from"),
            date(cut.to_ms, "to"),
            cut.split.map(|share| format!("in-sample the first {share:?}")),
            date(cut.cut_ms, "in-sample before"),
            cut.folds.map(|folds| format!("{folds} folds")),
            date(cut.holdout_from_ms, "held out from"),
            date(cut.holdout_to_ms, "held out to"),
            cut.embargo_ms.map(|ms| format!("embargo {} d", ms as f64 / 86_400_000.0)),
            cut.trade.as_ref().map(|symbols| format!("traded {}", symbols.join(","))),
        ];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
    }
}

fn section<T: DeserializeOwned + Default>(config: &toml::Table, key: &str) -> T {
    config.get(key).and_then(|value| value.clone().try_into().ok()).unwrap_or_default()
}

fn pairs(table: &toml::Table) -> Option<String> {
    let pairs: Vec<String> = texts(table).iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(pairs.join(", ")).filter(|text| !text.is_empty())
}

/// Single values as texts; lists and tables are left out.
fn texts(table: &toml::Table) -> Vec<(String, String)> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(_) | toml::Value::Table(_) => None,
        other => Some(other.to_string()),
    };
    table.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

#[cfg(test)]
mod tests;

//! What a study says about itself, read leniently: what its header does not say is left out.

use tidemill_backtest::POOL_NOTE;
use tidemill_search::StudyHeader;
use toml::Value;

/// What was run.
pub struct Facts {
    /// Name of the strategy.
    pub strategy: Option<String>,
    /// The file it came from.
    pub file: Option<String>,
    /// The profile laid over it.
    pub profile: Option<String>,
    /// Its text.
    pub source: Option<String>,
    /// What was maximised, one text per objective.
    pub objectives: Vec<String>,
    /// What a trial had to meet to be valid.
    pub require: Option<String>,
    /// How the objective was reduced over segments.
    pub reduce: Option<String>,
    /// How points were chosen.
    pub sampler: Option<String>,
    /// Number of trials asked for.
    pub asked: Option<u64>,
    /// Trials per batch.
    pub batch: Option<String>,
    /// By how many batches the sampler lagged behind.
    pub lag: Option<String>,
    /// What was tried first.
    pub enqueued: Option<String>,
    /// Where the data came from, and how much there was.
    pub data: Option<String>,
    /// Whether figures are those of several symbols together.
    pub is_pooled: bool,
    /// How the data was cut, if it was.
    pub parts: Option<String>,
    /// Parameters that were not searched.
    pub fixed: Vec<(String, String)>,
    /// Modelling choices.
    pub execution: Vec<(String, String)>,
    /// Seed of the sampler.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// Number of the rules of its results.
    pub semantics: u32,
}

impl Facts {
    /// What a header says.
    pub fn new(header: &StudyHeader) -> Self {
        let at = |path: &str| find(&header.config, path);
        let text = |path: &str| at(path).and_then(plain).filter(|text| !text.is_empty());
        let pairs = |path: &str| match at(path) {
            Some(Value::Table(table)) => {
                table.iter().filter_map(|(name, value)| Some((name.clone(), plain(value)?))).collect()
            }
            _ => Vec::new(),
        };
        let texts = |path: &str| -> Vec<String> {
            match at(path) {
                Some(Value::Array(several)) => several.iter().filter_map(plain).collect(),
                other => other.and_then(plain).into_iter().collect(),
            }
        };
        let objectives = [texts("objective.maximize"), texts("objective.further")].concat();
        let enqueued = match at("sweep.enqueue") {
            Some(Value::Array(points)) if points.is_empty() => None,
            Some(Value::Array(points)) => Some(crate::number::counted(points.len() as u64, "known point")),
            other => other.and_then(plain),
        };
        Self {
            strategy: text("strategy.name"),
            file: text("about.file"),
            profile: text("strategy.profile"),
            source: text("strategy.source"),
            objectives,
            require: text("objective.require"),
            reduce: text("objective.reduce"),
            sampler: text("sweep.sampler"),
            asked: at("sweep.trials").and_then(Value::as_integer).and_then(|asked| u64::try_from(asked).ok()),
            batch: text("sweep.batch"),
            lag: text("sweep.lag"),
            enqueued,
            data: data(&at, &text),
            is_pooled: at("data.symbols").and_then(Value::as_integer).is_some_and(|symbols| symbols > 1),
            parts: parts(&at, &text),
            fixed: pairs("fixed"),
            execution: pairs("execution"),
            seed: header.seed,
            version: header.version.clone(),
            semantics: header.semantics,
        }
    }

    /// Names for this many objectives: what was maximised, or the names of the columns.
    pub fn objective_names(&self, n_objectives: usize) -> Vec<String> {
        if self.objectives.len() == n_objectives {
            return self.objectives.clone();
        }
        (1..=n_objectives)
            .map(|number| if number == 1 { "objective".into() } else { format!("objective_{number}") })
            .collect()
    }

    /// What was run, as pairs of a name and a text for people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let join = |pairs: &[(String, String)]| {
            let texts: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Some(texts.join(", ")).filter(|text| !text.is_empty())
        };
        let strategy = self.strategy.as_ref().map(|name| {
            let profile = self.profile.as_ref().map_or_else(String::new, |name| format!(", profile {name}"));
            let file = self.file.as_ref().map_or_else(String::new, |file| format!(" ({file})"));
            format!("{name}{file}{profile}")
        });
        let objective = Some(self.objectives.join("; ")).filter(|text| !text.is_empty()).map(|text| {
            let reduce = self.reduce.as_ref().map_or_else(String::new, |how| format!(", {how} of segments"));
            let require = self.require.as_ref().map_or_else(String::new, |what| format!(", where {what}"));
            format!("{text}{reduce}{require}")
        });
        let sampler = self.sampler.as_ref().map(|name| {
            let batch = self.batch.as_ref().map_or_else(String::new, |size| format!(", batch {size}"));
            let lag = self.lag.as_ref().map_or_else(String::new, |lag| format!(", lag {lag}"));
            let first = self.enqueued.as_ref().map_or_else(String::new, |what| format!(", after {what}"));
            format!("{name}, seed {}{batch}{lag}{first}", self.seed)
        });
        let lines = [
            ("strategy", strategy),
            ("data", self.data.clone()),
            ("pool", self.is_pooled.then(|| POOL_NOTE.to_owned())),
            ("parts", self.parts.clone()),
            ("objective", objective),
            ("sampler", Some(sampler.unwrap_or_else(|| format!("seed {}", self.seed)))),
            ("fixed", join(&self.fixed)),
            ("execution", join(&self.execution)),
            ("version", Some(format!("{}, semantics {}", self.version, self.semantics))),
        ];
        lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

fn find<'a>(config: &'a toml::Table, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let first = config.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.as_table()?.get(key))
}

/// A single value as text; lists and tables are none.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Table(_) => None,
        other => Some(other.to_string()),
    }
}

/// What the search saw and what it did not.
fn parts<'a>(
    at: &impl Fn(&str) -> Option<&'a Value>,
    text: &impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let date = |name: &str| {
        let ts_ms = at(&format!("segments.{name}")).and_then(Value::as_integer)?;
        Some(tidemill_market::timestamp::format_ms(ts_ms).chars().take(10).collect::<String>())
    };
    let days = |ms: i64| format!("{} d", ms as f64 / 86_400_000.0);
    let parts = [
        date("from_ms").map(|day| format!("from {day}")),
        date("to_ms").map(|day| format!("to {day}")),
        text("segments.split").map(|share| format!("in-sample the first {share}")),
        date("cut_ms").map(|day| format!("in-sample before {day}")),
        text("segments.folds").map(|folds| format!("{folds} folds")),
        date("holdout_from_ms").map(|day| format!("held out from {day}")),
        date("holdout_to_ms").map(|day| format!("held out to {day}")),
        at("segments.embargo_ms").and_then(Value::as_integer).map(|ms| format!("embargo {}", days(ms))),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

fn data<'a>(
    at: &impl Fn(&str) -> Option<&'a Value>,
    text: &impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let count = |path: &str, noun: &str| {
        let value = at(path).and_then(Value::as_integer).and_then(|count| u64::try_from(count).ok())?;
        Some(crate::number::counted(value, noun))
    };
    // What a sweep says of its data has the counts in it.
    text("about.data").or_else(|| {
        let parts = [count("data.symbols", "symbol"), count("data.bars", "bar")];
        Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(config: toml::Table) -> Facts {
        Facts::new(&StudyHeader {
            version: "0.1.0".into(),
            semantics: 2,
            seed: 7,
            data_hash: "abc".into(),
            config,
        })
    }

    #[test]
    fn a_header_without_a_configuration_still_says_seed_and_version() {
        let lines = facts(toml::Table::new()).lines();
        assert_eq!(lines, [("sampler", "seed 7".to_string()), ("version", "0.1.0, semantics 2".to_string())]);
    }

    #[test]
    fn everything_that_is_there_is_told() {
        let facts = facts(toml::toml! {
            fixed = { window = 30 }
            [about]
            data = "btc.csv, 12,345 bars of 1h"
            file = "ema.toml"
            [strategy]
            name = "ema"
            [objective]
            maximize = "sharpe"
            further = ["calmar"]
            require = "trades >= 30"
            reduce = "mean"
            [sweep]
            trials = 5000
            sampler = "nsga2"
            batch = 64
            lag = 1
            enqueue = [{ window = 3 }, { window = 4 }]
            [data]
            symbols = 2
            bars = 12345
        });
        let lines: Vec<String> = facts.lines().iter().map(|(name, text)| format!("{name}: {text}")).collect();
        assert_eq!(
            lines,
            [
                "strategy: ema (ema.toml)",
                "data: btc.csv, 12,345 bars of 1h",
                &format!("pool: {POOL_NOTE}"),
                "objective: sharpe; calmar, mean of segments, where trades >= 30",
                "sampler: nsga2, seed 7, batch 64, lag 1, after 2 known points",
                "fixed: window=30",
                "version: 0.1.0, semantics 2",
            ]
        );
        assert_eq!(facts.asked, Some(5000));
        assert_eq!(facts.objective_names(2), ["sharpe", "calmar"]);
        assert_eq!(facts.objective_names(3), ["objective", "objective_2", "objective_3"]);
    }
}

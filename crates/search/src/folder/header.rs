//! The contents of `study.toml`, and the differences between two of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The contents of `study.toml`: the settings of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyHeader {
    /// Version of the program that made the study.
    pub version: String,
    /// Number of the rules by which trials are proposed and evaluated: results of different numbers do not belong together.
    #[serde(default = "first_semantics")]
    pub semantics: u32,
    /// Seed of the sampler.
    #[serde(serialize_with = "write_seed", deserialize_with = "read_seed")]
    pub seed: u64,
    /// Hash of the data that was searched on.
    pub data_hash: String,
    /// The resolved configuration.
    pub config: toml::Table,
}

/// Studies made before the rules had a number do not name it.
fn first_semantics() -> u32 {
    1
}

/// The table of the configuration that only describes: what is in it may differ when a study is resumed.
const ABOUT: &str = "about";

/// `study.toml` as a whole: the layout version stands first, so that a later one can be recognised.
#[derive(Serialize, Deserialize)]
pub(super) struct HeaderFile<T> {
    pub(super) format: u32,
    #[serde(flatten)]
    pub(super) header: T,
}

/// One setting in which a stored study and the requested one differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The setting, with the names of its tables: `sweep.sampler`.
    pub key: String,
    /// The stored value; `None` if the setting is absent.
    pub stored: Option<String>,
    /// The requested value; `None` if the setting is absent.
    pub asked: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(stored), Some(asked)) = (&self.stored, &self.asked)
            && (stored.contains('\n') || asked.contains('\n'))
        {
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
            let (stored, asked) = (lines(stored), lines(asked));
            let same = stored.iter().zip(&asked).take_while(|(stored, asked)| stored == asked).count();
            let line =
                |lines: &[String]| lines.get(same).map_or_else(|| "the end".into(), |line| shown(line));
            let (stored, asked) = (line(&stored), line(&asked));
            return write!(f, "{}, line {}: {stored} in the study, {asked} requested", self.key, same + 1);
        }
        let text = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), shown);
        write!(f, "{}: {} in the study, {} requested", self.key, text(&self.stored), text(&self.asked))
    }
}

/// A value short enough for a line.
fn shown(value: &str) -> String {
    const MAX_CHARS: usize = 72;
    let value = value.trim();
    if value.chars().count() <= MAX_CHARS {
        return value.to_owned();
    }
    value.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}

impl StudyHeader {
    /// Every setting in which a study with this header differs from one with the `asked` header, by name.
    pub fn differences(&self, asked: &Self) -> Vec<Difference> {
        let (stored, asked) = (self.settings(), asked.settings());
        let keys: std::collections::BTreeSet<&String> = stored.keys().chain(asked.keys()).collect();
        keys.into_iter()
            .filter(|key| stored.get(*key) != asked.get(*key))
            .map(|key| Difference {
                key: key.clone(),
                stored: stored.get(key).cloned(),
                asked: asked.get(key).cloned(),
            })
            .collect()
    }

    /// All settings as text, so that NaN equals itself, by their dotted names. The version of the program is no setting, and neither is
    /// what stands under `ABOUT`.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        settings.insert("seed".to_owned(), self.seed.to_string());
        settings.insert("data_hash".to_owned(), self.data_hash.clone());
        for (key, value) in self.config.iter().filter(|(key, _)| *key != ABOUT) {
            flatten(key, value, &mut settings);
        }
        settings
    }
}

fn flatten(key: &str, value: &toml::Value, into: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, into));
        }
        toml::Value::String(text) => drop(into.insert(key.to_owned(), text.clone())),
        other => drop(into.insert(key.to_owned(), other.to_string())),
    }
}

/// TOML integers are signed, so that a seed above their range is written as text.
fn write_seed<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(seed) => serializer.serialize_i64(seed),
        Err(_) => serializer.serialize_str(&seed.to_string()),
    }
}

fn read_seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seed {
        Number(u64),
        Text(String),
    }
    match Seed::deserialize(deserializer)? {
        Seed::Number(seed) => Ok(seed),
        Seed::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(config: toml::Table) -> StudyHeader {
        StudyHeader { version: "0.1.0".into(), semantics: 1, seed: 1, data_hash: "abc".into(), config }
    }

    fn lines(stored: &StudyHeader, asked: &StudyHeader) -> Vec<String> {
        stored.differences(asked).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_difference_is_listed_and_the_version_is_none() {
        let stored = header(toml::toml! {
            [strategy]
            source = "a\nb = 1\n"
            [sweep]
            sampler = "sobol"
            trials = 100
            ratio = nan
            old = true
        });
        let mut asked = header(toml::toml! {
            [strategy]
            source = "a\nb = 2\n"
            [sweep]
            sampler = "auto"
            trials = 100
            ratio = nan
            lag = 1
        });
        assert!(lines(&stored, &stored).is_empty());
        asked.version = "9.0.0".into();
        asked.seed = 2;
        assert_eq!(
            lines(&stored, &asked),
            [
                "seed: 1 in the study, 2 requested",
                "strategy.source, line 2: b = 1 in the study, b = 2 requested",
                "sweep.lag: nothing in the study, 1 requested",
                "sweep.old: true in the study, nothing requested",
                "sweep.sampler: sobol in the study, auto requested",
            ]
        );
        let mut other = stored.clone();
        other.data_hash = "x".repeat(500);
        assert!(lines(&stored, &other)[0].len() < 150);
    }
}

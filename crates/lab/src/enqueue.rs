//! Parameter sets to begin a search with, as users give them: typed, from a JSON file, or the best of another study.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;
use tidemill_backtest::Strategy;
use tidemill_search::Value;

use crate::config::{NamedSet, shown};
use crate::error::LabError;
use crate::stored::StoredStudy;

/// The best trials of a study folder that are tried first.
const FROM_STUDY: usize = 10;

/// Parameter sets that are tried first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuedSets {
    /// The sets, in the order in which they are tried.
    pub sets: Vec<NamedSet>,
    /// What was left out of them.
    pub notes: Vec<String>,
}

impl QueuedSets {
    /// Reads `NAME=VALUE,…`, JSON files (an object, a list of objects, or what `--json` of a sweep or a study prints) and study folders.
    ///
    /// What a person typed has to fit the strategy, which the search checks. A study may be of an earlier form of the strategy: parameters
    /// that this one does not have, or has fixed, are left out.
    pub fn read(arguments: &[String], strategy: &Strategy) -> Result<Self, LabError> {
        let mut queued = Self::default();
        for argument in arguments {
            let path = Path::new(argument);
            let wrong = |reason: String| LabError::EnqueueArgument { argument: argument.clone(), reason };
            if path.is_dir() {
                queued.extend_from_study(argument, strategy)?;
            } else if argument.contains('=') && !path.exists() {
                queued.sets.push(pairs(argument).map_err(wrong)?);
            } else {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    wrong(format!("neither NAME=VALUE, a study folder nor a file that can be read: {error}"))
                })?;
                let json = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
                let n_before = queued.sets.len();
                collect(&json, &mut queued.sets).map_err(wrong)?;
                if queued.sets.len() == n_before {
                    return Err(wrong("there are no parameter sets in it".into()));
                }
            }
        }
        Ok(queued)
    }

    /// Adds the best sets of a study.
    fn extend_from_study(&mut self, argument: &str, strategy: &Strategy) -> Result<(), LabError> {
        let wrong =
            |reason: &str| LabError::EnqueueArgument { argument: argument.into(), reason: reason.into() };
        let study = StoredStudy::open(Path::new(argument))?;
        let survey = study.survey()?;
        let best = survey.best(FROM_STUDY);
        if best.is_empty() {
            return Err(wrong("the study has no valid trial to begin with"));
        }
        let names: Vec<&str> = survey.axes.0.iter().map(|axis| axis.name.as_str()).collect();
        let spec = |name: &str| strategy.params.iter().find(|param| param.name == name);
        let is_free = |name: &str| spec(name).is_some_and(|param| param.fixed.is_none());
        if !names.iter().any(|name| is_free(name)) {
            return Err(wrong("the study has no parameter that is searched here"));
        }
        let mut note = |what: &str, is_meant: &dyn Fn(&str) -> bool| {
            let left_out: Vec<&str> = names.iter().copied().filter(|name| is_meant(name)).collect();
            if !left_out.is_empty() {
                let named = left_out.join(", ");
                self.notes.push(format!("--enqueue {argument}: left out what is {what}: {named}"));
            }
        };
        note("no parameter of this strategy", &|name| spec(name).is_none());
        // What was not searched there either is nothing to speak of.
        let was_searched = |name: &str| !study.config.fixed.contains_key(name);
        note("fixed here", &|name| spec(name).is_some() && !is_free(name) && was_searched(name));
        let rows = study.rows(&survey, &best.iter().copied().collect())?;
        let mut seen = BTreeSet::new();
        for row in rows.of(&best) {
            let values = names.iter().zip(&row.params).filter(|(name, _)| is_free(name));
            let set: NamedSet =
                values.filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?))).collect();
            if seen.insert(shown(&set)) {
                self.sets.push(set);
            }
        }
        Ok(())
    }
}

fn pairs(text: &str) -> Result<NamedSet, String> {
    text.split(',')
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), plain(value.trim()))),
            _ => Err(format!("`{pair}` is not NAME=VALUE")),
        })
        .collect()
}

/// A value without quotes: a switch, a number or a name.
fn plain(text: &str) -> Value {
    match text.parse::<bool>() {
        Ok(value) => Value::Bool(value),
        Err(_) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(value), _) => Value::Int(value),
            (_, Ok(value)) => Value::Float(value),
            _ => Value::Text(text.into()),
        },
    }
}

fn collect(json: &Json, sets: &mut Vec<NamedSet>) -> Result<(), String> {
    match json {
        Json::Array(list) => list.iter().try_for_each(|item| collect(item, sets)),
        Json::Object(map) => {
            if let Some(inner) = map.get("best").or_else(|| map.get("parameters")) {
                return collect(inner, sets);
            }
            let mut set = NamedSet::new();
            for (name, value) in map {
                // An inactive parameter has no value.
                if !value.is_null() {
                    let parsed = serde_json::from_value(value.clone())
                        .map_err(|_| format!("`{name}` is {value}, which is no parameter value"))?;
                    set.push((name.clone(), parsed));
                }
            }
            sets.push(set);
            Ok(())
        }
        other => Err(format!("expected parameter sets, found {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped::open_strategy;

    fn read(argument: &str) -> Result<QueuedSets, LabError> {
        let strategy = open_strategy("zscore-dip", &Default::default()).unwrap();
        QueuedSets::read(&[argument.into()], &strategy)
    }

    #[test]
    fn pairs_and_json_name_the_same_sets() {
        let typed = read("fast=12, use_stop=true,k=0.5,mode=wide").unwrap();
        assert_eq!(shown(&typed.sets[0]), "fast=12,use_stop=true,k=0.5,mode=wide");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sets.json");
        std::fs::write(&file, r#"{"best": [{"trial": 3, "parameters": {"fast": 12, "tail": null}}]}"#)
            .unwrap();
        let stored = read(&file.display().to_string()).unwrap();
        assert_eq!(stored.sets, [vec![("fast".to_string(), Value::Int(12))]]);
    }

    #[test]
    fn what_is_neither_is_refused_with_its_name() {
        for (argument, reason) in
            [("nosuch.json", "nosuch.json"), ("fast=1,slow", "`slow` is not NAME=VALUE")]
        {
            let error = read(argument).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let error = read(&dir.path().display().to_string()).unwrap_err().to_string();
        assert!(error.contains("is not a study"), "{error}");
    }
}

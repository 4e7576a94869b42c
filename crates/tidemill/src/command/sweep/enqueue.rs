//! Parameter sets to begin with, as users give them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tidemill_lab::NamedSet;
use tidemill_search::Value;

/// Reads `NAME=VALUE,…` and JSON files: an object, a list of objects, or what `--json` of a sweep or a study prints.
pub fn read(arguments: &[String]) -> Result<Vec<NamedSet>> {
    let mut sets = Vec::new();
    for argument in arguments {
        if argument.contains('=') && !Path::new(argument).exists() {
            sets.push(pairs(argument)?);
        } else {
            let text = std::fs::read_to_string(argument).with_context(|| {
                format!("--enqueue {argument}: neither NAME=VALUE nor a file that can be read")
            })?;
            let json = serde_json::from_str(&text).with_context(|| format!("--enqueue {argument}"))?;
            let before = sets.len();
            collect(&json, &mut sets).with_context(|| format!("--enqueue {argument}"))?;
            if sets.len() == before {
                bail!("--enqueue {argument}: there are no parameter sets in it");
            }
        }
    }
    Ok(sets)
}

fn pairs(text: &str) -> Result<NamedSet> {
    text.split(',')
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), plain(value.trim()))),
            _ => bail!("--enqueue {text}: `{pair}` is not NAME=VALUE"),
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

fn collect(json: &serde_json::Value, sets: &mut Vec<NamedSet>) -> Result<()> {
    match json {
        serde_json::Value::Array(list) => list.iter().try_for_each(|item| collect(item, sets)),
        serde_json::Value::Object(map) => {
            if let Some(inner) = map.get("best").or_else(|| map.get("parameters")) {
                return collect(inner, sets);
            }
            let mut set = NamedSet::new();
            for (name, value) in map {
                // An inactive parameter has no value.
                if !value.is_null() {
                    let value = serde_json::from_value(value.clone())
                        .with_context(|| format!("`{name}` is {value}, which is no parameter value"))?;
                    set.push((name.clone(), value));
                }
            }
            sets.push(set);
            Ok(())
        }
        other => bail!("expected parameter sets, found {other}"),
    }
}

#[cfg(test)]
mod tests {
    use tidemill_lab::config::shown;

    use super::*;

    #[test]
    fn pairs_and_json_name_the_same_sets() {
        let typed = read(&["fast=12, use_stop=true,k=0.5,mode=wide".into()]).unwrap();
        assert_eq!(shown(&typed[0]), "fast=12,use_stop=true,k=0.5,mode=wide");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sets.json");
        std::fs::write(&file, r#"{"best": [{"trial": 3, "parameters": {"fast": 12, "tail": null}}]}"#)
            .unwrap();
        let stored = read(&[file.display().to_string()]).unwrap();
        assert_eq!(stored, [vec![("fast".to_string(), Value::Int(12))]]);
    }

    #[test]
    fn what_is_neither_is_refused_with_its_name() {
        for (argument, reason) in
            [("nosuch.json", "nosuch.json"), ("fast=1,slow", "`slow` is not NAME=VALUE")]
        {
            let error = read(&[argument.into()]).unwrap_err();
            assert!(format!("{error:#}").contains(reason), "{error:#}");
        }
    }
}

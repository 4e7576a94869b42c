//! One Parquet part: its columns, its name, and the way from points to Arrow arrays.
//!
//! Columns are `trial`, the parameters, the metrics and `objective`. Integers are Int64, floats and numeric choices Float64, other
//! choices Utf8, switches Boolean; null stands for an inactive parameter, an undefined metric or an invalid trial. Each column
//! carries its role as metadata, so that a reader need not know the space.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::domain::{Choice, Domain};
use crate::folder::{FolderError, durable};
use crate::space::Space;
use crate::value::Value;

/// Name of the column that counts the trials.
pub(super) const TRIAL: &str = "trial";

/// Name of the column that holds the score.
pub(super) const OBJECTIVE: &str = "objective";

/// Metadata key that tells parameters from metrics.
pub(super) const ROLE: &str = "tidemill.role";

/// Metadata key of a parameter's own name, where the column had to take another.
pub(super) const NAME: &str = "tidemill.name";

/// Role of a parameter.
pub(super) const ROLE_PARAM: &str = "param";

/// Role of a metric.
pub(super) const ROLE_METRIC: &str = "metric";

/// The columns of the parts of one study.
pub(super) fn schema(space: &Space, metric_names: &[&str]) -> Result<Schema, FolderError> {
    let mut taken = BTreeSet::from([TRIAL, OBJECTIVE]);
    for name in metric_names {
        if !taken.insert(name) {
            return Err(FolderError::ColumnName { name: (*name).to_owned() });
        }
    }
    let param_field = |param: &crate::space::Param| {
        // A parameter may be called like a metric; the column then says what it is.
        let name = if taken.contains(param.name.as_str()) {
            format!("param:{}", param.name)
        } else {
            param.name.clone()
        };
        let metadata = [(ROLE, ROLE_PARAM), (NAME, &param.name)];
        Field::new(name, data_type(&param.domain), true).with_metadata(owned(&metadata))
    };
    let metric_field = |name: &&str| {
        Field::new(*name, DataType::Float64, true).with_metadata(owned(&[(ROLE, ROLE_METRIC), (NAME, name)]))
    };
    let mut fields = vec![Field::new(TRIAL, DataType::UInt64, false)];
    fields.extend(space.params.iter().map(param_field));
    fields.extend(metric_names.iter().map(metric_field));
    fields.push(Field::new(OBJECTIVE, DataType::Float64, true));
    Ok(Schema::new(fields))
}

/// The encoded values of one parameter as an Arrow column.
pub(super) fn param_array(domain: &Domain, values: &[f64]) -> ArrayRef {
    match (domain, data_type(domain)) {
        (_, DataType::Int64) => {
            let decode = |value: &f64| value.is_finite().then_some(*value as i64);
            Arc::new(values.iter().map(decode).collect::<Int64Array>())
        }
        (_, DataType::Boolean) => {
            let decode = |value: &f64| value.is_finite().then_some(*value != 0.0);
            Arc::new(values.iter().map(decode).collect::<BooleanArray>())
        }
        (Domain::Choice { .. }, DataType::Float64) => {
            let decode = |value: &f64| match domain.decode(*value) {
                Some(Value::Float(number)) => Some(number),
                _ => None,
            };
            Arc::new(values.iter().map(decode).collect::<Float64Array>())
        }
        (Domain::Choice { .. }, _) => {
            let decode = |value: &f64| domain.decode(*value).map(|value| value.to_string());
            Arc::new(values.iter().map(decode).collect::<StringArray>())
        }
        _ => number_array(values),
    }
}

/// Numbers as an Arrow column; what is not finite becomes null.
pub(super) fn number_array(values: &[f64]) -> ArrayRef {
    Arc::new(values.iter().map(|value| value.is_finite().then_some(*value)).collect::<Float64Array>())
}

/// The encoded value of a decoded one that was read from a part, where mixed choices are all text.
pub(super) fn encode(domain: &Domain, value: &Value) -> Option<f64> {
    match (domain, value) {
        (Domain::Choice { options }, Value::Text(text)) => {
            let is_option = |option: &Choice| match option {
                Choice::Text(name) => name == text,
                Choice::Number(number) => number.to_string() == *text,
            };
            options.iter().position(is_option).map(|option_idx| option_idx as f64)
        }
        _ => domain.encode(value),
    }
}

/// Path of a part by its number.
pub(super) fn path(trials_dir: &Path, part_idx: usize) -> PathBuf {
    trials_dir.join(format!("part-{part_idx:06}.parquet"))
}

/// The parts of a folder in order. They are numbered from 0 without a gap; a gap means that a file was removed.
pub(super) fn list(trials_dir: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(trials_dir).map_err(FolderError::io("list", trials_dir))? {
        let name = entry.map_err(FolderError::io("list", trials_dir))?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("part-")?.strip_suffix(".parquet"))
            .and_then(|digits| digits.parse::<usize>().ok());
        numbers.extend(number);
    }
    for (expected, found) in numbers.iter().enumerate() {
        if expected != *found {
            let problem = "this part is missing, and later ones are there".to_owned();
            return Err(FolderError::Part { path: path(trials_dir, expected), problem });
        }
    }
    Ok((0..numbers.len()).map(|part_idx| path(trials_dir, part_idx)).collect())
}

/// Removes what a killed writer left.
pub(super) fn remove_leftovers(trials_dir: &Path) -> Result<(), FolderError> {
    for entry in fs::read_dir(trials_dir).map_err(FolderError::io("list", trials_dir))? {
        let path = entry.map_err(FolderError::io("list", trials_dir))?.path();
        if durable::is_temporary(&path) {
            fs::remove_file(&path).map_err(FolderError::io("remove", &path))?;
        }
    }
    Ok(())
}

fn data_type(domain: &Domain) -> DataType {
    match domain {
        Domain::Float { .. } => DataType::Float64,
        Domain::Int { .. } => DataType::Int64,
        Domain::Bool => DataType::Boolean,
        Domain::Choice { options } => {
            let all_numbers = options.iter().all(|option| matches!(option, Choice::Number(_)));
            if all_numbers { DataType::Float64 } else { DataType::Utf8 }
        }
    }
}

fn owned(metadata: &[(&str, &str)]) -> HashMap<String, String> {
    metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

//! The columns of the trials of one study: what they are called, what they hold, in which order.
//!
//! Columns are `trial`, the parameters, the metrics and the objectives (`objective`, `objective_2`, …). Integers are Int64, floats
//! and numeric choices Float64, other choices Utf8, switches Boolean; null stands for an inactive parameter, an undefined metric or
//! an invalid trial. Each column carries its role as metadata, so that a reader need not know the space.

use std::collections::{BTreeSet, HashMap};

use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use crate::folder::FolderError;
use crate::folder::column::Kind;
use crate::space::Space;

/// Name of the column that counts the trials.
pub(super) const TRIAL: &str = "trial";

/// Name of the column that holds the score, and start of the names of further ones.
pub(super) const OBJECTIVE: &str = "objective";

/// Metadata key that tells parameters from metrics.
const ROLE: &str = "tidemill.role";

/// Metadata key of a parameter's own name, where the column had to take another.
const NAME: &str = "tidemill.name";

/// Role of a parameter.
const ROLE_PARAM: &str = "param";

/// Role of a metric.
const ROLE_METRIC: &str = "metric";

/// Role of an objective after the first.
const ROLE_OBJECTIVE: &str = "objective";

/// What a column of a part holds.
pub(super) enum Role<'a> {
    /// The numbers of the trials.
    Trial,
    /// A parameter, by its own name.
    Param(&'a str),
    /// A metric, by its own name.
    Metric(&'a str),
    /// The first objective.
    Objective,
    /// An objective after the first.
    FurtherObjective,
}

impl<'a> Role<'a> {
    /// The role of a column; a column that someone else added has none.
    pub(super) fn of(field: &'a Field) -> Option<Self> {
        let own_name = || field.metadata().get(NAME).unwrap_or(field.name()).as_str();
        match (field.name().as_str(), field.metadata().get(ROLE).map(String::as_str)) {
            (_, Some(ROLE_PARAM)) => Some(Self::Param(own_name())),
            (_, Some(ROLE_METRIC)) => Some(Self::Metric(own_name())),
            (_, Some(ROLE_OBJECTIVE)) => Some(Self::FurtherObjective),
            (TRIAL, _) => Some(Self::Trial),
            (OBJECTIVE, _) => Some(Self::Objective),
            _ => None,
        }
    }
}

/// The columns of the trials of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Layout {
    /// The parameters by name, in the order of the space.
    pub(super) params: Vec<(String, Kind)>,
    /// The metrics.
    pub(super) metrics: Vec<String>,
    /// Number of objectives, at least one.
    pub(super) n_objectives: usize,
}

impl Layout {
    /// The layout of trials of a space.
    pub(super) fn new(
        space: &Space,
        metric_names: &[&str],
        n_objectives: usize,
    ) -> Result<Self, FolderError> {
        let n_objectives = n_objectives.max(1);
        let mut taken: BTreeSet<String> = (0..n_objectives).map(objective_name).collect();
        taken.insert(TRIAL.to_owned());
        for name in metric_names {
            if !taken.insert((*name).to_owned()) {
                return Err(FolderError::ColumnName { name: (*name).to_owned() });
            }
        }
        Ok(Self {
            params: space.params.iter().map(|p| (p.name.clone(), Kind::of(&p.domain))).collect(),
            metrics: metric_names.iter().map(|name| (*name).to_owned()).collect(),
            n_objectives,
        })
    }

    /// Number of columns without the trial numbers.
    pub(super) fn n_columns(&self) -> usize {
        self.params.len() + self.metrics.len() + self.n_objectives
    }

    /// The columns as Arrow describes them.
    pub(super) fn schema(&self) -> Schema {
        let params = self.params.iter().map(|(name, kind)| (name.as_str(), kind.data_type()));
        let metrics: Vec<&str> = self.metrics.iter().map(String::as_str).collect();
        schema(params, &metrics, self.n_objectives)
    }
}

/// Name of the column of an objective.
pub(super) fn objective_name(objective_idx: usize) -> String {
    if objective_idx == 0 { OBJECTIVE.to_owned() } else { format!("{OBJECTIVE}_{}", objective_idx + 1) }
}

/// The columns of trials with these parameters and metrics.
pub(super) fn schema<'a>(
    params: impl Iterator<Item = (&'a str, DataType)>,
    metrics: &[&str],
    n_objectives: usize,
) -> Schema {
    let objectives: Vec<String> = (0..n_objectives).map(objective_name).collect();
    let is_taken =
        |name: &str| name == TRIAL || metrics.contains(&name) || objectives.iter().any(|own| own == name);
    let param_field = |(name, data_type): (&str, DataType)| {
        // A parameter may be called like a metric; the column then says what it is.
        let column = if is_taken(name) { format!("param:{name}") } else { name.to_owned() };
        Field::new(column, data_type, true).with_metadata(owned(&[(ROLE, ROLE_PARAM), (NAME, name)]))
    };
    let number = |name: &str| Field::new(name, DataType::Float64, true);
    let mut fields = vec![Field::new(TRIAL, DataType::UInt64, false)];
    fields.extend(params.map(param_field));
    fields.extend(
        metrics.iter().map(|name| number(name).with_metadata(owned(&[(ROLE, ROLE_METRIC), (NAME, name)]))),
    );
    fields.extend(objectives.iter().enumerate().map(|(objective_idx, name)| match objective_idx {
        0 => number(name),
        _ => number(name).with_metadata(owned(&[(ROLE, ROLE_OBJECTIVE)])),
    }));
    Schema::new(fields)
}

fn owned(metadata: &[(&str, &str)]) -> HashMap<String, String> {
    metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

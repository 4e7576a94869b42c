//! Strategies: one language, read by the parser of the command line.

use pyo3::prelude::*;
use serde_json::{Value, json};
use tidemill_backtest::{Overrides, Strategy};
use tidemill_lab::shipped::SHIPPED;
use tidemill_lab::{LabError, backtest::decoded};
use tidemill_search::{Choice, Domain};

use crate::attend::released;
use crate::error;

/// What is laid over the text of a strategy.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct StrategyOptions {
    profile: Option<String>,
    set: Vec<(String, String)>,
    objective: Vec<String>,
}

impl From<StrategyOptions> for Overrides {
    fn from(options: StrategyOptions) -> Self {
        Self { profile: options.profile, set: options.set, objectives: options.objective }
    }
}

/// A strategy that was read.
#[pyclass(frozen, module = "tidemill._tidemill")]
pub struct RawStrategy {
    /// The strategy.
    pub strategy: Strategy,
}

/// Opens a file by path or a shipped strategy by name.
#[pyfunction]
pub fn open_strategy(py: Python<'_>, name: &str, options: StrategyOptions) -> PyResult<RawStrategy> {
    let strategy = released(py, || tidemill_lab::open_strategy(name, &options.into()))?;
    Ok(RawStrategy { strategy: strategy.map_err(|error| error::of_lab(py, &error))? })
}

/// Name and text of the shipped strategies.
#[pyfunction]
pub fn shipped() -> Vec<(&'static str, &'static str)> {
    SHIPPED.to_vec()
}

#[pymethods]
impl RawStrategy {
    /// Reads a text; `file` is the name shown in messages.
    #[new]
    fn new(py: Python<'_>, file: &str, source: &str, options: StrategyOptions) -> PyResult<Self> {
        let strategy = released(py, || Strategy::parse(file, source, &options.into()))?;
        let strategy = strategy.map_err(|error| error::of_lab(py, &LabError::from(error)))?;
        Ok(Self { strategy })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.strategy.name
    }

    /// The file it came from, or what stands for it.
    #[getter]
    fn file(&self) -> &str {
        &self.strategy.file
    }

    /// The text.
    #[getter]
    fn source(&self) -> &str {
        &self.strategy.source
    }

    /// What is laid over the text.
    #[getter]
    fn laid_over(&self) -> StrategyOptions {
        let Overrides { profile, set, objectives } = self.strategy.overrides.clone();
        StrategyOptions { profile, set, objective: objectives }
    }

    /// Its profiles.
    #[getter]
    fn profiles(&self) -> Vec<String> {
        self.strategy.profiles.clone()
    }

    /// What a search maximises.
    #[getter]
    fn objectives(&self) -> Vec<String> {
        self.strategy.objective_texts().into_iter().map(str::to_owned).collect()
    }

    /// The parameters as JSON: name, domain, default, fixed value.
    fn params(&self) -> String {
        let params = self.strategy.params.iter().map(|param| {
            json!({
                "name": param.name,
                "domain": domain(&param.domain),
                "default": decoded(&param.domain, param.default),
                "fixed": param.fixed.map(|value| decoded(&param.domain, value)),
            })
        });
        Value::Array(params.collect()).to_string()
    }
}

/// The values that a parameter may take, with the keys of a strategy file.
fn domain(domain: &Domain) -> Value {
    match domain {
        Domain::Float { low, high, step, log } => json!({ "float": [low, high], "step": step, "log": log }),
        Domain::Int { low, high, step, log } => json!({ "int": [low, high], "step": step, "log": log }),
        Domain::Bool => json!({ "bool": true }),
        Domain::Choice { options } => {
            let options = options.iter().map(|option| match option {
                Choice::Text(text) => json!(text),
                Choice::Number(number) => json!(number),
            });
            json!({ "choice": options.collect::<Vec<_>>() })
        }
    }
}

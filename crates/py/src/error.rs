//! Errors of the library as exceptions of the package, which are declared in `python/tidemill/_error.py`.

use std::path::Path;

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use tidemill_backtest::StrategyError;
use tidemill_lab::LabError;
use tidemill_market::MarketError;
use tidemill_search::{FolderError, StudyError};

/// An exception of the package by the name of its class.
pub fn raised(py: Python<'_>, class: &str, message: &str) -> PyErr {
    exception(py, class, (message,))
}

fn exception<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("tidemill._error").and_then(|module| module.getattr(class)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Something that should not happen.
pub fn defect(py: Python<'_>, message: &str) -> PyErr {
    raised(
        py,
        "Error",
        &format!("Tidemill failed unexpectedly: {message}\n  hint: please report this as a defect"),
    )
}

/// The exception of an error of the library.
pub fn of_lab(py: Python<'_>, error: &LabError) -> PyErr {
    let text = in_full(error);
    match error {
        LabError::Strategy(error) => of_strategy(py, error),
        LabError::Market(error) => of_market(py, error),
        LabError::Io { error, .. } => of_io(error, text),
        LabError::Folder(error) => of_folder(py, error),
        LabError::Study(error) => match &**error {
            StudyError::Folder(error) => of_folder(py, error),
            _ => raised(py, "StudyError", &text),
        },
        LabError::Window { error, .. } => of_lab(py, error),
        LabError::NoStrategy { .. } | LabError::Space(_) | LabError::NothingToSearch => {
            raised(py, "StrategyError", &text)
        }
        LabError::BenchmarkData(_) | LabError::BenchmarkSymbols { .. } | LabError::NoBenchmark { .. } => {
            raised(py, "DataError", &text)
        }
        LabError::Segments(_)
        | LabError::Cut { .. }
        | LabError::NoClosedBar { .. }
        | LabError::Embargo(_)
        | LabError::Sampler(_)
        | LabError::Enqueue(_)
        | LabError::EnqueueArgument { .. }
        | LabError::Windows(_) => PyValueError::new_err(text),
        LabError::NoDevice { .. } | LabError::Device { .. } | LabError::Parity { .. } => {
            raised(py, "DeviceError", &text)
        }
        _ => raised(py, "StudyError", &text),
    }
}

/// The exception of an error about data.
pub fn of_market(py: Python<'_>, error: &MarketError) -> PyErr {
    match error {
        MarketError::NotFound { .. } => PyFileNotFoundError::new_err(error.to_string()),
        MarketError::Io { .. } | MarketError::Write { .. } => PyOSError::new_err(error.to_string()),
        MarketError::Timeframe { .. } | MarketError::Span { .. } => PyValueError::new_err(error.to_string()),
        _ => raised(py, "DataError", &error.to_string()),
    }
}

fn of_strategy(py: Python<'_>, error: &StrategyError) -> PyErr {
    match error {
        StrategyError::Read { file, .. } if !Path::new(file).exists() => {
            PyFileNotFoundError::new_err(error.to_string())
        }
        StrategyError::Source(problems) => {
            let problems: Vec<(usize, usize, String, Option<String>)> = problems
                .places()
                .map(|(line, column, problem)| (line, column, problem.message.clone(), problem.hint.clone()))
                .collect();
            exception(py, "StrategyError", (error.to_string(), problems))
        }
        _ => raised(py, "StrategyError", &error.to_string()),
    }
}

/// The exception of an error of a study folder.
pub fn of_folder(py: Python<'_>, error: &FolderError) -> PyErr {
    match error {
        FolderError::Io { source, .. } | FolderError::Export { source } => of_io(source, in_full(error)),
        FolderError::NotAStudy { dir } if !dir.exists() => {
            PyFileNotFoundError::new_err(format!("there is no study in {}", dir.display()))
        }
        _ => raised(py, "StudyError", &in_full(error)),
    }
}

/// The exception that Python has for such an error of the system.
pub fn of_io(error: &std::io::Error, message: String) -> PyErr {
    PyErr::from(std::io::Error::new(error.kind(), message))
}

/// An error with all its causes.
fn in_full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

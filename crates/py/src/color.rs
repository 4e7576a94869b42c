//! Colourings of graphs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tidemill_coloring::phase::PhaseKind;
use tidemill_coloring::{ColoringError, Controller, Options, Quiet, read_graph};

use crate::attend::attended;
use crate::error;
use crate::study::runtime;

/// When a run ends, and what it is made with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ColorOptions {
    target: Option<usize>,
    time: Option<f64>,
    iterations: Option<u64>,
    passes: Option<u64>,
    patience: Option<u64>,
    min_delta: usize,
    seed: u64,
    phases: Option<Vec<String>>,
    device: String,
}

impl ColorOptions {
    fn options(&self) -> PyResult<Options> {
        let wrong = |message: String| PyValueError::new_err(message);
        let time = match self.time {
            None => None,
            Some(seconds) => match Duration::try_from_secs_f64(seconds) {
                Ok(time) if seconds > 0.0 => Some(time),
                _ => return Err(wrong(format!("time={seconds}: expected a number of seconds above 0"))),
            },
        };
        let phases = match &self.phases {
            Some(names) => PhaseKind::listed(names).map_err(|error| wrong(error.to_string()))?,
            None => PhaseKind::defaults(),
        };
        Ok(Options {
            phases,
            seed: self.seed,
            target: self.target,
            time,
            max_iterations: self.iterations,
            max_passes: self.passes,
            patience: self.patience,
            min_delta: self.min_delta,
            ..Options::default()
        })
    }
}

/// Colours the graph in a file; the result is what `tidemill color --json` prints. Ctrl-C ends the run with an exception.
#[pyfunction]
pub fn color(py: Python<'_>, graph: PathBuf, options: ColorOptions) -> PyResult<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let run = options.options()?;
    let runtime = runtime(py, &options.device, &stop)?;
    let began = Instant::now();
    let done = attended(
        py,
        &stop,
        |_| Ok(()),
        || -> Result<_, ColoringError> {
            let instance = read_graph(&graph)?;
            let mut controller = Controller::new(&instance, run)?;
            for device in &runtime.devices.devices {
                controller = controller.on(device.clone(), runtime.devices.may_fall_back);
            }
            let outcome = controller.run(&mut Quiet, &stop)?;
            Ok((instance, outcome))
        },
    )?;
    let (instance, outcome) = done.map_err(|error| match graph.exists() {
        true => error::raised(py, "Error", &error.to_string()),
        false => pyo3::exceptions::PyFileNotFoundError::new_err(error.to_string()),
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let document = tidemill::result::coloring_document(&instance, &outcome, seconds);
    let document = document.map_err(|error| error::defect(py, &format!("{error:#}")))?;
    Ok(document.to_string())
}

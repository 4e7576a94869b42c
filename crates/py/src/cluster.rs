//! A cluster that Python reaches: the worker that one of its processes holds, and the transport whose methods a Python object has.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tidemill_fleet::{Transport, TransportEvent, Worker, WorkerId};
use tidemill_lab::{Cluster, WorkerOptions, study_worker};
use tidemill_search::EvaluateError;

use crate::attend::released;
use crate::bars::RawBars;
use crate::error;
use crate::study::runtime;

/// A worker: evaluates shards of any study that a coordinator tells it of. It keeps the data of the last one.
#[pyclass(frozen, module = "tidemill._tidemill")]
pub struct RawWorker {
    worker: Worker,
}

#[pymethods]
impl RawWorker {
    /// A worker that evaluates on this device; `bars` are used where they are the data of the study, which is else loaded by its paths.
    #[new]
    #[pyo3(signature = (device, bars=None, name=None))]
    fn new(py: Python<'_>, device: &str, bars: Option<&RawBars>, name: Option<String>) -> PyResult<Self> {
        let options = WorkerOptions {
            name,
            data: bars.map(|bars| bars.data.clone()),
            runtime: runtime(py, device, &Default::default())?,
            ..WorkerOptions::default()
        };
        let worker = released(py, || study_worker(options))?;
        Ok(Self { worker: worker.map_err(|error| error::of_io(&error, error.to_string()))? })
    }

    /// The answer to a frame; none to a farewell. Several threads may ask at a time.
    fn handle<'py>(&self, py: Python<'py>, frame: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let answer = released(py, || self.worker.handle(frame))?;
        Ok(answer.map(|answer| PyBytes::new(py, &answer)))
    }
}

/// Carries frames by the methods `submit`, `poll` and `dismiss` of an object; see `python/tidemill/_cluster.py`.
struct PythonTransport {
    object: Py<PyAny>,
    /// What `submit` or `dismiss` raised, which the next `poll` returns.
    failure: Option<PyErr>,
}

/// The workers that a Python object reaches.
pub fn cluster(transport: Py<PyAny>) -> Cluster {
    Cluster::new(Box::new(PythonTransport { object: transport, failure: None }))
}

impl PythonTransport {
    fn keep<T>(&mut self, done: PyResult<T>) {
        if let Err(error) = done {
            self.failure.get_or_insert(error);
        }
    }
}

impl Transport for PythonTransport {
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>) {
        let done = Python::attach(|py| {
            self.object.call_method1(py, "submit", (worker, PyBytes::new(py, &frame))).map(drop)
        });
        self.keep(done);
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        if let Some(error) = self.failure.take() {
            return Err(told(error));
        }
        Python::attach(|py| -> PyResult<Vec<TransportEvent>> {
            let events = self.object.call_method1(py, "poll", (timeout.as_secs_f64(),))?;
            let events: Vec<(String, WorkerId, Bound<'_, PyAny>)> = events.extract(py)?;
            events.into_iter().map(|(kind, worker, what)| event(&kind, worker, &what)).collect()
        })
        .map_err(told)
    }

    fn dismiss(&mut self, worker: WorkerId, may_return: bool) {
        let done =
            Python::attach(|py| self.object.call_method1(py, "dismiss", (worker, may_return)).map(drop));
        self.keep(done);
    }
}

fn event(kind: &str, worker: WorkerId, what: &Bound<'_, PyAny>) -> PyResult<TransportEvent> {
    Ok(match kind {
        "joined" => TransportEvent::Joined { worker, label: what.extract()? },
        "answered" => TransportEvent::Answered { worker, frame: what.cast::<PyBytes>()?.as_bytes().to_vec() },
        "lost" => TransportEvent::Lost { worker, reason: what.extract()? },
        "closed" => TransportEvent::Closed { reason: what.extract()? },
        _ => return Err(PyValueError::new_err(format!("a transport reported {kind:?}"))),
    })
}

/// An exception of the transport as the search passes it on.
fn told(error: PyErr) -> EvaluateError {
    format!("the cluster cannot be reached: {error}").into()
}

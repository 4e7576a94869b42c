//! The command line within the package.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;

use crate::attend::{attended, released};
use crate::cluster::cluster;

/// Runs the command line; the result is its exit code. `program` starts it in another process. Only the script calls it: it takes over Ctrl-C.
#[pyfunction]
pub fn run(py: Python<'_>, args: Vec<String>, program: Vec<OsString>) -> PyResult<i32> {
    if !program.is_empty() {
        tidemill::start_workers_by(program);
    }
    tidemill::open_clusters_by(|name, device| {
        let transport = Python::attach(|py| {
            let opened = py.import("tidemill._cluster")?.call_method1("opened", (name, device))?;
            Ok(opened.unbind())
        });
        // Of the exception what it says; its type and trace are of no use in a terminal.
        let said = |error: PyErr| Python::attach(|py| anyhow::anyhow!("{}", error.value(py)));
        transport.map(cluster).map_err(said)
    });
    released(py, || tidemill::run(args))
}

/// Panics inside, in short or in long work: the tests of the package look at what becomes of it.
#[pyfunction]
pub fn panic_for_test(py: Python<'_>, message: &str, is_long: bool) -> PyResult<()> {
    let work = || -> () { panic!("{message}") };
    if is_long { attended(py, &AtomicBool::new(false), |_| Ok(()), work) } else { released(py, work) }
}

/// Version of the program, and of what it computes.
#[pyfunction]
pub fn version() -> (&'static str, u32) {
    (env!("CARGO_PKG_VERSION"), tidemill_backtest::SEMANTICS)
}

/// Names the folders of Python packages, in which the wheel of NVRTC is looked for when the first kernel is compiled.
#[pyfunction]
pub fn look_for_nvrtc_in(folders: Vec<std::path::PathBuf>) {
    tidemill_gpu::look_for_nvrtc_in(folders);
}

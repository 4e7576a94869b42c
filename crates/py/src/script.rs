//! The command line within the package.

use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;

use crate::attend::{attended, released};

/// Runs the command line; the result is its exit code. Only the script calls it: it takes over Ctrl-C.
#[pyfunction]
pub fn run(py: Python<'_>, args: Vec<String>) -> PyResult<i32> {
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

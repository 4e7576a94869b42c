//! The command line within the package.

use pyo3::prelude::*;

/// Runs the command line; the result is its exit code. Only the script calls it: it takes over Ctrl-C.
#[pyfunction]
pub fn run(py: Python<'_>, args: Vec<String>) -> i32 {
    py.detach(|| tidemill::run(args))
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

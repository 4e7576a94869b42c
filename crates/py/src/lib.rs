//! `tidemill._tidemill`: what the Python package calls. Conversions only; the package around it is `python/tidemill`.
//!
//! Structured results cross as JSON and tables as Arrow's streams, so that no class has to be kept in step on both sides.

mod attend;
mod backtest;
mod bars;
mod cluster;
mod color;
mod error;
mod frame;
mod scan;
mod script;
mod signal;
mod strategy;
mod study;
mod walkforward;

use pyo3::prelude::*;

/// The native half of Tidemill.
#[pymodule]
mod _tidemill {
    #[pymodule_export]
    use crate::backtest::{RawBacktest, backtest, backtest_trial};
    #[pymodule_export]
    use crate::bars::{RawBars, generate, generated, load_frames, load_paths, unpack_bars};
    #[pymodule_export]
    use crate::cluster::RawWorker;
    #[pymodule_export]
    use crate::color::color;
    #[pymodule_export]
    use crate::frame::RawTable;
    #[pymodule_export]
    use crate::scan::scan;
    #[pymodule_export]
    use crate::script::{look_for_nvrtc_in, panic_for_test, run, version};
    #[pymodule_export]
    use crate::signal::{signal, signal_of_trial};
    #[pymodule_export]
    use crate::strategy::{RawStrategy, open_strategy, shipped};
    #[pymodule_export]
    use crate::study::{export, judge, stored_strategy, stored_sweep, study, study_html, sweep, trials};
    #[pymodule_export]
    use crate::walkforward::walkforward;
}

//! Everything that runs on a GPU, in one binary: the device runtime, the kernels of the indicators and of the trend classification, the
//! CUDA executor, the scanner, the searches for colourings, and whole sweeps with their verdicts.
//!
//! Where there is a GPU the kernels run on it, and under emulation on the host as well or instead. `TIDEMILL_REQUIRE_GPU=1` makes a missing GPU
//! a failure. The binary reads nothing from the source folder that it needs, so that it can be taken to a machine with a GPU.
//!
//! The tests of the runtime and of the kernels of other crates stand here and nowhere else, so that each is compiled once. What loses the
//! device to its process has a process of its own: `crates/gpu/tests`.

mod architecture;
mod atc;
mod coloring;
mod device;
mod executor;
mod indicator;
mod random;
mod runtime;
mod sanitize;
mod scan;
mod verdict;

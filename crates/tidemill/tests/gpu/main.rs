//! Everything that runs on a GPU, in one binary: the device runtime, the kernels of the indicators and of the trend classification, the
//! CUDA executor, the scanner, the searches for colourings, and whole sweeps with their verdicts.
//!
//! Where there is a GPU the kernels run on it, and under emulation on the host as well or instead. `TIDEMILL_REQUIRE_GPU=1` makes a missing GPU
//! a failure. The binary reads nothing from the source folder that it needs, so that it can be taken to a machine with a GPU.

mod architecture;
mod executor;
mod indicator;
mod sanitize;
mod scan;
mod verdict;

#[path = "../../../market/tests/atc_kernel.rs"]
mod atc_kernel;
#[path = "../../../gpu/tests/runtime/buffer.rs"]
mod buffer;
#[path = "../../../coloring/tests/kernel.rs"]
mod coloring;
#[path = "../../../gpu/tests/runtime/coordinator.rs"]
mod coordinator;
#[path = "../../../gpu/tests/runtime/fault.rs"]
mod fault;
#[path = "../../../gpu/tests/runtime/graph.rs"]
mod graph;
#[path = "../../../gpu/tests/runtime/hang.rs"]
mod hang;
#[path = "../../../gpu/tests/runtime/kernel.rs"]
mod kernel;
#[path = "../../../gpu/tests/runtime/pipeline.rs"]
mod pipeline;
#[path = "../../../gpu/tests/runtime/pool.rs"]
mod pool;
#[path = "../../../gpu/tests/runtime/rig.rs"]
mod rig;
#[path = "../../../gpu/tests/runtime/stream.rs"]
mod stream;
#[path = "../../../gpu/tests/runtime/timeline.rs"]
mod timeline;
#[path = "../../../gpu/tests/runtime/triple.rs"]
mod triple;

//! Phases that improved no result in measurements beside the others; none of them is on by default.
//!
//! They are complete, tested and chosen by `--phases` like all others; their kernels are compared with their twins. They are kept
//! apart so that a reader of the default search need not read them. docs/color.md names the measurement of each.
//!
//! | phases | files |
//! |---|---|
//! | `spectral`, `community`, `randomized` | first colourings: `spectral.rs` and `lanczos.rs`, `community.rs`, `randomized.rs` |
//! | `reservoir`, `transfer`, `inference` | priorities of vertices: `signal.rs`, `signal/` |
//! | `tempering`, `annealing` | replicas: `replica.rs`, `temper.rs`, `anneal.rs`, and `metropolis/`, their walks on CPU and GPU |

pub mod anneal;
pub(crate) mod community;
mod lanczos;
pub mod metropolis;
pub(crate) mod randomized;
pub(crate) mod replica;
pub mod signal;
pub(crate) mod spectral;
pub mod temper;

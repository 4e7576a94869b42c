//! The device runtime of Tidemill: streams, buffers and kernels, on CUDA and on the host.

pub mod emulate;

/// What every kernel text begins with: number types, "not available", and how a kernel is declared.
pub const TIDEMILL_CUH: &str = include_str!("tidemill.cuh");

//! The rules of the runtime, as tests. Every test runs on the host backend, and on the first CUDA device if there is one.

mod buffer;
mod coordinator;
mod fault;
mod fill;
mod hang;
mod kernel;
mod pipeline;
mod pool;
pub mod rig;
mod stream;
mod timeline;

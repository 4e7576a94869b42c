//! Graph colouring: graphs, the phases of a search on CPU and GPU, and the controller over them.

mod graph;

pub use graph::Graph;

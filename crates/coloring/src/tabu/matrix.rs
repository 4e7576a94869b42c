//! The neighbours of every vertex as bytes, for sums of whole rows.

use crate::Graph;

/// Rows of a dense graph as bytes, 1 for a neighbour. Nothing is kept of a sparse one.
#[derive(Clone, Debug)]
pub struct Matrix {
    stride: usize,
    bytes: Vec<u8>,
}

/// From one neighbour in so many vertices on, a graph is dense.
const DENSE_SHARE: usize = 32;

/// Most vertices of a graph that is kept as bytes.
const MOST_DENSE: usize = 8_192;

impl Matrix {
    /// The rows of a graph.
    pub fn new(graph: &Graph) -> Self {
        let n = graph.n();
        if n > MOST_DENSE || graph.n_edges() * 2 * DENSE_SHARE < n * n {
            return Self { stride: 0, bytes: Vec::new() };
        }
        let stride = n.next_multiple_of(64);
        let mut bytes = vec![0; n * stride];
        for vertex in 0..n {
            for &other in graph.neighbours(vertex) {
                bytes[vertex * stride + other as usize] = 1;
            }
        }
        Self { stride, bytes }
    }

    /// Whether rows of bytes are kept.
    pub fn is_dense(&self) -> bool {
        self.stride > 0
    }

    #[inline(always)]
    pub(crate) fn row(&self, vertex: usize) -> &[u8] {
        &self.bytes[vertex * self.stride..][..self.stride]
    }
}

/// A vertex of a graph.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) graph: &'a Graph,
    pub(super) matrix: &'a Matrix,
    pub(super) vertex: usize,
}

impl Place<'_> {
    /// Those of some vertices that are its neighbours.
    #[inline(always)]
    pub(super) fn neighbours_among(&self, others: &[u32], into: &mut Vec<u32>) {
        into.clear();
        into.resize(others.len(), 0);
        // Written first, kept if it is one: whether two vertices are neighbours is anybody's guess, for a processor too.
        let mut len = 0;
        if self.matrix.is_dense() {
            let row = self.matrix.row(self.vertex);
            for &other in others {
                into[len] = other;
                len += usize::from(row[other as usize]);
            }
        } else {
            for &other in others {
                into[len] = other;
                len += usize::from(self.graph.are_joined(self.vertex, other as usize));
            }
        }
        into.truncate(len);
    }
}

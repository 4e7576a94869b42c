//! A graph as it was given: its name, its edges, what was noticed about it. The verifier looks at this, the search at the [`Graph`].

use sha2::{Digest, Sha256};

use crate::graph::Graph;

/// The most vertices of a graph; its rows of bits then take half a gibibyte.
pub const MAX_VERTICES: usize = 65_536;

/// A graph with its name and its edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, without folder and ending.
    pub name: String,
    /// Number of vertices.
    pub n: usize,
    /// Its edges: each once, the smaller vertex first, ascending, from 0.
    edges: Vec<(u32, u32)>,
    /// The number of the first vertex in the file: 0 or 1.
    pub base: u32,
    /// What somebody should know about the file: counts that contradict each other, edges given twice.
    pub remarks: Vec<String>,
}

impl Instance {
    /// A graph of these edges, which may come more than once and in either direction.
    ///
    /// # Panics
    /// If an edge is a loop or names a vertex that is not in `0..n`.
    pub fn new(name: impl Into<String>, n: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
        assert!(
            edges.iter().all(|(a, b)| a < b && (*b as usize) < n),
            "an edge joins two vertices of 0..{n}"
        );
        edges.sort_unstable();
        edges.dedup();
        Self { name: name.into(), n, edges, base: 1, remarks: Vec::new() }
    }

    /// Its edges: each once, the smaller vertex first, ascending, from 0.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The form that the search works on.
    pub fn graph(&self) -> Graph {
        Graph::new(self.n, self.edges.iter().copied())
    }

    /// SHA-256 of the edges as text: a line `u v` each, vertices from 1, `u < v`, ascending.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for (a, b) in &self.edges {
            hash.update(format!("{} {}\n", a + 1, b + 1));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The graph as DIMACS text.
    pub fn dimacs(&self) -> String {
        let mut text = format!("c {}\np edge {} {}\n", self.name, self.n, self.edges.len());
        for (a, b) in &self.edges {
            text += &format!("e {} {}\n", a + 1, b + 1);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_kept_once_and_in_order() {
        let instance = Instance::new("path", 4, [(3, 2), (0, 1), (1, 0), (2, 1)]);
        assert_eq!(instance.edges(), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(instance.graph().n_edges(), 3);
        // printf '1 2\n2 3\n3 4\n' | sha256sum
        assert_eq!(instance.sha256(), "fb51586a71da85d9be59cc22be49c448baf6591becdf562411582553c901297e");
    }
}

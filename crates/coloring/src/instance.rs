//! A graph as it was given: its name, its edges, what was noticed about it. The verifier looks at this, the search at the [`Graph`].

use std::io::Write;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::graph::Graph;

/// The most vertices of a graph. Searches keep a few numbers for each vertex and colour.
pub const MAX_VERTICES: usize = 1 << 20;

/// Bytes of text that are hashed at a time.
const HASHED_AT_ONCE: usize = 1 << 16;

/// A graph with its name and its edges.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name, without folder and ending.
    pub name: String,
    /// Number of vertices.
    pub n: usize,
    /// Its edges: each once, the smaller vertex first, ascending, from 0.
    edges: Vec<(u32, u32)>,
    /// The number of the first vertex in the file: 0 or 1.
    pub base: u32,
    /// Oddities of the file: counts that contradict each other, edges given twice.
    pub remarks: Vec<String>,
    sha256: OnceLock<String>,
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
        Self { name: name.into(), n, edges, base: 1, remarks: Vec::new(), sha256: OnceLock::new() }
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
    pub fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| {
            let mut hash = Sha256::new();
            let mut text = Vec::with_capacity(2 * HASHED_AT_ONCE);
            for (a, b) in &self.edges {
                // Memory never refuses what is written to it.
                let _ = writeln!(text, "{} {}", a + 1, b + 1);
                if text.len() >= HASHED_AT_ONCE {
                    hash.update(&text);
                    text.clear();
                }
            }
            hash.update(&text);
            hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// The graph as DIMACS text.
    pub fn dimacs(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("c {}\np edge {} {}\n", self.name, self.n, self.edges.len());
        for (a, b) in &self.edges {
            let _ = writeln!(text, "e {} {}", a + 1, b + 1);
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

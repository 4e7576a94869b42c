//! An undirected graph without loops, as lists of neighbours and, unless it is large and sparse, as rows of bits.

/// Most words of a row of bits for which rows are kept whatever the graph is like: they take 32 MiB then.
const MOST_WORDS: usize = 256;

/// A graph of the vertices `0..n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
    n_words: usize,
    /// Empty where they would take far more memory than the lists.
    rows: Vec<u64>,
}

impl Graph {
    /// The graph of these edges; each may be given more than once and in either direction.
    ///
    /// # Panics
    /// If an edge is a loop or names a vertex that is not in `0..n`.
    pub fn new(n: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let edges: Vec<(u32, u32)> = edges.into_iter().collect();
        let (offsets, neighbours) = lists(n, &edges);
        let n_words = n.div_ceil(64);
        let mut graph = Self { offsets, neighbours, n_words, rows: Vec::new() };
        if n_words <= MOST_WORDS || n * n_words <= graph.neighbours.len() {
            graph.rows = vec![0; n * n_words];
            for vertex in 0..n {
                for other in
                    &graph.neighbours[graph.offsets[vertex] as usize..graph.offsets[vertex + 1] as usize]
                {
                    graph.rows[vertex * n_words + *other as usize / 64] |= 1 << (other % 64);
                }
            }
        }
        graph
    }

    /// Where the neighbours of each vertex begin, and one place more; and all of them.
    pub(crate) fn lists(&self) -> (&[u32], &[u32]) {
        (&self.offsets, &self.neighbours)
    }

    /// Number of vertices.
    pub fn n(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of edges.
    pub fn n_edges(&self) -> usize {
        self.neighbours.len() / 2
    }

    /// The neighbours of a vertex, ascending.
    pub fn neighbours(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// Where the neighbours of each vertex begin in [`Self::all_neighbours`], and their number at the end.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The neighbours of all vertices, one after the other.
    pub fn all_neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// Words of a set of vertices as bits.
    pub fn n_words(&self) -> usize {
        self.n_words
    }

    /// The neighbours of a vertex as bits, the lowest first, where they are kept.
    pub fn row(&self, vertex: usize) -> Option<&[u64]> {
        (!self.rows.is_empty()).then(|| &self.rows[vertex * self.n_words..][..self.n_words])
    }

    /// Whether an edge joins two vertices.
    #[inline]
    pub fn are_joined(&self, a: usize, b: usize) -> bool {
        match self.row(a) {
            Some(row) => row[b / 64] >> (b % 64) & 1 == 1,
            None => self.neighbours(a).binary_search(&(b as u32)).is_ok(),
        }
    }

    /// How many neighbours of a vertex are in a set.
    pub fn n_neighbours_in(&self, vertex: usize, set: &[u64]) -> u32 {
        let neighbours = self.neighbours(vertex);
        match self.row(vertex) {
            Some(row) if self.n_words < neighbours.len() => {
                row.iter().zip(set).map(|(row, set)| (row & set).count_ones()).sum()
            }
            _ => neighbours
                .iter()
                .filter(|other| set[**other as usize / 64] >> (**other % 64) & 1 == 1)
                .count() as u32,
        }
    }

    /// About how many steps [`Self::n_neighbours_in`] takes.
    pub(crate) fn counting_cost(&self, vertex: usize) -> usize {
        let n_neighbours = self.neighbours(vertex).len();
        if self.rows.is_empty() { n_neighbours } else { n_neighbours.min(self.n_words) }
    }

    /// Those neighbours of a vertex that are in a set.
    pub(crate) fn neighbours_in(&self, vertex: usize, set: &[u64]) -> Vec<u64> {
        let mut common = vec![0; self.n_words];
        for &other in self.neighbours(vertex) {
            let word = other as usize / 64;
            common[word] |= set[word] & 1 << (other % 64);
        }
        common
    }
}

/// Where the neighbours of each vertex begin, and all neighbours, ascending and each once.
fn lists(n: usize, edges: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>) {
    let mut begins = vec![0_usize; n + 1];
    for &(a, b) in edges {
        assert_ne!(a, b, "an edge joins two vertices");
        begins[a as usize + 1] += 1;
        begins[b as usize + 1] += 1;
    }
    for vertex in 0..n {
        begins[vertex + 1] += begins[vertex];
    }
    let mut ends = begins.clone();
    let mut all = vec![0; 2 * edges.len()];
    for &(a, b) in edges {
        for (from, to) in [(a as usize, b), (b as usize, a)] {
            all[ends[from]] = to;
            ends[from] += 1;
        }
    }
    let mut offsets = vec![0];
    let mut len = 0;
    for vertex in 0..n {
        let (begin, end) = (begins[vertex], begins[vertex + 1]);
        all[begin..end].sort_unstable();
        for at in begin..end {
            if at == begin || all[at] != all[at - 1] {
                all[len] = all[at];
                len += 1;
            }
        }
        offsets.push(len as u32);
    }
    all.truncate(len);
    (offsets, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_sparse_graph_has_lists_alone_and_answers_alike() {
        let n = 64 * MOST_WORDS + 1;
        let edges = [(0, 1), (1, 0), (1, 2), (n as u32 - 1, 1), (2, 1)];
        let graph = Graph::new(n, edges);
        assert!(graph.row(0).is_none());
        let small = Graph::new(4, [(0, 1), (1, 2), (1, 3)]);
        assert_eq!(small.row(1), Some(&[0b1101][..]));
        let wide = |vertex: usize| if vertex == 3 { n - 1 } else { vertex };
        for a in 0..4 {
            assert_eq!(graph.neighbours(wide(a)).len(), small.neighbours(a).len());
            for b in 0..4 {
                assert_eq!(graph.are_joined(wide(a), wide(b)), small.are_joined(a, b), "{a} {b}");
            }
        }
        let mut set = vec![0; graph.n_words()];
        (set[0], set[(n - 1) / 64]) = (0b100, 1 << ((n - 1) % 64));
        assert_eq!((graph.n_neighbours_in(1, &set), small.n_neighbours_in(1, &[0b1100])), (2, 2));
        assert_eq!(graph.neighbours_in(1, &set), set);
        assert_eq!((graph.n_edges(), small.n_edges()), (3, 3));
    }
}

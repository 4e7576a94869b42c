//! An undirected graph without loops, as lists of neighbours and as rows of bits.

/// A graph of the vertices `0..n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
    n_words: usize,
    rows: Vec<u64>,
}

impl Graph {
    /// The graph of these edges; each may be given more than once and in either direction.
    ///
    /// # Panics
    /// If an edge is a loop or names a vertex that is not in `0..n`.
    pub fn new(n: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let n_words = n.div_ceil(64);
        let mut rows = vec![0_u64; n * n_words];
        for (a, b) in edges {
            assert_ne!(a, b, "an edge joins two vertices");
            for (from, to) in [(a as usize, b as usize), (b as usize, a as usize)] {
                rows[from * n_words + to / 64] |= 1 << (to % 64);
            }
        }
        let mut offsets = vec![0];
        let mut neighbours = Vec::new();
        for row in rows.chunks(n_words.max(1)) {
            for (word, &bits) in row.iter().enumerate() {
                let mut rest = bits;
                while rest != 0 {
                    neighbours.push((word * 64) as u32 + rest.trailing_zeros());
                    rest &= rest - 1;
                }
            }
            offsets.push(neighbours.len() as u32);
        }
        Self { offsets, neighbours, n_words, rows }
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

    /// Words per row of bits.
    pub fn n_words(&self) -> usize {
        self.n_words
    }

    /// The neighbours of a vertex as bits, the lowest first.
    pub fn row(&self, vertex: usize) -> &[u64] {
        &self.rows[vertex * self.n_words..(vertex + 1) * self.n_words]
    }
}

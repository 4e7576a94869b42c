//! Takes vertices out of a graph that cannot matter for a colouring with `k` colours, and gives them colours at the end.
//!
//! A vertex with fewer than `k` neighbours always has a colour left. A vertex whose neighbours are all neighbours of another one, to
//! which it is not joined, may have the colour of that one. Taking one out may make others go too.

use crate::graph::Graph;

/// Vertices that are examined between two calls of `stop`.
const ASK_EVERY: u32 = 64;

/// How a vertex gets its colour back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removed {
    /// The least that no neighbour has.
    Free(u32),
    /// That of another vertex.
    Like(u32, u32),
}

/// A graph without the vertices that do not matter.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// What is left of the graph, its vertices numbered anew.
    pub graph: Graph,
    /// The vertices that are left, by their number in the whole graph, ascending.
    pub kept: Vec<u32>,
    /// Those that are gone, in the order in which they went.
    removed: Vec<Removed>,
    k: usize,
}

impl Reduction {
    /// Takes out what does not matter for `k` colours; less of it if `stop`, which it calls now and then, returns true.
    pub fn new(whole: &Graph, k: usize, stop: impl Fn() -> bool) -> Self {
        let n = whole.n();
        let mut alive = vec![!0_u64; whole.n_words()];
        if let (Some(last), true) = (alive.last_mut(), !n.is_multiple_of(64)) {
            *last = (1 << (n % 64)) - 1;
        }
        let mut degrees: Vec<usize> = (0..n).map(|vertex| whole.neighbours(vertex).len()).collect();
        let mut removed = Vec::new();
        let mut peel: Vec<u32> = (0..n as u32).filter(|vertex| degrees[*vertex as usize] < k).collect();
        // Vertices looked at since one went; after a whole round without any, nothing more will go.
        let (mut vertex, mut n_idle) = (0_u32, 0);
        while n_idle < n {
            while let Some(free) = peel.pop() {
                if is_set(&alive, free as usize) {
                    take_out(whole, free, &mut alive, &mut degrees, k, &mut peel);
                    removed.push(Removed::Free(free));
                    n_idle = 0;
                }
            }
            n_idle += 1;
            if vertex.is_multiple_of(ASK_EVERY) && stop() {
                break;
            }
            if is_set(&alive, vertex as usize)
                && let Some(like) = dominator(whole, vertex as usize, &alive, &degrees)
            {
                take_out(whole, vertex, &mut alive, &mut degrees, k, &mut peel);
                removed.push(Removed::Like(vertex, like));
                n_idle = 0;
            }
            vertex = (vertex + 1) % n as u32;
        }
        let kept: Vec<u32> = (0..n as u32).filter(|vertex| is_set(&alive, *vertex as usize)).collect();
        let mut number = vec![u32::MAX; n];
        for (at, vertex) in kept.iter().enumerate() {
            number[*vertex as usize] = at as u32;
        }
        let edges = kept.iter().flat_map(|vertex| {
            let number = &number;
            let from = number[*vertex as usize];
            let ends = whole.neighbours(*vertex as usize).iter().map(move |to| (from, number[*to as usize]));
            ends.filter(|(from, to)| from < to && *to != u32::MAX)
        });
        let graph = Graph::new(kept.len(), edges);
        Self { graph, kept, removed, k }
    }

    /// Number of vertices that were taken out.
    pub fn n_removed(&self) -> usize {
        self.removed.len()
    }

    /// The colours of what is left, from those of the whole graph.
    pub fn restrict(&self, whole: &[u32]) -> Vec<u32> {
        self.kept.iter().map(|vertex| whole[*vertex as usize]).collect()
    }

    /// The colours of the whole graph, from those of what is left, which must be proper and at most `k`.
    pub fn restore(&self, whole: &Graph, colors: &[u32]) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let mut all = vec![NONE; whole.n()];
        for (vertex, color) in self.kept.iter().zip(colors) {
            all[*vertex as usize] = *color;
        }
        let mut is_taken = vec![false; self.k + 1];
        for removed in self.removed.iter().rev() {
            match *removed {
                Removed::Like(vertex, like) => all[vertex as usize] = all[like as usize],
                Removed::Free(vertex) => {
                    is_taken.fill(false);
                    for neighbour in whole.neighbours(vertex as usize) {
                        if let Some(taken) = is_taken.get_mut(all[*neighbour as usize] as usize) {
                            *taken = true;
                        }
                    }
                    let free = is_taken.iter().position(|taken| !taken).unwrap_or(self.k);
                    all[vertex as usize] = free as u32;
                }
            }
        }
        all
    }
}

fn is_set(words: &[u64], at: usize) -> bool {
    words[at / 64] >> (at % 64) & 1 == 1
}

fn take_out(
    whole: &Graph,
    vertex: u32,
    alive: &mut [u64],
    degrees: &mut [usize],
    k: usize,
    peel: &mut Vec<u32>,
) {
    alive[vertex as usize / 64] &= !(1 << (vertex % 64));
    for neighbour in whole.neighbours(vertex as usize) {
        degrees[*neighbour as usize] -= 1;
        if degrees[*neighbour as usize] + 1 == k {
            peel.push(*neighbour);
        }
    }
}

/// Another living vertex, not joined to this one, that has all its living neighbours.
fn dominator(whole: &Graph, vertex: usize, alive: &[u64], degrees: &[usize]) -> Option<u32> {
    // It is a neighbour of every neighbour; the one with fewest neighbours tells soonest.
    let living = whole.neighbours(vertex).iter().filter(|other| is_set(alive, **other as usize));
    let pivot = living.min_by_key(|other| degrees[**other as usize])?;
    whole.neighbours(*pivot as usize).iter().copied().find(|other| {
        let other = *other as usize;
        let may = other != vertex && is_set(alive, other) && degrees[other] >= degrees[vertex];
        let mut living = whole.neighbours(vertex).iter().filter(|of| is_set(alive, **of as usize));
        may && !whole.are_joined(vertex, other) && living.all(|of| whole.are_joined(other, *of as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Family;
    use crate::initial::{Initial, Preference};
    use crate::verify::verify;

    #[test]
    fn a_tree_and_a_ring_vanish() {
        let path = Graph::new(5, [(0, 1), (1, 2), (2, 3), (3, 4)]);
        let reduction = Reduction::new(&path, 2, || false);
        assert_eq!((reduction.graph.n(), reduction.n_removed()), (0, 5));
        let colors = reduction.restore(&path, &[]);
        assert!(colors.iter().all(|color| *color < 2));
        assert!(colors.windows(2).all(|pair| pair[0] != pair[1]));
        // Each vertex has two neighbours, but opposite ones share them.
        let square = Graph::new(4, [(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(Reduction::new(&square, 2, || false).graph.n(), 0);
        let ring = Graph::new(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]);
        assert_eq!(Reduction::new(&ring, 2, || false).graph, ring, "which needs three");
    }

    #[test]
    fn a_clique_stays() {
        let graph = Family::Random { n: 6, p: 1.0 }.generate(0).unwrap().graph();
        assert_eq!(Reduction::new(&graph, 5, || false).graph, graph);
        assert_eq!(Reduction::new(&graph, 6, || false).graph.n(), 0);
    }

    proptest::proptest! {
        #[test]
        fn a_proper_colouring_of_what_is_left_becomes_one_of_the_whole(seed in 0_u64..500, n in 1_usize..70, p in 0.02_f64..0.9) {
            let instance = Family::Random { n, p }.generate(seed).unwrap();
            let graph = instance.graph();
            let order = Preference::new(&graph, None);
            let k = Initial::Dsatur.color(&graph, &order, seed).iter().max().map_or(0, |most| *most as usize + 1);
            let reduction = Reduction::new(&graph, k, || false);
            let order = Preference::new(&reduction.graph, None);
            let colors = Initial::Dsatur.color(&reduction.graph, &order, seed);
            let used = colors.iter().max().map_or(0, |most| *most as usize + 1);
            let whole = reduction.restore(&graph, &colors);
            proptest::prop_assert!(verify(&instance, &whole).unwrap().k <= k.max(used));
            proptest::prop_assert_eq!(reduction.restrict(&whole), colors);
        }
    }
}

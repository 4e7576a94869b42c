//! Recursive largest first, after Leighton: one class after the other, as full as can be.
//!
//! A candidate's neighbours without a colour are candidates or excluded, so that counting the one tells the other; they are counted anew
//! from rows of bits or brought up to date from lists, whichever is less work.

use super::Preference;
use super::tournament::Tournament;
use crate::clique::bits;
use crate::graph::Graph;

const NONE: u32 = u32::MAX;

/// A class begins with the vertex that has most uncoloured neighbours; then always the candidate joins that has most neighbours among
/// the excluded, and of those the one with fewest among the candidates.
pub(crate) fn color(graph: &Graph, preference: &Preference) -> Vec<u32> {
    let n = graph.n();
    let mut colors = vec![NONE; n];
    // Neighbours without a colour.
    let mut open: Vec<u32> = (0..n).map(|vertex| graph.neighbours(vertex).len() as u32).collect();
    let mut left: Vec<u32> = (0..n as u32).collect();
    for color in 0.. {
        let rank = |vertex: &u32| (open[*vertex as usize], preference.rank[*vertex as usize]);
        let Some(first) = left.iter().copied().max_by_key(rank) else { break };
        let mut class = Class::new(graph, preference, &left, &open);
        let mut next = Some(first as usize);
        while let Some(vertex) = next {
            colors[vertex] = color;
            class.add(vertex);
            next = class.race.best();
        }
        for vertex in left.iter().filter(|vertex| colors[**vertex as usize] == color) {
            graph.neighbours(*vertex as usize).iter().for_each(|other| open[*other as usize] -= 1);
        }
        left.retain(|vertex| colors[*vertex as usize] == NONE);
    }
    colors
}

/// A class that is being filled.
struct Class<'a> {
    graph: &'a Graph,
    rank: &'a [u32],
    /// Neighbours of each vertex without a colour, as the class began.
    open: &'a [u32],
    /// Vertices that may still join, as bits, and how many they are.
    candidates: Vec<u64>,
    n_candidates: usize,
    /// For each candidate, how many of its neighbours are candidates.
    among: Vec<u32>,
    /// Who joins next: most neighbours among the excluded, fewest among the candidates, the preferred one.
    race: Tournament<(u32, u32, u32)>,
}

impl<'a> Class<'a> {
    fn new(graph: &'a Graph, preference: &'a Preference, left: &[u32], open: &'a [u32]) -> Self {
        let mut candidates = vec![0_u64; graph.n_words()];
        let mut keys = vec![None; graph.n()];
        for &vertex in left {
            candidates[vertex as usize / 64] |= 1 << (vertex % 64);
            keys[vertex as usize] = Some((0, NONE - open[vertex as usize], preference.rank[vertex as usize]));
        }
        Self {
            graph,
            rank: &preference.rank,
            open,
            candidates,
            n_candidates: left.len(),
            among: open.to_vec(),
            race: Tournament::new(keys),
        }
    }

    /// A candidate joins; its neighbours are excluded.
    fn add(&mut self, vertex: usize) {
        self.drop_candidate(vertex);
        let excluded: Vec<u32> =
            self.graph.neighbours(vertex).iter().copied().filter(|other| self.is_candidate(*other)).collect();
        excluded.iter().for_each(|other| self.drop_candidate(*other as usize));
        let by_lists: usize = excluded.iter().map(|other| self.graph.neighbours(*other as usize).len()).sum();
        if self.n_candidates * self.graph.n_words() < by_lists {
            self.count_anew();
            return;
        }
        for other in excluded {
            for &of in self.graph.neighbours(other as usize) {
                if self.is_candidate(of) {
                    self.set_among(of as usize, self.among[of as usize] - 1);
                }
            }
        }
    }

    fn count_anew(&mut self) {
        let candidates: Vec<usize> = bits(&self.candidates).collect();
        for vertex in candidates {
            let among = self.graph.n_neighbours_in(vertex, &self.candidates);
            if among != self.among[vertex] {
                self.set_among(vertex, among);
            }
        }
    }

    fn set_among(&mut self, vertex: usize, among: u32) {
        self.among[vertex] = among;
        self.race.set(vertex, Some((self.open[vertex] - among, NONE - among, self.rank[vertex])));
    }

    fn is_candidate(&self, vertex: u32) -> bool {
        self.candidates[vertex as usize / 64] >> (vertex % 64) & 1 == 1
    }

    fn drop_candidate(&mut self, vertex: usize) {
        self.candidates[vertex / 64] &= !(1 << (vertex % 64));
        self.n_candidates -= 1;
        self.race.set(vertex, None);
    }
}

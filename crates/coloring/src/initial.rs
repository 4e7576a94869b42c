//! First colourings: six ways to a proper colouring without search. What they find is where a search begins.

pub(crate) mod dsatur;
pub(crate) mod greedy;
pub(crate) mod rlf;
mod tournament;

use crate::experimental::{community, randomized, spectral};
use crate::graph::Graph;

/// A way to a first colouring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initial {
    /// The vertices with most neighbours first, each with the least colour that is free.
    Greedy,
    /// Always the vertex whose neighbours have most different colours.
    Dsatur,
    /// One class after the other, as large as possible.
    Rlf,
    /// Along the Fiedler vector.
    Spectral,
    /// One community after the other.
    Community,
    /// The best of many with random preferences.
    Randomized,
}

impl Initial {
    /// Every way.
    pub const ALL: [Initial; 6] = [
        Initial::Greedy,
        Initial::Dsatur,
        Initial::Rlf,
        Initial::Spectral,
        Initial::Community,
        Initial::Randomized,
    ];

    /// A proper colouring. Every colour below the largest one is used.
    pub fn color(self, graph: &Graph, preference: &Preference, seed: u64) -> Vec<u32> {
        match self {
            Initial::Greedy => greedy::color(graph, &preference.order()),
            Initial::Dsatur => dsatur::color(graph, preference),
            Initial::Rlf => rlf::color(graph, preference),
            Initial::Spectral => spectral::color(graph, seed),
            Initial::Community => community::color(graph, preference),
            Initial::Randomized => randomized::color(graph, seed),
        }
    }
}

/// Which of two vertices comes first where a rule leaves that open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// A number for each vertex; the largest comes first, and no two are the same.
    rank: Vec<u32>,
}

impl Preference {
    /// By degree. Priorities of vertices, where there are any, weigh as much.
    pub fn new(graph: &Graph, priority: Option<&[f64]>) -> Self {
        let n = graph.n();
        let most = (0..n).map(|vertex| graph.neighbours(vertex).len()).max().unwrap_or(0).max(1) as f64;
        let finite =
            |priority: &&[f64]| priority.len() == n && priority.iter().all(|value| value.is_finite());
        let priority = priority.filter(finite);
        let (low, high) = priority.map_or((0.0, 0.0), |values| {
            let fold = |by: fn(f64, f64) -> f64, first| values.iter().copied().fold(first, by);
            (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY))
        });
        let is_biased = high > low;
        let weight = |vertex: usize| {
            let degree = graph.neighbours(vertex).len() as f64 / most;
            let signal = match priority {
                Some(values) if is_biased => (values[vertex] - low) / (high - low),
                _ => 0.0,
            };
            degree + signal
        };
        Self { rank: ranks(n, weight) }
    }

    /// By chance.
    pub(crate) fn random(n: usize, draw: &mut crate::draw::Draw) -> Self {
        let mut rank: Vec<u32> = (0..n as u32).collect();
        draw.shuffle(&mut rank);
        Self { rank }
    }

    pub(crate) fn rank(&self, vertex: u32) -> u32 {
        self.rank[vertex as usize]
    }

    /// The vertices, the preferred first.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.rank.len() as u32).collect();
        order.sort_by_key(|vertex| std::cmp::Reverse(self.rank[*vertex as usize]));
        order
    }
}

/// Ranks by weight; of equal weights the smaller vertex has the higher rank.
fn ranks(n: usize, weight: impl Fn(usize) -> f64) -> Vec<u32> {
    let weights: Vec<f64> = (0..n).map(weight).collect();
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by(|a, b| weights[*a as usize].total_cmp(&weights[*b as usize]).then(b.cmp(a)));
    let mut rank = vec![0; n];
    for (at, vertex) in order.into_iter().enumerate() {
        rank[vertex as usize] = at as u32;
    }
    rank
}

/// Number of colours of a colouring in which every colour below the largest one is used.
pub fn n_colors(colors: &[u32]) -> usize {
    colors.iter().max().map_or(0, |most| *most as usize + 1)
}

#[cfg(test)]
mod tests;

//! Tabu search over edges that learn: a conflict that lasts weighs more and more.
//!
//! Geometric and other structured graphs have few places where colours are short, and plain conflict counts lead a search into the same
//! dead ends there. Whenever no move makes things better, the edges in conflict become heavier by one, so that the search fills up the hollow it is in and
//! leaves it, and remembers which edges are hard.

use super::Outcome;
use super::chance::{Chance, mean_tenure};
use super::stride;
use crate::Graph;
use crate::random::Random;

/// A search with weights on edges.
#[derive(Clone, Debug)]
pub struct Weighted<'a> {
    graph: &'a Graph,
    k: usize,
    random: Random,
    colors: Vec<u32>,
    /// Weight of each edge, at its place in the lists of neighbours of both ends.
    weights: Vec<u32>,
    /// Where the same edge stands in the list of the other end.
    twins: Vec<u32>,
    /// By vertex and colour: the weight of the edges to neighbours of that colour.
    costs: Vec<u32>,
    /// By vertex and colour: up to which iteration the vertex may not take the colour.
    banned: Vec<u64>,
    listed: Vec<u32>,
    place: Vec<u32>,
    conflicts: u32,
    weight: u64,
    least_weight: u64,
    iteration: u64,
    best: Vec<u32>,
    best_conflicts: u32,
}

impl<'a> Weighted<'a> {
    /// A search that begins at a colouring; colours from `k` on count as the last one.
    ///
    /// # Panics
    /// If there is not one colour for each vertex, or `k` is 0 and the graph is not empty.
    pub fn new(graph: &'a Graph, k: usize, random: Random, colors: &[u32]) -> Self {
        let n = graph.n();
        assert_eq!(colors.len(), n, "every vertex has a colour");
        assert!(k > 0 || n == 0, "at least one colour");
        let colors: Vec<u32> = colors.iter().map(|color| (*color).min(k as u32 - 1)).collect();
        let mut search = Self {
            graph,
            k,
            random,
            weights: vec![1; graph.all_neighbours().len()],
            twins: twins(graph),
            costs: vec![0; n * k],
            banned: vec![0; n * k],
            listed: Vec::with_capacity(n),
            place: vec![u32::MAX; n],
            conflicts: 0,
            weight: 0,
            least_weight: 0,
            iteration: 0,
            best: colors.clone(),
            colors,
            best_conflicts: 0,
        };
        for vertex in 0..n {
            for &other in graph.neighbours(vertex) {
                search.costs[vertex * k + search.colors[other as usize] as usize] += 1;
            }
            let own = search.own(vertex);
            search.conflicts += own;
            if own > 0 {
                search.enlist(vertex as u32);
            }
        }
        search.conflicts /= 2;
        search.best_conflicts = search.conflicts;
        (search.weight, search.least_weight) = (search.conflicts.into(), search.conflicts.into());
        search
    }

    /// Makes up to `iterations` iterations; fewer if the colouring has no conflicts before, or `stop`, which it calls now and then, returns true.
    pub fn run(&mut self, iterations: u64, stop: impl Fn() -> bool) -> Outcome {
        let (start, stride) = (self.iteration, stride(self.graph.n()));
        while self.conflicts > 0 && self.iteration - start < iterations {
            if (self.iteration - start).is_multiple_of(stride) && stop() {
                break;
            }
            self.step();
        }
        Outcome { iterations: self.iteration - start, conflicts: self.best_conflicts }
    }

    /// The mean tenure of moves as the search stands.
    pub fn tenure(&self) -> f64 {
        mean_tenure(self.listed.len())
    }

    /// The colouring with the fewest conflicts.
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    fn own(&self, vertex: usize) -> u32 {
        self.costs[vertex * self.k + self.colors[vertex] as usize]
    }

    fn step(&mut self) {
        self.iteration += 1;
        let chance = Chance::draw(&self.random, self.iteration, self.graph.n(), self.k);
        // A banned move is made if it leads to less weight than ever with these weights.
        let excused = self.least_weight as i64 - self.weight as i64;
        let mut best = (i64::MAX, 0, 0, 0, 0);
        for &vertex in &self.listed {
            let row = vertex as usize * self.k;
            let own = i64::from(self.own(vertex as usize));
            for (color, cost) in self.costs[row..][..self.k].iter().enumerate() {
                let delta = i64::from(*cost) - own;
                if delta > best.0 || color as u32 == self.colors[vertex as usize] {
                    continue;
                }
                let color = color as u32;
                let key = (delta, chance.vertex_rank(vertex), chance.color_rank(color), vertex, color);
                let is_banned = self.banned[row + color as usize] >= self.iteration;
                if key < best && (!is_banned || delta < excused) {
                    best = key;
                }
            }
        }
        if best.0 >= 0 {
            self.press();
        }
        if best.0 == i64::MAX {
            return;
        }
        let (_, _, _, vertex, to) = best;
        let from = self.colors[vertex as usize];
        self.banned[vertex as usize * self.k + from as usize] =
            self.iteration + chance.tenure(self.listed.len());
        self.go(vertex as usize, from, to);
        self.least_weight = self.least_weight.min(self.weight);
        if self.conflicts < self.best_conflicts {
            self.best_conflicts = self.conflicts;
            self.best.copy_from_slice(&self.colors);
        }
    }

    /// Makes all edges in conflict heavier.
    fn press(&mut self) {
        for index in 0..self.listed.len() {
            let vertex = self.listed[index] as usize;
            let (start, end) =
                (self.graph.offsets()[vertex] as usize, self.graph.offsets()[vertex + 1] as usize);
            for edge in start..end {
                let other = self.graph.all_neighbours()[edge] as usize;
                if other > vertex && self.colors[other] == self.colors[vertex] {
                    self.weights[edge] += 1;
                    self.weights[self.twins[edge] as usize] += 1;
                    self.costs[vertex * self.k + self.colors[vertex] as usize] += 1;
                    self.costs[other * self.k + self.colors[vertex] as usize] += 1;
                    self.weight += 1;
                }
            }
        }
        // Heavier edges are a new landscape.
        self.least_weight = self.weight;
    }

    fn go(&mut self, vertex: usize, from: u32, to: u32) {
        let row = vertex * self.k;
        self.weight += u64::from(self.costs[row + to as usize]);
        self.weight -= u64::from(self.costs[row + from as usize]);
        self.colors[vertex] = to;
        let (start, end) = (self.graph.offsets()[vertex] as usize, self.graph.offsets()[vertex + 1] as usize);
        for edge in start..end {
            let other = self.graph.all_neighbours()[edge] as usize;
            let weight = self.weights[edge];
            self.costs[other * self.k + from as usize] -= weight;
            self.costs[other * self.k + to as usize] += weight;
            if self.colors[other] == from {
                self.conflicts -= 1;
                if self.own(other) == 0 {
                    self.unlist(other as u32);
                }
            } else if self.colors[other] == to {
                self.conflicts += 1;
                self.enlist(other as u32);
            }
        }
        if self.own(vertex) == 0 {
            self.unlist(vertex as u32);
        }
    }

    fn enlist(&mut self, vertex: u32) {
        if self.place[vertex as usize] == u32::MAX {
            self.place[vertex as usize] = self.listed.len() as u32;
            self.listed.push(vertex);
        }
    }

    fn unlist(&mut self, vertex: u32) {
        let place = std::mem::replace(&mut self.place[vertex as usize], u32::MAX) as usize;
        self.listed.swap_remove(place);
        if let Some(&moved) = self.listed.get(place) {
            self.place[moved as usize] = place as u32;
        }
    }
}

/// Where each edge stands in the list of its other end.
fn twins(graph: &Graph) -> Vec<u32> {
    let mut next: Vec<u32> = graph.offsets().to_vec();
    // Lists are ascending, so the lower ends of a vertex come to it in the order of its own list.
    let take = |other: &u32| {
        let place = &mut next[*other as usize];
        *place += 1;
        *place - 1
    };
    graph.all_neighbours().iter().map(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometric(n: u32) -> Graph {
        let random = Random::new(4, 4);
        let at = |v: u32| {
            (random.below(u64::from(v) * 2, 1_000) as i64, random.below(u64::from(v) * 2 + 1, 1_000) as i64)
        };
        let near = |a: u32, b: u32| (at(a).0 - at(b).0).pow(2) + (at(a).1 - at(b).1).pow(2) < 250 * 250;
        Graph::new(
            n as usize,
            (0..n).flat_map(|a| (a + 1..n).filter(move |b| near(a, *b)).map(move |b| (a, b))),
        )
    }

    #[test]
    fn twins_are_the_same_edge_seen_from_the_other_end() {
        let graph = geometric(60);
        let twins = twins(&graph);
        for vertex in 0..graph.n() {
            for edge in graph.offsets()[vertex] as usize..graph.offsets()[vertex + 1] as usize {
                assert_eq!(graph.all_neighbours()[twins[edge] as usize] as usize, vertex);
                assert_eq!(twins[twins[edge] as usize] as usize, edge);
            }
        }
    }

    #[test]
    fn costs_stay_those_of_the_colouring() {
        let graph = geometric(80);
        let mut search = Weighted::new(&graph, 6, Random::new(1, 0), &[0; 80]);
        for _ in 0..50 {
            search.run(20, || false);
            let (mut conflicts, mut weight) = (0, 0);
            let mut costs = vec![0; 80 * 6];
            for vertex in 0..80 {
                for edge in graph.offsets()[vertex] as usize..graph.offsets()[vertex + 1] as usize {
                    let other = graph.all_neighbours()[edge] as usize;
                    costs[vertex * 6 + search.colors[other] as usize] += search.weights[edge];
                    if other > vertex && search.colors[other] == search.colors[vertex] {
                        conflicts += 1;
                        weight += u64::from(search.weights[edge]);
                    }
                }
            }
            assert_eq!((search.conflicts, search.weight), (conflicts, weight));
            assert_eq!(search.costs, costs);
            assert!(search.weights.iter().any(|weight| *weight > 1) || search.iteration < 200);
        }
    }

    #[test]
    fn a_clique_needs_as_many_colours_as_vertices() {
        let clique = Graph::new(12, (0..12).flat_map(|a| (a + 1..12).map(move |b| (a, b))));
        let colors = |k: u32| (0..12).map(|v| v % k).collect::<Vec<u32>>();
        assert!(Weighted::new(&clique, 12, Random::new(1, 0), &colors(3)).run(1_000, || false).is_solved());
        assert_eq!(
            Weighted::new(&clique, 11, Random::new(1, 0), &colors(3)).run(1_000, || false).conflicts,
            1
        );
    }
}

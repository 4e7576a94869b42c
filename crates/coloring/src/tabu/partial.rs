//! PartialCol: no two neighbours share a colour, but some vertices have none.
//!
//! A vertex without a colour takes one, and those of its neighbours that have it lose it. They may not take it again for a while. What is made fewer is
//! the number of vertices without a colour.

use super::ban::Expiry;
use super::board::Board;
use super::chance::{Chance, mean_tenure};
use super::class::Classes;
use super::matrix::{Matrix, Place};
use super::scan::{Count, Instructions};
use super::width::{Moves, Width, either};
use super::{Outcome, class_limit};
use crate::Graph;
use crate::random::Random;

/// No colour.
const NONE: u32 = u32::MAX;

/// A PartialCol search.
#[derive(Clone, Debug)]
pub struct Partial<'a> {
    width: Width<Search<'a, u8>, Search<'a, u16>>,
}

impl<'a> Partial<'a> {
    /// A search that begins at a colouring: of two neighbours of a colour, the later one loses it.
    ///
    /// # Panics
    /// If there is not one colour for each vertex, or `k` is 0 and the graph is not empty.
    pub fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize, random: Random, colors: &[u32]) -> Self {
        Self { width: Width::new(graph, matrix, k, random, colors) }
    }

    /// Makes up to `iterations` iterations; fewer if every vertex has a colour before, or `stop`, which it calls now and then, returns true.
    pub fn run(&mut self, iterations: u64, stop: impl Fn() -> bool) -> Outcome {
        self.width.run(iterations, stop)
    }

    /// The mean tenure of moves as the search stands.
    pub fn tenure(&self) -> f64 {
        mean_tenure(either!(&self.width, search => search.n_without))
    }

    /// The best colouring. Vertices without a colour get the one that the fewest neighbours have.
    pub fn best(&self) -> Vec<u32> {
        either!(&self.width, search => search.completed())
    }

    /// The best colouring as it was found, `None` for a vertex without a colour.
    #[cfg(test)]
    fn best_partial(&self) -> Vec<Option<u32>> {
        let best = either!(&self.width, search => &search.best);
        best.iter().map(|color| Some(*color).filter(|color| *color != NONE)).collect()
    }
}

#[derive(Clone, Debug)]
struct Search<'a, C> {
    graph: &'a Graph,
    matrix: &'a Matrix,
    k: usize,
    limit: usize,
    random: Random,
    /// Its list is that of the vertices without a colour; costs are counts of neighbours that would lose theirs.
    board: Board<C>,
    expiry: Expiry,
    colors: Vec<u32>,
    classes: Classes,
    n_without: usize,
    iteration: u64,
    touched: Vec<u32>,
    best: Vec<u32>,
    best_without: usize,
}

impl<'a, C: Count> Search<'a, C> {
    #[inline(always)]
    fn enter(&mut self, vertex: u32, color: u32) {
        self.board.put(Place { graph: self.graph, matrix: self.matrix, vertex: vertex as usize }, color);
        self.classes.enter(vertex, color);
        self.colors[vertex as usize] = color;
        self.n_without -= 1;
    }

    #[inline(always)]
    fn leave(&mut self, vertex: u32, color: u32) {
        self.board.take(Place { graph: self.graph, matrix: self.matrix, vertex: vertex as usize }, color);
        self.classes.leave(vertex, color);
        self.colors[vertex as usize] = NONE;
        self.n_without += 1;
    }

    fn completed(&self) -> Vec<u32> {
        let mut colors = self.best.clone();
        for vertex in 0..colors.len() {
            if colors[vertex] == NONE {
                let mut counts = vec![0; self.k];
                let of_others = self.graph.neighbours(vertex).iter().map(|other| colors[*other as usize]);
                of_others.filter(|color| *color != NONE).for_each(|color| counts[color as usize] += 1);
                colors[vertex] = (0..self.k).min_by_key(|&color| counts[color]).unwrap_or(0) as u32;
            }
        }
        colors
    }
}

impl<'a, C: Count> Moves<'a> for Search<'a, C> {
    fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize, random: Random, colors: &[u32]) -> Self {
        let n = graph.n();
        assert_eq!(colors.len(), n, "every vertex has a colour");
        assert!(k > 0 || n == 0, "at least one colour");
        let mut search = Self {
            graph,
            matrix,
            k,
            limit: class_limit(graph, C::LARGEST),
            random,
            board: Board::new(n, k),
            expiry: Expiry::new(n, k),
            colors: vec![NONE; n],
            classes: Classes::new(n, k),
            n_without: n,
            iteration: 0,
            touched: Vec::with_capacity(n),
            best: Vec::new(),
            best_without: 0,
        };
        for (vertex, color) in colors.iter().enumerate() {
            let is_free = |color: u32| {
                search.board.count(vertex, color) == 0 && search.classes.of(color).len() < search.limit
            };
            if (*color as usize) < k && is_free(*color) {
                search.enter(vertex as u32, *color);
            }
        }
        for vertex in 0..n {
            if search.colors[vertex] == NONE {
                search.board.list(vertex, 0);
            }
        }
        (search.best, search.best_without) = (search.colors.clone(), search.n_without);
        search
    }

    #[inline(always)]
    fn state(&self) -> (usize, u64, u32) {
        (self.graph.n(), self.iteration, self.best_without as u32)
    }

    #[inline(always)]
    fn step<I: Instructions>(&mut self) {
        let iteration = self.iteration;
        self.iteration += 1;
        self.expiry.begin(iteration, |vertex, color| self.board.allow(vertex as usize, color));
        let chance = Chance::draw(&self.random, iteration, self.graph.n(), self.k);
        let tenure = chance.tenure(self.n_without);
        let Some(found) = self.board.best::<I>(&chance) else { return };
        let (vertex, color) = (found.vertex, found.color);
        let at = Place { graph: self.graph, matrix: self.matrix, vertex: vertex as usize };
        let mut displaced = std::mem::take(&mut self.touched);
        at.neighbours_among(self.classes.of(color), &mut displaced);
        if self.classes.of(color).len() - displaced.len() >= self.limit {
            self.touched = displaced;
            self.board.ban(vertex as usize, color);
            self.expiry.add(iteration, tenure.max(1), vertex, color);
            return;
        }
        for &other in &displaced {
            self.leave(other, color);
            if tenure > 0 {
                self.board.ban(other as usize, color);
                self.expiry.add(iteration, tenure, other, color);
            }
            self.board.list(other as usize, 0);
        }
        self.touched = displaced;
        self.board.unlist(vertex as usize);
        self.enter(vertex, color);
        if self.n_without < self.best_without {
            self.best_without = self.n_without;
            self.best.copy_from_slice(&self.colors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(n: u32, k: u32, percent: u32) -> Graph {
        let random = Random::new(1, 99);
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let joined =
            pairs.filter(|&(a, b)| a % k != b % k && random.below(u64::from(a * n + b), 100) < percent);
        Graph::new(n as usize, joined)
    }

    fn check(search: &Partial<'_>, graph: &Graph) {
        let best = search.best_partial();
        let proper = |v: usize| {
            graph.neighbours(v).iter().all(|u| best[*u as usize].is_none() || best[*u as usize] != best[v])
        };
        assert!((0..graph.n()).all(proper));
    }

    #[test]
    fn a_planted_colouring_is_found_and_classes_stay_without_conflicts() {
        for (n, percent) in [(100, 60), (150, 3)] {
            let graph = planted(n, 7, percent);
            let matrix = Matrix::new(&graph);
            let colors: Vec<u32> = (0..n).map(|v| v * 3 % 7).collect();
            let mut search = Partial::new(&graph, &matrix, 7, Random::new(2, 0), &colors);
            check(&search, &graph);
            for _ in 0..400 {
                let outcome = search.run(250, || false);
                check(&search, &graph);
                if outcome.is_solved() {
                    break;
                }
            }
            let best = search.best();
            assert!((0..graph.n()).all(|v| graph.neighbours(v).iter().all(|u| best[*u as usize] != best[v])));
        }
    }

    #[test]
    fn too_few_colours_leave_vertices_without() {
        let graph = planted(30, 30, 100);
        let matrix = Matrix::new(&graph);
        let mut search = Partial::new(&graph, &matrix, 28, Random::new(2, 0), &[0; 30]);
        assert_eq!(search.run(5_000, || false).conflicts, 2);
        assert_eq!(search.best_partial().iter().flatten().count(), 28);
    }
}

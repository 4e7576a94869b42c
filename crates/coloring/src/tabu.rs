//! Tabu searches for a colouring with a fixed number of colours.
//!
//! [`Tabu`] is TabuCol: every vertex has a colour, and in every iteration the vertex in conflict and the colour that leave the fewest
//! conflicts are taken, unless the vertex had that colour a little while ago. [`Partial`] is PartialCol, where vertices may be without a colour but no two
//! neighbours share one. [`Weighted`] is TabuCol over conflicts that weigh more the longer they last, for geometric graphs. [`device::DeviceTabu`] runs many `Tabu` at a time on a device,
//! move by move the same.

mod ban;
mod board;
mod chance;
mod class;
pub mod device;
mod matrix;
mod partial;
mod scan;
mod weighted;
mod width;

pub use chance::MAX_TENURE;
pub(crate) use chance::mean_tenure;
pub use matrix::Matrix;
pub use partial::Partial;
pub use weighted::Weighted;

use crate::Graph;
use crate::random::Random;
use ban::Calendar;
use board::{Board, Move};
use chance::Chance;
use class::Classes;
use matrix::Place;
use scan::{Count, Instructions};
use width::{Moves, Width, either};

/// Iterations between two calls of `stop`: the fewer the larger the graph is, because an iteration reads all vertices.
fn stride(n: usize) -> u64 {
    ((1 << 20) / n.max(1) as u64).clamp(1, 1_024)
}

/// The result of a run of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Iterations of this run.
    pub iterations: u64,
    /// Conflicts of the best colouring since the search began: edges for [`Tabu`] and [`Weighted`], vertices without a colour for [`Partial`].
    pub conflicts: u32,
}

impl Outcome {
    /// Whether the best colouring has no conflicts.
    pub fn is_solved(&self) -> bool {
        self.conflicts == 0
    }
}

/// The largest count that fits into a byte beside a ban.
pub(crate) const MOST_NARROW: u32 = u8::LARGEST;

/// The largest count that fits into two bytes beside a ban.
pub(crate) const MOST_WIDE: u32 = u16::LARGEST;

/// Whether counts fit into a byte: by the degrees, or because classes of 126 vertices will not come up where the mean is 64. (Moves into larger ones
/// are refused.)
pub(crate) fn is_narrow(graph: &Graph, k: usize) -> bool {
    max_degree(graph) <= u8::LARGEST as usize || graph.n() <= 64 * k
}

pub(crate) fn max_degree(graph: &Graph) -> usize {
    (0..graph.n()).map(|vertex| graph.neighbours(vertex).len()).max().unwrap_or(0)
}

/// The most vertices of a class whose counts have this largest value.
pub(crate) fn class_limit(graph: &Graph, largest: u32) -> usize {
    if max_degree(graph) <= largest as usize { usize::MAX } else { largest as usize }
}

/// Makes a colouring one that a search can take: colours below `k`, and no class above its limit.
pub(crate) fn fit(colors: &mut [u32], k: usize, limit: usize) {
    let mut sizes = vec![0_usize; k];
    for color in colors.iter_mut() {
        *color = (*color).min(k as u32 - 1);
        sizes[*color as usize] += 1;
    }
    for color in colors.iter_mut() {
        if sizes[*color as usize] > limit
            && let Some(free) = sizes.iter().position(|size| *size < limit)
        {
            sizes[*color as usize] -= 1;
            sizes[free] += 1;
            *color = free as u32;
        }
    }
}

/// A TabuCol search.
#[derive(Clone, Debug)]
pub struct Tabu<'a> {
    width: Width<Search<'a, u8>, Search<'a, u16>>,
}

impl<'a> Tabu<'a> {
    /// A search that begins at a colouring. `matrix` is that of the graph; colours from `k` on count as the last one.
    ///
    /// # Panics
    /// If there is not one colour for each vertex, or `k` is 0 and the graph is not empty.
    pub fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize, random: Random, colors: &[u32]) -> Self {
        Self { width: Width::new(graph, matrix, k, random, colors) }
    }

    /// Makes up to `iterations` iterations; fewer if the colouring has no conflicts before, or `stop`, which it calls now and then, returns true.
    pub fn run(&mut self, iterations: u64, stop: impl Fn() -> bool) -> Outcome {
        self.width.run(iterations, stop)
    }

    /// The colouring as it is now.
    pub fn colors(&self) -> &[u32] {
        either!(&self.width, search => &search.colors)
    }

    /// Conflicts of the colouring as it is now.
    pub fn conflicts(&self) -> u32 {
        either!(&self.width, search => search.conflicts)
    }

    /// The mean tenure of moves as the search stands.
    pub fn tenure(&self) -> f64 {
        mean_tenure(either!(&self.width, search => search.n_conflicting))
    }

    /// The colouring with the fewest conflicts.
    pub fn best(&self) -> &[u32] {
        either!(&self.width, search => &search.best_colors)
    }

    /// Conflicts of the best colouring.
    pub fn best_conflicts(&self) -> u32 {
        either!(&self.width, search => search.best_conflicts)
    }

    /// Iterations since the search began.
    pub fn iteration(&self) -> u64 {
        either!(&self.width, search => search.iteration)
    }
}

#[derive(Clone, Debug)]
struct Search<'a, C> {
    graph: &'a Graph,
    matrix: &'a Matrix,
    k: usize,
    limit: usize,
    random: Random,
    /// Its list is that of the vertices in conflict, a vertex's own colour is banned, and costs are larger by [`Count::LARGEST`].
    board: Board<C>,
    calendar: Calendar,
    colors: Vec<u32>,
    classes: Classes,
    /// Neighbours of the vertex that moves, for a while.
    touched: Vec<u32>,
    n_conflicting: usize,
    conflicts: u32,
    iteration: u64,
    best_colors: Vec<u32>,
    best_conflicts: u32,
}

impl<'a, C: Count> Search<'a, C> {
    /// The best move that is banned and yet allowed because it leads to fewer conflicts than ever, if it is not dearer than `most`.
    #[inline(always)]
    fn excused(&self, chance: &Chance, most: Option<u32>) -> Option<Move> {
        // Conflicts now, and what a move changes, against the best: the cost has to be below this.
        let below = (self.best_conflicts + C::LARGEST).checked_sub(self.conflicts)?;
        let below = most.map_or(below, |most| below.min(most + 1));
        // A move costs at least the shift of its vertex, so that most often nothing can be excused.
        if below <= self.board.least_shift() {
            return None;
        }
        let moves = self.calendar.in_force().filter_map(|(vertex, color)| {
            let cost = self.board.count(vertex as usize, color) + self.board.shift(vertex as usize)?;
            let (vertex_rank, color_rank) = (chance.vertex_rank(vertex), chance.color_rank(color));
            (cost < below).then_some(Move { cost, vertex_rank, color_rank, vertex, color })
        });
        moves.min()
    }

    #[inline(always)]
    fn make(&mut self, vertex: u32, from: u32, to: u32) {
        let at = Place { graph: self.graph, matrix: self.matrix, vertex: vertex as usize };
        self.board.ban(vertex as usize, to);
        self.board.take(at, from);
        self.board.put(at, to);
        self.classes.leave(vertex, from);
        at.neighbours_among(self.classes.of(from), &mut self.touched);
        for &other in &self.touched {
            let own = self.board.count(other as usize, from);
            if own > 0 {
                self.board.list(other as usize, C::LARGEST - own);
            } else {
                self.board.unlist(other as usize);
                self.n_conflicting -= 1;
            }
        }
        at.neighbours_among(self.classes.of(to), &mut self.touched);
        for &other in &self.touched {
            let own = self.board.count(other as usize, to);
            self.n_conflicting += usize::from(own == 1);
            self.board.list(other as usize, C::LARGEST - own);
        }
        self.classes.enter(vertex, to);
        self.colors[vertex as usize] = to;
        let own = self.board.count(vertex as usize, to);
        self.board.unlist(vertex as usize);
        if own > 0 {
            self.board.list(vertex as usize, C::LARGEST - own);
        } else {
            self.n_conflicting -= 1;
        }
    }
}

impl<'a, C: Count> Moves<'a> for Search<'a, C> {
    fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize, random: Random, colors: &[u32]) -> Self {
        let n = graph.n();
        assert_eq!(colors.len(), n, "every vertex has a colour");
        assert!(k > 0 || n == 0, "at least one colour");
        let limit = class_limit(graph, C::LARGEST);
        let mut colors = colors.to_vec();
        fit(&mut colors, k, limit);
        let mut classes = Classes::new(n, k);
        let mut board = Board::new(n, k);
        for (vertex, color) in colors.iter().enumerate() {
            board.put(Place { graph, matrix, vertex }, *color);
        }
        for (vertex, color) in colors.iter().enumerate() {
            classes.enter(vertex as u32, *color);
            board.ban(vertex, *color);
        }
        let (mut n_conflicting, mut ends) = (0, 0);
        for (vertex, color) in colors.iter().enumerate() {
            let own = board.count(vertex, *color);
            ends += own;
            if own > 0 {
                n_conflicting += 1;
                board.list(vertex, C::LARGEST - own);
            }
        }
        Self {
            graph,
            matrix,
            k,
            limit,
            random,
            board,
            calendar: Calendar::new(),
            best_colors: colors.clone(),
            colors,
            classes,
            touched: Vec::with_capacity(n),
            n_conflicting,
            conflicts: ends / 2,
            iteration: 0,
            best_conflicts: ends / 2,
        }
    }

    #[inline(always)]
    fn state(&self) -> (usize, u64, u32) {
        (self.graph.n(), self.iteration, self.best_conflicts)
    }

    #[inline(always)]
    fn step<I: Instructions>(&mut self) {
        let iteration = self.iteration;
        self.iteration += 1;
        self.calendar.begin(iteration, |vertex, color| self.board.allow(vertex as usize, color));
        let chance = Chance::draw(&self.random, iteration, self.graph.n(), self.k);
        let tenure = chance.tenure(self.n_conflicting);
        let allowed = self.board.best::<I>(&chance);
        let excused = self.excused(&chance, allowed.map(|best| best.cost));
        let Some(Move { vertex, color: to, cost, .. }) = [allowed, excused].into_iter().flatten().min()
        else {
            return;
        };
        let from = self.colors[vertex as usize];
        let is_banned = self.board.is_banned(vertex as usize, to);
        if self.classes.of(to).len() >= self.limit {
            if !is_banned {
                self.board.ban(vertex as usize, to);
                self.calendar.add(iteration, tenure.max(1), vertex, to);
            }
            return;
        }
        if is_banned {
            self.calendar.lift(vertex, to);
        }
        if tenure > 0 {
            self.calendar.add(iteration, tenure, vertex, from);
        } else {
            self.board.allow(vertex as usize, from);
        }
        self.make(vertex, from, to);
        self.conflicts = self.conflicts + cost - C::LARGEST;
        if self.conflicts < self.best_conflicts {
            self.best_conflicts = self.conflicts;
            self.best_colors.copy_from_slice(&self.colors);
        }
    }
}

#[cfg(test)]
mod tests;

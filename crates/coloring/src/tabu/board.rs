//! What a tabu search looks at to find its next move, kept up to date move by move.
//!
//! Counts of neighbours lie by colour, so that a move is two sums of whole rows of bytes. With each vertex in the list goes the cost of its best move,
//! or less: a bound. It is lowered when a count falls, also by whole rows, and left alone when a count rises, a bit is
//! banned or a neighbour moves away. A search takes a vertex of least bound, looks its counts up, and if the bound was too low it raises it and takes
//! another one. So an iteration costs the same whether ten or a thousand vertices are in the list, and which move is
//! best does not depend on how good the bounds are.

use super::chance::Chance;
use super::matrix::Place;
use super::scan::{Count, Instructions, LANES};

/// Counts and bounds.
#[derive(Clone, Debug)]
pub(super) struct Board<C> {
    stride: usize,
    /// By colour and vertex: how many neighbours have the colour, and the bit [`Count::BAN`] where the vertex may not take it.
    counts: Vec<C>,
    /// What turns a count of a vertex into the cost of a move; [`Count::NONE`] for a vertex that is not in the list.
    shifts: Vec<C>,
    /// At most the least cost of the moves of a vertex; [`Count::NONE`] for a vertex that is not in the list.
    bounds: Vec<C>,
    /// The counts of one vertex, and [`Count::NONE`] behind them.
    column: Vec<C>,
}

/// The best move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    /// The count, shifted.
    pub(super) cost: u32,
    pub(super) vertex_rank: u32,
    pub(super) color_rank: u32,
    pub(super) vertex: u32,
    pub(super) color: u32,
}

impl<C: Count> Board<C> {
    /// A board without colours.
    pub(super) fn new(n: usize, k: usize) -> Self {
        // An odd number of cache lines, so that the counts of a vertex do not fall into the same few sets of the cache.
        let stride = n.next_multiple_of(LANES) | LANES;
        Self {
            stride,
            counts: vec![C::ZERO; k * stride],
            shifts: vec![C::NONE; stride],
            bounds: vec![C::NONE; stride],
            column: vec![C::NONE; k.next_multiple_of(LANES)],
        }
    }

    /// The neighbours of a vertex in a colour.
    #[inline(always)]
    pub(super) fn count(&self, vertex: usize, color: u32) -> u32 {
        self.counts[color as usize * self.stride + vertex].without_ban()
    }

    /// Whether a vertex may not take a colour.
    #[inline(always)]
    pub(super) fn is_banned(&self, vertex: usize, color: u32) -> bool {
        self.counts[color as usize * self.stride + vertex] >= C::BAN
    }

    /// Bans a colour.
    #[inline(always)]
    pub(super) fn ban(&mut self, vertex: usize, color: u32) {
        let count = &mut self.counts[color as usize * self.stride + vertex];
        *count = C::from_u32(count.without_ban()).with_ban();
    }

    /// Allows a colour.
    #[inline(always)]
    pub(super) fn allow(&mut self, vertex: usize, color: u32) {
        let count = &mut self.counts[color as usize * self.stride + vertex];
        *count = C::from_u32(count.without_ban());
        self.bounds[vertex] = self.bounds[vertex].min(count.shifted(self.shifts[vertex]));
    }

    /// What a count of this vertex is shifted by; `None` if it is not in the list.
    #[inline(always)]
    pub(super) fn shift(&self, vertex: usize) -> Option<u32> {
        Some(self.shifts[vertex]).filter(|shift| *shift != C::NONE).map(C::get)
    }

    /// The least shift in the list.
    #[inline(always)]
    pub(super) fn least_shift(&self) -> u32 {
        least(&self.shifts).get()
    }

    /// Puts a vertex into the list, or changes its shift there.
    #[inline(always)]
    pub(super) fn list(&mut self, vertex: usize, shift: u32) {
        let before = std::mem::replace(&mut self.shifts[vertex], C::from_u32(shift));
        let bound = &mut self.bounds[vertex];
        if before == C::NONE {
            *bound = C::from_u32(shift);
            self.tighten(vertex);
        } else if *bound != C::NONE {
            *bound = C::from_u32((bound.get() + shift).saturating_sub(before.get()).min(C::NONE.get()));
        }
    }

    /// Takes a vertex out of the list.
    #[inline(always)]
    pub(super) fn unlist(&mut self, vertex: usize) {
        self.shifts[vertex] = C::NONE;
        self.bounds[vertex] = C::NONE;
    }

    /// Makes the bound of a vertex exact.
    #[inline(always)]
    pub(super) fn tighten(&mut self, vertex: usize) {
        let least = self.counts[vertex..].iter().step_by(self.stride).fold(C::NONE, |a, b| a.min(*b));
        self.bounds[vertex] = if least < C::BAN { least.shifted(self.shifts[vertex]) } else { C::NONE };
    }

    /// A vertex gets a colour.
    #[inline(always)]
    pub(super) fn put(&mut self, at: Place<'_>, color: u32) {
        let row = &mut self.counts[color as usize * self.stride..][..self.stride];
        if at.matrix.is_dense() {
            for (count, byte) in row.iter_mut().zip(at.matrix.row(at.vertex)) {
                *count = count.plus(*byte);
            }
        } else {
            for &other in at.graph.neighbours(at.vertex) {
                row[other as usize] = row[other as usize].plus(1);
            }
        }
    }

    /// A vertex loses its colour.
    #[inline(always)]
    pub(super) fn take(&mut self, at: Place<'_>, color: u32) {
        let row = &mut self.counts[color as usize * self.stride..][..self.stride];
        if at.matrix.is_dense() {
            let bytes = at.matrix.row(at.vertex);
            let (shifts, bounds) = (&self.shifts[..self.stride], &mut self.bounds[..self.stride]);
            for (((count, byte), shift), bound) in row.iter_mut().zip(bytes).zip(shifts).zip(bounds) {
                *count = count.minus(*byte);
                *bound = (*bound).min(count.shifted(*shift));
            }
        } else {
            for &other in at.graph.neighbours(at.vertex) {
                let other = other as usize;
                row[other] = row[other].minus(1);
                self.bounds[other] = self.bounds[other].min(row[other].shifted(self.shifts[other]));
            }
        }
    }

    /// The best move of all that are not banned: the cheapest; of those the vertex of least rank; of its cheapest colours the one of least rank.
    #[inline(always)]
    pub(super) fn best<I: Instructions>(&mut self, chance: &Chance) -> Option<Move> {
        loop {
            let least = Some(least(&self.bounds)).filter(|least| *least != C::NONE)?;
            let vertices =
                ties::<C, I>(&self.bounds, least).map(|vertex| (chance.vertex_rank(vertex), vertex));
            let (vertex_rank, vertex) = vertices.min()?;
            let counts = self.counts[vertex as usize..].iter().step_by(self.stride);
            self.column.iter_mut().zip(counts).for_each(|(to, from)| *to = *from);
            let count = self::least(&self.column);
            let bound = &mut self.bounds[vertex as usize];
            *bound = if count < C::BAN { count.shifted(self.shifts[vertex as usize]) } else { C::NONE };
            if *bound == least {
                let colors = ties::<C, I>(&self.column, count).map(|color| (chance.color_rank(color), color));
                let (color_rank, color) = colors.min()?;
                return Some(Move { cost: least.get(), vertex_rank, color_rank, vertex, color });
            }
        }
    }
}

#[inline(always)]
fn least<C: Count>(numbers: &[C]) -> C {
    let mut least = [C::NONE; LANES];
    for chunk in numbers.as_chunks::<LANES>().0 {
        for (least, number) in least.iter_mut().zip(chunk) {
            *least = (*least).min(*number);
        }
    }
    least.into_iter().fold(C::NONE, C::min)
}

/// The indexes of the numbers that are at most `most`.
#[inline(always)]
fn ties<C: Count, I: Instructions>(numbers: &[C], most: C) -> impl Iterator<Item = u32> {
    numbers.as_chunks::<LANES>().0.iter().enumerate().flat_map(move |(chunk_idx, chunk)| {
        let mut bits = C::at_most::<I>(chunk, most);
        std::iter::from_fn(move || {
            let lane = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some((chunk_idx * LANES) as u32 + lane)
        })
    })
}

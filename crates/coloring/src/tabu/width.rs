//! A search whose counts fit into a byte each, or else into two: its callers need not know which.

use super::matrix::Matrix;
use super::scan::{Instructions, Work, dispatch};
use super::{Outcome, is_narrow, stride};
use crate::Graph;
use crate::random::Random;

/// A search that makes one move after another.
pub(super) trait Moves<'a>: Sized {
    /// One that begins at a colouring.
    fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize, random: Random, colors: &[u32]) -> Self;

    /// Vertices, iterations since it began, and conflicts of the best colouring. It ends when there are none.
    fn state(&self) -> (usize, u64, u32);

    /// One iteration.
    fn step<I: Instructions>(&mut self);
}

/// A search with counts of either width.
#[derive(Clone, Debug)]
pub(super) enum Width<N, W> {
    Narrow(N),
    Wide(W),
}

/// What searches of both widths do by the same name.
macro_rules! either {
    ($width:expr, $search:ident => $call:expr) => {
        match $width {
            $crate::tabu::width::Width::Narrow($search) => $call,
            $crate::tabu::width::Width::Wide($search) => $call,
        }
    };
}

pub(super) use either;

impl<'a, N: Moves<'a>, W: Moves<'a>> Width<N, W> {
    /// The narrow one where its counts are wide enough.
    pub(super) fn new(
        graph: &'a Graph,
        matrix: &'a Matrix,
        k: usize,
        random: Random,
        colors: &[u32],
    ) -> Self {
        if is_narrow(graph, k) {
            Self::Narrow(N::new(graph, matrix, k, random, colors))
        } else {
            Self::Wide(W::new(graph, matrix, k, random, colors))
        }
    }

    /// Makes up to `iterations` iterations; `stop` is asked now and then.
    pub(super) fn run(&mut self, iterations: u64, stop: impl Fn() -> bool) -> Outcome {
        either!(self, search => run(search, iterations, stop))
    }
}

fn run<'a>(search: &mut impl Moves<'a>, iterations: u64, stop: impl Fn() -> bool) -> Outcome {
    let (n, start, _) = search.state();
    loop {
        let (_, now, conflicts) = search.state();
        if conflicts == 0 || now - start >= iterations || stop() {
            return Outcome { iterations: now - start, conflicts };
        }
        dispatch(Steps { search, end: start + iterations.min(now - start + stride(n)) });
    }
}

/// Iterations up to a certain one.
struct Steps<'s, S> {
    search: &'s mut S,
    end: u64,
}

impl<'a, S: Moves<'a>> Work for Steps<'_, S> {
    type Output = ();

    #[inline(always)]
    fn with<I: Instructions>(self) {
        while let (_, now, 1..) = self.search.state()
            && now < self.end
        {
            self.search.step::<I>();
        }
    }
}

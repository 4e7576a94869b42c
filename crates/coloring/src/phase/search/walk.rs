//! A search along one path of moves, on the CPU.

use super::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};
use crate::error::ColoringError;
use crate::random::Random;
use crate::tabu::{Partial, Tabu, Weighted};
use crate::warm::n_conflicts;

/// A search along one path of moves.
pub(super) trait Path: Send {
    /// Makes up to so many iterations. Returns their number, and how far the best so far is from a colouring in the path's own measure.
    fn go(&mut self, iterations: u64, stop: &dyn Fn() -> bool) -> (u64, u32);

    /// The best colouring so far.
    fn found(&self) -> Vec<u32>;

    /// The mean tenure of its moves at present.
    fn tenure(&self) -> f64;
}

impl Path for Tabu<'_> {
    fn go(&mut self, iterations: u64, stop: &dyn Fn() -> bool) -> (u64, u32) {
        let outcome = self.run(iterations, stop);
        (outcome.iterations, outcome.conflicts)
    }

    fn found(&self) -> Vec<u32> {
        self.best().to_vec()
    }

    fn tenure(&self) -> f64 {
        Tabu::tenure(self)
    }
}

impl Path for Partial<'_> {
    fn go(&mut self, iterations: u64, stop: &dyn Fn() -> bool) -> (u64, u32) {
        let outcome = self.run(iterations, stop);
        (outcome.iterations, outcome.conflicts)
    }

    fn found(&self) -> Vec<u32> {
        self.best()
    }

    fn tenure(&self) -> f64 {
        Partial::tenure(self)
    }
}

impl Path for Weighted<'_> {
    fn go(&mut self, iterations: u64, stop: &dyn Fn() -> bool) -> (u64, u32) {
        let outcome = self.run(iterations, stop);
        (outcome.iterations, outcome.conflicts)
    }

    fn found(&self) -> Vec<u32> {
        self.best().to_vec()
    }

    fn tenure(&self) -> f64 {
        Weighted::tenure(self)
    }
}

/// Begins a path at a colouring.
type Begin<'a, P> = fn(&PhaseInput<'a>, Random, &[u32]) -> P;

/// A path that begins anew when it leads nowhere, and remembers the best of all.
pub(super) struct Walk<'a, P> {
    kind: PhaseKind,
    input: PhaseInput<'a>,
    begin: Begin<'a, P>,
    path: P,
    n_starts: u64,
    /// How far this path came, in its own measure, and rounds since.
    reached: u32,
    n_idle: u64,
    best: (u32, Vec<u32>),
}

impl<'a, P: Path> Walk<'a, P> {
    /// Begins at the input's colouring.
    pub(super) fn new(kind: PhaseKind, input: PhaseInput<'a>, begin: Begin<'a, P>) -> Self {
        let path = begin(&input, random(kind, input.seed, 0), input.start);
        let best = (u32::MAX, input.start.to_vec());
        Self { kind, input, begin, path, n_starts: 1, reached: u32::MAX, n_idle: 0, best }
    }

    fn start_at(&mut self, colors: &[u32]) {
        self.path = (self.begin)(&self.input, random(self.kind, self.input.seed, self.n_starts), colors);
        self.n_starts += 1;
        (self.reached, self.n_idle) = (u32::MAX, 0);
    }

    /// A start of its own: every vertex has a colour by chance.
    fn fresh(&self) -> Vec<u32> {
        let random = random(self.kind, self.input.seed, self.n_starts | 1 << 32);
        (0..self.input.graph.n() as u64).map(|vertex| random.below(vertex, self.input.k as u32)).collect()
    }
}

/// Random numbers of a path: no two paths of a run share them.
fn random(kind: PhaseKind, seed: u64, number: u64) -> Random {
    Random::new(seed, (kind as u64) << 40 | number)
}

impl<P: Path> Phase for Walk<'_, P> {
    fn kind(&self) -> PhaseKind {
        self.kind
    }

    fn run(&mut self, _scene: &PhaseInput<'_>, slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let clock = Clock::start(self.kind);
        if self.n_idle >= slice.knobs.restart {
            match slice.elite {
                // Every other time the path of another phase is taken up; what everybody shares leads nowhere new.
                Some(elite) if self.n_starts % 2 == 1 => self.start_at(elite),
                _ => self.start_at(&self.fresh()),
            }
        }
        let (iterations, reached) = self.path.go(slice.iterations, &|| slice.is_stopped());
        self.n_idle += 1;
        if reached < self.reached {
            (self.reached, self.n_idle) = (reached, 0);
            let found = self.path.found();
            // Measures differ; what counts between phases are edges.
            let conflicts = n_conflicts(self.input.graph, &found);
            if conflicts < self.best.0 {
                self.best = (conflicts, found);
            }
        }
        let (conflicts, colors) = self.best.clone();
        let mut report = clock.report(iterations, PhaseResult::Searched { colors, conflicts });
        report.values.push(("starts", self.n_starts as f64));
        report.parameters.push(("tenure", self.path.tenure()));
        Ok(report)
    }
}

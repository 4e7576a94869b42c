//! A portfolio of searches with the same number of colours: they race, hand each other their best colourings, and those that pay get
//! more of the work.
//!
//! Work goes in rounds. In a round every search makes the iterations it was allotted, side by side, each in a thread of its own (and on a
//! stream of its own where it runs on a device). What a search is allotted depends on iterations and results, never on the clock, so that
//! a seed is an answer. That a search waits for the slowest of its round is the price; rounds begin short and grow.

mod credit;

use std::sync::atomic::AtomicBool;

use crate::error::ColoringError;
use crate::knob::Knobs;
use crate::phase::{Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice, search};
pub use credit::Credit;

/// Iterations of all searches in the first round, for each vertex of the graph.
const FIRST_PER_VERTEX: u64 = 64;

/// The most iterations of a round.
const MOST: u64 = 4_000_000;

/// By how much a round is longer than the one before: so many eighths.
const GROWTH_EIGHTHS: u64 = 11;

/// What an iteration costs, in iterations of TabuCol: counted from the graph and not measured, so that a seed is an answer.
fn cost(kind: PhaseKind, input: &PhaseInput<'_>) -> f64 {
    let degree = 2.0 * input.graph.n_edges() as f64 / input.graph.n().max(1) as f64;
    match kind {
        // Weights of all edges around a vertex change with it.
        PhaseKind::Edge => 3.0 + degree / 12.0,
        _ => 1.0,
    }
}

/// The iterations of one search in a round.
fn slice_length(round: u64, share: f64, kind: PhaseKind, input: &PhaseInput<'_>, knobs: &Knobs) -> u64 {
    ((round as f64 * share * knobs.iterations_of(kind) / cost(kind, input)) as u64).max(1)
}

/// The searches of one pass, on one input.
pub struct Ensemble<'a> {
    input: PhaseInput<'a>,
    members: Vec<Member<'a>>,
    iterations: u64,
    best: Option<Best>,
}

struct Member<'a> {
    phase: Box<dyn Phase + 'a>,
    conflicts: u32,
}

/// The colouring with the fewest conflicts of all searches.
#[derive(Clone, Debug)]
pub struct Best {
    /// The phase that found it.
    pub kind: PhaseKind,
    /// Edges that join equal colours.
    pub conflicts: u32,
    /// The colouring.
    pub colors: Vec<u32>,
}

impl<'a> Ensemble<'a> {
    /// The searches among these kinds, on an input.
    pub fn new(input: PhaseInput<'a>, kinds: &[PhaseKind]) -> Self {
        // A population fills a device; a plain tabu search beside it is worth more on the CPU.
        let is_full = kinds.contains(&PhaseKind::Memetic);
        let begin = |(stream, kind): (usize, &PhaseKind)| {
            let device = input.device.filter(|_| !(is_full && *kind == PhaseKind::Tabu));
            let phase = search(*kind, &PhaseInput { device, ..input }, stream as u32)?;
            Some(Member { phase, conflicts: u32::MAX })
        };
        let members = kinds.iter().filter(|kind| kind.is_search()).enumerate().filter_map(begin).collect();
        let iterations = FIRST_PER_VERTEX * input.graph.n().max(16) as u64;
        Self { input, members, iterations, best: None }
    }

    /// Whether it has no searches.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The colouring with the fewest conflicts so far.
    pub fn best(&self) -> Option<&Best> {
        self.best.as_ref()
    }

    /// One round: every search that is on makes its share of the iterations, at most `most` in all. `credit` splits them,
    /// and learns from the reports. Returns the reports and the iterations that were allotted; a device makes many for each of them.
    pub fn round(
        &mut self,
        knobs: &Knobs,
        credit: &mut Credit,
        most: u64,
        stop: &AtomicBool,
    ) -> Result<(Vec<PhaseReport>, u64), ColoringError> {
        let kinds: Vec<PhaseKind> = self.members.iter().map(|member| member.phase.kind()).collect();
        // With everything off, nothing would ever happen again.
        let all_off = !kinds.iter().any(|kind| knobs.is_on(*kind));
        let on: Vec<PhaseKind> = kinds.into_iter().filter(|kind| all_off || knobs.is_on(*kind)).collect();
        let iterations = ((self.iterations as f64 * knobs.iterations) as u64).min(most).max(1);
        self.iterations = (self.iterations * GROWTH_EIGHTHS / 8).min(MOST);
        let shares = credit.shares(&on, knobs.even_share);
        let (input, best) = (&self.input, &self.best);
        let mut results: Vec<Result<PhaseReport, ColoringError>> = Vec::new();
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for member in &mut self.members {
                let kind = member.phase.kind();
                let Some(at) = on.iter().position(|of| *of == kind) else { continue };
                // The colouring of another one, if it is better.
                let elite =
                    best.as_ref().filter(|best| best.kind != kind && best.conflicts < member.conflicts);
                let slice = Slice {
                    iterations: slice_length(iterations, shares[at], kind, input, knobs),
                    stop,
                    elite: elite.map(|best| &best.colors[..]),
                    knobs,
                };
                running.push(scope.spawn(move || member.phase.run(input, &slice)));
            }
            results.extend(running.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
        });
        let reports = results.into_iter().collect::<Result<Vec<PhaseReport>, ColoringError>>()?;
        for report in &reports {
            self.learn(report, credit);
        }
        Ok((reports, iterations))
    }

    fn learn(&mut self, report: &PhaseReport, credit: &mut Credit) {
        let PhaseResult::Searched { colors, conflicts } = &report.result else { return };
        if let Some(member) = self.members.iter_mut().find(|member| member.phase.kind() == report.kind) {
            member.conflicts = *conflicts;
        }
        let before = self.best.as_ref().map(|best| best.conflicts);
        credit.learn(report.kind, report.iterations, before, *conflicts);
        if before.is_none_or(|before| *conflicts < before) {
            self.best = Some(Best { kind: report.kind, conflicts: *conflicts, colors: colors.clone() });
        }
    }
}

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
use crate::phase::{DeviceInput, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice, search};
use crate::random::mix;
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
    is_on_device: bool,
    conflicts: u32,
}

/// The colouring with the fewest conflicts of all searches.
#[derive(Clone, Debug)]
pub struct Best {
    /// The phase that found it.
    pub kind: PhaseKind,
    /// Its number among the searches.
    member: usize,
    /// Edges that join equal colours.
    pub conflicts: u32,
    /// The colouring.
    pub colors: Vec<u32>,
}

impl<'a> Ensemble<'a> {
    /// The searches among these kinds, on an input. One that has a kernel runs on all devices, on each by itself with chances of its
    /// own, unless it is among those that stay on the CPU.
    pub fn new(
        input: PhaseInput<'a>,
        kinds: &[PhaseKind],
        devices: &[DeviceInput<'a>],
        on_cpu: &[PhaseKind],
    ) -> Self {
        // A population fills a device; a plain tabu search beside it is worth more on the CPU.
        let is_full = kinds.contains(&PhaseKind::Memetic) && !on_cpu.contains(&PhaseKind::Memetic);
        let mut members = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.is_search()) {
            let is_kept = on_cpu.contains(kind) || is_full && *kind == PhaseKind::Tabu;
            let places: Vec<Option<DeviceInput<'a>>> = match devices {
                [first, others @ ..] if kind.has_kernel() && !is_kept => {
                    [first].into_iter().chain(others).map(|device| Some(*device)).collect()
                }
                _ => vec![None],
            };
            for (number, device) in places.into_iter().enumerate() {
                // The first device has the chances that a single one has.
                let seed = if number == 0 { input.seed } else { mix(input.seed ^ mix(number as u64)) };
                let phase = search(*kind, &PhaseInput { device, seed, ..input });
                let is_on_device = device.is_some();
                members.extend(phase.map(|phase| Member { phase, is_on_device, conflicts: u32::MAX }));
            }
        }
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
        let mut kinds: Vec<PhaseKind> = self.members.iter().map(|member| member.phase.kind()).collect();
        // Those of several devices stand side by side, and each makes what one would.
        kinds.dedup();
        // With everything off, nothing would ever happen again.
        let all_off = !kinds.iter().any(|kind| knobs.is_on(*kind));
        let on: Vec<PhaseKind> = kinds.into_iter().filter(|kind| all_off || knobs.is_on(*kind)).collect();
        let iterations = ((self.iterations as f64 * knobs.iterations) as u64).min(most).max(1);
        self.iterations = (self.iterations * GROWTH_EIGHTHS / 8).min(MOST);
        let shares = credit.shares(&on, knobs.even_share);
        // A device works beside the CPU, so it may as well work as long as the search that the CPU is longest at.
        let largest = shares.iter().copied().fold(0.0, f64::max);
        let (input, best) = (&self.input, &self.best);
        let mut results: Vec<Result<(usize, PhaseReport), ColoringError>> = Vec::new();
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (number, member) in self.members.iter_mut().enumerate() {
                let kind = member.phase.kind();
                let Some(at) = on.iter().position(|of| *of == kind) else { continue };
                // The colouring of another one, if it is better.
                let elite =
                    best.as_ref().filter(|best| best.member != number && best.conflicts < member.conflicts);
                let share = if member.is_on_device { largest } else { shares[at] };
                let slice = Slice {
                    iterations: slice_length(iterations, share, kind, input, knobs),
                    stop,
                    elite: elite.map(|best| &best.colors[..]),
                    knobs,
                };
                running.push(scope.spawn(move || Ok((number, member.phase.run(input, &slice)?))));
            }
            results.extend(running.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
        });
        let reports = results.into_iter().collect::<Result<Vec<(usize, PhaseReport)>, ColoringError>>()?;
        for (number, report) in &reports {
            self.learn(*number, report, credit);
        }
        Ok((reports.into_iter().map(|(_, report)| report).collect(), iterations))
    }

    fn learn(&mut self, number: usize, report: &PhaseReport, credit: &mut Credit) {
        let PhaseResult::Searched { colors, conflicts } = &report.result else { return };
        self.members[number].conflicts = *conflicts;
        let before = self.best.as_ref().map(|best| best.conflicts);
        credit.learn(report.kind, report.iterations, before, *conflicts);
        if before.is_none_or(|before| *conflicts < before) {
            let (kind, conflicts, colors) = (report.kind, *conflicts, colors.clone());
            self.best = Some(Best { kind, member: number, conflicts, colors });
        }
    }
}

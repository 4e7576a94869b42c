//! One run: first colourings, then passes downwards.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tidemill_telemetry::DeviceMode;

use super::Observer;
use super::option::Options;
use super::outcome::{Ending, Outcome, PhaseTotal};
use super::place::{DevicePlaces, PlacedGraphs};
use super::plan::Pass;
use super::state::State;
use super::stop::Halt;
use crate::ensemble::Ensemble;
use crate::error::ColoringError;
use crate::event::{PassEvent, RoundWork};
use crate::experimental::signal::{SignalPhase, normalized};
use crate::graph::Graph;
use crate::initial::n_colors;
use crate::instance::Instance;
use crate::phase::{
    Construct, Family, Judge, Peel, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice,
};
use crate::random::{Random, mix};
use crate::slot::scattered;
use crate::tabu::{MOST_WIDE, Matrix, class_limit};
use crate::warm::warm_start;

/// Iterations of the search that a signal is measured on, for each vertex.
const SIGNAL_PER_VERTEX: u64 = 256;

/// Random numbers of the start of a pass that does not begin at the best colouring.
const COLD_START: u64 = 0x636f_6c64 << 16;

/// A run in progress.
pub(super) struct Descent<'a> {
    pub(super) instance: &'a Instance,
    pub(super) graph: &'a Graph,
    pub(super) options: &'a Options,
    pub(super) bound: usize,
    /// Whether a pass was beyond the searches: see [`is_searchable`].
    pub(super) is_beyond: bool,
    pub(super) state: State,
    pub(super) totals: Vec<PhaseTotal>,
    /// Where phases run that can run on a device.
    pub(super) devices: Arc<DevicePlaces>,
    pub(super) halt: &'a Halt,
    pub(super) began: Instant,
    /// When the last round was over; before the first one, when the run began.
    pub(super) round_over: Instant,
    /// Seconds at work before the run was resumed.
    pub(super) earlier_s: f64,
    pub(super) observer: &'a mut dyn Observer,
}

impl Descent<'_> {
    /// First colourings, and signals if there are any.
    pub(super) fn begin(&mut self) -> Result<(), ColoringError> {
        self.construct(None)?;
        let signals: Vec<PhaseKind> = self.of_family(|family| family == Family::Signal);
        if signals.is_empty() || self.state.k < 2 || self.halt.is_set() {
            return Ok(());
        }
        let start = warm_start(self.graph, &self.state.colors, self.state.k - 1, None);
        let matrix = Matrix::new(self.graph);
        let input = PhaseInput {
            graph: self.graph,
            matrix: &matrix,
            k: self.state.k - 1,
            start: &start,
            seed: self.seed(0),
            child_quarters: 4,
            device: None,
        };
        let knobs = self.state.knobs.clone();
        let iterations = SIGNAL_PER_VERTEX * self.graph.n() as u64;
        let slice = Slice { iterations, stop: &self.halt.flag, elite: None, knobs: &knobs };
        let devices = self.devices.clone();
        let placed = devices.put(self.graph, input.k)?;
        let first = placed.inputs().first().copied();
        // Side by side, each in a thread and, on a device, on its stream.
        let reports: Vec<Result<PhaseReport, ColoringError>> = std::thread::scope(|scope| {
            let on_cpu = &self.options.on_cpu;
            let (input, slice) = (&input, &slice);
            let measure = move |kind: PhaseKind| {
                let device = first.filter(|_| !on_cpu.contains(&kind));
                SignalPhase::new(kind).run(&PhaseInput { device, ..*input }, slice)
            };
            let threads: Vec<_> = signals.iter().map(|kind| scope.spawn(move || measure(*kind))).collect();
            let joined = threads.into_iter().map(|thread| match thread.join() {
                Ok(report) => report,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        });
        for report in reports {
            let mut report = report?;
            if let Some(reason) = &placed.reason {
                report.device = DeviceMode::CpuFallback { reason: reason.clone() };
            }
            if let PhaseResult::Priority(priority) = &report.result {
                self.state.signals.insert(report.kind.name().to_owned(), normalized(priority));
            }
            self.worked(&report, input.k)?;
        }
        self.construct(self.state.priority())
    }

    fn of_family(&self, is_wanted: impl Fn(Family) -> bool) -> Vec<PhaseKind> {
        PhaseKind::all().filter(|kind| self.options.has(*kind) && is_wanted(kind.family())).collect()
    }

    /// All first colourings, side by side.
    fn construct(&mut self, priority: Option<Vec<f64>>) -> Result<(), ColoringError> {
        let matrix = Matrix::new(&Graph::new(0, []));
        let input = PhaseInput {
            graph: self.graph,
            matrix: &matrix,
            k: 0,
            start: &[],
            seed: self.seed(0),
            child_quarters: 4,
            device: None,
        };
        let knobs = self.state.knobs.clone();
        let slice = Slice { iterations: 0, stop: &self.halt.flag, elite: None, knobs: &knobs };
        let kinds = self.of_family(|family| matches!(family, Family::Initial(_)));
        let made = kinds.par_iter().filter_map(|kind| match kind.family() {
            Family::Initial(initial) => {
                Some(Construct::new(*kind, initial, priority.clone()).run(&input, &slice))
            }
            _ => None,
        });
        let reports: Vec<PhaseReport> = made.collect::<Result<_, _>>()?;
        for report in reports {
            if let PhaseResult::Colored(colors) = &report.result {
                let k = n_colors(colors);
                self.worked(&report, k)?;
                self.accept(colors.clone(), report.kind)?;
            }
        }
        Ok(())
    }

    /// Passes until something ends the run.
    pub(super) fn passes(&mut self) -> Result<Ending, ColoringError> {
        loop {
            self.state.seconds = self.seconds();
            if let Some(ending) = self.ending() {
                return Ok(ending);
            }
            let (n, best, target) = (self.graph.n(), self.state.k, self.options.target);
            let pass = self.state.plan.pass(n, best, self.bound, target, self.devices.has_some());
            self.observer.observe(PassEvent::PassBegan { state: &self.state, k: pass.k })?;
            let before = self.state.iterations;
            let is_solved = self.pass(pass)?;
            let is_used_up = self.options.max_iterations.is_some_and(|most| self.state.iterations >= most);
            if !is_solved && (self.halt.is_set() || is_used_up) {
                // Unfinished, it is not counted: a resumed run begins it again.
                continue;
            }
            self.state.pass += 1;
            self.state.plan.learn(pass, best, is_solved, target);
            let delta = best - self.state.k;
            self.state.n_idle = if delta >= self.options.min_delta { 0 } else { self.state.n_idle + 1 };
            let iterations = self.state.iterations;
            self.observer.observe(PassEvent::PassEnded {
                pass: self.state.pass,
                k: pass.k,
                is_solved,
                best: self.state.k,
                pass_iterations: iterations - before,
                iterations,
            })?;
        }
    }

    fn ending(&self) -> Option<Ending> {
        let (state, options) = (&self.state, self.options);
        let reached = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value >= limit);
        if options.target.is_some_and(|target| state.k <= target) {
            Some(Ending::Target)
        } else if state.k <= self.bound {
            Some(Ending::Optimal)
        } else if self.halt.is_set() {
            Some(if self.halt.is_late() { Ending::Time } else { Ending::Stopped })
        } else if self.is_beyond || !options.phases.iter().any(|kind| kind.is_search()) {
            Some(Ending::Done)
        } else if reached(options.max_iterations, state.iterations) {
            Some(Ending::Iterations)
        } else if reached(options.max_passes, state.pass) {
            Some(Ending::Passes)
        } else if reached(options.patience, state.n_idle) {
            Some(Ending::Stagnation)
        } else {
            None
        }
    }

    /// One pass; whether a colouring with that many colours was found.
    fn pass(&mut self, pass: Pass) -> Result<bool, ColoringError> {
        let seed = self.seed(self.state.pass + 1);
        let knobs = self.state.knobs.clone();
        let slice = Slice { iterations: 0, stop: &self.halt.flag, elite: None, knobs: &knobs };
        let matrix = Matrix::new(&Graph::new(0, []));
        let whole = PhaseInput {
            graph: self.graph,
            matrix: &matrix,
            k: pass.k,
            start: &[],
            seed,
            child_quarters: 4,
            device: None,
        };
        let reduction = if self.options.has(PhaseKind::Reduction) {
            let report = Peel.run(&whole, &slice)?;
            self.worked(&report, pass.k)?;
            match report.result {
                PhaseResult::Reduced(reduction) if reduction.n_removed() > 0 => Some(reduction),
                _ => None,
            }
        } else {
            None
        };
        let graph = reduction.as_ref().map_or(self.graph, |reduction| &reduction.graph);
        if graph.n() == 0 {
            // Nothing is left to search: whatever the vertices were taken out for gives each its colour.
            let colors =
                reduction.as_ref().map_or_else(Vec::new, |reduction| reduction.restore(self.graph, &[]));
            return self.accept(colors, PhaseKind::Reduction);
        }
        if !is_searchable(graph, pass.k) {
            self.is_beyond = true;
            return Ok(false);
        }
        let restrict = |values: &[u32]| match &reduction {
            Some(reduction) => reduction.restrict(values),
            None => values.to_vec(),
        };
        let priority = self.state.priority().map(|priority| match &reduction {
            Some(reduction) => reduction.kept.iter().map(|vertex| priority[*vertex as usize]).collect(),
            None => priority,
        });
        let best = restrict(&self.state.colors);
        let start = match self.options.warm_start {
            true => warm_start(graph, &compact(&best), pass.k, priority.as_deref()),
            false => scattered(graph.n(), pass.k, &Random::new(seed, COLD_START)),
        };
        let matrix = Matrix::new(graph);
        let devices = self.devices.clone();
        let placed = devices.put(graph, pass.k)?;
        let input = PhaseInput {
            graph,
            matrix: &matrix,
            k: pass.k,
            start: &start,
            seed,
            child_quarters: pass.child_quarters,
            device: None,
        };
        let Some((colors, by)) = self.race(input, pass, &placed)? else { return Ok(false) };
        let colors = match &reduction {
            Some(reduction) => reduction.restore(self.graph, &colors),
            None => colors,
        };
        self.accept(colors, by)
    }

    /// Lets the searches race. Returns a colouring without conflicts and the phase that found it, if there is one.
    fn race(
        &mut self,
        input: PhaseInput<'_>,
        pass: Pass,
        placed: &PlacedGraphs<'_>,
    ) -> Result<Option<(Vec<u32>, PhaseKind)>, ColoringError> {
        let devices = placed.inputs();
        let mut ensemble = Ensemble::new(input, &self.options.phases, &devices, &self.options.on_cpu);
        let most = self.options.max_iterations.unwrap_or(u64::MAX);
        // A device that refuses or fails leaves the CPU with the pass, and then it is as long as the CPU's.
        let (mut given, mut length) = (0, pass.iterations);
        while given < length && self.state.iterations < most && !self.halt.is_set() && !ensemble.is_empty() {
            for (name, value) in self.observer.changes(self.state.round, &self.state.knobs)? {
                self.state.knobs.set(&name, value);
            }
            let left = (length - given).min(most - self.state.iterations);
            let (knobs, credit) = (&self.state.knobs, &mut self.state.credit);
            let (mut reports, now_given) = ensemble.round(knobs, credit, left, &self.halt.flag)?;
            given += now_given;
            if let Some(reason) = &placed.reason {
                let mode = DeviceMode::CpuFallback { reason: reason.clone() };
                reports.iter_mut().for_each(|report| report.device = mode.clone());
            }
            let on_device = reports.iter().any(|report| matches!(report.device, DeviceMode::Gpu { .. }));
            length = pass.iterations.saturating_mul(if on_device { pass.device_factor } else { 1 });
            self.state.iterations += reports.iter().map(|report| report.iterations).sum::<u64>();
            for report in &reports {
                self.worked(report, pass.k)?;
            }
            self.round_ended(&reports, pass.k)?;
            self.state.round += 1;
            if let Some(best) = ensemble.best()
                && best.conflicts == 0
            {
                return Ok(Some((best.colors.clone(), best.kind)));
            }
        }
        Ok(None)
    }

    /// Reports how well a round used its time.
    fn round_ended(&mut self, reports: &[PhaseReport], k: usize) -> Result<(), ColoringError> {
        let is_on_device = |report: &&PhaseReport| matches!(report.device, DeviceMode::Gpu { .. });
        let longest = |reports: &mut dyn Iterator<Item = &PhaseReport>| reports.map(|it| it.took).max();
        let work = longest(&mut reports.iter().filter(is_on_device)).or_else(|| longest(&mut reports.iter()));
        let now = Instant::now();
        let wall = now.duration_since(self.round_over);
        self.round_over = now;
        self.observer.observe(PassEvent::RoundEnded(RoundWork {
            round: self.state.round,
            pass: self.state.pass + 1,
            k,
            wall,
            work: work.unwrap_or_default(),
            iterations: self.state.iterations,
        }))
    }

    /// Takes a colouring of the whole graph if it passes the verifier and has fewer colours. True if it has.
    fn accept(&mut self, colors: Vec<u32>, by: PhaseKind) -> Result<bool, ColoringError> {
        let colors = compact(&colors);
        let report = {
            let matrix = Matrix::new(&Graph::new(0, []));
            let k = n_colors(&colors);
            let input = PhaseInput {
                graph: self.graph,
                matrix: &matrix,
                k,
                start: &[],
                seed: 0,
                child_quarters: 4,
                device: None,
            };
            let knobs = self.state.knobs.clone();
            let slice = Slice { iterations: 0, stop: &self.halt.flag, elite: None, knobs: &knobs };
            Judge::new(self.instance, &colors, by).run(&input, &slice)?
        };
        let PhaseResult::Proper(k) = report.result else { return Ok(false) };
        if let Some(total) = self.totals.iter_mut().find(|total| total.kind == by) {
            total.k = Some(total.k.map_or(k, |before| before.min(k)));
        }
        let is_first = self.state.by.is_empty();
        if !is_first && k >= self.state.k {
            return Ok(false);
        }
        (self.state.k, self.state.by, self.state.found_s) = (k, by.name().to_owned(), self.seconds());
        self.state.colors = colors;
        if let Some(total) = self.totals.iter_mut().find(|total| total.kind == by) {
            total.improvements += 1;
        }
        self.worked(&report, k)?;
        let (colors, pass, iterations) = (&self.state.colors, self.state.pass, self.state.iterations);
        self.observer.observe(PassEvent::Improved { k, colors, by, pass, iterations, at: Instant::now() })?;
        Ok(true)
    }

    /// Counts what a phase did and reports it.
    fn worked(&mut self, report: &PhaseReport, k: usize) -> Result<(), ColoringError> {
        let at = self.totals.iter().position(|total| total.kind == report.kind).unwrap_or_else(|| {
            self.totals.push(PhaseTotal {
                kind: report.kind,
                slices: 0,
                iterations: 0,
                seconds: 0.0,
                improvements: 0,
                k: None,
                device: DeviceMode::Cpu,
            });
            self.totals.len() - 1
        });
        let total = &mut self.totals[at];
        total.slices += 1;
        total.iterations += report.iterations;
        total.seconds += report.took.as_secs_f64();
        total.device = report.device.clone();
        self.observer.observe(PassEvent::PhaseWorked {
            report,
            k,
            pass: self.state.pass,
            round: self.state.round,
            iterations: self.state.iterations,
            best: (!self.state.by.is_empty()).then_some(self.state.k),
        })
    }

    /// Seeds of passes: no two share one.
    fn seed(&self, pass: u64) -> u64 {
        mix(mix(self.options.seed).wrapping_add(pass))
    }

    /// Seconds at work, with those before the run was resumed.
    fn seconds(&self) -> f64 {
        self.earlier_s + self.began.elapsed().as_secs_f64()
    }

    pub(super) fn outcome(self, ending: Ending) -> Outcome {
        let seconds = self.seconds();
        Outcome {
            k: self.state.k,
            bound: self.bound,
            passes: self.state.pass,
            iterations: self.state.iterations,
            seconds,
            found_s: self.state.found_s,
            by: self.state.by.parse().unwrap_or(PhaseKind::Validation),
            ending,
            phases: self.totals,
            colors: self.state.colors,
        }
    }
}

/// Whether the counts of a search can hold the neighbours in a class: where a vertex has very many, a class must not have more.
fn is_searchable(graph: &Graph, k: usize) -> bool {
    class_limit(graph, MOST_WIDE).saturating_mul(k) >= graph.n()
}

/// The same classes, their colours numbered by the first vertex that has them.
fn compact(colors: &[u32]) -> Vec<u32> {
    let mut names = std::collections::BTreeMap::new();
    let name = |color: &u32| {
        let next = names.len() as u32;
        *names.entry(*color).or_insert(next)
    };
    colors.iter().map(name).collect()
}

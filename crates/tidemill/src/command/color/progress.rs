//! The progress line of a colouring run, and the advice of its tuning rules.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tidemill_coloring::PassEvent;
use tidemill_coloring::phase::PhaseReport;
use tidemill_telemetry::hypertune::Proposal;

/// The least time between two updates of the progress line.
const EVERY: Duration = Duration::from_millis(100);

/// Shows the events of a run.
pub struct Progress {
    bar: ProgressBar,
    drawn: Instant,
    best: Option<usize>,
    /// By phase: the colours it tries, conflicts, iterations a second.
    phases: BTreeMap<&'static str, (usize, u32, f64)>,
    /// The newest sentence about each knob.
    advice: BTreeMap<String, String>,
}

impl Progress {
    /// An empty line.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, drawn: Instant::now(), best: None, phases: BTreeMap::new(), advice: BTreeMap::new() }
    }

    /// Takes note of an event.
    pub fn show(&mut self, event: &PassEvent<'_>) {
        match event {
            PassEvent::PhaseWorked { report, k, .. } => self.draw(report, *k),
            PassEvent::Improved { k, .. } => self.best = Some(*k),
            PassEvent::PassEnded { .. } => self.phases.clear(),
            PassEvent::Tuned(proposal) => {
                if let (Proposal::Apply(decision) | Proposal::Advise(decision), Some(sentence)) =
                    (proposal, proposal.sentence())
                {
                    self.advice.insert(decision.knob.clone(), sentence);
                }
            }
            PassEvent::Ended(_) | PassEvent::Failed { .. } => self.bar.finish_and_clear(),
            PassEvent::Started { .. }
            | PassEvent::Warning { .. }
            | PassEvent::PassBegan { .. }
            | PassEvent::RoundEnded(_) => {}
        }
    }

    /// The newest sentence of the tuning rules about each knob.
    pub fn advice(&self) -> impl Iterator<Item = &String> {
        self.advice.values()
    }

    fn draw(&mut self, report: &PhaseReport, k: usize) {
        let Some(conflicts) = report.conflicts() else { return };
        self.phases.insert(report.kind.name(), (k, conflicts, report.it_per_s().unwrap_or(0.0)));
        if self.drawn.elapsed() < EVERY {
            return;
        }
        self.drawn = Instant::now();
        let best = self.best.map_or_else(String::new, |best| format!("{best} colours"));
        let parts: Vec<String> = self
            .phases
            .iter()
            .map(|(name, (k, conflicts, speed))| {
                format!("{name} k={k} conflicts={conflicts} {speed:.1e} it/s")
            })
            .collect();
        self.bar.set_message(format!("{best} | {}", parts.join(" | ")));
    }
}

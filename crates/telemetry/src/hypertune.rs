//! Rules that watch a run and turn its knobs, or advise to.
//!
//! The [`Tuner`] knows no workload. A workload declares in [`Signals`] which of its values the rules read, and registers its [`Knob`]s and,
//! for each [`Symptom`], the [`Remedy`]s it knows, the best first; between two batches it shows the tuner the
//! [`Snapshot`](crate::Snapshot) of the run and gets [`Proposal`]s back:
//!
//! ```
//! use tidemill_telemetry::hypertune::{Change, Effect, Knob, KnobKind, Mode, Proposal, Remedy, Signals, Symptom, Thresholds, Tuner};
//! # let snapshot = tidemill_telemetry::Snapshot::default();
//! # let (mut batch_size, batch) = (256.0, 0);
//! let knob = Knob { name: "batch".into(), value: 256.0, low: 16.0, high: 65_536.0, kind: KnobKind::Integer, effect: Effect::ChangesResults };
//! let remedy = Remedy { symptom: Symptom::LowEfficiency, knob: "batch".into(), change: Change::Multiply(4.0), needs_room: false, until_recovery: false };
//! let signals = Signals { busy: Some("busy"), ..Signals::default() };
//! let mut tuner = Tuner::new(Mode::On, Thresholds::default(), signals, vec![knob], vec![remedy]);
//! for proposal in tuner.look(&snapshot, batch) {
//!     // Into the journal first: durably, if it changes results.
//!     let _event = proposal.event("run-1");
//!     if let Proposal::Apply(decision) = proposal {
//!         batch_size = decision.new;
//!     }
//! }
//! ```
//!
//! `look` reads no clock and draws no numbers: the same snapshots give the same proposals. The snapshots of a run do depend on
//! the clock, so a decision that changes results has to be recorded before the batch that it affects is proposed, and a resumed run takes
//! it from there: [`find`](crate::find), [`Decision::from_event`] and [`Tuner::restore`].

mod history;
mod knob;
mod proposal;
mod signal;
mod symptom;
mod threshold;
mod tuner;

#[cfg(test)]
mod tests;

pub use knob::{Change, Effect, Knob, KnobKind, Remedy};
pub use proposal::{Decision, Outcome, Proposal};
pub use signal::{BatchSignals, FailureSignal, FallingSignal, HostSignals, Signals};
pub use symptom::Symptom;
pub use threshold::{ThresholdError, Thresholds};
pub use tuner::{Mode, Tuner};

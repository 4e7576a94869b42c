//! Ordering signals as a phase.

use tidemill_gpu::GpuError;
use tidemill_telemetry::DeviceMode;

use super::{DeviceSignals, Trajectory, inference, reservoir, transfer};
use crate::error::ColoringError;
use crate::phase::{Clock, DeviceInput, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};

/// Samples of a recorded search.
const SAMPLES: usize = 256;

/// Searches of the ensemble whose marginals inference takes.
const SEARCHES: u64 = 8;

/// Measures priorities on short searches.
pub struct SignalPhase {
    kind: PhaseKind,
}

impl SignalPhase {
    /// Measures the signal of this kind.
    pub fn new(kind: PhaseKind) -> Self {
        Self { kind }
    }
}

impl SignalPhase {
    /// The signal by its kernel, and the number of the stream.
    fn on_device(
        &self,
        input: &PhaseInput<'_>,
        device: &DeviceInput<'_>,
        trajectory: &Trajectory,
    ) -> Result<(Vec<f64>, u32), GpuError> {
        let stream = match device.streams.of(self.kind) {
            Some(stream) => stream.clone(),
            None => device.graph.device().stream()?,
        };
        let number = stream.number() as u32;
        let signals = DeviceSignals::new(input.graph, stream)?;
        let priority = match self.kind {
            PhaseKind::Reservoir => signals.reservoir(trajectory)?,
            PhaseKind::Transfer => signals.transfer(trajectory)?,
            _ => signals.inference(trajectory, input.k)?,
        };
        Ok((priority, number))
    }
}

impl Phase for SignalPhase {
    fn kind(&self) -> PhaseKind {
        self.kind
    }

    fn run(&mut self, input: &PhaseInput<'_>, slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let mut clock = Clock::start(self.kind);
        let stop = || slice.is_stopped();
        let n_searches = if self.kind == PhaseKind::Inference { SEARCHES } else { 1 };
        let every = (slice.iterations / (SAMPLES as u64 * n_searches)).max(1);
        let trajectory = Trajectory::record(input, n_searches, SAMPLES, every, &stop);
        let on_device = input.device.map(|device| (device, self.on_device(input, &device, &trajectory)));
        let priority = match on_device {
            Some((_, Ok((priority, stream)))) => {
                clock = clock.at(DeviceMode::Gpu { stream });
                priority
            }
            Some((device, Err(error))) if !device.may_fall_back => return Err(error.into()),
            failed => {
                if let Some((_, Err(error))) = failed {
                    clock = clock.at(DeviceMode::CpuFallback { reason: error.to_string() });
                }
                match self.kind {
                    PhaseKind::Reservoir => reservoir(input.graph, &trajectory),
                    PhaseKind::Transfer => transfer(input.graph, &trajectory),
                    _ => inference(input.graph, &trajectory, input.k),
                }
            }
        };
        let mut report = clock.report(trajectory.iterations, PhaseResult::Priority(priority));
        report.values.push(("samples", trajectory.conflicts.len() as f64));
        Ok(report)
    }
}

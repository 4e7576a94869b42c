//! How long the steps of a phase take.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{DeviceMode, Event};

/// Bins of the histogram per doubling: quantiles are right within 2.2 %.
const BINS_PER_DOUBLING: f64 = 16.0;

/// Durations of one phase. Quantiles come from a histogram of logarithmic bins, so that its size is bounded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseStats {
    /// Number of steps, those without a duration included.
    pub count: u64,
    /// Milliseconds of all.
    pub total_ms: f64,
    /// Duration of the longest step.
    pub max_ms: f64,
    /// Duration of the newest step.
    pub last_ms: f64,
    /// Milliseconds on a GPU.
    pub gpu_ms: f64,
    /// Milliseconds on the CPU, as wanted or without a device in the record.
    pub cpu_ms: f64,
    /// Milliseconds on the CPU although a GPU was wanted.
    pub fallback_ms: f64,
    /// Time of its first record, in seconds at work.
    pub first_at_s: f64,
    /// Time of its newest record, in seconds at work.
    pub last_at_s: f64,
    bins: BTreeMap<i32, u64>,
}

impl PhaseStats {
    /// Adds a step.
    pub(super) fn add(&mut self, event: &Event, at_s: f64) {
        if self.count == 0 {
            self.first_at_s = at_s;
        }
        self.count += 1;
        self.last_at_s = at_s;
        let Some(ms) = event.duration_ms else { return };
        self.push(ms);
        match &event.device {
            Some(DeviceMode::Gpu { .. }) => self.gpu_ms += ms,
            Some(DeviceMode::CpuFallback { .. }) => self.fallback_ms += ms,
            Some(DeviceMode::Cpu) | None => self.cpu_ms += ms,
        }
    }

    /// Takes in a duration.
    fn push(&mut self, duration_ms: f64) {
        self.total_ms += duration_ms;
        self.max_ms = self.max_ms.max(duration_ms);
        self.last_ms = duration_ms;
        // A nanosecond and less is one bin; nothing lasts 2^60 ms.
        let bin = (duration_ms.clamp(1e-6, 1e18).log2() * BINS_PER_DOUBLING).floor() as i32;
        *self.bins.entry(bin).or_default() += 1;
    }

    /// Mean duration of the steps that lasted.
    pub fn mean_ms(&self) -> Option<f64> {
        let n = self.n_lasting();
        (n > 0).then(|| self.total_ms / n as f64)
    }

    /// The duration that this share of the steps does not exceed; 0.5 is the median.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let n = self.n_lasting();
        let rank = ((share.clamp(0.0, 1.0) * n as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bin, count) in &self.bins {
            seen += count;
            if seen >= rank {
                // The middle of the bin, by ratio.
                return Some(((f64::from(*bin) + 0.5) / BINS_PER_DOUBLING).exp2().min(self.max_ms));
            }
        }
        None
    }

    /// Number of steps that lasted.
    pub fn n_lasting(&self) -> u64 {
        self.bins.values().sum()
    }
}

//! What a search runs with: flags, then settings, then defaults.

use anyhow::{Result, bail};
use tidemill_search::SamplerKind;
use tidemill_telemetry::hypertune::Mode;

use crate::executor::DeviceChoice;
use crate::number;
use crate::settings::Settings;

/// What of a search can be said on the command line, by whatever command.
pub struct Asked<'a> {
    pub trials: Option<u64>,
    pub sampler: Option<&'a str>,
    pub batch: Option<&'a str>,
    pub lag: Option<usize>,
    pub seed: Option<u64>,
    pub top: Option<usize>,
    pub hypertune: Option<Mode>,
}

/// What a sweep runs with, all defaults filled in.
pub struct Resolved {
    pub trials: u64,
    pub sampler: SamplerKind,
    pub batch: Option<usize>,
    pub lag: usize,
    pub seed: u64,
    pub top: usize,
    pub cache_bytes: usize,
    pub hypertune: Mode,
}

impl Asked<'_> {
    /// Fills in settings and defaults.
    pub fn resolve(&self, settings: &Settings) -> Result<Resolved> {
        let trials = self.trials.or(settings.sweep.trials).unwrap_or(10_000);
        if trials == 0 {
            bail!("--trials must be at least 1");
        }
        let sampler = self.sampler.or(settings.sweep.sampler.as_deref()).unwrap_or("auto");
        let batch = match self.batch.or(settings.sweep.batch.as_deref()) {
            None | Some("auto") => None,
            Some(text) => match text.parse::<usize>() {
                Ok(batch) if (1..=MAX_BATCH).contains(&batch) => Some(batch),
                _ => bail!(
                    "--batch {text}: write `auto` or a number from 1 to {}",
                    number::count(MAX_BATCH as u64)
                ),
            },
        };
        let lag = self.lag.or(settings.sweep.lag).unwrap_or(1);
        if lag > MAX_LAG {
            bail!("--lag {lag}: more than {MAX_LAG} batches in flight serve no one");
        }
        Ok(Resolved {
            trials,
            sampler: sampler.parse().map_err(|error| anyhow::anyhow!("sampler: {error}"))?,
            batch,
            lag,
            seed: self.seed.or(settings.sweep.seed).unwrap_or(1),
            top: self.top.or(settings.sweep.top).unwrap_or(10),
            cache_bytes: settings.run.cache_mb.unwrap_or(512).clamp(1, 1 << 20) << 20,
            hypertune: match self.hypertune {
                Some(mode) => mode,
                None => settings.hypertune.mode()?,
            },
        })
    }
}

/// Largest batch: beyond it nothing is shared better.
const MAX_BATCH: usize = 1 << 20;

/// Largest lag.
const MAX_LAG: usize = 64;

/// Bars that a batch evaluates at most, so that it takes about a third of a second on two cores.
const BARS_PER_BATCH: u64 = 300_000_000;

/// The batch where none is given. It follows from the study alone, never from the machine, so that a seed means the same everywhere.
///
/// Samplers that learn do so from batch to batch, and better from small ones; the others only gain from sharing work.
pub fn auto_batch(sampler: SamplerKind, trials: u64, n_bars: u64) -> usize {
    let fits = (BARS_PER_BATCH / n_bars.max(1)).clamp(16, 4096);
    let batch = if sampler.learns() { (trials / 64).clamp(16, 256).min(fits) } else { fits };
    // Rounded down to a power of two, which suits caches and Sobol sequences.
    1 << batch.ilog2()
}

/// The most trials of a batch that tuning goes to: one that learns still learns a few dozen times.
pub fn most_batch(sampler: SamplerKind, trials: u64) -> usize {
    let times = if sampler.learns() { 64 } else { 8 };
    usize::try_from(trials / times).unwrap_or(MAX_BATCH).clamp(16, 65_536)
}

/// The device of the flag, else of the settings.
pub fn device_choice(flag: Option<DeviceChoice>, settings: &Settings) -> Result<DeviceChoice> {
    match (flag, &settings.gpu.device) {
        (Some(choice), _) => Ok(choice),
        (None, Some(text)) => text
            .parse()
            .map_err(|error| anyhow::anyhow!("settings {}: gpu.device: {error}", settings.origin())),
        (None, None) => Ok(DeviceChoice::Auto),
    }
}

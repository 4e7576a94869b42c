//! What a search runs with: flags, then settings, then defaults.

use anyhow::{Result, bail};
use tidemill_backtest::EngineOptions;
use tidemill_lab::batch::MAX_BATCH;
use tidemill_lab::{DeviceChoice, SearchOptions, StudyPart, number};
use tidemill_telemetry::hypertune::Mode;

use crate::input::parse_count;
use crate::settings::Settings;

/// The search options of the command line, shared by all commands that search.
pub struct Asked<'a> {
    pub trials: Option<u64>,
    pub plan_trials: Option<u64>,
    pub sampler: Option<&'a str>,
    pub batch: Option<&'a str>,
    pub lag: Option<&'a str>,
    pub seed: Option<u64>,
    pub top: Option<usize>,
    pub hypertune: Option<Mode>,
    pub part: Option<StudyPart>,
}

/// What a sweep runs with, all defaults filled in.
pub struct Resolved {
    pub search: SearchOptions,
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
        if self.plan_trials == Some(0) {
            bail!("--plan-trials must be at least 1");
        }
        let sampler = self.sampler.or(settings.sweep.sampler.as_deref()).unwrap_or("auto");
        let batch = match self.batch.or(settings.sweep.batch.as_deref()) {
            None | Some("auto") => None,
            Some(text) => match parse_count(text).map(|batch| batch as usize) {
                Ok(batch) if (1..=MAX_BATCH).contains(&batch) => Some(batch),
                _ => bail!(
                    "--batch {text}: write `auto` or a number from 1 to {}",
                    number::count(MAX_BATCH as u64)
                ),
            },
        };
        let lag = match self.lag.or(settings.sweep.lag.as_deref()) {
            None | Some("auto") => None,
            Some(text) => match text.parse::<usize>() {
                Ok(lag) if lag <= MAX_LAG => Some(lag),
                _ => bail!("--lag {text}: write `auto` or a number from 0 to {MAX_LAG}"),
            },
        };
        Ok(Resolved {
            search: SearchOptions {
                trials,
                plan_trials: self.plan_trials,
                sampler: sampler.parse().map_err(|error| anyhow::anyhow!("sampler: {error}"))?,
                batch,
                lag,
                seed: self.seed.or(settings.sweep.seed).unwrap_or(1),
                part: self.part,
            },
            top: self.top.or(settings.sweep.top).unwrap_or(10),
            cache_bytes: settings
                .run
                .cache_mb
                .map_or(EngineOptions::default().cache_bytes, |mib| mib.clamp(1, 1 << 20) << 20),
            hypertune: match self.hypertune {
                Some(mode) => mode,
                None => settings.hypertune.mode()?,
            },
        })
    }
}

/// Largest lag.
const MAX_LAG: usize = 64;

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

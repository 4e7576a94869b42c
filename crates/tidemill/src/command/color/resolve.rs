//! From flags and settings to the configuration of a run.

use std::time::Duration;

use anyhow::{Result, bail};
use tidemill_coloring::phase::PhaseKind;
use tidemill_coloring::{Knobs, Options, RunConfig};
use tidemill_telemetry::hypertune::Mode;

use super::{ColorArgs, Hypertune};
use crate::settings::Settings;

/// Time limit of a run without any limit, in seconds.
const DEFAULT_TIME_S: f64 = 60.0;

/// The configuration of a run: flags before settings before defaults.
pub fn resolve(args: &ColorArgs, settings: &Settings) -> Result<RunConfig> {
    let own = &settings.color;
    let mut time_s = args.time.or(own.time_s);
    let target = args.target.or(own.target);
    let (max_iterations, max_passes, patience) = (args.iterations, args.passes, args.patience);
    if time_s.is_none() && max_iterations.is_none() && max_passes.is_none() && patience.is_none() {
        time_s = Some(DEFAULT_TIME_S);
    }
    let time = match time_s {
        None => None,
        Some(seconds) => match Duration::try_from_secs_f64(seconds) {
            Ok(time) if seconds > 0.0 => Some(time),
            _ => bail!("--time {seconds}: expected a number of seconds above 0"),
        },
    };
    let phases = match args.phases.as_ref().or(own.phases.as_ref()) {
        Some(names) => PhaseKind::listed(names)?,
        None => PhaseKind::defaults(),
    };
    let hypertune = match args.hypertune {
        Some(Hypertune::Off) => Mode::Off,
        Some(Hypertune::Advise) => Mode::Advise,
        Some(Hypertune::On) => Mode::On,
        None => settings.hypertune.mode()?,
    };
    let options = Options {
        phases,
        seed: args.seed.or(own.seed).unwrap_or(1),
        target,
        time,
        max_iterations,
        max_passes,
        patience,
        min_delta: args.min_delta.unwrap_or(1),
        knobs: Knobs { ..own.knobs.clone() },
    };
    Ok(RunConfig { options, hypertune, thresholds: settings.hypertune.thresholds()? })
}

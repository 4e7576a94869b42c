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
    let iterative = &settings.iterative;
    let max_iterations = args.iterations.or(own.iterations);
    let (max_passes, patience) = (args.passes.or(iterative.passes), args.patience.or(iterative.patience));
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
    let strategy = settings.initial_coloring.phases()?;
    let list = args.phases.as_deref().or(own.phases.as_deref());
    let phases = PhaseKind::chosen(list, strategy.as_deref())?;
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
        min_delta: args.min_delta.or(iterative.min_delta).unwrap_or(1),
        warm_start: iterative.warm_start.unwrap_or(true),
        on_cpu: own.on_cpu()?,
        knobs: Knobs { ..own.knobs.clone() },
    };
    Ok(RunConfig { options, hypertune, thresholds: settings.hypertune.thresholds()? })
}

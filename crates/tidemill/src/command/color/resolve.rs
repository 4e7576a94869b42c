//! From flags and settings to the configuration of a run.

use std::time::Duration;

use anyhow::{Result, bail};
use tidemill_coloring::phase::{Family, PhaseKind};
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
        Some(names) => phases(names)?,
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

/// The phases of a list: those named, or the default ones with changes. The verifier is always among them, and so is a first colouring.
fn phases(names: &[String]) -> Result<Vec<PhaseKind>> {
    let parse = |name: &str| name.parse::<PhaseKind>().map_err(|error| anyhow::anyhow!("--phases: {error}"));
    let is_change = |name: &&String| name.starts_with(['+', '-']);
    let mut kinds = Vec::new();
    if names.iter().any(|name| is_change(&name)) {
        if let Some(plain) = names.iter().find(|name| !is_change(name)) {
            bail!("--phases: `{plain}` beside changes: write +{plain} to add it, or all names without signs");
        }
        kinds = PhaseKind::defaults();
        for name in names {
            let kind = parse(&name[1..])?;
            kinds.retain(|known| *known != kind);
            if name.starts_with('+') {
                kinds.push(kind);
            }
        }
    } else {
        for name in names {
            kinds.push(parse(name.trim())?);
        }
    }
    if !kinds.contains(&PhaseKind::Validation) {
        kinds.push(PhaseKind::Validation);
    }
    if !kinds.iter().any(|kind| matches!(kind.family(), Family::Initial(_))) {
        kinds.push(PhaseKind::Dsatur);
    }
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<Vec<&'static str>> {
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        Ok(phases(&names)?.into_iter().map(PhaseKind::name).collect())
    }

    #[test]
    fn a_list_gets_a_first_colouring_and_the_verifier() {
        assert_eq!(named("tabu,memetic").unwrap(), ["dsatur", "tabu", "memetic", "validation"]);
        assert_eq!(named("tabu,rlf,tabu").unwrap(), ["rlf", "tabu", "validation"]);
        let changed = named("+tempering,-tabu").unwrap();
        assert!(changed.contains(&"tempering") && !changed.contains(&"tabu") && changed.contains(&"memetic"));
    }

    #[test]
    fn an_unknown_phase_is_named() {
        let message = named("tabu,simplex").unwrap_err().to_string();
        assert!(message.starts_with("--phases: there is no phase `simplex`; the phases are "), "{message}");
        assert!(named("tabu,+rlf").unwrap_err().to_string().contains("write +tabu"));
    }
}

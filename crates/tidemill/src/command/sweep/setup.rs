//! What a study is made of before it runs: its sampler, what is stored and told of its configuration, and the folder it is kept in.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, SEMANTICS, Strategy};
use tidemill_search::folder::Opened;
use tidemill_search::{
    Enqueue, Sampler, SamplerKind, SamplerSettings, Space, Steered, StudyFolder, StudyHeader,
};
use tidemill_telemetry::SmolStr;
use tidemill_telemetry::hypertune::Decision;

use super::resolve::Resolved;
use super::{enqueue, tune};
use crate::executor::Devices;
use crate::input::Input;
use crate::number;

/// What can be varied, which must be something.
pub fn space(engine: &Engine<'_>) -> Result<Space> {
    let space = engine.space();
    if let Err(problems) = space.validate() {
        bail!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    if space.n_free() == 0 {
        bail!(
            "every parameter is fixed, so there is nothing to sweep\n  hint: use `tidemill backtest`, or leave a parameter free"
        );
    }
    Ok(space)
}

/// The sampler, after the parameter sets that are to be tried first.
pub fn build(
    kind: SamplerKind,
    space: &Space,
    settings: &SamplerSettings,
    queue: &[enqueue::NamedSet],
) -> Result<Box<dyn Sampler>> {
    let sampler = kind.build(space, settings)?;
    let sampler: Box<dyn Sampler> = Box::new(Steered::new(space, settings.seed, sampler));
    if queue.is_empty() {
        return Ok(sampler);
    }
    match Enqueue::named(space, queue, sampler) {
        Ok(sampler) => Ok(Box::new(sampler)),
        Err(problems) => bail!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// The resolved configuration, stored with the study; what is under `about` may differ when it is resumed.
pub fn header(
    strategies: &[Strategy],
    input: &Input,
    layout: &Layout,
    resolved: &Resolved,
    settings: &SamplerSettings,
    queue: &[enqueue::NamedSet],
) -> Result<StudyHeader> {
    let strategy = &strategies[0];
    let fixed: Map<String, Value> = strategy
        .params
        .iter()
        .filter_map(|param| Some((param.name.clone(), json!(param.domain.decode(param.fixed?)?))))
        .collect();
    let further: Vec<&str> = strategies[1..].iter().map(|other| other.objective.text.as_str()).collect();
    let enqueue: Vec<String> = queue.iter().map(enqueue::shown).collect();
    let config = json!({
        "about": { "data": input.origin, "file": strategy.file, "source": input.recipe },
        "strategy": { "name": strategy.name, "profile": strategy.profile, "source": strategy.source },
        "execution": strategy.execution,
        "objective": {
            "maximize": strategy.objective.text,
            "further": if further.is_empty() { Value::Null } else { json!(further) },
            "require": strategy.objective.require_text,
            "reduce": strategy.objective.reduce,
        },
        "fixed": fixed,
        "segments": layout,
        "sweep": {
            "trials": resolved.trials,
            "sampler": resolved.sampler.name(),
            "batch": settings.batch,
            "lag": resolved.lag,
            "enqueue": if enqueue.is_empty() { Value::Null } else { json!(enqueue) },
        },
        "data": { "symbols": input.universe.symbols.len(), "bars": input.universe.n_bars() },
    });
    let config = toml::Value::try_from(drop_nulls(config)).context("cannot store the configuration")?;
    let toml::Value::Table(config) = config else { bail!("the configuration is not a table") };
    Ok(StudyHeader {
        version: env!("CARGO_PKG_VERSION").into(),
        semantics: SEMANTICS,
        seed: resolved.seed,
        data_hash: input.universe.fingerprint(),
        config,
    })
}

/// TOML has no null.
fn drop_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, drop_nulls(v))).collect(),
        ),
        other => other,
    }
}

/// Where trials go, and what was decided there earlier.
pub struct Store {
    pub folder: StudyFolder,
    pub is_resumed: bool,
    pub decisions: Vec<Decision>,
}

/// Opens or makes the study of this configuration.
pub fn open(dir: &Path, header: &StudyHeader) -> Result<Store> {
    let Opened { folder, is_resumed, made_by } = StudyFolder::open_or_create(dir, header)?;
    if is_resumed {
        let n_trials = folder.n_trials()?;
        eprintln!(
            "going on with the study in {}: {} trials are done",
            dir.display(),
            number::count(n_trials)
        );
    }
    if let Some(version) = made_by {
        eprintln!("note: the study was made by version {version}, this is {}", header.version);
    }
    let decisions = tune::decisions(&folder.journal_path())?;
    Ok(Store { folder, is_resumed, decisions })
}

/// What a run is called in its journal.
pub fn run_name(out: Option<&Path>, strategy: &Strategy) -> SmolStr {
    let folder = out.and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
    SmolStr::new(folder.unwrap_or(&strategy.name))
}

/// The configuration as the journal tells it.
pub fn told_config(
    strategies: &[Strategy],
    resolved: &Resolved,
    batch: Value,
    devices: &Devices,
) -> Map<String, Value> {
    let objectives: Vec<&str> = strategies.iter().map(|one| one.objective.text.as_str()).collect();
    let config = json!({
        "strategy": strategies[0].name,
        "objective": objectives.join(", "),
        "sampler": resolved.sampler.name(),
        "batch": batch,
        "lag": resolved.lag,
        "seed": resolved.seed,
        "trials": resolved.trials,
        "device": devices.shown(),
        "hypertune": resolved.hypertune,
        "version": env!("CARGO_PKG_VERSION"),
    });
    match config {
        Value::Object(config) => config,
        _ => Map::new(),
    }
}

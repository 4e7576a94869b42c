//! The workers of an experiment: what evaluates its trials in place of this machine's devices.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tidemill_backtest::{Engine, SEMANTICS, Strategy};
use tidemill_fleet::{Fleet, FleetEvent, FleetOptions, FleetStudy, Identity, Transport, WorkerPool};
use tidemill_search::{SamplerKind, SamplerSettings, Space, StudyError};

use crate::config::StudyConfig;
use crate::error::LabError;
use crate::evaluator::Scorer;
use crate::event::{SweepEvent, ms};
use crate::record::Reporter;

/// Trials by which a worker shows that it has the bits of this machine's CPU.
const N_PROBES: usize = 16;

/// Workers that serve one search after another.
#[derive(Clone)]
pub struct Cluster {
    pool: Arc<Mutex<WorkerPool>>,
    options: FleetOptions,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Cluster {
    /// The workers that a transport reaches.
    pub fn new(transport: Box<dyn Transport>) -> Self {
        Self { pool: Arc::new(Mutex::new(WorkerPool::new(transport))), options: FleetOptions::default() }
    }

    /// The same with other limits and times.
    pub fn with_options(self, options: FleetOptions) -> Self {
        Self { options, ..self }
    }

    pub(crate) fn options(&self, stop: &Arc<AtomicBool>) -> FleetOptions {
        FleetOptions { stop: stop.clone(), ..self.options.clone() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WorkerPool> {
        // After a panic the pool still knows who is there.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which program this is: workers must be the same.
pub fn identity() -> Identity {
    Identity { program: env!("CARGO_PKG_VERSION").into(), semantics: SEMANTICS }
}

/// The evaluator of a study on the workers of a pool; the engine is what they have to agree with.
pub(crate) fn fleet<'f>(
    pool: &'f mut WorkerPool,
    options: FleetOptions,
    config: &StudyConfig,
    (engine, strategy, has_test): (&'f mut Engine<'_>, &Strategy, bool),
    space: &Space,
    reporter: &'f Reporter,
) -> Result<Fleet<'f>, LabError> {
    let sampler = config.sweep.sampler.as_deref().and_then(|name| name.parse::<SamplerKind>().ok());
    let mut chance = SamplerKind::Random.build(space, &SamplerSettings::new(config.seed))?;
    let mut probes = chance.ask(N_PROBES - 1);
    probes.push(&space.default_point());
    let study = FleetStudy {
        identity: identity(),
        header: config.told_to_workers()?,
        data: config.data_hash.clone(),
        has_test,
        probes,
        is_drawn: sampler.is_some_and(|sampler| !sampler.learns()),
    };
    let scorer = Scorer::new(engine, strategy, has_test);
    let reference = Box::new(move |points: &_| {
        let outcomes = engine.evaluate(points);
        Ok(scorer.score(points, &outcomes))
    });
    let observer = Box::new(|event: FleetEvent| {
        let start_ms = match &event {
            // When it began to work on it; before that the shard waited for others.
            FleetEvent::ShardDone(shard) => Some(reporter.since(Instant::now()) - ms(shard.took)),
            _ => None,
        };
        reporter.report(SweepEvent::Fleet { event, start_ms });
    });
    let fleet = Fleet::new(pool, study, options, reference, observer);
    fleet.map_err(|source| StudyError::Evaluator { batch: 0, source }.into())
}

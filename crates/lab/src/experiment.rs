//! `Experiment`: a strategy, data and how it is cut; from it come sweeps, walk-forwards and back-tests.

use std::sync::Arc;

use tidemill_backtest::compile::{DataNames, check_sessions, compile};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, Strategy};
use tidemill_market::Bars;
use tidemill_search::{Enqueue, Sampler, SamplerKind, SamplerSettings, Space};

use crate::backtest::BacktestReport;
use crate::config::NamedSet;
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::number;
use crate::parts::PartsEngine;
use crate::runtime::Runtime;
use crate::sweep::Sweep;
use crate::walkforward::{Pace, WalkForward};

/// A strategy on data. It owns both, so that it can be handed to any thread.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What is tried.
    pub strategy: Arc<Strategy>,
    /// On what.
    pub data: Arc<Dataset>,
    /// How the data is cut into segments.
    pub layout: Layout,
    /// How it runs.
    pub runtime: Runtime,
    /// Whether a search on the in-sample part chose the parameters, so that figures of that part promise too much.
    pub is_searched: bool,
}

impl Experiment {
    /// All of the data, on the CPU. Data that several experiments share is handed over as an `Arc`.
    pub fn new(strategy: Strategy, data: impl Into<Arc<Dataset>>) -> Self {
        Self {
            strategy: Arc::new(strategy),
            data: data.into(),
            layout: Layout::default(),
            runtime: Runtime::default(),
            is_searched: false,
        }
    }

    /// Cuts the data.
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Keeps this share of the time span in sample; the rest is only reported.
    pub fn split(self, share: f64) -> Self {
        let layout = Layout { split: Some(share), ..self.layout };
        Self { layout, ..self }
    }

    /// Sets devices, memory and the stop flag.
    pub fn runtime(self, runtime: Runtime) -> Self {
        Self { runtime, ..self }
    }

    /// A search for good parameters.
    pub fn sweep(&self) -> Sweep {
        Sweep::new(self.clone())
    }

    /// A walk-forward: repeated searches, each traded on the period that follows.
    pub fn walk_forward(&self, pace: Pace) -> WalkForward {
        WalkForward::new(self.clone(), pace)
    }

    /// One parameter set in full: the defaults of the strategy.
    pub fn backtest(&self) -> Result<BacktestReport, LabError> {
        BacktestReport::new(self)
    }

    /// Whether the data has what the strategy reads: its symbols, columns and sessions.
    pub fn check(&self) -> Result<(), LabError> {
        check_sessions(&self.strategy, &self.data.universe)?;
        compile(&self.strategy, &DataNames::of(&self.data.universe))?;
        Ok(())
    }

    /// Where the data comes from in a few words, and how much of it counts if not all of it does.
    pub fn origin(&self) -> String {
        let origin = self.data.origin.clone();
        let (from_ms, to_ms) = (self.layout.from_ms, self.layout.to_ms);
        let when = match (from_ms, to_ms) {
            (None, None) => return origin,
            (Some(_), None) => "since --from",
            (None, Some(_)) => "before --to",
            (Some(_), Some(_)) => "between --from and --to",
        };
        let before = |bars: &Bars, ms: i64| bars.ts_ms.partition_point(|ts_ms| *ts_ms < ms);
        let within = |bars: &Bars| {
            let [first, last] = [from_ms.unwrap_or(i64::MIN), to_ms.unwrap_or(i64::MAX)];
            before(bars, last).saturating_sub(before(bars, first))
        };
        let n_bars: usize = self.data.universe.symbols.iter().map(within).sum();
        format!("{origin}, {} of them {when}", number::count(n_bars as u64))
    }

    /// Remarks on the data and on the strategy that limit how far a result can be trusted.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.data.notes.clone();
        notes.extend(self.strategy.remarks(&self.data.universe));
        notes
    }

    /// Evaluates parameter sets on every part of the data, the holdout included.
    pub(crate) fn parts_engine(&self, layout: &Layout) -> Result<PartsEngine<'_>, LabError> {
        let Self { strategy, data, runtime, .. } = self;
        check_sessions(strategy, &data.universe)?;
        let segments = [layout.segments(&data.universe)?, layout.holdout(&data.universe)?];
        let named = data.benchmark.as_ref();
        let engine = PartsEngine::new(strategy, &data.universe, segments, named, runtime.engine_options())?;
        Ok(if self.is_searched { engine.searched() } else { engine })
    }

    pub(crate) fn engine(&self, layout: &Layout, cache_share: usize) -> Result<Engine<'_>, LabError> {
        check_sessions(&self.strategy, &self.data.universe)?;
        let segments = layout.segments(&self.data.universe)?;
        let mut options = self.runtime.engine_options();
        options.cache_bytes /= cache_share;
        Ok(Engine::new(&self.strategy, &self.data.universe, segments, options)?)
    }
}

/// The search space; an error if nothing can vary.
pub fn search_space(engine: &Engine<'_>) -> Result<Space, LabError> {
    let space = engine.space();
    space.validate().map_err(LabError::Space)?;
    if space.n_free() == 0 {
        return Err(LabError::NothingToSearch);
    }
    Ok(space)
}

/// The sampler, after the parameter sets that are to be tried first.
pub fn build_sampler(
    kind: SamplerKind,
    space: &Space,
    settings: &SamplerSettings,
    queue: &[NamedSet],
) -> Result<Box<dyn Sampler>, LabError> {
    let sampler = kind.build_steered(space, settings)?;
    if queue.is_empty() {
        return Ok(sampler);
    }
    match Enqueue::named(space, queue, sampler) {
        Ok(sampler) => Ok(Box::new(sampler)),
        Err(problems) => Err(LabError::Enqueue(problems)),
    }
}

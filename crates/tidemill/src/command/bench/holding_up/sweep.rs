//! One sweep of the bench: a market of which a third is out of sample, and whether the winner holds up.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, METRICS, Overrides, Strategy};
use tidemill_search::{FunctionEvaluator, SamplerKind, SamplerSettings, Study, StudyEvent};

use super::kind::Market;
use crate::command::sweep::best::Best;
use crate::command::sweep::evaluate::{judge, scored};
use crate::holding::{self, Report, Witness};

/// Trials of a batch.
const BATCH: usize = 128;

/// What came of a sweep.
pub struct Swept {
    /// None where no verdict was wanted.
    pub report: Option<Report>,
    /// Seconds of the whole sweep.
    pub seconds: f64,
    /// Seconds after the last trial.
    pub verdict_seconds: f64,
}

/// Sweeps a market.
pub fn run(market: &Market, kind: SamplerKind, trials: u64, seed: u64, has_verdict: bool) -> Result<Swept> {
    let Market { universe, strategy, set } = market;
    let set = set.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let strategies = [Strategy::parse("the strategy of the bench", strategy, &overrides)?];
    let began = Instant::now();
    let layout = Layout { split: Some(0.67), ..Layout::default() };
    let options = EngineOptions::default();
    let mut engine = Engine::new(&strategies[0], universe, layout.segments(universe)?, options)?;
    if has_verdict {
        engine.keep_blocks(holding::n_blocks(engine.n_train_days()));
    }
    let space = engine.space();
    let settings = SamplerSettings { n_trials: Some(trials), batch: BATCH, ..SamplerSettings::new(seed) };
    let mut sampler = kind.build(&space, &settings)?;
    let witness = has_verdict.then(|| Witness::new(&engine));
    let mut best = Best::new(&space, 1, kind.learns());
    let observe = |event: StudyEvent<'_>| {
        if let StudyEvent::Finished { batch, evaluated, .. } = event {
            witness.iter().for_each(|witness| witness.count(evaluated));
            best.extend(batch, &evaluated.scores);
        }
    };
    let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
    let study = Study::new(&space, &mut *sampler).trials(trials).batch(BATCH).metrics(&names);
    let mut evaluator = FunctionEvaluator::new(|batch| {
        let outcomes = engine.evaluate(&batch.points);
        let evaluated = scored(&engine, &strategies, &batch.points, &outcomes);
        witness.iter().for_each(|witness| witness.see(batch.first_trial, &outcomes, &evaluated.scores));
        Ok(evaluated)
    });
    study.observe(observe).run(&mut evaluator)?;
    let ended = Instant::now();
    let winners = judge(&mut engine, &strategies, best.into_trials());
    let case = holding::Case {
        strategies: &strategies,
        universe,
        holdout: Vec::new(),
        benchmark: None,
        space: &space,
        is_guided: kind.learns(),
        options,
        stop: &AtomicBool::new(false),
    };
    let report = match witness {
        Some(witness) => holding::judge(&case, &mut engine, witness, &winners)?,
        None => None,
    };
    Ok(Swept {
        report,
        seconds: began.elapsed().as_secs_f64(),
        verdict_seconds: ended.elapsed().as_secs_f64(),
    })
}

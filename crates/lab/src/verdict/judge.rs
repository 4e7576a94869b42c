//! The checks that the winners of a search have to survive.

use std::sync::atomic::{AtomicBool, Ordering};

use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::{Engine, EngineOptions, Metric, POOL_NOTE, Strategy};
use tidemill_market::{Bars, Universe};
use tidemill_search::{Points, SamplerKind, SamplerSettings, Space};
use tidemill_verdict::bootstrap::N_RESAMPLES;
use tidemill_verdict::check::{HOLDOUT, UNSEEN};
use tidemill_verdict::{
    Blocks, Evidence, MarketEvidence, Moments, Standard, Verdict, bootstrap, mean_correlation, n_independent,
    neighbors, noise_variance, overfit, plateau,
};

use super::{MarketParts, Objectives, Sharpes, TrialSample, VerdictReport, Winner};
use crate::benchmark::{AgainstMarket, benchmark_name};
use crate::error::LabError;
use crate::parts::{DailyMark, EvaluatedParts, PartFigures, PartName, PartsEngine};
use crate::score::{self, ScoredTrial};

/// Most winners that are looked into; the others are only listed.
const MOST_WINNERS: usize = 10;

/// Fewest and most points that are drawn where a guided search leaves no even sample.
const LEAST_DRAWN: u64 = 64;
const MOST_DRAWN: u64 = 1024;

/// Points around a winner that are evaluated.
const N_NEIGHBORS: usize = 12;

/// Most marks of the best winner's equity that a report keeps.
const MOST_MARKS: usize = 500;

/// Draws and neighbours are the same for every search.
const SEED: u64 = 0x7469_6465;

/// What was searched.
pub struct JudgedSearch<'a> {
    /// The strategy.
    pub strategy: &'a Strategy,
    /// The bars.
    pub universe: &'a Universe,
    /// What is held out; empty if nothing is.
    pub holdout: Vec<Segment>,
    /// What results are compared with in place of holding all symbols.
    pub benchmark: Option<&'a Bars>,
    /// What was varied.
    pub space: &'a Space,
    /// Whether the sampler learned, so that its trials crowd where results are good.
    pub is_guided: bool,
    /// Memory for columns and masks.
    pub options: EngineOptions,
    /// Ends it early once this is set.
    pub stop: &'a AtomicBool,
}

impl JudgedSearch<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Judges winners, best first; `None` if it was stopped.
pub fn judge(
    case: &JudgedSearch<'_>,
    engine: &mut Engine<'_>,
    sample: TrialSample,
    winners: &[ScoredTrial],
) -> Result<Option<VerdictReport>, LabError> {
    if case.is_stopped() {
        return Ok(None);
    }
    let (spread, blocks) = sample.into_blocks(engine);
    let winners = &winners[..winners.len().min(MOST_WINNERS)];
    let correlation = mean_correlation(&blocks);
    let trials = spread.n();
    let independent = n_independent(trials as f64, correlation.unwrap_or(0.0));
    let n_days = engine.n_train_days() as f64;
    let noise = noise_variance(&blocks).unwrap_or(1.0 / (n_days - 1.0).max(1.0));
    if case.is_stopped() {
        return Ok(None);
    }
    let overfit = if case.is_guided { overfit(&drawn(case, engine, trials)?) } else { overfit(&blocks) };

    if case.is_stopped() {
        return Ok(None);
    }
    let strategy = case.strategy;
    let mut points = Points::new(case.space.len());
    winners.iter().for_each(|winner| points.push(&winner.trial.row));
    let counting: Vec<Segment> =
        engine.segments().iter().filter(|segment| segment.role == Role::Train).cloned().collect();
    // Twice nothing is nothing: without costs there is no such check.
    let has_costs = !strategy.execution.fee_bps.is_zero() || !strategy.execution.slippage_bps.is_zero();
    let costly = match has_costs {
        true => Some(sharpes(case, &strategy.with_costs_times(2.0), &counting, &points)?),
        false => None,
    };
    let delayed = sharpes(case, &strategy.delayed(1), &counting, &points)?;
    // Where no bar can touch both kinds of levels, there is nothing ambiguous.
    let swapped = match strategy.with_levels_swapped() {
        Some(swapped) => Some(sharpes(case, &swapped, &counting, &points)?),
        None => None,
    };
    let segments = [engine.segments().to_vec(), case.holdout.clone()];
    let mut all_parts =
        PartsEngine::new(strategy, case.universe, segments, case.benchmark, case.options)?.searched();
    let around = around(case, engine, winners);

    let standard = Standard::default();
    let mut out = Vec::with_capacity(winners.len());
    for (at, winner) in winners.iter().enumerate() {
        if case.is_stopped() {
            return Ok(None);
        }
        let EvaluatedParts { parts, details, .. } = all_parts.evaluate(&winner.trial.row);
        let counting =
            all_parts.names().iter().zip(&details).filter(|(part, _)| **part == PartName::InSample);
        let trades: Vec<f64> =
            counting.flat_map(|(_, detail)| detail.trades.iter().map(|trade| trade.ret)).collect();
        let of_days = |of: fn(&DailyMark) -> f64| parts.in_sample.daily.iter().map(of).collect::<Vec<f64>>();
        let (returns, held) = (of_days(|day| day.change), of_days(|day| day.held));
        let moments = Moments::new(&returns);
        let objective = winner.objective();
        let sharpe_of = |part: &PartFigures| part.metrics.get(Metric::Sharpe);
        let unseen: Vec<(&'static str, f64)> = [(UNSEEN, &parts.out_of_sample), (HOLDOUT, &parts.holdout)]
            .into_iter()
            .filter_map(|(name, part)| Some((name, sharpe_of(part.as_ref()?).unwrap_or(f64::NAN))))
            .collect();
        let market = parts.in_sample.market.map(|in_sample| MarketParts {
            in_sample,
            out_of_sample: parts.out_of_sample.as_ref().and_then(|part| part.market),
            holdout: parts.holdout.as_ref().and_then(|part| part.market),
        });
        let sharpe = winner.train.get(Metric::Sharpe);
        let deflated = moments.map(|moments| moments.deflated(independent, noise));
        let deflated_by_spread = moments.map(|moments| moments.deflated(independent, spread.variance()));
        let deflated_beyond_market = market.map(|market| {
            let beyond = Moments::new(&market.in_sample.fit.beyond(&returns, &held));
            beyond.map_or(f64::NAN, |moments| moments.deflated(independent, noise))
        });
        let neighbors = objective.and_then(|objective| plateau(objective, &around[at]));
        let trades = bootstrap(&trades, N_RESAMPLES, 0.95, SEED);
        let evidence = Evidence {
            sharpe: sharpe.unwrap_or(f64::NAN),
            deflated: Some(deflated.unwrap_or(f64::NAN)),
            deflated_by_spread,
            deflated_beyond_market,
            n_independent: independent,
            overfit: overfit.as_ref().map(|overfit| overfit.probability),
            unseen,
            neighbors,
            costs: costly.as_ref().map(|all| all[at].unwrap_or(f64::NAN)),
            delay: Some(delayed[at].unwrap_or(f64::NAN)),
            trades,
            market: market.as_ref().map(market_evidence),
            ambiguous: swapped.as_ref().map(|all| all[at].unwrap_or(f64::NAN)),
        };
        let verdict = Verdict::new(&evidence, &standard);
        out.push(Winner {
            trial: winner.trial.number,
            sentence: verdict.sentence(),
            verdict,
            sharpe: Sharpes {
                in_sample: sharpe,
                out_of_sample: parts.out_of_sample.as_ref().and_then(sharpe_of),
                holdout: parts.holdout.as_ref().and_then(sharpe_of),
                double_costs: costly.as_ref().and_then(|all| all[at]),
                delayed: delayed[at],
                levels_swapped: swapped.as_ref().and_then(|all| all[at]),
            },
            objective: Objectives {
                in_sample: objective,
                out_of_sample: parts.out_of_sample.as_ref().and_then(|part| part.objective),
                holdout: parts.holdout.as_ref().and_then(|part| part.objective),
            },
            moments,
            probabilistic: moments.map(|moments| moments.probabilistic(0.0)),
            deflated,
            deflated_by_spread,
            deflated_beyond_market: deflated_beyond_market.filter(|share| share.is_finite()),
            market,
            min_track_record_days: moments.and_then(|moments| moments.min_track_record(0.0, 0.95)),
            neighbors,
            trades,
            parts,
        });
    }
    Ok(Some(VerdictReport {
        equity: out.first().map_or_else(Vec::new, |best| best.parts.thinned_equity(MOST_MARKS)),
        trials,
        independent_trials: independent,
        mean_correlation: correlation,
        sharpe_variance: spread.variance(),
        noise_variance: noise,
        overfit,
        benchmark: benchmark_name(case.benchmark).to_owned(),
        pool: (case.universe.symbols.len() > 1).then_some(POOL_NOTE),
        winners: out,
    }))
}

/// What a verdict asks of the comparison with the market.
fn market_evidence(parts: &MarketParts) -> MarketEvidence {
    let alpha = |part: &AgainstMarket| part.fit.alpha.unwrap_or(f64::NAN);
    let unseen = [(UNSEEN, &parts.out_of_sample), (HOLDOUT, &parts.holdout)];
    MarketEvidence {
        in_sample: parts.in_sample.fit,
        unseen: unseen.into_iter().filter_map(|(name, part)| Some((name, alpha(part.as_ref()?)))).collect(),
    }
}

/// The blocks of points drawn evenly from the space, as many as a small part of the trials.
///
/// Of the trials of a guided search most are about as good as the best, and the best of one half of the time would be no better than
/// their median on the other half however real its edge.
fn drawn(case: &JudgedSearch<'_>, engine: &mut Engine<'_>, trials: u64) -> Result<Blocks, LabError> {
    let n = (trials / 40).clamp(LEAST_DRAWN, MOST_DRAWN) as usize;
    let points = SamplerKind::Sobol.build(case.space, &SamplerSettings::new(SEED))?.ask(n);
    let outcomes = engine.evaluate(&points);
    let scores = score::score_batch(engine.measure(), case.strategy, &points, &outcomes).scores;
    let mut blocks = Blocks::new(engine.block_days());
    for (at, outcome) in outcomes.iter().enumerate() {
        if scores.first(at).value().is_some() && outcome.blocks.len() == blocks.n_blocks() {
            blocks.push(&outcome.blocks);
        }
    }
    Ok(blocks)
}

/// Sharpe ratios of points under a changed strategy, on the segments that count.
fn sharpes(
    case: &JudgedSearch<'_>,
    strategy: &Strategy,
    counting: &[Segment],
    points: &Points,
) -> Result<Vec<Option<f64>>, LabError> {
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let mut engine = Engine::new(strategy, case.universe, counting.to_vec(), case.options)?;
    let outcomes = engine.evaluate(points);
    let sharpe = |tally| engine.pool_metrics(tally, Role::Train).get(Metric::Sharpe);
    Ok(outcomes.iter().map(|outcome| sharpe(&outcome.train)).collect())
}

/// The first objective of the neighbours of every winner.
fn around(
    case: &JudgedSearch<'_>,
    engine: &mut Engine<'_>,
    winners: &[ScoredTrial],
) -> Vec<Vec<Option<f64>>> {
    let mut points = Points::new(case.space.len());
    let mut ends = Vec::new();
    for winner in winners {
        let near = neighbors(case.space, &winner.trial.row, N_NEIGHBORS, SEED);
        points.extend_from(&near, 0..near.len());
        ends.push(points.len());
    }
    if points.is_empty() {
        return vec![Vec::new(); winners.len()];
    }
    let scores = score::evaluate(engine, case.strategy, &points).scores;
    let starts = std::iter::once(&0).chain(&ends);
    starts
        .zip(&ends)
        .map(|(start, end)| (*start..*end).map(|at| scores.first(at).value()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use tidemill_backtest::Overrides;
    use tidemill_backtest::segment::Layout;
    use tidemill_market::synth::walk;
    use tidemill_search::{Batch, Score, Scores};

    use super::*;
    use crate::leaderboard::Leaderboard;
    use crate::shipped::shipped;

    /// The names of the checks that the default parameters are put to.
    fn checks(set: &[(&str, &str)], stop: bool) -> Option<Vec<&'static str>> {
        let set = set.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        let source = shipped("zscore-dip").unwrap();
        let strategy = Strategy::parse("zscore-dip.toml", source, &overrides).unwrap();
        let universe = walk(1, 1, 3_000);
        let segments = Layout::default().segments(&universe).unwrap();
        let options = EngineOptions::default();
        let mut engine = Engine::new(&strategy, &universe, segments, options).unwrap();
        engine.keep_blocks(16);
        let space = engine.space();
        let mut points = Points::new(space.len());
        points.push(&space.default_point());
        let mut best = Leaderboard::new(&space, 1, false);
        let batch = Batch { index: 0, first_trial: 0, points: points.into() };
        best.extend(&batch, &Scores::single(&[Score::new(1.0)]));
        let winners = score::score_trials(&mut engine, &strategy, best.into_trials());
        let case = JudgedSearch {
            strategy: &strategy,
            universe: &universe,
            holdout: Vec::new(),
            benchmark: None,
            space: &space,
            is_guided: true,
            options,
            stop: &AtomicBool::new(stop),
        };
        let sample = TrialSample::new(&engine);
        let report = judge(&case, &mut engine, sample, &winners).unwrap()?;
        Some(report.winners[0].verdict.checks.iter().map(|check| check.name).collect())
    }

    #[test]
    fn costs_are_doubled_only_where_there_are_any() {
        assert!(checks(&[], false).unwrap().contains(&"costs"));
        let free = checks(&[("fee_bps", "0"), ("slippage_bps", "0")], false).unwrap();
        assert!(!free.contains(&"costs") && free.contains(&"delay"), "{free:?}");
    }

    #[test]
    fn a_stop_leaves_no_report() {
        assert_eq!(checks(&[], true), None);
    }
}

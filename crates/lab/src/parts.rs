//! One parameter set on every part of the data, side by side: in sample, out of sample, on the holdout, over the whole period.
//!
//! Terminal, JSON, pages and the dashboard show these figures and compute none of their own, so that a figure is the same wherever it
//! stands. The whole period is the pool of the segments of all parts (`docs/semantics.md`, "Parts"): each segment is traded as in its own
//! part, a position that is open at its end is closed there, and the daily returns of all are chained.

mod daily;
mod row;

use serde::{Deserialize, Serialize};
use tidemill_backtest::objective::Invalid;
use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::strategy::Sizing;
use tidemill_backtest::{Benchmark, Detail, Engine, EngineOptions, Metrics, Strategy, StrategyError};
use tidemill_market::{Bars, DAY_MS, Universe, timestamp};

use crate::benchmark::{AgainstMarket, benchmark_name, has_market, total};
use crate::score;

pub use daily::{DailyFigures, DailyMark};
pub use row::PartRow;

/// A part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartName {
    /// What decides the objective, and what a search sees.
    InSample,
    /// What `--split` leaves for a report.
    OutOfSample,
    /// What `--holdout` keeps from the search and from the choice among its winners.
    Holdout,
    /// All of it.
    Whole,
}

impl PartName {
    /// Its key in JSON documents.
    pub fn key(self) -> &'static str {
        match self {
            Self::InSample => "in_sample",
            Self::OutOfSample => "out_of_sample",
            Self::Holdout => "holdout",
            Self::Whole => "whole",
        }
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::InSample => "in sample",
            Self::OutOfSample => "out of sample",
            Self::Holdout => "holdout",
            Self::Whole => "whole period",
        }
    }
}

/// One parameter set on every part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parts {
    /// Whether a search chose the parameters by the in-sample part.
    pub searched: bool,
    /// Whether equity adds in price units, so that returns are no shares and nothing is compared with the benchmark.
    pub additive: bool,
    /// What returns are compared with.
    pub benchmark: String,
    /// The part that counts.
    pub in_sample: PartFigures,
    /// The part behind the split.
    pub out_of_sample: Option<PartFigures>,
    /// The part that was held out.
    pub holdout: Option<PartFigures>,
    /// All parts together.
    pub whole: PartFigures,
}

/// One parameter set on one part; what is not defined is `null`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartFigures {
    /// Which part.
    pub part: PartName,
    /// First day.
    pub from: String,
    /// Last day.
    pub to: String,
    /// Daily returns.
    pub days: usize,
    /// Daily returns in a year.
    pub year_days: f64,
    /// The first objective; only in sample anything is required.
    pub objective: Option<f64>,
    /// Its metrics.
    pub metrics: Metrics,
    /// How daily returns are spread.
    #[serde(flatten)]
    pub spread: DailyFigures,
    /// Comparison with the benchmark; `null` where equity adds in price units.
    pub market: Option<AgainstMarket>,
    /// What holding the benchmark made, in price units where equity adds.
    pub benchmark_return: Option<f64>,
    /// Returns of each day, the benchmark's beside them; not stored.
    #[serde(skip)]
    pub daily: Vec<DailyMark>,
}

/// Equity at the end of a day: days since 1970, the strategy's value and the benchmark's, from 1 on; from 0 on where equity adds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EquityMark(pub i64, pub f64, pub f64);

impl Parts {
    /// The parts to be shown side by side; where all data is one part, only that.
    pub fn shown(&self) -> Vec<&PartFigures> {
        let unseen: Vec<&PartFigures> = [&self.out_of_sample, &self.holdout].into_iter().flatten().collect();
        match (unseen.is_empty(), self.searched) {
            (true, true) => vec![&self.in_sample],
            (true, false) => vec![&self.whole],
            (false, _) => [vec![&self.in_sample], unseen, vec![&self.whole]].concat(),
        }
    }

    /// One part, if there is one.
    pub fn get(&self, part: PartName) -> Option<&PartFigures> {
        match part {
            PartName::InSample => Some(&self.in_sample),
            PartName::OutOfSample => self.out_of_sample.as_ref(),
            PartName::Holdout => self.holdout.as_ref(),
            PartName::Whole => Some(&self.whole),
        }
    }

    /// Equity over the whole period, one mark a day.
    pub fn equity(&self) -> Vec<EquityMark> {
        self.whole.equity(self.additive)
    }

    /// The same thinned to about `most` marks, the last of which is the last day.
    pub fn thinned_equity(&self, most: usize) -> Vec<EquityMark> {
        let all = self.equity();
        let step = all.len().div_ceil(most.max(1)).max(1);
        let mut marks: Vec<EquityMark> = all.iter().copied().rev().step_by(step).collect();
        marks.reverse();
        marks
    }
}

impl PartFigures {
    /// Equity over the part, one mark a day.
    pub fn equity(&self, is_additive: bool) -> Vec<EquityMark> {
        let start = if is_additive { 0.0 } else { 1.0 };
        let next = |value: f64, change: f64| match is_additive {
            true => value + change,
            false => (value * (1.0 + change)).max(0.0),
        };
        let mut now = [start; 2];
        let marks = self.daily.iter().map(|mark| {
            now = [next(now[0], mark.change), next(now[1], mark.held)];
            EquityMark(mark.day, now[0], now[1])
        });
        marks.collect()
    }
}

/// Evaluates parameter sets on every part of the data, on the CPU.
pub struct PartsEngine<'a> {
    engine: Engine<'a>,
    strategy: &'a Strategy,
    benchmark: String,
    is_searched: bool,
    /// The part of each segment.
    names: Vec<PartName>,
    in_sample: PartMarket,
    out_of_sample: Option<PartMarket>,
    holdout: Option<PartMarket>,
    whole: PartMarket,
}

/// What belongs to a part, whatever is traded there.
struct PartMarket {
    part: PartName,
    /// Its segments.
    segments: Vec<usize>,
    held: Benchmark,
}

/// A parameter set in full.
pub struct EvaluatedParts {
    /// Its figures.
    pub parts: Parts,
    /// Trades and marks of each segment.
    pub details: Vec<Detail>,
    /// The first objective in sample, or why there is none.
    pub score: Result<f64, Invalid>,
}

impl<'a> PartsEngine<'a> {
    /// Takes the segments of a search and those that it never saw; `named` is a benchmark in place of holding all symbols.
    pub fn new(
        strategy: &'a Strategy,
        universe: &'a Universe,
        [seen, held_out]: [Vec<Segment>; 2],
        named: Option<&Bars>,
        options: EngineOptions,
    ) -> Result<Self, StrategyError> {
        let of_seen = |segment: &Segment| match segment.role {
            Role::Train => PartName::InSample,
            Role::Test => PartName::OutOfSample,
        };
        let mut names: Vec<PartName> = seen.iter().map(of_seen).collect();
        names.extend(held_out.iter().map(|_| PartName::Holdout));
        let engine = Engine::new(strategy, universe, [seen, held_out].concat(), options)?;
        let market = |part: PartName| {
            let is_of = |at: &usize| part == PartName::Whole || names[*at] == part;
            let segments: Vec<usize> = (0..names.len()).filter(is_of).collect();
            PartMarket { part, held: engine.benchmark_of(&segments, named), segments }
        };
        let unseen = |part: PartName| Some(market(part)).filter(|market| !market.segments.is_empty());
        Ok(Self {
            in_sample: market(PartName::InSample),
            out_of_sample: unseen(PartName::OutOfSample),
            holdout: unseen(PartName::Holdout),
            whole: market(PartName::Whole),
            benchmark: benchmark_name(named).to_owned(),
            is_searched: false,
            engine,
            strategy,
            names,
        })
    }

    /// Says that a search chose the parameters.
    pub fn searched(self) -> Self {
        Self { is_searched: true, ..self }
    }

    /// The engine of all segments.
    pub fn engine(&self) -> &Engine<'a> {
        &self.engine
    }

    /// The part of each segment.
    pub fn names(&self) -> &[PartName] {
        &self.names
    }

    /// Evaluates one parameter set.
    pub fn evaluate(&mut self, row: &[f64]) -> EvaluatedParts {
        let details = self.engine.detail(row);
        let params = self.engine.decode(row);
        let of = |market: &PartMarket| self.figures(market, &details, &params);
        let (score, in_sample) = of(&self.in_sample);
        let out_of_sample = self.out_of_sample.as_ref().map(|market| of(market).1);
        let holdout = self.holdout.as_ref().map(|market| of(market).1);
        let parts = Parts {
            searched: self.is_searched,
            additive: self.strategy.execution.sizing == Sizing::Unit,
            benchmark: self.benchmark.clone(),
            whole: of(&self.whole).1,
            in_sample,
            out_of_sample,
            holdout,
        };
        EvaluatedParts { parts, details, score }
    }

    /// The distance at which the stop of each trade trailed the best price, by segment; NaN without one.
    pub fn trail_distances(&mut self, row: &[f64], details: &[Detail]) -> Vec<Vec<f64>> {
        self.engine.trail_distances(row, details)
    }

    /// The figures of each symbol alone over the whole period, from the details of a parameter set; a symbol without a bar has none.
    pub fn by_symbol(
        &self,
        row: &[f64],
        details: &[Detail],
        named: Option<&Bars>,
    ) -> Vec<Option<PartFigures>> {
        let params = self.engine.decode(row);
        let segments = self.engine.segments();
        let n_symbols = segments.iter().map(|segment| segment.symbol + 1).max().unwrap_or(0);
        let of_symbol = |symbol: usize| {
            let own: Vec<usize> = (0..segments.len()).filter(|at| segments[*at].symbol == symbol).collect();
            let held = self.engine.benchmark_of(&own, named);
            let market = PartMarket { part: PartName::Whole, segments: own, held };
            (!market.segments.is_empty()).then(|| self.figures(&market, details, &params).1)
        };
        (0..n_symbols).map(of_symbol).collect()
    }

    /// The first objective, or why there is none, and all figures.
    fn figures(
        &self,
        market: &PartMarket,
        details: &[Detail],
        params: &[f64],
    ) -> (Result<f64, Invalid>, PartFigures) {
        let PartMarket { part, segments, held } = market;
        let engine = &self.engine;
        let mut pool = engine.pool_of(details, segments);
        if *part == PartName::Whole {
            // A fall within a part is one within the whole, also where only the part's own marks, at exits, show it.
            let own = [Some(&self.in_sample), self.out_of_sample.as_ref(), self.holdout.as_ref()];
            let falls =
                own.into_iter().flatten().map(|own| engine.pool_of(details, &own.segments).tally.drawdown);
            pool.tally.drawdown = falls.fold(pool.tally.drawdown, f64::min);
            pool.tally.drawdown_bar = pool.tally.drawdown_bar.min(pool.tally.drawdown);
        }
        let metrics = Metrics::new(&pool.tally, pool.year_days);
        let by_segment: Vec<Metrics> = segments
            .iter()
            .map(|at| engine.segment_metrics(&engine.segments()[*at], &details[*at].tally))
            .collect();
        let role = if *part == PartName::InSample { Role::Train } else { Role::Test };
        let score = score::scores_of(self.strategy, params, role, &metrics, &by_segment).swap_remove(0);
        let daily: Vec<DailyMark> = pool
            .daily
            .iter()
            .zip(&held.daily)
            .map(|((day, change), (_, held))| DailyMark { day: *day, change: *change, held: *held })
            .collect();
        let date = |mark: Option<&DailyMark>| {
            mark.map_or_else(String::new, |mark| {
                timestamp::format_ms(mark.day * DAY_MS).chars().take(10).collect()
            })
        };
        let has_market = has_market(self.strategy);
        let figures = PartFigures {
            part: *part,
            from: date(daily.first()),
            to: date(daily.last()),
            days: daily.len(),
            year_days: pool.year_days,
            objective: score.ok(),
            metrics,
            spread: match has_market {
                true => DailyFigures::new(&daily, pool.year_days),
                false => DailyFigures::default(),
            },
            market: has_market.then(|| {
                let exposure = engine.net_exposure(details, segments);
                against(&daily, held.total_return, exposure, pool.year_days)
            }),
            benchmark_return: Some(held.total_return).filter(|value| value.is_finite()),
            daily,
        };
        (score, figures)
    }
}

fn against(daily: &[DailyMark], benchmark_return: f64, exposure: f64, year_days: f64) -> AgainstMarket {
    let returns: Vec<f64> = daily.iter().map(|mark| mark.change).collect();
    let held: Vec<f64> = daily.iter().map(|mark| mark.held).collect();
    let matched = total(held.iter().map(|change| exposure * change));
    AgainstMarket {
        net_exposure: Some(exposure).filter(|share| share.is_finite()),
        exposure_matched_return: Some(matched).filter(|share| share.is_finite()),
        ..AgainstMarket::new(&returns, &held, benchmark_return, year_days)
    }
}

//! `BacktestReport`: one parameter set in full.

use serde_json::{Value, json};
use tidemill_backtest::objective::Invalid;
use tidemill_backtest::segment::Segment;
use tidemill_backtest::{Benchmark, Detail, LetSeries, Metrics, let_series};
use tidemill_search::{Domain, Space};

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::parts::{EvaluatedParts, PartFigures, PartName, Parts};

/// One evaluated parameter set with everything that is shown of it.
#[derive(Clone, Debug)]
pub struct BacktestReport {
    /// What was evaluated.
    pub experiment: Experiment,
    /// The segments of the data, those that are held out included.
    pub segments: Vec<Segment>,
    /// The part that each segment belongs to.
    pub segment_parts: Vec<PartName>,
    /// Trades and marks of each segment.
    pub details: Vec<Detail>,
    /// The distance at which the stop of each trade trailed the best price, by segment; NaN without one.
    pub trail_distances: Vec<Vec<f64>>,
    /// Metrics of each segment.
    pub segment_metrics: Vec<Metrics>,
    /// What holding the benchmark made on each segment.
    pub segment_held: Vec<Benchmark>,
    /// The figures of each symbol alone over the whole period; empty where there is one symbol.
    pub by_symbol: Vec<Option<PartFigures>>,
    /// The figures of every part.
    pub parts: Parts,
    /// The first objective in sample, or why there is none.
    pub score: Result<f64, Invalid>,
    /// The parameters as numbers.
    row: Vec<f64>,
    /// Names and values of the parameters; inactive ones are null.
    pub params: Vec<(String, Value)>,
    /// Days of a year of the whole period's pool.
    pub year_days: f64,
    /// Days of a year of each symbol.
    pub symbol_year_days: Vec<f64>,
    /// How much of the market was held on each day, long less short: days since 1970, and the mean share of equity.
    pub daily_exposure: Vec<(i64, f64)>,
    /// Notes for the user about the result.
    pub warnings: Vec<String>,
    /// The verdict on the parameters in a line, where they are a trial of a study that was judged.
    pub verdict: Option<String>,
}

impl BacktestReport {
    /// Evaluates the defaults of the strategy.
    pub(crate) fn new(experiment: &Experiment) -> Result<Self, LabError> {
        let Experiment { strategy, data, layout, .. } = experiment;
        let mut engine = experiment.parts_engine(layout)?;
        let space = engine.engine().space();
        let row = space.default_point();
        let EvaluatedParts { parts, details, score } = engine.evaluate(&row);
        let trail_distances = engine.trail_distances(&row, &details);
        let segment_parts = engine.names().to_vec();
        let named = data.benchmark.as_ref();
        let n_symbols = data.universe.symbols.len();
        let by_symbol = if n_symbols > 1 { engine.by_symbol(&row, &details, named) } else { Vec::new() };
        let engine = engine.engine();
        let segments = engine.segments().to_vec();
        let mut warnings: Vec<String> = engine
            .impossible_windows(&row)
            .into_iter()
            .map(|window| match window {
                w if w >= 1.0 => {
                    format!("no symbol has enough bars for a window of {w}: what uses it is never available")
                }
                w => format!("a window of {w} makes no sense: what uses it is never available"),
            })
            .collect();
        warnings.extend(strategy.remarks(&data.universe));
        if layout.split.is_some() && parts.out_of_sample.is_none() {
            warnings.push("the out-of-sample part has no bar".into());
        }
        Ok(Self {
            experiment: experiment.clone(),
            segment_held: (0..segments.len()).map(|at| engine.benchmark_of(&[at], named)).collect(),
            daily_exposure: engine.daily_exposure(&details, &(0..segments.len()).collect::<Vec<_>>()),
            by_symbol,
            segment_metrics: segments
                .iter()
                .zip(&details)
                .map(|(segment, detail)| engine.segment_metrics(segment, &detail.tally))
                .collect(),
            score,
            params: param_values(&space, &row),
            year_days: parts.whole.year_days,
            symbol_year_days: (0..n_symbols).map(|at| engine.symbol_year_days(at)).collect(),
            warnings,
            verdict: None,
            trail_distances,
            row,
            segment_parts,
            segments,
            details,
            parts,
        })
    }

    /// The numbers under `[let]` on some symbols, for charts.
    pub fn let_series(&self, symbols: &[usize]) -> Result<Vec<Vec<LetSeries>>, LabError> {
        let Experiment { strategy, data, runtime, .. } = &self.experiment;
        Ok(let_series(strategy, &data.universe, &self.row, symbols, runtime.engine_options())?)
    }

    /// Why the objective has no value, in words.
    pub fn invalid(&self) -> Option<String> {
        match self.score {
            Ok(_) => None,
            Err(Invalid::Requirement) => {
                let require = self.experiment.strategy.require.as_ref();
                Some(format!("not met: {}", require.map_or("`require`", |require| require.text.as_str())))
            }
            Err(Invalid::NoTrades | Invalid::Undefined) => Some("it is not defined for these trades".into()),
        }
    }
}

/// Names and values of a point; inactive parameters are null.
pub fn param_values(space: &Space, row: &[f64]) -> Vec<(String, Value)> {
    let values = space.params.iter().zip(row);
    values.map(|(param, encoded)| (param.name.clone(), decoded(&param.domain, *encoded))).collect()
}

/// An encoded value as people read it; null if it stands for none.
pub fn decoded(domain: &Domain, encoded: f64) -> Value {
    json!(domain.decode(encoded))
}

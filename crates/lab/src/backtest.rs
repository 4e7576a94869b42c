//! `BacktestReport`: one parameter set in full.

use serde_json::{Value, json};
use tidemill_backtest::objective::Invalid;
use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::{Benchmark, Detail, Metrics};
use tidemill_search::{Points, Space};

use crate::benchmark::{AgainstMarket, Part, has_market};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::score::scores;

/// One evaluated parameter set with everything that is shown of it.
#[derive(Clone, Debug)]
pub struct BacktestReport {
    /// What was evaluated.
    pub experiment: Experiment,
    /// The segments of the data.
    pub segments: Vec<Segment>,
    /// Trades and marks of each segment.
    pub details: Vec<Detail>,
    /// Metrics of each segment.
    pub segment_metrics: Vec<Metrics>,
    /// Metrics over the segments that count.
    pub train: Metrics,
    /// Metrics over the others.
    pub test: Option<Metrics>,
    /// The first objective, or why there is none.
    pub score: Result<f64, Invalid>,
    /// Names and values of the parameters; inactive ones are null.
    pub params: Vec<(String, Value)>,
    /// Days of a year of the pool that counts.
    pub year_days: f64,
    /// Days of a year of each symbol.
    pub symbol_year_days: Vec<f64>,
    /// Notes for the user about the result.
    pub warnings: Vec<String>,
    /// Results of holding the benchmark.
    pub held: HeldBenchmarks,
    /// The totals compared with it: in-sample, and out-of-sample where there is such a part; empty where equity adds in price units.
    pub against: Vec<AgainstMarket>,
}

/// Results of holding the benchmark on each part that is shown.
#[derive(Clone, Debug)]
pub struct HeldBenchmarks {
    /// Of all symbols together: in-sample, out-of-sample.
    pub parts: [Benchmark; 2],
    /// By segment.
    pub segments: Vec<Benchmark>,
    /// By symbol: in-sample, out-of-sample.
    pub symbols: Vec<[Benchmark; 2]>,
}

impl BacktestReport {
    /// Evaluates the defaults of the strategy.
    pub(crate) fn new(experiment: &Experiment) -> Result<Self, LabError> {
        let Experiment { strategy, data, layout, .. } = experiment;
        let mut engine = experiment.engine(layout, 1)?;
        let segments = engine.segments().to_vec();
        let space = engine.space();
        let row = space.default_point();
        let mut points = Points::new(space.len());
        points.push(&row);
        let outcome = engine.evaluate(&points).remove(0);
        let details = engine.detail(&row);
        let train = engine.pool_metrics(&outcome.train, Role::Train);
        let score = scores(&engine, strategy, &row, &outcome, Role::Train, &train).swap_remove(0);
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
        if layout.split.is_some() && outcome.test.is_none() {
            warnings.push("the out-of-sample part has no bar".into());
        }
        let year_days = engine.year_days(Role::Train);
        let symbols = 0..data.universe.symbols.len();
        let named = data.benchmark.as_ref();
        let roles = [Role::Train, Role::Test];
        let held = HeldBenchmarks {
            parts: roles.map(|role| engine.benchmark(role, named)),
            segments: (0..segments.len()).map(|at| engine.segment_benchmark(at, named)).collect(),
            symbols: symbols
                .clone()
                .map(|symbol| roles.map(|role| engine.symbol_benchmark(symbol, role, named)))
                .collect(),
        };
        let against = roles
            .into_iter()
            .filter(|role| has_market(strategy) && segments.iter().any(|segment| segment.role == *role))
            .map(|role| Part::new(&engine, &details, role, named, year_days).against)
            .collect();
        let metrics = segments.iter().zip(&outcome.segments);
        Ok(Self {
            experiment: experiment.clone(),
            held,
            against,
            segment_metrics: metrics.map(|(segment, tally)| engine.segment_metrics(segment, tally)).collect(),
            segments,
            details,
            train,
            test: outcome.test.as_ref().map(|tally| engine.pool_metrics(tally, Role::Test)),
            score,
            params: param_values(&space, &row),
            year_days,
            symbol_year_days: symbols.map(|at| engine.symbol_year_days(at)).collect(),
            warnings,
        })
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
    values.map(|(param, encoded)| (param.name.clone(), json!(param.domain.decode(*encoded)))).collect()
}

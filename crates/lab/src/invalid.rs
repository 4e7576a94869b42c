//! Why no trial of a search has a score, and how near the trials came.
//!
//! Counted only until the first valid trial: from then on nobody asks. Of a stored study it is counted again from its trials.

use serde::Serialize;
use tidemill_backtest::expr::Expr;
use tidemill_backtest::objective::{Margin, Scoring};
use tidemill_backtest::{METRICS, Metric, Metrics, Strategy};
use tidemill_search::{Evaluated, Param, Points, Space, StudyFolder};

use crate::config::StudyConfig;
use crate::error::LabError;
use crate::number;
use crate::stored::reopen::evaluated;

/// The reasons why the trials of a search are invalid. A trial that fails several conditions counts for each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InvalidCounts {
    /// Trials that were looked at.
    pub n_trials: u64,
    /// Those that made no trade.
    pub n_untraded: u64,
    /// Those that traded and met all conditions, but whose objective is not defined.
    pub n_undefined: u64,
    /// The conditions of `require`, in their order.
    pub conditions: Vec<ConditionCount>,
}

/// How often a condition failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConditionCount {
    /// As it could be written.
    pub text: String,
    /// Trials that traded and do not meet it.
    pub n_failed: u64,
    /// The trial that comes nearest, where the condition asks for a least or a largest value.
    pub nearest: Option<Margin>,
}

impl InvalidCounts {
    /// Before the first trial.
    pub fn new(strategy: &Strategy) -> Self {
        let of =
            |condition: &Expr| ConditionCount { text: condition.to_string(), n_failed: 0, nearest: None };
        let conditions = Scoring::new(strategy).conditions();
        Self { conditions: conditions.into_iter().map(of).collect(), ..Self::default() }
    }

    /// Counts the trials of a stored study without a valid one; `None` if it does not say what its trials had to meet, because it has no
    /// text of its strategy, or one that means something else by now.
    pub fn of_study(folder: &StudyFolder, config: &StudyConfig) -> Result<Option<Self>, LabError> {
        let Ok(Some(strategy)) = config.searched_strategy() else { return Ok(None) };
        // Which parameters are active does not matter: those that are not have no value in the trials.
        let param = |spec: &tidemill_backtest::strategy::ParamSpec| Param {
            fixed: spec.fixed,
            ..Param::new(&spec.name, spec.domain.clone(), spec.default)
        };
        let space = Space { params: strategy.params.iter().map(param).collect() };
        let mut counts = Self::new(&strategy);
        for batch in folder.trials()? {
            let batch = batch?;
            let Some((points, evaluated)) = evaluated(&batch, &space) else { return Ok(None) };
            counts.count(&strategy, &points, &evaluated);
        }
        Ok(Some(counts))
    }

    /// The reasons, how near the trials came, and what to do, in lines for people.
    pub fn text(&self) -> String {
        let mut out = format!("No trial was valid. Of {}\n", number::counted(self.n_trials, "trial"));
        let mut line = |count: u64, text: String| {
            if count > 0 {
                out += &format!("{:>12} {text}\n", number::count(count));
            }
        };
        line(self.n_untraded, "made no trade".into());
        for condition in &self.conditions {
            let best =
                condition.nearest.map(|nearest| format!("; at best {}", number::short(Some(nearest.found))));
            let text = format!("traded and did not meet `{}`{}", condition.text, best.unwrap_or_default());
            line(condition.n_failed, text);
        }
        line(self.n_undefined, "met all of that, but the objective is not defined for them".into());
        let hint = if self.n_untraded == self.n_trials {
            "`enter` was never true: look at its conditions, and at the ranges of [params]"
        } else if self.conditions.iter().any(|condition| condition.n_failed > 0) {
            "ask for less in `require` of [objective], or widen the ranges of [params]"
        } else {
            "choose another objective, or test on more data"
        };
        out + &format!("  hint: {hint}\n")
    }

    /// Counts a batch in which no trial is valid.
    pub(crate) fn count(&mut self, strategy: &Strategy, points: &Points, evaluated: &Evaluated) {
        let scoring = Scoring::new(strategy);
        let conditions = scoring.conditions();
        let mut row = vec![0.0; points.n_params()];
        for at in 0..points.len() {
            points.read_row(at, &mut row);
            let decode = |(param, encoded): (&tidemill_backtest::strategy::ParamSpec, &f64)| {
                param.decode(if encoded.is_nan() { param.default } else { *encoded })
            };
            let params: Vec<f64> = strategy.params.iter().zip(&row).map(decode).collect();
            let mut values = [f64::NAN; METRICS.len()];
            for (value, column) in values.iter_mut().zip(&evaluated.metrics) {
                *value = column.get(at).copied().unwrap_or(f64::NAN);
            }
            let metrics = Metrics::from_values(values);
            let is_traded = metrics.get(Metric::Trades).is_some_and(|trades| trades > 0.0);
            self.n_trials += 1;
            self.n_untraded += u64::from(!is_traded);
            let mut meets_all = true;
            for (condition, count) in conditions.iter().zip(&mut self.conditions) {
                if !is_traded {
                    continue;
                }
                if !scoring.is_met(condition, &metrics, &params) {
                    meets_all = false;
                    count.n_failed += 1;
                }
                if let Some(margin) = scoring.margin(condition, &metrics, &params)
                    && count.nearest.is_none_or(|nearest| margin.margin > nearest.margin)
                {
                    count.nearest = Some(margin);
                }
            }
            self.n_undefined += u64::from(is_traded && meets_all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill_backtest::Overrides;
    use tidemill_search::Scores;

    const TEXT: &str = r#"
[params]
w = { int = [1, 100], default = 5 }
[long]
enter = "close > w"
max_hold = 5
[objective]
maximize = "sharpe"
require = "trades >= 30 and (max_drawdown > -0.35) and w < 50"
"#;

    /// Trials with these numbers of trades and draw-downs, and `w` of each.
    fn counted(trials: &[(f64, f64, f64)]) -> InvalidCounts {
        let strategy = Strategy::parse("a.toml", TEXT, &Overrides::default()).unwrap();
        let mut points = Points::new(1);
        let mut metrics = vec![vec![f64::NAN; trials.len()]; METRICS.len()];
        for (at, (trades, drawdown, w)) in trials.iter().enumerate() {
            points.push(&[*w]);
            metrics[Metric::Trades as usize][at] = *trades;
            metrics[Metric::MaxDrawdown as usize][at] = *drawdown;
        }
        let scores = Scores::from_columns(trials.len(), vec![vec![f64::NAN; trials.len()]]);
        let mut counts = InvalidCounts::new(&strategy);
        counts.count(&strategy, &points, &Evaluated { scores, metrics });
        counts
    }

    #[test]
    fn every_condition_has_its_count_and_the_trial_that_comes_nearest() {
        let counts =
            counted(&[(0.0, f64::NAN, 5.0), (12.0, -0.5, 5.0), (3.0, -0.4, 60.0), (40.0, -0.1, 7.0)]);
        assert_eq!((counts.n_trials, counts.n_untraded, counts.n_undefined), (4, 1, 1));
        let texts: Vec<&str> = counts.conditions.iter().map(|of| of.text.as_str()).collect();
        assert_eq!(texts, ["trades >= 30", "max_drawdown > -0.35", "w < 50"]);
        let failed: Vec<u64> = counts.conditions.iter().map(|of| of.n_failed).collect();
        assert_eq!(failed, [2, 2, 1]);
        let nearest: Vec<f64> = counts.conditions.iter().map(|of| of.nearest.unwrap().found).collect();
        assert_eq!(nearest, [40.0, -0.1, 5.0]);
        assert_eq!(counts.conditions[0].nearest.unwrap().wanted, 30.0);
    }
}

//! The figures of parts as rows of a table: what is shown of a part, in which order, under which name.

use tidemill_backtest::{METRICS, Metric};

use super::{PartFigures, Parts};
use crate::benchmark::AgainstMarket;
use crate::number;

/// One figure on all parts that are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct PartRow {
    /// Its key in JSON documents.
    pub key: &'static str,
    /// Its name for people; one that ends in `[%]` is shown in per cent.
    pub label: String,
    /// Its values, in the order of [`Parts::shown`].
    pub values: Vec<Option<f64>>,
}

impl PartRow {
    /// Its values for people.
    pub fn texts(&self) -> impl Iterator<Item = String> + '_ {
        self.values.iter().map(|value| number::metric(&self.label, *value))
    }
}

impl Parts {
    /// The few figures that say most: what it made, what holding made, at which risk.
    pub fn summary(&self) -> Vec<PartRow> {
        let metric = |metric: Metric| {
            let (_, key, label) = METRICS[metric as usize];
            self.row(key, label, move |part| part.metrics.get(metric))
        };
        let mut rows = vec![metric(Metric::TotalReturn), self.held_row()];
        rows.extend(self.market_row("excess_return", "Excess Return [%]", |of| Some(of.excess_return)));
        rows.extend([metric(Metric::Sharpe), metric(Metric::MaxDrawdown), metric(Metric::Trades)]);
        rows.extend(self.fit_rows());
        rows
    }

    /// All figures of one symbol over the whole period, in the order of [`Parts::table`].
    pub fn row_of(&self, symbol: &PartFigures) -> Vec<Option<f64>> {
        let alone = Self {
            searched: false,
            out_of_sample: None,
            holdout: None,
            whole: symbol.clone(),
            ..self.clone()
        };
        alone.table().into_iter().map(|row| row.values[0]).collect()
    }

    /// All figures.
    pub fn table(&self) -> Vec<PartRow> {
        let mut rows = Vec::new();
        for (metric, key, label) in METRICS {
            rows.push(self.row(key, label, |part| part.metrics.get(metric)));
            if metric == Metric::TotalReturn {
                rows.push(self.held_row());
                let excess = |of: &AgainstMarket| Some(of.excess_return);
                rows.extend(self.market_row("excess_return", "Excess Return [%]", excess));
            }
        }
        rows.extend(self.fit_rows());
        let exposure = |of: &AgainstMarket| of.net_exposure;
        rows.extend(self.market_row("net_exposure", "Net Exposure [%]", exposure));
        let matched = |of: &AgainstMarket| of.exposure_matched_return;
        rows.extend(self.market_row("exposure_matched_return", "Return at that Exposure [%]", matched));
        if !self.additive {
            rows.extend([
                self.row("volatility", "Volatility (Ann.) [%]", |part| part.spread.volatility),
                self.row("value_at_risk", "Daily Value at Risk [%]", |part| part.spread.value_at_risk),
                self.row("skew", "Skew of Days", |part| part.spread.skew),
                self.row("best_day", "Best Day [%]", |part| part.spread.best_day),
                self.row("worst_day", "Worst Day [%]", |part| part.spread.worst_day),
            ]);
        }
        rows
    }

    fn row(&self, key: &'static str, label: &str, of: impl Fn(&PartFigures) -> Option<f64>) -> PartRow {
        let values = self.shown().into_iter().map(|part| of(part).filter(|value| value.is_finite()));
        PartRow { key, label: label.into(), values: values.collect() }
    }

    fn held_row(&self) -> PartRow {
        let label = format!("Return of {} [%]", self.benchmark);
        self.row("benchmark_return", &label, |part| part.benchmark_return)
    }

    /// A figure of the comparison with the benchmark; none where nothing is compared.
    fn market_row(
        &self,
        key: &'static str,
        label: &str,
        of: impl Fn(&AgainstMarket) -> Option<f64>,
    ) -> Option<PartRow> {
        (!self.additive).then(|| self.row(key, label, |part| part.market.as_ref().and_then(&of)))
    }

    fn fit_rows(&self) -> Vec<PartRow> {
        [
            self.market_row("beta", "Beta", |of| of.fit.beta),
            self.market_row("alpha", "Alpha, a year [%]", |of| of.fit.alpha),
            self.market_row("t_alpha", "t of Alpha", |of| of.fit.t_alpha),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

//! Winners that lie at the end of a range: what is best may lie beyond it.

use tidemill_backtest::Strategy;
use tidemill_search::Domain;

use crate::number;
use crate::stored::rows::Row;
use crate::stored::survey::Survey;

/// Share of a range that counts as its end.
const END_SHARE: f64 = 0.01;

/// Fewest values of a range of which the first and the last are ends; of fewer, too many would be.
const LEAST_VALUES: u64 = 5;

/// A parameter whose value lies at the end of its range.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeEnd {
    /// Name of the parameter.
    pub param: String,
    /// Its value.
    pub value: f64,
    /// The range that was searched.
    pub range: (f64, f64),
    /// Whether it is the upper end.
    pub is_upper: bool,
}

impl RangeEnd {
    /// In words, without a stop at the end.
    pub fn words(&self) -> String {
        let text = |value: f64| number::short(Some(value));
        let end = if self.is_upper { "upper" } else { "lower" };
        let (low, high) = self.range;
        format!("{} = {} ({end} end of {} … {})", self.param, text(self.value), text(low), text(high))
    }
}

/// All of them in a sentence; `None` if there are none.
pub fn sentence(ends: &[RangeEnd]) -> Option<String> {
    let words: Vec<String> = ends.iter().map(RangeEnd::words).collect();
    (!words.is_empty()).then(|| {
        format!(
            "The best trial lies at the end of a range: {}. Better ones may lie beyond.",
            words.join(", ")
        )
    })
}

/// The searched parameters of a point, encoded in the order of the strategy, that lie at the end of their range.
pub fn range_ends(strategy: &Strategy, row: &[f64]) -> Vec<RangeEnd> {
    let searched =
        strategy.params.iter().zip(row).filter(|(param, value)| param.fixed.is_none() && value.is_finite());
    searched
        .filter_map(|(param, value)| {
            let (low, high) = match param.domain {
                Domain::Float { low, high, .. } => (low, high),
                Domain::Int { low, high, .. } => (low as f64, high as f64),
                Domain::Choice { .. } | Domain::Bool => return None,
            };
            let [at, first, last] = [*value, low, high].map(|value| param.domain.to_unit(value));
            let reach = match param.domain.n_values() {
                Some(n) if n < LEAST_VALUES => return None,
                // Of a coarse range the end itself: less than the distance of two levels.
                Some(n) => (0.4 / n as f64).max(END_SHARE),
                None => END_SHARE,
            };
            let is_upper = last - at <= reach;
            // Below 0, or below a window of 1 bar, there is nothing to be found.
            let is_open = low != 0.0 && (low != 1.0 || !matches!(param.domain, Domain::Int { .. }));
            (is_upper || (is_open && at - first <= reach)).then(|| RangeEnd {
                param: param.name.clone(),
                value: *value,
                range: (low, high),
                is_upper,
            })
        })
        .collect()
}

/// The same for a stored trial; parameters that the study did not vary are left out.
pub fn stored_range_ends(strategy: &Strategy, survey: &Survey, trial: &Row) -> Vec<RangeEnd> {
    let value = |name: &str| {
        let place = survey.axes.0.iter().position(|axis| axis.name == name && axis.is_varied())?;
        trial.params.get(place)?.as_ref()
    };
    let row: Vec<f64> = strategy
        .params
        .iter()
        .map(|param| value(&param.name).and_then(|value| param.domain.encode(value)).unwrap_or(f64::NAN))
        .collect();
    range_ends(strategy, &row)
}

#[cfg(test)]
mod tests {
    use tidemill_backtest::Overrides;

    use super::*;

    #[test]
    fn only_ends_of_searched_ranges_count() {
        let source = "[params]\nn = { int = [5, 50], default = 20 }\nx = { float = [0.1, 10.0], log = true, default = 1.0 }\n\
             m = { int = [1, 3], default = 2 }\nfixed = { int = [1, 9], default = 5 }\nz = { int = [0, 40], default = 20 }\n\
             [long]\nenter = 'close > sma(close, n) + x + m + fixed + z'\nmax_hold = 5\n";
        let overrides = Overrides { set: vec![("fixed".into(), "9".into())], ..Overrides::default() };
        let strategy = Strategy::parse("s.toml", source, &overrides).unwrap();
        let names = |row: &[f64]| -> Vec<(String, bool)> {
            range_ends(&strategy, row).into_iter().map(|end| (end.param, end.is_upper)).collect()
        };
        assert_eq!(names(&[20.0, 1.0, 3.0, 9.0, 0.0]), []);
        assert_eq!(names(&[49.0, 9.0, 1.0, 9.0, 20.0]), []);
        assert_eq!(names(&[50.0, 0.1, 2.0, 9.0, 20.0]), [("n".into(), true), ("x".into(), false)]);
        assert_eq!(names(&[5.0, f64::NAN, 2.0, 9.0, 20.0]), [("n".into(), false)]);
        let text = sentence(&range_ends(&strategy, &[50.0, 1.0, 2.0, 9.0, 20.0])).unwrap();
        assert!(text.contains("n = 50 (upper end of 5 … 50)"), "{text}");
        assert_eq!(sentence(&[]), None);
    }
}

//! Daily returns of a part and how they are spread.

use serde::{Deserialize, Serialize};

/// The normal distribution leaves 5 % below so many standard deviations under the mean.
const Z_95: f64 = 1.644_853_626_951_472_2;

/// One day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DailyMark {
    /// Days since 1970.
    pub day: i64,
    /// Return of the strategy, in price units where equity adds.
    pub change: f64,
    /// Return of the benchmark.
    pub held: f64,
}

/// How daily returns are spread; `null` where returns are no shares, or where it is not defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DailyFigures {
    /// Sample standard deviation, by the year.
    pub volatility: Option<f64>,
    /// Return that a day falls short of in 5 of 100 cases, if returns were normal: mean − 1.645 standard deviations.
    pub value_at_risk: Option<f64>,
    /// Skewness, corrected for the size of the sample as in pandas: negative where the losses are the large ones.
    pub skew: Option<f64>,
    /// Best day.
    pub best_day: Option<f64>,
    /// Worst day.
    pub worst_day: Option<f64>,
}

impl DailyFigures {
    /// Figures of these days, of which a year has `year_days`.
    pub fn new(daily: &[DailyMark], year_days: f64) -> Self {
        if daily.is_empty() {
            return Self::default();
        }
        let n = daily.len() as f64;
        let changes = || daily.iter().map(|mark| mark.change);
        let mean = changes().sum::<f64>() / n;
        let [mut squares, mut cubes] = [0.0; 2];
        for off in changes().map(|change| change - mean) {
            squares += off * off;
            cubes += off * off * off;
        }
        let deviation = (squares / (n - 1.0)).sqrt();
        let variance = squares / n;
        let skew = cubes / n / (variance * variance.sqrt());
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            volatility: finite(deviation * year_days.sqrt()),
            value_at_risk: finite(mean - Z_95 * deviation),
            skew: finite(skew * (n * (n - 1.0)).sqrt() / (n - 2.0)),
            best_day: changes().max_by(f64::total_cmp),
            worst_day: changes().min_by(f64::total_cmp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with pandas 3: `s.std() * 365 ** 0.5`, `s.mean() - 1.6448536269514722 * s.std()`, `s.skew()`.
    #[test]
    fn figures_are_those_of_pandas() {
        let changes = [0.01, -0.02, 0.005, 0.03, -0.015, 0.0, 0.0025];
        let daily: Vec<DailyMark> =
            (0..7).zip(changes).map(|(day, change)| DailyMark { day, change, held: 0.0 }).collect();
        let figures = DailyFigures::new(&daily, 365.0);
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-12;
        assert!(near(figures.volatility, 0.315_273_407_423_733_4), "{figures:?}");
        assert!(near(figures.value_at_risk, -0.025_357_930_614_728_6), "{figures:?}");
        assert!(near(figures.skew, 0.413_954_642_062_244_4), "{figures:?}");
        assert_eq!((figures.best_day, figures.worst_day), (Some(0.03), Some(-0.02)));
    }

    #[test]
    fn days_that_do_not_vary_have_no_skew_and_no_days_have_nothing() {
        let idle = vec![DailyMark { day: 0, change: 0.0, held: 0.0 }; 5];
        let figures = DailyFigures::new(&idle, 365.0);
        assert_eq!((figures.volatility, figures.skew), (Some(0.0), None));
        assert_eq!(DailyFigures::new(&[], 365.0), DailyFigures::default());
    }
}

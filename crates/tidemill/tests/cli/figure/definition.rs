//! Statistics by their definitions, without what the engine does to be fast or exact.

use tidemill_verdict::Moments;

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean of a power of the distances from the mean.
pub(super) fn moment(values: &[f64], power: i32) -> f64 {
    let middle = mean(values);
    mean(&values.iter().map(|value| (value - middle).powi(power)).collect::<Vec<f64>>())
}

pub(super) fn sample_variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    moment(values, 2) * n / (n - 1.0)
}

/// By the day.
pub(super) fn sharpe(returns: &[f64]) -> f64 {
    mean(returns) / sample_variance(returns).sqrt()
}

pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let products: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).collect();
    mean(&products) / (moment(a, 2) * moment(b, 2)).sqrt()
}

/// Moments of returns by their definitions.
pub(super) fn moments(returns: &[f64]) -> Moments {
    Moments {
        n: returns.len(),
        sharpe: sharpe(returns),
        skew: moment(returns, 3) / moment(returns, 2).powf(1.5),
        kurtosis: moment(returns, 4) / moment(returns, 2).powi(2),
    }
}

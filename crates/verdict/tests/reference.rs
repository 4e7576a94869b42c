//! Compares with numbers that other programs computed (`reference/make_tables.py`), to 1e-9.

use tidemill_search::rng::Stream;
use tidemill_verdict::alpha::newey_west_lags;
use tidemill_verdict::blocks::block_lengths;
use tidemill_verdict::{Alpha, Blocks, Moments, bootstrap, mean_correlation, overfit};

/// The rows of a table; an empty cell is NaN.
fn table(text: &str) -> Vec<Vec<f64>> {
    let number = |cell: &str| if cell.is_empty() { f64::NAN } else { cell.parse().unwrap() };
    text.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
}

/// The same series as in the script.
fn returns(seed: f64, trial: u64, n: f64, drift: f64) -> Vec<f64> {
    let stream = Stream::new(seed as u64, trial);
    (0..n as u64)
        .map(|day| {
            let noise = stream.unit(day) - 0.4;
            noise * noise * noise + drift
        })
        .collect()
}

#[track_caller]
fn same(found: f64, wanted: f64, what: &str) {
    let near = (found - wanted).abs() <= 1e-9 * wanted.abs().max(1e-3);
    assert!(near || (found.is_nan() && wanted.is_nan()), "{what}: found {found}, wanted {wanted}");
}

#[test]
fn sharpe_ratios_agree_with_skfolio() {
    let rows = table(include_str!("reference/sharpe.csv"));
    assert_eq!(rows.len(), 5);
    for row in rows {
        let [seed, n, drift, benchmark, n_trials, variance, sharpe, skew, kurtosis, sure, deflated, length] =
            row[..]
        else {
            panic!("a row of {} cells", row.len())
        };
        let moments = Moments::new(&returns(seed, 0, n, drift)).unwrap();
        same(moments.sharpe, sharpe, "sharpe");
        same(moments.skew, skew, "skew");
        same(moments.kurtosis, kurtosis, "kurtosis");
        same(moments.probabilistic(benchmark), sure, "probabilistic");
        same(moments.deflated(n_trials, variance), deflated, "deflated");
        same(moments.min_track_record(benchmark, 0.95).unwrap_or(f64::NAN), length, "length");
    }
}

#[test]
fn overfitting_agrees_with_whole_series() {
    let rows = table(include_str!("reference/overfit.csv"));
    assert_eq!(rows.len(), 5);
    for row in rows {
        let [seed, n_trials, n_days, n_blocks, step, probability, loss, slope, logit, correlation] = row[..]
        else {
            panic!("a row of {} cells", row.len())
        };
        let mut blocks = Blocks::new(&block_lengths(n_days as usize, n_blocks as usize));
        for trial in 0..n_trials as u64 {
            blocks.push_returns(&returns(seed, trial, n_days, step * trial as f64 - 0.01));
        }
        let found = overfit(&blocks).unwrap();
        same(found.probability, probability, "probability");
        same(found.loss_probability, loss, "loss");
        same(found.slope, slope, "slope");
        same(found.mean_logit, logit, "mean logit");
        same(mean_correlation(&blocks).unwrap(), correlation, "correlation");
    }
}

#[test]
fn intervals_agree_with_numpy() {
    let rows = table(include_str!("reference/bootstrap.csv"));
    assert_eq!(rows.len(), 3);
    for row in rows {
        let [seed, n, drift, n_resamples, confidence, mean, low, high, positive] = row[..] else {
            panic!("a row of {} cells", row.len())
        };
        let values = returns(seed, 5, n, drift);
        let interval = bootstrap(&values, n_resamples as usize, confidence, seed as u64).unwrap();
        same(interval.mean, mean, "mean");
        same(interval.low, low, "low");
        same(interval.high, high, "high");
        same(interval.positive, positive, "positive");
    }
}

#[test]
fn alpha_and_its_error_agree_with_statsmodels() {
    let rows = table(include_str!("reference/alpha.csv"));
    assert_eq!(rows.len(), 5);
    for row in rows {
        let [seed, n, drift, market_drift, share, year_days, lags, beta, alpha, t_alpha] = row[..] else {
            panic!("a row of {} cells", row.len())
        };
        let market = returns(seed, 7, n, market_drift);
        let own = returns(seed, 8, n, drift);
        let before = std::iter::once(&0.0).chain(&own);
        let series: Vec<f64> = own
            .iter()
            .zip(before)
            .zip(&market)
            .map(|((own, before), h)| own + 0.5 * before + share * h)
            .collect();
        let fit = Alpha::new(&series, &market, year_days);
        assert_eq!(newey_west_lags(n as usize), lags as usize);
        same(fit.beta.unwrap(), beta, "beta");
        same(fit.alpha.unwrap(), alpha, "alpha");
        same(fit.t_alpha.unwrap(), t_alpha, "t(alpha)");
    }
}

//! Every indicator against the one reference it names: pandas or TA-Lib, by way of tables that
//! `reference/make_tables.py` wrote.

use tidemill_market::indicator::*;

/// What separates two ways to compute the same thing in `f64`: TA-Lib and pandas keep running sums, which are
/// off by some 1e-13 of the level of the series after two hundred bars.
const TOLERANCE: f64 = 1e-11;

/// A table's column names and columns; an empty field is NaN.
fn parse(text: &str) -> Vec<(&str, Vec<f64>)> {
    let mut lines = text.lines();
    let mut columns: Vec<(&str, Vec<f64>)> =
        lines.next().expect("a header").split(',').map(|name| (name, Vec::new())).collect();
    for line in lines {
        for ((_, column), field) in columns.iter_mut().zip(line.split(',')) {
            column.push(if field.is_empty() { f64::NAN } else { field.parse().expect("a number") });
        }
    }
    columns
}

struct Input {
    high: Vec<f64>,
    low: Vec<f64>,
    close: Vec<f64>,
    volume: Vec<f64>,
    cond: Vec<bool>,
}

impl Input {
    fn load(suffix: &str) -> Self {
        let table = parse(include_str!("reference/bars.csv"));
        let column = |name: String| {
            table.iter().find(|(n, _)| *n == name).map(|(_, c)| c.clone()).expect("a column of this name")
        };
        Self {
            high: column(format!("high{suffix}")),
            low: column(format!("low{suffix}")),
            close: column(format!("close{suffix}")),
            volume: column(format!("volume{suffix}")),
            cond: column("cond".into()).iter().map(|&v| v == 1.0).collect(),
        }
    }

    /// The column that a table's header such as `stddev 20` names.
    fn compute(&self, header: &str) -> Vec<f64> {
        let Self { high, low, close, volume, cond } = self;
        let mut words = header.split(' ');
        let name = words.next().expect("a name");
        let args: Vec<usize> = words.map(|w| w.parse().expect("a window")).collect();
        let w = args.first().copied().unwrap_or(0);
        let p = Prefix::new(close, Moments::All);
        // Dirty memory must not shine through.
        let mut out = vec![-12_345.0; close.len()];
        match name {
            "sma" => sma(&p, w, &mut out),
            "stddev" => stddev(&p, w, &mut out),
            "stddev_sample" => stddev_sample(&p, w, &mut out),
            "zscore" => zscore(close, &p, w, &mut out),
            "wma" => wma(&p, w, &mut out),
            "lsma" => lsma(&p, w, &mut out),
            "ema" => ema(close, w, &mut out),
            "ema_sma" => ema_sma(close, w, &mut out),
            "rma" => rma(volume, w, &mut out),
            "dema" => dema(close, w, &mut out),
            "tema" => tema(close, w, &mut out),
            "hma" => hma(close, w, &mut out),
            "kama" => kama(close, w, 2, 30, &mut out),
            "true_range" => true_range(high, low, close, &mut out),
            "atr" => atr(high, low, close, w, &mut out),
            "atr_wilder" => atr_wilder(high, low, close, w, &mut out),
            "rsi" => rsi(close, w, &mut out),
            "adx" => adx(high, low, close, w, &mut out),
            "plus_di" => plus_di(high, low, close, w, &mut out),
            "minus_di" => minus_di(high, low, close, w, &mut out),
            "cci" => cci(high, low, close, w, &mut out),
            "obv" => obv(close, volume, &mut out),
            "highest" => highest(high, w, &mut out),
            "lowest" => lowest(low, w, &mut out),
            "swing_high" => swing_high(high, w, args[1], &mut out),
            "swing_low" => swing_low(low, w, args[1], &mut out),
            "bars_since" => bars_since(cond, &mut out),
            "value_when" => value_when(cond, close, &mut out),
            "cum" => cum(volume, &mut out),
            _ => panic!("the table has a column `{name}` that this test does not know"),
        }
        out
    }
}

/// Differences of a column from its reference, as text.
fn differences(header: &str, got: &[f64], expected: &[f64]) -> Vec<String> {
    assert_eq!(got.len(), expected.len());
    let is_exact = matches!(
        header.split(' ').next(),
        Some(
            "highest"
                | "lowest"
                | "swing_high"
                | "swing_low"
                | "bars_since"
                | "value_when"
                | "cum"
                | "obv"
                | "true_range"
        )
    );
    let mut bad = Vec::new();
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        // Indicators around zero (a z-score, a directional indicator) are compared on the scale of 1.
        let allowed = if is_exact { 0.0 } else { TOLERANCE * expected.abs().max(1.0) };
        let is_same = (got.is_nan() && expected.is_nan()) || (got - expected).abs() <= allowed;
        if !is_same {
            bad.push(format!("{header} at bar {i}: {got} instead of {expected}"));
        }
    }
    bad
}

fn compare(suffix: &str, table: &str) {
    let input = Input::load(suffix);
    let table = parse(table);
    assert!(table.len() > 40, "the table is complete");
    let bad: Vec<String> = table
        .iter()
        .flat_map(|(header, expected)| {
            assert!(
                expected.iter().filter(|v| v.is_finite()).count() > 40,
                "{header} has something to compare"
            );
            differences(header, &input.compute(header), expected)
        })
        .collect();
    assert!(bad.is_empty(), "{} differences:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn indicators_reproduce_their_references() {
    compare("", include_str!("reference/clean.csv"));
}

#[test]
fn indicators_reproduce_their_references_around_gaps_and_infinities() {
    compare("_gaps", include_str!("reference/gaps.csv"));
}

#[test]
fn comparison_notices_a_wrong_digit_and_a_wrong_gap() {
    assert_eq!(differences("sma 5", &[100.0 + 1e-8], &[100.0]).len(), 1);
    assert_eq!(differences("sma 5", &[100.0 + 1e-10], &[100.0]).len(), 0);
    assert_eq!(differences("highest 5", &[100.0 + 1e-10], &[100.0]).len(), 1);
    assert_eq!(differences("sma 5", &[f64::NAN, 1.0], &[1.0, f64::NAN]).len(), 2);
}

#[test]
fn every_table_column_has_finite_values_only_after_its_warm_up() {
    // First valid bars as documented, on the clean input.
    let input = Input::load("");
    for (header, first) in [
        ("sma 20", 19),
        ("stddev 20", 19),
        ("wma 14", 13),
        ("lsma 14", 13),
        ("hma 16", 18),
        ("ema 14", 0),
        ("ema_sma 14", 13),
        ("rma 14", 13),
        ("dema 9", 0),
        ("tema 9", 0),
        ("kama 10", 10),
        ("true_range", 0),
        ("atr 14", 13),
        ("atr_wilder 14", 14),
        ("rsi 14", 14),
        ("plus_di 14", 14),
        ("adx 14", 27),
        ("cci 14", 13),
        ("obv", 0),
        ("highest 20", 19),
        ("swing_high 24 3", 27),
        ("cum", 0),
    ] {
        let column = input.compute(header);
        assert_eq!(column.iter().position(|v| !v.is_nan()), Some(first), "{header}");
    }
}

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
    open: Vec<f64>,
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
            open: column(format!("open{suffix}")),
            cond: column("cond".into()).iter().map(|&v| v == 1.0).collect(),
        }
    }

    /// The column that a table's header such as `stddev 20` names.
    fn compute(&self, header: &str) -> Vec<f64> {
        let Self { high, low, close, volume, open, cond } = self;
        let mut words = header.split(' ');
        let name = words.next().expect("a name");
        let mut arguments: Vec<f64> = words.map(|w| w.parse().expect("a window")).collect();
        // Dirty memory must not shine through.
        let mut out = vec![-12_345.0; close.len()];
        if name == "atr" {
            atr(high, low, close, window(arguments[0]), &mut out);
            return out;
        }
        let function = Function::named(name);
        let x = match name {
            "rma" | "cum" => volume,
            "highest" | "swing_high" => high,
            "lowest" | "swing_low" => low,
            _ => close,
        };
        if name == "kama" {
            arguments.extend([2.0, 30.0]);
        }
        // Functions of several series, which the language composes.
        let flag: Vec<f64> = cond.iter().map(|is_true| f64::from(u8::from(*is_true))).collect();
        let mean = |columns: &[&Vec<f64>]| -> Vec<f64> {
            let sum = |i: usize| columns[1..].iter().fold(columns[0][i], |sum, column| sum + column[i]);
            (0..close.len()).map(|i| sum(i) / columns.len() as f64).collect()
        };
        let (middle, all) = (mean(&[high, low]), mean(&[open, high, low, close]));
        let mut range = vec![0.0; close.len()];
        true_range(high, low, close, &mut range);
        let mut named = match name {
            "correlation" => vec![close, volume],
            "log_ratio" => vec![close, open],
            "sum_since" => vec![&flag, volume],
            "heikin_open" => vec![open, close, &all],
            "supertrend_line" | "supertrend_up" => vec![&middle, &range],
            _ => vec![x],
        }
        .into_iter();
        let sums = function.sums_read().map(|moments| Prefix::new(x, moments));
        let series = function.reads.iter().map(|read| match read {
            Read::Series => Series::Column(named.next().expect("a series")),
            Read::Condition => Series::Condition(cond),
            Read::Sums(_) => Series::Sums(sums.as_ref().expect("the sums it reads")),
            Read::High => Series::Column(high),
            Read::Low => Series::Column(low),
            Read::Close => Series::Column(close),
            Read::Volume => Series::Column(volume),
        });
        let HostFunction::Column(run) = function.run else { panic!("`{name}` is no series") };
        run(&Call { series: &series.collect::<Vec<_>>(), arguments: &arguments }, &mut out);
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
                | "quantile"
                | "sum_since"
                | "heikin_open"
                | "supertrend_line"
                | "supertrend_up"
                | "aroon_up"
                | "aroon_down"
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
    for function in FUNCTIONS.iter().filter(|function| !function.is_sums()) {
        // The tests of `atc` compare it with the indicator it follows.
        let is_there = table.iter().any(|(header, _)| header.split(' ').next() == Some(function.name));
        assert!(is_there || function.name == "atc", "the table has no column `{}`", function.name);
    }
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
        ("obv", 0),
        ("quantile 20 0.5", 19),
        ("correlation 20", 19),
        ("slope 14", 13),
        ("aroon_up 14", 14),
        ("psar 0.02 0.02 0.2", 1),
        ("heikin_open", 0),
        ("supertrend_line 2", 0),
        ("highest 20", 19),
        ("swing_high 24 3", 27),
        ("cum", 0),
    ] {
        let column = input.compute(header);
        assert_eq!(column.iter().position(|v| !v.is_nan()), Some(first), "{header}");
    }
}

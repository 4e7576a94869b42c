//! Every metric against a value that was computed without this program, from trades chosen by hand and walked by the engine.
//!
//! Two examples. One is small enough to be worked out on paper. The other has twenty trades over three symbols and was worked out by
//! `metrics/make_table.py` with pandas, empyrical and quantstats; a metric without a row in its table fails here.

use std::collections::HashMap;

use tidemill_backtest::segment::{Layout, Role};
use tidemill_backtest::{Engine, EngineOptions, METRICS, Metrics, Overrides, Strategy};
use tidemill_market::{Bars, Universe};
use tidemill_search::Points;

const DAY_MS: i64 = 86_400_000;

/// Rows of a table after its header.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

fn number(cell: &str) -> f64 {
    if cell.is_empty() {
        f64::NAN
    } else {
        cell.parse().unwrap_or_else(|_| panic!("{cell:?} is not a number"))
    }
}

/// One trade as it was planned.
#[derive(Clone, Debug)]
struct Planned {
    entry_idx: usize,
    exit_idx: usize,
    side: f64,
    entry: f64,
    exit: f64,
    stop: f64,
    target: f64,
    /// Whether it is left at an open because it was told to, and not by a level or the end of the data.
    is_told_to_exit: bool,
}

/// The trades of a symbol, or the entries that must not be taken.
fn planned(symbol: &str, is_taken: bool) -> Vec<Planned> {
    rows(include_str!("metrics/trades.csv"))
        .into_iter()
        .filter(|row| row[0] == symbol && (row[8] != "skipped") == is_taken)
        .map(|row| Planned {
            entry_idx: row[1].parse().unwrap(),
            exit_idx: row[2].parse().unwrap(),
            side: number(row[3]),
            entry: number(row[4]),
            exit: number(row[5]),
            stop: number(row[6]),
            target: number(row[7]),
            is_told_to_exit: row[8] == "signal",
        })
        .collect()
}

/// The bars of a symbol with further columns that say when to enter and leave, and the levels of each trade.
fn bars(symbol: &str, trades: &[Planned]) -> Bars {
    let rows = rows(include_str!("metrics/bars.csv"));
    let rows: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0] == symbol).collect();
    let column = |at: usize| rows.iter().map(|row| number(row[at])).collect::<Vec<f64>>();
    let mut bars = Bars {
        symbol: symbol.into(),
        timeframe_ms: DAY_MS / 4,
        ts_ms: rows.iter().map(|row| row[1].parse().unwrap()).collect(),
        open: column(2),
        high: column(3),
        low: column(4),
        close: column(5),
        volume: vec![1.0; rows.len()],
        ..Bars::default()
    };
    tell(&mut bars, trades);
    bars
}

/// Adds the columns that [`STRATEGY`] reads.
fn tell(bars: &mut Bars, trades: &[Planned]) {
    let empty = |value: f64| vec![value; bars.open.len()];
    let (mut side, mut leave) = (empty(0.0), empty(0.0));
    let (mut stop, mut target) = (empty(f64::NAN), empty(f64::NAN));
    for trade in trades {
        // Entries and told exits fill at the open after their signal.
        side[trade.entry_idx - 1] = trade.side;
        stop[trade.entry_idx - 1] = trade.stop;
        target[trade.entry_idx - 1] = trade.target;
        if trade.is_told_to_exit {
            leave[trade.exit_idx - 1] = 1.0;
        }
    }
    let columns =
        [("given_side", side), ("given_leave", leave), ("given_stop", stop), ("given_target", target)];
    bars.extra = columns.map(|(name, values)| (name.to_string(), values)).into();
}

const STRATEGY: &str = r#"
[long]
enter = "given_side == 1"
stop = "given_stop"
target = "given_target"
exit = "given_leave == 1"

[short]
enter = "given_side == -1"
stop = "given_stop"
target = "given_target"
exit = "given_leave == 1"

[execution]
fee_bps = 4.0
slippage_bps = 2.0
"#;

fn strategy(settings: &[(&str, &str)]) -> Strategy {
    let set = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    Strategy::parse("planned.toml", STRATEGY, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// Walks symbols with their planned trades, checks that exactly these come of it, and gives the metrics of the whole and the days of a year.
fn walked(
    settings: &[(&str, &str)],
    symbols: Vec<(Bars, Vec<Planned>)>,
) -> (HashMap<&'static str, f64>, f64) {
    let strategy = strategy(settings);
    let (symbols, trades): (Vec<Bars>, Vec<Vec<Planned>>) = symbols.into_iter().unzip();
    let universe = Universe { symbols };
    let segments = Layout::default().segments(&universe).unwrap();
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
    let row = engine.space().default_point();
    for (detail, planned) in engine.detail(&row).iter().zip(&trades) {
        assert_eq!(detail.trades.len(), planned.len());
        for (found, wanted) in detail.trades.iter().zip(planned) {
            let places = (found.entry_idx, found.exit_idx, f64::from(found.side));
            assert_eq!(places, (wanted.entry_idx, wanted.exit_idx, wanted.side));
            assert_eq!((found.entry, found.exit), (wanted.entry, wanted.exit), "{wanted:?}");
        }
    }
    let mut points = Points::new(row.len());
    points.push(&row);
    let outcome = engine.evaluate(&points).remove(0);
    let year_days = engine.year_days(Role::Train);
    let metrics = Metrics::new(&outcome.train, year_days);
    (metrics.iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect(), year_days)
}

#[track_caller]
fn same(found: f64, wanted: f64, what: &str) {
    let near = (found - wanted).abs() <= 1e-11 * wanted.abs().max(1e-9);
    assert!(near || (found.is_nan() && wanted.is_nan()), "{what}: found {found}, wanted {wanted}");
}

/// A case of the table: execution settings, symbols with the numbers of their trades (all if none are given), days of a year.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, Option<&'static [usize]>)],
    f64,
);

const CASES: [Case; 11] = [
    ("coin", &[], &[("coin", None)], 365.0),
    ("stock", &[], &[("stock", None)], 252.0),
    ("fraction", &[("sizing", "{fraction=0.3}")], &[("coin", None)], 365.0),
    ("risk", &[("sizing", "{risk=0.01}")], &[("coin", None)], 365.0),
    ("unit", &[("sizing", "unit")], &[("coin", None)], 365.0),
    ("winners", &[], &[("coin", Some(&[0, 2, 5]))], 365.0),
    ("losers", &[], &[("coin", Some(&[1, 3, 7]))], 365.0),
    ("one", &[], &[("stock", Some(&[2]))], 252.0),
    ("none", &[], &[("stock", Some(&[]))], 252.0),
    ("pool", &[], &[("coin", None), ("token", None)], 365.0),
    ("mixed", &[], &[("coin", None), ("stock", None)], 365.0),
];

#[test]
fn every_metric_has_the_value_that_other_libraries_find() {
    let text = include_str!("metrics/expected.csv");
    let names: Vec<&str> = text.lines().next().unwrap().split(',').skip(1).collect();
    assert_eq!(names, CASES.map(|(name, ..)| name), "the cases of the table");
    let table: HashMap<&str, Vec<f64>> = rows(text)
        .into_iter()
        .map(|row| (row[0], row[1..].iter().map(|cell| number(cell)).collect()))
        .collect();
    for (at, (case, settings, symbols, year_days)) in CASES.into_iter().enumerate() {
        let symbols = symbols.iter().map(|(symbol, chosen)| {
            let (mut trades, mut skipped) = (planned(symbol, true), planned(symbol, false));
            if let Some(chosen) = chosen {
                trades = chosen.iter().map(|at| trades[*at].clone()).collect();
                skipped.clear();
            }
            (bars(symbol, &[&trades[..], &skipped].concat()), trades)
        });
        let (found, days) = walked(settings, symbols.collect());
        assert_eq!(days, year_days, "{case}: days of a year");
        for (_, name, _) in METRICS {
            let wanted = table.get(name).unwrap_or_else(|| panic!("{name} has no row in the table"));
            same(found[name], wanted[at], &format!("{case}: {name}"));
        }
    }
}

/// Daily bars that open where the last one closed; the first day is a multiple of days after Monday, 1 January 2024.
fn daily_bars(after_monday: i64, closes: &[f64]) -> Bars {
    let open: Vec<f64> = closes[..1].iter().chain(&closes[..closes.len() - 1]).copied().collect();
    let of_both = |pick: fn(f64, f64) -> f64| open.iter().zip(closes).map(|(a, b)| pick(*a, *b)).collect();
    Bars {
        symbol: "PAPER".into(),
        timeframe_ms: DAY_MS,
        // 2024-01-01T00:00Z.
        ts_ms: (0..closes.len() as i64)
            .map(|day| 1_704_067_200_000 + (after_monday + day) * DAY_MS)
            .collect(),
        high: of_both(f64::max),
        low: of_both(f64::min),
        close: closes.to_vec(),
        volume: vec![1.0; closes.len()],
        open,
        ..Bars::default()
    }
}

#[test]
fn ratios_of_five_days_are_those_worked_out_on_paper() {
    // Bought at the open of day 1 for 100, sold at the open of day 4 for 108.9, without costs. Equity at the end of the days is
    // 1, 1.1, 0.99, 1.089, 1.089, so that the daily returns are 0, 0.1, −0.1, 0.1, 0.
    let closes = [100.0, 110.0, 99.0, 108.9, 108.9];
    let trade = Planned {
        entry_idx: 1,
        exit_idx: 4,
        side: 1.0,
        entry: 100.0,
        exit: 108.9,
        stop: 50.0,
        target: f64::NAN,
        is_told_to_exit: true,
    };
    // Their mean is 0.1 / 5 = 0.02. Their distances from it are −0.02, 0.08, −0.12, 0.08, −0.02; the squares of these sum up to
    // 0.0004 + 0.0064 + 0.0144 + 0.0064 + 0.0004 = 0.028, so that the sample variance is 0.028 / 4 = 0.007. The mean square of the
    // negative returns is 0.01 / 5 = 0.002. From Monday to Friday a year has 252 days, from Wednesday to Sunday 365. By `bc -l`:
    // 0.02 / √0.007 × √252 and × √365, 0.02 / √0.002 × √252 and × √365, 1.089 ^ (252 / 5) − 1 and 1.089 ^ (365 / 5) − 1.
    let years = [
        (0, 252.0, 3.794_733_192_202_055, 7.099_295_739_719_539, 72.486_089_890_781_48),
        (2, 365.0, 4.566_962_103_755_937, 8.544_003_745_317_53, 503.702_228_287_665_7),
    ];
    for (after_monday, year_days, sharpe, sortino, annual) in years {
        let mut bars = daily_bars(after_monday, &closes);
        tell(&mut bars, std::slice::from_ref(&trade));
        let costless = [("fee_bps", "0"), ("slippage_bps", "0")];
        let (found, days) = walked(&costless, vec![(bars, vec![trade.clone()])]);
        assert_eq!(days, year_days);
        let wanted = [
            ("sharpe", sharpe),
            ("sortino", sortino),
            ("total_return", 0.089),
            ("annual_return", annual),
            ("max_drawdown", -0.1),
            ("calmar", annual / 0.1),
            ("expectancy", 0.089),
            ("net_pnl", 8.9),
            // One R is 100 − 50.
            ("avg_r", 8.9 / 50.0),
            ("exposure", 3.0 / 5.0),
            // The days that end at 0.99 and at 1.089 (twice) lie below the 1.1 of day 1.
            ("longest_drawdown", 3.0),
        ];
        for (name, wanted) in wanted {
            same(found[name], wanted, &format!("{year_days} days: {name}"));
        }
    }
}

//! S1 of the peer benchmarks: the closed trades are vectorbt's, set by set (made by `s1/make_golden.py`).

use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_market::{Bars, Universe};
use tidemill_search::Points;

const STRATEGY: &str = include_str!("../../../benches/peers/s1.toml");
const TRADES: &str = include_str!("s1/trades.txt");
const SERIES: [(&str, &str); 2] =
    [("walk", include_str!("s1/walk.csv")), ("gaps", include_str!("s1/gaps.csv"))];

/// A closed trade of vectorbt; its entry price is the close of the entry bar.
struct Golden {
    entry_idx: usize,
    exit_idx: usize,
    exit: f64,
    reason: &'static str,
}

/// A parameter set and its trades. The values are in the order of the strategy file: fast, slow, sl, tp.
struct Set {
    series: &'static str,
    values: [f64; 4],
    trades: Vec<Golden>,
}

fn sets() -> Vec<Set> {
    let mut out: Vec<Set> = Vec::new();
    for line in TRADES.lines() {
        let fields: Vec<&'static str> = line.split(' ').collect();
        match fields[..] {
            ["set", series, fast, slow, sl, tp] => {
                let values = [fast, slow, sl, tp].map(|value| value.parse().unwrap());
                out.push(Set { series, values, trades: Vec::new() });
            }
            [entry_idx, exit_idx, exit, reason] => out.last_mut().unwrap().trades.push(Golden {
                entry_idx: entry_idx.parse().unwrap(),
                exit_idx: exit_idx.parse().unwrap(),
                exit: exit.parse().unwrap(),
                reason,
            }),
            _ => panic!("not a line of trades: {line}"),
        }
    }
    out
}

fn universe(csv: &str) -> Universe {
    let rows: Vec<[f64; 4]> = csv
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split(',').map(|field| field.parse().unwrap());
            std::array::from_fn(|_| fields.next().unwrap())
        })
        .collect();
    let column = |at: usize| rows.iter().map(|row| row[at]).collect();
    let bars = Bars {
        symbol: "S1".into(),
        timeframe_ms: 900_000,
        ts_ms: (0..rows.len() as i64).map(|bar| 1_577_836_800_000 + bar * 900_000).collect(),
        open: column(0),
        high: column(1),
        low: column(2),
        close: column(3),
        volume: vec![1.0; rows.len()],
        ..Bars::default()
    };
    Universe { symbols: vec![bars] }
}

fn strategy() -> Strategy {
    Strategy::parse("s1.toml", STRATEGY, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The point of a search that has these values.
fn encoded(strategy: &Strategy, values: &[f64; 4]) -> Vec<f64> {
    let names: Vec<&str> = strategy.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(names, ["fast", "slow", "sl", "tp"]);
    let encode = |(param, value): (&tidemill_backtest::strategy::ParamSpec, &f64)| {
        let codes = param.domain.grid_values(1_000);
        codes.into_iter().find(|code| param.decode(*code) == *value).unwrap_or_else(|| {
            panic!("{value} is not in the grid of {}", param.name);
        })
    };
    strategy.params.iter().zip(values).map(encode).collect()
}

/// Runs `check` with an engine for each series, its sets and their points.
fn for_each_series(check: impl Fn(&mut Engine, &Universe, &[&Set], &[Vec<f64>])) {
    let (strategy, sets) = (strategy(), sets());
    for (series, csv) in SERIES {
        let universe = universe(csv);
        let segments = Layout::default().segments(&universe).unwrap();
        let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let own: Vec<&Set> = sets.iter().filter(|set| set.series == series).collect();
        assert!(own.len() >= 60, "{series} has {} sets", own.len());
        let points: Vec<Vec<f64>> = own.iter().map(|set| encoded(&strategy, &set.values)).collect();
        check(&mut engine, &universe, &own, &points);
    }
}

#[test]
fn closed_trades_equal_those_of_vectorbt() {
    for_each_series(|engine, universe, sets, points| {
        for (set, point) in sets.iter().zip(points) {
            let detail = engine.detail(point).remove(0);
            let what = format!("{} {:?}", set.series, set.values);
            assert_eq!(detail.trades.len(), set.trades.len(), "{what}: number of trades");
            for (at, (ours, theirs)) in detail.trades.iter().zip(&set.trades).enumerate() {
                let what = format!("{what}, trade {at}");
                assert_eq!(
                    (ours.side, ours.signal_idx, ours.entry_idx, ours.exit_idx, detail.labels[at].as_str()),
                    (1, theirs.entry_idx, theirs.entry_idx, theirs.exit_idx, theirs.reason),
                    "{what}: side, bars and reason"
                );
                assert_eq!(ours.entry, universe.symbols[0].close[theirs.entry_idx], "{what}: entry price");
                let difference = (ours.exit - theirs.exit).abs();
                assert!(
                    difference <= 1e-12 * theirs.exit,
                    "{what}: left at {}, vectorbt at {}",
                    ours.exit,
                    theirs.exit
                );
            }
        }
    });
}

#[test]
fn sweep_counts_the_same_trades() {
    for_each_series(|engine, _, sets, points| {
        let mut batch = Points::new(4);
        points.iter().for_each(|point| batch.push(point));
        for (set, outcome) in sets.iter().zip(engine.evaluate(&batch)) {
            let held: usize = set.trades.iter().map(|trade| trade.exit_idx - trade.entry_idx).sum();
            let ours = (outcome.train.trades as usize, outcome.train.bars_held);
            assert_eq!(ours, (set.trades.len(), held as u64), "{} {:?}", set.series, set.values);
        }
    });
}

#[test]
fn grid_has_a_thousand_sets() {
    let strategy = strategy();
    let sizes: Vec<usize> = strategy.params.iter().map(|p| p.domain.grid_values(1_000).len()).collect();
    assert_eq!(sizes, [10, 10, 5, 2]);
}

//! Longer bars, other symbols, all symbols and recursions against tables of pandas and PyneCore: `elsewhere/make_table.py` makes them and says
//! how.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tidemill_backtest::segment::Layout;
use tidemill_backtest::tally::Tally;
use tidemill_backtest::{
    DeviceEngine, DeviceOptions, Engine, EngineOptions, Outcome, Overrides, Strategy, let_series,
};
use tidemill_gpu::{Device, HostOptions, Source};
use tidemill_market::synth::walk;
use tidemill_market::{LoadOptions, Universe, load};
use tidemill_search::{SamplerKind, SamplerSettings};

const STRATEGY: &str = r#"
[let]
tf4h_close = "tf('4h', close)"
tf4h_open = "tf('4h', open)"
tf4h_range = "tf('4h', high - low)"
tf4h_volume = "tf('4h', volume)"
tf4h_before = "tf('4h', close[1])"
tf4h_ema = "tf('4h', ema(close, 5))"
tf1d_mean = "tf('1d', sma(close, 3))"
below_week = "close - tf('1w', high)"
read_before = "tf4h_close[2]"
of_close = "of('B', close)"
of_young = "of('B', close, '2h')"
of_tf = "of('B', tf('1d', close))"
change = "close / close[3]"
rank = "rank(change)"
mean_over = "mean_over(change)"
sum_over = "sum_over(change)"
count_over = "count_over(change)"
max_over = "max_over(change)"
min_over = "min_over(change)"
share_over = "share_over(close > open)"
recur = "recur(close, self + 0.125 * (close - self))"
recur_top = "recur(high, max(self, high))"
pine_close = "tf('4h', close)"
pine_open = "tf('4h', open)"
pine_range = "tf('4h', high - low)"
pine_volume = "tf('4h', volume)"
pine_before = "tf('4h', close[1])"
pine_highest = "tf('4h', highest(high, 3))"
pine_mean = "tf('4h', sma(close, 5))"
pine_day = "tf('1d', close)"
pine_of = "of('B', close, '999d')"
pine_of_highest = "of('B', highest(high, 4), '999d')"
[long]
enter = "close > open"
max_hold = 3
"#;

#[test]
fn series_from_elsewhere_are_those_of_pandas_and_pine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/elsewhere");
    let universe = load(&[folder.join("bars.csv")], &LoadOptions::default()).unwrap().universe;
    let strategy = Strategy::parse("elsewhere.toml", STRATEGY, &Overrides::default()).unwrap();
    let found = let_series(&strategy, &universe, &[], &[0, 1, 2], EngineOptions::default()).unwrap();
    let text = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let tolerances: Vec<f64> = lines.next().unwrap()[1..].iter().map(|cell| cell.parse().unwrap()).collect();
    let mut rows: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    for line in lines {
        rows.entry(line[0]).or_default().push(line[1..].to_vec());
    }
    let mut n_compared = BTreeMap::new();
    for (bars, found) in universe.symbols.iter().zip(&found) {
        let rows = &rows[bars.symbol.as_str()];
        assert_eq!(rows.len(), bars.len());
        for (column, name) in names[1..].iter().enumerate() {
            let Some(series) = found.iter().find(|series| series.name == *name) else {
                // A series that never changes is no line of a chart.
                let values: Vec<&str> =
                    rows.iter().map(|row| row[column]).filter(|cell| !cell.is_empty()).collect();
                assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "{name} of {}", bars.symbol);
                continue;
            };
            for (bar, row) in rows.iter().enumerate() {
                let (value, wanted) = (series.values[bar], row[column].parse().unwrap_or(f64::NAN));
                let is_near = (value - wanted).abs() <= tolerances[column] * f64::abs(wanted);
                assert!(
                    value.is_nan() && wanted.is_nan() || is_near,
                    "{name} of {} at bar {bar}: {value}, the table has {wanted}",
                    bars.symbol
                );
                *n_compared.entry(*name).or_insert(0) += usize::from(!wanted.is_nan());
            }
        }
    }
    for name in &names[1..] {
        assert!(n_compared.get(name).is_some_and(|n| *n > 20), "{name}: {:?}", n_compared.get(name));
    }
}

/// Each is about other bars in another way; together they have all slots that a plan can have.
const ON_DEVICES: [&str; 5] = [
    "[params]\nd = { choice = ['2h', '4h', '1d'] }\nn = { int = [2, 20] }\n[long]\nenter = \"tf(d, close > ema(close, n) and bars_since(high > high[1]) < 2)\"\nexit = \"tf('4h', zscore(close, n)) > 1\"\n",
    "[params]\nn = { int = [2, 20] }\nk = { float = [0.5, 2.0] }\n[long]\nenter = \"of('WALK1', close > sma(close, n)) and close > of('WALK2', tf('4h', lowest(low, n)), '3h')\"\nstop = \"entry - k * tf('4h', atr(5))\"\nmax_hold = 9\n",
    "[params]\nn = { int = [2, 20] }\nt = { float = [0.2, 0.8] }\n[long]\nenter = 'rank(roc(close, n)) > t and share_over(close > sma(close, n)) >= 0.5'\nexit = 'rank(rank(close) + sma(rank(volume), n)) < t'\n[short]\nenter = 'close / mean_over(close) < min_over(close) / max_over(close)[1]'\nmax_hold = 'count_over(close) * 3'\n",
    "[params]\nn = { int = [2, 20] }\nk = { float = [0.1, 2.0] }\n[let]\nband = 'low - k * atr(n)'\nline = 'recur(band, if(close[1] >= self, max(band, self), band))'\n[long]\nenter = 'crosses_above(close, line + k)'\nstop = 'line'\nmax_hold = 20\n[short]\nenter = \"tf('4h', recur(0, if(close > open, self + 1, 0))) >= 2\"\nmax_hold = 3\n",
    "[params]\nn = { int = [2, 20] }\n[let]\nslow = \"tf('1d', ema(close, n))\"\n[long]\nenter = \"sum_over(close / slow - 1) > 0 and close > recur(slow, self + 0.5 * (of('WALK0', close) - self))\"\nmax_hold = \"bars('4h')\"\n",
];

/// The bits of all sums of a trial.
fn bits(outcome: &Outcome) -> Vec<[u64; size_of::<Tally>() / 8]> {
    let pools = [Some(outcome.train), outcome.test.as_deref().copied()];
    outcome.segments().iter().copied().chain(pools.into_iter().flatten()).map(|tally| tally.bits()).collect()
}

/// Symbols that begin and end at other times, one of them with holes.
fn uneven() -> Universe {
    let mut universe = walk(5, 3, 700);
    let kept = |symbol: usize, bar: usize| match symbol {
        0 => true,
        1 => bar > 90 && bar % 7 != 3,
        _ => bar < 600,
    };
    for (symbol, bars) in universe.symbols.iter_mut().enumerate() {
        let mut keep: Vec<bool> = (0..bars.len()).map(|bar| kept(symbol, bar)).collect();
        for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close, &mut bars.volume] {
            let mut keep = keep.iter();
            column.retain(|_| *keep.next().unwrap());
        }
        let mut times = keep.drain(..);
        bars.ts_ms.retain(|_| times.next().unwrap());
    }
    universe
}

#[test]
fn kernels_have_the_bits_of_the_cpu() {
    let device = Device::host(HostOptions::default());
    if let Err(error) = device.load(&Source::splice("nothing.cu", &[])) {
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
        return;
    }
    let universe = uneven();
    for source in ON_DEVICES {
        let strategy = Strategy::parse("a.toml", source, &Overrides::default()).unwrap();
        let layout = Layout { split: Some(0.8), ..Layout::default() };
        let segments = layout.segments(&universe).unwrap();
        let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        let points = SamplerKind::Random.build(&engine.space(), &SamplerSettings::new(3)).unwrap().ask(40);
        let expected = engine.evaluate(&points);
        assert!(expected.iter().filter(|outcome| outcome.train.trades > 5).count() > 20, "{source}");
        for most_trials in [40, 11] {
            let options = DeviceOptions { most_trials, usual_trials: 40, ..DeviceOptions::default() };
            let mut on_device = DeviceEngine::new(&device, &engine, &strategy, options).unwrap();
            let at_once = on_device.evaluate(&points).unwrap();
            // The results of a second submission wait until all of the first one were taken.
            (0..2).for_each(|_| on_device.submit(Arc::new(points.clone())).unwrap());
            let some = |_| on_device.collect_some().unwrap();
            let pieces: Vec<_> = (0..40usize.div_ceil(most_trials)).map(some).collect();
            assert!(pieces.iter().all(|piece| (1..=most_trials).contains(&piece.len())), "{source}");
            let after = on_device.collect().unwrap();
            for found in [at_once, pieces.into_iter().flatten().collect(), after] {
                assert_eq!(found.len(), expected.len());
                for (trial, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    assert_eq!(bits(found), bits(expected), "trial {trial}\n{source}");
                }
            }
            assert!(on_device.collect_some().unwrap().is_empty());
        }
    }
}

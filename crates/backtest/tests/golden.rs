//! Goldens of the seller-exhaustion system: numbers computed by running the original (see `golden/seller_exhaustion.json`, field `source`).

use serde_json::Value;
use tidemill_backtest::exec::engine::{Detail, Engine, EngineOptions};
use tidemill_backtest::objective::Scoring;
use tidemill_backtest::segment::{Layout, Role, Segment};
use tidemill_backtest::{Metric, Metrics, Overrides, Strategy};
use tidemill_market::{Bars, Universe, synth};

const GOLDEN: &str = include_str!("golden/seller_exhaustion.json");
const STRATEGY: &str = include_str!("../../../strategies/seller-exhaustion.toml");

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

fn open(source: &str, profile: Option<&str>, settings: &[(&str, String)]) -> Strategy {
    let set = settings.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let overrides = Overrides { profile: profile.map(Into::into), set, ..Overrides::default() };
    Strategy::parse("test.toml", source, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

struct GoldenRun {
    detail: Detail,
    metrics: Metrics,
    objective: Option<f64>,
    signals: Vec<usize>,
}

fn run(strategy: &Strategy, bars: Bars) -> GoldenRun {
    let universe = Universe { symbols: vec![bars] };
    let segments: Vec<Segment> = Layout::default().segments(&universe).unwrap();
    let mut engine = Engine::new(strategy, &universe, segments, EngineOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let row = engine.space().default_point();
    let detail = engine.detail(&row).remove(0);
    let metrics = Metrics::new(&detail.tally, engine.year_days(Role::Train));
    let objective = Scoring::new(strategy).value(strategy.objective(), &metrics, &engine.decode(&row));
    let signals = engine.entry_signals(&row, 0, 0);
    GoldenRun { detail, metrics, objective, signals }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Indexes and reasons are equal, prices, P&L and R bit for bit.
fn check_trades(run: &GoldenRun, expected: &[Value], index: impl Fn(usize) -> usize, what: &str) {
    assert_eq!(run.detail.trades.len(), expected.len(), "{what}: number of trades");
    for (at, (trade, expected)) in run.detail.trades.iter().zip(expected).enumerate() {
        let integer = |key: &str| expected[key].as_u64().map(|value| value as usize);
        assert_eq!(Some(index(trade.signal_idx)), integer("signal_idx"), "{what}: signal of trade {at}");
        assert_eq!(Some(index(trade.exit_idx)), integer("exit_idx"), "{what}: exit of trade {at}");
        assert_eq!(
            run.detail.labels[at],
            expected["reason"].as_str().unwrap(),
            "{what}: reason of trade {at}"
        );
        for (ours, key) in [(trade.entry, "entry"), (trade.exit, "exit"), (trade.pnl, "pnl"), (trade.r, "R")]
        {
            assert_eq!(ours.to_bits(), number(expected, key).to_bits(), "{what}: {key} of trade {at}");
        }
    }
}

/// The original counts "not defined" as zero.
fn check_metrics(run: &GoldenRun, expected: &Value, what: &str) {
    for (metric, key) in [
        (Metric::Trades, "n"),
        (Metric::WinRate, "win_rate"),
        (Metric::AvgR, "avg_R"),
        (Metric::NetPnl, "total_pnl"),
        (Metric::MaxDrawdownPnlRef, "max_dd"),
        (Metric::SharpeR, "sharpe"),
    ] {
        let ours = run.metrics.get(metric).unwrap_or(0.0);
        let theirs = number(expected, key);
        let tolerance = 1e-12 * theirs.abs().max(1.0);
        assert!((ours - theirs).abs() <= tolerance, "{what}: {key} is {ours}, expected {theirs}");
    }
}

fn settings(set: &Value) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for group in ["seller_params", "backtest_params"] {
        for (key, value) in set[group].as_object().unwrap() {
            let name: &'static str = Box::leak(key.clone().into_boxed_str());
            out.push((name, value.to_string()));
        }
    }
    out
}

#[test]
fn sets_a_and_b_are_reproduced_by_both_profiles() {
    for set in golden()["sets"].as_array().unwrap() {
        let name = set["name"].as_str().unwrap();
        let head = run(&open(STRATEGY, Some("reference"), &settings(set)), synth::lcg(5_000));
        let expected: Vec<usize> =
            set["signal_idx"].as_array().unwrap().iter().map(|idx| idx.as_u64().unwrap() as usize).collect();
        assert_eq!(head.signals, expected, "signals of set {name}");
        check_trades(&head, set["trades"].as_array().unwrap(), |idx| idx, &format!("set {name}"));
        check_metrics(&head, &set["metrics"], &format!("set {name}"));
        for (metric, key) in [
            (Metric::ProfitFactorPnl, "profit_factor"),
            (Metric::AvgWinPnl, "avg_win"),
            (Metric::AvgLossPnl, "avg_loss"),
        ] {
            let (ours, theirs) = (head.metrics.get(metric).unwrap(), number(&set["extended_metrics"], key));
            assert!((ours - theirs).abs() <= 1e-12, "set {name}: {key} is {ours}, expected {theirs}");
        }
        let legacy = run(&open(STRATEGY, Some("legacy"), &settings(set)), synth::lcg(5_000));
        check_trades(
            &legacy,
            set["legacy_engine"]["trades"].as_array().unwrap(),
            |idx| idx,
            &format!("legacy set {name}"),
        );
    }
}

#[test]
fn fitness_presets_are_reproduced() {
    for set in golden()["sets"].as_array().unwrap() {
        let reference = open(STRATEGY, Some("reference"), &settings(set));
        let result = run(&reference, synth::lcg(5_000));
        let fitness = &set["fitness"];
        let check = |ours: Option<f64>, preset: &str| {
            let theirs = number(fitness, preset);
            assert!((ours.unwrap() - theirs).abs() <= 1e-12, "{preset} is {ours:?}, expected {theirs}");
        };
        check(result.objective, "balanced");
        for preset in ["balanced", "high_frequency", "conservative", "profit_focused"] {
            // The preset's objective over the reference engine's metrics.
            let strategy = open(STRATEGY, Some(preset), &[]);
            let params: Vec<f64> = reference.params.iter().map(|param| param.default).collect();
            check(Scoring::new(&strategy).value(strategy.objective(), &result.metrics, &params), preset);
        }
    }
}

/// Rows whose ATR is missing vanish before the walk; the second value maps our bars to the original's rows.
fn micro_bars(case: &Value) -> (Bars, Vec<usize>) {
    let column = |key: &str| -> Vec<f64> {
        let cell = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(|b| f64::from(u8::from(b))));
        case["bars"][key].as_array().unwrap().iter().map(|value| cell(value).unwrap_or(f64::NAN)).collect()
    };
    let atr = column("atr");
    let kept: Vec<usize> = (0..atr.len()).filter(|row| !atr[*row].is_nan()).collect();
    let keep = |key: &str| -> Vec<f64> {
        let values = column(key);
        kept.iter().map(|row| values[*row]).collect()
    };
    let mut extra = Vec::new();
    for key in ["atr", "exhaustion", "fib_0382", "fib_0500", "fib_0618", "fib_0786", "fib_1000"] {
        let present = case["bars"].get(key).is_some();
        extra.push((format!("given_{key}"), if present { keep(key) } else { vec![f64::NAN; kept.len()] }));
    }
    let bars = Bars {
        symbol: "MICRO".into(),
        timeframe_ms: 900_000,
        ts_ms: (0..kept.len() as i64).map(|bar| bar * 900_000).collect(),
        open: keep("open"),
        high: keep("high"),
        low: keep("low"),
        close: keep("close"),
        volume: vec![1.0; kept.len()],
        extra,
        ..Bars::default()
    };
    (bars, kept)
}

/// The shipped file with its signals and levels replaced by the given columns, so that its own exits and profiles are what is tested.
fn micro_strategy() -> String {
    let mut source = STRATEGY
        .replace("atr_ = \"atr(atr_window)\"", "atr_ = \"given_atr\"")
        .replace("choice = [0.382, 0.5, 0.618, 0.786, 1.0]", "choice = [0.382, 0.5, 0.6, 0.618, 0.786, 1.0]")
        .replace("level = \"fib_target\"", "level = \"if(fib_target_level == 0.382, given_fib_0382, if(fib_target_level == 0.5, given_fib_0500, if(fib_target_level == 0.618, given_fib_0618, if(fib_target_level == 0.786, given_fib_0786, if(fib_target_level == 1, given_fib_1000, 0 / 0)))))\"");
    for (factor, column) in
        [("0.382", "0382"), ("0.5", "0500"), ("0.618", "0618"), ("0.786", "0786"), ("1.0", "1000")]
    {
        source = source.replace(&format!("low + fib_span * {factor}"), &format!("given_fib_{column}"));
    }
    let enter = source.lines().find(|line| line.starts_with("enter = ")).unwrap().to_string();
    source.replace(&enter, "enter = \"given_exhaustion == 1\"")
}

#[test]
fn micro_cases_of_the_walk_are_reproduced_by_both_profiles() {
    let source = micro_strategy();
    let golden = golden();
    let cases = golden["micro_cases"].as_array().unwrap();
    assert_eq!(cases.len(), 13);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let settings: Vec<(&str, String)> = case["params"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (key.as_str(), value.to_string()))
            .collect();
        for (profile, key) in [("reference", "head"), ("legacy", "legacy")] {
            let (bars, rows) = micro_bars(case);
            let result = run(&open(&source, Some(profile), &settings), bars);
            let what = format!("{name} ({profile})");
            check_trades(&result, case[key].as_array().unwrap(), |idx| rows[idx], &what);
            check_metrics(&result, &case[format!("{key}_metrics")], &what);
        }
    }
}

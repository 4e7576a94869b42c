//! Facts that hold for every strategy and all data: nothing looks ahead, the unit of money does not matter, longs and shorts are
//! mirror images, no cash appears or vanishes, costs cost. One file because all of them compare
//! the same details of changed data or rules. `PROPTEST_CASES` sets the number of cases.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use tidemill_backtest::compile::{Arg, functions};
use tidemill_backtest::random::tape::Tape;
use tidemill_backtest::random::{data, text};
use tidemill_backtest::segment::{Layout, Role, Segment};
use tidemill_backtest::strategy::{CostBps, GapFill, Sizing};
use tidemill_backtest::trade::{Reason, Trade};
use tidemill_backtest::{Detail, Engine, EngineOptions, Overrides, Strategy};
use tidemill_market::indicator::Group;
use tidemill_market::{Bars, Universe, align, synth};
use tidemill_search::{Points, SamplerKind, SamplerSettings};

fn config() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 150 } else { 1_000 };
    let cases = std::env::var_os("PROPTEST_CASES").map_or(cases, |_| ProptestConfig::default().cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 1_000, ..ProptestConfig::default() }
}

fn open(source: &str) -> Strategy {
    Strategy::parse("test.toml", source, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}\n{source}"))
}

fn whole(universe: &Universe) -> Vec<Segment> {
    Layout::default().segments(universe).unwrap()
}

fn engine<'a>(strategy: &'a Strategy, universe: &'a Universe, segments: Vec<Segment>) -> Engine<'a> {
    Engine::new(strategy, universe, segments, EngineOptions::default())
        .unwrap_or_else(|error| panic!("{error}\n{}", strategy.source))
}

fn shipped() -> Vec<Strategy> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(!files.is_empty());
    files
        .iter()
        .map(|path| Strategy::open(path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

/// Bars that every shipped strategy runs on: of several symbols, one of them that others are gated by.
fn for_shipped(n_bars: usize) -> Universe {
    let mut universe = synth::walk(4, 2, n_bars);
    universe.symbols[0].symbol = "BTCUSDT".into();
    universe.symbols.push(synth::lcg(n_bars));
    // Quarter hours of the same days, as the others have hours.
    for bars in &mut universe.symbols[..2] {
        bars.timeframe_ms = 900_000;
    }
    let times = universe.symbols[2].ts_ms.clone();
    universe.symbols[..2].iter_mut().for_each(|bars| bars.ts_ms.clone_from(&times));
    universe
}

/// The default and a few random parameter sets.
fn some_rows(strategy: &Strategy, universe: &Universe, n: usize) -> Vec<Vec<f64>> {
    let space = engine(strategy, universe, whole(universe)).space();
    let points = SamplerKind::Random.build(&space, &SamplerSettings::new(7)).unwrap().ask(n);
    let mut rows = vec![space.default_point()];
    for at in 0..points.len() {
        let mut row = vec![0.0; space.len()];
        points.read_row(at, &mut row);
        rows.push(row);
    }
    rows
}

/// Everything about a trade, with one NaN for all.
fn bits(trade: &Trade) -> ([u64; 8], [usize; 3], i8, String) {
    let float =
        [trade.entry, trade.exit, trade.stop, trade.target, trade.risk, trade.pnl, trade.ret, trade.r];
    let float = float.map(|value| if value.is_nan() { u64::MAX } else { value.to_bits() });
    (float, [trade.signal_idx, trade.entry_idx, trade.exit_idx], trade.side, format!("{:?}", trade.reason))
}

/// The same bars up to and including `last`; other ones after it, of which some are missing.
fn with_another_future(bars: &Bars, last: usize) -> Bars {
    let mut out = bars.clone();
    for bar in last + 1..bars.len() {
        let factor = if bar % 3 == 0 { 3.0 } else { 0.25 };
        for column in [&mut out.open, &mut out.high, &mut out.low, &mut out.close] {
            column[bar] *= factor;
        }
        out.volume[bar] = 1.0 + 1_000.0 * (bar % 5) as f64;
        for (_, column) in &mut out.extra {
            column[bar] = if bar % 2 == 0 { f64::NAN } else { 5.0 - column[bar] };
        }
    }
    // The final bar stays, so that no trade ends with the data before it did.
    let is_kept = |bar: usize| bar <= last || (bar - last) % 3 != 1 || bar + 1 == bars.len();
    let kept: Vec<bool> = (0..bars.len()).map(is_kept).collect();
    let columns = [&mut out.open, &mut out.high, &mut out.low, &mut out.close, &mut out.volume];
    for column in columns.into_iter().chain(out.extra.iter_mut().map(|(_, column)| column)) {
        let mut kept = kept.iter();
        column.retain(|_| *kept.next().expect("one for each bar"));
    }
    let mut kept = kept.iter();
    out.ts_ms.retain(|_| *kept.next().expect("one for each bar"));
    out
}

/// The last bar of each symbol that is closed at one time, which lies so many thousandths into the data.
fn known_at(universe: &Universe, cut: usize) -> Vec<usize> {
    let mut closes: Vec<i64> = universe.symbols.iter().flat_map(align::close_times).collect();
    closes.sort_unstable();
    // By then all symbols have one.
    let begin = universe.symbols.iter().map(|bars| align::close_times(bars)[0]).max().unwrap_or(0);
    let time = closes[(closes.len() - 1) * cut / 1_000].max(begin);
    let last = |bars: &Bars| align::close_times(bars).iter().rposition(|close| *close <= time).unwrap_or(0);
    universe.symbols.iter().map(last).collect()
}

/// Signals up to the last known bar, and trades closed by then, do not depend on what comes later, of any symbol.
fn check_no_look_ahead(strategy: &Strategy, known: &Universe, lasts: &[usize], rows: &[Vec<f64>]) {
    let changed = Universe {
        symbols: known
            .symbols
            .iter()
            .zip(lasts)
            .map(|(bars, last)| with_another_future(bars, *last))
            .collect(),
    };
    let mut before = engine(strategy, known, whole(known));
    let mut after = engine(strategy, &changed, whole(&changed));
    for row in rows {
        for (symbol, last) in lasts.iter().enumerate() {
            for side in 0..2 {
                let signals = |engine: &mut Engine| {
                    let mut signals = engine.entry_signals(row, symbol, side);
                    signals.retain(|bar| bar <= last);
                    signals
                };
                assert_eq!(
                    signals(&mut before),
                    signals(&mut after),
                    "signals up to {last}\n{}",
                    strategy.source
                );
            }
        }
        let closed = |details: Vec<Detail>| -> Vec<Vec<_>> {
            let by_then = |(detail, last): (&Detail, &usize)| {
                detail.trades.iter().filter(|trade| trade.exit_idx <= *last).map(bits).collect()
            };
            details.iter().zip(lasts).map(by_then).collect()
        };
        assert_eq!(
            closed(before.detail(row)),
            closed(after.detail(row)),
            "trades by {lasts:?}\n{}",
            strategy.source
        );
    }
}

#[test]
fn shipped_strategies_do_not_look_ahead() {
    let universe = for_shipped(3_000);
    for strategy in shipped() {
        let rows = some_rows(&strategy, &universe, 3);
        for last in [0, 700, 1_500, 2_998] {
            check_no_look_ahead(&strategy, &universe, &[last; 3], &rows);
        }
    }
}

/// The count by `recur` starts again every day, and the position is closed by the evening.
#[test]
fn the_opening_range_is_traded_once_a_day() {
    let universe = for_shipped(3_000);
    let strategy = shipped().into_iter().find(|strategy| strategy.name == "opening-range").unwrap();
    let mut n_trades = 0;
    for row in some_rows(&strategy, &universe, 6) {
        for (bars, detail) in
            universe.symbols.iter().zip(engine(&strategy, &universe, whole(&universe)).detail(&row))
        {
            // The session lies within a day of UTC.
            let days: Vec<i64> = detail.trades.iter().map(|trade| bars.day(trade.entry_idx)).collect();
            assert!(days.is_sorted_by(|a, b| a < b), "{days:?}");
            for trade in &detail.trades {
                assert_eq!(bars.day(trade.entry_idx), bars.day(trade.exit_idx), "closed by the evening");
            }
            n_trades += days.len();
        }
    }
    assert!(n_trades > 100, "{n_trades} trades");
}

/// Longer bars, other symbols, all symbols and recursions: every bar of the future changes, also those in a bucket that is not finished.
#[test]
fn series_from_elsewhere_do_not_look_ahead() {
    let sources = [
        "[params]\nd = { choice = ['3h', '4h', '1d'] }\n[long]\nenter = \"tf(d, close > ema(close, 3) and high > high[1])\"\nexit = \"tf('2h', rsi(close, 5)) > 60\"\n",
        "[long]\nenter = \"of('WALK1', close > sma(close, 5))\"\nexit = \"of('WALK0', tf('2h', high)) < close or close < of('WALK1', low, '1h')\"\nmax_hold = 9\n",
        "[long]\nenter = 'rank(roc(close, 5)) > 0.5 and share_over(close > sma(close, 9)) >= 0.5'\nexit = \"mean_over(close / tf('2h', close)) > 1\"\nmax_hold = 30\n",
        "[let]\nline = 'recur(low, if(close[1] >= self, max(low - 0.2 * atr(5), self), low))'\n[long]\nenter = 'close > line and sma(line, 3) > line[1]'\nstop = 'line'\nmax_hold = 20\n[short]\nenter = \"tf('2h', recur(close, self + 0.1 * (close - self))) > close\"\nmax_hold = 3\n",
    ];
    let universe = synth::walk(11, 3, 900);
    assert_eq!(universe.symbols[1].symbol, "WALK1");
    for source in sources {
        let strategy = open(source);
        let rows = some_rows(&strategy, &universe, 4);
        let mut n_trades = 0;
        let mut engine = engine(&strategy, &universe, whole(&universe));
        rows.iter()
            .for_each(|row| n_trades += engine.detail(row).iter().map(|d| d.trades.len()).sum::<usize>());
        assert!(n_trades > 100, "{n_trades} trades\n{source}");
        // One after the other through buckets of four hours and beyond.
        for last in (400..410).chain([0, 1, 63, 898]) {
            check_no_look_ahead(&strategy, &universe, &[last; 3], &rows);
        }
    }
}

/// A comparison and its negation over averages that are missing on many bars; the batch shares their bits, a single trial computes them.
#[test]
fn shared_bits_of_a_negation_are_those_of_single_trials() {
    let strategy = open(
        "[params]\nfast = { int = [2, 5] }\nslow = { int = [10, 13] }\nwide = { choice = [1.0, 2.0, 3.0, 4.0] }\n\
         [let]\ngappy = 'if(volume > sma(volume, 9), close, 0 / 0)'\nabove = 'ema(gappy, fast) > sma(close, slow)'\n\
         [long]\nenter = 'above and not above[1]'\nexit = 'not above and above[1]'\nstop = 'entry - wide * atr(14)'\n\
         [short]\nenter = 'not above and above[2]'\nexit = 'above and not above[2]'\n",
    );
    let universe = Universe { symbols: vec![synth::lcg(3_001)] };
    let mut all = engine(&strategy, &universe, whole(&universe));
    let points = SamplerKind::Grid.build(&all.space(), &SamplerSettings::new(0)).unwrap().ask(1_000);
    assert_eq!(points.len(), 64);
    let outcomes = all.evaluate(&points);
    let mut row = vec![0.0; 3];
    for (at, outcome) in outcomes.iter().enumerate() {
        points.read_row(at, &mut row);
        let alone = engine(&strategy, &universe, whole(&universe)).detail(&row).remove(0);
        assert!(alone.tally.longs > 10 && alone.tally.trades > alone.tally.longs + 10);
        assert_eq!(outcome.train, alone.tally, "{row:?}");
    }
}

/// A batch walks while it finds its signals, some bars at a time; a single trial finds them as it goes.
#[test]
fn trials_that_walk_some_bars_at_a_time_trade_as_they_do_alone() {
    let strategy = open(
        "[params]\nfast = { int = [2, 90] }\nslow = { int = [100, 900] }\nn = { int = [20, 400] }\nheight = { float = [0.1, 1.5] }\n\
         hold = { int = [1, 1500] }\nstops = { bool = true }\n\
         [long]\nenter = 'ema(close, fast) < ema(close, slow) and zscore(volume, n) > height'\n\
         [[long.exits]]\nkind = 'time'\nbars = 'hold'\n\
         [[long.exits]]\nkind = 'stop'\nlevel = 'entry - 3 * atr(14)'\nwhen = 'stops'\n\
         [[long.exits]]\nkind = 'signal'\nsignal = 'close > 1.05 * sma(close, n)'\n",
    );
    let universe = Universe { symbols: vec![synth::lcg(12_001)] };
    let mut n_trades = 0;
    for range in [0..12_001, 0..1_024, 1_500..9_999, 2_047..2_049, 3_000..3_000] {
        let mut segments = whole(&universe);
        segments[0].range = range.clone();
        let mut all = engine(&strategy, &universe, segments.clone());
        let points = SamplerKind::Random.build(&all.space(), &SamplerSettings::new(5)).unwrap().ask(96);
        let mut row = vec![0.0; points.n_params()];
        for (at, outcome) in all.evaluate(&points).iter().enumerate() {
            points.read_row(at, &mut row);
            let alone = engine(&strategy, &universe, segments.clone()).detail(&row).remove(0);
            assert_eq!(outcome.train, alone.tally, "bars {range:?}: {row:?}");
            n_trades += alone.trades.len();
        }
    }
    assert!(n_trades > 5_000, "{n_trades} trades");
}

/// What a switch leaves of a formula can be a number, compared with another one: it is so on every bar, whatever was computed before.
#[test]
fn a_number_that_a_switch_leaves_is_compared_as_it_is() {
    let universe = Universe { symbols: vec![synth::lcg(300)] };
    for (enter, is_true) in [
        ("if(b, close, 2.0) > c and close > d", true),
        ("if(b, close, 0.5) > c and close > d", false),
        ("not (c >= if(b, close, 2.0)) and close > d", true),
        ("if(b, close, 2.0) == if(b, open, c + 1.0) and close > d", true),
    ] {
        let params = "b = { bool = false }\nc = { float = [1.0, 1.5] }\nd = { float = [-1.0, 0.0] }";
        let source = format!(
            "name = \"t\"\n[params]\n{params}\n[long]\nenter = \"{enter}\"\n\
             [[long.exits]]\nkind = \"time\"\nbars = 1"
        );
        let strategy = open(&source);
        let mut engine = engine(&strategy, &universe, whole(&universe));
        let rows = [[0.0, 1.0, -0.5], [1.0, 1.5, 0.0], [0.0, 1.0, -0.25]];
        let mut points = Points::new(3);
        rows.iter().for_each(|row| points.push(row));
        let trades: Vec<u32> = engine.evaluate(&points).iter().map(|outcome| outcome.train.trades).collect();
        assert_eq!([trades[0] > 100, trades[2] > 100], [is_true; 2], "{enter}: {trades:?}");
        for row in [&rows[0], &rows[2]] {
            let signals = engine.entry_signals(row, 0, 0).len();
            assert_eq!(signals, if is_true { 300 } else { 0 }, "{enter}");
        }
    }
}

fn scaled(bars: &Bars, factor: f64) -> Bars {
    let mut out = bars.clone();
    for column in [&mut out.open, &mut out.high, &mut out.low, &mut out.close] {
        column.iter_mut().for_each(|price| *price *= factor);
    }
    out
}

/// Conditions and levels that compare prices with prices only.
const SCALE_FREE: &[&str] = &[
    "[long]\nenter = 'crosses_above(ema(close, 5), sma(close, 20))'\nstop = 'entry - 2 * atr(14)'\ntarget = 'entry + 3 * risk'\ntrail = 'atr_wilder(7)'\n",
    "[long]\nenter = 'rsi(close, 7) < 40 and zscore(close, 20) < -0.5'\nexit = 'rsi(close, 5) > 60'\nmax_hold = 30\n[short]\nenter = 'stochastic(14, 3, 3).d > 80'\nstop = 'highest(high, 10) + tr()'\nbreakeven = 0.5\n",
    "[short]\nenter = 'bollinger(close, 20, 2).width > 0.01 and close > bollinger(close, 20, 1).upper'\nstop = 'swing_high(high, 20, 3) * 1.01'\ntarget = 'lsma(close, 9)'\n[execution]\nsizing = { risk = 0.02 }\nfill = 'close'\n",
    "[long]\nenter = 'macd(close, 5, 12, 4).hist > 0 and adx(10) > 15 and di(10).plus > di(10).minus'\nexit = 'kama(close, 10, 2, 30) > close'\n[execution]\ncooldown = 3\n",
    "[long]\nenter = 'roc(close, 5) > 0.2 and momentum(close, 3) > 0'\nexit = 'hma(close, 9) < tema(close, 9) or wma(close, 5) > dema(close, 5)'\nstop = 'lowest(low, 5) - stddev(close, 10)'\n[execution]\nsizing = { fraction = 0.5 }\n",
    "[long]\nenter = 'value_when(close > open, close) < rma(close, 12) and bars_since(high > high[1]) < 3'\nmax_hold = 7\nexit = 'ema_sma(close, 8) > close and obv() > obv()[1]'\n",
];

/// Every function over series, compared with its own past only: whether it is in units of money or not, that decides the same.
fn with_every_function() -> Vec<Strategy> {
    let mut out = Vec::new();
    for function in
        functions().iter().filter(|f| !matches!(f.group, Group::Pointwise | Group::Time | Group::Elsewhere))
    {
        let mut windows = [10, 4, 7, 3].into_iter();
        let call = function.write(|arg| match arg {
            Arg::Condition | Arg::Anchor => "high > high[1]".into(),
            Arg::Window => windows.next().expect("at most four windows").to_string(),
            Arg::Scalar => "0.5".into(),
            Arg::Number => format!("close[{}]", windows.next().expect("at most four windows")),
            Arg::Series | Arg::Any | Arg::Duration | Arg::Text | Arg::Frame | Arg::Symbol => "close".into(),
        });
        if function.args.contains(&Arg::Number) {
            out.push(open(&format!("[long]\nenter = '{call}'\nmax_hold = 5\n")));
            continue;
        }
        let fields = function.number_fields();
        let dotted: Vec<String> = fields.iter().map(|field| format!(".{field}")).collect();
        for field in if dotted.is_empty() { vec![String::new()] } else { dotted } {
            let x = format!("{call}{field}");
            out.push(open(&format!("[long]\nenter = '{x} > {x}[2]'\nexit = '{x} < {x}[1]'\nmax_hold = 9\n")));
        }
    }
    out
}

#[test]
fn the_unit_of_money_does_not_matter() {
    let (alone, several) = (Universe { symbols: vec![synth::lcg(2_500)] }, for_shipped(2_500));
    let shipped = shipped();
    let mut others: Vec<Strategy> = SCALE_FREE.iter().map(|source| open(source)).collect();
    others.extend(with_every_function());
    let mut n_trades = 0;
    let with_data = shipped.iter().map(|one| (one, &several)).chain(others.iter().map(|one| (one, &alone)));
    for (strategy, universe) in with_data {
        // The last symbol has the same bars in both.
        let last = |universe: &Universe, row: &[f64]| {
            engine(strategy, universe, whole(universe)).detail(row).pop().expect("a segment for each symbol")
        };
        for row in some_rows(strategy, universe, 3) {
            let plain = last(universe, &row);
            n_trades += plain.trades.len();
            for factor in [2.0, 0.125, 2.0_f64.powi(40)] {
                let symbols = universe.symbols.iter().map(|bars| scaled(bars, factor)).collect();
                let other = last(&Universe { symbols }, &row);
                let figures = |detail: &Detail, factor: f64| -> Vec<_> {
                    let figure = |trade: &Trade| {
                        let float = [trade.ret, trade.r, trade.entry * factor, trade.pnl * factor];
                        (float.map(f64::to_bits), trade.signal_idx, trade.exit_idx, trade.reason)
                    };
                    detail.trades.iter().map(figure).collect()
                };
                assert_eq!(figures(&plain, factor), figures(&other, 1.0), "{} times {factor}", strategy.name);
                if strategy.execution.sizing != Sizing::Unit {
                    assert_eq!(plain.tally.equity.to_bits(), other.tally.equity.to_bits());
                    assert_eq!(plain.tally.sum_daily2.to_bits(), other.tally.sum_daily2.to_bits());
                }
            }
        }
    }
    assert!(n_trades > 500, "{n_trades} trades");
}

/// Prices seen in a mirror at `level`: what rose falls.
fn mirrored(bars: &Bars, level: f64) -> Bars {
    let flip = |column: &[f64]| column.iter().map(|price| level - price).collect();
    Bars {
        open: flip(&bars.open),
        high: flip(&bars.low),
        low: flip(&bars.high),
        close: flip(&bars.close),
        ..bars.clone()
    }
}

/// One side in units of price steps; `up` and `down` are the directions of profit and loss.
fn mirror_rules(tape: &mut Tape, long: bool) -> String {
    let (side, up, down, above) = if long { ("long", "+", "-", ">") } else { ("short", "-", "+", "<") };
    let (best, worst) = if long { ("high", "low") } else { ("low", "high") };
    let lag = 1 + tape.below(3);
    let mut out = format!("[{side}]\nenter = 'close {above} close[{lag}]'\nrisk = 2\n");
    let exits = [
        format!("kind = 'stop'\nlevel = '{worst} {down} {}'\n", tape.below(3)),
        format!("kind = 'target'\nlevel = 'entry {up} {}'\n", 1 + tape.below(4)),
        format!("kind = 'trail'\ndistance = '{}'\n", 1 + tape.below(3)),
        format!("kind = 'breakeven'\nafter = '{}'\n", tape.below(3)),
        format!("kind = 'time'\nbars = '{}'\n", tape.below(9)),
        format!("kind = 'signal'\nsignal = 'open {above} {best}[1]'\n"),
        format!("kind = 'target'\nlevel = '{best}[1]'\n"),
        format!("kind = 'stop'\nseries = '{worst}[{}]'\n", tape.below(3)),
        format!("kind = 'stop'\nlevel = 'entry {down} {}'\n", 1 + tape.below(5)),
    ];
    for _ in 0..1 + tape.below(4) {
        out += &format!("[[{side}.exits]]\n{}", tape.pick(&exits));
    }
    out
}

/// Equity that the trades lead to.
fn equity_of(sizing: Sizing, trades: &[Trade]) -> f64 {
    trades.iter().fold(1.0, |equity, trade| match sizing {
        // Rounding may leave a trace of what was lost.
        _ if trade.reason == Reason::Ruin => 0.0,
        Sizing::Unit => equity + trade.pnl,
        _ => equity * (1.0 + trade.share * trade.ret),
    })
}

fn tape_numbers() -> impl proptest::strategy::Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 300..600)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_looks_ahead(numbers in tape_numbers(), cut in 0..1_000_usize) {
        let mut tape = Tape::new(&numbers);
        let universe = data::universe(&mut tape);
        let strategy = open(&text::strategy(&mut tape, &universe));
        let rows = some_rows(&strategy, &universe, 2);
        check_no_look_ahead(&strategy, &universe, &known_at(&universe, cut), &rows);
    }

    #[test]
    fn a_short_is_a_long_in_the_mirror(numbers in tape_numbers()) {
        let mut tape = Tape::new(&numbers);
        let mut universe = data::universe(&mut tape);
        // Steps of 1/4 below 4096 leave every sum and difference exact.
        for bars in &mut universe.symbols {
            for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close] {
                column.iter_mut().for_each(|price| *price = (*price * 4.0).round().clamp(4.0, 16_000.0) / 4.0);
            }
        }
        let reflected = Universe { symbols: universe.symbols.iter().map(|bars| mirrored(bars, 5_000.0)).collect() };
        let settings = ["fill = 'close'\n", "first_check = 'next_bar'\n", "gap_fill_stop = 'level'\n", "gap_fill_target = 'level'\n",
            "invalid_stop = 'take'\n", "invalid_target = 'take'\n", "end_of_data = 'discard'\n", "cooldown = 2\n"];
        let mut execution = String::from("[execution]\nfee_bps = 0\nslippage_bps = 0\nsizing = 'unit'\n");
        execution.extend(settings.into_iter().filter(|_| tape.chance(40)));
        let mut again = Tape::new(&numbers[200..]);
        let long = open(&(mirror_rules(&mut again, true) + &execution));
        let mut again = Tape::new(&numbers[200..]);
        let short = open(&(mirror_rules(&mut again, false) + &execution));
        let segments = data::segments(&mut tape, &universe);
        let longs = engine(&long, &universe, segments.clone()).detail(&[]);
        let shorts = engine(&short, &reflected, segments).detail(&[]);
        for (a, b) in longs.iter().zip(&shorts) {
            let figures = |detail: &Detail| -> Vec<_> {
                // Adding zero drops the sign of a zero.
                let figure = |t: &Trade| {
                    let float = [t.pnl + 0.0, t.r + 0.0].map(f64::to_bits);
                    (t.signal_idx, t.entry_idx, t.exit_idx, float, t.reason)
                };
                detail.trades.iter().map(figure).collect()
            };
            prop_assert_eq!(figures(a), figures(b), "{}", long.source);
            prop_assert_eq!(a.tally.equity.to_bits(), b.tally.equity.to_bits());
            prop_assert_eq!(a.tally.sum_daily2.to_bits(), b.tally.sum_daily2.to_bits());
        }
    }

    #[test]
    fn no_cash_appears_or_vanishes(numbers in tape_numbers()) {
        let mut tape = Tape::new(&numbers);
        let universe = data::universe(&mut tape);
        let segments = data::segments(&mut tape, &universe);
        let strategy = open(&text::strategy(&mut tape, &universe));
        let sizing = strategy.execution.sizing;
        for row in some_rows(&strategy, &universe, 3) {
            for detail in engine(&strategy, &universe, segments.clone()).detail(&row) {
                let expected = equity_of(sizing, &detail.trades);
                let expected = if sizing == Sizing::Unit { expected } else { expected.max(0.0) };
                prop_assert_eq!(detail.tally.equity.to_bits(), expected.to_bits(), "{}", &strategy.source);
                let by_day = detail.daily.iter().fold(1.0, |equity, (_, change)| match sizing {
                    Sizing::Unit => equity + change,
                    _ => equity * (1.0 + change),
                });
                let scale = detail.trades.iter().fold(1.0 + expected.abs(), |scale, trade| scale + trade.pnl.abs());
                // A position marked at nothing, or nearly, can come back, which daily returns do not show.
                let revived = detail.daily.iter().any(|(_, change)| *change < -0.999);
                prop_assert!(revived || (by_day - expected).abs() <= 1e-9 * scale, "{by_day} by day, {expected} by trade");
            }
        }
    }

    #[test]
    fn costs_never_help(numbers in tape_numbers()) {
        let mut tape = Tape::new(&numbers);
        let universe = data::universe(&mut tape);
        let segments = data::segments(&mut tape, &universe);
        let mut strategy = open(&text::strategy(&mut tape, &universe));
        // A level below zero that fills as though the market had been there would earn its costs.
        strategy.execution.gap_fill_stop = GapFill::Open;
        strategy.execution.gap_fill_target = GapFill::Open;
        let rows = some_rows(&strategy, &universe, 2);
        let mut before: Option<Vec<Vec<Detail>>> = None;
        for fee in [0.0, 1.0, 20.0, 500.0] {
            strategy.execution.fee_bps = CostBps::all(fee);
            let mut engine = engine(&strategy, &universe, segments.clone());
            let details: Vec<Vec<Detail>> = rows.iter().map(|row| engine.detail(row)).collect();
            for (cheap, dear) in before.iter().flatten().flatten().zip(details.iter().flatten()) {
                prop_assert!(dear.tally.equity <= cheap.tally.equity, "{}", &strategy.source);
                // The same trades, until nothing is left to trade with; dear trades use up equity sooner.
                prop_assert!(dear.trades.len() == cheap.trades.len() || dear.tally.equity == 0.0);
                for (cheap, dear) in cheap.trades.iter().zip(&dear.trades) {
                    if dear.reason == Reason::Ruin {
                        prop_assert!(dear.entry_idx == cheap.entry_idx && dear.exit_idx <= cheap.exit_idx);
                        continue;
                    }
                    prop_assert_eq!((cheap.entry_idx, cheap.exit_idx, cheap.reason), (dear.entry_idx, dear.exit_idx, dear.reason));
                    prop_assert!(dear.pnl < cheap.pnl);
                }
            }
            before = Some(details);
        }
    }
}

/// Blocks of time against the daily returns of one trial at a time, for one segment and for a pool.
#[test]
fn blocks_are_the_daily_returns_cut_into_pieces() {
    let strategy = open(
        "[params]\nfast = { int = [2, 5] }\n[long]\nenter = 'ema(close, fast) > sma(close, 20)'\nexit = 'close < sma(close, 9)'\n",
    );
    let universe = Universe { symbols: vec![synth::lcg(3_001), synth::lcg(2_000)] };
    for (symbols, folds) in [(1, 1), (2, 1), (2, 3)] {
        let universe = Universe { symbols: universe.symbols[..symbols].to_vec() };
        let layout = Layout { folds: Some(folds), split: Some(0.8), ..Layout::default() };
        let mut engine = engine(&strategy, &universe, layout.segments(&universe).unwrap());
        engine.keep_blocks(5);
        let points = SamplerKind::Grid.build(&engine.space(), &SamplerSettings::new(0)).unwrap().ask(10);
        let outcomes = engine.evaluate(&points);
        assert_eq!(outcomes.len(), 4);
        for (at, outcome) in outcomes.iter().enumerate() {
            let details = engine.detail(&[points.value(at, 0)]);
            let returns = engine.daily_returns(&details, Role::Train);
            assert_eq!(returns.len(), outcome.train.days as usize);
            assert_eq!(returns.len(), engine.n_train_days());
            assert!(returns.is_sorted_by_key(|(day, _)| *day));
            let mut left = &returns[..];
            for (sums, days) in outcome.blocks.iter().zip(engine.block_days()) {
                let (now, rest) = left.split_at(*days as usize);
                let sum = now.iter().fold(0.0, |sum, (_, change)| sum + change);
                let square = now.iter().fold(0.0, |sum, (_, change)| sum + change * change);
                assert_eq!(*sums, [sum, square]);
                assert!(square > 0.0);
                left = rest;
            }
            assert!(left.is_empty() && outcome.blocks.len() == 5);
            // Any segments can be pooled from the details, with the bits of the search.
            let of = |role: Option<Role>| -> Vec<usize> {
                let is_in = |at: &usize| role.is_none_or(|role| engine.segments()[*at].role == role);
                (0..engine.segments().len()).filter(is_in).collect()
            };
            let pools =
                [Some(Role::Train), Some(Role::Test), None].map(|role| engine.pool_of(&details, &of(role)));
            assert_eq!(pools[0].tally.bits(), outcome.train.bits());
            assert_eq!(pools[1].tally.bits(), outcome.test.as_ref().unwrap().bits());
            assert_eq!(pools[2].tally.trades, pools[0].tally.trades + pools[1].tally.trades);
            let chained = pools[2].daily.iter().fold(1.0, |equity, (_, change)| equity * (1.0 + change));
            assert!((chained - pools[2].tally.equity).abs() < 1e-12 * chained);
            let apart = pools[0].tally.equity * pools[1].tally.equity;
            // With symbols that a part lacks, the whole has more parts of capital.
            assert!(
                symbols > 1 || (apart - chained).abs() < 1e-3 * chained,
                "only the day of the cut may differ"
            );
        }
    }
}

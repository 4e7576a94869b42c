//! What `signal` says after every bar is what a back-test over all bars has done, for random strategies on random data.
//! `PROPTEST_CASES` sets the number of cases.

use proptest::collection::vec;
use proptest::prelude::*;
use tidemill_backtest::random::tape::Tape;
use tidemill_backtest::random::{data, text};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::strategy::{EndOfData, ExitKind, FillAt};
use tidemill_backtest::trade::{Reason, Trade};
use tidemill_backtest::{Detail, Engine, EngineOptions, Overrides, Strategy};
use tidemill_lab::signal::{Action, SymbolSignal, signal};
use tidemill_lab::trades::side_name;
use tidemill_lab::{LabError, Recipe, SignalWatch};
use tidemill_market::timestamp::format_ms;
use tidemill_market::{Bars, LoadOptions, Universe, synth};

/// Bars of a symbol at most; each of them is the last one once.
const MOST_BARS: usize = 80;

fn config() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 60 } else { 400 };
    let cases = std::env::var_os("PROPTEST_CASES").map_or(cases, |_| ProptestConfig::default().cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::default() }
}

fn open(source: &str) -> Strategy {
    Strategy::parse("test.toml", source, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// The first bars.
fn cut(bars: &Bars, n_bars: usize) -> Bars {
    let first = |column: &[f64]| column[..n_bars].to_vec();
    Bars {
        ts_ms: bars.ts_ms[..n_bars].to_vec(),
        open: first(&bars.open),
        high: first(&bars.high),
        low: first(&bars.low),
        close: first(&bars.close),
        volume: first(&bars.volume),
        extra: bars.extra.iter().map(|(name, column)| (name.clone(), first(column))).collect(),
        ..bars.clone()
    }
}

fn details(strategy: &Strategy, universe: &Universe) -> Vec<Detail> {
    let segments = Layout::default().segments(universe).unwrap();
    let mut engine = Engine::new(strategy, universe, segments, EngineOptions::default()).unwrap();
    let row = engine.space().default_point();
    engine.detail(&row)
}

/// The kind of the exit that closed a trade, and whether the bar opened beyond its level.
fn closed_by(strategy: &Strategy, trade: &Trade) -> Option<(ExitKind, bool)> {
    let rules = if trade.side > 0 { &strategy.long } else { &strategy.short };
    match trade.reason {
        Reason::Exit(at, gap) => Some((rules.as_ref().unwrap().exits[at].kind, gap)),
        Reason::End | Reason::Ruin => None,
    }
}

/// Compares one symbol after bar `n` with the trades of the whole history. True if an entry is wanted that no trade took.
fn check(strategy: &Strategy, bars: &Bars, n: usize, found: &SymbolSignal, trades: &[Trade]) -> bool {
    let context = || format!("after bar {n} of {}: {found:?}\n{trades:?}\n{}", bars.symbol, strategy.source);
    assert_eq!(found.bar_time, format_ms(bars.ts_ms[n]), "{}", context());
    let kind = |trade: &Trade| closed_by(strategy, trade).map(|(kind, _)| kind);
    let next_open = strategy.execution.fill == FillAt::NextOpen;
    let by_signal = |trade: &&Trade| {
        let bar = if next_open { n + 1 } else { n };
        kind(trade) == Some(ExitKind::Signal) && trade.exit_idx == bar && trade.at_close != next_open
    };
    let is_held = |trade: &&Trade| trade.entry_idx <= n && trade.exit_idx > n && !by_signal(trade);
    let has = |action: Action| found.actions.contains(&action);

    let leaving = trades.iter().find(by_signal);
    assert_eq!(has(Action::Exit), leaving.is_some(), "exit {}", context());
    if let (Some(trade), Some(exit)) = (leaving, &found.exit) {
        assert_eq!((exit.side, exit.entry), (side_name(trade.side), trade.entry), "{}", context());
    }

    let held = trades.iter().find(is_held);
    assert_eq!(has(Action::Hold), held.is_some(), "hold {}", context());
    if let (Some(trade), Some(hold)) = (held, &found.hold) {
        assert_eq!((hold.side, hold.entry, hold.risk), (side_name(trade.side), trade.entry, trade.risk));
        assert_eq!(hold.signal_time, format_ms(bars.ts_ms[trade.signal_idx]), "{}", context());
        assert!(hold.levels.iter().all(|level| !level.provisional), "{}", context());
        if trade.exit_idx == n + 1
            && let Some((
                ExitKind::Stop
                | ExitKind::StopSeries
                | ExitKind::Target
                | ExitKind::Trail
                | ExitKind::Breakeven,
                false,
            )) = closed_by(strategy, trade)
        {
            let is_there = hold.levels.iter().any(|level| level.price == trade.exit);
            assert!(is_there, "the next bar closed at {} {}", trade.exit, context());
        }
        if kind(trade) == Some(ExitKind::Time) {
            assert_eq!(hold.closes_in, Some(trade.exit_idx - n), "time {}", context());
        }
    }

    let entered = trades.iter().find(|trade| next_open && trade.signal_idx == n);
    if let Some(trade) = entered {
        assert!(has(Action::Enter), "enter {}", context());
        assert_eq!(found.enter.as_ref().unwrap().side, side_name(trade.side), "{}", context());
    }
    if let Some(enter) = &found.enter {
        assert!(next_open && enter.entry == bars.close[n] && enter.entry_time.is_none(), "{}", context());
    }
    assert_eq!(
        has(Action::Nothing),
        found.actions.len() == 1 && !has(Action::Hold) && !has(Action::Exit) && !has(Action::Enter)
    );
    has(Action::Enter) && entered.is_none()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_state_is_what_the_backtest_does(numbers in vec(any::<u32>(), 300..700)) {
        let mut tape = Tape::new(&numbers);
        let mut universe = data::universe(&mut tape);
        for bars in &mut universe.symbols {
            *bars = cut(bars, bars.len().min(MOST_BARS));
        }
        let mut strategy = open(&text::strategy(&mut tape, &universe));
        // A position that is forgotten in the end is no trade of the back-test, but it is held until then.
        strategy.execution.end_of_data = EndOfData::Close;
        for (at, detail) in details(&strategy, &universe).iter().enumerate() {
            let bars = &universe.symbols[at];
            let trades = &detail.trades;
            let is_ruined = detail.tally.equity <= 0.0;
            let end = trades.last().filter(|_| is_ruined).map_or(bars.len() - 1, |trade| trade.exit_idx.saturating_sub(1));
            let mut n_untaken = 0;
            for n in 0..end {
                let report = signal(&strategy, &universe, None, bars.ts_ms[n] + bars.timeframe_ms).unwrap();
                let found = report.symbols.iter().find(|found| found.symbol == bars.symbol).unwrap();
                n_untaken += u32::from(check(&strategy, bars, n, found, trades));
            }
            // Entries that no trade took are those whose levels the next open made invalid; without a size there is no entry.
            if strategy.execution.fill == FillAt::NextOpen && !is_ruined {
                let sides = [&strategy.long, &strategy.short];
                let has_size = sides.into_iter().flatten().any(|side| side.size.is_some());
                let n_skipped = detail.tally.skipped;
                prop_assert!(n_untaken == n_skipped || has_size && n_untaken < n_skipped, "{}", strategy.source);
            }
        }
    }
}

/// A market that goes up, down and up again, a bar an hour.
fn waves() -> Universe {
    let mut bars = synth::lcg(60);
    for at in 0..60 {
        let close = 100.0 + if at / 10 % 2 == 0 { 1.0 } else { -1.0 } * (at % 10) as f64;
        (bars.open[at], bars.close[at]) = (if at == 0 { close } else { bars.close[at - 1] }, close);
        (bars.high[at], bars.low[at]) = (bars.open[at].max(close) + 0.5, bars.open[at].min(close) - 0.5);
    }
    Universe { symbols: vec![bars] }
}

const TURN: &str = "name = 'turn'\n[long]\nenter = 'close > 105'\nexit = 'close < 95'\nstop = 'entry - 20'\n[short]\nenter = 'close < 95'\nexit = 'close > 105'\nstop = 'high + 30'\n";

#[test]
fn a_reversal_exits_and_enters_with_levels_at_the_close() {
    let universe = waves();
    let bars = &universe.symbols[0];
    let strategy = open(TURN);
    let turn = (1..60).find(|bar| bars.close[*bar] < 95.0).unwrap();
    let report = signal(&strategy, &universe, None, bars.ts_ms[turn] + bars.timeframe_ms).unwrap();
    let [found] = &report.symbols[..] else { panic!("{report:?}") };
    assert_eq!(found.actions, [Action::Exit, Action::Enter]);
    assert_eq!(found.exit.as_ref().unwrap().side, "long");
    let enter = found.enter.as_ref().unwrap();
    assert_eq!((enter.side, enter.entry), ("short", bars.close[turn]));
    let level = &enter.levels[0];
    assert_eq!((level.kind, level.price, level.provisional), ("stop", bars.high[turn] + 30.0, false));
    assert!(report.notes[0].contains(&format!("{} bars from", 60 - turn - 1)), "{:?}", report.notes);
    let first = (1..60).find(|bar| bars.close[*bar] > 105.0).unwrap();
    let report = signal(&strategy, &universe, None, bars.ts_ms[first] + bars.timeframe_ms).unwrap();
    let level = &report.symbols[0].enter.as_ref().unwrap().levels[0];
    assert_eq!((level.price, level.provisional), (bars.close[first] - 20.0, true));
}

#[test]
fn before_the_first_close_there_is_no_state() {
    let universe = waves();
    let first_ms = universe.symbols[0].ts_ms[0];
    let error = signal(&open(TURN), &universe, None, first_ms).unwrap_err();
    assert!(matches!(error, LabError::NoClosedBar { .. }), "{error}");
}

#[test]
fn a_watch_speaks_when_a_file_has_grown_or_a_bar_has_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LCG.csv");
    let Universe { symbols } = waves();
    let write = |n_bars: usize| {
        let universe = Universe { symbols: vec![cut(&symbols[0], n_bars)] };
        tidemill_market::write(&universe, &path).unwrap();
    };
    let mut watch =
        SignalWatch::new(open(TURN), Recipe::new(std::slice::from_ref(&path), LoadOptions::default()), None);
    let close_ms = |bar: usize| symbols[0].ts_ms[bar] + symbols[0].timeframe_ms;
    write(8);
    let (report, _) = watch.poll(close_ms(6)).unwrap().expect("the first state is news");
    assert_eq!(report.symbols[0].bar_time, format_ms(symbols[0].ts_ms[6]));
    assert!(watch.poll(close_ms(7) - 1).unwrap().is_none(), "nothing has happened");
    let (report, _) = watch.poll(close_ms(7)).unwrap().expect("a bar that was there has closed");
    assert_eq!(report.symbols[0].bar_time, format_ms(symbols[0].ts_ms[7]));
    assert!(watch.poll(close_ms(20)).unwrap().is_none());
    write(15);
    let (report, _) = watch.poll(close_ms(20)).unwrap().expect("the file has grown");
    assert_eq!(report.symbols[0].bar_time, format_ms(symbols[0].ts_ms[14]));
    std::fs::write(&path, "time,op").unwrap();
    assert!(watch.poll(close_ms(20)).is_err(), "a file half written is no state");
    write(16);
    assert!(watch.poll(close_ms(20)).unwrap().is_some(), "it is read again");
}

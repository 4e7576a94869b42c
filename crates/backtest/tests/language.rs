//! The loader of strategy files against anything a person or a machine may write: a clear message with its place, never a panic, never a
//! hang. What once broke lies in `corpus/` and is read again by every run. `PROPTEST_CASES` sets the number of cases. One file because all
//! of it reads and compiles texts in the same way.

#[path = "language/mistakes.rs"]
mod mistakes;

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use tidemill_backtest::compile::{DataNames, check_sessions, compile};
use tidemill_backtest::graph::Source;
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_market::{DAY_MS, Universe, synth};
use tidemill_search::Points;

/// What takes longer does not end; how fast it is is no matter here.
const HANG: Duration = Duration::from_secs(300);

/// Names of data: a further column, and symbols of two timeframes.
fn names() -> DataNames {
    let symbol = |name: &str, minutes: i64| (name.to_owned(), 60_000 * minutes);
    DataNames {
        extra: vec!["x".into()],
        symbols: vec![symbol("BTCUSDT", 60), symbol("ETHUSDT", 60), symbol("SLOW", 240)],
    }
}

/// Reads and compiles a text; the message if that fails.
fn load(source: &str) -> Result<Strategy, String> {
    load_with(source, &Overrides::default())
}

fn load_with(source: &str, overrides: &Overrides) -> Result<Strategy, String> {
    let strategy = Strategy::parse("a.toml", source, overrides).map_err(|error| error.to_string())?;
    compile(&strategy, &names()).map_err(|error| error.to_string())?;
    Ok(strategy)
}

/// Every message names file, line and column.
fn check_message(message: &str) {
    let place = message.strip_prefix("a.toml:").unwrap_or_else(|| panic!("no place: {message}"));
    let mut parts = place.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
    assert!(number().is_some_and(|line| line > 0), "no line: {message}");
    assert!(number().is_some_and(|column| column > 0), "no column: {message}");
    assert!(parts.next().is_some_and(|text| text.trim().len() > 3), "no text: {message}");
}

/// Loading ends soon, with a strategy or with a message that has a place.
fn survives(source: &str) -> Option<Strategy> {
    let start = Instant::now();
    let result = load(source);
    let took = start.elapsed();
    assert!(took < HANG, "took {took:?}");
    if let Err(message) = &result {
        check_message(message);
    }
    result.ok()
}

/// Loading and one evaluation on a few bars end soon.
fn survives_running(source: &str) {
    let Some(strategy) = survives(source) else { return };
    let universe = Universe { symbols: vec![synth::lcg(150)] };
    let segments = Layout::default().segments(&universe).unwrap();
    let start = Instant::now();
    // A column of the data that this universe does not have is a message like any other.
    match Engine::new(&strategy, &universe, segments, EngineOptions::default()) {
        Ok(mut engine) => {
            let row = engine.space().default_point();
            engine.detail(&row);
        }
        Err(error) => check_message(&error.to_string()),
    }
    let took = start.elapsed();
    assert!(took < HANG, "took {took:?}");
}

fn shipped() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies");
    let mut out: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into(), std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    out.sort();
    out
}

#[test]
fn shipped_strategies_load_with_every_profile() {
    let all = shipped();
    assert!(!all.is_empty());
    for (name, source) in all {
        let strategy = load(&source).unwrap_or_else(|message| panic!("{name}: {message}"));
        for profile in strategy.profiles {
            let overrides = Overrides { profile: Some(profile.clone()), ..Overrides::default() };
            load_with(&source, &overrides).unwrap_or_else(|message| panic!("{name} {profile}: {message}"));
        }
    }
}

/// Every shipped strategy has a row on the page.
#[test]
fn shipped_strategies_are_explained_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/strategy-language.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (file, _) in shipped() {
        let name = file.trim_end_matches(".toml");
        assert!(page.contains(&format!("| `{name}` |")), "no row for {name}");
    }
}

/// A file around one expression for `enter`.
fn with_enter(enter: &str) -> String {
    format!(
        "[params]\nn = {{ int = [5, 60] }}\nmode = {{ choice = ['wide', 'tight'] }}\n[let]\nfast = 'ema(close, n)'\n[long]\nenter = \"{enter}\"\n"
    )
}

#[test]
fn huge_files_end_soon() {
    let long = "[long]\nenter = 'close > 1'\n";
    let params: String = (0..10_000).map(|n| format!("p{n} = {{ int = [1, {}] }}\n", n + 2)).collect();
    survives_running(&format!("[params]\n{params}{long}"));
    // Conditions that refer to the next parameter, so that the order has to be turned around.
    let params: String =
        (0..3_000).map(|n| format!("p{n} = {{ bool = true, when = 'p{}' }}\n", n + 1)).collect();
    survives_running(&format!("[params]\n{params}p3000 = {{ bool = true }}\n{long}"));
    let text: String = (0..100_000).map(|n| format!("k{n} = 1\n")).collect();
    survives(&format!("{text}{long}"));
    survives(&format!("[long]\nenter = '{}true'\n", "true or ".repeat(100_000)));
    survives(&format!("[long]\nenter = 'min({}1) > 1'\n", "close, ".repeat(900)));
    let exits = "[[long.exits]]\nkind = 'stop'\nlevel = 'low'\n".repeat(2_000);
    survives_running(&format!("{long}{exits}"));
}

#[test]
fn deep_files_end_soon() {
    let long = "[long]\nenter = 'a0 > 1'\n";
    // Each refers to the one before.
    let forward: String = (0..10_000).rev().map(|n| format!("a{n} = 'a{} + 1'\n", n + 1)).collect();
    survives_running(&format!("[let]\na10000 = 'close'\n{forward}{long}"));
    // Each refers to the one after.
    let backward: String = (0..10_000).map(|n| format!("a{n} = 'a{} + 1'\n", n + 1)).collect();
    survives_running(&format!("[let]\n{backward}a10000 = 'close'\n{long}"));
    for brackets in [("(", ")"), ("-(", ")"), ("abs(", ")"), ("if(true, ", ", 1)"), ("not (", ")")] {
        for depth in [50, 120, 100_000] {
            let expr = format!("{}close{} > 1", brackets.0.repeat(depth), brackets.1.repeat(depth));
            survives_running(&format!("[long]\nenter = '{expr}'\n"));
        }
    }
    survives_running(&format!("[long]\nenter = 'close{} > 1'\n", "[1]".repeat(600)));
    survives(&format!("[long]\nenter = {}{}\n", "[".repeat(50_000), "]".repeat(50_000)));
    survives(&format!("[long]\nenter = {}1{}\n", "{a=".repeat(50_000), "}".repeat(50_000)));
    survives(&format!("[{}long]\nenter = 'true'\n", "a.".repeat(50_000)));
}

#[test]
fn shared_parts_are_computed_once_however_often_they_are_named() {
    let doubling = |first: &str, op: &str| -> String {
        let mut out = format!("[let]\na0 = '{first}'\n");
        for n in 0..60 {
            out += &format!("a{} = 'a{n} {op} a{n}'\n", n + 1);
        }
        out
    };
    for (first, op, enter) in [
        ("close", "+", "a60 > 1"),
        ("close", "+", "a60[3] > a60[1]"),
        ("close", "*", "ema(a60[2], 3)[1] > a60"),
        ("n", "+", "close > a60"),
        ("1", "+", "close[a60] > 1"),
        ("1", "*", "ema(close, a60) > 1"),
        ("close", "/", "crosses_above(a60, close)"),
        ("close > 1", "and", "a60[1] or a60"),
        ("n > 1", "or", "a60"),
        ("ema(close, n)", "-", "value_when(a60 > 1, a60) > 1"),
    ] {
        let source = format!(
            "{}[params]\nn = {{ int = [1, 5] }}\n[long]\nenter = '{enter}'\nstop = 'low'\n",
            doubling(first, op)
        );
        survives_running(&source);
    }
    for (first, op, when) in [("n", "+", "a60 > 1"), ("n > 1", "and", "a60")] {
        let source = format!(
            "{}[params]\nn = {{ int = [1, 5] }}\nm = {{ int = [1, 5], when = '{when}' }}\n[long]\nenter = 'close > m'\n",
            doubling(first, op)
        );
        survives_running(&source);
    }
}

#[test]
fn a_condition_through_a_let_is_refused_or_judged_after_what_it_depends_on() {
    let file = |flag: &str| {
        format!(
            "[params]\na = {{ int = [1, 5], when = 'flag' }}\nb = {{ bool = false }}\n[let]\nflag = '{flag}'\n[long]\nenter = 'close > a'\n"
        )
    };
    let message = load(&file("a > 2")).map(|_| ()).expect_err("a condition on itself");
    check_message(&message);
    let Ok(strategy) = load(&file("b")) else { return };
    let universe = Universe { symbols: vec![synth::lcg(150)] };
    let segments = Layout::default().segments(&universe).unwrap();
    let space = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap().space();
    let (a, b) = (space.param_idx("a").unwrap(), space.param_idx("b").unwrap());
    for switch in [0.0, 1.0] {
        let mut row = vec![4.0; 2];
        row[b] = switch;
        let mut points = Points::new(2);
        points.push(&row);
        space.deactivate(&mut points);
        assert_eq!(points.value(0, a).is_nan(), switch == 0.0);
    }
}

#[test]
fn the_corpus_of_what_once_broke_is_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        println!("{}", file.display());
        survives_running(&String::from_utf8_lossy(&std::fs::read(&file).unwrap()));
    }
}

/// Words of the language, so that soup made of them gets past the tokens.
const WORDS: &[&str] = &[
    "close",
    "open",
    "entry",
    "stop",
    "risk",
    "n",
    "b",
    "mode",
    "f",
    "fast",
    "x",
    "volume",
    "bar_index",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "+",
    "-",
    "*",
    "/",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "=",
    "and",
    "or",
    "not",
    "true",
    "false",
    "if(",
    "min(",
    "max(",
    "ema(",
    "sma(",
    "macd(",
    "bollinger(",
    "di(",
    "swing_high(",
    "bars_since(",
    "value_when(",
    "is_na(",
    "round(",
    "clip(",
    "crosses_above(",
    "bars(",
    "'1d'",
    "'wide'",
    "1",
    "0",
    "3",
    "-1",
    "0.5",
    "1e300",
    "1e-300",
    "9007199254740993",
    ".line",
    ".plus",
    ".upper",
    "[1]",
    "[n]",
    "close, n)",
    "(close, 3)",
    "> 1",
];

/// Lines of strategy files.
const LINES: &[&str] = &[
    "[params]",
    "[let]",
    "[long]",
    "[short]",
    "[[long.exits]]",
    "[[short.exits]]",
    "[execution]",
    "[objective]",
    "[profiles.p]",
    "n = { int = [1, 9] }",
    "b = { bool = true, when = 'n > 3' }",
    "mode = { choice = ['wide', 'tight'] }",
    "f = { float = [0.1, 1.0], log = true, when = 'b' }",
    "fast = 'ema(close, n)'",
    "slow = 'fast[1] + fast'",
    "enter = 'close > fast'",
    "enter = 'b'",
    "stop = 'entry - 1'",
    "kind = 'stop'",
    "kind = 'time'",
    "level = 'low'",
    "bars = '3'",
    "label = 'a{n:.1}b'",
    "when = 'b'",
    "risk = '1'",
    "fill = 'close'",
    "sizing = { risk = 0.1 }",
    "maximize = 'sharpe'",
    "require = 'trades > 1'",
    "params.n = 4",
    "execution.fill = 'close'",
    "long.stop = 'low'",
    "target = 'entry + risk'",
    "trail = '1'",
    "exit = 'b'",
    "max_hold = 5",
    "breakeven = 1",
    "params = 3",
    "= 3",
    "n = { int = [1, 9], step = 0 }",
    "f = { float = [1e308, -1e308] }",
    "f = { float = [-1e308, 1e308] }",
    "n = { int = [-9223372036854775808, 9223372036854775807] }",
    "n = 1e400",
    "n = nan",
    "n = { int = [1, 2], step = 9223372036854775807 }",
    "\"\"\"",
    "'''",
    "é = 'ü'",
];

/// Numbers at the edges of what can be written.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "5",
    "60",
    "0.5",
    "-0.0",
    "1e308",
    "-1e308",
    "1e-308",
    "5e-324",
    "1e17",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740992",
    "4503599627370496",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967295",
    "4294967296",
    "2147483648",
    "inf",
    "-inf",
    "nan",
    "1e400",
    "99999999999999999999",
    "true",
    "'a'",
];

fn words(
    list: &'static [&'static str],
    most: usize,
) -> impl proptest::strategy::Strategy<Value = Vec<&'static str>> {
    vec(proptest::sample::select(list), 0..most)
}

fn config() -> ProptestConfig {
    let cases = std::env::var_os("PROPTEST_CASES").map_or(400, |_| ProptestConfig::default().cases);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
        survives_running(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_is_survived_as_an_expression(text in "\\PC{0,60}") {
        survives_running(&with_enter(&text));
        let quoted = format!("[long]\nenter = '''{text}'''\n[[long.exits]]\nkind = 'time'\nbars = 3\nlabel = '''{text}{{{text}:.2}}'''\n");
        survives_running(&quoted);
    }

    #[test]
    fn any_soup_of_words_is_survived(words in words(WORDS, 24)) {
        let text = words.join(" ");
        survives_running(&with_enter(&text));
        survives_running(&with_enter(&words.concat()));
        let levels = format!("[params]\nn = {{ int = [0, 9] }}\n[let]\nfast = 'ema(close, n)'\n[long]\nenter = 'true'\nstop = \"low\"\ntarget = \"{text}\"\nrisk = \"{text}\"\n");
        survives_running(&levels);
    }

    #[test]
    fn any_soup_of_lines_is_survived(lines in words(LINES, 24)) {
        survives_running(&lines.join("\n"));
    }

    #[test]
    fn shipped_files_with_mistakes_are_survived(
        which in any::<proptest::sample::Index>(),
        edits in vec((any::<proptest::sample::Index>(), 0..5_u8, proptest::sample::select(WORDS), any::<char>()), 1..6),
    ) {
        let all = shipped();
        let mut text: Vec<char> = which.get(&all).1.chars().collect();
        for (place, kind, word, character) in edits {
            let at = place.index(text.len().max(1)).min(text.len().saturating_sub(1));
            match kind {
                0 => drop(text.splice(at..(at + 1).min(text.len()), [])),
                1 => drop(text.splice(at..at, word.chars())),
                2 => drop(text.splice(at..at, [character])),
                3 => drop(text.splice(at..(at + 40).min(text.len()), [])),
                _ => {
                    let piece: Vec<char> = text[at..(at + 60).min(text.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        survives_running(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_range_is_survived(
        kind in proptest::sample::select(&["int", "float", "choice", "bool"][..]),
        numbers in vec(proptest::sample::select(NUMBERS), 4),
        keys in vec(any::<bool>(), 4),
    ) {
        let [low, high, step, default] = numbers[..] else { unreachable!() };
        let mut range = format!("{kind} = [{low}, {high}]");
        for (wanted, text) in keys.iter().zip([format!("step = {step}"), format!("default = {default}"), "log = true".into()]) {
            if *wanted {
                range += &format!(", {text}");
            }
        }
        survives_running(&format!("[params]\nn = {{ {range} }}\n[long]\nenter = 'ema(close, round(n)) > close[round(n)]'\nstop = 'entry - n'\nmax_hold = 'n'\n"));
        survives_running(&format!("[params]\nn = {low}\n[long]\nenter = 'kama(close, n, 2, 30) > swing_low(low, n, 2)'\ntrail = {high}\nmax_hold = {step}\nbreakeven = {default}\n"));
    }

    #[test]
    fn any_setting_is_survived(name in proptest::sample::select(&["n", "mode", "fee_bps", "sizing", "cooldown", "x", ""][..]), value in "\\PC{0,20}") {
        let set = vec![(name.to_string(), value)];
        let _ = load_with(&with_enter("close > fast"), &Overrides { set, ..Overrides::default() });
    }
}

/// Daily bars open at midnight in UTC, which is no hour of the exchange: what would never trade is refused, with the place.
#[test]
fn a_session_in_which_no_bar_opens_is_an_error() {
    let strategy =
        load("[long]\nenter = \"close > 1 and session_bar('America/New_York', '09:30-16:00') == 0\"\n")
            .unwrap();
    let hourly = Universe { symbols: vec![synth::lcg(150)] };
    check_sessions(&strategy, &hourly).unwrap();
    let mut daily = synth::lcg(150);
    daily.timeframe_ms = DAY_MS;
    daily.ts_ms.iter_mut().enumerate().for_each(|(day, ts_ms)| *ts_ms = day as i64 * DAY_MS);
    let found = check_sessions(&strategy, &Universe { symbols: vec![daily] }).unwrap_err().to_string();
    check_message(&found);
    assert!(found.starts_with("a.toml:2:24: no bar of the data opens within this session"), "{found}");
    assert!(found.contains("hint: these are bars of a day or longer"), "{found}");
}

/// Names that came later give way to what a file or its data had before.
#[test]
fn later_names_may_be_hidden() {
    let strategy = load("[params]\nday = { int = [2, 9] }\n[let]\nhl2 = 'close - open'\n[long]\nenter = 'sma(hl2, day) > 0 and month > 1'\n").unwrap();
    let graph = compile(&strategy, &DataNames { extra: vec!["month".to_owned()], ..names() }).unwrap().graph;
    let read: Vec<Source> = graph.sources();
    assert_eq!(read, [Source::Close, Source::Open, Source::Extra(0)]);
}

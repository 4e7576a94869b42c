//! Bad input: a clear message and exit code 2, or a valid empty result. Never a panic, never a wait.

use std::time::{Duration, Instant};

use crate::support::Place;

/// Enters when it rains frogs.
const NEVER: &str =
    "[params]\nw = { int = [1, 100], default = 5 }\n[long]\nenter = 'close > 1000000 + w'\nmax_hold = '5'\n";

#[test]
fn settings_on_the_command_line_are_checked() {
    let place = Place::with_bars();
    for (given, reason) in [
        ("--set volz=2", "did you mean `vol_z`"),
        ("--set vol_z=abc", "`vol_z` is a number, found text"),
        ("--set vol_z=nan", "--set vol_z=nan"),
        ("--set vol_z=", "`vol_z` is a number"),
        ("--set vol_z", "expected NAME=VALUE"),
        ("--set =3", "expected NAME=VALUE"),
        ("--set max_hold=48.5", "`max_hold` is an integer"),
        ("--set use_stop_loss=maybe", "`use_stop_loss` is true or false"),
        ("--set fib_target_level=0.51", "must be one of 0.382, 0.5"),
        ("--set fee_bps=-5", "0 or more"),
        ("--set fee_bps=nan", "basis points"),
        ("--set sizing=foo", "all_in"),
        ("--set cooldown=-1", "0 or more"),
        ("--profile nosuch", "it has reference, legacy"),
        ("--objective nosuch", "`nosuch` is no metric"),
        ("--config nosuch.toml", "nosuch.toml"),
        ("--nosuch", "--nosuch"),
    ] {
        for command in ["backtest", "sweep --trials 10"] {
            place.refused(&format!("{command} seller-exhaustion --data lcg.csv {given}"), reason);
        }
    }
}

#[test]
fn a_bad_objective_is_shown_as_typed_and_once() {
    let place = Place::with_bars();
    for objective in ["sharpe + foo", "sharpe +"] {
        let args = ["sweep", "zscore-dip", "--data", "lcg.csv", "--objective", objective];
        let said = place.run(&args);
        said.is_refusal(objective, "--objective");
        let lines: Vec<&str> = said.stderr.lines().filter(|line| line.contains(objective)).collect();
        assert_eq!(lines.len(), 1, "{}", said.stderr);
    }
}

#[test]
fn numbers_of_the_command_line_have_bounds() {
    let place = Place::with_bars();
    for (command, given, reason) in [
        ("backtest", "--split 0", "--split"),
        ("backtest", "--split 1", "--split"),
        ("backtest", "--split 1.5", "--split"),
        ("backtest", "--split nan", "--split"),
        ("backtest", "--split -0.5", "--split"),
        ("backtest", "--folds 0", "--folds"),
        ("backtest", "--folds -1", "--folds"),
        ("backtest", "--folds 5001", "--folds"),
        ("backtest", "--folds 99999999999", "--folds"),
        ("backtest", "--threads 0", "threads must lie between 1 and 1024"),
        ("backtest", "--threads -1", "--threads"),
        ("backtest", "--threads 10000000", "threads must lie between 1 and 1024"),
        ("sweep", "--trials 0", "--trials"),
        ("sweep", "--trials -1", "--trials"),
        ("sweep", "--trials 1e-6", "--trials"),
        ("sweep", "--trials 18446744073709551616", "--trials"),
        ("sweep", "--seed -1", "--seed"),
        ("sweep", "--top -1", "--top"),
        ("sweep", "--threads 0", "threads must lie between 1 and 1024"),
        ("sweep", "--sampler nosuch", "random, sobol, grid, tpe"),
        ("sweep", "--batch 0", "--batch 0: write `auto` or a number"),
        ("sweep", "--batch many", "--batch many: write `auto` or a number"),
        ("sweep", "--lag -1", "--lag"),
        ("sweep", "--lag 1000", "--lag 1000"),
        ("sweep", "--pipeline maybe", "--pipeline"),
        ("sweep", "--enqueue nosuch.json", "nosuch.json"),
        ("sweep", "--enqueue windoww=3", "there is no parameter `windoww`"),
        ("sweep", "--enqueue window=100000", "`window` is 100000"),
        ("sweep", "--sampler ga --objective sharpe --objective trades", "serves one objective"),
        ("backtest", "--objective sharpe --objective trades", "only a sweep takes several"),
        ("sweep", "--split 1", "--split"),
    ] {
        let said = place.refused(&format!("{command} zscore-dip --data lcg.csv {given}"), reason);
        assert!(!said.stderr.contains("unexpected argument"), "{given}: {}", said.stderr);
    }
}

#[test]
fn time_spans_without_bars_are_refused() {
    let place = Place::with_bars();
    for (given, reason) in [
        ("--from 2025-01-01 --to 2024-01-01", "the data spans 2024-01-01T00:00:00Z"),
        ("--from 2024-01-05 --to 2024-01-05", "no bar lies between"),
        ("--from 2030-01-01", "no bar lies between"),
        ("--to 2000-01-01", "no bar lies between"),
        ("--from yesterday", "--from yesterday: not a time"),
        ("--to 2024-02-30", "--to 2024-02-30: not a time"),
    ] {
        place.refused(&format!("backtest zscore-dip --data lcg.csv {given}"), reason);
        place.refused(&format!("sweep zscore-dip --data lcg.csv {given}"), reason);
    }
}

#[test]
fn data_that_cannot_be_read_is_refused_with_its_name() {
    let place = Place::with_bars();
    place.ok("data generate --kind lcg --bars 500 --out whole.parquet");
    let whole = std::fs::read(place.path("whole.parquet")).unwrap();
    place.write("empty.csv", "");
    place.write("empty.parquet", "");
    place.write("header.csv", "timestamp,open,high,low,close,volume\n");
    place.write("garbage.parquet", b"\x00\x01\x02 no parquet at all \xff\xfe");
    place.write("short.parquet", b"PAR1PAR1");
    place.write("cut.parquet", &whole[..whole.len() / 2]);
    place.write("text.csv", "once upon a time\nthere was a market\n");
    place.write("nothing/readme.txt", "no data here");
    let no_close: String =
        place.read("lcg.csv").lines().enumerate().fold(String::new(), |mut text, (at, line)| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if at > 0 {
                cells[5] = "NaN";
            }
            text += &cells.join(",");
            text + "\n"
        });
    place.write("no_close.csv", no_close);
    for (file, reason) in [
        ("nosuch.csv", "no such file"),
        ("empty.csv", "empty"),
        ("empty.parquet", "empty"),
        ("header.csv", "empty"),
        ("garbage.parquet", "Parquet"),
        ("short.parquet", "not readable as Parquet"),
        ("cut.parquet", "not readable as Parquet"),
        ("text.csv", "columns"),
        ("nothing", "holds no .csv"),
        ("no_close.csv", "5000 rows with a missing or non-finite price"),
    ] {
        for command in ["backtest zscore-dip", "sweep zscore-dip --trials 10"] {
            let line = format!("{command} --data {file}");
            let said = place.refused(&line, reason);
            assert!(said.stderr.contains(file) || file == "no_close.csv", "{line}: {}", said.stderr);
        }
    }
}

#[test]
fn one_two_and_three_bars_give_a_valid_empty_result() {
    let place = Place::with_bars();
    let text = place.read("lcg.csv");
    for bars in 1..=3 {
        let lines: Vec<&str> = text.lines().take(1 + bars).collect();
        place.write("few.csv", lines.join("\n"));
        let answer = place.json("backtest zscore-dip --data few.csv --report few.html");
        assert_eq!(answer["metrics"]["trades"], 0.0);
        assert_eq!(answer["segments"][0]["bars"], bars);
        assert!(answer["metrics"]["sharpe"].is_null() && answer["objective"]["value"].is_null());
        assert!(answer["trades"].as_array().unwrap().is_empty());
        assert!(place.read("few.html").starts_with("<!doctype html>"));
        let answer = place.json("sweep zscore-dip --data few.csv --trials 10");
        assert_eq!((&answer["trials"], &answer["valid"]), (&10.into(), &0.into()));
    }
}

#[test]
fn a_strategy_that_never_trades_is_a_result() {
    let place = Place::with_bars();
    place.write("never.toml", NEVER);
    let said = place.ok("backtest never.toml --data lcg.csv --trades trades.csv --report never.html");
    assert!(said.stdout.contains("no trade"), "{}", said.stdout);
    assert_eq!(place.read("trades.csv").lines().count(), 1, "only the header");
    let said = place.ok("sweep never.toml --data lcg.csv --trials 20");
    assert!(said.stdout.contains("No trial was valid"), "{}", said.stdout);
    let answer = place.json("sweep never.toml --data lcg.csv --trials 20");
    assert_eq!((&answer["trials"], &answer["valid"]), (&20.into(), &0.into()));
    assert!(answer["best"].as_array().unwrap().is_empty());
}

#[test]
fn a_window_longer_than_the_data_is_noted() {
    let place = Place::with_bars();
    for window in ["6000", "99999999999", "0", "-3"] {
        let said = place.ok(&format!("backtest zscore-dip --data lcg.csv --set window={window} --json"));
        assert!(said.stderr.contains(&format!("window of {window}")), "{}", said.stderr);
        let answer = said.json();
        assert_eq!(answer["metrics"]["trades"], 0.0);
        assert!(answer["notes"].to_string().contains("never available"), "{}", answer["notes"]);
    }
}

#[test]
fn recursive_functions_have_values_whatever_their_window() {
    let place = Place::with_bars();
    place.write(
        "long.toml",
        "[params]\nw = { int = [2, 100000], default = 90000 }\n[long]\nenter = 'close > ema(close, w)'\nmax_hold = 'w'\n",
    );
    let answer = place.json("backtest long.toml --data lcg.csv");
    assert_eq!(answer["metrics"]["trades"], 1.0, "ema has values from its first bar on");
    assert_eq!(answer["notes"].as_array().unwrap().len(), 0, "{}", answer["notes"]);
}

#[test]
fn all_problems_of_a_strategy_file_are_shown_at_once() {
    let place = Place::with_bars();
    place.write(
        "bad.toml",
        "foo = 3\n[params]\nw = { int = [1, 100], defalt = 5 }\nu = { float = [5, 1] }\n[long]\nenter = 'close > emma(close, w)'\nbar = 'x'\n[execution]\nfee_bps = 'x'\n",
    );
    let said = place.refused("backtest bad.toml --data lcg.csv", "bad.toml:1:1: unknown key `foo`");
    for problem in ["did you mean `default`", "the range [5, 1] is empty", "unknown key `bar`"] {
        assert_eq!(said.stderr.matches(problem).count(), 1, "{problem}: {}", said.stderr);
    }
    place.write("empty.toml", "");
    let said = place.refused("sweep empty.toml --data lcg.csv", "no [long] and no [short]");
    assert_eq!(said.stderr.matches("no [long]").count(), 1, "{}", said.stderr);
    place.write("syntax.toml", "[long\nenter = 'close > open'\n");
    place.refused("backtest syntax.toml --data lcg.csv", "syntax.toml:1");
    place.write("name.toml", "[long]\nenter = 'funding > 2'\nmax_hold = '5'\n");
    let said = place.refused("backtest name.toml --data lcg.csv", "unknown name `funding`");
    assert_eq!(said.stderr.matches("unknown name").count(), 1, "{}", said.stderr);
    place.refused("backtest nosuch --data lcg.csv", "there is no strategy `nosuch`");
    place.refused("backtest nosuch.toml --data lcg.csv", "nosuch.toml");
    place.refused("backtest lcg.csv --data lcg.csv", "lcg.csv:1");
    place.refused("strategies nosuch", "zscore-dip");
}

#[test]
fn ten_thousand_parameters_are_no_hurdle() {
    let place = Place::with_bars();
    let params: String = (0..10_000)
        .fold(String::new(), |text, at| text + &format!("p{at} = {{ int = [1, 100], default = 5 }}\n"));
    let rest = "[long]\nenter = 'close > ema(close, p0)'\nmax_hold = 'p9999'\n";
    place.write("many.toml", format!("[params]\n{params}{rest}"));
    let began = Instant::now();
    let answer = place.json("backtest many.toml --data lcg.csv");
    assert_eq!(answer["parameters"].as_object().unwrap().len(), 10_000);
    assert!(answer["metrics"]["trades"].as_f64() > Some(0.0));
    let answer = place.json("sweep many.toml --data lcg.csv --trials 20 --sampler random --out study");
    assert_eq!(answer["trials"], 20);
    place.write("wrong.toml", format!("[params]\n{}{rest}", params.replace("default", "defalt")));
    place.refused("backtest wrong.toml --data lcg.csv", "did you mean `default`");
    // What grows with the square of their number would not end in any time; how fast it is is measured elsewhere.
    assert!(began.elapsed() < Duration::from_secs(600), "{:?}", began.elapsed());
}

#[test]
fn results_that_cannot_be_written_are_refused() {
    let place = Place::with_bars();
    place.write("taken/something", "not a study");
    for (given, reason) in [
        ("backtest zscore-dip --data lcg.csv --trades nosuch/t.csv", "nosuch/t.csv"),
        ("backtest zscore-dip --data lcg.csv --report nosuch/r.html", "nosuch/r.html"),
        ("sweep zscore-dip --trials 9 --data lcg.csv --out taken", "not empty"),
        ("sweep zscore-dip --trials 9 --data lcg.csv --out lcg.csv", "lcg.csv"),
        ("sweep zscore-dip --trials 9 --data lcg.csv --out lcg.csv/sub", "lcg.csv/sub"),
    ] {
        place.refused(given, reason);
    }
    assert_eq!(place.read("taken/something"), "not a study");
}

#[test]
fn nothing_left_to_search_is_said() {
    let place = Place::with_bars();
    let all = "--set window=20 --set threshold=2 --set max_hold=9 --set use_stop=true --set stop_atr=2";
    place.refused(&format!("sweep zscore-dip --data lcg.csv {all}"), "nothing to sweep");
    place.write("none.toml", "[long]\nenter = 'close > open'\nmax_hold = '5'\n");
    place.refused("sweep none.toml --data lcg.csv", "nothing to sweep");
}

//! Which data is used: several files, folders, symbols, zones, larger bars, further columns.

use crate::support::Place;

/// Daily bars from Monday 2020-01-06 on, on all days or on weekdays only.
fn daily(weekends: bool) -> String {
    let mut text = String::from("date,open,high,low,close,volume\n");
    let mut close = 100.0;
    for day in 0..600_u32 {
        if !weekends && day % 7 >= 5 {
            continue;
        }
        let open = close;
        close = 100.0 + f64::from(day * 7919 % 1000) / 50.0;
        let (high, low) = (open.max(close) + 1.0, open.min(close) - 1.0);
        // 2020-01-06T00:00Z.
        let seconds = 1_578_268_800 + i64::from(day) * 86_400;
        text += &format!("{seconds},{open},{high},{low},{close},100\n");
    }
    text
}

#[test]
fn a_year_has_the_days_of_the_symbol_alone_and_beside_others() {
    let place = Place::new();
    place.write("week.csv", daily(false));
    place.write("all.csv", daily(true));
    let line = "backtest zscore-dip --set threshold=1 --data";
    let [week, all] = ["week", "all"].map(|name| place.json(&format!("{line} {name}.csv")));
    assert_eq!([&week["year_days"], &all["year_days"]], [260.0, 365.0]);
    let both = place.json(&format!("{line} week.csv all.csv"));
    assert_eq!(both["year_days"], 365.0, "a pool has the days of both");
    for (alone, name) in [(week, "week"), (all, "all")] {
        let segments = both["segments"].as_array().unwrap();
        let beside = segments.iter().find(|segment| segment["symbol"] == name).unwrap();
        assert_eq!(beside["metrics"], alone["segments"][0]["metrics"], "{name}");
        assert_eq!(beside["year_days"], alone["year_days"], "{name}");
    }
    let chosen = place.json(&format!("{line} week.csv all.csv --symbols week"));
    assert_eq!(chosen["year_days"], 260.0);
}

#[test]
fn a_symbol_that_is_not_traded_is_read() {
    let place = Place::with_bars();
    let text = place.read("lcg.csv");
    place.write("many/A.csv", text.replace("LCG,", "AAA,"));
    place.write("many/B.csv", text.replace("LCG,", "BBB,"));
    let gated = "[long]\nenter = \"of('AAA', close > sma(close, 20)) and close > close[1]\"\nmax_hold = 5\n";
    place.write("gated.toml", gated);
    place.write("plain.toml", gated.replace("of('AAA', close > sma(close, 20))", "close > sma(close, 20)"));
    let segment = |line: &str| {
        let answer = place.json(&format!("backtest {line}"));
        let segments = answer["segments"].as_array().unwrap();
        assert_eq!(segments.len(), 1, "{line}");
        (segments[0]["symbol"].clone(), segments[0]["metrics"].clone())
    };
    // Both symbols have the same bars.
    let (symbol, metrics) = segment("gated.toml --data many --trade BBB");
    assert_eq!(symbol, "BBB");
    assert_eq!(metrics, segment("plain.toml --data many --symbols BBB").1);
    place.refused("backtest gated.toml --data many --symbols BBB", "there is no symbol 'AAA' in the data");
}

#[test]
fn files_folders_and_symbols_are_chosen() {
    let place = Place::with_bars();
    let text = place.read("lcg.csv");
    place.write("many/A.csv", text.replace("LCG,", "AAA,"));
    place.write("many/B.csv", text.replace("LCG,", "BBB,"));
    place.write("many/notes.txt", "not data");
    let symbols = |line: &str| -> Vec<String> {
        let answer = place.json(&format!("backtest zscore-dip --data {line}"));
        let segments = answer["segments"].as_array().unwrap();
        segments.iter().map(|segment| segment["symbol"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(symbols("many"), ["AAA", "BBB"]);
    assert_eq!(symbols("many/B.csv lcg.csv"), ["BBB", "LCG"]);
    assert_eq!(symbols("many --symbols BBB"), ["BBB"]);
    assert_eq!(symbols("many lcg.csv --symbols ?BB,L*"), ["BBB", "LCG"]);
    assert_eq!(symbols("many lcg.csv --trade *B,LCG"), ["BBB", "LCG"]);
    place.refused(
        "backtest zscore-dip --data many --trade C*",
        "--trade C*: no symbol of the data fits; it has AAA, BBB",
    );
    place.refused("backtest zscore-dip --data many --symbols BBB,CCC", "symbol \"CCC\" is not in the data");
    let bare = text.replace("LCG,", "").replace("symbol,", "");
    place.write("one/BTC.csv", &bare);
    place.write("two/BTC.csv", &bare);
    place.refused("backtest zscore-dip --data one two", "would both be symbol \"BTC\"");
}

#[test]
fn dumps_are_joined_and_foreign_files_of_a_folder_left_out() {
    let place = Place::with_bars();
    let text = place.read("lcg.csv").replace("LCG,", "").replace("symbol,", "");
    let (header, rows) = text.split_once('\n').unwrap();
    let at = rows.match_indices('\n').nth(2_000).unwrap().0 + 1;
    place.write("dumps/LCG-15m-2024-01.csv", format!("{header}\n{}", &rows[..at]));
    place.write("dumps/LCG-15m-2024-02.csv", format!("{header}\n{}", &rows[at..]));
    place.write("dumps/list.csv", "name,sector\nLCG,none\n");
    let line = "backtest zscore-dip --data";
    let whole = place.json(&format!("{line} lcg.csv"));
    assert_eq!(place.json(&format!("{line} dumps"))["trades"], whole["trades"]);
    let said = place.ok(&format!("{line} dumps"));
    for part in ["left out dumps/list.csv", "LCG: 2 files joined end to end"] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    place.refused(&format!("{line} dumps --strict"), "dumps/list.csv");
    let shown = place.ok("data inspect dumps").stdout;
    let became = |file: &str| {
        let line = shown.lines().find(|line| line.trim_start().starts_with(file)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(became("dumps/LCG-15m-2024-01.csv"), "csv 2,001 LCG", "{shown}");
    assert_eq!(became("dumps/list.csv"), "– – left out", "{shown}");

    place.write("a.csv", &text);
    assert_eq!(place.json(&format!("{line} a.csv --name LCG"))["segments"], whole["segments"]);
    let named = place.json(&format!("{line} a.csv --name-from ^(.)"));
    assert_eq!(named["segments"][0]["symbol"], "a");
    place.refused(&format!("{line} lcg.csv --name X"), "every file has a symbol column");
    place.refused(&format!("{line} a.csv --name-from ("), "--name-from");
    place.refused(&format!("{line} a.csv --name X --name-from Y"), "cannot be used with");
    place.refused("backtest zscore-dip --strict", "--strict needs --data");

    let sweep = "sweep zscore-dip --data a.csv --trials 64 --sampler random --device cpu --out study";
    place.ok(&format!("{sweep} --name LCG"));
    assert!(place.read("study/study.toml").contains("name = \"LCG\""), "{}", place.read("study/study.toml"));
    place.ok("study show study");
}

#[test]
fn one_symbol_in_two_timeframes_is_refused() {
    let place = Place::with_bars();
    place.ok("data convert lcg.csv --resample 1h --out hours.csv");
    let said = place.line("backtest zscore-dip --data lcg.csv hours.csv");
    said.is_refusal("two timeframes", "LCG");
}

#[test]
fn a_strategy_behind_data_is_pointed_out() {
    let place = Place::with_bars();
    place.refused("sweep --data lcg.csv ema-cross", "before --data");
    place.write("own.toml", "[long]\nenter = 'close > open'\nmax_hold = '5'\n");
    place.refused("backtest --data lcg.csv own.toml", "STRATEGY");
    place.refused("sweep --data lcg.csv own.toml", "before --data");
}

#[test]
fn choices_of_data_are_never_ignored() {
    let place = Place::new();
    let said = place.line("sweep --trials 20 --symbols NOSUCH");
    said.is_refusal("--symbols without --data", "--symbols");
    let said = place.line("backtest zscore-dip --resample 1h");
    assert!(said.code == Some(2) || said.stdout.contains("1h"), "{}{}", said.stdout, said.stderr);
    let said = place.line("backtest zscore-dip --symbols SYN1 --json");
    assert!(said.code == Some(2) || said.json()["segments"].as_array().unwrap().len() == 1);
}

#[test]
fn bars_are_resampled_and_zones_resolved() {
    let place = Place::with_bars();
    let hours = place.json("backtest zscore-dip --data lcg.csv --resample 1h");
    assert_eq!(hours["segments"][0]["bars"], 1250);
    place.refused("backtest zscore-dip --data lcg.csv --resample 7m", "not a whole multiple");
    place.refused("backtest zscore-dip --data lcg.csv --resample foo", "\"foo\" is not a timeframe");
    place.refused("backtest zscore-dip --data lcg.csv --timezone Mars/Base", "Mars/Base");

    let naive = place.read("lcg.csv").replace('Z', "").replace("LCG,", "").replace("symbol,", "");
    place.write("naive.csv", naive);
    let start = |zone: &str| {
        let answer = place.json(&format!("backtest zscore-dip --data naive.csv {zone}"));
        answer["segments"][0]["from"].as_str().unwrap().to_string()
    };
    assert_eq!(start(""), "2024-01-01T00:00:00Z");
    assert_eq!(start("--timezone America/New_York"), "2024-01-01T05:00:00Z");
    assert_eq!(start("--timezone +02:00"), "2023-12-31T22:00:00Z");
}

#[test]
fn from_and_to_bound_the_trades_but_not_the_indicators() {
    let place = Place::with_bars();
    let part = place.json("backtest zscore-dip --data lcg.csv --from 2024-01-10 --to 2024-01-20T12:00Z");
    assert_eq!(part["segments"][0]["from"], "2024-01-10T00:00:00Z");
    assert_eq!(part["segments"][0]["to"], "2024-01-20T11:45:00Z");
    let first = place
        .json("backtest zscore-dip --data lcg.csv --set window=500 --set threshold=0.5 --from 2024-01-10");
    let entry = first["trades"][0]["entry_idx"].as_u64().unwrap();
    assert!((864..1364).contains(&entry), "a window of 500 bars is warm at once: {entry}");
}

#[test]
fn further_columns_are_series() {
    let place = Place::with_bars();
    let with_column = |cell: fn(usize) -> String| {
        let text = place.read("lcg.csv");
        let lines = text.lines().enumerate().map(|(at, line)| match at {
            0 => format!("{line},Funding Rate"),
            at => format!("{line},{}", cell(at)),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    place.write("own.toml", "[long]\nenter = 'funding_rate > 2'\nmax_hold = '3'\n");
    place.write("numbers.csv", with_column(|at| (at % 100 / 97).to_string().replace('1', "2.5")));
    let answer = place.json("backtest own.toml --data numbers.csv");
    assert_eq!(answer["trades"][0]["signal_idx"], 96, "{}", answer["trades"][0]);
    place.refused("backtest own.toml --data lcg.csv", "unknown name `funding_rate`");
    // All missing: either a series that is never available, or a refusal that names the column.
    place.write("missing.csv", with_column(|_| "NaN".into()));
    let said = place.line("backtest own.toml --data missing.csv");
    assert!(matches!(said.code, Some(0 | 2)), "{}", said.stderr);
    assert!(
        said.stderr.contains("funding") && said.stderr.contains("left out") || said.code == Some(0),
        "{}",
        said.stderr
    );
}

#[test]
fn joined_columns_are_series_and_a_study_keeps_them() {
    let place = Place::with_bars();
    // The first bar opens at 00:00 and closes at 00:15.
    place.write("scores.csv", "time,Score\n2024-01-01T10:00Z,3\n2024-01-01T10:00:01Z,1\n2024-01-02,3\n");
    place.write("own.toml", "[long]\nenter = 'ml_score > 2'\nmax_hold = '3'\n");
    let line = "backtest own.toml --data lcg.csv --join scores.csv --prefix ml_";
    let answer = place.json(&format!("{line} --max-age 15m"));
    let signals: Vec<u64> = answer["trades"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trade| trade["signal_idx"].as_u64().unwrap())
        .collect();
    assert_eq!(signals, [39, 95], "10:00 is the close of bar 39, midnight that of bar 95");
    let said = place.ok(&format!("{line} --max-age 15m"));
    assert!(said.stderr.contains("joined scores.csv (3 rows): ml_score; 39 bars before"), "{}", said.stderr);
    let opens = place.json(&format!("{line} --max-age 14m --as-of open"));
    assert_eq!(opens["trades"][0]["signal_idx"], 40);
    place.refused("backtest own.toml --data lcg.csv", "unknown name `ml_score`");
    place.refused("backtest own.toml --data lcg.csv --max-age 2h", "--join");
    place.refused("backtest own.toml --join scores.csv", "--join needs --data");
    place.refused("scan lcg.csv --join scores.csv", "--join does not apply");
    place.refused(&format!("{line} --max-age soon"), "--max-age");
    let sweep = "sweep zscore-dip --data lcg.csv --join scores.csv --prefix ml_ --trials 64 --sampler random --device cpu --out study";
    place.ok(sweep);
    assert!(
        place.read("study/study.toml").contains("prefix = \"ml_\""),
        "{}",
        place.read("study/study.toml")
    );
    place.ok("study show study");
}

/// The bars of `lcg.csv` with their ends for times, written as `end` does.
fn with_ends(text: &str, end: impl Fn(i64) -> String) -> String {
    let mut lines = vec!["symbol,time,open,high,low,close,volume".to_string()];
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let open_ms = tidemill_market::timestamp::parse_ms(cells[1]).unwrap();
        lines.push(format!("{},{},{}", cells[0], end(open_ms + 900_000), cells[2..].join(",")));
    }
    lines.join("\n")
}

#[test]
fn ends_of_bars_give_the_results_of_opens() {
    let place = Place::with_bars();
    let text = place.read("lcg.csv");
    place.write("ends.csv", with_ends(&text, |end| end.to_string()));
    place.write("last.csv", with_ends(&text, |end| (end - 1).to_string()));
    let line = |rest: &str| place.json(&format!("backtest zscore-dip --data {rest}"));
    let opens = line("lcg.csv");
    for file in ["ends.csv", "last.csv"] {
        let ends = line(&format!("{file} --stamp close"));
        assert_eq!(ends["trades"], opens["trades"], "{file}");
        assert_eq!(ends["segments"], opens["segments"], "{file}");
    }
    let late = line("ends.csv");
    assert_eq!(late["segments"][0]["from"], "2024-01-01T00:15:00Z");
    assert_eq!(late, line("ends.csv --stamp open"));
    assert_eq!(
        line("ends.csv --stamp close --resample 1h")["trades"],
        line("lcg.csv --resample 1h")["trades"]
    );
    let said = place.ok("backtest zscore-dip --data ends.csv --stamp close");
    assert!(said.stderr.contains("ends of bars (--stamp close)"), "{}", said.stderr);

    place.write("tidemill.toml", "[data]\nfiles = ['ends.csv']\nstamp = 'close'\n");
    assert_eq!(place.json("backtest zscore-dip")["trades"], opens["trades"]);
    let flag_wins = place.json("backtest zscore-dip --stamp open");
    assert_eq!(flag_wins["segments"][0]["from"], "2024-01-01T00:15:00Z");
    let scanned = |line: &str| place.json(&format!("scan {line} --min-signal 0"))["symbols"].clone();
    assert_eq!(scanned(""), scanned("lcg.csv --stamp open"), "the scanner reads the same settings");
    assert_ne!(scanned("--stamp open"), scanned("lcg.csv --stamp open"), "its times are those of the bars");
    place.write("tidemill.toml", "[data]\nstamp = 'end'\n");
    place.refused("backtest zscore-dip --data ends.csv", "line 2");
    place.write("tidemill.toml", "");

    place.refused("backtest zscore-dip --data ends.csv --stamp end", "[possible values: open, close]");
    place.refused("backtest zscore-dip --stamp close", "--stamp needs --data");
    place.refused("scan --stamp close", "--stamp needs DATA");
    place.refused("backtest zscore-dip --data open.csv --stamp close", "no such file");
    place.write("open.csv", text.replacen("timestamp", "open_time", 1));
    place.refused("backtest zscore-dip --data open.csv --stamp close", "calls them open times");
}

#[test]
fn a_study_keeps_what_its_times_are() {
    let place = Place::with_bars();
    place.write("ends.csv", with_ends(&place.read("lcg.csv"), |end| end.to_string()));
    let line =
        "sweep zscore-dip --data ends.csv --trials 64 --seed 3 --sampler random --device cpu --out study";
    place.ok(&format!("{line} --stamp close"));
    assert!(
        place.read("study/study.toml").contains("stamp = \"close\""),
        "{}",
        place.read("study/study.toml")
    );
    let said = place.refused(line, "data_hash");
    assert!(said.stderr.contains("study"), "{}", said.stderr);
    place.ok(&format!("{line} --stamp close"));
}

#[test]
fn doubts_about_the_data_are_told_with_every_result() {
    let place = Place::with_bars();
    let mut text = String::from("date,open,high,low,close,volume\n");
    for day in 0..600_i64 {
        let (price, volume) = if day < 300 { (400.0, 1_000) } else { (100.0, 4_000) };
        let seconds = 1_578_268_800 + day * 86_400;
        let price = if day == 0 { 70.0 } else { price };
        text += &format!("{seconds},{price},{price},{price},{price},{volume}\n");
    }
    place.write("split.csv", text);
    let said = place.ok("backtest zscore-dip --data split.csv");
    assert!(said.stderr.contains("suspected splits"), "{}", said.stderr);
    assert!(said.stderr.contains("split.csv:302 split 2020-11-01"), "{}", said.stderr);
    assert!(said.stderr.contains("more than 5×"), "{}", said.stderr);
    let report = place.json("data inspect split.csv");
    let kinds: Vec<&str> =
        report["issues"].as_array().unwrap().iter().map(|issue| issue["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["suspected_split", "listing_jump"]);
    assert_eq!(report["symbols"][0]["suspected_splits"], 1);
    assert_eq!(report["symbols"][0]["listing_jump"], true);
    assert!(place.ok("data inspect split.csv").stdout.contains("suspected splits"));

    place.write("far.csv", place.read("lcg.csv").replace("2024-", "2924-"));
    let said = place.ok("backtest zscore-dip --data far.csv");
    assert!(said.stderr.contains("LCG: the last bar opens in the future (2924-"), "{}", said.stderr);
    assert!(!place.ok("backtest zscore-dip --data lcg.csv").stderr.contains("future"));

    let rows: String = (1..9).map(|day| format!("2024-01-0{day},5,6,6,7,4,5,5,6,9,9\n")).collect();
    let header = "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\nTicker,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT\nDate,,,,,,,,,,\n";
    place.write("two.csv", format!("{header}{rows}"));
    let report = place.json("data inspect two.csv");
    assert_eq!([&report["symbols"][0]["symbol"], &report["symbols"][1]["symbol"]], ["AAPL", "MSFT"]);
    place.write(
        "pairs.csv",
        format!("Date,{}\n{rows}", "Close_A,Close_B,High_A,High_B,Low_A,Low_B,Open_A,Open_B,V_A,V_B"),
    );
    for line in ["backtest zscore-dip --data pairs.csv", "data inspect pairs.csv", "scan pairs.csv"] {
        place.refused(line, "several instruments side by side: A, B");
    }
}

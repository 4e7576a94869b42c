//! What the commands print on terminals of different widths, seen in a terminal emulator.
//!
//! The pictures are in `tests/cli/terminal/`; `TIDEMILL_BLESS=1` renews them.

use std::num::NonZero;
use std::path::Path;

use crate::support::{CommandOutput, Place, ranked};

const WIDTHS: [u16; 5] = [60, 80, 100, 130, 200];

/// Runs a line as though on a terminal of this width.
fn at_width(place: &Place, line: &str, width: u16) -> CommandOutput {
    let mut command = place.command(&line.split_whitespace().collect::<Vec<_>>());
    let said = CommandOutput::new(command.env("COLUMNS", width.to_string()).output().unwrap());
    assert_eq!(said.code, Some(0), "{line}: {}", said.stderr);
    said
}

/// What an emulator shows of a text, row by row.
fn rows(text: &str, width: u16) -> Vec<String> {
    let size = |cells: u16| NonZero::new(cells).unwrap();
    let n_rows = size(u16::try_from(4 * text.lines().count() + 10).unwrap());
    let mut parser = vt100::Parser::new(n_rows, size(width), 0);
    parser.process(text.replace('\n', "\r\n").as_bytes());
    parser.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect()
}

/// The tables of a text: the lines around each rule, up to the next blank one.
fn tables(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &&str| line.starts_with("──");
    let mut found = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| is_rule(line)) {
        let from = lines[..at].iter().rposition(|line| line.is_empty()).map_or(0, |blank| blank + 1);
        let to = lines[at..]
            .iter()
            .position(|line| line.is_empty() || line.starts_with('('))
            .unwrap_or(lines.len() - at);
        found.push(lines[from..at + to].join("\n"));
    }
    found
}

/// Compares the picture of a command at all widths with the kept one. No line of a table may be wider than the terminal.
fn assert_pictured(place: &Place, name: &str, line: &str) {
    let mut picture = String::new();
    for width in WIDTHS {
        let said = at_width(place, line, width);
        let tables = tables(&said.stdout);
        assert!(!tables.is_empty(), "{line}: {}", said.stdout);
        for table in &tables {
            let shown = rows(table, width);
            let shown: Vec<&str> = shown.iter().map(String::as_str).take(table.lines().count()).collect();
            let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
            assert_eq!(shown, lines, "a line of {line} is wider than {width}");
        }
        let is_lasting = |row: &String| !row.starts_with("version ");
        let shown = rows(&said.stdout, width).into_iter().filter(is_lasting).collect::<Vec<_>>().join("\n");
        picture += &format!("=== {width} columns: tidemill {line}\n{}\n\n", shown.trim_end());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/terminal/{name}.txt"));
    if std::env::var_os("TIDEMILL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &picture).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(kept == picture, "{} differs; TIDEMILL_BLESS=1 renews it:\n{picture}", path.display());
}

#[test]
fn tables_fit_terminals_of_all_widths() {
    let place = Place::with_bars();
    let split = "--split 0.6 --holdout 2024-02-10";
    let sweep =
        format!("sweep zscore-dip --data lcg.csv --trials 200 --top 4 --device cpu --threads 1 {split}");
    assert_pictured(&place, "sweep", &sweep);
    place.ok(&format!("{sweep} --out runs/a-study-with-a-long-name"));
    assert_pictured(&place, "study-show", "study show runs/a-study-with-a-long-name --top 4");
    assert_pictured(&place, "study-list", "study list runs");
    assert_pictured(&place, "strategies", "strategies");
    assert_pictured(&place, "data-inspect", "data inspect lcg.csv");
    assert_pictured(&place, "backtest", "backtest zscore-dip --data lcg.csv --split 0.6 --folds 3");
    let walk = "walkforward zscore-dip --data lcg.csv --train 20d --test 10d --trials 40 --device cpu";
    assert_pictured(&place, "walkforward", walk);
    assert_pictured(&place, "scan", "scan lcg.csv --device cpu");
}

#[test]
fn columns_are_chosen_by_name_before_the_work_begins() {
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 60 --split 0.6 --top 2 --verdict off";
    let said = place.ok(&format!("{line} --columns trial,sqn,oos_sharpe,window"));
    let header: Vec<&str> = ranked(&said.stdout).lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["#", "SQN", "OOS", "sharpe", "window"]);
    let said =
        place.refused(&format!("{line} --columns trial,sharp"), "--columns sharp: there is no such column");
    assert!(
        said.stderr.contains("did you mean `sharpe`?") && !said.stderr.contains("sweeping"),
        "{}",
        said.stderr
    );
    place.refused(&format!("{line} --columns nothing"), "profit_factor");
    place.ok(&format!("{line} --out runs/a"));
    for command in ["study show runs/a", "study best runs/a --top 3"] {
        let said = place.ok(&format!("{command} --columns window,trial"));
        assert!(said.stdout.contains("window  trial\n"), "{}", said.stdout);
        place.refused(&format!("{command} --columns windo"), "did you mean `window`?");
    }
    let said = place.ok("study list runs --columns best,study");
    assert_eq!(said.stdout.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(), ["best", "study"]);
    let walk = "walkforward zscore-dip --data lcg.csv --train 20d --test 10d --trials 10";
    place.refused(&format!("{walk} --columns windos"), "did you mean `window`?");
    place.refused("scan lcg.csv --columns sigal", "did you mean `signal`?");
}

#[test]
fn colours_are_shown_where_they_are_asked_for() {
    let place = Place::with_bars();
    let run = |line: &str, envs: &[(&str, &str)]| {
        let mut command = place.command(&line.split_whitespace().collect::<Vec<_>>());
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
            command.env_remove(name);
        }
        CommandOutput::new(command.envs(envs.iter().copied()).output().unwrap())
    };
    let is_coloured = |said: &CommandOutput| said.stdout.contains('\u{1b}');
    let line = "backtest zscore-dip --data lcg.csv";
    assert!(!is_coloured(&run(line, &[])), "a pipe is no terminal");
    assert!(is_coloured(&run(line, &[("CLICOLOR_FORCE", "1")])));
    assert!(is_coloured(&run(&format!("{line} --color always"), &[])));
    assert!(is_coloured(&run(&format!("{line} --color always"), &[("NO_COLOR", "1")])), "the flag decides");
    assert!(!is_coloured(&run(&format!("--color never {line}"), &[("CLICOLOR_FORCE", "1")])));
    let always = run(&format!("{line} --color always --json"), &[]);
    assert_eq!(always.stdout, run(&format!("{line} --json"), &[]).stdout, "JSON has no colours");
    let error = run("backtest nosuch --color always", &[]);
    assert!(error.stderr.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m"), "{:?}", error.stderr);
    assert!(run("backtest nosuch", &[]).stderr.starts_with("error: "));
    assert_eq!(run(&format!("{line} --color perhaps"), &[]).code, Some(2));
}

#[test]
fn details_of_every_batch_are_printed_with_v_alone_also_without_a_terminal() {
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 96 --batch 16 --sampler random --verdict off";
    let quiet = place.ok(line);
    assert!(!quiet.stderr.contains("ask=") && !quiet.stderr.contains("% of the time"), "{}", quiet.stderr);
    for verbose in [format!("{line} -v"), format!("--verbose {line}")] {
        let said = place.ok(&verbose);
        let is_batch = |line: &&str| {
            ["ask=", " gpu=", " tell=", " overlap=", " idle="].iter().all(|part| line.contains(part))
        };
        let batches: Vec<&str> = said.stderr.lines().filter(is_batch).collect();
        assert_eq!(batches.len(), 6, "{}", said.stderr);
        for (at, batch) in batches.iter().enumerate() {
            assert!(batch.starts_with(&format!("batch_{at}: ask=")), "{batch}");
        }
        assert!(said.stderr.contains("% of the time"), "{}", said.stderr);
        assert_eq!(said.stdout, quiet.stdout);
    }
    let said = place.ok("walkforward zscore-dip --data lcg.csv --train 20d --test 10d --trials 10 -v");
    assert!(said.stderr.contains("window_1.batch_0: ask="), "{}", said.stderr);
}

#[test]
fn numbers_are_written_as_people_write_them() {
    let place = Place::with_bars();
    for (text, trials) in [("0.1k", 100), ("1e2", 100), ("1_00", 100), ("120", 120)] {
        let answer = place.json(&format!("sweep zscore-dip --data lcg.csv --verdict off --trials {text}"));
        assert_eq!(answer["trials"], trials, "{text}");
    }
    place.refused("sweep --trials 1.5", "20000, 10k, 2M or 1e6");
    let holdout = |text: &str| {
        let line = format!("sweep zscore-dip --data lcg.csv --trials 40 --seed 4 --holdout {text}");
        place.json(&line)["holding_up"].clone()
    };
    assert_eq!(holdout("2024-02-10"), holdout("2024-02-10.."));
    assert!(!holdout("2024-02-10").is_null());
    place.refused("sweep zscore-dip --data lcg.csv --holdout 0.2", "write 2024-01-01 or");
    place.ok("data generate --timeframe 1d --bars 900 --out days.csv");
    let walk = |train: &str| {
        let line = format!("walkforward zscore-dip --data days.csv --trials 10 --train {train} --test 60d");
        place.json(&line)["walk_forward"].clone()
    };
    assert_eq!(walk("1y"), walk("365d"));
    place.refused("walkforward zscore-dip --train 6M --test 30d", "is not a length of time");
}

#[test]
fn near_names_are_suggested() {
    let place = Place::with_bars();
    for (line, hint) in [
        ("backtest ema_cross", "did you mean `ema-cross`?"),
        ("sweep ema_cross.toml", "did you mean `ema-cross`?"),
        ("strategies ema_cross", "did you mean `ema-cross`?"),
        ("backtest ema-cross --objective sharpe_ratio", "did you mean `sharpe`?"),
        ("sweep ema-cross --objective winrate", "did you mean `win_rate`?"),
        ("sweep ema-cross --objective minimize(max_drawdown)", "write a minus sign"),
        ("sweeep", "sweep"),
    ] {
        place.refused(line, hint);
    }
    let strategy = |enter: &str, objective: &str| {
        format!(
            "[params]\nw = {{ int = [5, 60], default = 20 }}\n[long]\nenter = \"{enter}\"\nmax_hold = 5\n{objective}\n"
        )
    };
    for (enter, objective, hint) in [
        ("crossover(close, sma(close, w))", "", "crosses_above("),
        ("crossunder(close, sma(close, w))", "", "crosses_below("),
        ("close > shift(close, 1)", "", "`x[1]`"),
        ("close % 2 > 0", "", "0.02 for 2 %"),
        ("close > 1", "[objective]\nminimize = \"max_drawdown\"", "maximize = \"-(…)\""),
        ("close > 1", "[objective]\nmaximize = \"sharpe_ratio\"", "did you mean `sharpe`?"),
        ("close > 1", "[execution]\nfee = 5", "fee_bps"),
    ] {
        place.write("mine.toml", strategy(enter, objective));
        place.refused("backtest mine.toml --data lcg.csv", hint);
    }
}

#[test]
fn a_sweep_without_a_valid_trial_tells_why_and_how_near_it_came() {
    let place = Place::with_bars();
    let strategy = |enter: &str, require: &str| {
        format!(
            "[params]\nw = {{ int = [5, 60], default = 20 }}\n[long]\nenter = \"{enter}\"\nmax_hold = 5\n[objective]\nmaximize = \"sharpe\"\nrequire = \"{require}\"\n"
        )
    };
    place.write("never.toml", strategy("close > 1000000 + w", "trades >= 30"));
    let said = place.ok("sweep never.toml --data lcg.csv --trials 20");
    assert!(
        said.stdout.starts_with("No trial was valid. Of 20 trials\n          20 made no trade\n"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("hint: `enter` was never true"), "{}", said.stdout);
    place.write(
        "strict.toml",
        strategy("crosses_above(close, sma(close, w))", "trades >= 100000 and max_drawdown > -2"),
    );
    let said = place.ok("sweep strict.toml --data lcg.csv --trials 20 --sampler grid");
    let answer = place.json("sweep strict.toml --data lcg.csv --trials 20 --sampler grid --objective trades");
    assert_eq!(answer["valid"], 0);
    place.write("loose.toml", strategy("crosses_above(close, sma(close, w))", "trades >= 0"));
    let best = place.json("sweep loose.toml --data lcg.csv --trials 20 --sampler grid --objective trades");
    let most = best["best"][0]["objective"].as_f64().unwrap();
    let wanted = format!("20 traded and did not meet `trades >= 100000`; at best {most}\n");
    assert!(said.stdout.contains(&wanted), "{wanted} in {}", said.stdout);
    assert!(!said.stdout.contains("max_drawdown"), "all trials meet it: {}", said.stdout);
    assert!(said.stdout.contains("hint: ask for less in `require`"), "{}", said.stdout);
}

#[test]
fn shells_and_man_know_the_commands() {
    let place = Place::new();
    for (shell, part) in [
        ("bash", "complete -F _tidemill"),
        ("zsh", "#compdef tidemill"),
        ("fish", "complete -c tidemill"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion:arg-completer[tidemill]"),
    ] {
        let said = place.ok(&format!("completions {shell}"));
        assert!(said.stdout.contains(part), "{shell}");
        assert!(said.stdout.contains("walkforward") && said.stdout.contains("holdout"), "{shell}");
    }
    place.refused("completions sh", "bash");
    let page = place.ok("man").stdout;
    assert!(page.starts_with(".ie ") && page.contains(".TH tidemill 1"), "{page}");
    let page = place.ok("man study best").stdout;
    assert!(page.contains("study best") && page.contains("\\-\\-columns"), "{page}");
    place.refused("man nothing", "there is no command `nothing`");
    place.ok("man --out pages");
    let pages: Vec<_> = std::fs::read_dir(place.path("pages")).unwrap().collect();
    assert!(pages.len() > 20 && place.read("pages/tidemill-study-best.1").contains("columns"), "{pages:?}");
}

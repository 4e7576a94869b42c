//! `backtest --trial`: every command that the program prints, pasted as it is, gives the figure beside it.

use serde_json::Value;

use crate::dash::Dash;
use crate::support::{CommandOutput, Place};

/// Settings that a command without the study would have to repeat: parts, costs, objective, a benchmark, larger bars, a fixed parameter.
const SWEEP: &str = "sweep mine.toml --data bars.csv --resample 8h --trials 300 --split 0.7 --holdout 2022-06-01 --embargo 2d \
                     --set fee_bps=7 --set max_hold=11 --objective sortino --benchmark index.csv --out";

fn place() -> Place {
    let place = Place::new();
    place.ok("data generate --bars 6000 --timeframe 4h --seed 5 --out bars.csv");
    place.ok("data generate --bars 6000 --timeframe 4h --seed 7 --out index.csv");
    let text = place.ok("strategies zscore-dip").stdout;
    place.write("mine.toml", text.replace("trades >= 100", "trades >= 20"));
    // Settings of the folder decide a sweep, and must not be taken twice, or from another folder.
    place.write("tidemill.toml", "[execution]\nslippage_bps = 4.0\n");
    place
}

/// Runs a line as a shell does, in another folder.
fn pasted(place: &Place, folder: &str, line: &str) -> CommandOutput {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tidemill"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(place.path(folder))
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .output()
        .unwrap();
    CommandOutput::new(output)
}

/// The command that stands in a line of a text, behind this beginning.
fn command(text: &str) -> String {
    let line = text.lines().find_map(|line| line.split_once("tidemill backtest --trial "));
    let (_, rest) = line.unwrap_or_else(|| panic!("no command in: {text}"));
    format!("tidemill backtest --trial {rest}")
}

#[cfg(unix)]
#[test]
fn every_printed_command_gives_the_figures_beside_it() {
    let place = place();
    let swept = place.ok(&format!("{SWEEP} runs/it's"));
    let answer = place.json(&format!("{SWEEP} runs/it's"));
    let winner = &answer["holding_up"]["winners"][0];
    let check = |said: CommandOutput, expected: &Value, parts: Option<&Value>| {
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(!said.stderr.contains("the study, made by"), "{}", said.stderr);
        let found = said.json();
        assert_eq!(found["objective"]["value"], expected["objective"]);
        assert_eq!(found["parameters"], expected["parameters"]);
        for (name, value) in expected["metrics"].as_object().unwrap() {
            assert_eq!(found["parts"]["in_sample"]["metrics"][name], *value, "{name}");
        }
        if let Some(parts) = parts {
            assert_eq!(found["parts"], *parts, "every figure on every part");
        }
    };
    // The sweep.
    let line = command(&swept.stderr);
    assert!(line.ends_with(&format!(r"--trial 'runs/it'\''s:{}'", answer["best"][0]["trial"])), "{line}");
    check(pasted(&place, ".", &format!("{line} --json")), &answer["best"][0], Some(&winner["parts"]));
    // `study best`, for the best trial and for each of several.
    let said = place.ok("study best runs/it's");
    let best = place.json("study best runs/it's --top 4");
    let line = command(&said.stderr);
    check(pasted(&place, ".", &format!("{line} --json")), &best["best"][0], best["best"][0].get("parts"));
    for trial in best["best"].as_array().unwrap() {
        let line = trial["command"].as_str().unwrap();
        check(pasted(&place, ".", &format!("{line} --json")), trial, trial.get("parts"));
    }
    // The dashboard, whose reader may be anywhere, also where other settings are.
    let dash = Dash::start(&place, &["runs"]);
    place
        .write("elsewhere/tidemill.toml", "[execution]\nfee_bps = 99.0\n[data]\nfiles = [\"nothing.csv\"]\n");
    for trial in best["best"].as_array().unwrap().iter().take(2) {
        let told = dash.ok(&format!("/api/runs/it's/trials/{}", trial["trial"]));
        let line = told["command"].as_str().unwrap();
        check(pasted(&place, "elsewhere", &format!("{line} --json")), trial, trial.get("parts"));
    }
}

#[test]
fn a_trial_brings_its_settings_and_takes_no_others() {
    let place = place();
    place.ok(&format!("{SWEEP} study"));
    for flag in [
        "--set fast=3",
        "--split 0.5",
        "--profile a",
        "--objective sharpe",
        "--from 2020-01-01",
        "--resample 1d",
    ] {
        place.refused(&format!("backtest --trial study:3 {flag}"), "cannot be used with");
    }
    place.refused("backtest mine.toml --trial study:3", "cannot be used with");
    place.refused("backtest", "required");
    place.refused("backtest --trial study", "write the study folder and the number of the trial");
    place.refused("backtest --trial nowhere:3", "there is no folder nowhere");
    place.refused("backtest --trial study:300", "the study in study has no trial 300: it has 300 trials");

    let found = place.json("backtest --trial study:17");
    std::fs::rename(place.path("bars.csv"), place.path("moved.csv")).unwrap();
    place.refused("backtest --trial study:17", "bars.csv of the study in study is not there any more");
    place.refused("backtest --trial study:17 --data index.csv", "the data is not that of the study in study");
    assert_eq!(place.json("backtest --trial study:17 --data moved.csv")["parts"], found["parts"]);
    // Neither the strategy file nor the settings are needed any more.
    std::fs::remove_file(place.path("mine.toml")).unwrap();
    std::fs::remove_file(place.path("tidemill.toml")).unwrap();
    place.ok("backtest --trial study:17 --data moved.csv --report page.html --trades trades.csv");
    assert!(place.read("trades.csv").lines().count() > 5);
    let other = place.json("backtest --trial study:17 --data moved.csv --benchmark SYN0");
    assert_eq!(other["parts"]["benchmark"], "SYN0");
}

#[test]
fn the_equity_of_a_trial_is_a_file_that_other_tools_read() {
    let place = place();
    place.ok(&format!("{SWEEP} study"));
    let found = place.json("backtest --trial study:17 --equity days.csv");
    let text = place.read("days.csv");
    let (header, rows) = text.split_once('\n').unwrap();
    assert_eq!(header, "date,part,equity,return,exposure,benchmark,benchmark_return");
    let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
    let whole = &found["parts"]["whole"];
    assert_eq!(rows.len() as u64, whole["days"].as_u64().unwrap());
    assert_eq!(
        (rows[0][0], rows[rows.len() - 1][0]),
        (whole["from"].as_str().unwrap(), whole["to"].as_str().unwrap())
    );
    let last: f64 = rows[rows.len() - 1][2].parse().unwrap();
    let total = whole["metrics"]["total_return"].as_f64().unwrap();
    assert!((last - 1.0 - total).abs() < 1e-12, "{last} {total}");
    let parts: std::collections::BTreeSet<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(parts.into_iter().collect::<Vec<_>>(), ["holdout", "in_sample", "out_of_sample"]);
    place.ok("backtest --trial study:17 --equity days.parquet");
    assert!(std::fs::read(place.path("days.parquet")).unwrap().starts_with(b"PAR1"));
    place.refused("backtest --trial study:17 --equity days.xlsx", "days.xlsx");
    place.refused("backtest --trial study:17 --equity no/where.csv", "no/where.csv");
}

#[test]
fn a_study_whose_figures_cannot_be_had_again_says_so() {
    let place = place();
    place.ok(&format!("{SWEEP} study"));
    // As if an earlier version had evaluated it with other costs.
    let header = place.read("study/study.toml");
    assert!(header.contains("fee_bps = 7.0"), "{header}");
    place.write("study/study.toml", header.replace("fee_bps = 7.0", "fee_bps = 1.0"));
    let trial = &place.json("study best study")["best"][0]["trial"].clone();
    let said = place.ok(&format!("backtest --trial study:{trial}"));
    assert!(said.stderr.contains(&format!("for trial {trial}; this version gives")), "{}", said.stderr);
    place.refused("study judge study", "this version evaluates it differently");
}

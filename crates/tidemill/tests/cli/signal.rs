//! `signal`: what it says is what `backtest` does on the same bars, also for a trial, at a time, and while a file grows.

#[cfg(unix)]
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::Place;

fn place() -> Place {
    let place = Place::new();
    place.ok("data generate --bars 3000 --timeframe 1h --seed 3 --out bars.csv");
    place
}

fn actions(answer: &Value) -> Vec<&str> {
    let actions = answer["symbols"][0]["actions"].as_array().unwrap();
    actions.iter().map(|action| action.as_str().unwrap()).collect()
}

#[test]
fn every_entry_of_a_backtest_was_said_at_the_close_before_it_and_is_held_after_it() {
    let place = place();
    let set = "zscore-dip --data bars.csv --set use_stop=true --set max_hold=5";
    let answer = place.json(&format!("backtest {set}"));
    let trades = answer["trades"].as_array().unwrap();
    let trade = trades.iter().find(|trade| trade["bars"].as_u64() > Some(2)).unwrap();
    let entry_time = trade["entry_time"].as_str().unwrap();
    // The bar of the signal closes when that of the fill opens.
    let before = place.json(&format!("signal {set} --at {entry_time}"));
    assert_eq!(actions(&before), ["enter"]);
    let enter = &before["symbols"][0]["enter"];
    assert_eq!((&enter["side"], &enter["levels"][0]["price"]), (&trade["side"], &trade["stop"]));
    let later = entry_time.replace(":00:00Z", ":59:59Z");
    assert_eq!(
        actions(&place.json(&format!("signal {set} --at {later}"))),
        ["enter"],
        "the bar has not closed"
    );
    let exit_time = trade["exit_time"].as_str().unwrap();
    let held = place.json(&format!("signal {set} --at {exit_time}"));
    let hold = &held["symbols"][0]["hold"];
    assert_eq!((&hold["entry_time"], &hold["entry"]), (&trade["entry_time"], &trade["entry"]));
    let said = place.ok(&format!("signal {set} --at {exit_time}"));
    assert!(said.stdout.contains("hold long since") && said.stderr.contains("left out"), "{}", said.stdout);
}

#[test]
fn a_trial_brings_its_strategy_and_data_and_takes_newer_files() {
    let place = place();
    place.ok("sweep zscore-dip --data bars.csv --trials 20 --verdict off --out runs/a");
    let own = place.json("signal --trial runs/a:7");
    let values = own["params"].as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    let set: String = values.map(|(name, value)| format!(" --set {name}={value}")).collect();
    let by_hand = place.json(&format!("signal zscore-dip --data bars.csv{set}"));
    assert_eq!(own["symbols"], by_hand["symbols"]);
    let text = place.read("bars.csv");
    let fewer: Vec<&str> = text.lines().take(2_000).collect();
    place.write("other.csv", fewer.join("\n"));
    let other = place.json("signal --trial runs/a:7 --data other.csv");
    assert_ne!(
        own["symbols"][0]["bar_time"], other["symbols"][0]["bar_time"],
        "other bars than those of the study"
    );
}

#[test]
fn only_what_is_traded_is_said() {
    let place = Place::new();
    place.ok("data generate --bars 600 --symbols 3 --timeframe 1h --out bars.csv");
    let names = |command: &str| -> Vec<String> {
        let answer = place.json(command);
        let symbols = answer["symbols"].as_array().unwrap().iter();
        symbols.map(|symbol| symbol["symbol"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("signal zscore-dip --data bars.csv"), ["SYN0", "SYN1", "SYN2"]);
    assert_eq!(names("signal zscore-dip --data bars.csv --trade SYN2,*0"), ["SYN0", "SYN2"]);
    place.ok("sweep zscore-dip --data bars.csv --trade SYN1 --trials 5 --verdict off --out runs/a");
    assert_eq!(names("signal --trial runs/a:0"), ["SYN1"], "what the study trades");
    assert_eq!(names("signal --trial runs/a:0 --trade SYN0"), ["SYN0"]);
    place.refused("signal zscore-dip --data bars.csv --trade BTC", "no symbol of the data fits");
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let place = place();
    place.refused("signal zscore-dip", "a signal needs data");
    place.refused("signal zscore-dip --data bars.csv --at soon", "not a time");
    place.refused("signal zscore-dip --data bars.csv --at 1999-01-01", "no bar has closed by 1999-01-01");
    place.refused("signal zscore-dip --data bars.csv --at 2024-01-01 --watch", "cannot be used with");
    place.write("NAV.csv", "date,close\n2024-01-02,10\n2024-01-03,11\n");
    place.refused("signal zscore-dip --data NAV.csv", "whose data has closes alone");
}

#[cfg(unix)]
#[test]
fn watching_says_what_is_new_and_ends_with_ctrl_c() {
    let place = place();
    let text = place.read("bars.csv");
    let rows: Vec<&str> = text.lines().collect();
    place.write("live.csv", rows[..2_000].join("\n"));
    let mut child = place
        .command(&["signal", "zscore-dip", "--data", "live.csv", "--watch", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    // In one step, so that nobody sees half of it.
    place.write("new.csv", rows[..2_001].join("\n"));
    std::fs::rename(place.path("new.csv"), place.path("live.csv")).unwrap();
    let second = next();
    assert_eq!(first["symbols"][0]["close_time"], second["symbols"][0]["bar_time"], "one bar further");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

//! `tidemill dash`: what it refuses, and what it answers about real studies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::Place;

pub struct Dash {
    process: Child,
    host: String,
}

impl Dash {
    pub fn start(place: &Place, args: &[&str]) -> Self {
        let all = [&["dash"], args, &["--address", "127.0.0.1:0"]].concat();
        let mut process = place.command(&all).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut link = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let host = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap().to_owned();
        Self { process, host }
    }

    fn get(&self, target: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let host = &self.host;
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    pub fn ok(&self, target: &str) -> Value {
        let (status, answer) = self.get(target);
        assert_eq!(status, 200, "{target}: {answer}");
        answer
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_cannot_be_served_is_refused() {
    let place = Place::new();
    place.refused("dash nowhere", "there is no folder nowhere");
    place.refused("dash --token short", "at least 16");
    place.refused("dash --token sixteen;chars;ok", "letters, digits");
    place.refused("dash --address somewhere", "invalid");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    place.refused(
        &format!("dash --address {}", taken.local_addr().unwrap()),
        "--address 127.0.0.1:0 takes any free port",
    );
}

#[test]
fn trials_and_charts_are_those_of_the_command_line() {
    let place = Place::with_bars();
    place.ok(
        "sweep --data lcg.csv --trials 60 --batch 16 --split 0.6 --set slippage_bps=3 --objective calmar --device cpu --out runs/a",
    );
    let dash = Dash::start(&place, &["runs"]);
    assert_eq!(dash.ok("/api/runs")["runs"][0]["name"], "a");
    let page = dash.ok("/api/runs/a/trials?limit=5&filter=trades%20%3E%3D%201");
    assert_eq!(page["n_trials"], 60);
    let best = place.json("study best runs/a");
    assert_eq!(page["rows"][0][0], best["best"][0]["trial"]);
    assert_eq!(page["rows"][0][1], best["best"][0]["objective"]);
    let (status, error) = dash.get("/api/runs/a/trials?sort=nothing");
    assert_eq!((status, error["error"].as_str().unwrap()), (400, "there is no column `nothing` to sort by"));
    assert_eq!(dash.get("/api/runs/a/trials/60").0, 404);

    // Evaluated again from the folder alone, with other costs and another objective than the strategy's.
    let trial = best["best"][0]["trial"].as_u64().unwrap();
    let told = dash.ok(&format!("/api/runs/a/trials/{trial}"));
    assert_eq!((&told["rank"], &told["n_trials"]), (&Value::from(1), &Value::from(60)));
    let again = dash.ok(&format!("/api/runs/a/trials/{trial}/backtest"));
    assert_eq!(again["is_as_stored"], true);
    let stored = best["best"][0]["metrics"]["trades"].as_f64().unwrap();
    let figure = again["figures"].as_array().unwrap().iter().find(|row| row[0] == "# Trades").unwrap();
    assert_eq!(figure[1][0].as_str().unwrap().parse::<f64>().unwrap(), stored);
    let trades = again["trades"].as_array().unwrap();
    assert_eq!(trades.len() as u64, again["n_trades"].as_u64().unwrap());
    assert!(trades.iter().all(|trade| trade["entry_ms"].as_i64() <= trade["exit_ms"].as_i64()));
    let bars = dash.ok("/api/runs/a/bars?points=100");
    assert_eq!(bars["ms"].as_array().unwrap().len(), 100);
    let parameters = dash.ok("/api/runs/a/parameters");
    let n_drawn = parameters["trials"].as_array().unwrap().len();
    assert_eq!((n_drawn, parameters["values"][0].as_array().unwrap().len()), (60, 60));
}

#[test]
fn data_that_is_gone_or_changed_draws_no_chart() {
    let place = Place::with_bars();
    place.ok("sweep --data lcg.csv --trials 20 --batch 10 --device cpu --out runs/a");
    let dash = Dash::start(&place, &["runs/a"]);
    let reason = |dash: &Dash| {
        let (status, answer) = dash.get("/api/runs/a/trials/0/backtest");
        assert_eq!(status, 422, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    };
    let text = place.read("lcg.csv");
    std::fs::remove_file(place.path("lcg.csv")).unwrap();
    assert!(reason(&dash).ends_with("lcg.csv is not there any more"));
    let shorter: Vec<&str> = text.lines().take(3000).collect();
    place.write("lcg.csv", shorter.join("\n"));
    assert_eq!(reason(&dash), "the data has changed since the study was made");
    // What is stored is still told, and what is put back is found.
    assert_eq!(dash.ok("/api/runs/a/trials/0")["n_trials"], 20);
    place.write("lcg.csv", text);
    assert_eq!(dash.ok("/api/runs/a/trials/0/backtest")["is_as_stored"], true);
}

#[test]
fn a_run_without_trials_says_so() {
    let place = Place::with_bars();
    std::fs::create_dir_all(place.path("runs/other")).unwrap();
    let start = r#"{"v":1,"timestamp":"2026-01-06T12:34:56.123Z","run":"other","phase":"run","step":"start","duration_ms":null,"device":null,"values":{},"parameters":{"workload":"color"},"notes":null}"#;
    place.write("runs/other/journal.jsonl", format!("{start}\n"));
    let dash = Dash::start(&place, &["runs"]);
    let run = dash.ok("/api/runs/other");
    assert_eq!(
        (&run["head"]["workload"], &run["head"]["has_trials"]),
        (&Value::from("color"), &Value::from(false))
    );
    let (status, answer) = dash.get("/api/runs/other/trials");
    assert_eq!((status, answer["error"].as_str()), (422, Some("this run stores no trials")));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_at_once() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("runs")).unwrap();
    let mut dash = Dash::start(&place, &["runs"]);
    // A connection that stays open does not hold it.
    let _open = TcpStream::connect(&dash.host).unwrap();
    crate::process::signal(&dash.process, "INT");
    let mut status = None;
    crate::process::until("its end", || {
        status = dash.process.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
}

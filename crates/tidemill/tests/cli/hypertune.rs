//! A sweep that is tuned while it runs: what was decided is recorded, repeated when it is resumed, and does good.

use std::process::Stdio;

use tidemill_telemetry::hypertune::Decision;
use tidemill_telemetry::{Event, read_journal};

use crate::process::{kill, until};
use crate::study::{exported, same_lines};
use crate::support::Place;

/// Rules that fire soon, however fast or slow the machine: no batch is ever long enough, and nothing is too slow to be called stalled.
pub const EAGER: &str = "[hypertune]
mode = \"on\"
short_batch_ms = 1e6
stalled_s = 1e6
no_improvement_batches = 6
cooldown_batches = 3
cooldown_s = 0.0
window_batches = 2
window_s = 0.0
";

const LINE: &str = "sweep zscore-dip --data lcg.csv --sampler tpe --trials 3000 --batch 4 --seed 3";

fn eager() -> Place {
    let place = Place::with_bars();
    place.write("tidemill.toml", EAGER);
    place
}

/// The records of a run in this folder.
pub fn events(place: &Place, study: &str) -> Vec<Event> {
    let path = place.path(study).join("journal.jsonl");
    read_journal(&path).unwrap().collect::<Result<_, _>>().unwrap()
}

fn decisions(place: &Place, study: &str) -> Vec<Decision> {
    events(place, study).iter().filter_map(Decision::from_event).collect()
}

/// Where the batch of an event that reports on one stands.
fn place_of_batch(events: &[Event], batch: u64) -> Option<usize> {
    events.iter().position(|event| event.phase == "ask" && event.step == format!("batch_{batch}"))
}

#[test]
fn decisions_stand_in_the_journal_before_the_batches_they_affect_and_have_effects() {
    let place = eager();
    place.ok(&format!("{LINE} --out tuned"));
    let (events, decisions) = (events(&place, "tuned"), decisions(&place, "tuned"));
    assert!(!decisions.is_empty());
    for decision in &decisions {
        let at =
            events.iter().position(|event| Decision::from_event(event).as_ref() == Some(decision)).unwrap();
        if let Some(batch) = place_of_batch(&events, decision.batch) {
            assert!(at < batch, "{decision:?}");
        }
        assert!(decision.old != decision.new && !decision.cause.is_empty(), "{decision:?}");
    }
    assert!(events.iter().any(|event| event.is("hypertune", "effect")), "an effect is measured");
    assert!(events.last().unwrap().is("run", "end"));
    let knobs: Vec<&str> = decisions.iter().map(|decision| decision.knob.as_str()).collect();
    assert!(knobs.contains(&"batch"), "batches of four are too small: {knobs:?}");
    assert!(knobs.iter().any(|knob| ["restart", "random_share", "gamma"].contains(knob)), "{knobs:?}");
}

#[test]
fn a_killed_and_resumed_sweep_repeats_its_decisions_and_they_alone_decide_the_trials() {
    let place = eager();
    let line = format!("{LINE} --out killed");
    let args: Vec<&str> = line.split_whitespace().collect();
    for n_decisions in [2, 4, 6] {
        let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let journal = place.path("killed/journal.jsonl");
        let is_reached = || {
            let text = std::fs::read_to_string(&journal).unwrap_or_default();
            text.matches("\"step\":\"apply\"").count() >= n_decisions
        };
        until("a decision", || is_reached() || child.try_wait().unwrap().is_some());
        kill(child);
    }
    place.ok(&line);
    // The same decisions without the clock: a study that has nothing but the journal, and rules that are off.
    std::fs::create_dir(place.path("again")).unwrap();
    for file in ["study.toml", "journal.jsonl"] {
        std::fs::copy(place.path("killed").join(file), place.path("again").join(file)).unwrap();
    }
    place.ok(&format!("{LINE} --out again --hypertune off"));
    same_lines(&exported(&place.path("again")), &exported(&place.path("killed")));
    let plain =
        "sweep zscore-dip --data lcg.csv --sampler tpe --trials 3000 --batch 4 --seed 3 --hypertune off";
    place.ok(&format!("{plain} --out plain"));
    assert!(exported(&place.path("plain")) != exported(&place.path("killed")), "it was tuned");
}

#[test]
fn advice_changes_nothing_and_is_given_in_words() {
    let place = eager();
    place.ok(&format!("{LINE} --out off --hypertune off"));
    let said = place.ok(&format!("{LINE} --out advised --hypertune advise -v"));
    same_lines(&exported(&place.path("advised")), &exported(&place.path("off")));
    assert!(decisions(&place, "advised").is_empty());
    assert!(said.stderr.contains("hypertune would change batch 4 → "), "{}", said.stderr);
    let quiet = place.ok(&format!("{LINE} --hypertune advise"));
    assert!(!quiet.stderr.contains("hypertune"), "advice is a detail: {}", quiet.stderr);
    assert!(!events(&place, "off").iter().any(|event| event.phase == "hypertune"));
    place.refused("sweep --hypertune perhaps", "possible values");
    place.write("tidemill.toml", "[hypertune]\nlow_busy = 3.0\n");
    place.refused("sweep --trials 10", "low_busy");
    place.write("tidemill.toml", "[hypertune]\nmode = \"maybe\"\n");
    place.refused("sweep --trials 10", "hypertune.mode");
}

#[test]
fn metrics_are_served_while_it_runs() {
    use std::io::{Read, Write};

    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 1000000000 --metrics 127.0.0.1:0";
    let args: Vec<&str> = line.split_whitespace().collect();
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut addr = String::new();
    while !addr.starts_with("metrics: http://") {
        addr.clear();
        assert!(std::io::BufRead::read_line(&mut stderr, &mut addr).unwrap() > 0, "no address was said");
    }
    let addr = addr.trim().trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_owned();
    let ask = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&addr).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let count = |page: &str| -> f64 {
        let line = page.lines().find(|line| line.starts_with("tidemill_trials_total"));
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    };
    let mut first = 0.0;
    until("a count that grows", || {
        let page = ask("/metrics");
        // The server does not wait long for a request; a client that was too slow hears nothing and asks again.
        assert!(page.is_empty() || page.starts_with("HTTP/1.1 200"), "{page}");
        let now = count(&page);
        let has_grown = first > 0.0 && now > first;
        first = if first == 0.0 { now } else { first };
        has_grown
    });
    until("an answer", || ask("/other").starts_with("HTTP/1.1 404"));
    child.kill().unwrap();
    child.wait().unwrap();
}

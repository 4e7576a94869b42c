//! Following: what a run writes shows, whoever else looks, however long the run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemill_dash::web::serve;
use tidemill_telemetry::{DeviceMode, Event, JournalOptions, Recorded, format_smolstr};

use crate::client::{Events, LONG, get};
use crate::specimen::{Echo, Place, journal, options, start, step};

#[test]
fn a_stream_tells_everything_once_and_then_what_changes() {
    let place = Place::new();
    let journal = journal(&place.run("live"));
    journal.record(start("live", 50.0));
    journal.record(step(1));
    wait_for(&place, "live", |run| run["head"]["done"] == 10.0);
    let mut events = Events::open(place.address(), "/api/runs/live/events");
    let first = events.next();
    assert_eq!(first["head"]["done"], 10.0);
    assert!(first["config"].is_object() && first["recent"].is_array());
    for batch in 2..=5 {
        journal.record(step(batch));
    }
    let mut seen = first["head"]["done"].as_f64().unwrap();
    while seen < 50.0 {
        let delta = events.next();
        assert!(delta.get("config").is_none(), "what did not change is not told again");
        if let Some(done) = delta["head"]["done"].as_f64() {
            assert!(done >= seen);
            seen = done;
        }
    }
    journal.record(Event::new("live", "run", "end").parameter("outcome", "complete"));
    journal.close().unwrap();
    loop {
        if events.next()["head"]["state"] == "complete" {
            break;
        }
    }
}

#[test]
fn several_may_look_and_leave() {
    let place = Place::new();
    let journal = journal(&place.run("live"));
    journal.record(start("live", 50.0));
    wait_for(&place, "live", |run| run["head"]["state"] == "running");
    let mut staying = Events::open(place.address(), "/api/runs/live/events");
    staying.next();
    for _ in 0..5 {
        let mut leaving = Events::open(place.address(), "/api/runs/live/events");
        leaving.next();
    }
    journal.record(step(3));
    while staying.next()["head"]["done"] != 30.0 {}
}

#[test]
fn a_run_that_has_said_nothing_yet_is_missing_until_it_does() {
    let place = Place::new();
    std::fs::create_dir_all(place.run("new")).unwrap();
    let reply = get(place.address(), "/api/runs/new");
    assert_eq!((reply.status, reply.json()["error"].as_str()), (404, Some("its journal has no events yet")));
    journal(&place.run("new")).record(start("new", 1.0));
    wait_for(&place, "new", |_| true);
}

fn wait_for(place: &Place, run: &str, is_there: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    loop {
        let reply = get(place.address(), &format!("/api/runs/{run}"));
        if reply.status == 200 && is_there(&reply.json()) {
            return;
        }
        assert!(began.elapsed() < LONG, "{}", reply.body);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run of so many events, as long sweeps on a GPU write them.
fn imitate(dir: &Path, n_events: u64, rotate_bytes: u64) {
    std::fs::create_dir_all(dir).unwrap();
    let options = JournalOptions { rotate_bytes, ..JournalOptions::default() };
    let journal = options.create(&dir.join("journal.jsonl")).unwrap();
    journal.record(start("long", n_events as f64 * 4096.0));
    for idx in 1..n_events {
        let event =
            Event::new("long", ["ask", "kernel", "tell"][idx as usize % 3], format_smolstr!("batch_{idx}"))
                .lasting_ms(12.3 + (idx % 100) as f64 * 0.01)
                .on(DeviceMode::Gpu { stream: (idx % 4) as u32 })
                .value("start_ms", idx as f64 * 8.64)
                .value("trials", idx as f64 * 4096.0)
                .value("best", (idx as f64).ln())
                .value("busy", 0.981)
                .value("ask_ms", 0.8125);
        while journal.record(event.clone()) == Recorded::Dropped {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    journal.close().unwrap();
}

/// How long the page and the run take from a server that has just been started. All that lies before the newest checkpoint is blank by
/// then, so that what is told of it comes from the checkpoint.
fn opened_in(dir: &Path, n_events: u64) -> (Duration, Duration) {
    let mut full: Vec<PathBuf> =
        std::fs::read_dir(dir.join("long")).unwrap().map(|entry| entry.unwrap().path()).collect();
    full.retain(|path| {
        path.extension().is_some_and(|ending| ending == "jsonl") && !path.ends_with("journal.jsonl")
    });
    assert!(full.len() > 2, "{} files are full", full.len());
    for path in &full {
        let len = std::fs::metadata(path).unwrap().len();
        std::fs::write(path, vec![b'\n'; len as usize]).unwrap();
    }
    let server = serve(options(dir, None), Echo).unwrap();
    let began = Instant::now();
    assert_eq!(get(server.address(), "/").status, 200);
    let run = get(server.address(), "/api/runs/long").json();
    let first = began.elapsed();
    assert_eq!(run["head"]["done"], (n_events - 1) as f64 * 4096.0);
    assert!(run["head"]["n_events"].as_u64() >= Some(n_events), "{}", run["head"]);
    let began = Instant::now();
    get(server.address(), "/api/runs/long");
    (first, began.elapsed())
}

#[test]
fn a_long_run_opens_from_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    imitate(&dir.path().join("long"), 60_000, 4 << 20);
    opened_in(dir.path(), 60_000);
}

/// `cargo test --release -p tidemill-dash --test web -- --ignored --nocapture`
#[test]
#[ignore = "3 GB and a minute"]
fn ten_million_events_open_from_the_newest_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    imitate(&dir.path().join("long"), 10_000_000, JournalOptions::default().rotate_bytes);
    let (first, again) = opened_in(dir.path(), 10_000_000);
    println!("opened in {first:?}, again in {again:?}");
}

//! A run of very many events: nothing is lost, memory stays, and a viewer opens it at once.

use std::path::Path;
use std::time::{Duration, Instant};

use tidemill_telemetry::{DeviceMode, Event, Follower, JournalOptions, Recorded, find, format_smolstr};

fn event(idx: u64) -> Event {
    Event::new("sweep-42", "kernel", format_smolstr!("batch_{idx}"))
        .lasting_ms(12.3 + (idx % 100) as f64 * 0.01)
        .on(DeviceMode::Gpu { stream: (idx % 4) as u32 })
        .value("start_ms", idx as f64 * 0.1)
        .value("trials", idx as f64 * 4096.0)
        .value("best", 1.93)
        .value("busy", 0.981)
        .value("ask_ms", 0.8125)
        .value("tell_ms", 0.71)
}

/// Bytes of memory that this process holds, where the system tells.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split_whitespace().nth(1)?.parse::<u64>().ok()? * 4096)
}

/// What a long run came to.
#[derive(Debug)]
#[allow(dead_code, reason = "its debug form is what is shown")]
struct Endured {
    events_per_s: f64,
    len_bytes: u64,
    n_files: usize,
    /// Events that a viewer had to read: those behind the newest checkpoint.
    n_read: u64,
    /// Growth of memory between a tenth of the run and its end.
    grown_bytes: Option<i64>,
    opened_in: Duration,
    found_in: Duration,
}

fn endure(dir: &Path, n_events: u64, rotate_bytes: u64) -> Endured {
    let options = JournalOptions { rotate_bytes, ..JournalOptions::default() };
    let journal = options.create(&dir.join("journal.jsonl")).unwrap();
    let began = Instant::now();
    let mut early_bytes = None;
    let mut n_refused = 0;
    for idx in 0..n_events {
        if idx == n_events / 10 {
            early_bytes = resident_bytes();
        }
        if idx == n_events / 2 {
            journal.record_durable(Event::new("sweep-42", "hypertune", "apply").value("id", 1.0)).unwrap();
        }
        // As fast as the writer can: a full channel is waited for, and only that.
        while journal.record(event(idx)) == Recorded::Dropped {
            n_refused += 1;
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let late_bytes = resident_bytes();
    let summary = journal.close().unwrap();
    let events_per_s = n_events as f64 / began.elapsed().as_secs_f64();
    assert_eq!((summary.n_written, summary.n_dropped), (n_events + 1, n_refused));

    let files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()).collect();
    let is_journal = |name: &str| name.ends_with(".jsonl");
    let files: Vec<_> = files.iter().filter(|file| is_journal(file.file_name().to_str().unwrap())).collect();
    let len_bytes = files.iter().map(|file| file.metadata().unwrap().len()).sum();

    let began = Instant::now();
    let mut follower = Follower::open(dir);
    let polled = follower.poll(|_| ()).unwrap();
    let opened_in = began.elapsed();
    let snapshot = follower.snapshot();
    assert_eq!(snapshot.done, (n_events - 1) as f64 * 4096.0);
    assert_eq!(snapshot.phases["kernel"].count, n_events);
    assert_eq!((snapshot.n_dropped, snapshot.n_actions), (n_refused, 1));

    let began = Instant::now();
    assert_eq!(find(dir, "hypertune").unwrap().len(), 1);
    let found_in = began.elapsed();
    let grown_bytes = early_bytes.zip(late_bytes).map(|(early, late)| late as i64 - early as i64);
    let n_read = polled.n_events;
    Endured { events_per_s, len_bytes, n_files: files.len(), n_read, grown_bytes, opened_in, found_in }
}

#[test]
fn a_long_run_keeps_its_size_and_opens_from_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let endured = endure(dir.path(), 60_000, 4 << 20);
    assert!(endured.n_files > 3 && endured.n_read < 60_000 / 2, "{endured:?}");
    assert!(endured.grown_bytes.is_none_or(|grown| grown < 24 << 20), "{endured:?}");
}

/// `cargo test --release -p tidemill-telemetry --test endurance -- --ignored --nocapture`
#[test]
#[ignore = "3 GB and half a minute"]
fn ten_million_events_open_from_the_newest_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let endured = endure(dir.path(), 10_000_000, JournalOptions::default().rotate_bytes);
    println!("{endured:#?}");
    // A file of 64 MiB holds some 200,000 of them.
    assert!(endured.n_read < 400_000, "{endured:?}");
    assert!(endured.grown_bytes.is_none_or(|grown| grown < 32 << 20), "{endured:?}");
}

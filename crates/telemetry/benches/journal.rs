//! What a journal costs: `cargo bench -p tidemill-telemetry`.
//!
//! The hot loop is real arithmetic in pieces of about 100 µs; with a record after each piece that is 10,000 events a second. Loops with
//! and without records take turns, and each is measured by the time its thread was on a processor, where the system tells that.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use tidemill_telemetry::{
    DeviceMode, Event, Follower, Journal, SmolStr, Snapshot, find, format_smolstr, prometheus,
};

/// Pieces of the hot loop in one turn: a fifth of a second.
const N_PIECES: u64 = 2000;

const N_TURNS: usize = 11;

fn main() {
    hot_loop();
    writes();
    reading();
}

fn event(run: &SmolStr, idx: u64) -> Event {
    Event::new(run.clone(), "kernel", format_smolstr!("batch_{idx}"))
        .lasting_ms(12.3)
        .on(DeviceMode::Gpu { stream: (idx % 4) as u32 })
        .value("start_ms", idx as f64 * 0.1)
        .value("trials", idx as f64 * 4096.0)
        .value("best", 1.93)
        .value("busy", 0.981)
        .value("ask_ms", 0.8125)
        .value("tell_ms", 0.71)
}

/// About 100 µs of divisions.
fn piece(n_steps: u64) -> f64 {
    (0..n_steps).fold(1.0, |x, idx| (x + 1.0 / (x + idx as f64)) * 0.5)
}

/// Nanoseconds for which this thread was on a processor, or by the clock.
fn thread_ns(began: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_processor = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    on_processor.unwrap_or_else(|| began.elapsed().as_nanos() as f64)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn hot_loop() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let journal = Journal::create(&dir.path().join("journal.jsonl")).expect("a journal");
    let run = SmolStr::new("sweep-42");
    let began = Instant::now();
    // The system tells the time on a processor in ticks of some milliseconds, so it is taken over many.
    const N_TRIED: u64 = 20_000_000;
    let from = thread_ns(began);
    black_box(piece(black_box(N_TRIED)));
    let n_steps = (100_000.0 * N_TRIED as f64 / (thread_ns(began) - from).max(1e6)) as u64;
    let turn = |records: bool| {
        let from = thread_ns(began);
        for idx in 0..N_PIECES {
            black_box(piece(black_box(n_steps)));
            if records {
                journal.record(event(&run, idx));
            }
        }
        (thread_ns(began) - from) / N_PIECES as f64
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..N_TURNS {
        without.push(turn(false));
        with.push(turn(true));
    }
    let (without, with) = (median(without), median(with));
    println!(
        "hot loop     {:.0} ns a piece, {:.0} ns with a record each: {:+.2} %",
        without,
        with,
        (with / without - 1.0) * 100.0
    );
    let from = thread_ns(began);
    const N_EVENTS: u64 = 1_000_000;
    for idx in 0..N_EVENTS {
        black_box(event(&run, idx));
    }
    println!("building     {:.0} ns an event", (thread_ns(began) - from) / N_EVENTS as f64);
    let summary = journal.close().expect("all was written");
    println!("             {} written, {} dropped", summary.n_written, summary.n_dropped);
}

/// One write for each line, and one for many.
fn writes() {
    const N_LINES: usize = 500_000;
    let run = SmolStr::new("sweep-42");
    let line = serde_json::to_string(&event(&run, 123_456)).expect("an event is JSON") + "\n";
    for n_together in [1, 16, 256, 1024] {
        let mut file = tempfile::tempfile().expect("a temporary file");
        let lines = line.repeat(n_together);
        let from = Instant::now();
        for _ in 0..N_LINES / n_together {
            File::write_all(&mut file, lines.as_bytes()).expect("room on the disk");
        }
        let ns = from.elapsed().as_nanos() as f64 / N_LINES as f64;
        println!("writing      {n_together:4} lines of {} bytes at once: {ns:.0} ns a line", line.len());
    }
}

fn reading() {
    const N_EVENTS: u64 = 200_000;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("journal.jsonl");
    let run = SmolStr::new("sweep-42");
    let mut text = Vec::new();
    let from = Instant::now();
    for idx in 0..N_EVENTS {
        serde_json::to_writer(&mut text, &event(&run, idx)).expect("an event is JSON");
        text.push(b'\n');
    }
    println!(
        "serialising  {:.0} ns an event, building included",
        from.elapsed().as_nanos() as f64 / N_EVENTS as f64
    );
    std::fs::write(&path, &text).expect("room on the disk");
    let from = Instant::now();
    let mut follower = Follower::open(&path);
    follower.poll(|_| ()).expect("the journal is there");
    let taken = from.elapsed();
    println!("reading      {:.0} ns an event, folding included", taken.as_nanos() as f64 / N_EVENTS as f64);
    let events: Vec<Event> = (0..N_EVENTS).map(|idx| event(&run, idx)).collect();
    let mut snapshot = Snapshot::default();
    let from = Instant::now();
    for event in events {
        snapshot.take(event);
    }
    println!("folding      {:.0} ns an event", from.elapsed().as_nanos() as f64 / N_EVENTS as f64);
    let from = Instant::now();
    for _ in 0..10 {
        find(&path, "hypertune").expect("the journal is there");
    }
    println!("finding      {:.1} GB/s", 10.0 * text.len() as f64 / from.elapsed().as_nanos() as f64);
    let from = Instant::now();
    for _ in 0..100 {
        black_box(snapshot.clone());
    }
    println!("snapshot     {:.0} µs a copy", from.elapsed().as_secs_f64() * 1e4);
    let from = Instant::now();
    let json = serde_json::to_string(&snapshot).expect("a snapshot is JSON");
    println!("             {:.0} µs as JSON of {} bytes", from.elapsed().as_secs_f64() * 1e6, json.len());
    let from = Instant::now();
    for _ in 0..100 {
        black_box(prometheus(&snapshot));
    }
    println!("prometheus   {:.0} µs a page", from.elapsed().as_secs_f64() * 1e4);
}

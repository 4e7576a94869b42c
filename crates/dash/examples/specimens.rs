//! Writes journals of made-up runs, to look at the views with: `cargo run -p tidemill-dash --example specimens -- DIR`.
//!
//! With `--live SECONDS` it writes one run as slowly as a real one would.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[path = "../tests/terminal/specimen.rs"]
mod specimen;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(dir) = args.first().map(PathBuf::from) else {
        eprintln!("usage: specimens DIR [--live SECONDS]");
        std::process::exit(2);
    };
    if let Some(seconds) = args.get(2).and_then(|text| text.parse::<f64>().ok()) {
        return write_live(&dir, seconds);
    }
    let long = ("long", specimen::gpu_sweep(40_000, 2));
    for (name, run) in specimen::all().into_iter().chain([long]) {
        run.write(&dir.join(name));
        println!("{}: {} events", dir.join(name).display(), run.events.len());
    }
}

/// A run that happens now and takes so long.
fn write_live(dir: &std::path::Path, seconds: f64) {
    let run = specimen::gpu_sweep((seconds * 80.0) as u64, 3);
    std::fs::create_dir_all(dir).unwrap();
    let mut file = std::fs::File::create(dir.join("journal.jsonl")).unwrap();
    let began = Instant::now();
    let began_ms = tidemill_telemetry::Timestamp::now().as_ms();
    for mut event in run.events {
        let at_ms = event.timestamp.as_ms() - specimen::START_MS;
        let at = Duration::from_millis(at_ms as u64);
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        event.timestamp = tidemill_telemetry::Timestamp::from_ms(began_ms + at_ms);
        writeln!(file, "{}", serde_json::to_string(&event).unwrap()).unwrap();
    }
}

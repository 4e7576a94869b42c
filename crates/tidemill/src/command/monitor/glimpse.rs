//! The state of a run from the first and the newest records of its journal: a list of runs must not read whole journals.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use tidemill_telemetry::Snapshot;

use super::choose::{FIRST_FULL, JOURNAL};

/// Bytes at the end that are read.
const END_BYTES: u64 = 128 << 10;

/// The fold of the first record and the newest ones. Counts of what lies between are missing; progress and score are right if the run
/// repeats them, as runs do.
pub fn of(dir: &Path) -> io::Result<Snapshot> {
    let mut snapshot = Snapshot::default();
    let (first, live) = (dir.join(FIRST_FULL), dir.join(JOURNAL));
    let mut file = File::open(&live)?;
    let skipped = file.metadata()?.len().saturating_sub(END_BYTES);
    if first.is_file() {
        take_first(&mut snapshot, &first)?;
    } else if skipped > 0 {
        take_first(&mut snapshot, &live)?;
    }
    file.seek(SeekFrom::Start(skipped))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    // A line that was cut, here or by a kill, is left out.
    let begin = if skipped > 0 {
        end.iter().position(|byte| *byte == b'\n').map_or(end.len(), |at| at + 1)
    } else {
        0
    };
    for line in end[begin..].split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        take(&mut snapshot, line);
    }
    Ok(snapshot)
}

fn take_first(snapshot: &mut Snapshot, path: &Path) -> io::Result<()> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(END_BYTES)).read_until(b'\n', &mut line)?;
    take(snapshot, &line);
    Ok(())
}

/// A line that is no event is passed over.
fn take(snapshot: &mut Snapshot, line: &[u8]) {
    if let Ok(event) = serde_json::from_slice(line) {
        snapshot.apply(&event);
    }
}

#[cfg(test)]
mod tests {
    use tidemill_telemetry::{Event, RunState};

    use super::*;

    #[test]
    fn the_first_and_the_newest_records_give_the_state_of_a_long_run() {
        let dir = tempfile::tempdir().unwrap();
        let line = |event: Event| serde_json::to_string(&event).unwrap() + "\n";
        let mut text =
            line(Event::new("r", "run", "start").parameter("workload", "color").value("total", 5000.0));
        for batch in 1..=5000_u32 {
            let done = f64::from(batch);
            text += &line(Event::new("r", "tabu", "b").value("trials", done).value("best", 1.0 - 1.0 / done));
        }
        text += &line(Event::new("r", "run", "end").parameter("outcome", "stopped"));
        assert!(text.len() as u64 > 2 * END_BYTES);
        std::fs::write(dir.path().join(JOURNAL), text + "{\"v\":1,").unwrap();
        let snapshot = of(dir.path()).unwrap();
        assert_eq!((snapshot.workload.as_str(), snapshot.state), ("color", RunState::Stopped));
        assert_eq!((snapshot.done, snapshot.total, snapshot.best), (5000.0, Some(5000.0), Some(0.9998)));
        assert!(snapshot.n_events < 2000, "most of it was not read");
    }

    #[test]
    fn a_short_run_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&Event::new("r", "run", "start")).unwrap() + "\n";
        std::fs::write(dir.path().join(JOURNAL), text).unwrap();
        assert_eq!(of(dir.path()).unwrap().n_events, 1);
    }
}

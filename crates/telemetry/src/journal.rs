//! The journal: events as JSON lines, written by a thread of its own.
//!
//! Recording hands the event to a bounded channel and returns; if the channel is full, the event is dropped and counted, because a
//! slow disk must not slow the search. The count is told in a last record. Each record is a single write of a whole line, so that
//! a reader never sees a mixture and a kill can tear only the last line, which the next writer cuts off.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};

use crate::event::Event;

/// Events that may wait for the writer before further ones are dropped.
pub const CHANNEL_EVENTS: usize = 8192;

/// A failure to open or to keep a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be created or opened.
    #[error("cannot open the journal {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A write failed; the journal holds everything up to there, and nothing after.
    #[error("cannot write the journal {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The writer's thread could not be started or ended in a panic.
    #[error("the writer of the journal {} is gone", path.display())]
    WriterGone {
        /// The file.
        path: PathBuf,
    },
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is on its way to the file.
    Queued,
    /// It was dropped and counted.
    Dropped,
}

/// What a closed journal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Records written, without the last one that tells of drops.
    pub n_written: u64,
    /// Events dropped.
    pub n_dropped: u64,
}

/// A journal open for recording. Share it by reference between threads; the last owner closes it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    sender: Option<Sender<Event>>,
    n_dropped: Arc<AtomicU64>,
    writer: Option<JoinHandle<Result<u64, io::Error>>>,
}

impl Journal {
    /// Starts a new journal; a file that is already there is emptied.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file = File::create(path).map_err(|source| open_error(path, source))?;
        Self::start(path, file, CHANNEL_EVENTS)
    }

    /// Continues a journal, or starts it if there is none. A torn last line, left by a kill, is cut off.
    pub fn open_append(path: &Path) -> Result<Self, JournalError> {
        let file = open_whole(path).map_err(|source| open_error(path, source))?;
        Self::start(path, file, CHANNEL_EVENTS)
    }

    /// Records an event without ever waiting.
    pub fn record(&self, event: Event) -> Recorded {
        // A full channel, or a writer that is gone after a failed write; `close` tells of the latter.
        let is_queued = self.sender.as_ref().is_some_and(|sender| sender.try_send(event).is_ok());
        if is_queued {
            Recorded::Queued
        } else {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
            Recorded::Dropped
        }
    }

    /// Events dropped so far.
    pub fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until everything recorded is in the file, adds a record if events were dropped, and flushes it to disk.
    pub fn close(mut self) -> Result<Summary, JournalError> {
        self.stop()
    }

    fn start(path: &Path, output: impl Output, capacity: usize) -> Result<Self, JournalError> {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        let n_dropped = Arc::new(AtomicU64::new(0));
        let n_dropped_seen = Arc::clone(&n_dropped);
        let writer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write_all(&receiver, output, &n_dropped_seen))
            .map_err(|source| open_error(path, source))?;
        Ok(Self { path: path.to_owned(), sender: Some(sender), n_dropped, writer: Some(writer) })
    }

    fn stop(&mut self) -> Result<Summary, JournalError> {
        // Without a sender the channel ends once it is empty, and the writer with it.
        drop(self.sender.take());
        let path = self.path.clone();
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(Ok(n_written))) => Ok(Summary { n_written, n_dropped: self.n_dropped() }),
            Some(Ok(Err(source))) => Err(JournalError::Write { path, source }),
            Some(Err(_)) | None => Err(JournalError::WriterGone { path }),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // Nobody is left to hear of a failure; `close` is the way to know.
            drop(self.stop());
        }
    }
}

/// Where lines go.
trait Output: Write + Send + 'static {
    /// Makes what was written durable.
    fn sync(&mut self) -> io::Result<()>;
}

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

fn write_all(receiver: &Receiver<Event>, mut output: impl Output, n_dropped: &AtomicU64) -> io::Result<u64> {
    let mut line = Vec::new();
    let mut n_written = 0;
    let mut last_run = String::new();
    for event in receiver {
        write_line(&mut output, &event, &mut line)?;
        n_written += 1;
        if last_run != event.run {
            last_run = event.run;
        }
    }
    let n_dropped = n_dropped.load(Ordering::Relaxed);
    if n_dropped > 0 {
        let event = Event::new(last_run, "journal", "dropped")
            .value("dropped", n_dropped as f64)
            .note("events came faster than they could be written, and these were not");
        write_line(&mut output, &event, &mut line)?;
    }
    output.sync()?;
    Ok(n_written)
}

fn write_line(output: &mut impl Output, event: &Event, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, event)?;
    line.push(b'\n');
    output.write_all(line)
}

/// Opens a file for appending and cuts off what stands after its last line end.
fn open_whole(path: &Path) -> io::Result<File> {
    const BLOCK_BYTES: u64 = 4096;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        Read::by_ref(&mut file).take(end - start).read_to_end(&mut block)?;
        if let Some(newline_idx) = block.iter().rposition(|&byte| byte == b'\n') {
            end = start + newline_idx as u64 + 1;
            break;
        }
        end = start;
    }
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok(file)
}

fn open_error(path: &Path, source: io::Error) -> JournalError {
    JournalError::Open { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::read::read_journal;

    /// Collects lines in memory, waits for permission before each, and fails on demand.
    struct SlowOutput {
        lines: Arc<Mutex<Vec<String>>>,
        gate: Receiver<()>,
        fail_after: usize,
    }

    impl Write for SlowOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut lines = self.lines.lock().unwrap();
            if lines.len() >= self.fail_after {
                return Err(io::Error::other("disk full"));
            }
            // A closed gate lets everything pass.
            let _ = self.gate.recv();
            lines.push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for SlowOutput {
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn events(path: &Path) -> Vec<Event> {
        read_journal(path).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn concurrent_writers_lose_and_mix_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let journal = Journal::create(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let journal = &journal;
                scope.spawn(move || {
                    for idx in 0..1000 {
                        let event = Event::new("r", format!("thread_{thread}"), format!("step_{idx}"));
                        assert_eq!(journal.record(event), Recorded::Queued);
                    }
                });
            }
        });
        assert_eq!(journal.close().unwrap(), Summary { n_written: 8000, n_dropped: 0 });
        let events = events(&path);
        assert_eq!(events.len(), 8000);
        for thread in 0..8 {
            let phase = format!("thread_{thread}");
            let steps = events.iter().filter(|event| event.phase == phase).map(|event| event.step.clone());
            assert!(steps.eq((0..1000).map(|idx| format!("step_{idx}"))), "order within {phase}");
        }
    }

    #[test]
    fn a_slow_writer_blocks_nobody_and_drops_are_counted_in_the_last_record() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (open_gate, gate) = crossbeam_channel::unbounded();
        let output = SlowOutput { lines: Arc::clone(&lines), gate, fail_after: usize::MAX };
        let journal = Journal::start(Path::new("memory"), output, 4).unwrap();
        let outcomes: Vec<Recorded> =
            (0..100).map(|idx| journal.record(Event::new("run-7", "kernel", format!("{idx}")))).collect();
        let n_queued = outcomes.iter().filter(|outcome| **outcome == Recorded::Queued).count() as u64;
        // Four wait in the channel, and one more may be in the writer's hands.
        assert!((4..=5).contains(&n_queued), "{n_queued}");
        assert_eq!(journal.n_dropped(), 100 - n_queued);
        drop(open_gate);
        let summary = journal.close().unwrap();
        assert_eq!(summary, Summary { n_written: n_queued, n_dropped: 100 - n_queued });
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len() as u64, n_queued + 1);
        let last: Event = serde_json::from_str(lines.last().unwrap()).unwrap();
        assert_eq!(
            (last.run.as_str(), last.phase.as_str(), last.step.as_str()),
            ("run-7", "journal", "dropped")
        );
        assert_eq!(last.values["dropped"], (100 - n_queued) as f64);
        assert!(lines.iter().all(|line| line.ends_with('\n') && line.matches('\n').count() == 1));
    }

    #[test]
    fn a_failed_write_is_reported_on_close_and_later_events_count_as_dropped() {
        let (_open_gate, gate) = crossbeam_channel::bounded(0);
        let output = SlowOutput { lines: Arc::default(), gate, fail_after: 0 };
        let journal = Journal::start(Path::new("memory"), output, 4).unwrap();
        journal.record(Event::new("r", "a", "first"));
        while journal.record(Event::new("r", "a", "later")) == Recorded::Queued {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(journal.n_dropped() > 0);
        assert!(matches!(journal.close(), Err(JournalError::Write { .. })));
    }

    #[test]
    fn a_torn_last_line_is_cut_off_before_appending() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let long = "x".repeat(10_000);
        for torn in ["{\"v\":1,\"timest", long.as_str(), ""] {
            let journal = Journal::create(&path).unwrap();
            journal.record(Event::new("r", "a", "kept"));
            drop(journal);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.extend_from_slice(torn.as_bytes());
            std::fs::write(&path, bytes).unwrap();
            let journal = Journal::open_append(&path).unwrap();
            journal.record(Event::new("r", "a", "added"));
            journal.close().unwrap();
            let steps: Vec<String> = events(&path).into_iter().map(|event| event.step).collect();
            assert_eq!(steps, ["kept", "added"]);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.lines().all(|line| serde_json::from_str::<Event>(line).is_ok()));
        }
    }

    #[test]
    fn a_file_of_one_torn_line_becomes_empty_and_a_missing_one_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        for contents in [Some("{\"v\":1"), None] {
            match contents {
                Some(contents) => std::fs::write(&path, contents).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            Journal::open_append(&path).unwrap().close().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"");
        }
    }

    #[test]
    fn a_journal_that_cannot_be_opened_says_which() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent/journal.jsonl");
        for result in [Journal::create(&path), Journal::open_append(&path)] {
            let error = result.unwrap_err();
            assert!(error.to_string().ends_with("journal.jsonl"), "{error}");
        }
    }
}

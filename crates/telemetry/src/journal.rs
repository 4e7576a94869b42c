//! The journal: events as JSON lines, written and folded by a thread of its own.
//!
//! [`Journal::record`] hands the event to a bounded channel and returns; if the channel is full, the event is dropped and counted,
//! because a slow disk must not slow the search. The writer looks into the channel every 20 milliseconds and hands everything that it
//! finds to the operating system in one write of whole lines. It is not woken for every event, because that would cost the hot loop
//! more than all the rest. So a kill loses what was recorded in the last moments and can tear only the last line, which the next
//! writer cuts off. [`Journal::record_durable`] is for what must not be lost.

mod error;
mod output;
mod writer;

#[cfg(test)]
mod tests;

pub use error::JournalError;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::event::Event;
use crate::follow::Follower;
use crate::journal::output::{Live, Nowhere, Output};
use crate::journal::writer::Writer;
use crate::read::ReadError;
use crate::snapshot::Snapshot;

/// Options of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// Size at which the live file is renamed and another one begun. Default 64 MiB.
    pub rotate_bytes: u64,
    /// Silence after which `run`, `alive` is written, so that viewers can distinguish a slow run from a dead one. Default
    /// 5 seconds.
    pub alive_every: Duration,
    /// Events that may wait for the writer before further ones are dropped. Default 16,384.
    pub capacity: usize,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { rotate_bytes: 64 << 20, alive_every: Duration::from_secs(5), capacity: 16_384 }
    }
}

impl JournalOptions {
    /// Starts a new journal; one that is already there is removed, with its full files and their checkpoints.
    pub fn create(&self, path: &Path) -> Result<Journal, JournalError> {
        let output = Live::create(path).map_err(|source| open_error(path, source))?;
        Journal::start(Some(path), output, Snapshot::default(), self)
    }

    /// Continues a journal, or starts it if there is none. A torn last line, left by a kill, is cut off. What is there already is
    /// folded, from the newest checkpoint on.
    pub fn open_append(&self, path: &Path) -> Result<Journal, JournalError> {
        let output = Live::open_append(path).map_err(|source| open_error(path, source))?;
        let mut follower = Follower::open(path);
        match follower.poll(|_| ()) {
            Ok(_) => Journal::start(Some(path), output, follower.into_snapshot(), self),
            Err(ReadError::Io { path, source }) => Err(JournalError::Open { path, source }),
            // A follower passes over malformed lines.
            Err(ReadError::Malformed { path, source, .. }) => Err(open_error(&path, source.into())),
        }
    }

    /// A journal that only folds.
    pub fn without_file(&self) -> Result<Journal, JournalError> {
        Journal::start(None, Nowhere, Snapshot::default(), self)
    }
}

/// Whether an event reached the queue of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It will be written.
    Queued,
    /// It was dropped and counted.
    Dropped,
}

/// Counts of a closed journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSummary {
    /// Records of the run that were written, without those that the journal added itself.
    pub n_written: u64,
    /// Events dropped.
    pub n_dropped: u64,
}

/// A journal open for recording. Share it by reference between threads; the last owner closes it.
#[derive(Debug)]
pub struct Journal {
    path: Option<PathBuf>,
    sender: Option<Sender<Message>>,
    /// Waiting events at which the writer is woken.
    n_waking: usize,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<Result<u64, io::Error>>>,
}

/// A message to the writer.
enum Message {
    Event(Event),
    /// An event, and the channel that is notified once it is on disk.
    Durable(Event, Sender<io::Result<()>>),
}

/// State that the writer shares with the recording threads.
#[derive(Debug, Default)]
struct Shared {
    snapshot: Mutex<Snapshot>,
    n_dropped: AtomicU64,
    /// Whether the writer sleeps although there may be events.
    is_napping: AtomicBool,
}

impl Journal {
    /// [`JournalOptions::create`] with the usual options.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        JournalOptions::default().create(path)
    }

    /// [`JournalOptions::open_append`] with the usual options.
    pub fn open_append(path: &Path) -> Result<Self, JournalError> {
        JournalOptions::default().open_append(path)
    }

    /// [`JournalOptions::without_file`] with the usual options.
    pub fn without_file() -> Result<Self, JournalError> {
        JournalOptions::default().without_file()
    }

    /// Records an event without ever waiting.
    pub fn record(&self, event: Event) -> Recorded {
        let Some(sender) = &self.sender else { return self.drop_one() };
        if sender.try_send(Message::Event(event)).is_err() {
            return self.drop_one();
        }
        if sender.len() >= self.n_waking && self.shared.is_napping.swap(false, Ordering::Relaxed) {
            self.wake();
        }
        Recorded::Queued
    }

    /// Records an event and returns once it is on disk, with everything recorded before it. It is never dropped: it waits for room.
    pub fn record_durable(&self, event: Event) -> Result<(), JournalError> {
        let (tell, told) = crossbeam_channel::bounded(1);
        if let Some(sender) = &self.sender {
            // A writer that is gone drops `tell`, which shows below.
            let _ = sender.send(Message::Durable(event, tell));
        }
        self.wake();
        match told.recv() {
            Ok(written) => written.map_err(|source| self.write_error(source)),
            Err(_) => Err(JournalError::WriterGone { path: self.named_path() }),
        }
    }

    /// The fold of everything that the writer has taken in: what is in the file, in the files before it, and up to 20 milliseconds
    /// behind what was recorded.
    pub fn snapshot(&self) -> Snapshot {
        self.look(Snapshot::clone)
    }

    /// Looks at the fold without copying it. The writer waits meanwhile, so be brief.
    pub fn look<T>(&self, at: impl FnOnce(&Snapshot) -> T) -> T {
        at(&self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Events dropped so far.
    pub fn n_dropped(&self) -> u64 {
        self.shared.n_dropped.load(Ordering::Relaxed)
    }

    /// Where it is written, if it is.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Waits until everything recorded is in the file, adds a record if events were dropped that no record reports yet, and flushes it to
    /// disk.
    pub fn close(mut self) -> Result<JournalSummary, JournalError> {
        self.stop()
    }

    fn start(
        path: Option<&Path>,
        output: impl Output,
        snapshot: Snapshot,
        options: &JournalOptions,
    ) -> Result<Self, JournalError> {
        let capacity = options.capacity.max(1);
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        let shared = Arc::new(Shared { snapshot: Mutex::new(snapshot), ..Shared::default() });
        let writer = Writer::new(receiver, output, Instant::now, Arc::clone(&shared), options);
        let writer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| open_error(path.unwrap_or(Path::new("")), source))?;
        let path = path.map(Path::to_owned);
        Ok(Self { path, sender: Some(sender), n_waking: capacity.div_ceil(2), shared, writer: Some(writer) })
    }

    fn stop(&mut self) -> Result<JournalSummary, JournalError> {
        // Without a sender the channel ends once it is empty, and the writer with it.
        drop(self.sender.take());
        self.wake();
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(Ok(n_written))) => Ok(JournalSummary { n_written, n_dropped: self.n_dropped() }),
            Some(Ok(Err(source))) => Err(self.write_error(source)),
            Some(Err(_)) | None => Err(JournalError::WriterGone { path: self.named_path() }),
        }
    }

    fn wake(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }

    fn drop_one(&self) -> Recorded {
        self.shared.n_dropped.fetch_add(1, Ordering::Relaxed);
        Recorded::Dropped
    }

    fn write_error(&self, source: io::Error) -> JournalError {
        JournalError::Write { path: self.named_path(), source }
    }

    fn named_path(&self) -> PathBuf {
        self.path.clone().unwrap_or_default()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // A failure cannot be reported any more; `close` is the way to know.
            drop(self.stop());
        }
    }
}

fn open_error(path: &Path, source: io::Error) -> JournalError {
    JournalError::Open { path: path.to_owned(), source }
}

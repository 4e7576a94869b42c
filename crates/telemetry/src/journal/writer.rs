//! The thread that writes and folds.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use smol_str::SmolStr;

use crate::event::Event;
use crate::journal::output::Output;
use crate::journal::{JournalOptions, Message, Shared};

/// How long it sleeps between two looks into the channel while events come.
const NAP: Duration = Duration::from_millis(20);

/// Silence after which it waits to be woken by the next event instead.
const QUIET: Duration = Duration::from_millis(500);

/// Events that are written and folded together.
const MOST_TOGETHER: usize = 1024;

/// Least time between two records of dropped events; one more follows at the end.
const DROPS_EVERY: Duration = Duration::from_secs(1);

/// Writes and folds what it is sent, until there is no sender left.
pub(super) struct Writer<O, C> {
    receiver: Receiver<Message>,
    output: O,
    /// Returns the time. Tests give a clock of their own, so that they need not wait.
    clock: C,
    shared: Arc<Shared>,
    rotate_bytes: u64,
    alive_every: Duration,
    /// Lines that are not written yet, and how many of the run's own records are among them.
    lines: Vec<u8>,
    n_lines: u64,
    /// Events that are not folded yet.
    unfolded: Vec<Event>,
    n_written: u64,
    n_drops_told: u64,
    /// Of these, those whose record is not written yet.
    n_drops_in_lines: u64,
    drops_told_at: Option<Instant>,
    last_write: Instant,
    last_event: Instant,
    last_run: Option<SmolStr>,
    /// Whether the run has recorded its end, after which nothing is added to the journal.
    is_ended: bool,
    /// The newest failure, until a write succeeds.
    failure: Option<io::Error>,
    /// Size at which a rotation is tried.
    rotate_at: u64,
}

impl<O: Output, C: Fn() -> Instant> Writer<O, C> {
    pub(super) fn new(
        receiver: Receiver<Message>,
        output: O,
        clock: C,
        shared: Arc<Shared>,
        options: &JournalOptions,
    ) -> Self {
        let now = clock();
        Self {
            receiver,
            output,
            clock,
            shared,
            rotate_bytes: options.rotate_bytes.max(1),
            alive_every: options.alive_every,
            lines: Vec::new(),
            n_lines: 0,
            unfolded: Vec::new(),
            n_written: 0,
            n_drops_told: 0,
            n_drops_in_lines: 0,
            drops_told_at: None,
            last_write: now,
            last_event: now,
            last_run: None,
            is_ended: false,
            failure: None,
            rotate_at: options.rotate_bytes.max(1),
        }
    }

    /// Number of records written, or why the last ones could not be.
    pub(super) fn run(mut self) -> io::Result<u64> {
        while self.turn() {
            if self.receiver.is_empty()
                && let Some(message) = self.rest()
            {
                self.take(message);
            }
        }
        self.tell_drops(Duration::ZERO);
        self.flush();
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.output.sync().map(|()| self.n_written),
        }
    }

    /// Writes what waits, and what is due by now; false if nothing can come any more.
    pub(super) fn turn(&mut self) -> bool {
        let is_open = self.take_waiting();
        self.flush();
        if is_open {
            self.tell_drops(DROPS_EVERY);
            if self.receiver.is_empty() {
                self.tell_alive();
                self.flush();
            }
        }
        is_open
    }

    /// Takes in what waits, up to a bound; false if nothing can come any more.
    fn take_waiting(&mut self) -> bool {
        for _ in 0..MOST_TOGETHER {
            match self.receiver.try_recv() {
                Ok(message) => self.take(message),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn take(&mut self, message: Message) {
        self.last_event = (self.clock)();
        match message {
            Message::Event(event) => self.take_event(event),
            Message::Durable(event, tell) => self.take_durable(event, &tell),
        }
    }

    fn take_durable(&mut self, event: Event, tell: &Sender<io::Result<()>>) {
        self.take_event(event);
        self.flush();
        let written = match &self.failure {
            Some(failure) => Err(io::Error::new(failure.kind(), failure.to_string())),
            None => self.output.sync(),
        };
        // The thread that waited may be gone.
        let _ = tell.send(written);
    }

    /// An event of the run.
    fn take_event(&mut self, event: Event) {
        if event.is("run", "end") {
            // The end is the last record.
            self.tell_drops(Duration::ZERO);
            self.is_ended = true;
        } else if event.phase == "run" {
            self.is_ended = false;
        }
        if self.last_run.as_ref() != Some(&event.run) {
            self.last_run = Some(event.run.clone());
        }
        self.n_lines += 1;
        self.push(event);
    }

    /// Any event. A file ends behind the record that fills it, so that the fold at that moment is the fold of the file.
    fn push(&mut self, event: Event) {
        let start = self.lines.len();
        if serde_json::to_writer(&mut self.lines, &event).is_err() {
            // A map with keys that are no text is the only way to fail, and there is none in an event.
            self.lines.truncate(start);
            return;
        }
        self.lines.push(b'\n');
        self.unfolded.push(event);
        if self.output.len_bytes() + self.lines.len() as u64 >= self.rotate_at {
            self.flush();
            self.rotate();
        }
    }

    /// Hands all lines to the operating system in one write, and folds their events.
    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        match self.output.write(&self.lines) {
            Ok(()) => {
                self.n_written += self.n_lines;
                self.failure = None;
            }
            Err(error) => {
                self.shared.n_dropped.fetch_add(self.n_lines, Ordering::Relaxed);
                // The record of the drops has to be written again.
                self.n_drops_told -= self.n_drops_in_lines;
                self.unfolded.retain(|event| !event.is("journal", "dropped"));
                self.failure = Some(error);
            }
        }
        self.last_write = (self.clock)();
        self.lines.clear();
        (self.n_lines, self.n_drops_in_lines) = (0, 0);
        // Those who look at the fold see it even if the disk is full.
        let mut snapshot = self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        for event in self.unfolded.drain(..) {
            snapshot.take(event);
        }
    }

    fn rotate(&mut self) {
        if self.output.len_bytes() < self.rotate_at {
            return;
        }
        let snapshot = self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.rotate_at = match self.output.rotate(&snapshot) {
            Ok(()) => self.rotate_bytes,
            // Whatever the reason, such as a folder that may not be written to: recording continues, and the rotation is tried again later.
            Err(_) => self.output.len_bytes() + self.rotate_bytes.div_ceil(8),
        };
    }

    fn tell_drops(&mut self, at_most_every: Duration) {
        let n_dropped = self.shared.n_dropped.load(Ordering::Relaxed);
        let is_due = self.drops_told_at.is_none_or(|told_at| self.since(told_at) >= at_most_every);
        if n_dropped == self.n_drops_told || self.is_ended || !is_due {
            return;
        }
        let run = self.last_run.clone().unwrap_or_default();
        let n_new = n_dropped - self.n_drops_told;
        let event = Event::new(run, "journal", "dropped")
            .value("dropped", n_new as f64)
            .value("dropped_in_all", n_dropped as f64)
            .note("these events are missing: they came faster than they could be written, or a write failed");
        (self.n_drops_told, self.n_drops_in_lines) = (n_dropped, self.n_drops_in_lines + n_new);
        self.drops_told_at = Some((self.clock)());
        self.push(event);
    }

    fn tell_alive(&mut self) {
        if let Some(run) = &self.last_run
            && !self.is_ended
            && self.since(self.last_write) >= self.alive_every
        {
            self.push(Event::new(run.clone(), "run", "alive"));
        }
    }

    fn since(&self, earlier: Instant) -> Duration {
        (self.clock)().saturating_duration_since(earlier)
    }

    /// Sleeps until there may be something to do; a message if one ended the sleep.
    fn rest(&mut self) -> Option<Message> {
        if self.since(self.last_event) < QUIET {
            self.shared.is_napping.store(true, Ordering::Relaxed);
            std::thread::park_timeout(NAP);
            self.shared.is_napping.store(false, Ordering::Relaxed);
            return None;
        }
        let says_alive = self.last_run.is_some() && !self.is_ended;
        let silence = if says_alive { self.since(self.last_write) } else { Duration::ZERO };
        let until_alive = self.alive_every.saturating_sub(silence);
        let drops_wait = self.shared.n_dropped.load(Ordering::Relaxed) > self.n_drops_told;
        let patience = if drops_wait { DROPS_EVERY } else { until_alive }.max(NAP);
        // If the channel has ended, the next look into it sees that.
        self.receiver.recv_timeout(patience).ok()
    }
}

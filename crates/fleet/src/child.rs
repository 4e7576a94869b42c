//! Workers that are processes of this machine, spoken to through their standard input and output.
//!
//! A process that ends is started again: what it computed is with the coordinator, and what it had is sent again. So a lost CUDA context, or a
//! kill by the system for want of memory, costs a restart and not the study. Processes that end again and again without one answer are given up.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tidemill_search::EvaluateError;

use crate::in_process::drain;
use crate::link::{FrameSender, report_answers};
use crate::transport::{Transport, TransportEvent, WorkerId};

/// How often in a row a process may end before it has answered anything.
const MOST_FRUITLESS: u32 = 5;

/// How long to wait before a process that answered nothing is started again; twice as long each time.
const PAUSE: Duration = Duration::from_millis(100);

/// One process.
struct RunningChild {
    process: Child,
    frames: FrameSender,
    has_answered: bool,
    /// How often processes in its place ended before they had answered anything.
    n_fruitless: u32,
}

/// A place where a process is to be started.
struct EmptyPlace {
    due: Instant,
    n_fruitless: u32,
}

/// Worker processes of this machine.
pub struct ChildProcesses {
    command: Box<dyn FnMut() -> Command + Send>,
    running: BTreeMap<WorkerId, RunningChild>,
    empty: Vec<EmptyPlace>,
    n_started: u64,
    reported: Receiver<TransportEvent>,
    report: Sender<TransportEvent>,
    is_closed: bool,
    last_reason: String,
}

impl ChildProcesses {
    /// So many processes of this command, which must speak the protocol on standard input and output.
    pub fn new(n_workers: usize, command: impl FnMut() -> Command + Send + 'static) -> Self {
        let (report, reported) = unbounded();
        let place = || EmptyPlace { due: Instant::now(), n_fruitless: 0 };
        Self {
            command: Box::new(command),
            running: BTreeMap::new(),
            empty: (0..n_workers).map(|_| place()).collect(),
            n_started: 0,
            reported,
            report,
            is_closed: false,
            last_reason: "no worker was asked for".into(),
        }
    }

    /// The processes that run now.
    pub fn process_ids(&self) -> Vec<u32> {
        self.running.values().map(|child| child.process.id()).collect()
    }

    /// Starts what is due.
    fn start_due(&mut self, events: &mut Vec<TransportEvent>) {
        let now = Instant::now();
        let (due, later) =
            std::mem::take(&mut self.empty).into_iter().partition(|place: &EmptyPlace| place.due <= now);
        self.empty = later;
        for EmptyPlace { n_fruitless, .. } in due {
            match self.start(n_fruitless) {
                Ok(event) => events.push(event),
                Err(error) => {
                    let reason = format!("cannot start it: {error}");
                    self.vacate(n_fruitless + 1, &reason);
                    events.push(TransportEvent::Unreached { label: "a worker process".into(), reason });
                }
            }
        }
    }

    fn start(&mut self, n_fruitless: u32) -> std::io::Result<TransportEvent> {
        let mut command = (self.command)();
        // Ctrl-C is for the coordinator, which still collects what is under way.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let worker = self.n_started;
        let label = format!("process {}", process.id());
        let (Some(stdin), Some(mut stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let report = self.report.clone();
        let frames = FrameSender::new(stdin)?;
        std::thread::Builder::new().name(format!("of-worker-{worker}")).spawn(move || {
            let reason = report_answers(worker, &mut stdout, &report);
            drop(report.send(TransportEvent::Lost { worker, reason }));
        })?;
        self.n_started += 1;
        self.running.insert(worker, RunningChild { process, frames, has_answered: false, n_fruitless });
        Ok(TransportEvent::Joined { worker, label })
    }

    /// A place is empty, and filled again unless it was so too often.
    fn vacate(&mut self, n_fruitless: u32, reason: &str) {
        self.last_reason = reason.to_owned();
        if n_fruitless < MOST_FRUITLESS {
            let pause = if n_fruitless == 0 { Duration::ZERO } else { PAUSE * (1 << n_fruitless) };
            self.empty.push(EmptyPlace { due: Instant::now() + pause, n_fruitless });
        }
    }

    /// Ends a process; how often those in its place have answered nothing, and how it ended, in words.
    fn end(mut child: RunningChild) -> (u32, String) {
        // It may have ended by itself.
        drop(child.process.kill());
        let how = match child.process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        (if child.has_answered { 0 } else { child.n_fruitless + 1 }, how)
    }
}

impl Transport for ChildProcesses {
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>) {
        if let Some(child) = self.running.get(&worker) {
            child.frames.send(frame);
        }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        let mut events = Vec::new();
        self.start_due(&mut events);
        let timeout = if events.is_empty() { timeout } else { Duration::ZERO };
        let until_due =
            self.empty.iter().map(|place| place.due.saturating_duration_since(Instant::now())).min();
        for event in drain(&self.reported, until_due.map_or(timeout, |due| due.min(timeout))) {
            match event {
                TransportEvent::Answered { worker, .. } => {
                    if let Some(child) = self.running.get_mut(&worker) {
                        child.has_answered = true;
                        events.push(event);
                    }
                }
                TransportEvent::Lost { worker, reason } => {
                    if let Some(child) = self.running.remove(&worker) {
                        let (n_fruitless, how) = Self::end(child);
                        let reason = format!("{reason} ({how})");
                        self.vacate(n_fruitless, &reason);
                        events.push(TransportEvent::Lost { worker, reason });
                    }
                }
                other => events.push(other),
            }
        }
        if self.running.is_empty() && self.empty.is_empty() && !std::mem::replace(&mut self.is_closed, true) {
            events.push(TransportEvent::Closed { reason: self.last_reason.clone() });
        }
        Ok(events)
    }

    fn dismiss(&mut self, worker: WorkerId, may_return: bool) {
        if let Some(child) = self.running.remove(&worker) {
            let (n_fruitless, _) = Self::end(child);
            if may_return {
                // One that answers wrongly and one that does not answer are alike.
                self.vacate(n_fruitless + 1, "its workers were dismissed");
            } else {
                self.last_reason = "all worker processes were dismissed".into();
            }
        }
    }
}

impl Drop for ChildProcesses {
    fn drop(&mut self) {
        for child in std::mem::take(&mut self.running).into_values() {
            Self::end(child);
        }
    }
}

//! Sampler and evaluator that meet: each stays inside its work until the other one is inside its own. Two that work one after the other
//! never meet, however fast the machine; two that work at the same time always do, however slow.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use tidemill_search::{Batch, Points, Sampler, Scores};

use crate::toy::Toy;

/// Ends a test that hangs.
const LONG: Duration = Duration::from_secs(600);

/// Where they meet.
pub struct Meeting {
    enter: (Sender<()>, Receiver<()>),
    leave: (Sender<()>, Receiver<()>),
    together_ns: AtomicU64,
}

impl Meeting {
    pub fn new() -> Self {
        Self { enter: bounded(0), leave: bounded(0), together_ns: AtomicU64::new(0) }
    }

    /// The sampler waits for the evaluator, and then until that lets it go.
    fn visit(&self) {
        self.enter.0.send_timeout((), LONG).expect("the evaluator is not at work beside the sampler");
        self.leave.1.recv_timeout(LONG).expect("the evaluator lets the sampler go");
    }

    /// The evaluator waits for the sampler, spends a moment with it, and lets it go.
    fn receive(&self) {
        self.enter.1.recv_timeout(LONG).expect("the sampler is not at work beside the evaluator");
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        self.together_ns.fetch_add(began.elapsed().as_nanos() as u64, Ordering::SeqCst);
        self.leave.0.send_timeout((), LONG).expect("the sampler waits to be let go");
    }

    /// How long both certainly worked at the same time.
    pub fn together(&self) -> Duration {
        Duration::from_nanos(self.together_ns.load(Ordering::SeqCst))
    }

    /// The evaluator's side, with a lag of 1: beside batch k the sampler learns the batch before it and proposes the one after it.
    pub fn evaluate(&self, batch: &Batch, n_batches: u64) {
        if batch.index > 0 {
            self.receive();
        }
        if batch.index + 1 < n_batches {
            self.receive();
        }
    }
}

/// The sampler's side.
pub struct Guest<'a> {
    pub toy: Toy,
    pub meeting: &'a Meeting,
    pub n_batches: u64,
    pub n_asked: u64,
    pub n_told: u64,
}

impl Sampler for Guest<'_> {
    fn name(&self) -> &'static str {
        "guest"
    }

    fn ask(&mut self, n: usize) -> Points {
        // Beside the first batch that is asked for, nothing is evaluated yet.
        if self.n_asked > 0 {
            self.meeting.visit();
        }
        self.n_asked += 1;
        self.toy.ask(n)
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        // Beside the last one that is told, nothing is evaluated any more.
        self.n_told += 1;
        if self.n_told < self.n_batches {
            self.meeting.visit();
        }
        self.toy.tell(points, scores);
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// Writes down when work begins and ends.
#[derive(Default)]
pub struct Log {
    entries: Mutex<Vec<(&'static str, Instant)>>,
}

impl Log {
    pub fn work<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        self.entries.lock().unwrap().push((name, Instant::now()));
        let done = work();
        self.entries.lock().unwrap().push((name, Instant::now()));
        done
    }

    /// Every piece of work and how long it took; none if one began before another had ended.
    pub fn pieces(self) -> Option<Vec<(&'static str, Duration)>> {
        let entries = self.entries.into_inner().unwrap();
        let piece = |pair: &[(&'static str, Instant)]| {
            (pair[0].0 == pair[1].0).then(|| (pair[0].0, pair[1].1.duration_since(pair[0].1)))
        };
        entries.chunks(2).map(piece).collect()
    }
}

/// A sampler that writes down when it works.
pub struct Logged<'a> {
    pub toy: Toy,
    pub log: &'a Log,
}

impl Sampler for Logged<'_> {
    fn name(&self) -> &'static str {
        "logged"
    }

    fn ask(&mut self, n: usize) -> Points {
        self.log.work("ask", || self.toy.ask(n))
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.log.work("tell", || self.toy.tell(points, scores));
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

//! The [`Fleet`]: evaluates the batches of a study on workers.
//!
//! One thread, that of the study: each call sends what can be sent, takes what has arrived and looks at what is late. Which worker evaluates
//! what depends on the clock; what comes out does not.

mod assembly;
mod clock;
mod crew;
mod feed;
mod greet;
mod hand_out;
mod shard;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tidemill_search::{Batch, EvaluateError, Evaluated, Evaluator, Interrupted, Points};

use crate::error::FleetError;
use crate::event::{FleetEvent, ShardRecord};
use crate::message::{Hello, Message, Refusal, RefusalCode, ShardAnswer, results_digest};
use crate::pool::WorkerPool;
use crate::transport::{TransportEvent, WorkerId};
use crate::worker::Identity;
use assembly::Assembly;
use crew::{Crew, Stage};
use feed::Feed;
use shard::{FirstAnswer, SentShard};

/// Shards that a worker has at a time, at most: one that it evaluates, one that it can begin at once, and one on the way.
pub const MOST_IN_FLIGHT: usize = 3;

/// How often a shard may fail.
const MOST_TRIES: u32 = 3;

/// How often a worker may fail in a row.
const MOST_FAILURES: u32 = 3;

/// How long a call waits for the transport before it looks at what is late.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Reasons that an error repeats, at most.
const MOST_REASONS: usize = 4;

/// The study that a fleet evaluates.
#[derive(Clone, Debug)]
pub struct FleetStudy {
    /// Which program this is.
    pub identity: Identity,
    /// Everything that decides a result: the text of `study.toml`.
    pub header: String,
    /// Fingerprint of the data.
    pub data: String,
    /// Whether trials have out-of-sample columns.
    pub has_test: bool,
    /// Trials that every worker evaluates first.
    pub probes: Points,
    /// Whether workers can draw the points themselves, because the sampler does not learn.
    pub is_drawn: bool,
}

/// How a fleet behaves. No result depends on it.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// One shard in so many goes to two workers.
    pub check_one_in: u64,
    /// A shard is late once it takes three times as long as expected and so much more; then another worker gets a copy.
    pub hedge_after: Duration,
    /// A worker that answers nothing for twenty times as long as expected and so much more is given up.
    pub silence_limit: Duration,
    /// How long a worker may take to load the data and build the study.
    pub greeting_limit: Duration,
    /// How long the study waits for a worker where there is none.
    pub wait_limit: Duration,
    /// How long workers may have too little to do before that is said.
    pub hunger_after: Duration,
    /// How long a shard takes, at least and at most, where a batch allows it.
    pub shard_time: [Duration; 2],
    /// Once it is set nothing new is sent, and a batch that is not about to be done is left.
    pub stop: Arc<AtomicBool>,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            check_one_in: 1000,
            hedge_after: Duration::from_secs(2),
            silence_limit: Duration::from_secs(120),
            greeting_limit: Duration::from_secs(900),
            wait_limit: Duration::from_secs(600),
            hunger_after: Duration::from_secs(10),
            shard_time: [Duration::from_millis(20), Duration::from_millis(500)],
            stop: Arc::default(),
        }
    }
}

/// Evaluates points on this machine's CPU: what workers have to agree with.
pub type Reference<'a> = Box<dyn FnMut(&Points) -> Result<Evaluated, EvaluateError> + 'a>;

/// Hears what happens to the fleet.
pub type FleetObserver<'a> = Box<dyn FnMut(FleetEvent) + 'a>;

/// Evaluates the batches of a study on the workers of a pool.
pub struct Fleet<'a> {
    pool: &'a mut WorkerPool,
    study: FleetStudy,
    options: FleetOptions,
    session: u64,
    hello: Message,
    expected: u64,
    n_columns: usize,
    reference: Reference<'a>,
    observer: FleetObserver<'a>,
    crew: Crew,
    /// Batches that were submitted and not collected, in their order.
    batches: VecDeque<Assembly>,
    /// Shards that somebody has, or that must be sent again.
    shards: BTreeMap<u64, SentShard>,
    n_shards: u64,
    feed: Feed,
    /// When it was seen that the study is to stop.
    stopping: Option<Instant>,
    /// Since when there has been work and no worker, and when that was said last.
    lonely: Option<(Instant, Instant)>,
    /// What became of workers that are gone, newest last.
    reasons: VecDeque<String>,
    /// What ends the study at the next call.
    failure: Option<EvaluateError>,
}

impl<'a> Fleet<'a> {
    /// A fleet that serves a study with the workers that are there and those that will come.
    pub fn new(
        pool: &'a mut WorkerPool,
        study: FleetStudy,
        options: FleetOptions,
        mut reference: Reference<'a>,
        observer: FleetObserver<'a>,
    ) -> Result<Self, EvaluateError> {
        let session = pool.begin_session();
        let expected = reference(&study.probes)?;
        let hello = Message::Hello(Hello {
            session,
            program: study.identity.program.clone(),
            semantics: study.identity.semantics,
            header: study.header.clone(),
            data: study.data.clone(),
            has_test: study.has_test,
            probes: study.probes.clone(),
        });
        let mut fleet = Self {
            session,
            hello,
            expected: results_digest(&expected),
            n_columns: expected.scores.n_objectives() + expected.metrics.len(),
            pool,
            study,
            options,
            reference,
            observer,
            crew: Crew::default(),
            batches: VecDeque::new(),
            shards: BTreeMap::new(),
            n_shards: 0,
            feed: Feed::default(),
            stopping: None,
            lonely: None,
            reasons: VecDeque::new(),
            failure: None,
        };
        let present: Vec<(WorkerId, String)> =
            fleet.pool.present().map(|(worker, label)| (worker, label.to_owned())).collect();
        present.into_iter().for_each(|(worker, label)| fleet.greet(worker, label));
        Ok(fleet)
    }

    /// Sends, receives and looks once; waits for the transport so long at most.
    fn step(&mut self, timeout: Duration) -> Result<(), EvaluateError> {
        self.hand_out();
        for event in self.pool.poll(timeout)? {
            match event {
                TransportEvent::Joined { worker, label } => self.greet(worker, label),
                TransportEvent::Answered { worker, frame } => self.hear(worker, &frame)?,
                TransportEvent::Lost { worker, reason } => self.lose(worker, &reason),
                TransportEvent::Unreached { label, reason } => {
                    if self.remember(format!("{label}: {reason}")) {
                        (self.observer)(FleetEvent::Refused { name: label, reason });
                    }
                }
                TransportEvent::Closed { .. } => {}
            }
        }
        let now = Instant::now();
        self.look_at_the_clock(now);
        self.hand_out();
        self.feed.look(now, self.crew.n_ready(), self.crew.n_idle());
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Takes an answer.
    fn hear(&mut self, worker: WorkerId, frame: &[u8]) -> Result<(), EvaluateError> {
        match Message::decode(frame) {
            Ok(Message::Welcome(welcome)) if welcome.session == self.session => {
                self.welcome(worker, &welcome)
            }
            Ok(Message::Answer(answer)) if answer.session == self.session => self.take(worker, answer)?,
            Ok(Message::Refusal(refusal)) if [0, self.session].contains(&refusal.session) => {
                self.refused(worker, refusal);
            }
            // Late by a whole study.
            Ok(Message::Welcome(_) | Message::Answer(_) | Message::Refusal(_)) => {}
            Ok(_) => self.turn_away(worker, "it answered with a coordinator's message", true),
            Err(error) => self.turn_away(worker, &error.to_string(), false),
        }
        Ok(())
    }

    /// Takes the rows of a shard, or compares them with those that are known.
    fn take(&mut self, worker: WorkerId, answer: ShardAnswer) -> Result<(), EvaluateError> {
        let Some(member) = self.crew.get_mut(worker) else { return Ok(()) };
        let Some(sent) = self.shards.get_mut(&answer.shard) else { return Ok(()) };
        let Some(at) = sent.holders.iter().position(|holder| holder.worker == worker) else { return Ok(()) };
        let holder = sent.holders.swap_remove(at);
        let (n_rows, name) = (sent.rows.len(), member.name.clone());
        let columns = answer.evaluated.scores.n_objectives() + answer.evaluated.metrics.len();
        if answer.points_digest != sent.points_digest
            || answer.evaluated.scores.len() != n_rows
            || columns != self.n_columns
        {
            self.turn_away(worker, "it answered with the results of other trials", false);
            return Ok(());
        }
        member.answered(n_rows, Duration::from_micros(answer.took_us));
        let digest = results_digest(&answer.evaluated);
        let is_copy = sent.answer.is_some();
        let record = ShardRecord {
            lane: member.lane.unwrap_or(0),
            batch: sent.batch,
            n_trials: n_rows,
            sent: holder.sent,
            took: Duration::from_micros(answer.took_us),
            is_copy,
        };
        match &sent.answer {
            None => {
                sent.answer = Some(FirstAnswer { digest, worker, name });
                if let Some(assembly) = self.batches.iter_mut().find(|of| of.batch.index == sent.batch) {
                    assembly.fill(&sent.rows, answer.evaluated);
                }
            }
            Some(first) if first.digest == digest => {}
            Some(first) => {
                let (known, first) = (first.digest, first.name.clone());
                return Err(self.judge(answer.shard, [(&first, known), (&name, digest)]));
            }
        }
        if is_copy || sent.holders.is_empty() {
            sent.is_checked = true;
        }
        self.tidy();
        (self.observer)(FleetEvent::ShardDone(record));
        Ok(())
    }

    /// Which of two workers that differ is contradicted by this machine's CPU.
    fn judge(&mut self, shard: u64, [first, second]: [(&str, u64); 2]) -> EvaluateError {
        let Some(sent) = self.shards.get(&shard) else { return "a shard is gone".into() };
        let from = sent.first_trial;
        let to = from + sent.rows.len() as u64 - 1;
        let truth = (self.reference)(&sent.points).map(|evaluated| results_digest(&evaluated));
        let wrong = |(name, digest): (&str, u64)| {
            truth.as_ref().is_ok_and(|truth| *truth != digest).then(|| name.to_owned())
        };
        let (verdict, liar) = match (wrong(first), wrong(second)) {
            (Some(liar), None) | (None, Some(liar)) => {
                (format!("this machine's CPU contradicts {liar}"), liar)
            }
            _ => {
                ("this machine's CPU agrees with neither".to_owned(), format!("{} and {}", first.0, second.0))
            }
        };
        let (first, second) = (first.0.to_owned(), second.0.to_owned());
        FleetError::Differ { first, second, from, to, verdict, liar }.into()
    }

    /// A worker cannot do what it was asked.
    fn refused(&mut self, worker: WorkerId, refusal: Refusal) {
        let Some(member) = self.crew.get_mut(worker) else { return };
        let Refusal { shard, code, text, .. } = refusal;
        let Some(shard) = shard else {
            // It cannot serve this study; whether it could serve another one, a restart would not tell.
            let may_return = code == RefusalCode::Failed;
            return self.turn_away(worker, &text, may_return);
        };
        if code == RefusalCode::OtherPoints {
            member.draws = false;
        } else {
            member.n_failures += u32::from(code == RefusalCode::Failed);
        }
        let (n_failures, name) = (member.n_failures, member.name.clone());
        self.let_go(worker, shard);
        if code == RefusalCode::OtherPoints {
            return;
        }
        if code == RefusalCode::Failed {
            (self.observer)(FleetEvent::Failed { name: name.clone(), reason: text.clone() });
            if let Some(sent) = self.shards.get_mut(&shard) {
                sent.n_tries += 1;
                if sent.n_tries >= MOST_TRIES {
                    let from = sent.first_trial;
                    let to = from + sent.rows.len() as u64 - 1;
                    let (n_tries, reason) = (sent.n_tries, format!("{name}: {text}"));
                    self.failure = Some(FleetError::Unanswered { from, to, n_tries, reason }.into());
                }
            }
        }
        if n_failures >= MOST_FAILURES {
            self.turn_away(worker, &text, true);
        } else if self.crew.get_mut(worker).is_some_and(|member| matches!(member.stage, Stage::Ready)) {
            // After a failure a worker has no study any more.
            self.send_hello(worker);
        }
    }

    /// A worker is gone; what it had is sent again.
    fn lose(&mut self, worker: WorkerId, reason: &str) {
        let Some(member) = self.crew.remove(worker) else { return };
        let n_shards = self.release_all(worker);
        let is_new = self.remember(format!("{}: {reason}", member.name));
        let lane = member.lane;
        // One that never took part is heard of once, however often it comes and goes.
        if lane.is_some() || is_new {
            (self.observer)(FleetEvent::Lost {
                lane,
                name: member.name,
                reason: reason.to_owned(),
                n_shards,
            });
        }
    }

    /// Ends with a worker.
    fn turn_away(&mut self, worker: WorkerId, reason: &str, may_return: bool) {
        self.pool.dismiss(worker, may_return);
        let Some(member) = self.crew.remove(worker) else { return };
        self.release_all(worker);
        if self.remember(format!("{}: {reason}", member.name)) {
            (self.observer)(FleetEvent::Refused { name: member.name, reason: reason.to_owned() });
        }
    }

    /// Keeps a reason for the error that may follow; false if it was known.
    fn remember(&mut self, reason: String) -> bool {
        let n_before = self.reasons.len();
        self.reasons.retain(|known| *known != reason);
        let is_new = self.reasons.len() == n_before;
        self.reasons.push_back(reason);
        if self.reasons.len() > MOST_REASONS {
            self.reasons.pop_front();
        }
        is_new
    }

    /// A worker does not have a shard any more.
    fn let_go(&mut self, worker: WorkerId, shard: u64) {
        if let Some(sent) = self.shards.get_mut(&shard) {
            sent.holders.retain(|holder| holder.worker != worker);
        }
        if let Some(member) = self.crew.get_mut(worker) {
            member.n_in_flight = member.n_in_flight.saturating_sub(1);
        }
        self.tidy();
    }

    fn release_all(&mut self, worker: WorkerId) -> usize {
        let held = |sent: &SentShard| sent.holders.iter().any(|holder| holder.worker == worker);
        let shards: Vec<u64> =
            self.shards.iter().filter(|(_, sent)| held(sent)).map(|(shard, _)| *shard).collect();
        shards.iter().for_each(|shard| self.let_go(worker, *shard));
        shards.len()
    }

    /// Forgets shards that are answered and that nobody has any more.
    fn tidy(&mut self) {
        self.shards.retain(|_, sent| !sent.holders.is_empty() || sent.answer.is_none() || !sent.is_checked);
    }

    /// Whether all rows of the oldest batch are there, and those that two workers evaluate were compared.
    fn is_done(&self) -> bool {
        self.batches.front().is_some_and(|assembly| {
            let index = assembly.batch.index;
            assembly.is_full() && !self.shards.values().any(|sent| sent.batch == index && !sent.is_checked)
        })
    }
}

impl Evaluator for Fleet<'_> {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        self.batches.push_back(Assembly::new(batch, self.n_columns));
        self.feed.enter(Instant::now(), self.batches.len());
        let done = self.step(Duration::ZERO);
        self.feed.leave(Instant::now());
        done
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        if self.batches.is_empty() {
            return Err("nothing was submitted".into());
        }
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        self.feed.enter(Instant::now(), self.batches.len());
        while !self.is_done() {
            if self.is_interrupted() {
                return Err(Interrupted.into());
            }
            self.step(LOOK_EVERY)?;
        }
        let assembly = self.batches.pop_front().ok_or("nothing was submitted")?;
        self.look_at_the_feed(assembly.batch.points.len());
        Ok(assembly.into_evaluated())
    }

    fn in_flight_limit(&self) -> usize {
        // What the lag allows is asked anyway; this bounds the memory only.
        (MOST_IN_FLIGHT * self.crew.n_present()).clamp(4, 256)
    }

    fn is_ready(&mut self) -> bool {
        // An error shows when the batch is collected.
        self.failure = self.step(Duration::ZERO).err();
        self.failure.is_some() || self.is_done() || self.is_interrupted()
    }
}

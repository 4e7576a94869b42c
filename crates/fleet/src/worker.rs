//! The [`Worker`]: a function from frame to frame, whatever carries the frames.
//!
//! The study that it serves borrows its data, so that it lives on the stack of a thread of its own; [`Worker::handle`] passes messages to that
//! thread and waits. Whoever calls it from several threads at a time has as many shards under way, which keeps a device busy between two
//! shards; from one thread, one after the other.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use tidemill_search::{Batch, Evaluated, Evaluator, Points};

use crate::message::{
    Hello, Message, Refusal, RefusalCode, Shard, ShardAnswer, ShardPoints, Welcome, header_digest,
    points_digest,
};

/// Which program this is. Both sides must be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Version of the program.
    pub program: String,
    /// Number of the rules by which trials are evaluated.
    pub semantics: u32,
}

/// A study that a worker has built.
pub struct OpenStudy<'a> {
    /// What evaluates its trials.
    pub evaluator: &'a mut dyn Evaluator,
    /// Draws so many points from a trial on, where the sampler does not learn.
    pub draw: Option<&'a mut dyn FnMut(u64, usize) -> Option<Points>>,
    /// Where it evaluates, in words.
    pub device: String,
    /// Fingerprint of the data that was loaded.
    pub data: String,
}

/// Builds studies for a worker.
pub trait StudyBuilder: Send {
    /// Builds what the message names and calls `serve` with it, once; returns when that returns. An error says why it cannot be built.
    fn open(
        &mut self,
        hello: &Hello,
        serve: &mut dyn FnMut(OpenStudy<'_>),
    ) -> Result<(), (RefusalCode, String)>;
}

/// A message with the way back.
struct Job {
    message: Message,
    reply: Sender<Message>,
}

/// Evaluates shards of the study that it was last told of.
pub struct Worker {
    jobs: Sender<Job>,
}

impl Worker {
    /// A worker of this name, which lives on a thread of its own until it is dropped.
    pub fn new(
        name: String,
        identity: Identity,
        builder: impl StudyBuilder + 'static,
    ) -> std::io::Result<Self> {
        let (jobs, received) = unbounded();
        let mut service = Service { name, identity, builder: Box::new(builder), jobs: received };
        std::thread::Builder::new().name("worker".into()).spawn(move || service.run())?;
        Ok(Self { jobs })
    }

    /// The answer to a frame; none to a farewell. Any bytes have an answer.
    pub fn handle(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let message = match Message::decode(frame) {
            Ok(Message::Bye) => return None,
            Ok(message) => message,
            Err(error) => {
                return Some(refusal(0, None, RefusalCode::Malformed, error.to_string()).encode());
            }
        };
        let (session, shard) = match &message {
            Message::Hello(hello) => (hello.session, None),
            Message::Shard(shard) => (shard.session, Some(shard.shard)),
            _ => (0, None),
        };
        let (reply, answer) = bounded(1);
        // The thread is gone only if it panicked outside of all that is guarded.
        drop(self.jobs.send(Job { message, reply }));
        let lost = || refusal(session, shard, RefusalCode::Failed, "the worker is gone".into());
        Some(answer.recv().unwrap_or_else(|_| lost()).encode())
    }
}

fn refusal(session: u64, shard: Option<u64>, code: RefusalCode, text: String) -> Message {
    Message::Refusal(Refusal { session, shard, code, text })
}

struct Service {
    name: String,
    identity: Identity,
    builder: Box<dyn StudyBuilder>,
    jobs: Receiver<Job>,
}

impl Service {
    fn run(&mut self) {
        let mut next = None;
        while let Some(Job { message, reply }) = next.take().or_else(|| self.jobs.recv().ok()) {
            let answer = match message {
                Message::Hello(hello) => match self.open(&hello, &reply, &mut next) {
                    Ok(()) => continue,
                    Err((code, text)) => refusal(hello.session, None, code, text),
                },
                Message::Shard(shard) => {
                    let text = "no study was opened for it".to_owned();
                    refusal(shard.session, Some(shard.shard), RefusalCode::NoStudy, text)
                }
                _ => refusal(
                    0,
                    None,
                    RefusalCode::Malformed,
                    "only a coordinator's messages are answered".into(),
                ),
            };
            // Whoever asked may have gone.
            drop(reply.send(answer));
        }
    }

    /// Serves a study until another message ends it, which is left in `next`.
    fn open(
        &mut self,
        hello: &Hello,
        reply: &Sender<Message>,
        next: &mut Option<Job>,
    ) -> Result<(), (RefusalCode, String)> {
        let Self { name, identity, builder, jobs } = self;
        let theirs = Identity { program: hello.program.clone(), semantics: hello.semantics };
        if theirs != *identity {
            let text = format!(
                "{name} is Tidemill {}, semantics {}, and the coordinator {}, semantics {}\n  hint: install the same version on both",
                identity.program, identity.semantics, theirs.program, theirs.semantics
            );
            return Err((RefusalCode::Version, text));
        }
        let mut failed = None;
        let mut serve = |study: OpenStudy<'_>| {
            let mut session =
                Session { number: hello.session, study, waiting: VecDeque::new(), freed: Instant::now() };
            match session.welcome(hello, name, identity) {
                Ok(welcome) => {
                    drop(reply.send(welcome));
                    *next = session.serve(jobs);
                }
                Err(text) => failed = Some((RefusalCode::Failed, text)),
            }
        };
        let opened = catch_unwind(AssertUnwindSafe(|| builder.open(hello, &mut serve)));
        opened.unwrap_or_else(|payload| Err((RefusalCode::Failed, panic_text(&*payload))))?;
        failed.map_or(Ok(()), Err)
    }
}

/// A shard under way.
struct WaitingShard {
    shard: u64,
    points_digest: u64,
    begun: Instant,
    reply: Sender<Message>,
}

struct Session<'a> {
    number: u64,
    study: OpenStudy<'a>,
    waiting: VecDeque<WaitingShard>,
    /// When the last shard was collected.
    freed: Instant,
}

impl Session<'_> {
    fn welcome(&mut self, hello: &Hello, name: &str, identity: &Identity) -> Result<Message, String> {
        let began = Instant::now();
        let n_probes = hello.probes.len();
        let probes = match n_probes {
            0 => return Err("there are no probe trials".into()),
            _ => self.evaluate(Batch { index: 0, first_trial: 0, points: Arc::new(hello.probes.clone()) })?,
        };
        Ok(Message::Welcome(Welcome {
            session: self.number,
            program: identity.program.clone(),
            semantics: identity.semantics,
            name: name.to_owned(),
            device: self.study.device.clone(),
            header_digest: header_digest(&hello.header),
            data: self.study.data.clone(),
            took_us: began.elapsed().as_micros() as u64,
            probes,
        }))
    }

    fn evaluate(&mut self, batch: Batch) -> Result<Evaluated, String> {
        guarded(|| {
            self.study.evaluator.submit(batch)?;
            self.study.evaluator.collect()
        })
    }

    /// Answers shards until something else comes, or an evaluation fails; `None` if nothing will come.
    fn serve(mut self, jobs: &Receiver<Job>) -> Option<Job> {
        loop {
            let has_room = self.waiting.len() < self.study.evaluator.in_flight_limit().max(1);
            let job = match self.waiting.is_empty() {
                true => Some(jobs.recv().ok()?),
                false if has_room => jobs.try_recv().ok(),
                false => None,
            };
            match job {
                Some(Job { message: Message::Shard(shard), reply }) if shard.session == self.number => {
                    if let Err((code, text)) = self.begin(&shard, &reply) {
                        drop(reply.send(refusal(self.number, Some(shard.shard), code, text)));
                        if code == RefusalCode::Failed {
                            self.give_up("an evaluation before it failed");
                            return jobs.recv().ok();
                        }
                    }
                }
                Some(Job { message: Message::Shard(Shard { session, shard, .. }), reply }) => {
                    let text = "it belongs to a study that is over".to_owned();
                    drop(reply.send(refusal(session, Some(shard), RefusalCode::NoStudy, text)));
                }
                Some(other) => {
                    self.give_up("the coordinator began another study");
                    return Some(other);
                }
                None => {
                    if self.finish_oldest().is_err() {
                        self.give_up("an evaluation before it failed");
                        return jobs.recv().ok();
                    }
                }
            }
        }
    }

    fn begin(&mut self, shard: &Shard, reply: &Sender<Message>) -> Result<(), (RefusalCode, String)> {
        let (points, digest) = match &shard.points {
            ShardPoints::Given(points) => (points.clone(), points_digest(points)),
            ShardPoints::Drawn { count, digest } => {
                let drawn =
                    self.study.draw.as_mut().and_then(|draw| draw(shard.first_trial, *count as usize));
                match drawn.map(|points| (points_digest(&points), points)) {
                    Some((found, points)) if found == *digest => (points, found),
                    Some(_) => {
                        let text = "the sampler drew other points here than at the coordinator".to_owned();
                        return Err((RefusalCode::OtherPoints, text));
                    }
                    None => {
                        return Err((
                            RefusalCode::OtherPoints,
                            "the study's points cannot be drawn here".into(),
                        ));
                    }
                }
            }
        };
        if points.is_empty() {
            return Err((RefusalCode::Malformed, "a shard has no rows".into()));
        }
        let batch = Batch { index: shard.shard, first_trial: shard.first_trial, points: Arc::new(points) };
        guarded(|| self.study.evaluator.submit(batch)).map_err(|text| (RefusalCode::Failed, text))?;
        self.waiting.push_back(WaitingShard {
            shard: shard.shard,
            points_digest: digest,
            begun: Instant::now(),
            reply: reply.clone(),
        });
        Ok(())
    }

    fn finish_oldest(&mut self) -> Result<(), ()> {
        let Some(WaitingShard { shard, points_digest, begun, reply }) = self.waiting.pop_front() else {
            return Ok(());
        };
        let session = self.number;
        let evaluated = guarded(|| self.study.evaluator.collect());
        let now = Instant::now();
        let took = now.saturating_duration_since(begun.max(self.freed));
        self.freed = now;
        let is_failed = evaluated.is_err();
        let answer = match evaluated {
            Ok(evaluated) => {
                let took_us = took.as_micros() as u64;
                Message::Answer(ShardAnswer { session, shard, points_digest, took_us, evaluated })
            }
            Err(text) => refusal(session, Some(shard), RefusalCode::Failed, text),
        };
        drop(reply.send(answer));
        if is_failed { Err(()) } else { Ok(()) }
    }

    /// Answers all that is under way; the evaluator is not asked any more.
    fn give_up(&mut self, why: &str) {
        for WaitingShard { shard, reply, .. } in self.waiting.drain(..) {
            drop(reply.send(refusal(self.number, Some(shard), RefusalCode::NoStudy, why.to_owned())));
        }
    }
}

fn guarded<T>(work: impl FnOnce() -> Result<T, tidemill_search::EvaluateError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| {
            let causes = std::iter::successors(error.source(), |error| (*error).source());
            causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
        }),
        Err(payload) => Err(panic_text(&*payload)),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

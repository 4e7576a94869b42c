//! Whatever bytes arrive, neither side panics, and neither believes them.
//!
//! `TIDEMILL_FRAMES=10000000` tries more of them.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidemill_fleet::{
    Fleet, FleetOptions, FleetStudy, Hello, Identity, Message, OpenStudy, Refusal, RefusalCode, Shard,
    ShardAnswer, ShardPoints, StudyBuilder, Transport, TransportEvent, Welcome, Worker, WorkerId, WorkerPool,
    frame,
};
use tidemill_search::rng::Stream;
use tidemill_search::{Batch, EvaluateError, Evaluated, Evaluator, FunctionEvaluator, Points, Score, Scores};

fn n_frames() -> u64 {
    std::env::var("TIDEMILL_FRAMES").map_or(100_000, |text| text.parse().unwrap())
}

/// Numbers from a seed.
struct Dice {
    stream: Stream,
    n_thrown: Cell<u64>,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { stream: Stream::new(seed, 0), n_thrown: Cell::new(0) }
    }

    fn below(&self, n: usize) -> usize {
        self.n_thrown.set(self.n_thrown.get() + 1);
        (self.stream.bits(self.n_thrown.get()) % n.max(1) as u64) as usize
    }
}

fn evaluate(points: &Points) -> Evaluated {
    let scores: Vec<Score> = (0..points.len()).map(|row| Score::new(points.value(row, 0))).collect();
    Evaluated { scores: Scores::single(&scores), metrics: vec![vec![1.0; points.len()]] }
}

fn points(n_rows: usize) -> Points {
    Points::from_columns(n_rows, vec![(0..n_rows).map(|row| row as f64).collect(); 2])
}

struct Builder;

impl StudyBuilder for Builder {
    fn open(
        &mut self,
        hello: &Hello,
        serve: &mut dyn FnMut(OpenStudy<'_>),
    ) -> Result<(), (RefusalCode, String)> {
        if hello.probes.n_params() != 2 {
            return Err((RefusalCode::Study, "it has two parameters".into()));
        }
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| match batch.points.n_params() {
            2 => Ok(evaluate(&batch.points)),
            _ => Err("a point has two parameters".into()),
        });
        let mut draw = |_, count: usize| (count < 1000).then(|| points(count));
        let (device, data) = ("a formula".into(), "data".into());
        serve(OpenStudy { evaluator: &mut evaluator, draw: Some(&mut draw), device, data });
        Ok(())
    }
}

fn identity() -> Identity {
    Identity { program: "1.0.0".into(), semantics: 1 }
}

fn messages(session: u64) -> Vec<Message> {
    let hello = Hello {
        session,
        program: "1.0.0".into(),
        semantics: 1,
        header: "seed = 1".into(),
        data: "data".into(),
        has_test: false,
        probes: points(3),
    };
    let welcome = Welcome {
        session,
        program: "1.0.0".into(),
        semantics: 1,
        name: "w".into(),
        device: "a formula".into(),
        header_digest: 5,
        data: "data".into(),
        took_us: 1,
        probes: evaluate(&points(3)),
    };
    let shard = |points| Message::Shard(Shard { session, shard: 0, first_trial: 0, points });
    vec![
        Message::Hello(hello),
        Message::Welcome(welcome),
        shard(ShardPoints::Given(points(4))),
        shard(ShardPoints::Drawn { count: 4, digest: 1 }),
        Message::Answer(ShardAnswer {
            session,
            shard: 0,
            points_digest: 1,
            took_us: 1,
            evaluated: evaluate(&points(4)),
        }),
        Message::Refusal(Refusal { session, shard: Some(0), code: RefusalCode::NoStudy, text: "no".into() }),
        Message::Bye,
    ]
}

/// Bytes that are nearly a frame: changed, cut, or grown, half of them with a checksum that is right.
fn malformed(dice: &Dice, session: u64) -> Vec<u8> {
    let whole = messages(session)[dice.below(7)].encode();
    if dice.below(50) == 0 {
        return (0..dice.below(200)).map(|_| dice.below(256) as u8).collect();
    }
    let is_sealed = dice.below(2) == 0;
    let mut bytes = if is_sealed { whole[frame::HEADER_LEN..].to_vec() } else { whole.clone() };
    for _ in 0..1 + dice.below(4) {
        match dice.below(4) {
            0 => bytes.truncate(dice.below(bytes.len() + 1)),
            1 => bytes.extend((0..dice.below(9)).map(|_| dice.below(256) as u8)),
            2 if !bytes.is_empty() => {
                let at = dice.below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, dice.below(256) as u8][dice.below(6)];
            }
            _ if bytes.len() >= 4 => {
                let at = dice.below(bytes.len() - 3);
                let word = [0, 1, u32::MAX, 1 << 26, 1 << 31][dice.below(5)];
                bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            _ => {}
        }
    }
    if is_sealed {
        frame::wrap(if dice.below(20) == 0 { dice.below(256) as u8 } else { whole[6] }, &bytes)
    } else {
        bytes
    }
}

#[test]
fn a_worker_answers_any_bytes_and_still_serves_afterwards() {
    let worker = Worker::new("w".into(), identity(), Builder).unwrap();
    let dice = Dice::new(1);
    for number in 0..n_frames() {
        let bytes = malformed(&dice, 1 + number % 2);
        if let Some(answer) = worker.handle(&bytes) {
            let answer = Message::decode(&answer).unwrap();
            assert!(
                matches!(answer, Message::Welcome(_) | Message::Answer(_) | Message::Refusal(_)),
                "{answer:?}"
            );
        }
        drop(frame::read(&mut &bytes[..]));
    }
    let [hello, shard] = [0, 2].map(|at| Message::decode(&worker.handle(&messages(7)[at].encode()).unwrap()));
    assert!(matches!(hello, Ok(Message::Welcome(_))) && matches!(shard, Ok(Message::Answer(_))));
}

/// Workers whose answers are nonsense, one after the other, and in the end an honest one.
struct Nonsense {
    dice: Dice,
    n_left: Arc<AtomicU64>,
    honest: Worker,
    n_joined: WorkerId,
    waiting: Vec<(WorkerId, Vec<u8>)>,
}

impl Transport for Nonsense {
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>) {
        self.waiting.push((worker, frame));
    }

    fn poll(&mut self, _timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        let mut events = Vec::new();
        for (worker, sent) in std::mem::take(&mut self.waiting) {
            let session = u64::from_le_bytes(sent[frame::HEADER_LEN..][..8].try_into().unwrap());
            for _ in 0..4.min(self.n_left.load(Ordering::SeqCst)) {
                self.n_left.fetch_sub(1, Ordering::SeqCst);
                events.push(TransportEvent::Answered { worker, frame: malformed(&self.dice, session) });
            }
            events.extend(self.honest.handle(&sent).map(|frame| TransportEvent::Answered { worker, frame }));
        }
        if events.is_empty() {
            let worker = self.n_joined;
            self.n_joined += 1;
            events.push(TransportEvent::Joined { worker, label: format!("w{worker}") });
        }
        Ok(events)
    }

    fn dismiss(&mut self, worker: WorkerId, _may_return: bool) {
        self.waiting.retain(|(holder, _)| *holder != worker);
    }
}

#[test]
fn a_coordinator_believes_no_malformed_answer() {
    let honest = Worker::new("honest".into(), identity(), Builder).unwrap();
    let n_left = Arc::new(AtomicU64::new(n_frames()));
    let transport =
        Nonsense { dice: Dice::new(2), n_left: n_left.clone(), honest, n_joined: 0, waiting: Vec::new() };
    let mut pool = WorkerPool::new(Box::new(transport));
    let study = FleetStudy {
        identity: identity(),
        header: "seed = 1".into(),
        data: "data".into(),
        has_test: false,
        probes: points(3),
        is_drawn: false,
    };
    let reference = Box::new(|points: &Points| Ok::<_, EvaluateError>(evaluate(points)));
    let mut fleet = Fleet::new(&mut pool, study, FleetOptions::default(), reference, Box::new(drop)).unwrap();
    let batch = Arc::new(points(64));
    for index in (0..).take_while(|_| n_left.load(Ordering::SeqCst) > 0) {
        fleet.submit(Batch { index, first_trial: 64 * index, points: batch.clone() }).unwrap();
        assert_eq!(fleet.collect().unwrap(), evaluate(&batch));
    }
}

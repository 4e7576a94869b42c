//! Samplers and evaluators that a test can see through: what they propose follows from the scores they got, and the test sets how long they take.

use std::time::Duration;

use tidemill_search::rng::Stream;
use tidemill_search::{
    Batch, Choice, Condition, Domain, EvaluateError, Evaluated, Evaluator, Param, Points, Sampler, Score,
    Scores, Space,
};

pub fn space() -> Space {
    let float = Domain::Float { low: -1.0, high: 1.0, step: None, log: false };
    let mut tail = Param::new("tail", float.clone(), 0.5);
    tail.when = Some(Condition::new(|row| row[2] == 1.0));
    let options = vec![Choice::Text("a".into()), Choice::Number(2.5), Choice::Number(7.0)];
    Space {
        params: vec![
            Param::new("x", float, 0.0),
            Param::new("n", Domain::Int { low: -20, high: 20, step: 1, log: false }, 1.0),
            Param::new("on", Domain::Bool, 0.0),
            tail,
            Param::new("pick", Domain::Choice { options }, 0.0),
        ],
    }
}

/// Every point depends on every score told so far and on their order, so that no deviation from the schedule stays hidden.
pub struct Toy {
    pub space: Space,
    pub state: u64,
    pub n_asked: u64,
    pub max_delay: Duration,
    pub ends_after: Option<u64>,
    pub panics_at: Option<u64>,
}

impl Toy {
    pub fn new() -> Self {
        let max_delay = Duration::ZERO;
        Self { space: space(), state: 1, n_asked: 0, max_delay, ends_after: None, panics_at: None }
    }
}

/// Sleeps for a time that differs from run to run.
pub fn dawdle(at_most: Duration) {
    if !at_most.is_zero() {
        let nanos =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
        std::thread::sleep(at_most.mul_f64(Stream::new(u64::from(nanos), 0).unit(0)));
    }
}

impl Sampler for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn ask(&mut self, n: usize) -> Points {
        dawdle(self.max_delay);
        let left = self.ends_after.map_or(u64::MAX, |end| end.saturating_sub(self.n_asked));
        let n = n.min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.panics_at.is_some_and(|at| self.n_asked >= at) {
            panic!("out of ideas");
        }
        let mut points = Points::new(self.space.len());
        for _ in 0..n {
            let unit = |dimension| Stream::new(self.state, dimension).unit(self.n_asked);
            let values =
                self.space.params.iter().zip(0..).map(|(param, at)| param.domain.from_unit(unit(at)));
            points.push(&values.collect::<Vec<f64>>());
            self.n_asked += 1;
        }
        self.space.deactivate(&mut points);
        points
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        dawdle(self.max_delay);
        assert_eq!(points.len(), scores.len());
        for row in 0..points.len() {
            for value in [points.value(row, 0), scores.first(row).value().unwrap_or(9.0)] {
                self.state = Stream::new(self.state, value.to_bits()).bits(row as u64);
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.ends_after.map(|end| end.saturating_sub(self.n_asked))
    }
}

/// Records the order of asks and tells.
#[derive(Default)]
pub struct Diary {
    pub n_told: u64,
    pub told_at_ask: Vec<u64>,
    /// How many points were asked each time.
    pub lengths: Vec<usize>,
}

impl Sampler for Diary {
    fn name(&self) -> &'static str {
        "diary"
    }

    fn ask(&mut self, n: usize) -> Points {
        self.told_at_ask.push(self.n_told);
        self.lengths.push(n);
        Toy::new().ask(n)
    }

    fn tell(&mut self, _points: &Points, _scores: &Scores) {
        self.n_told += 1;
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// Takes its time, always the same.
pub struct Slow {
    pub toy: Toy,
    pub ask: Duration,
    pub tell: Duration,
}

impl Sampler for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn ask(&mut self, n: usize) -> Points {
        std::thread::sleep(self.ask);
        self.toy.ask(n)
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        std::thread::sleep(self.tell);
        self.toy.tell(points, scores);
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

pub fn evaluate(batch: &Batch) -> Evaluated {
    let points = &batch.points;
    let score = |row| match points.value(row, 2) + points.value(row, 4) {
        3.0 => Score::Invalid,
        _ => Score::new(points.value(row, 0) * points.value(row, 1)),
    };
    let scores: Vec<Score> = (0..points.len()).map(score).collect();
    let square = points.column(0).iter().map(|x| if *x > 0.9 { f64::NAN } else { x * x }).collect();
    Evaluated { scores: Scores::single(&scores), metrics: vec![square] }
}

/// Works on several batches at once, on threads of its own.
pub struct Parallel {
    pub running: std::collections::VecDeque<std::thread::JoinHandle<Evaluated>>,
    pub limit: usize,
    pub max_delay: Duration,
}

impl Evaluator for Parallel {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        assert!(self.running.len() < self.limit);
        let max_delay = self.max_delay;
        self.running.push_back(std::thread::spawn(move || {
            dawdle(max_delay);
            evaluate(&batch)
        }));
        Ok(())
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        let oldest = self.running.pop_front().ok_or("nothing to collect")?;
        oldest.join().map_err(|_| "a worker panicked".into())
    }

    fn in_flight_limit(&self) -> usize {
        self.limit
    }

    fn is_ready(&mut self) -> bool {
        self.running.front().is_some_and(|oldest| oldest.is_finished())
    }
}

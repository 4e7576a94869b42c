//! A study whose trials are a formula, and workers with one fault each.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use tidemill_fleet::{
    Fleet, FleetEvent, FleetOptions, FleetStudy, Hello, Identity, OpenStudy, RefusalCode, StudyBuilder,
    Worker, WorkerPool,
};
use tidemill_search::{
    Batch, Domain, EvaluateError, Evaluated, Evaluator, ExportFormat, FunctionEvaluator, Param, Points,
    SamplerKind, SamplerSettings, Score, Scores, Space, Study, StudyFolder, StudyHeader, export,
};

const SEED: u64 = 7;
const HEADER: &str = "a toy";
const DATA: &str = "no data";

/// What is wrong with a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    None,
    LiesByOneBit,
    ProbesDiffer,
    OtherVersion,
    OtherData,
    CannotBuild,
    DrawsOtherPoints,
    Panics,
}

/// A small study.
#[derive(Clone, Copy, Debug)]
pub struct Toy {
    pub sampler: SamplerKind,
    pub n_trials: u64,
    pub batch: usize,
    pub lag: usize,
    pub is_pipelined: bool,
}

fn space() -> Space {
    let range = Domain::Float { low: -1.0, high: 1.0, step: None, log: false };
    let whole = Domain::Int { low: 1, high: 100, step: 1, log: false };
    Space { params: vec![Param::new("x", range, 0.0), Param::new("n", whole, 5.0)] }
}

fn evaluate(points: &Points) -> Evaluated {
    let at = |row: usize| (points.value(row, 0), points.value(row, 1));
    let score = |row: usize| match at(row) {
        (x, n) if x < -0.8 => Score::new(f64::NAN * n),
        (x, n) => Score::new((x * 1.7 - 0.3) / (n + 0.1) - x * x),
    };
    let metrics = vec![
        (0..points.len()).map(|row| at(row).0 / at(row).1).collect(),
        (0..points.len()).map(|row| if at(row).1 > 50.0 { f64::NAN } else { at(row).1.sqrt() }).collect(),
    ];
    Evaluated { scores: Scores::single(&(0..points.len()).map(score).collect::<Vec<_>>()), metrics }
}

struct Builder(Trouble);

impl StudyBuilder for Builder {
    fn open(
        &mut self,
        hello: &Hello,
        serve: &mut dyn FnMut(OpenStudy<'_>),
    ) -> Result<(), (RefusalCode, String)> {
        let trouble = self.0;
        assert_eq!(hello.header, HEADER);
        if trouble == Trouble::CannotBuild {
            return Err((RefusalCode::Study, "there is no such strategy".into()));
        }
        let mut is_probe = true;
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
            let mut evaluated = evaluate(&batch.points);
            let was_probe = std::mem::replace(&mut is_probe, false);
            match trouble {
                Trouble::Panics if !was_probe => panic!("a bad day"),
                Trouble::LiesByOneBit if !was_probe => {
                    evaluated.metrics[0][0] = f64::from_bits(evaluated.metrics[0][0].to_bits() ^ 1);
                }
                Trouble::ProbesDiffer => evaluated.metrics[0][0] += 1.0,
                _ => {}
            }
            Ok(evaluated)
        });
        let sampler: SamplerKind = if hello.has_test { SamplerKind::Sobol } else { SamplerKind::Random };
        let seed = SEED + u64::from(trouble == Trouble::DrawsOtherPoints);
        let mut draw = |first: u64, count: usize| {
            let mut sampler = sampler.build(&space(), &SamplerSettings::new(seed)).ok()?;
            sampler.skip(first).then(|| sampler.ask(count))
        };
        serve(OpenStudy {
            evaluator: &mut evaluator,
            draw: Some(&mut draw),
            device: "a formula".into(),
            data: if trouble == Trouble::OtherData { "other data" } else { DATA }.into(),
        });
        Ok(())
    }
}

/// A worker with this fault.
pub fn worker(name: &str, trouble: Trouble) -> Worker {
    let program = if trouble == Trouble::OtherVersion { "0.0.9" } else { "1.0.0" }.into();
    Worker::new(name.into(), Identity { program, semantics: 4 }, Builder(trouble)).unwrap()
}

impl Toy {
    /// The export of the study on one thread.
    pub fn serially(&self) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(&batch.points)));
        Self { is_pipelined: false, ..*self }.run(dir.path(), &mut evaluator).unwrap()
    }

    /// The export of the study on a fleet, or why there is none, and what happened.
    pub fn on_fleet(
        &self,
        pool: &mut WorkerPool,
        options: FleetOptions,
    ) -> (Result<String, String>, Vec<FleetEvent>) {
        self.on_fleet_in(tempfile::tempdir().unwrap().path(), pool, options)
    }

    /// The same in this folder.
    pub fn on_fleet_in(
        &self,
        dir: &Path,
        pool: &mut WorkerPool,
        options: FleetOptions,
    ) -> (Result<String, String>, Vec<FleetEvent>) {
        let mut probes = SamplerKind::Random.build(&space(), &SamplerSettings::new(99)).unwrap();
        let study = FleetStudy {
            identity: Identity { program: "1.0.0".into(), semantics: 4 },
            header: HEADER.into(),
            data: DATA.into(),
            has_test: self.sampler == SamplerKind::Sobol,
            probes: probes.ask(16),
            is_drawn: matches!(self.sampler, SamplerKind::Sobol | SamplerKind::Random),
        };
        let events = Rc::new(RefCell::new(Vec::new()));
        let heard = events.clone();
        let mut fleet = Fleet::new(
            pool,
            study,
            options,
            Box::new(|points| Ok::<_, EvaluateError>(evaluate(points))),
            Box::new(move |event| heard.borrow_mut().push(event)),
        )
        .unwrap();
        let result = self.run(dir, &mut fleet);
        drop(fleet);
        (result, Rc::into_inner(events).unwrap().into_inner())
    }

    fn run(&self, dir: &Path, evaluator: &mut dyn Evaluator) -> Result<String, String> {
        let space = space();
        let settings = SamplerSettings {
            n_trials: Some(self.n_trials),
            batch: self.batch,
            ..SamplerSettings::new(SEED)
        };
        let mut sampler = self.sampler.build(&space, &settings).unwrap();
        let header = StudyHeader {
            version: "1.0.0".into(),
            semantics: 4,
            seed: SEED,
            data_hash: DATA.into(),
            config: Default::default(),
        };
        let folder = StudyFolder::open_or_create(dir, &header).unwrap().folder;
        let study = Study::new(&space, &mut *sampler)
            .trials(self.n_trials)
            .batch(self.batch)
            .lag(self.lag)
            .pipeline(self.is_pipelined)
            .metrics(&["ratio", "root"])
            .folder(&folder);
        study.run(evaluator).map_err(|error| {
            let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
            causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
        })?;
        let mut out = Vec::new();
        export(dir, ExportFormat::Csv, &mut out).unwrap();
        Ok(String::from_utf8(out).unwrap())
    }
}

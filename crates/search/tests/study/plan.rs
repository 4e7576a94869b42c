//! A study of the toy as the tests run it, and all that comes of it as bits.

use std::cell::RefCell;
use std::path::Path;

use tidemill_search::{
    Batch, EvaluateError, Evaluated, Evaluator, ExportFormat, FunctionEvaluator, Sampler, Study, StudyError,
    StudyEvent, StudyFolder, StudyHeader, StudySummary, export,
};

use crate::toy::{Toy, evaluate, space};

/// All points, scores and metrics of a study, as bits.
#[derive(Default, PartialEq, Debug)]
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn push(&mut self, batch: &Batch, evaluated: &Evaluated) {
        let points = (0..batch.points.n_params()).flat_map(|at| batch.points.column(at));
        let values = points.chain(evaluated.scores.column(0)).chain(evaluated.metrics.iter().flatten());
        self.0.extend([batch.index, batch.first_trial, batch.points.len() as u64]);
        self.0.extend(values.map(|value| value.to_bits()));
    }
}

#[derive(Clone, Copy)]
pub struct Plan {
    pub trials: u64,
    pub batch: usize,
    pub lag: usize,
    pub pipeline: bool,
}

impl Plan {
    pub fn run(
        self,
        sampler: &mut dyn Sampler,
        evaluator: &mut dyn Evaluator,
        folder: Option<&StudyFolder>,
    ) -> (Result<StudySummary, StudyError>, Bits) {
        let space = space();
        let bits = RefCell::new(Bits::default());
        let mut study = Study::new(&space, sampler)
            .trials(self.trials)
            .batch(self.batch)
            .lag(self.lag)
            .pipeline(self.pipeline)
            .metrics(&["square"])
            .rows_per_part(50)
            .observe(|event| {
                if let StudyEvent::Finished { batch, evaluated, .. } = event {
                    bits.borrow_mut().push(batch, evaluated);
                }
            });
        if let Some(folder) = folder {
            study = study.folder(folder);
        }
        let result = study.run(evaluator);
        (result, bits.into_inner())
    }

    pub fn plain(self) -> (StudySummary, Bits) {
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
        let (summary, bits) = self.run(&mut Toy::new(), &mut evaluator, None);
        (summary.unwrap(), bits)
    }
}

pub fn create(dir: &Path) -> StudyFolder {
    let header = StudyHeader {
        version: "0.1.0".into(),
        semantics: 2,
        seed: 1,
        data_hash: "none".into(),
        config: toml::Table::new(),
    };
    StudyFolder::open_or_create(dir, &header).unwrap().folder
}

pub fn exported(dir: &Path) -> Vec<Vec<u8>> {
    let bytes = ExportFormat::ALL.map(|format| {
        let mut bytes = Vec::new();
        export(dir, format, &mut bytes).unwrap();
        bytes
    });
    bytes.to_vec()
}

pub fn whole_message(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Runs the toy in a folder, with a fresh sampler.
pub fn run_in(
    folder: &StudyFolder,
    plan: Plan,
    evaluate: impl FnMut(&Batch) -> Result<Evaluated, EvaluateError>,
) -> (Result<StudySummary, StudyError>, Bits) {
    plan.run(&mut Toy::new(), &mut FunctionEvaluator::new(evaluate), Some(folder))
}

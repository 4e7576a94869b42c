//! How a study scales over workers, with times in place of work: what docs/cluster.md computes by a formula, run through the fleet itself.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tidemill_fleet::{
    Fleet, FleetOptions, FleetStudy, Hello, Identity, InProcess, OpenStudy, RefusalCode, StudyBuilder,
    Worker, WorkerPool,
};
use tidemill_search::quality::Function;
use tidemill_search::{
    Batch, EvaluateError, Evaluated, FunctionEvaluator, Points, Sampler, SamplerKind, SamplerSettings,
    Scores, Study,
};

/// Float parameters, as many as the largest strategy has.
const N_PARAMS: usize = 142;

#[derive(Args)]
pub struct FleetArgs {
    /// Numbers of workers.
    #[arg(long, value_name = "W,…", value_delimiter = ',', default_values_t = [1, 2, 4, 16])]
    workers: Vec<usize>,
    /// Lags.
    #[arg(long, value_name = "L,…", value_delimiter = ',', default_values_t = [0, 2, 16])]
    lags: Vec<usize>,
    /// Milliseconds to ask and tell a batch; 0 is a sampler that does not learn.
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    sampler_ms: f64,
    /// Milliseconds that a worker takes for a batch.
    #[arg(long, value_name = "MS", default_value_t = 200.0)]
    worker_ms: f64,
    /// Trials of a batch.
    #[arg(long, value_name = "B", default_value_t = 1024)]
    batch: usize,
    /// Batches of a study.
    #[arg(long, value_name = "N", default_value_t = 60)]
    batches: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn sleep(ms: f64) {
    std::thread::sleep(Duration::from_secs_f64(ms / 1e3));
}

fn results(points: &Points) -> Evaluated {
    Evaluated {
        scores: Scores::from_columns(points.len(), vec![points.column(0).to_vec()]),
        metrics: Vec::new(),
    }
}

/// A sampler that takes its time.
struct SlowSampler {
    inner: Box<dyn Sampler>,
    half_ms: f64,
}

impl Sampler for SlowSampler {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn ask(&mut self, n: usize) -> Points {
        sleep(self.half_ms);
        self.inner.ask(n)
    }

    fn tell(&mut self, _points: &Points, _scores: &Scores) {
        sleep(self.half_ms);
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// Workers that take their time: so much for a trial.
struct SlowBuilder {
    trial_ms: f64,
}

impl StudyBuilder for SlowBuilder {
    fn open(
        &mut self,
        _hello: &Hello,
        serve: &mut dyn FnMut(OpenStudy<'_>),
    ) -> Result<(), (RefusalCode, String)> {
        let trial_ms = self.trial_ms;
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
            sleep(trial_ms * batch.points.len() as f64);
            Ok(results(&batch.points))
        });
        let (device, data) = ("a clock".to_owned(), String::new());
        serve(OpenStudy { evaluator: &mut evaluator, draw: None, device, data });
        Ok(())
    }
}

pub fn run(args: FleetArgs) -> Result<ExitCode> {
    let mut rows = Vec::new();
    for &lag in &args.lags {
        for &n_workers in &args.workers {
            let measured = batches_a_second(&args, n_workers, lag)?;
            let (a, e, w) = (args.sampler_ms / 1e3, args.worker_ms / 1e3, n_workers as f64);
            let bounds = [1.0 / a, w / e, (lag + 1) as f64 / (a + e / w)];
            let formula = bounds.into_iter().fold(f64::INFINITY, f64::min);
            if !args.json {
                println!(
                    "lag {lag:2}, {n_workers:3} workers: {measured:6.2} batches/s, by the formula {formula:6.2}"
                );
            }
            rows.push(json!({ "lag": lag, "workers": n_workers, "measured": measured, "formula": formula }));
        }
    }
    if args.json {
        println!("{}", json!(rows));
    }
    Ok(ExitCode::SUCCESS)
}

fn batches_a_second(args: &FleetArgs, n_workers: usize, lag: usize) -> Result<f64> {
    let identity = Identity { program: env!("CARGO_PKG_VERSION").into(), semantics: 1 };
    let space = Function::Sphere.space(N_PARAMS);
    let settings = SamplerSettings { batch: args.batch, ..SamplerSettings::new(1) };
    let mut inner = SamplerKind::Random.build(&space, &settings)?;
    let study = FleetStudy {
        identity: identity.clone(),
        header: String::new(),
        data: String::new(),
        has_test: false,
        probes: inner.ask(16),
        is_drawn: false,
    };
    let trial_ms = args.worker_ms / args.batch as f64;
    let workers: Vec<Worker> = (0..n_workers)
        .map(|number| Worker::new(number.to_string(), identity.clone(), SlowBuilder { trial_ms }))
        .collect::<std::io::Result<_>>()?;
    let mut pool = WorkerPool::new(Box::new(InProcess::new(workers)?));
    let reference = Box::new(|points: &Points| Ok::<_, EvaluateError>(results(points)));
    let fleet = Fleet::new(&mut pool, study, FleetOptions::default(), reference, Box::new(drop));
    let mut fleet = fleet.map_err(|error| anyhow::anyhow!(error))?;
    let mut sampler = SlowSampler { inner, half_ms: args.sampler_ms / 2.0 };
    let n_trials = args.batches * args.batch as u64;
    let study = Study::new(&space, &mut sampler).trials(n_trials).batch(args.batch).lag(lag);
    let summary = study.run(&mut fleet)?;
    Ok(summary.n_batches as f64 / summary.wall.as_secs_f64())
}

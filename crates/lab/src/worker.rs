//! The other side of a cluster: a worker that builds any study it is told of and evaluates its shards.

use std::path::PathBuf;
use std::sync::Arc;

use tidemill_fleet::{Hello, OpenStudy, RefusalCode, StudyBuilder, Worker};
use tidemill_search::{Points, Sampler, SamplerSettings, StudyHeader};

use crate::cluster::identity;
use crate::config::StudyConfig;
use crate::dataset::Dataset;
use crate::enqueue::QueuedSets;
use crate::error::{LabError, in_full};
use crate::evaluator::StudyEvaluator;
use crate::experiment::{Experiment, build_sampler, search_space};
use crate::runtime::Runtime;
use crate::search::part_range;

/// What a worker evaluates with.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// Its name in messages; host and process if it is not given.
    pub name: Option<String>,
    /// Data that is in memory already; used where its fingerprint is that of the study.
    pub data: Option<Arc<Dataset>>,
    /// Files that hold the data here, in place of those that the coordinator names.
    pub files: Vec<PathBuf>,
    /// Its devices and memory.
    pub runtime: Runtime,
}

/// A worker that serves any study. It lives until it is dropped and keeps the data of the last study.
pub fn study_worker(options: WorkerOptions) -> std::io::Result<Worker> {
    let name = options.name.clone().unwrap_or_else(own_name);
    Worker::new(name, identity(), LabBuilder { options })
}

/// Host and process.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    let host = host.map_or_else(|| "worker".to_owned(), |host| host.trim().to_owned());
    format!("{host}:{}", std::process::id())
}

struct LabBuilder {
    options: WorkerOptions,
}

impl StudyBuilder for LabBuilder {
    fn open(
        &mut self,
        hello: &Hello,
        serve: &mut dyn FnMut(OpenStudy<'_>),
    ) -> Result<(), (RefusalCode, String)> {
        let header: StudyHeader = toml::from_str(&hello.header)
            .map_err(|error| (RefusalCode::Study, format!("the study cannot be read: {error}")))?;
        let config = StudyConfig::read(&header);
        self.load(&config, &hello.data).map_err(|text| (RefusalCode::Data, text))?;
        self.serve(&config, hello, serve).map_err(|error| (RefusalCode::Study, in_full(&error)))
    }
}

impl LabBuilder {
    /// Loads the data of a study, unless it is there.
    fn load(&mut self, config: &StudyConfig, fingerprint: &str) -> Result<(), String> {
        let WorkerOptions { data, files, .. } = &mut self.options;
        if data.as_ref().is_some_and(|data| data.universe.fingerprint() == fingerprint) {
            return Ok(());
        }
        let recipe = match &config.about.source {
            None if files.is_empty() => {
                return Err(
                    "the study does not say where its data is\n  hint: name it with `tidemill worker --data`"
                        .into(),
                );
            }
            recipe => recipe.clone().unwrap_or_default().replaced(files, None),
        };
        if let Some(path) = recipe.missing() {
            let path = path.display();
            return Err(format!(
                "there is no {path} here\n  hint: put the data of the study there, or name it with `tidemill worker --data`"
            ));
        }
        let loaded = recipe.load_bars().map_err(|error| in_full(&error))?;
        *data = Some(Arc::new(loaded));
        Ok(())
    }

    fn serve(
        &self,
        config: &StudyConfig,
        hello: &Hello,
        serve: &mut dyn FnMut(OpenStudy<'_>),
    ) -> Result<(), LabError> {
        let WorkerOptions { data, runtime, .. } = &self.options;
        let data = data.clone().unwrap_or_else(|| Arc::new(Dataset::generated()));
        let strategy =
            config.searched_strategy()?.ok_or_else(|| LabError::NoSource { dir: "study".into() })?;
        let fingerprint = data.universe.fingerprint();
        let experiment =
            Experiment::new(strategy, data).layout(config.segments.clone()).runtime(runtime.clone());
        let mut engine = experiment.engine(&experiment.layout, 1)?;
        let space = search_space(&engine)?;
        let queue = QueuedSets::read(&config.sweep.enqueue, &experiment.strategy)?;
        let kind = config.sweep.sampler.as_deref().and_then(|name| name.parse().ok());
        let part = config.sweep.part.as_deref().and_then(|part| part.parse().ok());
        let settings = SamplerSettings {
            seed: config.seed,
            n_trials: config.sweep.plan_trials.or(config.sweep.trials),
            batch: config.sweep.batch.unwrap_or(1),
            n_objectives: experiment.strategy.objectives.len(),
        };
        let mut drawn = DrawnPoints {
            build: Box::new(|| {
                let mut sampler = build_sampler(kind?, &space, &settings, &queue.sets).ok()?;
                let range = part_range(&*sampler, part, config.sweep.trials?);
                sampler.skip(range.start).then_some(sampler)
            }),
            sampler: None,
            n_drawn: 0,
        };
        let mut evaluator = StudyEvaluator::new(
            &mut engine,
            &experiment.strategy,
            &runtime.devices,
            runtime.device_options,
            None,
        )?
        .with_test_columns(hello.has_test);
        serve(OpenStudy {
            evaluator: &mut evaluator,
            draw: Some(&mut |first, count| drawn.draw(first, count)),
            device: runtime.devices.shown(),
            data: fingerprint,
        });
        Ok(())
    }
}

/// The points of a sampler that does not learn, from any trial on.
struct DrawnPoints<'a> {
    build: Box<dyn Fn() -> Option<Box<dyn Sampler>> + 'a>,
    sampler: Option<Box<dyn Sampler>>,
    n_drawn: u64,
}

impl DrawnPoints<'_> {
    fn draw(&mut self, first: u64, count: usize) -> Option<Points> {
        if first < self.n_drawn || self.sampler.is_none() {
            // Samplers go forwards only.
            (self.sampler, self.n_drawn) = ((self.build)(), 0);
        }
        let sampler = self.sampler.as_mut()?;
        if !sampler.skip(first - self.n_drawn) {
            self.sampler = None;
            return None;
        }
        self.n_drawn = first + count as u64;
        Some(sampler.ask(count))
    }
}

//! Evolution on the best points of the whole study, whatever makes a child of them.
//!
//! Every child is evaluated once and competes for a place among the elites; there are no generations, so that nothing waits for a
//! slow trial and a batch may have any size. How a child is made is an [`Operator`]: crossing and mutation in `genetic.rs`, differences
//! of elites in `differential.rs`.

use std::marker::PhantomData;
use std::ops::Range;

use crate::point::Points;
use crate::sampler::archive::gene::{Gene, Streams, points_from_genes};
use crate::sampler::archive::{Archive, Pool};
use crate::sampler::start::Start;
use crate::sampler::{Sampler, SamplerSettings};
use crate::score::Scores;
use crate::space::Space;

/// The fewest and the most elites.
const N_ELITES: (usize, usize) = (16, 64);

/// How a child is made of elites, which are places in the archive.
pub(super) trait Operator {
    /// The name of the sampler.
    const NAME: &'static str;

    /// Keeps the streams of the sampler apart from those of others under the same seed.
    const SEED_TWIST: u64;

    /// What is decided for a child as a whole.
    type Recipe: Send + Sync;

    /// The recipes of some trials.
    fn recipes(archive: &Archive, streams: &Streams, trials: Range<u64>) -> Vec<Self::Recipe>;

    /// Fills a column with one gene of all children.
    fn breed(parents: &Parents<'_>, first_trial: u64, recipes: &[Self::Recipe], column: &mut [f64]);
}

/// One gene of all elites.
pub(super) struct Parents<'a> {
    pub(super) gene_idx: usize,
    pub(super) n_genes: usize,
    pub(super) gene: &'a Gene,
    pub(super) pool: &'a Pool,
    pub(super) streams: &'a Streams,
}

impl Parents<'_> {
    /// Whether some have no place between others: categories, and parameters that are not active in every elite.
    pub(super) fn is_special(&self) -> bool {
        self.gene.is_category || self.pool.values.iter().any(|value| value.is_nan())
    }
}

/// Makes points of the elites of the study. Until enough valid points were told, they come from a scrambled Sobol sequence.
#[derive(Clone, Debug)]
pub struct Evolution<O> {
    space: Space,
    streams: Streams,
    start: Start,
    /// How many valid points make a start.
    n_start: u64,
    archive: Archive,
    n_asked: u64,
    operator: PhantomData<O>,
}

#[expect(private_bounds, reason = "how children are made is nobody else's concern")]
impl<O: Operator> Evolution<O> {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, O::SEED_TWIST),
            start: Start::new(space, settings.seed),
            n_start: n_start(settings),
            archive: Archive::new(space, n_elites(settings)),
            n_asked: 0,
            operator: PhantomData,
        }
    }
}

/// How many points breed. Few elites converge fast, many explore: a short study, or one of few rounds, has no time for many.
fn n_elites(settings: &SamplerSettings) -> usize {
    let Some(n_trials) = settings.n_trials else { return N_ELITES.1 };
    let n_rounds = n_trials as f64 / settings.batch.max(1) as f64;
    let wanted = ((n_trials as f64).sqrt() * 0.65).min(8.0 + n_rounds);
    (wanted as usize).clamp(N_ELITES.0, N_ELITES.1)
}

/// How many valid points must be told before elites breed: one batch, but no fewer than chance needs to say anything.
fn n_start(settings: &SamplerSettings) -> u64 {
    settings.batch.clamp(N_ELITES.0, N_ELITES.1) as u64
}

impl<O: Operator + Send + Sync> Sampler for Evolution<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn ask(&mut self, n: usize) -> Points {
        let first_trial = self.n_asked;
        self.n_asked += n as u64;
        if self.archive.n_valid() < self.n_start {
            return self.start.ask(n);
        }
        let Self { archive, streams, .. } = &*self;
        let genes = archive.genes();
        let recipes = O::recipes(archive, streams, first_trial..self.n_asked);
        points_from_genes(&self.space, genes, n, |gene_idx, column| {
            let pool = archive.pool(gene_idx);
            let parents = Parents { gene_idx, n_genes: genes.len(), gene: &genes[gene_idx], pool, streams };
            O::breed(&parents, first_trial, &recipes, column);
        })
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.start.tell(scores);
        self.archive.extend(points, scores);
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

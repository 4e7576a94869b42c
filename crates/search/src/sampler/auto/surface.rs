//! Points near the summit of a surface through the best trials.
//!
//! Evolution needs many rounds, because a child is seldom much better than its parents. Where rounds are few (big batches,
//! results that come late) each has many trials instead, and a model of all of them leaps to where the best should be. The model
//! is simple and often wrong; that costs little, because children scatter around its summit at distances from a thousandth of the
//! spread of the trials to all of it, mix it with the best trials, and are a part of the portfolio alone.
//!
//! To fit many coefficients takes longer than all else between results and proposals. In a long study, where one batch changes little, such a
//! surface is fitted on threads of its own from one batch of results to the next, beside the proposals and the evaluation: those climb the surface
//! before it, which knows all batches but the last.

mod fit;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::Receiver;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::point::Points;
use crate::rng::Stream;
use crate::sampler::archive::gene::{Gene, Streams, points_from_genes};
use crate::sampler::start::Start;
use crate::sampler::{Sampler, SamplerSettings};
use crate::score::Scores;
use crate::space::{Space, min_columns};
use fit::{MANY, Peak, Surfaces, n_coefficients};

/// The fewest valid trials to fit a surface to.
const N_START: usize = 32;

/// Trials per coefficient of the surface, if the budget allows.
const TRIALS_PER_COEFFICIENT: usize = 6;

/// In a long study the surface is fitted to this share of it, so that it sees past ripples.
const BUDGET_SHARE: f64 = 1.0 / 64.0;

/// The fewest and the most trials that are fitted.
const N_KEPT: (usize, usize) = (128, 2048);

/// The most trials times coefficients, which bounds the time of a fit.
const MAX_CELLS: usize = 1 << 18;

/// Share of children that follow the ranks of trials rather than their scores. Scores tell more where they are smooth; ranks do
/// not care about outliers.
const RANK_SHARE: f64 = 0.25;

/// How likely a gene comes from the summit, one of these per child; the rest comes from one of the best trials.
const SUMMIT_SHARES: [f64; 4] = [1.0, 1.0, 0.5, 0.2];

/// Share of children that are not drawn away from the summit, towards one of the best trials.
const UNDRAWN_SHARE: f64 = 0.3;

/// Decimal logarithm of the least and the most distance that a child strays, in standard deviations of the trials.
const LOG_SCATTER: (f64, f64) = (-3.0, 0.0);

/// From so many trials on a study is long.
const MIN_LONG: u64 = 1 << 13;

/// Threads that fit beside everything else: others have to propose the next batch, and to bring it to a device.
const MAX_THREADS: usize = 6;

/// Number of best trials that lend genes.
const N_DONORS: usize = 16;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x5375_7266_6163_6573;

/// Fits a surface to the best trials and proposes points near its summit.
///
/// Until enough valid points were told, points come from a scrambled Sobol sequence.
#[derive(Debug)]
pub(super) struct Surface {
    space: Space,
    streams: Streams,
    start: Start,
    genes: Arc<[Gene]>,
    model: Model,
    /// What proposals follow; none until there are enough trials.
    guide: Option<Guide>,
    /// Whether it learns beside everything else.
    is_late: bool,
    /// Where it learns then; none if there are no threads to be had.
    pool: Option<ThreadPool>,
    /// The model comes back from there when it has learnt; what is in its place until then is of no use.
    away: Option<Receiver<thread::Result<Model>>>,
    n_asked: u64,
}

/// The best trials, and the surfaces through them.
#[derive(Debug, Default)]
struct Model {
    genes: Arc<[Gene]>,
    /// Most trials that are fitted.
    capacity: usize,
    /// Best first; of equal scores the one told earlier.
    kept: Vec<TopTrial>,
    /// The trials of all slots, gene by gene.
    columns: Vec<GeneColumn>,
    n_slots: usize,
    /// The last ones that were fitted.
    surfaces: Option<Surfaces>,
    /// Whether others have to be fitted first.
    is_stale: bool,
}

/// What proposals follow.
#[derive(Debug)]
struct Guide {
    summits: [Vec<Peak>; 2],
    /// The best trials, gene by gene.
    donors: Vec<GeneColumn>,
    n_donors: usize,
}

/// One of the best trials.
#[derive(Clone, Copy, Debug)]
struct TopTrial {
    score: f64,
    /// Where it is in the columns.
    slot: usize,
}

/// One free parameter of the best trials, by slot.
#[derive(Clone, Debug, Default)]
struct GeneColumn {
    /// NaN where it is inactive.
    values: Vec<f64>,
    /// The same as by `Gene::unit`.
    units: Vec<f64>,
}

/// How a child is made.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    /// Which summit.
    summit_idx: usize,
    /// Which of the best trials.
    donor_idx: usize,
    summit_share: f64,
    /// How far from the summit towards the donor, from 0 to 1.
    draw: f64,
    scatter: f64,
}

impl Surface {
    /// A sampler over a valid space.
    pub(super) fn new(space: &Space, settings: &SamplerSettings) -> Self {
        let genes: Arc<[Gene]> = Gene::of_space(space).into();
        let columns = vec![GeneColumn::default(); genes.len()];
        let n_coefficients = n_coefficients(&genes).max(1);
        let by_budget =
            settings.n_trials.map_or(N_KEPT.1, |n_trials| (n_trials as f64 * BUDGET_SHARE) as usize);
        let is_late = n_coefficients >= MANY && settings.n_trials.is_none_or(|n_trials| n_trials >= MIN_LONG);
        let pool = || {
            let n_threads = rayon::current_num_threads().min(MAX_THREADS);
            ThreadPoolBuilder::new().num_threads(n_threads).build().ok()
        };
        let wanted = by_budget.max(TRIALS_PER_COEFFICIENT * n_coefficients);
        Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, SEED_TWIST),
            start: Start::new(space, settings.seed),
            model: Model {
                genes: genes.clone(),
                capacity: wanted.min(MAX_CELLS / n_coefficients).clamp(N_KEPT.0, N_KEPT.1),
                columns,
                ..Model::default()
            },
            genes,
            guide: None,
            is_late,
            pool: is_late.then(pool).flatten(),
            away: None,
            n_asked: 0,
        }
    }

    /// Has the model learn a batch beside everything else.
    fn send_away(&mut self, points: Points, scores: Scores) {
        let mut model = std::mem::take(&mut self.model);
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let learn = move || {
            let learnt = catch_unwind(AssertUnwindSafe(|| {
                model.learn(&points, &scores);
                model.fit();
                model
            }));
            // Nobody waits for it where the sampler is gone.
            drop(sender.send(learnt));
        };
        match &self.pool {
            Some(pool) => pool.spawn(learn),
            None => learn(),
        }
        self.away = Some(receiver);
    }

    /// Waits until the model has learnt.
    fn bring_back(&mut self) {
        match self.away.take().map(|away| away.recv()) {
            None => {}
            Some(Ok(Ok(model))) => self.model = model,
            Some(Ok(Err(payload))) => resume_unwind(payload),
            Some(Err(gone)) => resume_unwind(Box::new(gone.to_string())),
        }
    }

    fn recipes(&self, trials: Range<u64>, n_donors: usize) -> Vec<Recipe> {
        let streams: [Stream; 5] = std::array::from_fn(|purpose| self.streams.point(purpose as u64));
        let recipe = |trial: u64| {
            let unit = |purpose: usize| streams[purpose].unit(trial);
            let place = |purpose: usize, n_places: usize| {
                ((unit(purpose) * n_places as f64) as usize).min(n_places - 1)
            };
            Recipe {
                summit_idx: usize::from(unit(0) < RANK_SHARE),
                donor_idx: place(1, n_donors),
                summit_share: SUMMIT_SHARES[place(2, SUMMIT_SHARES.len())],
                draw: ((unit(3) - UNDRAWN_SHARE) / (1.0 - UNDRAWN_SHARE)).max(0.0),
                scatter: libm::exp10(LOG_SCATTER.0 + (LOG_SCATTER.1 - LOG_SCATTER.0) * unit(4)),
            }
        };
        trials.map(recipe).collect()
    }

    /// Makes one gene of all children.
    fn fill(&self, gene_idx: usize, guide: &Guide, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        let gene = &self.genes[gene_idx];
        let [choice, steps] = [0, 1].map(|purpose| self.streams.gene(gene.param_idx, purpose));
        let GeneColumn { values, units } = &guide.donors[gene_idx];
        let peaks = [guide.summits[0][gene_idx], guide.summits[1][gene_idx]];
        for ((trial, recipe), slot) in (first_trial..).zip(recipes).zip(column) {
            let peak = peaks[recipe.summit_idx];
            let (value, unit) = (values[recipe.donor_idx], units[recipe.donor_idx]);
            let is_from_summit = choice.unit(trial) < recipe.summit_share || value.is_nan();
            *slot = match (is_from_summit, gene.is_category) {
                (false, _) => value,
                // An option has no neighbourhood to stray into; half of the children keep what the donor has.
                (true, true) if steps.unit(trial) < 0.5 && !value.is_nan() => value,
                (true, true) => peak.unit,
                (true, false) => {
                    let towards = if unit.is_nan() { 0.0 } else { recipe.draw * (unit - peak.unit) };
                    let step = recipe.scatter * peak.spread * bell(steps.bits(trial));
                    gene.value((peak.unit + towards + step).clamp(0.0, 1.0))
                }
            };
        }
    }
}

impl Model {
    /// Fits surfaces to what is kept now, if that changed and is enough.
    fn fit(&mut self) {
        if !self.is_stale || self.kept.len() < N_START {
            return;
        }
        let scores: Vec<f64> = self.kept.iter().map(|kept| kept.score).collect();
        let slots: Vec<usize> = self.kept.iter().map(|kept| kept.slot).collect();
        let units_of = |gene_idx: usize| self.columns[gene_idx].units.as_slice();
        self.surfaces = Some(Surfaces::fit(&self.genes, units_of, &slots, &scores, self.surfaces.as_ref()));
        self.is_stale = false;
    }

    /// What proposals follow; none without a surface.
    fn guide(&self) -> Option<Guide> {
        let summits = self.surfaces.as_ref()?.summits.clone();
        let donors = &self.kept[..self.kept.len().min(N_DONORS)];
        let of_donors = |of: &[f64]| donors.iter().map(|donor| of[donor.slot]).collect();
        let of_gene =
            |of: &GeneColumn| GeneColumn { values: of_donors(&of.values), units: of_donors(&of.units) };
        Some(Guide { summits, donors: self.columns.iter().map(of_gene).collect(), n_donors: donors.len() })
    }

    /// Puts points of a batch into free slots, and says into which.
    fn store(&mut self, points: &Points, point_idxs: &[usize]) -> Vec<usize> {
        let mut is_taken = vec![false; self.n_slots];
        self.kept.iter().for_each(|kept| is_taken[kept.slot] = true);
        let free = (0..).filter(|slot| is_taken.get(*slot) != Some(&true));
        let slots: Vec<usize> = free.take(point_idxs.len()).collect();
        self.n_slots = slots.last().map_or(0, |last| last + 1).max(self.n_slots);
        let n_slots = self.n_slots;
        let columns = self.columns.par_iter_mut().zip(&self.genes[..]);
        let columns = columns.with_min_len(min_columns(point_idxs.len()));
        columns.for_each(|(column, gene)| {
            let GeneColumn { values, units } = column;
            values.resize(n_slots, f64::NAN);
            units.resize(n_slots, f64::NAN);
            let told = points.column(gene.param_idx);
            for (&slot, &point_idx) in slots.iter().zip(point_idxs) {
                values[slot] = told[point_idx];
                units[slot] = gene.unit(told[point_idx]);
            }
        });
        slots
    }

    /// Keeps the best of a batch.
    fn learn(&mut self, points: &Points, scores: &Scores) {
        let column = scores.column(0);
        let worst = match self.kept.last() {
            Some(last) if self.kept.len() == self.capacity => last.score,
            _ => f64::NEG_INFINITY,
        };
        let mut order: Vec<usize> = (0..column.len()).filter(|&idx| column[idx] > worst).collect();
        if order.is_empty() {
            return;
        }
        order.sort_by(|&a, &b| column[b].total_cmp(&column[a]).then(a.cmp(&b)));
        order.truncate(self.capacity);
        let slots = self.store(points, &order);
        let newcomers = order.iter().zip(slots);
        self.kept.extend(newcomers.map(|(&point_idx, slot)| TopTrial { score: column[point_idx], slot }));
        // The sort is stable, so that of equal scores the earlier stays first.
        self.kept.sort_by(|a, b| b.score.total_cmp(&a.score));
        let is_same = |a: usize, b: usize| {
            self.columns.iter().all(|of| of.values[a].to_bits() == of.values[b].to_bits())
        };
        self.kept
            .dedup_by(|later, earlier| later.score == earlier.score && is_same(later.slot, earlier.slot));
        self.kept.truncate(self.capacity);
        self.is_stale = true;
    }
}

/// A number of mean 0 and variance 1 that is nearly normal: the sum of four uniform ones.
fn bell(bits: u64) -> f64 {
    const MEAN: f64 = 2.0 * 65_535.0;
    const DEVIATION: f64 = 37_837.0;
    let sum: u64 = [0, 16, 32, 48].iter().map(|shift| bits >> shift & 0xffff).sum();
    (sum as f64 - MEAN) / DEVIATION
}

impl Sampler for Surface {
    fn name(&self) -> &'static str {
        "surface"
    }

    fn ask(&mut self, n: usize) -> Points {
        if !self.is_late && self.model.is_stale {
            self.model.fit();
            self.guide = self.model.guide();
        }
        let Some(guide) = self.guide.as_ref().filter(|_| n > 0) else { return self.start.ask(n) };
        let trials = self.n_asked..self.n_asked + n as u64;
        self.n_asked = trials.end;
        let recipes = self.recipes(trials.clone(), guide.n_donors);
        points_from_genes(&self.space, &self.genes, n, |gene_idx, column| {
            self.fill(gene_idx, guide, trials.start, &recipes, column);
        })
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.start.tell(scores);
        if self.is_late {
            self.bring_back();
            self.guide = self.model.guide();
            self.send_away(points.clone(), scores.clone());
        } else {
            self.model.learn(points, scores);
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::{Budget, Function, QualityRun};

    fn best(function: Function, n_dimensions: usize, n_trials: u64, batch: usize) -> f64 {
        let run = QualityRun { function, n_dimensions, budget: Budget { n_trials, batch }, lag: 1 };
        run.best_with(3, |space, settings| Ok(Box::new(Surface::new(space, settings))))
            .expect("a surface suits every space")
    }

    #[test]
    fn the_top_of_a_bowl_is_found_in_a_few_rounds() {
        assert!(best(Function::Sphere, 15, 2048, 256) < 1e-6);
        assert!(best(Function::Mixed8, 8, 2048, 256) < 1e-3);
        assert!(best(Function::Mixed142, 142, 40_000, 4096) < 1.0);
    }

    /// A surface over 142 parameters after some batches, and its proposals. Scores of one batch are multiplied.
    fn after_batches(
        n_trials: u64,
        n_batches: usize,
        (other, times): (usize, f64),
    ) -> (Surface, Vec<Points>) {
        let space = Function::Mixed142.space(142);
        let settings = SamplerSettings { n_trials: Some(n_trials), ..SamplerSettings::new(5) };
        let mut surface = Surface::new(&space, &settings);
        let mut proposals = Vec::new();
        for batch in 1..=n_batches {
            let points = surface.ask(200);
            let times = if batch == other { times } else { 1.0 };
            let values = Function::Mixed142.evaluate(&points);
            let values: Vec<f64> = values.iter().map(|value| value * times).collect();
            surface.tell(&points, &crate::quality::to_scores(&values));
            proposals.push(points);
        }
        (surface, proposals)
    }

    #[test]
    fn in_a_long_study_a_surface_of_many_coefficients_knows_all_batches_but_the_last() {
        let next = |n_trials: u64, other: (usize, f64)| after_batches(n_trials, 5, other).0.ask(50);
        assert!(next(MIN_LONG, (5, 1.0)) == next(MIN_LONG, (5, 0.5)));
        assert!(next(MIN_LONG, (4, 1.0)) != next(MIN_LONG, (4, 0.5)));
        assert!(next(MIN_LONG - 1, (5, 1.0)) != next(MIN_LONG - 1, (5, 0.5)));
        // Told twice in a row, it knows the first batch.
        let told_again = |times: f64| {
            let mut surface = after_batches(MIN_LONG, 5, (5, times)).0;
            surface.tell(&Points::new(142), &Scores::single(&[]));
            surface.ask(50)
        };
        assert!(told_again(1.0) != told_again(0.5));
    }

    #[test]
    fn proposals_do_not_depend_on_how_they_are_cut_into_batches() {
        let asked = |sizes: &[usize]| {
            let mut surface = after_batches(MIN_LONG, 5, (5, 1.0)).0;
            let mut all = Points::new(142);
            sizes.iter().for_each(|size| all.extend_from(&surface.ask(*size), 0..*size));
            all
        };
        assert!(asked(&[50]) == asked(&[20, 30]));
    }

    #[test]
    fn a_surface_of_many_coefficients_is_the_same_whatever_the_threads() {
        let with_threads = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| after_batches(MIN_LONG, 6, (6, 1.0)).1)
        };
        let expected = with_threads(1);
        assert!((2..=3).all(|n_threads| with_threads(n_threads) == expected));
    }

    #[test]
    fn what_fails_beside_everything_else_is_not_lost() {
        let mut surface = after_batches(MIN_LONG, 3, (3, 1.0)).0;
        let mut tell = |scores: &[f64]| surface.tell(&Points::new(142), &crate::quality::to_scores(scores));
        tell(&[1.0]);
        assert!(catch_unwind(AssertUnwindSafe(|| tell(&[]))).is_err());
    }

    #[test]
    fn scores_of_any_size_are_survived() {
        let space = Function::Mixed20.space(20);
        for size in [0.0, 1e-300, 1e300, f64::MAX] {
            let mut surface = Surface::new(&space, &SamplerSettings::new(1));
            for _ in 0..3 {
                let points = surface.ask(100);
                let score = |idx: &f64| crate::score::Score::new(size * (idx / 5.0));
                surface
                    .tell(&points, &Scores::single(&points.column(0).iter().map(score).collect::<Vec<_>>()));
            }
            let points = surface.ask(100);
            let mut row = vec![0.0; space.len()];
            for point_idx in 0..points.len() {
                points.read_row(point_idx, &mut row);
                assert!(space.params.iter().zip(&row).all(|(param, value)| param.domain.contains(*value)));
            }
        }
    }
}

//! A surface fitted to trials by least squares: a sum of a parabola for each number and of a constant for each option.

mod design;

use rayon::prelude::*;

use crate::sampler::archive::gene::Gene;
use crate::widest::widest;
use design::{Coefficients, Design, Lanes, N_LANES, N_TARGETS, add, block, dot};

/// The summit lies at most this many standard deviations away from the mean of the trials.
const REACH: f64 = 3.0;

/// How much a coefficient is drawn to zero, as a share of what the trials say.
const RIDGE: f64 = 1e-3;

/// Rounds of conjugate gradients for a surface that is fitted anew, and for one that goes on from the one before it. More find weak parameters
/// better and cost more.
const N_ROUNDS: (usize, usize) = (20, 6);

/// So many coefficients are many: such a surface goes on from the one before it, because a round takes its time. Others are fitted anew.
pub(super) const MANY: usize = 128;

/// A residual is nothing where its square is so small a part of what it was at first.
const SMALL: f64 = 1e-24;

/// A gene that varies less is constant.
const LEAST_SPREAD: f64 = 1e-12;

/// Blocks of options that one thread makes: fewer are done before another thread is awake.
const OPTION_BLOCKS_AT_ONCE: usize = 4;

/// What a surface follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The scores.
    Score,
    /// Their ranks, on a logarithmic scale.
    Rank,
}

/// The summit along one gene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Peak {
    /// Its place on the unit interval, or the best option.
    pub(super) unit: f64,
    /// Standard deviation of the trials; 0 for a category.
    pub(super) spread: f64,
}

/// Number of coefficients of a surface.
pub(super) fn n_coefficients(genes: &[Gene]) -> usize {
    genes.iter().map(|gene| if gene.is_category { gene.n_options() } else { 2 }).sum()
}

/// Surfaces through trials: one by scores and one by ranks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Surfaces {
    coefficients: Coefficients,
    /// What the units of numbers were measured by, eight genes at a time.
    scales: Vec<Scale>,
    /// Where each of them is highest, by gene.
    pub(super) summits: [Vec<Peak>; N_TARGETS],
}

impl Surfaces {
    /// Fits them. `units_of` are the units of a gene, NaN where it is inactive; `slots` are the places of the trials among them. Trials
    /// are best first. Surfaces through mostly the same trials are a good place to begin.
    pub(super) fn fit<'a>(
        genes: &[Gene],
        units_of: impl Fn(usize) -> &'a [f64] + Sync,
        slots: &[usize],
        scores: &[f64],
        before: Option<&Self>,
    ) -> Self {
        let chunks = genes.par_chunks(N_LANES).enumerate();
        let terms_of = |(chunk_idx, some): (usize, &[Gene])| {
            let columns: [&[f64]; N_LANES] = std::array::from_fn(|at| {
                // Where genes end, the last one stands in for those that are missing.
                units_of(chunk_idx * N_LANES + at.min(some.len() - 1))
            });
            Terms::new(some, slots.len(), |row| Lanes(columns.map(|column| column[slots[row]])))
        };
        let mut terms: Vec<Terms> = chunks.map(terms_of).collect();
        let mut blocks: Vec<Vec<Lanes>> =
            terms.iter_mut().flat_map(|terms| std::mem::take(&mut terms.parabolas)).collect();
        let options: Vec<Vec<f64>> =
            terms.iter_mut().flat_map(|terms| std::mem::take(&mut terms.options)).collect();
        let options = options.par_chunks(N_LANES).with_min_len(OPTION_BLOCKS_AT_ONCE);
        blocks.par_extend(options.map(|columns| side_by_side(columns, slots.len())));
        let are_many = n_coefficients(genes) >= MANY;
        let design = Design::new(blocks, slots.len(), !are_many);
        let targets = [Target::Score, Target::Rank].map(|target| targets(scores, target));
        let ridge = RIDGE * scores.len() as f64;
        let scales: Vec<Scale> = terms.iter().map(|terms| terms.moments.scale).collect();
        let before = before.filter(|_| are_many);
        let coefficients = solve(&design, &targets, ridge, before.map(|before| before.measured_by(&scales)));
        let summits = [0, 1].map(|target: usize| peaks(genes, &terms, &coefficients[target]));
        Self { coefficients, scales, summits }
    }

    /// The coefficients of the same surfaces where other scales measure the units.
    fn measured_by(&self, scales: &[Scale]) -> Coefficients {
        let mut coefficients = self.coefficients.clone();
        for (chunk, (from, to)) in self.scales.iter().zip(scales).enumerate() {
            for coefficients in &mut coefficients {
                for gene in 0..N_LANES {
                    let [slope, curvature] = [0, 1].map(|degree| coefficients[2 * chunk + degree].0[gene]);
                    let stretched = to.spreads[gene] / from.spreads[gene];
                    let moved = (to.means[gene] - from.means[gene]) / from.spreads[gene];
                    let measured =
                        [stretched * (slope + 2.0 * moved * curvature), stretched * stretched * curvature];
                    for (degree, measured) in measured.into_iter().enumerate() {
                        let is_known = from.is_parabola[gene] && to.is_parabola[gene];
                        coefficients[2 * chunk + degree].0[gene] = if is_known { measured } else { 0.0 };
                    }
                }
            }
        }
        coefficients
    }
}

fn targets(scores: &[f64], target: Target) -> Vec<f64> {
    centred(match target {
        Target::Score => {
            let largest = scores.iter().fold(0.0_f64, |largest, score| largest.max(score.abs()));
            scores.iter().map(|score| if largest > 0.0 { score / largest } else { 0.0 }).collect()
        }
        Target::Rank => {
            let n = scores.len() as f64;
            (0..scores.len()).map(|rank| -libm::log((rank as f64 + 0.5) / n)).collect()
        }
    })
}

/// The coefficients of some genes.
struct Terms {
    moments: Moments,
    /// What each gene is in the first trial that knows it.
    firsts: [f64; N_LANES],
    /// A slope and a curvature for each number, over units less their mean as multiples of their spread; zeros for a category.
    parabolas: [Vec<Lanes>; 2],
    /// One column for each option of each category.
    options: Vec<Vec<f64>>,
}

impl Terms {
    /// `units_of` has the units of all genes in a trial.
    fn new(genes: &[Gene], n_trials: usize, units_of: impl Fn(usize) -> Lanes) -> Self {
        let mut block_of_units = block(n_trials, units_of);
        let units = &mut block_of_units[..n_trials];
        let first =
            |gene: usize| units.iter().map(|units| units.0[gene]).find(|unit| !unit.is_nan()).unwrap_or(0.5);
        let firsts = std::array::from_fn(first);
        let mut options = Vec::new();
        for (at, gene) in genes.iter().enumerate().filter(|(_, gene)| gene.is_category) {
            let chosen = |option: usize| {
                centred(units.iter().map(|units| f64::from(u8::from(units.0[at] == option as f64))).collect())
            };
            options.extend((0..gene.n_options()).map(chosen));
        }
        let is_category = std::array::from_fn(|at| genes.get(at).is_none_or(|gene| gene.is_category));
        let moments = standardise(units, is_category);
        let means = moments.squares.map(|square| square / n_trials as f64);
        let square = |Lanes(units): Lanes| Lanes(std::array::from_fn(|at| units[at] * units[at] - means[at]));
        let squares = block(n_trials, |row| square(units[row]));
        Self { moments, firsts, parabolas: [block_of_units, squares], options }
    }
}

/// Columns of `n_rows` numbers in a block; missing ones are zeros.
fn side_by_side(columns: &[Vec<f64>], n_rows: usize) -> Vec<Lanes> {
    let number = |row: usize, lane: usize| columns.get(lane).map_or(0.0, |column| column[row]);
    block(n_rows, |row| Lanes(std::array::from_fn(|lane| number(row, lane))))
}

/// Where the units of some genes lie.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Scale {
    means: [f64; N_LANES],
    spreads: [f64; N_LANES],
    is_parabola: [bool; N_LANES],
}

/// The same, and more.
#[derive(Clone, Copy, Default)]
struct Moments {
    scale: Scale,
    /// Sums of the squares of what became of the units.
    squares: [f64; N_LANES],
}

widest! {
    /// Turns the units of genes that have parabolas into distances from their mean as multiples of their spread, 0 where a gene is
    /// inactive, and those of the others into zeros.
    #[expect(clippy::needless_range_loop, reason = "several numbers of the same gene at a time")]
    fn standardise(units: &mut [Lanes], is_category: [bool; N_LANES]) -> Moments {
        let mut squares = [0.0; N_LANES];
        let mut scale = Scale::default();
        let mut n_known = [0.0; N_LANES];
        for Lanes(units) in units.iter() {
            for gene in 0..N_LANES {
                let is_known = !units[gene].is_nan();
                n_known[gene] += if is_known { 1.0 } else { 0.0 };
                scale.means[gene] += if is_known { units[gene] } else { 0.0 };
            }
        }
        for gene in 0..N_LANES {
            n_known[gene] = f64::max(n_known[gene], 1.0);
            scale.means[gene] /= n_known[gene];
        }
        for Lanes(units) in units.iter() {
            for gene in 0..N_LANES {
                let distance = units[gene] - scale.means[gene];
                scale.spreads[gene] += if units[gene].is_nan() { 0.0 } else { distance * distance };
            }
        }
        for gene in 0..N_LANES {
            scale.spreads[gene] = (scale.spreads[gene] / n_known[gene]).sqrt();
            scale.is_parabola[gene] = !is_category[gene] && scale.spreads[gene] >= LEAST_SPREAD;
        }
        for Lanes(units) in units {
            for gene in 0..N_LANES {
                let distance = (units[gene] - scale.means[gene]) / scale.spreads[gene];
                let is_zero = units[gene].is_nan() || !scale.is_parabola[gene];
                units[gene] = if is_zero { 0.0 } else { distance };
                squares[gene] += units[gene] * units[gene];
            }
        }
        Moments { scale, squares }
    }
}

/// The summits of all genes.
fn peaks(genes: &[Gene], terms: &[Terms], coefficients: &[Lanes]) -> Vec<Peak> {
    let mut options = coefficients[2 * terms.len()..].iter().flat_map(|lanes| lanes.0);
    let peak = |(gene_idx, gene): (usize, &Gene)| {
        if gene.is_category {
            let effects: Vec<f64> = options.by_ref().take(gene.n_options()).collect();
            let better =
                |best: usize, option: usize| if effects[option] > effects[best] { option } else { best };
            return Peak { unit: (1..effects.len()).fold(0, better) as f64, spread: 0.0 };
        }
        let (chunk, at) = (gene_idx / N_LANES, gene_idx % N_LANES);
        let Terms { moments: Moments { scale, .. }, firsts, .. } = &terms[chunk];
        if !scale.is_parabola[at] {
            return Peak { unit: firsts[at], spread: 0.0 };
        }
        let [slope, curvature] = [0, 1].map(|degree| coefficients[2 * chunk + degree].0[at]);
        let place = if curvature < 0.0 { -slope / (2.0 * curvature) } else { slope * f64::INFINITY };
        // Neither a slope nor a curvature: there is no reason to leave the middle.
        let place = if place.is_nan() { 0.0 } else { place.clamp(-REACH, REACH) };
        let (mean, spread) = (scale.means[at], scale.spreads[at]);
        Peak { unit: (mean + place * spread).clamp(0.0, 1.0), spread }
    };
    genes.iter().enumerate().map(peak).collect()
}

/// A column less its mean.
fn centred(mut column: Vec<f64>) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len().max(1) as f64;
    column.iter_mut().for_each(|value| *value -= mean);
    column
}

/// The coefficients for each target, with a ridge.
fn solve(
    design: &Design,
    targets: &[Vec<f64>; N_TARGETS],
    ridge: f64,
    before: Option<Coefficients>,
) -> Coefficients {
    let wanted = design.with_targets(targets);
    let (n_rounds, mut solutions) = match before {
        None => (N_ROUNDS.0, wanted.map(Solution::new)),
        Some(before) => {
            let applied = design.apply([&before[0], &before[1]]);
            let go_on = |target: usize| {
                Solution::new(wanted[target].clone()).going_on(
                    &before[target],
                    applied[target].clone(),
                    ridge,
                )
            };
            (N_ROUNDS.1, [0, 1].map(go_on))
        }
    };
    for _ in 0..n_rounds {
        if solutions.iter().all(Solution::is_found) {
            break;
        }
        let applied = design.apply([&solutions[0].direction, &solutions[1].direction]);
        for (solution, applied) in solutions.iter_mut().zip(applied) {
            if !solution.is_found() {
                solution.step(applied, ridge);
            }
        }
    }
    solutions.map(|solution| solution.coefficients)
}

/// The solution for one target, by conjugate gradients.
struct Solution {
    coefficients: Vec<Lanes>,
    residual: Vec<Lanes>,
    direction: Vec<Lanes>,
    /// Square of the length of the residual.
    size: f64,
    /// A residual so small is nothing.
    small: f64,
}

impl Solution {
    /// From nothing; `wanted` is the product of each column with the target.
    fn new(wanted: Vec<Lanes>) -> Self {
        let size = dot(&wanted, &wanted);
        let coefficients = vec![Lanes::default(); wanted.len()];
        Self { coefficients, direction: wanted.clone(), residual: wanted, size, small: SMALL * size }
    }

    /// Goes from nothing towards some coefficients first, as far as that leads down; `applied` is the problem applied to them.
    fn going_on(mut self, towards: &[Lanes], mut applied: Vec<Lanes>, ridge: f64) -> Self {
        add(&mut applied, ridge, towards);
        let length = dot(towards, &self.residual) / dot(towards, &applied);
        if length.is_finite() {
            add(&mut self.coefficients, length, towards);
            add(&mut self.residual, -length, &applied);
            self.direction.clone_from(&self.residual);
            self.size = dot(&self.residual, &self.residual);
        }
        self
    }

    fn is_found(&self) -> bool {
        self.size <= self.small
    }

    /// Goes along the direction as far as it leads down; `applied` is the problem applied to it.
    fn step(&mut self, mut applied: Vec<Lanes>, ridge: f64) {
        add(&mut applied, ridge, &self.direction);
        let length = self.size / dot(&self.direction, &applied);
        add(&mut self.coefficients, length, &self.direction);
        add(&mut self.residual, -length, &applied);
        let next = dot(&self.residual, &self.residual);
        let share = next / self.size;
        for (step, rest) in self.direction.iter_mut().zip(&self.residual) {
            *step = Lanes(std::array::from_fn(|at| rest.0[at] + share * step.0[at]));
        }
        self.size = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Choice, Domain};
    use crate::rng::Stream;
    use crate::space::{Param, Space};

    #[test]
    fn the_summit_of_a_sum_of_parabolas_and_options_is_found() {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let options = (0..3).map(|number| Choice::Number(f64::from(number))).collect();
        let params = [unit.clone(), unit.clone(), unit, Domain::Choice { options }];
        let params = params.into_iter().zip(["a", "b", "c", "d"]);
        let space = Space { params: params.map(|(domain, name)| Param::new(name, domain, 0.0)).collect() };
        let genes = Gene::of_space(&space);
        let number = |gene_idx: u64, trial: u64| Stream::new(9, gene_idx).unit(trial);
        // The third number is inactive in every other trial.
        let third = |trial: u64| if trial.is_multiple_of(2) { number(2, trial) } else { f64::NAN };
        let option = |trial: u64| (number(3, trial) * 3.0).floor();
        let score = |trial: u64| {
            let parabola = |place: f64, summit: f64| -(place - summit) * (place - summit);
            let third = if third(trial).is_nan() { 0.0 } else { third(trial) };
            parabola(number(0, trial), 0.3) + 5.0 * parabola(number(1, trial), 0.8) + 0.5 * third
                - (option(trial) - 1.0).abs()
        };
        let mut trials: Vec<u64> = (0..400).collect();
        trials.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        let column = |of: &dyn Fn(u64) -> f64| trials.iter().map(|trial| of(*trial)).collect::<Vec<_>>();
        let columns = [column(&|t| number(0, t)), column(&|t| number(1, t)), column(&third), column(&option)];
        let slots: Vec<usize> = (0..trials.len()).collect();
        let units_of = |gene_idx: usize| columns[gene_idx].as_slice();
        let fitted = Surfaces::fit(&genes, units_of, &slots, &column(&score), None);
        // Few coefficients are fitted anew, whatever was before.
        let far = Surfaces {
            coefficients: fitted.coefficients.clone().map(|of| vec![Lanes([9.0; N_LANES]); of.len()]),
            ..fitted.clone()
        };
        assert_eq!(Surfaces::fit(&genes, units_of, &slots, &column(&score), Some(&far)), fitted);
        for (peaks, tolerance) in fitted.summits.iter().zip([0.01, 0.25]) {
            assert!((peaks[0].unit - 0.3).abs() < tolerance, "{peaks:?}");
            assert!((peaks[1].unit - 0.8).abs() < tolerance, "{peaks:?}");
            assert!(peaks[2].unit > 0.7, "{peaks:?}");
            assert_eq!(peaks[3], Peak { unit: 1.0, spread: 0.0 });
        }
    }

    #[test]
    fn genes_side_by_side_become_what_each_becomes_alone() {
        let numbers = Stream::new(4, 0);
        // One gene in three trials of four, a constant and a category among them.
        let unit = |trial: u64, gene: usize| match gene {
            2 => 0.25,
            _ if (trial + gene as u64).is_multiple_of(4) => f64::NAN,
            _ => numbers.unit(trial * N_LANES as u64 + gene as u64),
        };
        let before: Vec<Lanes> =
            (0..37).map(|trial| Lanes(std::array::from_fn(|gene| unit(trial, gene)))).collect();
        let mut after = before.clone();
        let Moments { scale, .. } = standardise(&mut after, std::array::from_fn(|gene| gene == 5));
        for gene in 0..N_LANES {
            let known = || before.iter().map(|units| units.0[gene]).filter(|unit| !unit.is_nan());
            let n_known = known().count() as f64;
            let mean = known().fold(0.0, |sum, unit| sum + unit) / n_known;
            let spread =
                (known().fold(0.0, |sum, unit| sum + (unit - mean) * (unit - mean)) / n_known).sqrt();
            assert_eq!([scale.means[gene], scale.spreads[gene]], [mean, spread]);
            let is_parabola = gene != 2 && gene != 5;
            assert_eq!(scale.is_parabola[gene], is_parabola);
            let standard = |unit: f64| {
                let is_zero = unit.is_nan() || !is_parabola;
                if is_zero { 0.0 } else { (unit - mean) / spread }
            };
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(after.0[gene].to_bits(), standard(before.0[gene]).to_bits());
            }
        }
    }

    #[test]
    fn a_surface_is_the_same_by_whatever_it_is_measured() {
        let scale = |mean: f64, spread: f64| {
            let is_parabola = std::array::from_fn(|gene| gene != 3);
            Scale { means: [mean; N_LANES], spreads: [spread; N_LANES], is_parabola }
        };
        let (from, to) = (scale(0.3, 0.1), scale(0.42, 0.25));
        let coefficients = [0; N_TARGETS]
            .map(|_| vec![Lanes([2.0; N_LANES]), Lanes([-1.5; N_LANES]), Lanes([7.0; N_LANES])]);
        let surfaces = Surfaces { coefficients, scales: vec![from], summits: Default::default() };
        let measured = surfaces.measured_by(&[to]);
        let height = |of: &[Lanes], scale: &Scale, unit: f64| {
            let place = (unit - scale.means[0]) / scale.spreads[0];
            of[0].0[0] * place + of[1].0[0] * place * place
        };
        for (before, after) in surfaces.coefficients.iter().zip(&measured) {
            let rise =
                |of: &[Lanes], scale: &Scale, unit: f64| height(of, scale, unit) - height(of, scale, 0.5);
            for unit in [0.0, 0.3, 0.8, 1.0] {
                assert!((rise(before, &from, unit) - rise(after, &to, unit)).abs() < 1e-9);
            }
            assert_eq!(
                (after[0].0[3], after[1].0[3], after[2]),
                (0.0, 0.0, before[2]),
                "a category, and its options"
            );
        }
    }

    #[test]
    fn a_solution_that_goes_on_comes_to_the_same_end() {
        let numbers = Stream::new(3, 0);
        let number = |at: usize| numbers.unit(at as u64) - 0.5;
        let row = |at: usize| Lanes(std::array::from_fn(|lane| number(at * N_LANES + lane)));
        let design = Design::new([0, 40].map(|from| block(40, |at| row(from + at))).into(), 40, false);
        let targets = [4000, 5000].map(|from| (0..40).map(|row| number(from + row)).collect());
        let first = solve(&design, &targets, 0.04, None);
        let nearly = first.clone().map(|mut coefficients| {
            coefficients[0].0[3] += 0.1;
            coefficients
        });
        let length = |a: &[Lanes], b: &[Lanes]| {
            let mut distance = a.to_vec();
            add(&mut distance, -1.0, b);
            dot(&distance, &distance).sqrt()
        };
        let again = solve(&design, &targets, 0.04, Some(nearly));
        for (first, again) in first.iter().zip(&again) {
            assert!(length(first, again) < 0.02, "{first:?} {again:?}");
        }
    }

    #[test]
    fn what_never_varies_stays_and_equal_scores_move_nothing() {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let space = Space { params: vec![Param::new("a", unit.clone(), 0.0), Param::new("b", unit, 0.0)] };
        let columns = [vec![0.4; 50], (0..50).map(|idx| f64::from(idx) / 49.0).collect()];
        let genes = Gene::of_space(&space);
        let slots: Vec<usize> = (0..50).collect();
        let units_of = |gene_idx: usize| columns[gene_idx].as_slice();
        let [peaks, _] = Surfaces::fit(&genes, units_of, &slots, &[2.0; 50], None).summits;
        assert_eq!(peaks[0], Peak { unit: 0.4, spread: 0.0 });
        assert!((peaks[1].unit - 0.5).abs() < 1e-9);
    }
}

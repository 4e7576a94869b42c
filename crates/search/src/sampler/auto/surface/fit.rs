//! A surface fitted to trials by least squares: a sum of a parabola for each number and of a constant for each option.

mod gram;

use rayon::prelude::*;

use crate::sampler::archive::gene::Gene;
use crate::widest::widest;
use gram::{Gram, N_PARTS, padded};

/// The summit lies at most this many standard deviations away from the mean of the trials.
const REACH: f64 = 3.0;

/// How much a coefficient is drawn to zero, as a share of what the trials say.
const RIDGE: f64 = 1e-3;

/// Rounds of conjugate gradients. More find weak parameters better and cost more.
const N_ROUNDS: usize = 20;

/// A gene that varies less is constant.
const LEAST_SPREAD: f64 = 1e-12;

/// With more columns than this their products take longer than the rounds that they save, and much memory.
const MAX_GRAM: usize = 1024;

/// Genes that are looked at side by side: as many as lie in a line of the cache.
const GENES_AT_ONCE: usize = 8;

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

/// The coefficients of a gene.
#[derive(Clone, Copy, Debug)]
enum Term {
    /// The same in all trials.
    Constant { unit: f64 },
    /// A slope and a curvature, over units less their mean as multiples of their spread.
    Parabola { mean: f64, spread: f64 },
    /// One for each option.
    Options,
}

/// Number of coefficients of a surface.
pub(super) fn n_coefficients(genes: &[Gene]) -> usize {
    genes.iter().map(|gene| if gene.is_category { gene.n_options() } else { 2 }).sum()
}

/// Where surfaces through trials are highest: one by scores and one by ranks. `units_of` are the units of a gene, NaN where it is
/// inactive; `slots` are the places of the trials among them. Trials are best first.
pub(super) fn summits<'a>(
    genes: &[Gene],
    units_of: impl Fn(usize) -> &'a [f64] + Sync,
    slots: &[usize],
    scores: &[f64],
) -> [Vec<Peak>; 2] {
    let chunks = genes.par_chunks(GENES_AT_ONCE).enumerate();
    let terms_of = |(chunk_idx, some): (usize, &[Gene])| {
        let columns: [&[f64]; GENES_AT_ONCE] = std::array::from_fn(|at| {
            // Where genes end, the last one stands in for those that are missing.
            units_of(chunk_idx * GENES_AT_ONCE + at.min(some.len() - 1))
        });
        terms(some, slots.iter().map(|slot| columns.map(|column| column[*slot])).collect())
    };
    let terms: Vec<(Term, Vec<Vec<f64>>)> = chunks.flat_map_iter(terms_of).collect();
    let targets = [Target::Score, Target::Rank].map(|target| targets(scores, target));
    let columns = terms.iter().flat_map(|(_, columns)| columns).map(Vec::as_slice).collect();
    let problem = Problem::new(columns, &targets);
    let peaks_of = |coefficients: Vec<f64>| {
        let mut rest = coefficients.as_slice();
        let peak_of = |(term, columns): &(Term, Vec<Vec<f64>>)| {
            let (own, others) = rest.split_at(columns.len());
            rest = others;
            peak(*term, own)
        };
        terms.iter().map(peak_of).collect()
    };
    problem.solve(RIDGE * scores.len() as f64).map(peaks_of)
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

/// The columns of some genes in the design matrix, one for each coefficient; zeros follow the trials.
fn terms(genes: &[Gene], mut units: Vec<GenesSideBySide>) -> Vec<(Term, Vec<Vec<f64>>)> {
    let first =
        |gene: usize| units.iter().map(|units| units[gene]).find(|unit| !unit.is_nan()).unwrap_or(0.5);
    let firsts: [f64; GENES_AT_ONCE] = std::array::from_fn(first);
    let is_category = std::array::from_fn(|gene| genes.get(gene).is_none_or(|gene| gene.is_category));
    let moments = standardise(&mut units, is_category);
    let n_trials = units.len();
    let term = |(gene, of): (usize, &Gene)| {
        if of.is_category {
            let is_chosen = |option: usize| {
                let chosen = |units: &GenesSideBySide| f64::from(u8::from(units[gene] == option as f64));
                units.iter().map(chosen).collect()
            };
            return (Term::Options, (0..of.n_options()).map(is_chosen).map(centred).collect());
        }
        if !moments.is_parabola[gene] {
            return (Term::Constant { unit: firsts[gene] }, Vec::new());
        }
        let mean = moments.squares[gene] / n_trials as f64;
        let [mut linear, mut square] = [0, 1].map(|_| vec![0.0; padded(n_trials)]);
        for (units, (linear, square)) in units.iter().zip(linear.iter_mut().zip(&mut square)) {
            *linear = units[gene];
            *square = units[gene] * units[gene] - mean;
        }
        let term = Term::Parabola { mean: moments.means[gene], spread: moments.spreads[gene] };
        (term, vec![linear, square])
    };
    genes.iter().enumerate().map(term).collect()
}

/// The units of some genes in one trial, which a processor adds up all at once, each in the order of the trials.
type GenesSideBySide = [f64; GENES_AT_ONCE];

/// Where the units of some genes lie.
#[derive(Clone, Copy, Default)]
struct Moments {
    means: GenesSideBySide,
    spreads: GenesSideBySide,
    is_parabola: [bool; GENES_AT_ONCE],
    /// Sums of the squares of what became of the units.
    squares: GenesSideBySide,
}

widest! {
    /// Turns the units of genes that have parabolas into distances from their mean as multiples of their spread, 0 where a gene is
    /// inactive.
    #[expect(clippy::needless_range_loop, reason = "several numbers of the same gene at a time")]
    fn standardise(units: &mut [GenesSideBySide], is_category: [bool; GENES_AT_ONCE]) -> Moments {
        let mut moments = Moments::default();
        let mut n_known = [0.0; GENES_AT_ONCE];
        for units in units.iter() {
            for gene in 0..GENES_AT_ONCE {
                let is_known = !units[gene].is_nan();
                n_known[gene] += if is_known { 1.0 } else { 0.0 };
                moments.means[gene] += if is_known { units[gene] } else { 0.0 };
            }
        }
        for gene in 0..GENES_AT_ONCE {
            n_known[gene] = f64::max(n_known[gene], 1.0);
            moments.means[gene] /= n_known[gene];
        }
        for units in units.iter() {
            for gene in 0..GENES_AT_ONCE {
                let distance = units[gene] - moments.means[gene];
                moments.spreads[gene] += if units[gene].is_nan() { 0.0 } else { distance * distance };
            }
        }
        for gene in 0..GENES_AT_ONCE {
            moments.spreads[gene] = (moments.spreads[gene] / n_known[gene]).sqrt();
            moments.is_parabola[gene] = !is_category[gene] && moments.spreads[gene] >= LEAST_SPREAD;
        }
        for units in units {
            for gene in 0..GENES_AT_ONCE {
                let distance = (units[gene] - moments.means[gene]) / moments.spreads[gene];
                let standard = if units[gene].is_nan() { 0.0 } else { distance };
                units[gene] = if moments.is_parabola[gene] { standard } else { units[gene] };
                moments.squares[gene] += standard * standard;
            }
        }
        moments
    }
}

fn peak(term: Term, coefficients: &[f64]) -> Peak {
    match (term, coefficients) {
        (Term::Constant { unit }, _) => Peak { unit, spread: 0.0 },
        (Term::Parabola { mean, spread }, &[slope, curvature]) => {
            let place = if curvature < 0.0 { -slope / (2.0 * curvature) } else { slope * f64::INFINITY };
            // Neither a slope nor a curvature: there is no reason to leave the middle.
            let place = if place.is_nan() { 0.0 } else { place.clamp(-REACH, REACH) };
            Peak { unit: (mean + place * spread).clamp(0.0, 1.0), spread }
        }
        (_, effects) => {
            let better =
                |best: usize, option: usize| if effects[option] > effects[best] { option } else { best };
            Peak { unit: (1..effects.len()).fold(0, better) as f64, spread: 0.0 }
        }
    }
}

/// A column less its mean, with zeros behind it.
fn centred(mut column: Vec<f64>) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len().max(1) as f64;
    column.iter_mut().for_each(|value| *value -= mean);
    ended(column)
}

/// A column with zeros behind it.
fn ended(mut column: Vec<f64>) -> Vec<f64> {
    column.resize(padded(column.len()), 0.0);
    column
}

/// A least-squares problem with two targets.
struct Problem<'a> {
    columns: Vec<&'a [f64]>,
    targets: &'a [Vec<f64>; 2],
    /// The products of all columns, then of the targets.
    gram: Option<Gram>,
}

impl<'a> Problem<'a> {
    fn new(columns: Vec<&'a [f64]>, targets: &'a [Vec<f64>; 2]) -> Self {
        let all = || columns.iter().copied().chain(targets.iter().map(Vec::as_slice)).collect::<Vec<_>>();
        let gram = (columns.len() <= MAX_GRAM).then(|| Gram::new(&all()));
        Self { columns, targets, gram }
    }

    /// The product of each column with a target.
    fn with_target(&self, target_idx: usize) -> Vec<f64> {
        let n_columns = self.columns.len();
        match &self.gram {
            Some(gram) => (0..n_columns).map(|at| gram.value(at, n_columns + target_idx)).collect(),
            None => self.columns.par_iter().map(|column| dot(column, &self.targets[target_idx])).collect(),
        }
    }

    /// The product of each column with the sum of all columns, each times its step; for both lists of steps.
    fn apply(&self, steps: [&[f64]; 2]) -> [Vec<f64>; 2] {
        if let Some(gram) = &self.gram {
            return gram.apply(steps);
        }
        let apply = |steps: &[f64]| {
            let mut image = vec![0.0; self.targets[0].len()];
            for (column, step) in self.columns.iter().zip(steps) {
                image.iter_mut().zip(*column).for_each(|(sum, value)| *sum += step * value);
            }
            self.columns.par_iter().map(|column| dot(column, &image)).collect()
        };
        let (first, second) = rayon::join(|| apply(steps[0]), || apply(steps[1]));
        [first, second]
    }

    /// The coefficients for each target, with a ridge.
    fn solve(&self, ridge: f64) -> [Vec<f64>; 2] {
        let mut solutions = [0, 1].map(|target_idx| Solution::new(self.with_target(target_idx)));
        for _ in 0..N_ROUNDS {
            if solutions.iter().all(Solution::is_found) {
                break;
            }
            let applied = self.apply([&solutions[0].direction, &solutions[1].direction]);
            for (solution, applied) in solutions.iter_mut().zip(applied) {
                if !solution.is_found() {
                    solution.step(applied, ridge);
                }
            }
        }
        solutions.map(|solution| solution.coefficients)
    }
}

/// The solution for one target, by conjugate gradients.
struct Solution {
    coefficients: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// Square of the length of the residual.
    size: f64,
    /// A residual so small is nothing.
    small: f64,
}

impl Solution {
    fn new(residual: Vec<f64>) -> Self {
        let size = dot(&residual, &residual);
        let coefficients = vec![0.0; residual.len()];
        Self { coefficients, direction: residual.clone(), residual, size, small: 1e-24 * size }
    }

    fn is_found(&self) -> bool {
        self.size <= self.small
    }

    /// Goes along the direction as far as it leads down; `applied` is the problem applied to it.
    fn step(&mut self, mut applied: Vec<f64>, ridge: f64) {
        let Self { coefficients, residual, direction, size, .. } = self;
        applied.iter_mut().zip(direction.iter()).for_each(|(applied, step)| *applied += ridge * step);
        let length = *size / dot(direction, &applied);
        for (((coefficient, rest), step), applied) in
            coefficients.iter_mut().zip(residual.iter_mut()).zip(direction.iter()).zip(&applied)
        {
            *coefficient += length * step;
            *rest -= length * applied;
        }
        let next = dot(residual, residual);
        for (step, rest) in direction.iter_mut().zip(residual.iter()) {
            *step = rest + next / *size * *step;
        }
        *size = next;
    }
}

/// A sum of products in parts, then of those that are left.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (whole, rest) = (a.chunks_exact(N_PARTS), a.chunks_exact(N_PARTS).remainder());
    let mut parts = [0.0; N_PARTS];
    for (a, b) in whole.zip(b.chunks_exact(N_PARTS)) {
        for (part, sum) in parts.iter_mut().enumerate() {
            *sum += a[part] * b[part];
        }
    }
    let others = rest.iter().zip(b.chunks_exact(N_PARTS).remainder()).map(|(a, b)| a * b);
    parts.iter().sum::<f64>() + others.sum::<f64>()
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
        let summits = summits(&genes, |gene_idx| &columns[gene_idx], &slots, &column(&score));
        for (peaks, tolerance) in summits.iter().zip([0.01, 0.25]) {
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
            _ => numbers.unit(trial * GENES_AT_ONCE as u64 + gene as u64),
        };
        let before: Vec<GenesSideBySide> =
            (0..37).map(|trial| std::array::from_fn(|gene| unit(trial, gene))).collect();
        let mut after = before.clone();
        let moments = standardise(&mut after, std::array::from_fn(|gene| gene == 5));
        for gene in 0..GENES_AT_ONCE {
            let known = || before.iter().map(|units| units[gene]).filter(|unit| !unit.is_nan());
            let n_known = known().count() as f64;
            let mean = known().fold(0.0, |sum, unit| sum + unit) / n_known;
            let spread =
                (known().fold(0.0, |sum, unit| sum + (unit - mean) * (unit - mean)) / n_known).sqrt();
            assert_eq!([moments.means[gene], moments.spreads[gene]], [mean, spread]);
            assert_eq!(moments.is_parabola[gene], gene != 2 && gene != 5);
            let standard = |unit: f64| if unit.is_nan() { 0.0 } else { (unit - mean) / spread };
            for (before, after) in before.iter().zip(&after) {
                let stays = !moments.is_parabola[gene];
                let expected = if stays { before[gene] } else { standard(before[gene]) };
                assert_eq!(after[gene].to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn a_problem_has_one_solution_with_and_without_the_products_of_its_columns() {
        let numbers = Stream::new(3, 0);
        let column = |at: u64| (0..40).map(|trial| numbers.unit(64 * at + trial) - 0.5).collect();
        let columns: Vec<Vec<f64>> = (0..13).map(column).collect();
        let targets = [column(20), column(21)];
        let quick = Problem::new(columns.iter().map(Vec::as_slice).collect(), &targets);
        let plain = Problem { columns: quick.columns.clone(), targets: &targets, gram: None };
        for (quick, plain) in quick.solve(0.04).iter().zip(&plain.solve(0.04)) {
            assert!(quick.iter().zip(plain).all(|(a, b)| (a - b).abs() < 1e-9), "{quick:?} {plain:?}");
        }
    }

    #[test]
    fn what_never_varies_stays_and_equal_scores_move_nothing() {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let space = Space { params: vec![Param::new("a", unit.clone(), 0.0), Param::new("b", unit, 0.0)] };
        let columns = [vec![0.4; 50], (0..50).map(|idx| f64::from(idx) / 49.0).collect()];
        let genes = Gene::of_space(&space);
        let slots: Vec<usize> = (0..50).collect();
        let [peaks, _] = summits(&genes, |gene_idx| &columns[gene_idx], &slots, &[2.0; 50]);
        assert_eq!(peaks[0], Peak { unit: 0.4, spread: 0.0 });
        assert!((peaks[1].unit - 0.5).abs() < 1e-9);
    }
}

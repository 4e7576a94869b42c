//! A surface fitted to trials by least squares: a sum of a parabola for each number and of a constant for each option.

use rayon::prelude::*;

use crate::sampler::archive::gene::Gene;

/// The summit lies at most this many standard deviations away from the mean of the trials.
const REACH: f64 = 3.0;

/// How much a coefficient is drawn to zero, as a share of what the trials say.
const RIDGE: f64 = 1e-3;

/// Rounds of conjugate gradients. More find weak parameters better and cost more.
const N_ROUNDS: usize = 20;

/// A gene that varies less is constant.
const LEAST_SPREAD: f64 = 1e-12;

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

/// Where surfaces through trials are highest: one by scores and one by ranks. `units_of` is one gene of all trials, NaN where it is
/// inactive; scores are best first.
pub(super) fn summits(
    genes: &[Gene],
    units_of: impl Fn(usize) -> Vec<f64> + Sync,
    scores: &[f64],
) -> [Vec<Peak>; 2] {
    let term_of = |gene_idx: usize| term(&genes[gene_idx], &units_of(gene_idx));
    let terms: Vec<(Term, Vec<Vec<f64>>)> = (0..genes.len()).into_par_iter().map(term_of).collect();
    let columns = terms.iter().flat_map(|(_, columns)| columns).map(Vec::as_slice).collect();
    let design = Design::new(columns, scores.len());
    let summit = |target: Target| {
        let coefficients = solve(&design, &targets(scores, target), RIDGE * scores.len() as f64);
        let mut rest = coefficients.as_slice();
        let peak_of = |(term, columns): &(Term, Vec<Vec<f64>>)| {
            let (own, others) = rest.split_at(columns.len());
            rest = others;
            peak(*term, own)
        };
        terms.iter().map(peak_of).collect()
    };
    let (by_score, by_rank) = rayon::join(|| summit(Target::Score), || summit(Target::Rank));
    [by_score, by_rank]
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

/// The columns of a gene in the design matrix, one for each coefficient.
fn term(gene: &Gene, units: &[f64]) -> (Term, Vec<Vec<f64>>) {
    if gene.is_category {
        let column = |option: usize| {
            let is_chosen = |unit: &f64| f64::from(u8::from(*unit == option as f64));
            centred(units.iter().map(is_chosen).collect())
        };
        return (Term::Options, (0..gene.n_options()).map(column).collect());
    }
    let known = || units.iter().filter(|unit| !unit.is_nan());
    let n_known = known().count().max(1) as f64;
    let mean = known().sum::<f64>() / n_known;
    let spread = (known().map(|unit| (unit - mean) * (unit - mean)).sum::<f64>() / n_known).sqrt();
    if spread < LEAST_SPREAD {
        return (Term::Constant { unit: known().next().copied().unwrap_or(0.5) }, Vec::new());
    }
    let standard = |unit: &f64| if unit.is_nan() { 0.0 } else { (unit - mean) / spread };
    let linear: Vec<f64> = units.iter().map(standard).collect();
    let square = centred(linear.iter().map(|number| number * number).collect());
    (Term::Parabola { mean, spread }, vec![linear, square])
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

fn centred(mut column: Vec<f64>) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len().max(1) as f64;
    column.iter_mut().for_each(|value| *value -= mean);
    column
}

/// Trials of a tile. Sums over a tile stay in registers, and a tile of all columns in a near cache.
const TILE: usize = 32;

/// Parts in which a sum of products is formed, which a processor adds side by side.
const N_PARTS: usize = 8;

/// The columns of a least-squares problem, one after the other and tile by tile: a round of the solution reads a tile twice before
/// it goes on.
struct Design<'a> {
    columns: Vec<&'a [f64]>,
    /// All columns of the first whole tile, then all of the next.
    tiles: Vec<[f64; TILE]>,
    n_trials: usize,
}

impl<'a> Design<'a> {
    fn new(columns: Vec<&'a [f64]>, n_trials: usize) -> Self {
        let mut tiles = vec![[0.0; TILE]; n_trials / TILE * columns.len()];
        tiles.par_chunks_mut(columns.len().max(1)).enumerate().for_each(|(tile_idx, tile)| {
            let trials = TILE * tile_idx..TILE * (tile_idx + 1);
            tile.iter_mut()
                .zip(&columns)
                .for_each(|(slot, column)| slot.copy_from_slice(&column[trials.clone()]));
        });
        Self { columns, tiles, n_trials }
    }

    fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Trials in whole tiles.
    fn n_in_tiles(&self) -> usize {
        self.n_trials / TILE * TILE
    }

    /// The product of each column with `values`.
    fn products(&self, values: &[f64]) -> Vec<f64> {
        let mut parts = vec![[0.0; N_PARTS]; self.n_columns()];
        for (columns, values) in self.tiles.chunks(self.n_columns().max(1)).zip(values.chunks_exact(TILE)) {
            add_products(columns.iter().map(<[f64; TILE]>::as_slice), values, &mut parts);
        }
        self.finish(&values[self.n_in_tiles()..], parts)
    }

    /// The product of each column with the sum of all columns, each times its step.
    fn apply(&self, steps: &[f64]) -> Vec<f64> {
        let mut parts = vec![[0.0; N_PARTS]; self.n_columns()];
        for columns in self.tiles.chunks(self.n_columns().max(1)) {
            apply_tile(columns, steps, &mut parts);
        }
        let from = self.n_in_tiles();
        let mut image = vec![0.0; self.n_trials - from];
        for (column, step) in self.columns.iter().zip(steps) {
            image.iter_mut().zip(&column[from..]).for_each(|(sum, value)| *sum += step * value);
        }
        self.finish(&image, parts)
    }

    /// Adds the trials behind the last whole tile to the parts of products, and the parts to each other.
    fn finish(&self, values: &[f64], mut parts: Vec<[f64; N_PARTS]>) -> Vec<f64> {
        let from = self.n_in_tiles();
        let n_whole = values.len() / N_PARTS * N_PARTS;
        let whole = self.columns.iter().map(|column| &column[from..from + n_whole]);
        add_products(whole, &values[..n_whole], &mut parts);
        let rests = self.columns.iter().map(|column| product(&column[from + n_whole..], &values[n_whole..]));
        rests.zip(parts).map(|(rest, parts)| parts.iter().sum::<f64>() + rest).collect()
    }
}

/// Adds products with `values` to the parts of each column.
fn add_products<'a>(columns: impl Iterator<Item = &'a [f64]>, values: &[f64], parts: &mut [[f64; N_PARTS]]) {
    for (column, parts) in columns.zip(parts) {
        let mut sums = *parts;
        for (column, values) in column.chunks_exact(N_PARTS).zip(values.chunks_exact(N_PARTS)) {
            for lane in 0..N_PARTS {
                sums[lane] += column[lane] * values[lane];
            }
        }
        *parts = sums;
    }
}

/// A sum of products one after the other.
fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A sum of products in parts.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n_whole = a.len() / N_PARTS * N_PARTS;
    let mut parts = [[0.0; N_PARTS]];
    add_products(std::iter::once(&a[..n_whole]), &b[..n_whole], &mut parts);
    parts[0].iter().sum::<f64>() + product(&a[n_whole..], &b[n_whole..])
}

/// Adds the products of the columns of a tile with the sum of all of them, each times its step. Most of the time of a fit goes here.
fn apply_tile(columns: &[[f64; TILE]], steps: &[f64], parts: &mut [[f64; N_PARTS]]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has what the function needs.
            return unsafe { apply_tile_avx512(columns, steps, parts) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { apply_tile_avx2(columns, steps, parts) };
        }
    }
    apply_tile_anywhere(columns, steps, parts);
}

fn apply_tile_anywhere(columns: &[[f64; TILE]], steps: &[f64], parts: &mut [[f64; N_PARTS]]) {
    let mut image = [0.0; TILE];
    for (column, step) in columns.iter().zip(steps) {
        image.iter_mut().zip(column).for_each(|(sum, value)| *sum += step * value);
    }
    add_products(columns.iter().map(<[f64; TILE]>::as_slice), &image, parts);
}

/// The same bits with vectors. Left to itself, the compiler takes one number of each of several columns at a time, which is ten times
/// slower.
#[cfg(target_arch = "x86_64")]
macro_rules! apply_tile_by {
    ($name:ident, $feature:literal, $lanes:literal, $zero:ident, $set:ident, $load:ident, $store:ident, $add:ident, $mul:ident) => {
        #[target_feature(enable = $feature)]
        #[allow(clippy::modulo_one, reason = "the widest vectors hold all parts")]
        fn $name(columns: &[[f64; TILE]], steps: &[f64], parts: &mut [[f64; N_PARTS]]) {
            use std::arch::x86_64::*;
            const N_SUMS: usize = N_PARTS / $lanes;
            let mut image = [$zero(); TILE / $lanes];
            for (column, step) in columns.iter().zip(steps) {
                let step = $set(*step);
                for at in 0..TILE / $lanes {
                    // SAFETY: the last of these vectors ends where the tile does.
                    let some = unsafe { $load(column.as_ptr().add($lanes * at)) };
                    image[at] = $add(image[at], $mul(step, some));
                }
            }
            for (column, parts) in columns.iter().zip(parts) {
                let mut sums = [$zero(); N_SUMS];
                for at in 0..N_SUMS {
                    // SAFETY: the last of these vectors ends where the parts do.
                    sums[at] = unsafe { $load(parts.as_ptr().add($lanes * at)) };
                }
                for at in 0..TILE / $lanes {
                    // SAFETY: the last of these vectors ends where the tile does.
                    let some = unsafe { $load(column.as_ptr().add($lanes * at)) };
                    sums[at % N_SUMS] = $add(sums[at % N_SUMS], $mul(some, image[at]));
                }
                for at in 0..N_SUMS {
                    // SAFETY: the last of these vectors ends where the parts do.
                    unsafe { $store(parts.as_mut_ptr().add($lanes * at), sums[at]) };
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
apply_tile_by!(
    apply_tile_avx2,
    "avx2",
    4,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_mul_pd
);

#[cfg(target_arch = "x86_64")]
apply_tile_by!(
    apply_tile_avx512,
    "avx512f",
    8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_mul_pd
);

/// Least squares with a ridge, by conjugate gradients.
fn solve(design: &Design, target: &[f64], ridge: f64) -> Vec<f64> {
    let mut coefficients = vec![0.0; design.n_columns()];
    let mut residual = design.products(target);
    let mut direction = residual.clone();
    let mut size = dot(&residual, &residual);
    let small = 1e-24 * size;
    for _ in 0..N_ROUNDS {
        if size <= small {
            break;
        }
        let mut applied = design.apply(&direction);
        applied.iter_mut().zip(&direction).for_each(|(applied, step)| *applied += ridge * step);
        let length = size / dot(&direction, &applied);
        for (((coefficient, rest), step), applied) in
            coefficients.iter_mut().zip(&mut residual).zip(&direction).zip(&applied)
        {
            *coefficient += length * step;
            *rest -= length * applied;
        }
        let next = dot(&residual, &residual);
        for (step, rest) in direction.iter_mut().zip(&residual) {
            *step = rest + next / size * *step;
        }
        size = next;
    }
    coefficients
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
        let summits = summits(&genes, |gene_idx| columns[gene_idx].clone(), &column(&score));
        for (peaks, tolerance) in summits.iter().zip([0.01, 0.25]) {
            assert!((peaks[0].unit - 0.3).abs() < tolerance, "{peaks:?}");
            assert!((peaks[1].unit - 0.8).abs() < tolerance, "{peaks:?}");
            assert!(peaks[2].unit > 0.7, "{peaks:?}");
            assert_eq!(peaks[3], Peak { unit: 1.0, spread: 0.0 });
        }
    }

    #[test]
    fn all_ways_to_apply_a_tile_compute_the_same_bits() {
        let numbers = Stream::new(3, 0);
        let column =
            |column_idx: u64| std::array::from_fn(|at| numbers.unit(column_idx * 64 + at as u64) - 0.5);
        let columns: Vec<[f64; TILE]> = (0..37).map(column).collect();
        let steps: Vec<f64> = (0..37).map(|at| libm::exp10(40.0 * numbers.unit(9000 + at) - 20.0)).collect();
        let start = vec![[0.25; N_PARTS]; 37];
        let (mut expected, mut found) = (start.clone(), start.clone());
        apply_tile_anywhere(&columns, &steps, &mut expected);
        apply_tile(&columns, &steps, &mut found);
        assert_eq!(found, expected);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            let mut found = start;
            // SAFETY: the processor has what the function needs.
            unsafe { apply_tile_avx2(&columns, &steps, &mut found) };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_never_varies_stays_and_equal_scores_move_nothing() {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let space = Space { params: vec![Param::new("a", unit.clone(), 0.0), Param::new("b", unit, 0.0)] };
        let columns = [vec![0.4; 50], (0..50).map(|idx| f64::from(idx) / 49.0).collect()];
        let genes = Gene::of_space(&space);
        let [peaks, _] = summits(&genes, |gene_idx| columns[gene_idx].clone(), &[2.0; 50]);
        assert_eq!(peaks[0], Peak { unit: 0.4, spread: 0.0 });
        assert!((peaks[1].unit - 0.5).abs() < 1e-9);
    }
}

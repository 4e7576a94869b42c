//! Medians of our samplers beside those of others.

use std::fmt;

use rayon::prelude::*;

use crate::quality::function::Function;
use crate::quality::recorded::{Recorded, recorded};
use crate::quality::{Budget, QualityRun, median};
use crate::sampler::{SamplerError, SamplerKind};

/// A set of runs by which samplers are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// 1,024 trials, one at a time.
    Sequential,
    /// 1,024 trials in batches of 64 and 256.
    Small,
    /// 102,400 trials in batches of 4,096.
    Large,
}

/// At most this many times the median of Optuna is as good as Optuna.
const AS_GOOD: f64 = 1.25;
/// At most this many times the best recorded median is near the best.
const NEAR_BEST: f64 = 3.0;
/// At most this share of what chance finds is solved, whatever others reach.
const SOLVED: f64 = 1e-3;

impl Suite {
    /// Every suite.
    pub const ALL: [Self; 3] = [Self::Sequential, Self::Small, Self::Large];

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Small => "small",
            Self::Large => "large",
        }
    }

    /// The suite of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// The requirement for a sampler on each function, in words.
    pub fn demand(self) -> &'static str {
        match self {
            Self::Sequential => {
                "at most 1.25 times Optuna in the same mode (the better mode, if it has none)"
            }
            Self::Small => "at most 1.25 times the better mode of Optuna",
            Self::Large => "within 3 times the best recorded median, or 1e-3 of random",
        }
    }

    fn budgets(self) -> &'static [Budget] {
        match self {
            Self::Sequential => &[Budget { n_trials: 1024, batch: 1 }],
            Self::Small => &[Budget { n_trials: 1024, batch: 64 }, Budget { n_trials: 1024, batch: 256 }],
            Self::Large => &[Budget { n_trials: 102_400, batch: 4096 }],
        }
    }

    /// Its runs: every function for which something was recorded at its budgets.
    pub fn runs(self, lag: usize) -> Vec<QualityRun> {
        let mut runs = Vec::new();
        for &budget in self.budgets() {
            for function in Function::ALL {
                let mut dimensions: Vec<usize> = recorded()
                    .filter(|row| row.budget == budget && row.function == function)
                    .map(|row| row.n_dimensions)
                    .collect();
                dimensions.sort_unstable();
                dimensions.dedup();
                runs.extend(dimensions.into_iter().map(|n_dimensions| QualityRun {
                    function,
                    n_dimensions,
                    budget,
                    lag,
                }));
            }
        }
        runs
    }

    /// Runs samplers through the suite, each function with every seed, in parallel.
    pub fn compare(
        self,
        kinds: &[SamplerKind],
        seeds: &[u64],
        lag: usize,
    ) -> Result<Comparison, SamplerError> {
        let runs = self.runs(lag);
        let columns: Vec<SamplerKind> = kinds.iter().copied().chain([SamplerKind::Random]).collect();
        let cell = |job_idx: usize| {
            let (run_idx, rest) =
                (job_idx / (columns.len() * seeds.len()), job_idx % (columns.len() * seeds.len()));
            runs[run_idx].best(columns[rest / seeds.len()], seeds[rest % seeds.len()])
        };
        let n_jobs = runs.len() * columns.len() * seeds.len();
        let cells: Vec<f64> = (0..n_jobs).into_par_iter().map(cell).collect::<Result<_, _>>()?;
        let mut medians = cells.chunks(seeds.len().max(1)).map(|cell| median(cell.to_vec()));
        let row = |run: &QualityRun| {
            let mut ours: Vec<f64> = medians.by_ref().take(columns.len()).collect();
            let random = ours.pop().unwrap_or(f64::NAN);
            Row {
                run: *run,
                ours,
                random,
                optuna_ind: peer(run, "ind"),
                optuna_mv: peer(run, "mv"),
                best: best(run),
            }
        };
        let rows = runs.iter().map(row).collect();
        Ok(Comparison { suite: self, kinds: kinds.to_vec(), rows })
    }
}

/// What was recorded for the function and budget of a run.
fn recorded_for(run: &QualityRun) -> impl Iterator<Item = Recorded> {
    let QualityRun { function, n_dimensions, budget, .. } = *run;
    recorded()
        .filter(move |row| (row.function, row.n_dimensions, row.budget) == (function, n_dimensions, budget))
}

/// What Optuna reached in one of its modes, or its Rust port if Optuna itself was not measured.
fn peer(run: &QualityRun, mode: &str) -> Option<f64> {
    ["optuna", "rustuna"].iter().find_map(|library| {
        let algorithm = format!("{library}_{mode}");
        recorded_for(run).find(|row| row.algorithm == algorithm).map(|row| row.median)
    })
}

/// The best of all that was recorded.
fn best(run: &QualityRun) -> Option<Recorded> {
    recorded_for(run).min_by(|a, b| a.median.total_cmp(&b.median))
}

/// The medians of one function.
#[derive(Clone, Debug)]
pub struct Row {
    /// Function and budget.
    pub run: QualityRun,
    /// Medians of our samplers, in the order in which they were given.
    pub ours: Vec<f64>,
    /// Median of our random sampler.
    pub random: f64,
    /// What Optuna's independent TPE reached.
    pub optuna_ind: Option<f64>,
    /// What Optuna's multivariate TPE reached.
    pub optuna_mv: Option<f64>,
    /// The best that was recorded.
    pub best: Option<Recorded>,
}

impl Row {
    /// Whether the median of a sampler is what the suite demands; `None` if nothing was recorded to judge by.
    pub fn meets(&self, suite: Suite, kind: SamplerKind, median: f64) -> Option<bool> {
        let better = match (self.optuna_ind, self.optuna_mv) {
            (Some(ind), Some(mv)) => Some(ind.min(mv)),
            (ind, mv) => ind.or(mv),
        };
        match suite {
            Suite::Sequential => {
                let same_mode = match kind.name() {
                    "tpe" => self.optuna_ind,
                    "tpe-mv" => self.optuna_mv,
                    _ => better,
                };
                Some(median <= AS_GOOD * same_mode?)
            }
            Suite::Small => Some(median <= AS_GOOD * better?),
            Suite::Large => Some(median <= NEAR_BEST * self.best?.median || median <= SOLVED * self.random),
        }
    }
}

/// The medians of a suite. Displayed as a table, with a mark behind what misses the demand of the suite.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The suite.
    pub suite: Suite,
    /// Our samplers.
    pub kinds: Vec<SamplerKind>,
    /// One row for each function and budget.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// On how many functions a sampler is as good as the suite demands, and on how many that can be judged.
    fn n_met(&self, kind: SamplerKind) -> (usize, usize) {
        let Some(kind_idx) = self.kinds.iter().position(|other| *other == kind) else {
            return (0, 0);
        };
        let judged = self.rows.iter().filter_map(|row| row.meets(self.suite, kind, row.ours[kind_idx]));
        judged.fold((0, 0), |(n_met, n), met| (n_met + usize::from(met), n + 1))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:14}{:>7}", "function", "batch")?;
        for kind in &self.kinds {
            write!(f, "{:>13}", kind.name())?;
        }
        writeln!(
            f,
            "{:>13}{:>13}{:>13}{:>13}  best recorded by",
            "optuna ind", "optuna mv", "best", "random"
        )?;
        for row in &self.rows {
            let QualityRun { function, n_dimensions, budget, .. } = row.run;
            write!(f, "{:14}{:>7}", format!("{function} {n_dimensions}"), budget.batch)?;
            for (kind, &median) in self.kinds.iter().zip(&row.ours) {
                let misses = row.meets(self.suite, *kind, median) == Some(false) || median >= row.random;
                write!(f, "{:>12}{}", number(median), if misses { '!' } else { ' ' })?;
            }
            let or_dash = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
            let (best, by) = (row.best.map(|best| best.median), row.best.map_or("-", |best| best.algorithm));
            let (ind, mv) = (or_dash(row.optuna_ind), or_dash(row.optuna_mv));
            writeln!(f, "{ind:>13}{mv:>13}{:>13}{:>13}  {by}", or_dash(best), number(row.random))?;
        }
        writeln!(f, "Demanded: {}, and better than random.", self.suite.demand())?;
        for kind in &self.kinds {
            let (n_met, n_judged) = self.n_met(*kind);
            let at = self.kinds.iter().position(|other| other == kind).unwrap_or(0);
            let n_better = self.rows.iter().filter(|row| row.ours[at] < row.random).count();
            let n_rows = self.rows.len();
            writeln!(f, "{kind}: {n_met} of {n_judged}; better than random: {n_better} of {n_rows}")?;
        }
        Ok(())
    }
}

/// Four digits, whatever the size.
fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
        format!("{value:.2e}")
    } else {
        let n_digits = if value == 0.0 { 0.0 } else { libm::log10(value.abs()).floor() };
        format!("{value:.*}", (3.0 - n_digits).clamp(0.0, 6.0) as usize)
    }
}

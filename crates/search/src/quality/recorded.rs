//! What other optimisers reached: medians over seeds, measured once and kept as a table.
//!
//! `optuna_ind` and `optuna_mv` are Optuna 5.0 (in batches with its constant liar), `rustuna_*` its Rust port 0.2 (one trial at a
//! time), `cma_pop` a CMA-ES with the batch as its population, `proto_*` early prototypes of the samplers here.

use crate::quality::Budget;
use crate::quality::function::Function;

const TABLE: &str = include_str!("recorded.csv");

/// The median that one algorithm reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// The algorithm.
    pub algorithm: &'static str,
    /// The function.
    pub function: Function,
    /// Its number of dimensions.
    pub n_dimensions: usize,
    /// Trials and batch.
    pub budget: Budget,
    /// Over how many seeds.
    pub n_seeds: usize,
    /// The median of the best values.
    pub median: f64,
}

/// Every recorded median.
pub fn recorded() -> impl Iterator<Item = Recorded> {
    TABLE.lines().skip(1).filter_map(parse)
}

fn parse(line: &'static str) -> Option<Recorded> {
    let mut cells = line.split(',');
    let (algorithm, function) = (cells.next()?, Function::by_name(cells.next()?)?);
    let mut number = || cells.next()?.parse::<f64>().ok();
    let (n_dimensions, batch, trials, n_seeds) = (number()?, number()?, number()?, number()?);
    Some(Recorded {
        algorithm,
        function,
        n_dimensions: n_dimensions as usize,
        budget: Budget { n_trials: trials as u64, batch: batch as usize },
        n_seeds: n_seeds as usize,
        median: number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert_eq!(recorded().count(), TABLE.lines().count() - 1);
        let known = Recorded {
            algorithm: "optuna_ind",
            function: Function::Sphere,
            n_dimensions: 10,
            budget: Budget { n_trials: 1024, batch: 64 },
            n_seeds: 5,
            median: 0.28631,
        };
        assert!(recorded().any(|row| row == known));
    }
}

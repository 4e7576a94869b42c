//! Functions over all symbols whose bar closes at the same time. Twin of `over.cu`.
//!
//! Only values that are available count. They come in byte order of the symbols' names, so that sums do not depend on the order of files.

use tidemill_market::align::CrossSections;

use crate::graph::Over;
use crate::point;

/// Values up to which a rank is found by counting; more are sorted.
const MOST_COUNTED: usize = 96;

/// Computes a function for every bar of all symbols, counted through.
pub fn over(over: Over, sections: &CrossSections, x: &[f64], out: &mut [f64]) {
    let mut values: Vec<f64> = Vec::new();
    for bars in sections.iter() {
        values.clear();
        values.extend(bars.iter().map(|bar| x[*bar as usize]).filter(|value| !value.is_nan()));
        if over == Over::Rank {
            let is_sorted = values.len() > MOST_COUNTED;
            if is_sorted {
                values.sort_unstable_by(f64::total_cmp);
            }
            for bar in bars {
                out[*bar as usize] = rank(x[*bar as usize], &values, is_sorted);
            }
            continue;
        }
        let value = fold(over, &values);
        bars.iter().for_each(|bar| out[*bar as usize] = value);
    }
}

/// The place of a value among all of them: how many are below, and half of the others that equal it.
fn rank(x: f64, values: &[f64], is_sorted: bool) -> f64 {
    if x.is_nan() || values.len() < 2 {
        return point::NA;
    }
    let (below, upto) = if is_sorted {
        (values.partition_point(|value| *value < x), values.partition_point(|value| *value <= x))
    } else {
        let below: usize = values.iter().map(|value| usize::from(*value < x)).sum();
        (below, values.iter().map(|value| usize::from(*value <= x)).sum())
    };
    let place = below as f64 + ((upto - below) as f64 - 1.0) / 2.0;
    place / (values.len() as f64 - 1.0)
}

fn fold(over: Over, values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let Some((first, rest)) = values.split_first() else {
        return if over == Over::Count { 0.0 } else { point::NA };
    };
    match over {
        Over::Count => n,
        Over::Sum => rest.iter().fold(*first, |sum, x| sum + x),
        Over::Mean => rest.iter().fold(*first, |sum, x| sum + x) / n,
        Over::Min => rest.iter().fold(*first, |least, x| if *x < least { *x } else { least }),
        Over::Max => rest.iter().fold(*first, |most, x| if *x > most { *x } else { most }),
        Over::Rank => unreachable!("a rank is of one value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(which: Over, x: &[f64]) -> Vec<f64> {
        let sections = CrossSections { bars: (0..x.len() as u32).collect(), start: vec![0, x.len() as u32] };
        let mut out = vec![0.0; x.len()];
        over(which, &sections, x, &mut out);
        out
    }

    #[test]
    fn equal_values_share_their_mean_place() {
        let found = all(Over::Rank, &[3.0, 1.0, f64::NAN, 3.0, 7.0, -0.0]);
        assert_eq!(found[..2], [0.625, 0.25]);
        assert!(found[2].is_nan());
        assert_eq!(found[3..], [0.625, 1.0, 0.0]);
        assert!(all(Over::Rank, &[1.0, f64::NAN]).iter().all(|x| x.is_nan()));
    }

    #[test]
    fn many_values_have_the_places_that_counting_gives() {
        let x: Vec<f64> = (0..400).map(|at| f64::from(at * 37 % 101 - 50)).collect();
        let found = all(Over::Rank, &x);
        for (x_at, found) in x.iter().zip(&found) {
            assert_eq!(rank(*x_at, &x, false), *found);
        }
    }

    #[test]
    fn only_what_is_available_counts() {
        let x = [2.0, f64::NAN, 4.0, 12.0];
        assert_eq!(all(Over::Mean, &x), [6.0; 4]);
        assert_eq!(all(Over::Sum, &x), [18.0; 4]);
        assert_eq!(all(Over::Count, &x), [3.0; 4]);
        assert_eq!(all(Over::Min, &x), [2.0; 4]);
        assert_eq!(all(Over::Max, &x), [12.0; 4]);
        assert_eq!(all(Over::Count, &[f64::NAN]), [0.0]);
        assert!(all(Over::Sum, &[f64::NAN])[0].is_nan());
    }
}

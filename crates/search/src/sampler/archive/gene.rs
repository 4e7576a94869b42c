//! A free parameter as evolution sees it: a place on the unit interval that can be blended and nudged, or a category that can
//! only be inherited or drawn anew.

use rayon::prelude::*;

use crate::domain::Domain;
use crate::point::Points;
use crate::rng::Stream;
use crate::scale::Scale;
use crate::space::{Space, min_columns};

/// A free parameter.
#[derive(Clone, Debug)]
pub(in crate::sampler) struct Gene {
    /// Its place in the space.
    pub(in crate::sampler) param_idx: usize,
    scale: Scale,
    /// Whether its values have no order.
    pub(in crate::sampler) is_category: bool,
    /// Number of values, if they can be counted.
    n_values: Option<u64>,
}

impl Gene {
    /// The free parameters of a space, in its order.
    pub(in crate::sampler) fn of_space(space: &Space) -> Vec<Self> {
        let free = space.params.iter().enumerate().filter(|(_, param)| param.fixed.is_none());
        free.map(|(param_idx, param)| Self {
            param_idx,
            scale: Scale::new(&param.domain),
            is_category: matches!(param.domain, Domain::Choice { .. } | Domain::Bool),
            n_values: param.domain.n_values(),
        })
        .collect()
    }

    /// The place of a value on the unit interval; the index itself for a category, NaN for an inactive parameter.
    pub(in crate::sampler) fn unit(&self, value: f64) -> f64 {
        if self.is_category || value.is_nan() { value } else { self.scale.unit(value) }
    }

    /// The value at a place of the unit interval.
    pub(in crate::sampler) fn value(&self, unit: f64) -> f64 {
        self.scale.value(unit)
    }

    /// Number of values, 1 if they cannot be counted; the number of options of a category.
    pub(in crate::sampler) fn n_options(&self) -> usize {
        self.n_values.unwrap_or(1) as usize
    }

    /// Width of one step on the unit interval, 0 for a continuous parameter.
    pub(in crate::sampler) fn resolution(&self) -> f64 {
        self.n_values.map_or(0.0, |n_values| 1.0 / n_values as f64)
    }

    /// The value a step away from one that is kept at `value`. A step that is shorter than the distance to the next value is
    /// lengthened until it counts.
    pub(in crate::sampler) fn nudged(&self, unit: f64, value: f64, step: f64) -> f64 {
        let moved = self.value(reflect(unit + step));
        if moved != value || self.n_values.is_none() {
            return moved;
        }
        let mut length = self.resolution();
        while length <= 1.0 {
            let moved = self.value(reflect(unit + length.copysign(step)));
            if moved != value {
                return moved;
            }
            length *= 2.0;
        }
        value
    }

    /// The first value that is known, or one drawn by a number in `0..1`.
    pub(in crate::sampler) fn inherited<const N: usize>(&self, values: [f64; N], unit: f64) -> f64 {
        values.into_iter().find(|value| !value.is_nan()).unwrap_or_else(|| self.value(unit))
    }

    /// Another option than `value` of a category, chosen by a number in `0..1`; any option if there was none.
    pub(in crate::sampler) fn other_option(&self, value: f64, unit: f64) -> f64 {
        let n_options = self.n_options();
        if value.is_nan() || n_options < 2 {
            return ((unit * n_options as f64) as usize).min(n_options.saturating_sub(1)) as f64;
        }
        let drawn = ((unit * (n_options - 1) as f64) as usize).min(n_options - 2) as f64;
        if drawn < value { drawn } else { drawn + 1.0 }
    }
}

/// Folds a number back into `0..=1` at the ends.
pub(in crate::sampler) fn reflect(unit: f64) -> f64 {
    if (0.0..=1.0).contains(&unit) {
        return unit;
    }
    let folded = unit.abs() % 2.0;
    if folded > 1.0 { 2.0 - folded } else { folded }
}

/// A number from the standard normal law, from two numbers in `0..1`.
pub(in crate::sampler) fn normal(a: f64, b: f64) -> f64 {
    // The first one is never 0 after this.
    libm::sqrt(-2.0 * libm::log(1.0 - a)) * libm::cos(2.0 * std::f64::consts::PI * b)
}

/// Points whose free parameters are computed one column at a time, on all threads; `fill` is given the place of the gene.
pub(in crate::sampler) fn points_from_genes(
    space: &Space,
    genes: &[Gene],
    n_points: usize,
    fill: impl Fn(usize, &mut [f64]) + Sync,
) -> Points {
    let mut gene_of_param = vec![None; space.len()];
    for (gene_idx, gene) in genes.iter().enumerate() {
        gene_of_param[gene.param_idx] = Some(gene_idx);
    }
    let column_of = |param_idx: usize| match gene_of_param[param_idx] {
        Some(gene_idx) => {
            let mut column = vec![0.0; n_points];
            fill(gene_idx, &mut column);
            column
        }
        None => vec![space.params[param_idx].fixed.unwrap_or(f64::NAN); n_points],
    };
    let columns =
        (0..space.len()).into_par_iter().with_min_len(min_columns(n_points)).map(column_of).collect();
    let mut points = Points::from_columns(n_points, columns);
    space.deactivate(&mut points);
    points
}

/// The streams of one sampler: one per gene, and some for what concerns a whole point.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Streams {
    seed: u64,
}

impl Streams {
    /// `twist` keeps samplers with the same seed apart.
    pub(in crate::sampler) fn new(seed: u64, twist: u64) -> Self {
        Self { seed: seed ^ twist }
    }

    /// The stream of a gene for one of up to 16 purposes.
    pub(in crate::sampler) fn gene(&self, param_idx: usize, purpose: u64) -> Stream {
        Stream::new(self.seed, param_idx as u64 * 16 + purpose)
    }

    /// A stream for whole points.
    pub(in crate::sampler) fn point(&self, purpose: u64) -> Stream {
        Stream::new(self.seed, u64::MAX - purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Choice;
    use crate::space::Param;

    fn gene(domain: Domain) -> Gene {
        let default = domain.from_unit(0.0);
        Gene::of_space(&Space { params: vec![Param::new("p", domain, default)] }).remove(0)
    }

    #[test]
    fn reflection_folds_back_and_keeps_what_is_inside() {
        let cases =
            [(0.25, 0.25), (0.0, 0.0), (1.0, 1.0), (-0.25, 0.25), (1.25, 0.75), (2.5, 0.5), (-3.75, 0.25)];
        for (unit, expected) in cases {
            assert_eq!(reflect(unit), expected, "{unit}");
        }
    }

    #[test]
    fn a_nudge_always_moves_a_countable_value() {
        for (domain, log) in
            [(1, false), (1, true)].map(|(step, log)| (Domain::Int { low: 1, high: 1000, step, log }, log))
        {
            let gene = gene(domain);
            for value in [1.0, 2.0, 500.0, 1000.0] {
                for step in [1e-9, -1e-9, 0.3, -0.3] {
                    assert_ne!(gene.nudged(gene.unit(value), value, step), value, "{value} {step} {log}");
                }
            }
        }
        let single = gene(Domain::Int { low: 4, high: 4, step: 1, log: false });
        assert_eq!(single.nudged(0.5, 4.0, 0.1), 4.0);
    }

    #[test]
    fn another_option_is_each_of_the_others_equally_often() {
        let options = (0..4).map(|number| Choice::Number(f64::from(number))).collect();
        let gene = gene(Domain::Choice { options });
        let mut counts = [0; 4];
        (0..300).for_each(|idx| counts[gene.other_option(2.0, f64::from(idx) / 300.0) as usize] += 1);
        assert_eq!(counts, [100, 100, 0, 100]);
        (0..400).for_each(|idx| counts[gene.other_option(f64::NAN, f64::from(idx) / 400.0) as usize] += 1);
        assert_eq!(counts, [200, 200, 100, 200]);
    }

    #[test]
    fn normal_numbers_have_unit_variance() {
        let stream = Stream::new(5, 0);
        let numbers: Vec<f64> =
            (0..40_000).map(|idx| normal(stream.unit(2 * idx), stream.unit(2 * idx + 1))).collect();
        let mean = numbers.iter().sum::<f64>() / 40_000.0;
        let variance = numbers.iter().map(|number| number * number).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}

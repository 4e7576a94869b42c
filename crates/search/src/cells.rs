//! A domain cut into cells: one per value where there are few, 256 equal shares of the unit interval otherwise.
//!
//! Densities live on cells, and both directions of the map run once per value and parameter, millions of times in a large study.
//! So they avoid logarithms and exponentials where they can: a logarithmic range finds the cell of a value through the bits of
//! the number, which are monotone in it, and draws inside a cell along the chord.

use crate::domain::Domain;
use crate::scale::Scale;

/// The most cells of a parameter.
pub(crate) const MAX_CELLS: usize = 256;

/// Entries of the table from the bits of a number to its cell, at most.
const MAX_GUIDE: u64 = 4096;

/// A logarithmic cell is drawn along its chord if its upper edge is at most this multiple of its lower one.
const MAX_CHORD_RATIO: f64 = 1.25;

/// How a domain is cut.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    scale: Scale,
    n_cells: usize,
    is_ordered: bool,
    layout: Layout,
}

#[derive(Clone, Debug)]
enum Layout {
    /// One cell per value.
    Single { values: Vec<f64>, low: f64, per_step: f64 },
    /// Equal shares of a continuous range.
    Linear { low: f64, high: f64, width: f64, per_width: f64 },
    /// Equal ratios of a continuous range; `guide` gives the first cell whose numbers may have some leading bits.
    Log { edges: Vec<f64>, guide: Vec<u8>, first_bits: u64, shift: u32 },
    /// Equal shares of the unit interval.
    Unit,
}

impl Cells {
    pub(crate) fn new(domain: &Domain) -> Self {
        let scale = Scale::new(domain);
        let n_values = domain.n_values().filter(|n_values| *n_values <= MAX_CELLS as u64);
        let layout = match (&scale, n_values) {
            (Scale::Levels(_), Some(n_values)) => {
                let values: Vec<f64> = (0..n_values).map(|level_idx| scale.level(level_idx)).collect();
                let span = values[values.len() - 1] - values[0];
                let per_step = if span > 0.0 { (values.len() - 1) as f64 / span } else { 0.0 };
                Layout::Single { low: values[0], values, per_step }
            }
            (Scale::Linear { low, high }, _) => {
                let width = (high - low) / MAX_CELLS as f64;
                Layout::Linear { low: *low, high: *high, width, per_width: 1.0 / width }
            }
            (Scale::Log { low, high, .. }, _) => log_layout(&scale, *low, *high),
            _ => Layout::Unit,
        };
        let n_cells = match &layout {
            Layout::Single { values, .. } => values.len(),
            _ => MAX_CELLS,
        };
        let is_ordered = domain.is_ordered();
        Self { scale, n_cells, is_ordered, layout }
    }

    /// Number of cells, at least one.
    pub(crate) fn len(&self) -> usize {
        self.n_cells
    }

    /// Whether near cells hold similar values; not so for options and switches.
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Whether every cell is a single value.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.layout, Layout::Single { .. })
    }

    /// The place of a value in the unit interval.
    pub(crate) fn unit(&self, value: f64) -> f64 {
        self.scale.unit(value)
    }

    /// The value at a place of the unit interval.
    pub(crate) fn value_at(&self, unit: f64) -> f64 {
        self.scale.value(unit)
    }

    /// The cell of a value; of the nearest one if it lies outside.
    pub(crate) fn cell(&self, value: f64) -> usize {
        let mut found = 0;
        self.each(&[value], |_, cell| found = cell);
        found
    }

    /// Calls `visit` with the index and the cell of every value of a column that is not NaN, in order.
    #[inline]
    pub(crate) fn each(&self, column: &[f64], mut visit: impl FnMut(usize, usize)) {
        let active = column.iter().copied().enumerate().filter(|(_, value)| !value.is_nan());
        let last = self.n_cells - 1;
        // A negative number becomes zero.
        match &self.layout {
            Layout::Single { low, per_step, .. } => {
                active.for_each(|(idx, value)| {
                    visit(idx, (((value - low) * per_step + 0.5) as usize).min(last))
                });
            }
            Layout::Linear { low, per_width, .. } => {
                active.for_each(|(idx, value)| visit(idx, (((value - low) * per_width) as usize).min(last)));
            }
            Layout::Log { edges, guide, first_bits, shift } => {
                for (idx, value) in active {
                    let value = value.max(edges[0]);
                    let entry_idx = (value.to_bits() >> shift).saturating_sub(*first_bits) as usize;
                    let mut cell = usize::from(guide[entry_idx.min(guide.len() - 1)]);
                    while cell < last && value >= edges[cell + 1] {
                        cell += 1;
                    }
                    visit(idx, cell);
                }
            }
            Layout::Unit => {
                active.for_each(|(idx, value)| {
                    visit(idx, ((self.scale.unit(value) * MAX_CELLS as f64) as usize).min(last));
                });
            }
        }
    }

    /// The value at a share of the way through a cell.
    pub(crate) fn value(&self, cell: usize, share: f64) -> f64 {
        self.values(std::iter::once((cell, share))).swap_remove(0)
    }

    /// The values at some shares of the way through some cells.
    #[inline]
    pub(crate) fn values(&self, places: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
        match &self.layout {
            Layout::Single { values, .. } => places.map(|(cell, _)| values[cell]).collect(),
            Layout::Linear { low, high, width, .. } => {
                places.map(|(cell, share)| (low + (cell as f64 + share) * width).min(*high)).collect()
            }
            Layout::Log { edges, .. } => {
                let top = edges[MAX_CELLS];
                let value = |(cell, share): (usize, f64)| {
                    (edges[cell] + share * (edges[cell + 1] - edges[cell])).min(top)
                };
                places.map(value).collect()
            }
            Layout::Unit => places
                .map(|(cell, share)| self.scale.value((cell as f64 + share) / MAX_CELLS as f64))
                .collect(),
        }
    }
}

fn log_layout(scale: &Scale, low: f64, high: f64) -> Layout {
    let edges: Vec<f64> = (0..=MAX_CELLS).map(|cell| scale.value(cell as f64 / MAX_CELLS as f64)).collect();
    if edges.windows(2).any(|pair| pair[1] > MAX_CHORD_RATIO * pair[0]) {
        return Layout::Unit;
    }
    let span = high.to_bits() - low.to_bits();
    let shift = (0..u64::BITS).find(|shift| span >> shift < MAX_GUIDE).unwrap_or(0);
    let first_bits = low.to_bits() >> shift;
    let last_bits = high.to_bits() >> shift;
    let cell_from = |bits: u64| {
        let smallest = f64::from_bits(bits << shift);
        edges[1..MAX_CELLS].partition_point(|edge| *edge <= smallest) as u8
    };
    Layout::Log { guide: (first_bits..=last_bits).map(cell_from).collect(), edges, first_bits, shift }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Choice;

    fn domains() -> Vec<Domain> {
        let float = |low, high, step, log| Domain::Float { low, high, step, log };
        let int = |low, high, step, log| Domain::Int { low, high, step, log };
        vec![
            float(-5.12, 5.12, None, false),
            float(1e-5, 1e-1, None, true),
            float(1e-300, 1e300, None, true),
            float(1.0, 1.0 + 1e-9, None, true),
            float(0.1, 0.7, Some(0.1), false),
            float(0.5, 20.0, Some(0.5), true),
            float(2.0, 2.0, None, false),
            int(-3, 3, 1, false),
            int(0, 1_000_000, 1, false),
            int(1, 1024, 1, true),
            Domain::Bool,
            Domain::Choice { options: (0..7).map(|idx| Choice::Number(f64::from(idx))).collect() },
        ]
    }

    #[test]
    fn a_value_drawn_from_a_cell_is_in_the_domain_and_in_that_cell() {
        for domain in domains() {
            let cells = Cells::new(&domain);
            for cell in 0..cells.len() {
                for share in [0.0, 0.3, 0.9] {
                    let value = cells.value(cell, share);
                    assert!(domain.contains(value), "{value} of {domain:?}");
                    // Rounding to a level may move a value to the cell where the middle of the level lies, and the lower edge of
                    // a linear cell may round to the cell below.
                    if domain.n_values().is_none() && share > 0.0 {
                        assert_eq!(cells.cell(value), cell, "{domain:?} {value} {share}");
                    }
                    if cells.is_single() {
                        assert_eq!(cells.cell(value), cell, "{domain:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn cells_agree_with_the_unit_interval() {
        for domain in domains() {
            let cells = Cells::new(&domain);
            for step in 0..1000 {
                let value = domain.from_unit((f64::from(step) + 0.5) / 1000.0);
                let expected = cells.unit(value) * cells.len() as f64;
                let cell = cells.cell(value) as f64;
                assert!(cell - 1e-6 <= expected && expected <= cell + 1.0 + 1e-6, "{domain:?} {value}");
            }
        }
    }

    #[test]
    fn values_outside_go_to_the_ends() {
        for domain in domains() {
            let cells = Cells::new(&domain);
            assert_eq!(cells.cell(-1e308), 0, "{domain:?}");
            assert_eq!(cells.cell(f64::MAX), cells.len() - 1, "{domain:?}");
        }
    }
}

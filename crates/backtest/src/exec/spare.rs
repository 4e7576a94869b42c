//! Memory of columns that nobody needs any more, for the next ones.
//!
//! Fresh memory costs a page fault for every four kilobytes, which takes longer than to compute what goes there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tidemill_market::indicator::{Moments, Prefix};

use super::column::Item;

/// Columns and prefix sums whose values do not matter any more.
pub struct Spare {
    held: Mutex<Held>,
    most_bytes: usize,
}

#[derive(Default)]
struct Held {
    columns: Vec<Vec<f64>>,
    sums: Vec<Prefix>,
    bytes: usize,
}

impl Spare {
    /// Nothing yet, and never more than so many bytes.
    pub fn new(most_bytes: usize) -> Self {
        Self { held: Mutex::default(), most_bytes }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A column of so many bars; its values may be anything.
    pub fn column(&self, n_bars: usize) -> Vec<f64> {
        let mut held = self.held();
        let fits = |column: &Vec<f64>| column.capacity() >= n_bars && column.capacity() / 2 <= n_bars;
        let found = held.columns.iter().rposition(fits).map(|at| held.columns.swap_remove(at));
        held.bytes -= found.as_ref().map_or(0, |column| column.capacity() * 8);
        drop(held);
        let mut column = found.unwrap_or_default();
        column.resize(n_bars, 0.0);
        column
    }

    /// The prefix sums of a series.
    pub fn sums(&self, x: &[f64], moments: Moments) -> Prefix {
        let mut held = self.held();
        let fits = |other: &Prefix| {
            other.moments() == moments && other.len() >= x.len() && other.len() / 2 <= x.len()
        };
        let found = held.sums.iter().rposition(fits).map(|at| held.sums.swap_remove(at));
        held.bytes -= found.as_ref().map_or(0, Prefix::bytes);
        drop(held);
        found.unwrap_or_default().refilled(x, moments)
    }

    /// Takes what nobody needs any more, if there is room for it.
    pub fn keep(&self, item: Item) {
        let mut held = self.held();
        match item {
            Item::Column(column)
                if column.capacity() > 0 && held.bytes + column.capacity() * 8 <= self.most_bytes =>
            {
                held.bytes += column.capacity() * 8;
                held.columns.push(column);
            }
            Item::Prefix(sums) if held.bytes + sums.bytes() <= self.most_bytes => {
                held.bytes += sums.bytes();
                held.sums.push(*sums);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_its_values_are_gone() {
        let spare = Spare::new(100_000);
        let x: Vec<f64> = (0..1_000).map(|i| f64::from(i % 7)).collect();
        let y: Vec<f64> = (0..900).map(|i| if i % 50 == 3 { f64::NAN } else { f64::from(i % 11) }).collect();
        spare.keep(Item::Column(x.clone()));
        assert_eq!(spare.column(300).len(), 300, "too large a column is not taken");
        let column = spare.column(900);
        assert!(column.len() == 900 && column.capacity() >= 1_000);
        for moments in [Moments::Sum, Moments::SumSquares, Moments::SumIndex, Moments::All] {
            spare.keep(Item::Prefix(Box::new(Prefix::new(&x, moments))));
            let (again, fresh) = (spare.sums(&y, moments), Prefix::new(&y, moments));
            assert!(spare.held().sums.is_empty(), "{moments:?}");
            for bar in 0..y.len() {
                let values = |p: &Prefix| {
                    [p.mean_at(bar, 5), p.std_pop_at(bar, 9), p.wma_at(bar, 4)].map(f64::to_bits)
                };
                assert_eq!(values(&again), values(&fresh), "{moments:?} at bar {bar}");
            }
        }
        assert_eq!(spare.held().bytes, 0);
        spare.keep(Item::Column(vec![0.0; 20_000]));
        assert_eq!(spare.held().bytes, 0, "there is no room for it");
    }
}

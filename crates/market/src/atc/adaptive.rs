//! Kaufman's adaptive average of nine lengths side by side, in two variants.
//!
//! The way walked is a difference of running double-double sums of the moves, so that it is exactly 0 where nothing moved.
//! Nothing is available before the first finite value; the first port repeated that value backwards, which no crossing can see.

use super::family::{N_LENGTHS, Nine};
use super::plan::{KAMA_HEAD, Plan};
use crate::indicator::double_double::{DoubleDouble, two_sum};

/// Below this the first port takes neither a way nor a smoothing factor.
const LEAST: f64 = 1e-10;

/// Adaptive averages on their way through a series.
pub(super) struct Adaptive<'a> {
    plan: &'a Plan,
    x: &'a [f64],
    /// Number of the next bar.
    bar: usize,
    /// `way[bar]` is the sum of the moves before the bar.
    way: Vec<DoubleDouble>,
    /// How many of the latest moves are numbers, and how many are not infinite.
    numbers: u32,
    bounded: u32,
    y: Nine,
}

impl<'a> Adaptive<'a> {
    pub fn new(plan: &'a Plan, x: &'a [f64]) -> Self {
        let mut way = Vec::with_capacity(x.len() + 1);
        way.push(DoubleDouble::default());
        Self { plan, x, bar: 0, way, numbers: 0, bounded: 0, y: [f64::NAN; N_LENGTHS] }
    }

    #[inline(always)]
    pub fn push(&mut self) -> Nine {
        let bar = self.bar;
        let x = self.x[bar];
        let before = self.way[bar];
        if bar == 0 {
            self.way.push(before);
        } else {
            let size = (x - self.x[bar - 1]).abs();
            let is_here = size.is_finite();
            self.way.push(if is_here { before.add_f64(size) } else { before });
            self.numbers = if size.is_nan() { 0 } else { self.numbers + 1 };
            self.bounded = if size == f64::INFINITY { 0 } else { self.bounded + 1 };
        }
        if self.plan.has(KAMA_HEAD) {
            self.push_head(x)
        } else {
            self.push_pine(x)
        }
        self.bar += 1;
        self.y
    }

    #[inline(always)]
    fn push_pine(&mut self, x: f64) {
        let bar = self.bar;
        if bar == 0 {
            self.y = [x; N_LENGTHS];
        }
        let lengths = &self.plan.lengths[5];
        let mut old = [0.0; N_LENGTHS];
        let mut way = [0.0; N_LENGTHS];
        for k in 0..N_LENGTHS {
            let start = bar.saturating_sub(lengths[k] as usize);
            old[k] = self.x[start];
            way[k] = walked(self.way[bar + 1], self.way[start + 1]);
        }
        if self.numbers.min(self.bounded) < bar as u32 {
            for k in 0..N_LENGTHS {
                if self.numbers < lengths[k] {
                    way[k] = f64::NAN;
                } else if self.bounded < lengths[k] {
                    way[k] = f64::INFINITY;
                }
            }
        }
        for k in 0..N_LENGTHS {
            let net = (x - old[k]).abs();
            let ratio = if way[k] == 0.0 { 0.0 } else { net / way[k] };
            let root = ratio * self.plan.kama_range + self.plan.kama_slowest;
            let before = if self.y[k].is_nan() { x } else { self.y[k] };
            let next = before + (root * root) * (x - before);
            self.y[k] = if bar < lengths[k] as usize { self.y[k] } else { next };
        }
    }

    #[inline(always)]
    fn push_head(&mut self, x: f64) {
        let bar = self.bar;
        if !x.is_finite() {
            return;
        }
        let lengths = &self.plan.lengths[5];
        let moves = self.numbers.min(self.bounded);
        for (k, &window) in lengths.iter().enumerate() {
            let length = window as usize;
            if self.y[k].is_nan() {
                self.y[k] = x;
            }
            if bar < length {
                continue;
            }
            let net = (x - self.x[bar - length]).abs();
            let net = if net.is_nan() { 0.0 } else { net };
            let way = walked(self.way[bar + 1], self.way[bar + 2 - length]);
            let is_way = moves + 1 >= window && way.abs() < f64::INFINITY && way != 0.0;
            let ratio = net / if is_way { way } else { LEAST };
            let ratio = if ratio == f64::INFINITY { 0.0 } else { ratio };
            let ratio = if ratio > 1.0 { 1.0 } else { ratio };
            let root = ratio * self.plan.kama_range + self.plan.kama_slowest;
            let factor = root * root;
            let factor = if factor > 1.0 { 1.0 } else { factor };
            let factor = if factor < LEAST { LEAST } else { factor };
            self.y[k] += factor * (x - self.y[k]);
        }
    }
}

/// The path length between two sums, rounded once.
#[inline(always)]
fn walked(now: DoubleDouble, then: DoubleDouble) -> f64 {
    let s = two_sum(now.hi, -then.hi);
    s.hi + (s.lo + (now.lo - then.lo))
}

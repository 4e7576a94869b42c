//! How a score improved.

use serde::{Deserialize, Serialize};

/// Points that are kept before they are thinned out.
const MAX_POINTS: usize = 1024;

/// A score and when it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Seconds at work.
    pub at_s: f64,
    /// Progress by then.
    pub done: f64,
    /// The score.
    pub score: f64,
}

/// The scores that were the best when they came. It keeps the first and the last, and thins out between them when it grows long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    points: Vec<Reached>,
}

impl Curve {
    /// The points in the order of time.
    pub fn points(&self) -> &[Reached] {
        &self.points
    }

    /// Adds a point.
    pub fn push(&mut self, point: Reached) {
        if self.points.len() >= MAX_POINTS {
            let last_idx = self.points.len() - 1;
            let mut idx = 0;
            self.points.retain(|_| {
                idx += 1;
                (idx - 1) % 2 == 0 || idx - 1 == last_idx
            });
        }
        self.points.push(point);
    }
}

//! Submitted points on their way to results.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tidemill_search::Points;

use crate::exec::engine::Outcome;

/// Memory is mapped in pieces of so many bytes, and a thread asks for so many of them at least.
const PAGE_BYTES: usize = 4096;
const MIN_PAGES: usize = 64;

/// Submitted points: parts not yet begun, and results of those that are done.
pub(super) struct Job {
    pub(super) points: Arc<Points>,
    pub(super) waiting: VecDeque<Range<usize>>,
    pub(super) n_under_way: usize,
    /// Results that were given away.
    n_given: usize,
    /// Those that follow them.
    pub(super) outcomes: Vec<Outcome>,
}

impl Job {
    /// In parts of at most so many points.
    pub(super) fn new(points: Arc<Points>, most: usize) -> Self {
        let n_points = points.len();
        Self {
            points,
            waiting: (0..n_points).step_by(most).map(|at| at..(at + most).min(n_points)).collect(),
            n_under_way: 0,
            n_given: 0,
            outcomes: Vec::with_capacity(n_points),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.n_under_way == 0
    }

    /// Gives the results away that are there.
    pub(super) fn give(&mut self) -> Vec<Outcome> {
        self.n_given += self.outcomes.len();
        std::mem::replace(&mut self.outcomes, Vec::with_capacity(self.points.len() - self.n_given))
    }

    /// Has the system map the memory of the results while the device works, rather than when they are put there. Mapping takes several times as
    /// long.
    pub(super) fn map_memory(&mut self) {
        if self.outcomes.is_empty() {
            let room = self.outcomes.spare_capacity_mut();
            let pages =
                room.par_chunks_mut((PAGE_BYTES / size_of::<Outcome>()).max(1)).with_min_len(MIN_PAGES);
            // Nothing is lost when it is overwritten: an empty one owns nothing.
            pages.for_each(|page| {
                page[0].write(Outcome::default());
            });
        }
    }
}

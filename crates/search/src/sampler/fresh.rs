//! No point twice: what a sampler proposes, without the points that were asked before.
//!
//! A sampler that learns comes back to where it found something, and evaluating a point again teaches nothing. So a repeated point is
//! drawn again, by the same sampler, up to [`N_REDRAWS`] times; then the next unasked point of a Sobol sequence takes its place. The
//! points of a sampler are one sequence, and those that repeat are left out of it: the cut into batches does not matter.
//!
//! A space whose points can be counted may be counted out. The last points are rare among those of a Sobol sequence; they come from the
//! grid of all points, which says exactly when there is none left.

use std::ops::Range;

use crate::point::Points;
use crate::sampler::fingerprint::{FingerprintSet, fingerprints};
use crate::sampler::{Grid, Sampler, SamplerKnob, SamplerSettings, Sobol};
use crate::score::Scores;
use crate::space::Space;

/// How often a repeated point is drawn again.
const N_REDRAWS: u32 = 16;

/// So many points of the Sobol sequence in a row that were all asked before show that it has hardly any left.
const MAX_PASSED: usize = 1 << 14;

/// Points that are taken out of the Sobol sequence or the grid at a time.
const BLOCK: usize = 64;

/// Memory is set aside for so many points at most; for more it grows.
const MAX_RESERVED: u64 = 1 << 20;

/// Keeps the Sobol sequence apart from that with which samplers begin under the same seed.
const SEED_TWIST: u64 = 0x4672_6573_6850_6f69;

/// A sampler whose points are all different, and differ from those that were told.
///
/// It remembers 64 bits of each point. It ends where no point is left: in a space that can be counted when each of its points was asked,
/// in another one when a long piece of the Sobol sequence brings nothing new, as happens where conditions switch every continuous
/// parameter off.
pub(super) struct Fresh {
    n_params: usize,
    /// Number of points of the space if all parameters were active.
    n_points: Option<u128>,
    inner: Box<dyn Sampler>,
    asked: FingerprintSet,
    sobol: Supply,
    /// All points, if they can be counted.
    grid: Option<Supply>,
    is_ended: bool,
}

impl Fresh {
    /// The points of a sampler over this space, each once.
    pub(super) fn new(space: &Space, settings: &SamplerSettings, inner: Box<dyn Sampler>) -> Self {
        let n_points = space.cardinality();
        let n_reserved = settings.n_trials.unwrap_or(0).min(MAX_RESERVED) as usize;
        Self {
            n_params: space.len(),
            n_points,
            inner,
            asked: FingerprintSet::with_capacity_and_hasher(n_reserved, Default::default()),
            sobol: Supply::new(Box::new(Sobol::new(space, settings.seed ^ SEED_TWIST))),
            grid: n_points.map(|_| Supply::new(Box::new(Grid::new(space, None)))),
            is_ended: false,
        }
    }

    /// The next points.
    fn draw(&mut self, n: usize) -> Points {
        let mut points = Points::new(self.n_params);
        let mut n_repeats = 0;
        while points.len() < n && !self.is_ended {
            let n_missing = n - points.len();
            // Each point that is missing takes one draw at least, so that none is drawn in vain.
            let mut drawn = self.inner.ask(n_missing);
            if drawn.is_empty() {
                self.is_ended = true;
                break;
            }
            let mut kept: Vec<Range<usize>> = Vec::new();
            let mut repeated = Vec::new();
            let mut replaced = Vec::new();
            for (idx, fingerprint) in fingerprints(&drawn).iter().enumerate() {
                let mut is_kept = !self.is_ended && self.asked.insert(*fingerprint);
                if is_kept {
                    n_repeats = 0;
                } else {
                    repeated.push(idx);
                    n_repeats += 1;
                    if n_repeats > N_REDRAWS && !self.is_ended {
                        n_repeats = 0;
                        match self.next_unasked() {
                            Some(row) => {
                                replaced.push((idx, row));
                                is_kept = true;
                            }
                            None => self.is_ended = true,
                        }
                    }
                }
                match kept.last_mut() {
                    _ if !is_kept => {}
                    Some(last) if last.end == idx => last.end += 1,
                    _ => kept.push(idx..idx + 1),
                }
            }
            if !repeated.is_empty() {
                self.inner.retract(&drawn.select(&repeated));
                replaced.iter().for_each(|(idx, row)| drawn.replace(*idx, row));
                drawn.keep(&kept);
            }
            if points.is_empty() {
                points = drawn;
            } else {
                points.extend_from(&drawn, 0..drawn.len());
            }
        }
        points
    }

    /// A point that was not asked, from elsewhere; `None` if there is none left.
    fn next_unasked(&mut self) -> Option<Vec<f64>> {
        let Self { sobol, grid, asked, .. } = self;
        if let Some(row) = sobol.next_unasked(asked, MAX_PASSED) {
            return Some(row);
        }
        // What was asked stays so: once the sequence has hardly any point left, it is not looked at again.
        sobol.is_done = true;
        grid.as_mut().and_then(|grid| grid.next_unasked(asked, usize::MAX))
    }
}

impl Sampler for Fresh {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn ask(&mut self, n: usize) -> Points {
        // On a thread of the pool: from outside, each step of each redraw would wait until one of its threads is free.
        rayon::scope(|_| self.draw(n))
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        rayon::scope(|_| {
            // Once for both sides.
            fingerprints(points);
            let Self { asked, inner, .. } = self;
            rayon::join(|| inner.tell(points, scores), || asked.extend(fingerprints(points)));
        });
    }

    fn remaining(&self) -> Option<u64> {
        if self.is_ended {
            return Some(0);
        }
        let left = self.n_points?.saturating_sub(self.asked.len() as u128);
        Some(u64::try_from(left).unwrap_or(u64::MAX))
    }

    fn exclude(&mut self, points: &Points) {
        self.asked.extend(fingerprints(points));
    }

    fn retract(&mut self, points: &Points) {
        self.inner.retract(points);
    }

    fn knobs(&self) -> Vec<SamplerKnob> {
        self.inner.knobs()
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        self.inner.turn(knob, value)
    }

    fn facts(&self) -> Vec<(String, f64)> {
        self.inner.facts()
    }
}

/// A sampler that learns nothing, from which points are taken one by one.
struct Supply {
    sampler: Box<dyn Sampler>,
    block: Points,
    fingerprints: Vec<u64>,
    n_taken: usize,
    is_done: bool,
}

impl Supply {
    fn new(sampler: Box<dyn Sampler>) -> Self {
        Self { sampler, block: Points::default(), fingerprints: Vec::new(), n_taken: 0, is_done: false }
    }

    /// The next point that was not asked, which counts as asked now; `None` at the end, or after `max_passed` that were asked before.
    fn next_unasked(&mut self, asked: &mut FingerprintSet, max_passed: usize) -> Option<Vec<f64>> {
        let mut n_passed = 0;
        while !self.is_done && n_passed < max_passed {
            let Some(fingerprint) = self.fingerprints.get(self.n_taken) else {
                self.block = self.sampler.ask(BLOCK);
                self.fingerprints = fingerprints(&self.block).to_vec();
                self.n_taken = 0;
                self.is_done = self.block.is_empty();
                continue;
            };
            self.n_taken += 1;
            if asked.insert(*fingerprint) {
                let mut row = vec![0.0; self.block.n_params()];
                self.block.read_row(self.n_taken - 1, &mut row);
                return Some(row);
            }
            n_passed += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::condition::Condition;
    use crate::domain::Domain;
    use crate::space::Param;

    /// Proposes one point for ever, and counts what it is told of that.
    #[derive(Default)]
    struct Stubborn {
        row: Vec<f64>,
        n_drawn: Arc<std::sync::atomic::AtomicUsize>,
        n_retracted: Arc<std::sync::atomic::AtomicUsize>,
    }

    impl Sampler for Stubborn {
        fn name(&self) -> &'static str {
            "stubborn"
        }

        fn ask(&mut self, n: usize) -> Points {
            self.n_drawn.fetch_add(n, std::sync::atomic::Ordering::SeqCst);
            let mut points = Points::new(self.row.len());
            (0..n).for_each(|_| points.push(&self.row));
            points
        }

        fn tell(&mut self, _points: &Points, _scores: &Scores) {}

        fn retract(&mut self, points: &Points) {
            self.n_retracted.fetch_add(points.len(), std::sync::atomic::Ordering::SeqCst);
        }

        fn remaining(&self) -> Option<u64> {
            None
        }
    }

    /// The third parameter counts with the switch on alone: 20 * (1 + 5) points.
    fn countable() -> Space {
        let int = |high| Domain::Int { low: 1, high, step: 1, log: false };
        let mut params = vec![Param::new("a", int(20), 1.0), Param::new("s", Domain::Bool, 0.0)];
        params.push(Param::new("b", int(5), 1.0));
        params[2].when = Some(Condition::new(|row| row[1] == 1.0));
        Space { params }
    }

    fn stubborn(space: &Space, row: &[f64]) -> Fresh {
        let inner = Stubborn { row: row.to_vec(), ..Stubborn::default() };
        Fresh::new(space, &SamplerSettings::new(3), Box::new(inner))
    }

    #[test]
    fn a_repeat_is_drawn_sixteen_times_more_and_then_replaced() {
        let inner = Stubborn { row: vec![10.0, 0.0, f64::NAN], ..Stubborn::default() };
        let (n_drawn, n_retracted) = (inner.n_drawn.clone(), inner.n_retracted.clone());
        let mut fresh = Fresh::new(&countable(), &SamplerSettings::new(3), Box::new(inner));
        let read = |count: &std::sync::atomic::AtomicUsize| count.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(fresh.ask(1).value(0, 0), 10.0);
        assert_eq!((read(&n_drawn), read(&n_retracted)), (1, 0));
        fresh.ask(1);
        assert_eq!((read(&n_drawn), read(&n_retracted)), (18, 17));
        fresh.ask(10);
        assert_eq!((read(&n_drawn), read(&n_retracted)), (188, 187));
    }

    #[test]
    fn a_space_is_counted_out_whatever_the_batches_and_conditions() {
        let whole = stubborn(&countable(), &[10.0, 0.0, f64::NAN]).ask(500);
        assert_eq!(whole.len(), 120);
        assert_eq!(fingerprints(&whole).iter().collect::<HashSet<_>>().len(), 120);
        for idx in 0..120 {
            let row = [0, 1, 2].map(|param_idx| whole.value(idx, param_idx));
            assert!((1.0..=20.0).contains(&row[0]) && (row[1] == 0.0) == row[2].is_nan(), "{row:?}");
        }
        for batch in [1, 7, 64] {
            let mut fresh = stubborn(&countable(), &[10.0, 0.0, f64::NAN]);
            assert_eq!(fresh.remaining(), Some(200), "as if all parameters were active");
            let mut pieces = Points::new(3);
            loop {
                let piece = fresh.ask(batch);
                if piece.is_empty() {
                    break;
                }
                pieces.extend_from(&piece, 0..piece.len());
            }
            assert_eq!(fingerprints(&pieces), fingerprints(&whole), "batches of {batch}");
            assert_eq!(fresh.remaining(), Some(0));
        }
    }

    #[test]
    fn points_of_others_are_not_asked_again() {
        let mut fresh = stubborn(&countable(), &[10.0, 0.0, f64::NAN]);
        let known = Points::from_columns(2, vec![vec![10.0, 3.0], vec![0.0; 2], vec![f64::NAN; 2]]);
        fresh.exclude(&known.select(&[0]));
        fresh.tell(&known.select(&[1]), &Scores::single(&[crate::score::Score::new(1.0)]));
        let asked: FingerprintSet = fingerprints(&fresh.ask(500)).iter().copied().collect();
        assert_eq!(asked.len(), 118);
        assert!(fingerprints(&known).iter().all(|fingerprint| !asked.contains(fingerprint)));
    }

    #[test]
    fn a_continuum_that_is_never_active_is_counted_out_too() {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let mut params = vec![Param::new("s", Domain::Bool, 0.0), Param::new("x", unit, 0.5)];
        params[1].when = Some(Condition::new(|_| false));
        let mut fresh = stubborn(&Space { params: params.clone() }, &[1.0, f64::NAN]);
        assert_eq!(fresh.remaining(), None);
        assert_eq!(fresh.ask(10).len(), 2);
        assert_eq!((fresh.remaining(), fresh.ask(1).len()), (Some(0), 0));
        // Where it is active, there is no end.
        params[1].when = Some(Condition::new(|row| row[0] == 1.0));
        let points = stubborn(&Space { params }, &[0.0, f64::NAN]).ask(500);
        assert_eq!(fingerprints(&points).iter().collect::<HashSet<_>>().len(), 500);
    }
}

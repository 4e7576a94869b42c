//! Which number of colours a pass tries, and for how long.
//!
//! As long as it is easy, steps double: 64, 63, 61, 57, 49. A step that was too long is halved. Where no colouring with one colour less is found,
//! passes get longer each time, and in between other numbers are tried: the target, if there is one; else far fewer
//! colours, because some graphs hide a colouring that is easier to find from below than from above.
//!
//! A device begins with a new population for every number of colours, so that the way down takes longer than the last step. On the way to a target it
//! therefore leaves out half of the numbers that are left, and the last few.

use serde::{Deserialize, Serialize};

/// Iterations of a pass for each vertex, as long as it is easy.
const PER_VERTEX: u64 = 400;

/// The least iterations of a pass.
const LEAST: u64 = 200_000;

/// How much longer a pass is with a device, which is to be filled: one that feels its way, one in haste, one that goes down by a colour that did not
/// come out in haste, and one for the last colour on the way to a target, after which nothing else is left to do.
const DEVICE_FEELER: u64 = 4;
const DEVICE_HASTE: u64 = 48;
const DEVICE_LONGER: u64 = 128;
const DEVICE_LAST: u64 = 1_024;

/// Quarters of the usual iterations of a child: the first time that a device tries a number of colours that is not the target, which is
/// found in less than half of the time if it is easy; and in every third pass with a number that failed before, because some graphs need it.
const CHILD_HASTE: u64 = 1;
const CHILD_USUAL: u64 = 4;
const CHILD_LONGER: u64 = 16;

/// Children of the last pass on the way to a target search twice as long for each such pass that failed, so many times: the fewer the colours, the
/// longer they have to, and how long is not known before.
const DOUBLED: u64 = 2;

/// A device goes straight to a target that is two colours away, and one more for so many of the target.
const STRAIGHT: usize = 48;

/// How much longer a pass is than the one before that failed.
const LONGER: u64 = 3;

/// How much longer a pass at the target is than one with a colour less.
const AT_TARGET: u64 = 3;

/// How much shorter one is that looks far below.
const BELOW: u64 = 2;

/// Numbers of colours that passes far below try in turn, as shares of the best.
const PROBES: [f64; 8] = [0.9, 0.75, 0.62, 0.82, 0.55, 0.68, 0.95, 0.5];

/// The work of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    /// Number of colours.
    pub(super) k: usize,
    /// Iterations after which it is given up, as a search on the CPU makes them.
    pub(super) iterations: u64,
    /// How many times as long it is while a device takes part.
    pub(super) device_factor: u64,
    /// How long children search, in quarters of what is usual.
    pub(super) child_quarters: u64,
    /// Whether it leaves out numbers on the way to a target.
    pub(super) is_leap: bool,
}

/// The state of the descent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    step: usize,
    /// Whether every pass so far was solved.
    is_easy: bool,
    /// Passes with one colour less that failed since the last success.
    n_failed: u64,
    /// Whether the next pass tries another number in between.
    is_aside: bool,
    n_probes: u64,
    /// Passes of a device with the target, after which nothing else was left to do, that failed.
    #[serde(default)]
    n_missed: u64,
}

impl Plan {
    pub(super) fn new() -> Self {
        Self { step: 1, is_easy: true, n_failed: 0, is_aside: false, n_probes: 0, n_missed: 0 }
    }

    /// The next pass after a best of `best` colours, of which at least `least` are needed.
    pub(super) fn pass(
        &self,
        n: usize,
        best: usize,
        least: usize,
        target: Option<usize>,
        on_device: bool,
    ) -> Pass {
        let least = least.max(target.unwrap_or(1)).max(1);
        let leap = if on_device { self.leap(best, target) } else { None };
        let is_last = target.is_some_and(|target| target + 1 == best || leap == Some(target));
        let is_hasty = on_device && !is_last && !self.is_aside && self.n_failed == 0;
        let device_factor = if is_last {
            DEVICE_LAST
        } else if leap.is_none() && (self.step > 1 || self.is_aside) {
            DEVICE_FEELER
        } else if is_hasty {
            DEVICE_HASTE
        } else {
            DEVICE_LONGER
        };
        let child = |n_before: u64| match n_before % 3 {
            _ if is_last && on_device => CHILD_USUAL << self.n_missed.min(DOUBLED),
            2 => CHILD_LONGER,
            _ if is_hasty => CHILD_HASTE,
            _ => CHILD_USUAL,
        };
        let base = (PER_VERTEX * n as u64).max(LEAST);
        let long = base.saturating_mul(LONGER.saturating_pow(self.n_failed.min(30) as u32));
        let down = leap.unwrap_or_else(|| best.saturating_sub(self.step)).max(least);
        if !self.is_aside {
            // The last colour on the way to a target is worth as much as the target.
            let is_at_target = target.is_some_and(|target| down == target) && self.n_failed > 0;
            let factor = if is_at_target { AT_TARGET } else { 1 };
            return Pass {
                k: down,
                iterations: long.saturating_mul(factor),
                device_factor,
                child_quarters: child(self.n_failed),
                is_leap: leap.is_some(),
            };
        }
        match target {
            Some(target) => Pass {
                k: target,
                iterations: long.saturating_mul(AT_TARGET),
                device_factor,
                child_quarters: child(self.n_failed),
                is_leap: false,
            },
            None => {
                let share = PROBES[self.n_probes as usize % PROBES.len()];
                let k = ((best as f64 * share) as usize).min(best - 1).max(least);
                let iterations = (long / BELOW).max(base);
                Pass { k, iterations, device_factor, child_quarters: child(self.n_probes), is_leap: false }
            }
        }
    }

    /// The number of colours that a device tries on the way to a target, once it is no longer easy and as long as nothing has failed since.
    fn leap(&self, best: usize, target: Option<usize>) -> Option<usize> {
        let target = target.filter(|target| *target < best && !self.is_easy && self.n_failed == 0)?;
        let gap = best - target;
        Some(if gap <= 2 + target / STRAIGHT { target } else { best - gap.div_ceil(2) })
    }

    /// A pass ended.
    pub(super) fn learn(&mut self, pass: Pass, best: usize, is_solved: bool, target: Option<usize>) {
        if is_solved {
            self.step = if self.is_easy { self.step.saturating_mul(2) } else { 1 };
            (self.n_failed, self.is_aside) = (0, false);
            return;
        }
        self.is_easy = false;
        self.n_missed += u64::from(target == Some(pass.k) && pass.device_factor == DEVICE_LAST);
        if self.is_aside {
            self.is_aside = false;
            self.n_probes += 1;
            return;
        }
        if pass.is_leap {
            // One by one, until something is found.
            self.step = 1;
        }
        if self.step > 1 {
            // From now on step by step: what is too far stays too far.
            self.step /= 2;
            return;
        }
        self.n_failed += 1;
        let has_other = target.map_or(best > 3, |target| target + 1 < best);
        self.is_aside = has_other && pass.k + 1 == best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of colours that are tried where everything from `easy` on is easy and nothing else works.
    fn tried(from: usize, easy: usize, target: Option<usize>, n_passes: usize) -> Vec<usize> {
        tried_on(false, from, easy, target, n_passes)
    }

    fn tried_on(
        on_device: bool,
        from: usize,
        easy: usize,
        target: Option<usize>,
        n_passes: usize,
    ) -> Vec<usize> {
        let (mut plan, mut best, mut tried) = (Plan::new(), from, Vec::new());
        for _ in 0..n_passes {
            let pass = plan.pass(100, best, 2, target, on_device);
            let is_solved = pass.k >= easy;
            tried.push(pass.k);
            plan.learn(pass, best, is_solved, target);
            best = if is_solved { best.min(pass.k) } else { best };
        }
        tried
    }

    #[test]
    fn steps_double_while_it_is_easy_and_shrink_when_it_is_not() {
        assert_eq!(tried(64, 48, None, 8), [63, 61, 57, 49, 33, 41, 45, 47]);
        assert_eq!(tried(64, 48, None, 10)[8..], [48, 47]);
    }

    #[test]
    fn where_it_is_hard_the_target_is_tried_in_turn_and_passes_get_longer() {
        assert_eq!(tried(64, 60, Some(50), 12), [63, 61, 57, 59, 60, 59, 50, 59, 50, 59, 50, 59]);
        let mut plan = Plan::new();
        let first = plan.pass(1000, 20, 2, None, false);
        plan.learn(first, 20, false, None);
        let probe = plan.pass(1000, 20, 2, None, false);
        assert_eq!(probe.k, 18);
        plan.learn(probe, 20, false, None);
        let second = plan.pass(1000, 20, 2, None, false);
        assert_eq!((second.k, second.iterations), (19, 3 * first.iterations));
    }

    #[test]
    fn a_device_gets_long_passes_once_the_way_is_known() {
        let factor = |plan: &Plan, target| plan.pass(1_000, 30, 2, target, true).device_factor;
        let (feeler, failed) = (Plan { step: 4, ..Plan::new() }, Plan { n_failed: 1, ..Plan::new() });
        assert_eq!([&feeler, &Plan::new(), &failed].map(|plan| factor(plan, None)), [4, 48, 128]);
        assert_eq!((factor(&feeler, Some(20)), factor(&feeler, Some(29))), (4, 1_024));
        let child = |plan: &Plan, on_device| plan.pass(1_000, 30, 2, None, on_device).child_quarters;
        assert_eq!((child(&Plan::new(), true), child(&failed, true), child(&Plan::new(), false)), (1, 4, 4));
        assert_eq!(child(&Plan { n_failed: 2, ..Plan::new() }, true), 16);
    }

    #[test]
    fn children_search_longer_where_a_target_was_missed() {
        let mut plan = Plan { is_easy: false, ..Plan::new() };
        let quarters: Vec<u64> = (0..4)
            .map(|_| {
                let pass = plan.pass(1_000, 83, 2, Some(82), true);
                assert_eq!((pass.k, pass.device_factor), (82, DEVICE_LAST));
                plan.learn(pass, 83, false, Some(82));
                pass.child_quarters
            })
            .collect();
        assert_eq!(quarters, [4, 8, 16, 16]);
        // Others do not.
        assert_eq!(plan.pass(1_000, 90, 2, Some(82), false).child_quarters, 4);
    }

    #[test]
    fn a_device_leaps_towards_a_target_until_that_fails() {
        assert_eq!(tried_on(true, 108, 83, Some(83), 5), [107, 105, 101, 93, 83]);
        assert_eq!(tried_on(true, 108, 84, Some(83), 9), [107, 105, 101, 93, 83, 88, 85, 83, 84]);
        assert_eq!(tried_on(true, 61, 48, Some(48), 4), [60, 58, 54, 48]);
        assert_eq!(tried_on(true, 61, 49, Some(48), 7), [60, 58, 54, 48, 51, 48, 50]);
        // What is out of reach is left, as on the CPU: one by one, with the target in between.
        assert_eq!(tried_on(true, 108, 87, Some(83), 10)[5..], [88, 85, 87, 85, 86]);
        assert_eq!(tried_on(true, 64, 48, None, 8), tried(64, 48, None, 8));
    }

    #[test]
    fn a_target_is_never_undershot_nor_is_the_bound() {
        assert_eq!(tried(64, 1, Some(50), 4), [63, 61, 57, 50]);
        let plan = Plan { step: 64, ..Plan::new() };
        assert_eq!(plan.pass(10, 9, 4, None, false).k, 4);
    }
}

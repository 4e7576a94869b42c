//! How much of a device the launched kernels fill.
//!
//! A device keeps a limited number of a kernel's blocks at a time: multiprocessors × the blocks that one of them has room for, which the
//! driver answers once for each kernel and block size. A launch of fewer blocks leaves the rest of the device empty while it runs, and a
//! launch of more takes several rounds and fills it. "A kernel is running" says nothing about that.

use std::ops::AddAssign;

/// Launches of a stream, measured by what the device has room for.
///
/// A stream that is asked between two events does not know how long each launch between them took. So every launch is taken to last as
/// many rounds as its blocks need, at least one, and all rounds are taken to last equally long. For a single kernel between two events that
/// makes no difference.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Blocks over room, summed over the launches.
    filled: f64,
    /// Rounds of all launches.
    rounds: f64,
}

impl Load {
    /// A launch of `n_blocks` blocks where the device has room for `n_resident` of them at a time.
    pub(crate) fn of_launch(n_blocks: u64, n_resident: u64) -> Self {
        let filled = n_blocks as f64 / n_resident.max(1) as f64;
        Self { filled, rounds: filled.max(1.0) }
    }

    /// The share of the device that was full while these launches ran, 0 to 1; 0 if there was no launch.
    pub fn share(self) -> f64 {
        if self.rounds > 0.0 { self.filled / self.rounds } else { 0.0 }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.filled += other.filled;
        self.rounds += other.rounds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_fills_what_its_blocks_need_and_never_more_than_everything() {
        // A device of 132 multiprocessors that keep 16 blocks of this kernel each.
        let share = |n_blocks| Load::of_launch(n_blocks, 132 * 16).share();
        assert_eq!(share(0), 0.0);
        assert_eq!(share(132), 1.0 / 16.0);
        assert_eq!(share(132 * 16), 1.0);
        assert_eq!(share(132 * 16 + 1), 1.0);
        assert_eq!(share(u64::MAX), 1.0);
        assert_eq!(Load::of_launch(3, 0).share(), 1.0, "a kernel that fits nowhere");
    }

    #[test]
    fn of_several_launches_longer_ones_count_more() {
        assert_eq!(Load::default().share(), 0.0);
        // One round at a tenth, then four full ones.
        let mut load = Load::of_launch(10, 100);
        load += Load::of_launch(400, 100);
        assert_eq!(load.share(), (0.1 + 4.0) / 5.0);
        // Two single rounds count alike.
        let mut load = Load::of_launch(10, 100);
        load += Load::of_launch(30, 100);
        assert_eq!(load.share(), 0.2);
        load += Load::default();
        assert_eq!(load.share(), 0.2);
    }
}

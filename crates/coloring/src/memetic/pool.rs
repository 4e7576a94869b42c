//! What a population does with many colourings at a time: on the CPU here, on a device in `device.rs`.

use rayon::prelude::*;
use tidemill_gpu::GpuError;

use super::{crossover, distance};
use crate::random::Random;
use crate::slot::{CpuSlots, Slots, scattered};
use crate::tabu::Tabu;

/// A child that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Cross {
    /// The parent that gives the first class.
    pub first: usize,
    /// The other parent.
    pub second: usize,
    /// Where the child goes; no parent of any child made at the same time.
    pub child: usize,
    /// Chances of the vertices that get no class.
    pub random: Random,
}

/// Something that is done to one colouring with chances of its own.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The colouring.
    pub slot: usize,
    /// Its chances.
    pub random: Random,
}

/// What a population does with its colourings.
///
/// - All implementations give the same numbers for the same calls.
/// - Work of one call is independent, and its order does not matter.
/// - An implementation calls `stop` now and then; once it has returned true, results may be anything.
pub trait Pool: Slots {
    /// Gives every vertex a random colour.
    fn scatter(&mut self, tasks: &[Task]) -> Result<(), GpuError>;

    /// Copies colourings: from, to. None is read and written.
    fn copy(&mut self, pairs: &[(usize, usize)]) -> Result<(), GpuError>;

    /// Makes children.
    fn cross(&mut self, crosses: &[Cross]) -> Result<(), GpuError>;

    /// Replaces each colouring by the best of a tabu search that begins there; conflicts in the order of the tasks.
    fn improve(
        &mut self,
        tasks: &[Task],
        iterations: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<u32>, GpuError>;

    /// The [`distance`] of each pair of colourings.
    fn distances(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<u32>, GpuError>;
}

impl Pool for CpuSlots<'_> {
    fn scatter(&mut self, tasks: &[Task]) -> Result<(), GpuError> {
        for task in tasks {
            self.slots[task.slot] = scattered(self.graph.n(), self.k, &task.random);
        }
        Ok(())
    }

    fn copy(&mut self, pairs: &[(usize, usize)]) -> Result<(), GpuError> {
        for (from, to) in pairs {
            self.slots[*to] = self.slots[*from].clone();
        }
        Ok(())
    }

    fn cross(&mut self, crosses: &[Cross]) -> Result<(), GpuError> {
        let make = |cross: &Cross| {
            crossover(&self.slots[cross.first], &self.slots[cross.second], self.k, &cross.random)
        };
        let children: Vec<Vec<u32>> = crosses.par_iter().map(make).collect();
        for (cross, child) in crosses.iter().zip(children) {
            self.slots[cross.child] = child;
        }
        Ok(())
    }

    fn improve(
        &mut self,
        tasks: &[Task],
        iterations: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<u32>, GpuError> {
        let search = |task: &Task| {
            let mut tabu = Tabu::new(self.graph, self.matrix, self.k, task.random, &self.slots[task.slot]);
            let outcome = tabu.run(iterations, stop);
            (tabu.best().to_vec(), outcome.conflicts)
        };
        // One task each: a search takes long, and the threads are few.
        let found: Vec<(Vec<u32>, u32)> = tasks.par_iter().with_max_len(1).map(search).collect();
        let mut conflicts = Vec::with_capacity(tasks.len());
        for (task, (colors, count)) in tasks.iter().zip(found) {
            self.slots[task.slot] = colors;
            conflicts.push(count);
        }
        Ok(conflicts)
    }

    fn distances(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<u32>, GpuError> {
        Ok(pairs.iter().map(|(a, b)| distance(&self.slots[*a], &self.slots[*b], self.k)).collect())
    }
}

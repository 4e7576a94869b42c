//! Colourings by number, and what a population does with many of them at a time: on the CPU here, on a device in `device.rs`.

use rayon::prelude::*;
use tidemill_gpu::GpuError;

use super::{crossover, distance};
use crate::Graph;
use crate::random::Random;
use crate::tabu::{Matrix, Tabu};

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

/// Room for colourings with `k` colours, by number.
///
/// - All implementations give the same numbers for the same calls.
/// - Work of one call is independent, and its order does not matter.
/// - `stop` is asked now and then; after it has said yes, results may be anything.
pub trait Pool {
    /// Vertices of the graph.
    fn n(&self) -> usize;

    /// Colours.
    fn k(&self) -> usize;

    /// Makes room for so many colourings.
    fn reserve(&mut self, n_slots: usize) -> Result<(), GpuError>;

    /// Gives a colouring from outside.
    fn write(&mut self, slot: usize, colors: &[u32]) -> Result<(), GpuError>;

    /// Takes a colouring out.
    fn read(&mut self, slot: usize) -> Result<Vec<u32>, GpuError>;

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

    /// How far pairs of colourings are apart, as [`distance`] says.
    fn distances(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<u32>, GpuError>;
}

/// A pool in memory; searches run on the threads of the current rayon pool.
#[derive(Debug)]
pub struct CpuPool<'a> {
    graph: &'a Graph,
    matrix: &'a Matrix,
    k: usize,
    slots: Vec<Vec<u32>>,
}

impl<'a> CpuPool<'a> {
    /// An empty pool.
    pub fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize) -> Self {
        Self { graph, matrix, k, slots: Vec::new() }
    }
}

/// The random colouring of some chances.
pub(crate) fn scattered(n: usize, k: usize, random: &Random) -> Vec<u32> {
    (0..n as u64).map(|vertex| random.below(vertex, k as u32)).collect()
}

impl Pool for CpuPool<'_> {
    fn n(&self) -> usize {
        self.graph.n()
    }

    fn k(&self) -> usize {
        self.k
    }

    fn reserve(&mut self, n_slots: usize) -> Result<(), GpuError> {
        self.slots.resize(n_slots, vec![0; self.graph.n()]);
        Ok(())
    }

    fn write(&mut self, slot: usize, colors: &[u32]) -> Result<(), GpuError> {
        self.slots[slot].copy_from_slice(colors);
        Ok(())
    }

    fn read(&mut self, slot: usize) -> Result<Vec<u32>, GpuError> {
        Ok(self.slots[slot].clone())
    }

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

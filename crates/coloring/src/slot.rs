//! Colourings by number: where populations and walks keep theirs, in memory or on a device.

use tidemill_gpu::GpuError;

use crate::Graph;
use crate::random::Random;
use crate::tabu::Matrix;

/// Room for colourings with `k` colours, by number.
pub trait Slots {
    /// Vertices of the graph.
    fn n(&self) -> usize;

    /// Colours.
    fn k(&self) -> usize;

    /// Makes room for so many colourings.
    fn reserve(&mut self, n_slots: usize) -> Result<(), GpuError>;

    /// Gives a colouring from outside.
    fn write(&mut self, slot: usize, colors: &[u32]) -> Result<(), GpuError>;

    /// The colouring as it is now.
    fn read(&mut self, slot: usize) -> Result<Vec<u32>, GpuError>;
}

/// Colourings in memory; work on many of them runs on the threads of the current rayon pool.
#[derive(Debug)]
pub struct CpuSlots<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) matrix: &'a Matrix,
    pub(crate) k: usize,
    pub(crate) slots: Vec<Vec<u32>>,
    /// The best colouring of the last walk of each, where one has walked.
    pub(crate) best: Vec<Vec<u32>>,
}

impl<'a> CpuSlots<'a> {
    /// No colourings yet.
    pub fn new(graph: &'a Graph, matrix: &'a Matrix, k: usize) -> Self {
        Self { graph, matrix, k, slots: Vec::new(), best: Vec::new() }
    }
}

impl Slots for CpuSlots<'_> {
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
}

/// The random colouring of some chances.
pub(crate) fn scattered(n: usize, k: usize, random: &Random) -> Vec<u32> {
    (0..n as u64).map(|vertex| random.below(vertex, k as u32)).collect()
}

/// The given colourings, one after another, and random ones in all other slots.
pub(crate) fn fill(
    slots: &mut impl Slots,
    n_slots: usize,
    given: &[Vec<u32>],
    seed: u64,
) -> Result<(), GpuError> {
    slots.reserve(n_slots)?;
    for slot in 0..n_slots {
        let random = Random::new(seed, slot as u64 * 2 + 1);
        let chance = || scattered(slots.n(), slots.k(), &random);
        let colors = given.get(slot).cloned().unwrap_or_else(chance);
        slots.write(slot, &colors)?;
    }
    Ok(())
}

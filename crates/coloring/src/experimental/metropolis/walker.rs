//! Walks on the CPU.

use rayon::prelude::*;
use tidemill_gpu::GpuError;

use super::{Walk, Walked, Walkers, chance_of, log_of_chance, logarithms};
use crate::random::scale;
use crate::slot::CpuSlots;
use crate::tabu::{MOST_NARROW, MOST_WIDE, class_limit, fit, is_narrow};

impl Walkers for CpuSlots<'_> {
    fn read_best(&mut self, slot: usize) -> Result<Vec<u32>, GpuError> {
        Ok(self.best[slot].clone())
    }

    fn walk(&mut self, walks: &[Walk]) -> Result<Vec<Walked>, GpuError> {
        let largest = if is_narrow(self.graph, self.k) { MOST_NARROW } else { MOST_WIDE };
        let (limit, logarithms) = (class_limit(self.graph, largest), logarithms());
        let go = |walk: &Walk| {
            let mut walker = Walker::new(self, walk, limit, &logarithms);
            walker.go();
            let walked = Walked { conflicts: walker.conflicts, best_conflicts: walker.best_conflicts };
            (walked, walker.colors, walker.best)
        };
        let ends: Vec<_> = walks.par_iter().with_max_len(1).map(go).collect();
        self.best.resize_with(self.slots.len(), Vec::new);
        let mut all = Vec::with_capacity(walks.len());
        for (walk, (walked, colors, best)) in walks.iter().zip(ends) {
            self.slots[walk.slot] = colors;
            self.best[walk.slot] = best;
            all.push(walked);
        }
        Ok(all)
    }
}

/// One walk.
struct Walker<'w> {
    all: &'w CpuSlots<'w>,
    walk: &'w Walk,
    limit: usize,
    logarithms: &'w [u32; 256],
    colors: Vec<u32>,
    sizes: Vec<usize>,
    /// Neighbours by colour and vertex.
    counts: Vec<u16>,
    stride: usize,
    /// Vertices that a class here shares with one of the colourings beside, by side, class here and class there.
    overlaps: [Vec<u32>; 2],
    conflicts: u32,
    best: Vec<u32>,
    best_conflicts: u32,
}

impl<'w> Walker<'w> {
    fn new(all: &'w CpuSlots<'w>, walk: &'w Walk, limit: usize, logarithms: &'w [u32; 256]) -> Self {
        let (n, k) = (all.graph.n(), all.k);
        let mut colors = all.slots[walk.slot].clone();
        fit(&mut colors, k, limit);
        let stride = n.next_multiple_of(64);
        let mut sizes = vec![0; k];
        colors.iter().for_each(|color| sizes[*color as usize] += 1);
        let mut walker = Self {
            all,
            walk,
            limit,
            logarithms,
            sizes,
            counts: vec![0; k * stride],
            stride,
            overlaps: [Vec::new(), Vec::new()],
            conflicts: 0,
            best: colors.clone(),
            colors,
            best_conflicts: 0,
        };
        for vertex in 0..n {
            walker.add(vertex, walker.colors[vertex], 1);
        }
        let ends: u32 = (0..n).map(|vertex| walker.count(vertex, walker.colors[vertex])).sum();
        (walker.conflicts, walker.best_conflicts) = (ends / 2, ends / 2);
        if walk.coupling > 0 {
            for (overlaps, &beside) in walker.overlaps.iter_mut().zip(&walk.beside) {
                overlaps.resize(k * k, 0);
                for (here, there) in walker.colors.iter().zip(&all.slots[beside]) {
                    overlaps[*here as usize * k + *there as usize] += 1;
                }
            }
        }
        walker
    }

    fn go(&mut self) {
        let (n, k) = (self.all.graph.n() as u32, self.all.k as u32);
        if k < 2 {
            return;
        }
        for number in self.walk.first..self.walk.first + self.walk.count {
            if self.conflicts == 0 {
                break;
            }
            let bits = self.walk.random.bits(number);
            let vertex = scale((bits >> 32) as u32, n) as usize;
            let from = self.colors[vertex];
            let own = self.count(vertex, from);
            if own == 0 {
                continue;
            }
            let to = scale(bits as u32, k - 1);
            let to = to + u32::from(to >= from);
            if self.sizes[to as usize] >= self.limit {
                continue;
            }
            let change = i64::from(self.count(vertex, to)) - i64::from(own);
            let mut cost = i64::from(self.walk.weight) * change;
            if self.walk.coupling > 0 {
                // The vertex itself is among those that its class shares, twice.
                let lost = self.shared(vertex, from) - 2;
                cost += i64::from(self.walk.coupling) * (lost - self.shared(vertex, to));
            }
            if cost > 0 && cost > log_of_chance(self.logarithms, chance_of(bits)) {
                continue;
            }
            self.step(vertex, from, to);
            self.conflicts = (i64::from(self.conflicts) + change) as u32;
            if self.conflicts < self.best_conflicts {
                self.best_conflicts = self.conflicts;
                self.best.copy_from_slice(&self.colors);
            }
        }
    }

    fn step(&mut self, vertex: usize, from: u32, to: u32) {
        self.add(vertex, from, u16::MAX);
        self.add(vertex, to, 1);
        self.colors[vertex] = to;
        self.sizes[from as usize] -= 1;
        self.sizes[to as usize] += 1;
        if self.walk.coupling > 0 {
            for (overlaps, &beside) in self.overlaps.iter_mut().zip(&self.walk.beside) {
                let there = self.all.slots[beside][vertex] as usize;
                overlaps[from as usize * self.all.k + there] -= 1;
                overlaps[to as usize * self.all.k + there] += 1;
            }
        }
    }

    #[inline(always)]
    fn count(&self, vertex: usize, color: u32) -> u32 {
        u32::from(self.counts[color as usize * self.stride + vertex])
    }

    /// Vertices of a class that have the colour of `vertex` in the colourings beside.
    fn shared(&self, vertex: usize, color: u32) -> i64 {
        let row = color as usize * self.all.k;
        let sides = self.overlaps.iter().zip(&self.walk.beside);
        sides
            .map(|(overlaps, &beside)| i64::from(overlaps[row + self.all.slots[beside][vertex] as usize]))
            .sum()
    }

    /// Adds a number, wrapping, to the counts of all neighbours of a vertex in a colour.
    #[inline(always)]
    fn add(&mut self, vertex: usize, color: u32, number: u16) {
        let row = &mut self.counts[color as usize * self.stride..][..self.stride];
        if self.all.matrix.is_dense() {
            for (count, byte) in row.iter_mut().zip(self.all.matrix.row(vertex)) {
                *count = count.wrapping_add(u16::from(*byte).wrapping_mul(number));
            }
        } else {
            for &other in self.all.graph.neighbours(vertex) {
                row[other as usize] = row[other as usize].wrapping_add(number);
            }
        }
    }
}

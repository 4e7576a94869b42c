//! Memetic search: children of good colourings, each improved by a tabu search.
//!
//! [`Memetic`] is a population of islands. An island of two is the search known as HEAD: both children of its two individuals replace
//! them, the best of ten generations is kept, and comes back ten generations later in place of the first. On a CPU one such island is run, a GPU
//! has hundreds side by side. An island whose individuals have become alike begins anew, from individuals of others or from nothing.
//!
//! What is decided here is decided on the host from conflicts and distances; colourings stay in a [`Pool`], in memory or on a device. Both give the same
//! numbers, so that a population makes the same way on both.

mod crossover;
pub(crate) mod device;
mod distance;
mod pool;

pub use crossover::crossover;
pub use device::DevicePool;
pub use distance::distance;
pub use pool::{Cross, Pool, Task};

use tidemill_gpu::GpuError;

use crate::random::{Random, scale};

/// Options of a population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemeticOptions {
    /// Islands.
    pub n_islands: usize,
    /// Individuals of an island, at least 2.
    pub island_size: usize,
    /// Iterations of the tabu search of a child.
    pub iterations: u64,
    /// Generations after which the best comes back.
    pub cycle: u64,
    /// Individuals of an island that are no farther apart are alike.
    pub min_distance: u32,
    /// Of islands that begin anew, how many of a hundred take individuals of others rather than random ones.
    pub migration_percent: u32,
    /// Everything follows from it.
    pub seed: u64,
}

impl MemeticOptions {
    /// One island of two.
    pub fn head(iterations: u64, seed: u64) -> Self {
        Self {
            n_islands: 1,
            island_size: 2,
            iterations,
            cycle: 10,
            min_distance: 0,
            migration_percent: 0,
            seed,
        }
    }

    /// Many islands of two.
    pub fn islands(n_islands: usize, iterations: u64, seed: u64) -> Self {
        Self { n_islands, migration_percent: 50, ..Self::head(iterations, seed) }
    }

    fn n_individuals(&self) -> usize {
        self.n_islands * self.island_size
    }
}

/// The result of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number, from 0.
    pub number: u64,
    /// Conflicts of its best child.
    pub conflicts: u32,
    /// Conflicts of the best colouring since the population began.
    pub best_conflicts: u32,
    /// How far the individuals of an island are apart, on average.
    pub mean_distance: u32,
    /// Islands that began anew.
    pub restarts: usize,
    /// Iterations of tabu searches, of all children.
    pub iterations: u64,
}

/// What a random number is for.
#[derive(Clone, Copy)]
enum Purpose {
    Scatter,
    Cross,
    Tabu,
    Migrate,
}

/// A population.
#[derive(Debug)]
pub struct Memetic<P> {
    pool: P,
    options: MemeticOptions,
    generation: u64,
    /// Individuals are in slots `0..n` and `n..2n` in turn; the children of one are written into the other.
    is_flipped: bool,
    conflicts: Vec<u32>,
    /// By island: conflicts of the best of this cycle, and of the last one.
    elites: Vec<[Option<u32>; 2]>,
    best: Vec<u32>,
    best_conflicts: u32,
}

impl<P: Pool> Memetic<P> {
    /// A population that begins with the given colourings, one after another, and with random ones for the rest.
    pub fn new(mut pool: P, options: MemeticOptions, given: &[Vec<u32>]) -> Result<Self, GpuError> {
        let options = MemeticOptions {
            n_islands: options.n_islands.max(1),
            island_size: options.island_size.max(2),
            cycle: options.cycle.max(1),
            ..options
        };
        let n = options.n_individuals();
        pool.reserve(2 * n + 2 * options.n_islands)?;
        let mut memetic = Self {
            best: vec![0; pool.n()],
            pool,
            generation: 0,
            is_flipped: false,
            conflicts: vec![u32::MAX; n],
            elites: vec![[None; 2]; options.n_islands],
            best_conflicts: u32::MAX,
            options,
        };
        let tasks: Vec<Task> = (given.len()..n).map(|i| memetic.task(i, i, Purpose::Scatter)).collect();
        memetic.pool.scatter(&tasks)?;
        for (individual, colors) in given.iter().take(n).enumerate() {
            memetic.pool.write(individual, colors)?;
        }
        Ok(memetic)
    }

    /// The colouring with the fewest conflicts of all generations.
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// Its conflicts; `u32::MAX` before the first generation.
    pub fn best_conflicts(&self) -> u32 {
        self.best_conflicts
    }

    /// The options it was made with.
    pub fn options(&self) -> &MemeticOptions {
        &self.options
    }

    /// Generations that are complete.
    pub fn n_generations(&self) -> u64 {
        self.generation
    }

    /// Makes one generation. Returns `None` if `stop` ended it early; the population is then of no further use.
    pub fn step(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Option<Generation>, GpuError> {
        let MemeticOptions { island_size, iterations, .. } = self.options;
        let n = self.options.n_individuals();
        let crosses: Vec<Cross> = (0..n)
            .map(|i| {
                let (island, member) = (i / island_size, i % island_size);
                let random = self.random(i, Purpose::Cross);
                // Any other member of the island, by chance.
                let ahead = 1 + scale(random.bits(u64::MAX) as u32, island_size as u32 - 1) as usize;
                let mate = island * island_size + (member + ahead) % island_size;
                Cross { first: self.slot(i), second: self.slot(mate), child: self.other_slot(i), random }
            })
            .collect();
        self.pool.cross(&crosses)?;
        self.is_flipped = !self.is_flipped;
        let tasks: Vec<Task> = (0..n).map(|i| self.task(self.slot(i), i, Purpose::Tabu)).collect();
        self.conflicts = self.pool.improve(&tasks, iterations, stop)?;
        let best = (0..n).min_by_key(|&i| self.conflicts[i]).unwrap_or(0);
        let conflicts = self.conflicts[best];
        if conflicts < self.best_conflicts {
            let found = self.pool.read(self.slot(best))?;
            // A search that was stopped has not lost what it has found.
            (self.best, self.best_conflicts) = (found, conflicts);
        }
        if conflicts > 0 && stop() {
            return Ok(None);
        }
        let mut generation = Generation {
            number: self.generation,
            conflicts,
            best_conflicts: self.best_conflicts,
            mean_distance: 0,
            restarts: 0,
            iterations: iterations * n as u64,
        };
        if conflicts > 0 {
            self.keep_elites()?;
            (generation.mean_distance, generation.restarts) = self.part()?;
        }
        self.generation += 1;
        Ok(Some(generation))
    }

    /// Keeps the best child of every island, and brings the best of the last cycle back at the end of this one.
    fn keep_elites(&mut self) -> Result<(), GpuError> {
        let size = self.options.island_size;
        let mut kept = Vec::new();
        for island in 0..self.options.n_islands {
            let members = island * size..(island + 1) * size;
            let Some(best) = members.min_by_key(|&i| self.conflicts[i]) else { continue };
            if self.elites[island][0].is_none_or(|elite| self.conflicts[best] <= elite) {
                self.elites[island][0] = Some(self.conflicts[best]);
                kept.push((self.slot(best), self.elite_slot(island, 0)));
            }
        }
        self.pool.copy(&kept)?;
        if !self.generation.is_multiple_of(self.options.cycle) {
            return Ok(());
        }
        let (mut back, mut aged) = (Vec::new(), Vec::new());
        for island in 0..self.options.n_islands {
            if let Some(conflicts) = self.elites[island][1] {
                self.conflicts[island * size] = conflicts;
                back.push((self.elite_slot(island, 1), self.slot(island * size)));
            }
            if self.elites[island][0].is_some() {
                aged.push((self.elite_slot(island, 0), self.elite_slot(island, 1)));
            }
            self.elites[island] = [None, self.elites[island][0]];
        }
        self.pool.copy(&back)?;
        self.pool.copy(&aged)
    }

    /// Lets islands begin anew whose individuals are alike; the mean distance, and how many did.
    fn part(&mut self) -> Result<(u32, usize), GpuError> {
        let (n_islands, size) = (self.options.n_islands, self.options.island_size);
        let n = n_islands * size;
        let pairs: Vec<(usize, usize)> =
            (0..n).filter(|i| i % size > 0).map(|i| (self.slot(i - 1), self.slot(i))).collect();
        let distances = self.pool.distances(&pairs)?;
        let mean = distances.iter().map(|d| u64::from(*d)).sum::<u64>() / distances.len().max(1) as u64;
        let is_alike = |island: usize| {
            let all = &distances[island * (size - 1)..][..size - 1];
            all.iter().all(|distance| *distance <= self.options.min_distance)
        };
        let alike: Vec<usize> = (0..n_islands).filter(|&island| is_alike(island)).collect();
        let (mut scattered, mut copied) = (Vec::new(), Vec::new());
        for &island in &alike {
            let random = self.random(island * size, Purpose::Migrate);
            let donors: Vec<usize> = (0..n_islands).filter(|other| !alike.contains(other)).collect();
            let migrates = random.below(0, 100) < self.options.migration_percent && donors.len() >= size;
            let start = random.below(1, donors.len() as u32) as usize;
            for member in 0..size {
                let i = island * size + member;
                if migrates {
                    // A different island for each, so that they are not alike again.
                    let donor = donors[(start + member) % donors.len()];
                    let giver = donor * size + random.below(2 + member as u64, size as u32) as usize;
                    copied.push((self.slot(giver), self.slot(i)));
                    self.conflicts[i] = self.conflicts[giver];
                } else {
                    scattered.push(self.task(self.slot(i), i, Purpose::Scatter));
                }
            }
            self.elites[island] = [None; 2];
        }
        self.pool.copy(&copied)?;
        self.pool.scatter(&scattered)?;
        Ok((mean as u32, alike.len()))
    }

    fn slot(&self, individual: usize) -> usize {
        individual + if self.is_flipped { self.options.n_individuals() } else { 0 }
    }

    fn other_slot(&self, individual: usize) -> usize {
        individual + if self.is_flipped { 0 } else { self.options.n_individuals() }
    }

    fn elite_slot(&self, island: usize, age: usize) -> usize {
        2 * self.options.n_individuals() + 2 * island + age
    }

    fn random(&self, individual: usize, purpose: Purpose) -> Random {
        let number = self.generation * self.options.n_individuals() as u64 + individual as u64;
        Random::new(self.options.seed, number * 4 + purpose as u64)
    }

    fn task(&self, slot: usize, individual: usize, purpose: Purpose) -> Task {
        Task { slot, random: self.random(individual, purpose) }
    }
}

#[cfg(test)]
mod tests;

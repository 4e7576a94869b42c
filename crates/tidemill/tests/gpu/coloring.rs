//! Every kernel against its Rust twin, move by move: under emulation, and on a GPU where there is one.

use tidemill_coloring::device::{DeviceGraph, source, tabu_source};
use tidemill_coloring::experimental::anneal::{Anneal, AnnealOptions};
use tidemill_coloring::experimental::metropolis::{DeviceWalkers, Walk, Walkers, weight};
use tidemill_coloring::experimental::signal::{DeviceSignals, Trajectory, inference, reservoir, transfer};
use tidemill_coloring::experimental::temper::{Temper, TemperOptions};
use tidemill_coloring::memetic::{Cross, DevicePool, Generation, Memetic, MemeticOptions, Pool, Task};
use tidemill_coloring::random::Random;
use tidemill_coloring::tabu::device::DeviceTabu;
use tidemill_coloring::tabu::{Matrix, Tabu};
use tidemill_coloring::{CpuSlots, Graph};
use tidemill_gpu::{Device, HostOptions};

use crate::device::{gpu, host, is_gpu, unless_unavailable};

/// The host, and a GPU where there is one.
fn devices() -> Vec<Device> {
    host(HostOptions::default()).into_iter().chain(gpu()).collect()
}

/// A random graph with an edge between a share of `percent` of all pairs.
fn random_graph(n: u32, percent: u32, seed: u64) -> Graph {
    let random = Random::new(seed, 99);
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
    Graph::new(n as usize, pairs.filter(|&(a, b)| random.below(u64::from(a * n + b), 100) < percent))
}

fn random_colors(n: usize, k: u32, seed: u64) -> Vec<u32> {
    let random = Random::new(seed, 98);
    (0..n as u64).map(|vertex| random.below(vertex, k)).collect()
}

/// Graphs: vertices, edges of a hundred pairs, and colours.
pub type Case = (u32, u32, u32);

/// Lets three tabu searches make so many iterations, part after part, and compares them with their twins after each.
pub fn check_tabu(device: &Device, (n, percent, k): Case, parts: &[u64]) {
    let graph = random_graph(n, percent, u64::from(n));
    let matrix = Matrix::new(&graph);
    let on_device = DeviceGraph::new(device, &graph).unwrap();
    let mut starts: Vec<(Random, Vec<u32>)> =
        (0..3).map(|seed| (Random::new(seed, 7), random_colors(n as usize, k, seed))).collect();
    // One class for all, which may be too large to be counted in bytes.
    starts[2].1.fill(0);
    let given: Vec<(Random, &[u32])> = starts.iter().map(|(random, colors)| (*random, &colors[..])).collect();
    let mut kernel = DeviceTabu::new(&on_device, k as usize, device.stream().unwrap(), &given).unwrap();
    let mut twins: Vec<Tabu<'_>> = given
        .iter()
        .map(|(random, colors)| Tabu::new(&graph, &matrix, k as usize, *random, colors))
        .collect();
    for &iterations in parts {
        let outcomes = kernel.run(iterations).unwrap();
        for (search, twin) in twins.iter_mut().enumerate() {
            twin.run(iterations, || false);
            let what = format!("n = {n}, k = {k}, search {search}, iteration {}", twin.iteration());
            assert_eq!(outcomes[search].iterations, twin.iteration(), "{what}");
            assert_eq!(kernel.colors(search).unwrap(), twin.colors(), "{what}");
            assert_eq!(outcomes[search].conflicts, twin.best_conflicts(), "{what}");
            assert_eq!(kernel.best(search).unwrap(), twin.best(), "{what}");
        }
    }
}

#[test]
fn tabu_kernels_make_the_moves_of_their_twin() {
    let _turn = tidemill_skip::turn::beside_others();
    for device in devices() {
        let is_gpu = is_gpu(&device);
        // Single moves, then many.
        let mut parts = vec![1; if is_gpu { 100 } else { 8 }];
        parts.extend([100, if is_gpu { 20_000 } else { 200 }]);
        // Sizes: around words and warps, in one group of adjacency and in two; dense and sparse; one, two, four and eight warps for a search;
        // and one whose counts are in global memory.
        let cases = [
            (1, 0, 1),
            (7, 60, 2),
            (40, 50, 6),
            (130, 50, 12),
            (129, 4, 3),
            (300, 90, 60),
            (1_100, 6, 19),
            (400, 90, 130),
            (900, 50, 90),
            (1_000, 97, 250),
        ];
        cases.into_iter().for_each(|case| check_tabu(&device, case, &parts));
    }
}

/// Does everything that a pool can do to a few colourings.
pub fn check_pool(device: &Device, (n, percent, k): Case) {
    let graph = random_graph(n, percent, u64::from(n));
    let matrix = Matrix::new(&graph);
    let on_device = DeviceGraph::new(device, &graph).unwrap();
    let mut pool = DevicePool::new(&on_device, k as usize, device.stream().unwrap()).unwrap();
    let mut twin = CpuSlots::new(&graph, &matrix, k as usize);
    let both: [&mut dyn Pool; 2] = [&mut pool, &mut twin];
    let task = |slot: usize, stream: u64| Task { slot, random: Random::new(3, stream) };
    let found = both.map(|pool| {
        let mut found = Vec::new();
        pool.reserve(8).unwrap();
        pool.scatter(&[task(0, 1), task(1, 2), task(5, 3)]).unwrap();
        pool.write(2, &random_colors(n as usize, k, 9)).unwrap();
        let cross = |first, second, child| Cross { first, second, child, random: Random::new(4, 1) };
        pool.cross(&[cross(0, 1, 3), cross(1, 0, 4), cross(2, 2, 7)]).unwrap();
        found.push(pool.distances(&[(0, 1), (2, 7), (3, 4), (5, 5)]).unwrap());
        found.push(pool.improve(&[task(3, 8), task(4, 9)], 50, &|| false).unwrap());
        pool.copy(&[(3, 6), (0, 2)]).unwrap();
        found.push(pool.distances(&[(3, 4), (3, 6), (0, 2), (0, 4)]).unwrap());
        found.extend((0..8).map(|slot| pool.read(slot).unwrap()));
        found
    });
    assert_eq!(found[0], found[1], "n = {n}, k = {k}");
    assert_eq!(found[0][0][1], 0, "the child of twins is a twin");
}

#[test]
fn pools_do_the_same_on_every_device() {
    let _turn = tidemill_skip::turn::beside_others();
    for device in devices() {
        for case in [(1, 0, 1), (30, 50, 5), (131, 50, 14), (200, 80, 70)] {
            check_pool(&device, case);
        }
    }
}

#[test]
fn populations_live_the_same_on_every_device() {
    let _turn = tidemill_skip::turn::beside_others();
    for device in devices() {
        let is_gpu = is_gpu(&device);
        let (n, k, n_islands, iterations, n_generations) =
            if is_gpu { (250, 26, 40, 3_000, 40) } else { (60, 9, 3, 30, 14) };
        let graph = random_graph(n, 50, 1);
        let matrix = Matrix::new(&graph);
        let on_device = DeviceGraph::new(&device, &graph).unwrap();
        for island_size in [2, 3] {
            let options = MemeticOptions {
                cycle: 3,
                min_distance: n / 3,
                island_size,
                ..MemeticOptions::islands(n_islands, iterations, 5)
            };
            let pool = DevicePool::new(&on_device, k, device.stream().unwrap()).unwrap();
            let mut there = Memetic::new(pool, options, &[]).unwrap();
            let mut here = Memetic::new(CpuSlots::new(&graph, &matrix, k), options, &[]).unwrap();
            let mut lived: Vec<Generation> = Vec::new();
            for _ in 0..n_generations {
                let (a, b) =
                    (there.step(&|| false).unwrap().unwrap(), here.step(&|| false).unwrap().unwrap());
                assert_eq!(a, b);
                lived.push(a);
            }
            assert_eq!(there.best(), here.best());
            assert!(is_gpu || lived.iter().any(|generation| generation.restarts > 0), "{lived:?}");
        }
    }
}

/// Lets walks make so many proposals, part after part, alone and coupled.
pub fn check_walks(device: &Device, (n, percent, k): Case, parts: &[u64]) {
    let graph = random_graph(n, percent, u64::from(n));
    let matrix = Matrix::new(&graph);
    let on_device = DeviceGraph::new(device, &graph).unwrap();
    let mut there = DeviceWalkers::new(&on_device, k as usize, device.stream().unwrap()).unwrap();
    let mut here = CpuSlots::new(&graph, &matrix, k as usize);
    let both: [&mut dyn Walkers; 2] = [&mut there, &mut here];
    let found = both.map(|walkers| {
        walkers.reserve(5).unwrap();
        for slot in 0..5 {
            walkers.write(slot, &random_colors(n as usize, k, slot as u64)).unwrap();
        }
        let mut found = Vec::new();
        let mut first = 0;
        for &count in parts {
            let walk = |slot: usize, coupling: u32| Walk {
                slot,
                first,
                count,
                random: Random::new(7, slot as u64),
                weight: weight(1.0, 0.5),
                coupling,
                beside: [1, 3],
            };
            let coupling = weight(0.2, 1.0);
            found.push(walkers.walk(&[walk(0, 0), walk(4, 0)]).unwrap());
            found.push(walkers.walk(&[walk(0, coupling), walk(2, coupling)]).unwrap());
            found.push(walkers.walk(&[walk(1, 0), walk(3, 0)]).unwrap());
            first += count;
        }
        let colors: Vec<Vec<u32>> = (0..5).map(|slot| walkers.read(slot).unwrap()).collect();
        let best: Vec<Vec<u32>> = (0..5).map(|slot| walkers.read_best(slot).unwrap()).collect();
        (found, colors, best)
    });
    assert_eq!(found[0], found[1], "n = {n}, k = {k}");
}

#[test]
fn walks_are_the_same_on_every_device() {
    let _turn = tidemill_skip::turn::beside_others();
    for device in devices() {
        let is_gpu = is_gpu(&device);
        // Single proposals, then many.
        let mut parts = vec![1; 8];
        parts.extend([33, 500, if is_gpu { 100_000 } else { 2_000 }]);
        for case in [(1, 0, 1), (9, 50, 2), (70, 50, 9), (200, 70, 31)] {
            check_walks(&device, case, &parts);
        }
    }
}

#[test]
fn ladders_and_rings_do_the_same_on_every_device() {
    let _turn = tidemill_skip::turn::beside_others();
    for device in devices() {
        let is_gpu = is_gpu(&device);
        let (n, k, proposals) = if is_gpu { (250, 26, 20_000) } else { (60, 8, 300) };
        let graph = random_graph(n, 50, 1);
        let matrix = Matrix::new(&graph);
        let on_device = DeviceGraph::new(&device, &graph).unwrap();
        let walkers = || DeviceWalkers::new(&on_device, k, device.stream().unwrap()).unwrap();
        let options = TemperOptions::new(5, proposals, 3);
        let mut there = Temper::new(walkers(), options, &[]).unwrap();
        let mut here = Temper::new(CpuSlots::new(&graph, &matrix, k), options, &[]).unwrap();
        for _ in 0..6 {
            assert_eq!(there.step().unwrap(), here.step().unwrap());
        }
        assert_eq!(there.best(), here.best());
        let options = AnnealOptions { n_slices: 4, ..AnnealOptions::new(2, 5, proposals, 3) };
        let mut there = Anneal::new(walkers(), options, &[]).unwrap();
        let mut here = Anneal::new(CpuSlots::new(&graph, &matrix, k), options, &[]).unwrap();
        for _ in 0..6 {
            assert_eq!(there.step().unwrap(), here.step().unwrap());
        }
        assert_eq!(there.best(), here.best());
    }
}

/// What searches may have gone through, made up: samples of who was in conflict, and colourings.
fn trajectory(n: u32, k: u32, n_samples: u64) -> Trajectory {
    let random = Random::new(u64::from(n), 97);
    let sample = |at: u64| (0..u64::from(n)).map(|vertex| random.below(at << 32 | vertex, 3) == 0).collect();
    Trajectory {
        n: n as usize,
        conflicts: (0..n_samples).map(sample).collect(),
        colorings: (0..5).map(|seed| random_colors(n as usize, k, seed)).collect(),
        iterations: 0,
    }
}

/// Compares every signal with its twin, bit for bit.
pub fn check_signals(device: &Device, (n, percent, k): Case, n_samples: u64) {
    let graph = random_graph(n, percent, u64::from(n) + 1);
    let trajectory = trajectory(n, k, n_samples);
    let signals = DeviceSignals::new(&graph, device.stream().unwrap()).unwrap();
    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
    let what = format!("n = {n}, k = {k}, {n_samples} samples");
    assert_eq!(
        bits(signals.reservoir(&trajectory).unwrap()),
        bits(reservoir(&graph, &trajectory)),
        "reservoir, {what}"
    );
    assert_eq!(
        bits(signals.transfer(&trajectory).unwrap()),
        bits(transfer(&graph, &trajectory)),
        "transfer, {what}"
    );
    let k = k as usize;
    assert_eq!(
        bits(signals.inference(&trajectory, k).unwrap()),
        bits(inference(&graph, &trajectory, k)),
        "inference, {what}"
    );
}

#[test]
fn signals_are_the_same_on_every_device() {
    let _turn = tidemill_skip::turn::beside_others();
    for device in devices() {
        let cases: [(Case, u64); 6] = [
            ((1, 0, 1), 0),
            ((2, 100, 2), 1),
            ((33, 50, 5), 32),
            ((70, 30, 9), 33),
            ((130, 90, 20), 65),
            ((200, 50, 12), 256),
        ];
        for (case, n_samples) in cases {
            check_signals(&device, case, n_samples);
        }
        if is_gpu(&device) {
            check_signals(&device, (3_000, 50, 60), 256);
        }
    }
}

#[test]
fn two_signals_run_side_by_side_on_two_streams_of_a_gpu() {
    let _turn = tidemill_skip::turn::alone();
    let Some(device) = gpu() else { return };
    let graph = random_graph(6_000, 50, 1);
    let trajectory = trajectory(6_000, 60, 256);
    let [first, second] = [(); 2].map(|()| DeviceSignals::new(&graph, device.stream().unwrap()).unwrap());
    // Memory is taken before anything starts: taking it may wait.
    let mut long = first.transfer_job(&trajectory).unwrap();
    let mut steps = second.reservoir_job(&trajectory).unwrap();
    let (long, steps) = (long.start().unwrap(), steps.start().unwrap());
    assert!(long.ended.since_ms(&steps.began).unwrap() > 0.0, "the first ended before the second began");
    assert!(steps.ended.since_ms(&long.began).unwrap() > 0.0, "the second ended before the first began");
    assert_eq!(long.finish().unwrap(), first.transfer(&trajectory).unwrap());
    assert!(steps.finish().unwrap().iter().any(|response| *response > 0.0));
}

#[test]
fn kernels_compile_for_a_gpu() {
    for source in [source(), tabu_source(1), tabu_source(8)] {
        let code = unless_unavailable(tidemill_gpu::compile(&source, "sm_90"), "TIDEMILL_REQUIRE_NVRTC");
        assert!(code.is_none_or(|code| !code.is_empty()));
    }
}

use super::*;
use crate::tabu::Matrix;
use crate::{CpuSlots, Graph};

/// A random graph that has a colouring with `k` colours.
fn planted(n: u32, k: u32, percent: u32, seed: u64) -> Graph {
    let random = Random::new(seed, 99);
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
    let joined = pairs.filter(|&(a, b)| a % k != b % k && random.below(u64::from(a * n + b), 100) < percent);
    Graph::new(n as usize, joined)
}

fn conflicts(graph: &Graph, colors: &[u32]) -> usize {
    let same =
        |v: usize| graph.neighbours(v).iter().filter(move |u| colors[**u as usize] == colors[v]).count();
    (0..graph.n()).map(same).sum::<usize>() / 2
}

#[test]
fn a_planted_colouring_is_found() {
    let graph = planted(120, 8, 60, 1);
    let matrix = Matrix::new(&graph);
    for options in [MemeticOptions::head(300, 4), MemeticOptions::islands(3, 300, 4)] {
        let mut memetic = Memetic::new(CpuSlots::new(&graph, &matrix, 8), options, &[]).unwrap();
        for number in 0..200 {
            let generation = memetic.step(&|| false).unwrap().unwrap();
            assert_eq!(generation.number, number);
            assert_eq!(conflicts(&graph, memetic.best()), memetic.best_conflicts() as usize);
            if generation.best_conflicts == 0 {
                break;
            }
        }
        assert_eq!(conflicts(&graph, memetic.best()), 0, "{options:?}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let graph = planted(90, 9, 80, 1);
    let matrix = Matrix::new(&graph);
    let options = MemeticOptions { cycle: 3, min_distance: 20, ..MemeticOptions::islands(4, 60, 9) };
    let run = |threads: usize| {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        threads.install(|| {
            let mut memetic = Memetic::new(CpuSlots::new(&graph, &matrix, 7), options, &[]).unwrap();
            let all: Vec<Generation> = (0..15).map(|_| memetic.step(&|| false).unwrap().unwrap()).collect();
            (all, memetic.best().to_vec())
        })
    };
    let (one, two) = (run(1), run(3));
    assert_eq!(one, two);
    assert!(one.0.iter().any(|generation| generation.restarts > 0), "{one:?}");
    assert!(one.0.iter().any(|generation| generation.restarts < 4), "{one:?}");
}

#[test]
fn a_given_colouring_is_where_it_begins() {
    let graph = planted(60, 6, 70, 1);
    let matrix = Matrix::new(&graph);
    let given: Vec<u32> = (0..60).map(|vertex| vertex % 6).collect();
    let options = MemeticOptions::head(1, 4);
    let given = [given.clone(), given];
    let mut memetic = Memetic::new(CpuSlots::new(&graph, &matrix, 6), options, &given).unwrap();
    assert_eq!(memetic.step(&|| false).unwrap().unwrap().best_conflicts, 0);
}

#[test]
fn a_stopped_generation_is_none() {
    let graph = planted(60, 6, 70, 1);
    let matrix = Matrix::new(&graph);
    let mut memetic =
        Memetic::new(CpuSlots::new(&graph, &matrix, 4), MemeticOptions::head(100, 4), &[]).unwrap();
    assert_eq!(memetic.step(&|| true).unwrap(), None);
    assert!(memetic.best_conflicts() < u32::MAX);
}

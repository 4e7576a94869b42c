use super::*;

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

fn conflicts(graph: &Graph, colors: &[u32]) -> u32 {
    let ends = (0..graph.n())
        .map(|v| graph.neighbours(v).iter().filter(|u| colors[**u as usize] == colors[v]).count());
    ends.sum::<usize>() as u32 / 2
}

/// TabuCol without any table: every count anew, every move in plain order.
struct Plain<'a> {
    graph: &'a Graph,
    k: u32,
    random: Random,
    colors: Vec<u32>,
    best: u32,
    until: Vec<u64>,
}

impl Plain<'_> {
    fn step(&mut self, iteration: u64) {
        let chance = Chance::draw(&self.random, iteration, self.graph.n(), self.k as usize);
        let now = conflicts(self.graph, &self.colors);
        let count = |v: usize, c: u32| {
            self.graph.neighbours(v).iter().filter(|u| self.colors[**u as usize] == c).count() as i32
        };
        let listed: Vec<usize> = (0..self.graph.n()).filter(|&v| count(v, self.colors[v]) > 0).collect();
        let mut moves = Vec::new();
        for &v in &listed {
            for c in (0..self.k).filter(|c| *c != self.colors[v]) {
                let delta = count(v, c) - count(v, self.colors[v]);
                let excused = now as i32 + delta < self.best as i32;
                if excused || self.until[v * self.k as usize + c as usize] <= iteration {
                    moves.push((delta, chance.vertex_rank(v as u32), chance.color_rank(c), v, c));
                }
            }
        }
        if let Some(&(_, _, _, v, c)) = moves.iter().min() {
            // Taking a colour ends its ban.
            self.until[v * self.k as usize + c as usize] = 0;
            self.until[v * self.k as usize + self.colors[v] as usize] =
                iteration + 1 + chance.tenure(listed.len());
            self.colors[v] = c;
        }
        self.best = self.best.min(conflicts(self.graph, &self.colors));
    }
}

#[test]
fn every_move_is_that_of_a_search_without_tables() {
    // Dense and sparse; with counts in bytes and in words.
    for (n, percent, k) in [(40, 50, 6), (60, 3, 3), (30, 100, 20), (300, 90, 3), (70, 20, 4)] {
        let graph = random_graph(n, percent, u64::from(n));
        let matrix = Matrix::new(&graph);
        assert_eq!(matrix.is_dense(), percent > 4);
        let colors = random_colors(n as usize, k, 5);
        let random = Random::new(11, u64::from(k));
        let mut tabu = Tabu::new(&graph, &matrix, k as usize, random, &colors);
        assert_eq!(matches!(tabu.width, Width::Wide(_)), n == 300);
        let best = conflicts(&graph, &colors);
        let until = vec![0; (n * k) as usize];
        let mut plain = Plain { graph: &graph, k, random, colors, best, until };
        for iteration in 0..if n == 300 { 40 } else { 400 } {
            if tabu.conflicts() == 0 {
                break;
            }
            assert_eq!(tabu.run(1, || false).iterations, 1);
            plain.step(iteration);
            assert_eq!(tabu.colors(), plain.colors, "n = {n}, iteration {iteration}");
            assert_eq!(tabu.conflicts(), conflicts(&graph, &plain.colors));
            assert_eq!(tabu.best_conflicts(), plain.best);
        }
        assert_eq!(conflicts(&graph, tabu.best()), tabu.best_conflicts());
    }
}

#[test]
fn a_run_in_parts_is_the_run_in_one() {
    let graph = random_graph(100, 50, 3);
    let matrix = Matrix::new(&graph);
    let colors = random_colors(100, 14, 1);
    let new = || Tabu::new(&graph, &matrix, 14, Random::new(3, 0), &colors);
    let (mut whole, mut parts) = (new(), new());
    whole.run(5_000, || false);
    for iterations in [1, 999, 2_500, 1_500] {
        parts.run(iterations, || false);
    }
    assert_eq!(whole.colors(), parts.colors());
    assert_eq!(whole.best(), parts.best());
    assert_eq!(whole.iteration(), parts.iteration());
}

#[test]
fn a_bipartite_graph_gets_its_two_colours() {
    let edges = (0..50).flat_map(|a| (50..100).filter(move |b| (a * 7 + b) % 3 != 0).map(move |b| (a, b)));
    let graph = Graph::new(100, edges);
    let matrix = Matrix::new(&graph);
    let mut tabu = Tabu::new(&graph, &matrix, 2, Random::new(1, 0), &random_colors(100, 2, 1));
    let outcome = tabu.run(100_000, || false);
    assert!(outcome.is_solved(), "{outcome:?}");
    assert_eq!(conflicts(&graph, tabu.best()), 0);
}

#[test]
fn a_stopped_search_makes_no_iterations() {
    let graph = random_graph(50, 50, 3);
    let matrix = Matrix::new(&graph);
    let mut tabu = Tabu::new(&graph, &matrix, 3, Random::new(3, 0), &random_colors(50, 3, 1));
    assert_eq!(tabu.run(5_000, || true).iterations, 0);
}

#[test]
fn one_colour_and_no_vertices_are_no_trouble() {
    let graph = random_graph(20, 50, 3);
    let matrix = Matrix::new(&graph);
    let mut tabu = Tabu::new(&graph, &matrix, 1, Random::new(3, 0), &[0; 20]);
    let outcome = tabu.run(100, || false);
    assert_eq!((outcome.iterations, outcome.conflicts), (100, graph.n_edges() as u32));
    let empty = Graph::new(0, []);
    let matrix = Matrix::new(&empty);
    assert!(Tabu::new(&empty, &matrix, 0, Random::new(3, 0), &[]).run(100, || false).is_solved());
}

#[test]
fn colourings_are_made_to_fit() {
    let mut colors = vec![0, 0, 0, 9, 1, 0];
    fit(&mut colors, 3, 2);
    assert_eq!(colors, [1, 2, 0, 2, 1, 0]);
    fit(&mut colors, 2, usize::MAX);
    assert_eq!(colors, [1, 1, 0, 1, 1, 0]);
}

#[test]
fn a_search_in_a_large_graph_asks_more_often_whether_it_shall_stop() {
    let n = 1 << 18;
    let ring = Graph::new(n, (0..n as u32).map(|at| (at, (at + 1) % n as u32)));
    let matrix = Matrix::new(&ring);
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) == 10;
    let mut search = Tabu::new(&ring, &matrix, 2, Random::new(1, 1), &vec![0; n]);
    let outcome = search.run(100_000, stop);
    assert_eq!(outcome.iterations, 10 * stride(n));
    assert!(stride(n) <= 4 && stride(100) == 1_024, "{}", stride(n));
}

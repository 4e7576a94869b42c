//! A large clique, found greedily. Its size is a bound: no colouring has fewer colours.

use crate::draw::Draw;
use crate::graph::Graph;

/// Vertices from which a clique is grown.
const STARTS: usize = 256;

/// Steps after which no further start is tried, so that a bound never takes longer than a search: counted, not timed, because what is
/// searched depends on it.
const MOST_STEPS: usize = 1 << 28;

/// A clique, ascending; it can be smaller than the largest one.
///
/// From many vertices, always the candidate that keeps most candidates is added; ties are broken by chance.
pub fn clique(graph: &Graph, seed: u64) -> Vec<u32> {
    let n = graph.n();
    let mut order: Vec<usize> = (0..n).collect();
    let mut draw = Draw::new(seed, 0x636c_6971);
    draw.shuffle(&mut order);
    order.sort_by_key(|vertex| std::cmp::Reverse(graph.neighbours(*vertex).len()));
    let mut best: Vec<u32> = Vec::new();
    let mut n_steps = 0;
    for &start in order.iter().take(STARTS) {
        // No clique has more vertices than its members have neighbours, and one.
        if graph.neighbours(start).len() < best.len() || n_steps > MOST_STEPS {
            break;
        }
        let found = grown(graph, start, best.len(), &mut draw, &mut n_steps);
        if found.len() > best.len() {
            best = found;
        }
    }
    best.sort_unstable();
    best
}

fn grown(graph: &Graph, start: usize, enough: usize, draw: &mut Draw, n_steps: &mut usize) -> Vec<u32> {
    let mut members = vec![start as u32];
    let mut candidates = graph.neighbours_in(start, &vec![!0; graph.n_words()]);
    loop {
        let left: u32 = candidates.iter().map(|word| word.count_ones()).sum();
        if left == 0 {
            return members;
        }
        if members.len() + left as usize <= enough {
            return members;
        }
        let mut best = (0, 0, 0);
        for vertex in bits(&candidates) {
            let key = (graph.n_neighbours_in(vertex, &candidates) + 1, draw.next(), vertex);
            best = best.max(key);
            *n_steps += graph.counting_cost(vertex);
        }
        members.push(best.2 as u32);
        candidates = graph.neighbours_in(best.2, &candidates);
        *n_steps += graph.n_words();
    }
}

/// The places of the bits that are set, ascending.
pub(crate) fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                at * 64 + bit
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Family;

    #[test]
    fn what_is_found_is_a_clique() {
        for seed in 0..20 {
            let graph = Family::Random { n: 70, p: 0.6 }.generate(seed).unwrap().graph();
            let found = clique(&graph, seed);
            assert!(found.len() >= 7, "{}", found.len());
            for a in &found {
                assert!(found.iter().all(|b| a == b || graph.neighbours(*a as usize).contains(b)));
            }
        }
    }

    #[test]
    fn the_row_of_a_board_is_found() {
        let graph = Family::Queen { side: 9 }.generate(0).unwrap().graph();
        assert_eq!(clique(&graph, 1).len(), 9);
        assert!(clique(&Graph::new(0, []), 1).is_empty());
        assert_eq!(clique(&Graph::new(3, []), 1).len(), 1);
    }
}

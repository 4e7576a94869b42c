//! DSATUR, after Brélaz: the vertex that is most constrained comes next.

use super::Preference;
use super::tournament::Tournament;
use crate::graph::Graph;

const NONE: u32 = u32::MAX;

/// Always colours a vertex whose neighbours have most different colours; of those, the one that is preferred, which is that with most
/// neighbours unless signals say otherwise. (Most uncoloured neighbours, as in the original, costs a colour or two on random graphs.)
pub(crate) fn color(graph: &Graph, preference: &Preference) -> Vec<u32> {
    let n = graph.n();
    let mut colors = vec![NONE; n];
    let mut saturation = vec![0_u32; n];
    // Which colours the neighbours of each vertex have, as bits.
    let mut n_words = 1;
    let mut met = vec![0_u64; n * n_words];
    let mut left = Tournament::new(preference.rank.iter().map(|rank| Some((0, *rank))).collect());
    while let Some(vertex) = left.best() {
        left.set(vertex, None);
        let row = &met[vertex * n_words..(vertex + 1) * n_words];
        let color = match row.iter().position(|word| *word != !0) {
            Some(word) => word * 64 + (!row[word]).trailing_zeros() as usize,
            None => {
                met = widened(&met, n_words);
                n_words += 1;
                (n_words - 1) * 64
            }
        };
        colors[vertex] = color as u32;
        for neighbour in graph.neighbours(vertex) {
            let neighbour = *neighbour as usize;
            let word = &mut met[neighbour * n_words + color / 64];
            let bit = 1_u64 << (color % 64);
            if *word & bit == 0 && colors[neighbour] == NONE {
                *word |= bit;
                saturation[neighbour] += 1;
                left.set(neighbour, Some((saturation[neighbour], preference.rank[neighbour])));
            }
        }
    }
    colors
}

fn widened(met: &[u64], n_words: usize) -> Vec<u64> {
    let mut wide = Vec::with_capacity(met.len() / n_words * (n_words + 1));
    for row in met.chunks(n_words) {
        wide.extend_from_slice(row);
        wide.push(0);
    }
    wide
}

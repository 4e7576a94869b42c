//! From a proper colouring to a start with fewer colours.

use crate::graph::Graph;
use crate::initial::n_colors;

/// A start with `k` colours: the smallest classes are dissolved, and each of their vertices goes where it has fewest neighbours.
///
/// Vertices of high priority are dealt out first. A colouring with at most `k` colours stays as it is.
///
/// # Panics
/// If `k` is 0 and the graph is not empty, or there is not one colour for each vertex.
pub fn warm_start(graph: &Graph, colors: &[u32], k: usize, priority: Option<&[f64]>) -> Vec<u32> {
    assert_eq!(colors.len(), graph.n(), "every vertex has a colour");
    assert!(k > 0 || colors.is_empty(), "at least one colour");
    let mut sizes = vec![0_usize; n_colors(colors)];
    colors.iter().for_each(|color| sizes[*color as usize] += 1);
    if sizes.len() <= k {
        return colors.to_vec();
    }
    let mut by_size: Vec<usize> = (0..sizes.len()).collect();
    by_size.sort_by_key(|color| (std::cmp::Reverse(sizes[*color]), *color));
    let mut renamed = vec![u32::MAX; sizes.len()];
    for (new, old) in by_size.iter().take(k).enumerate() {
        renamed[*old] = new as u32;
    }
    let mut start: Vec<u32> = colors.iter().map(|color| renamed[*color as usize]).collect();
    let mut counts = vec![0_usize; k];
    let mut loose: Vec<usize> = (0..graph.n()).filter(|vertex| start[*vertex] == u32::MAX).collect();
    if let Some(priority) = priority {
        loose.sort_by(|a, b| priority[*b].total_cmp(&priority[*a]).then(a.cmp(b)));
    }
    for vertex in loose {
        counts.fill(0);
        for other in graph.neighbours(vertex) {
            if let Some(count) = counts.get_mut(start[*other as usize] as usize) {
                *count += 1;
            }
        }
        let best = (0..k).min_by_key(|color| (counts[*color], *color)).unwrap_or(0);
        start[vertex] = best as u32;
    }
    start
}

/// Edges that join equal colours.
pub(crate) fn n_conflicts(graph: &Graph, colors: &[u32]) -> u32 {
    let of = |vertex: usize| {
        let same = |other: &&u32| (**other as usize) < vertex && colors[**other as usize] == colors[vertex];
        graph.neighbours(vertex).iter().filter(same).count() as u32
    };
    (0..graph.n()).map(of).sum()
}

/// Vertices with a neighbour of their colour.
pub(crate) fn n_conflicting(graph: &Graph, colors: &[u32]) -> usize {
    let is_in_conflict = |vertex: &usize| {
        graph.neighbours(*vertex).iter().any(|other| colors[*other as usize] == colors[*vertex])
    };
    (0..graph.n()).filter(is_in_conflict).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use crate::generate::Family;
    use crate::initial::{Initial, Preference};

    #[test]
    fn one_class_goes_and_the_others_stay_together() {
        let graph = Family::Random { n: 90, p: 0.4 }.generate(2).unwrap().graph();
        let colors = Initial::Dsatur.color(&graph, &Preference::new(&graph, None), 0);
        let k = n_colors(&colors) - 1;
        let start = warm_start(&graph, &colors, k, None);
        assert!(start.iter().all(|color| (*color as usize) < k));
        let moved =
            (0..90).filter(|a| (0..90).any(|b| colors[*a] == colors[b] && start[*a] != start[b])).count();
        assert!(moved > 0 && moved < 30, "{moved}");
        let mut draw = Draw::new(1, 1);
        let random: Vec<u32> = (0..90).map(|_| draw.below(k) as u32).collect();
        assert!(2 * n_conflicts(&graph, &start) < n_conflicts(&graph, &random), "far better than chance");
        assert_eq!(warm_start(&graph, &colors, k + 1, None), colors);
    }
}

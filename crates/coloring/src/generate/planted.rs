//! Graphs in which a colouring is hidden.

use crate::draw::Draw;

/// Edges between classes of equal size, spread as evenly as chance allows: a vertex takes those of the other class that have fewest.
pub(super) fn flat(n: usize, k: usize, p: f64, draw: &mut Draw) -> Vec<(u32, u32)> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    draw.shuffle(&mut order);
    let class = |at: usize| order.iter().skip(at).step_by(k).copied().collect::<Vec<u32>>();
    let classes: Vec<Vec<u32>> = (0..k).map(class).collect();
    let mut edges = Vec::new();
    for (at, left) in classes.iter().enumerate() {
        for right in &classes[..at] {
            let wanted = p * right.len() as f64;
            let mut degrees = vec![0_u32; right.len()];
            let mut rest = 0.0;
            for from in left {
                rest += wanted;
                let n_edges = (rest.round() as usize).min(right.len());
                rest -= n_edges as f64;
                let mut chosen: Vec<usize> = (0..right.len()).collect();
                draw.shuffle(&mut chosen);
                chosen.sort_by_key(|to| degrees[*to]);
                for to in chosen.into_iter().take(n_edges) {
                    degrees[to] += 1;
                    edges.push((*from, right[to]));
                }
            }
        }
    }
    edges
}

/// The most edges that [`leighton`] is asked for; beyond that, cliques seldom bring new ones.
pub(super) fn most_edges(n: usize, k: usize) -> usize {
    let (size, larger) = (n / k, n % k);
    let within = (k - larger) * (size * size.saturating_sub(1) / 2) + larger * ((size + 1) * size / 2);
    (n * (n - 1) / 2 - within) / 2
}

/// Cliques of up to `k` vertices of different classes, the first one of exactly `k`, until there are `m` edges.
pub(super) fn leighton(n: usize, k: usize, m: usize, draw: &mut Draw) -> Vec<(u32, u32)> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    draw.shuffle(&mut order);
    let mut is_edge = vec![false; n * n];
    let mut edges = Vec::new();
    let mut classes: Vec<usize> = (0..k).collect();
    loop {
        let size = if edges.is_empty() || k < 3 { k } else { 2 + draw.below(k - 1) };
        draw.shuffle(&mut classes);
        let member = |class: &usize, draw: &mut Draw| {
            let n_members = (n - class).div_ceil(k);
            order[class + k * draw.below(n_members)] as usize
        };
        let clique: Vec<usize> = classes[..size].iter().map(|class| member(class, draw)).collect();
        for (at, &a) in clique.iter().enumerate() {
            for &b in &clique[..at] {
                if !is_edge[a * n + b] {
                    (is_edge[a * n + b], is_edge[b * n + a]) = (true, true);
                    edges.push((a as u32, b as u32));
                }
            }
        }
        if edges.len() >= m {
            return edges;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::clique::clique;
    use crate::generate::Family;

    #[test]
    fn a_flat_graph_is_flat_and_has_the_density_asked_for() {
        let instance = Family::Flat { n: 300, k: 10, p: 0.5 }.generate(7).unwrap();
        let graph = instance.graph();
        let degrees: Vec<usize> = (0..300).map(|vertex| graph.neighbours(vertex).len()).collect();
        let (least, most) = (degrees.iter().min().unwrap(), degrees.iter().max().unwrap());
        assert!((133..=137).contains(least) && (133..=137).contains(most), "{least} to {most}");
    }

    #[test]
    fn leighton_graphs_have_the_clique_they_promise() {
        let instance = Family::Leighton { n: 100, k: 8, m: 1500 }.generate(3).unwrap();
        assert!(instance.edges().len() >= 1500);
        assert_eq!(clique(&instance.graph(), 3).len(), 8);
    }
}

use super::*;
use crate::generate::Family;
use crate::graph::Graph;
use crate::verify::verify;

proptest::proptest! {
    #[test]
    fn every_way_gives_a_proper_colouring_without_gaps(seed in 0_u64..1000, n in 0_usize..60, p in 0.0_f64..1.0) {
        let instance = match n {
            0 => crate::instance::Instance::new("empty", 0, []),
            n => Family::Random { n, p }.generate(seed).unwrap(),
        };
        let graph = instance.graph();
        let priority: Vec<f64> = (0..n).map(|vertex| (vertex as f64 * 1.7).sin()).collect();
        for preference in [Preference::new(&graph, None), Preference::new(&graph, Some(&priority))] {
            for initial in Initial::ALL {
                let colors = initial.color(&graph, &preference, seed);
                let verified = verify(&instance, &colors);
                proptest::prop_assert_eq!(verified.map(|it| it.k), Ok(n_colors(&colors)), "{:?}", initial);
                proptest::prop_assert_eq!(colors, initial.color(&graph, &preference, seed));
            }
        }
    }
}

#[test]
fn two_colours_are_enough_for_what_needs_two() {
    // DSATUR is exact on bipartite graphs.
    let edges =
        (0..20_u32).flat_map(|a| (20..40).filter(move |b| (a * 7 + b * 3) % 4 == 0).map(move |b| (a, b)));
    let graph = Graph::new(40, edges);
    assert_eq!(n_colors(&Initial::Dsatur.color(&graph, &Preference::new(&graph, None), 0)), 2);
}

#[test]
fn priorities_change_the_order() {
    let graph = Family::Random { n: 80, p: 0.5 }.generate(1).unwrap().graph();
    let plain = Preference::new(&graph, None);
    let priority: Vec<f64> = (0..80).map(|vertex| f64::from(vertex % 7)).collect();
    assert_ne!(plain.order(), Preference::new(&graph, Some(&priority)).order());
    assert_eq!(plain, Preference::new(&graph, Some(&[1.0; 80])), "equal ones say nothing");
    assert_eq!(plain, Preference::new(&graph, Some(&[f64::NAN; 80])), "nor does what is no number");
}

/// DSATUR as it is told: every vertex is looked at before each step.
fn plain_dsatur(graph: &Graph, preference: &Preference) -> Vec<u32> {
    let n = graph.n();
    let mut colors = vec![u32::MAX; n];
    for _ in 0..n {
        let met = |vertex: usize| {
            let colors = graph.neighbours(vertex).iter().map(|other| colors[*other as usize]);
            colors.filter(|color| *color != u32::MAX).collect::<std::collections::BTreeSet<u32>>()
        };
        let left = (0..n).filter(|vertex| colors[*vertex] == u32::MAX);
        let next = left.max_by_key(|vertex| (met(*vertex).len(), preference.rank[*vertex])).unwrap();
        let met = met(next);
        colors[next] = (0..).find(|color| !met.contains(color)).unwrap();
    }
    colors
}

/// Recursive largest first as it is told.
fn plain_rlf(graph: &Graph, preference: &Preference) -> Vec<u32> {
    let mut colors = vec![u32::MAX; graph.n()];
    for color in 0.. {
        let left: Vec<usize> = (0..graph.n()).filter(|vertex| colors[*vertex] == u32::MAX).collect();
        let count = |vertex: usize, of: &[usize]| {
            graph.neighbours(vertex).iter().filter(|other| of.contains(&(**other as usize))).count()
        };
        let (mut candidates, mut excluded) = (left.clone(), Vec::new());
        let rank = |vertex: usize| preference.rank[vertex];
        let mut next = left.iter().copied().max_by_key(|vertex| (count(*vertex, &left), rank(*vertex)));
        if next.is_none() {
            break;
        }
        while let Some(vertex) = next {
            colors[vertex] = color;
            candidates.retain(|other| *other != vertex);
            let is_near = |other: &usize| graph.neighbours(vertex).contains(&(*other as u32));
            excluded.extend(candidates.iter().copied().filter(is_near));
            candidates.retain(|other| !is_near(other));
            let few = |vertex: usize| std::cmp::Reverse(count(vertex, &candidates));
            let key = |vertex: &usize| (count(*vertex, &excluded), few(*vertex), rank(*vertex));
            next = candidates.iter().copied().max_by_key(key);
        }
    }
    colors
}

proptest::proptest! {
    #[test]
    fn the_quick_forms_choose_as_the_plain_ones_do(seed in 0_u64..1000, n in 1_usize..50, p in 0.0_f64..1.0) {
        let graph = Family::Random { n, p }.generate(seed).unwrap().graph();
        let priority: Vec<f64> = (0..n).map(|vertex| (vertex as f64 * 2.3).sin()).collect();
        for preference in [Preference::new(&graph, None), Preference::new(&graph, Some(&priority))] {
            let dsatur = Initial::Dsatur.color(&graph, &preference, seed);
            proptest::prop_assert_eq!(dsatur, plain_dsatur(&graph, &preference));
            let rlf = Initial::Rlf.color(&graph, &preference, seed);
            proptest::prop_assert_eq!(rlf, plain_rlf(&graph, &preference));
        }
    }
}

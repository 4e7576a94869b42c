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
                proptest::prop_assert_eq!(verified.map(|it| it.k), Ok(n_colors(&colors)), "{}", initial.name());
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

//! Public benchmark graphs, where a checkout has them beside it: counts, first colourings, certificates.

use std::path::{Path, PathBuf};

use tidemill_coloring::initial::{Initial, Preference, n_colors};
use tidemill_coloring::{Certificate, Instance, read_graph, verify};

/// Unique edges of each graph, as its source states them.
const EDGES: [(&str, usize, usize); 18] = [
    ("DSJC125.1", 125, 736),
    ("DSJC125.5", 125, 3891),
    ("DSJC125.9", 125, 6961),
    ("DSJC250.1", 250, 3218),
    ("DSJC250.5", 250, 15_668),
    ("DSJC250.9", 250, 27_897),
    ("DSJC500.1", 500, 12_458),
    ("DSJC500.5", 500, 62_624),
    ("DSJC500.9", 500, 112_437),
    ("DSJC1000.1", 1000, 49_629),
    ("DSJC1000.5", 1000, 249_826),
    ("flat300_28_0", 300, 21_695),
    ("flat1000_50_0", 1000, 245_000),
    ("flat1000_60_0", 1000, 245_830),
    ("le450_15c", 450, 16_680),
    ("le450_25c", 450, 17_343),
    ("le450_25d", 450, 17_425),
    ("r250.5", 250, 14_849),
];

/// The folder of graphs that some checkouts have next to them.
fn folder() -> Option<PathBuf> {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/graphs"));
    if dir.is_dir() {
        return Some(dir.to_path_buf());
    }
    tidemill_skip::skipped("there are no shared graphs next to this checkout");
    None
}

fn instance(dir: &Path, name: &str) -> Instance {
    read_graph(&dir.join(format!("{name}.col.gz"))).unwrap()
}

#[test]
fn every_graph_has_the_vertices_and_edges_that_its_source_states() {
    let Some(dir) = folder() else { return };
    for (name, n, m) in EDGES {
        let instance = instance(&dir, name);
        assert_eq!((instance.n, instance.edges().len()), (n, m), "{name}");
        assert_eq!((instance.name.as_str(), instance.base), (name, 1));
    }
    let remarks = instance(&dir, "DSJC500.9").remarks;
    assert!(
        remarks.iter().any(|remark| remark.contains("224874") && remark.contains("112437")),
        "{remarks:?}"
    );
}

#[test]
fn dsatur_finds_what_the_literature_says() {
    let Some(dir) = folder() else { return };
    for (name, expected) in [("DSJC125.5", 22), ("DSJC250.5", 37), ("DSJC500.5", 64), ("DSJC1000.5", 115)] {
        let instance = instance(&dir, name);
        let graph = instance.graph();
        let colors = Initial::Dsatur.color(&graph, &Preference::new(&graph, None), 1);
        let k = verify(&instance, &colors).unwrap().k;
        assert!(k.abs_diff(expected) <= 1, "{name}: {k} for {expected}");
    }
}

#[test]
fn every_first_colouring_of_every_graph_passes_the_verifier_and_its_certificate_holds() {
    let Some(dir) = folder() else { return };
    for (name, n, _) in EDGES {
        let instance = instance(&dir, name);
        let graph = instance.graph();
        let preference = Preference::new(&graph, None);
        let mut line = format!("{name:14}");
        for initial in Initial::ALL {
            let colors = initial.color(&graph, &preference, 1);
            let k = n_colors(&colors);
            let text = Certificate::new(&instance, k, colors).text();
            let certificate = Certificate::parse(Path::new("x.sol"), &text).unwrap();
            assert_eq!(certificate.check(&instance).unwrap().k, k, "{name}, {initial:?}");
            assert!(k < n);
            line += &format!("  {initial:?} {k}");
        }
        println!("{line}");
    }
}

//! The best of many: DSATUR and RLF with preferences by chance.

use rayon::prelude::*;

use crate::draw::Draw;
use crate::graph::Graph;
use crate::initial::{Preference, dsatur, n_colors, rlf};

/// How many are tried.
const TRIES: u64 = 16;

/// The one with fewest colours; of several the first. The number of threads changes nothing.
pub(crate) fn color(graph: &Graph, seed: u64) -> Vec<u32> {
    let tried = (0..TRIES).into_par_iter().map(|number| {
        let preference = Preference::random(graph.n(), &mut Draw::new(seed, 0x7261_6e64 + number));
        let colors =
            if number % 2 == 0 { dsatur::color(graph, &preference) } else { rlf::color(graph, &preference) };
        (n_colors(&colors), number, colors)
    });
    tried.min_by_key(|(k, number, _)| (*k, *number)).map_or_else(Vec::new, |(_, _, colors)| colors)
}

//! The judge: whether a colouring is proper, looked up edge by edge in the graph as it was given.
//!
//! Nothing of the search is used here, neither its adjacency nor its counts of conflicts, so that a mistake there cannot hide itself.

use std::collections::BTreeSet;
use std::fmt;

use crate::instance::Instance;

/// Edges that are named of those that join equal colours.
const SHOWN: usize = 3;

/// A colouring that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Number of colours that are used.
    pub k: usize,
}

/// Why a colouring did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// There is not one colour for each vertex.
    Length {
        /// Colours.
        found: usize,
        /// Vertices.
        expected: usize,
    },
    /// Edges join equal colours.
    Conflicts {
        /// How many.
        count: usize,
        /// The first of them: two vertices, numbered as in the file, and their colour.
        first: Vec<(u32, u32, u32)>,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Length { found, expected } => {
                write!(out, "there are {found} colours for {expected} vertices")
            }
            Flaw::Conflicts { count, first } => {
                let edges: Vec<String> =
                    first.iter().map(|(a, b, color)| format!("{a} and {b} both have {color}")).collect();
                let more = if *count > first.len() { ", and more" } else { "" };
                let noun = if *count == 1 { "edge joins" } else { "edges join" };
                write!(out, "{count} {noun} equal colours: {}{more}", edges.join("; "))
            }
        }
    }
}

impl std::error::Error for Flaw {}

/// Looks at every edge of the graph.
pub fn verify(instance: &Instance, colors: &[u32]) -> Result<Verified, Flaw> {
    if colors.len() != instance.n {
        return Err(Flaw::Length { found: colors.len(), expected: instance.n });
    }
    let (mut count, mut first) = (0, Vec::new());
    for &(a, b) in instance.edges() {
        let color = colors[a as usize];
        if color == colors[b as usize] {
            count += 1;
            if first.len() < SHOWN {
                first.push((a + instance.base, b + instance.base, color));
            }
        }
    }
    if count > 0 {
        return Err(Flaw::Conflicts { count, first });
    }
    Ok(Verified { k: colors.iter().collect::<BTreeSet<_>>().len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proper_colouring_passes_and_its_colours_are_counted() {
        let square = Instance::new("square", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(verify(&square, &[7, 2, 7, 2]), Ok(Verified { k: 2 }));
        assert_eq!(verify(&Instance::new("empty", 0, []), &[]), Ok(Verified { k: 0 }));
    }

    #[test]
    fn any_edge_between_equal_colours_is_found_and_named_as_in_the_file() {
        let square = Instance::new("square", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]);
        let flaw = verify(&square, &[0, 1, 0, 0]).unwrap_err();
        assert_eq!(flaw, Flaw::Conflicts { count: 2, first: vec![(1, 4, 0), (3, 4, 0)] });
        assert_eq!(flaw.to_string(), "2 edges join equal colours: 1 and 4 both have 0; 3 and 4 both have 0");
        let flaw = verify(&square, &[0, 1, 0]).unwrap_err();
        assert_eq!(flaw.to_string(), "there are 3 colours for 4 vertices");
    }
}

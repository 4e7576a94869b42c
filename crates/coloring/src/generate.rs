//! Graphs of known families, for tests and for trying things out. The same seed gives the same graph on every machine.

mod planted;
mod regular;

use crate::draw::Draw;
use crate::error::ColoringError;
use crate::instance::Instance;

/// The most vertices of a generated graph, because the generators visit all pairs of them.
const MOST_VERTICES: usize = 65_536;

/// A family of graphs and its measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    /// Every pair of vertices is joined with this probability.
    Random {
        /// Vertices.
        n: usize,
        /// Probability of an edge.
        p: f64,
    },
    /// Classes of equal size hide a colouring; between two classes, every vertex has nearly the same number of edges.
    Flat {
        /// Vertices.
        n: usize,
        /// Classes, and so colours that suffice.
        k: usize,
        /// Share of the edges between classes that are there.
        p: f64,
    },
    /// Points in the unit square, joined if they are nearer than the radius.
    Geometric {
        /// Vertices.
        n: usize,
        /// The radius.
        radius: f64,
    },
    /// Cliques laid over each other, after Leighton: exactly `k` colours are needed.
    Leighton {
        /// Vertices.
        n: usize,
        /// Size of the largest clique, and colours that suffice.
        k: usize,
        /// Edges, at least.
        m: usize,
    },
    /// Fields of a chess board, joined if a queen gets from one to the other.
    Queen {
        /// Fields of a side.
        side: usize,
    },
    /// Cells of a Latin square, joined if they share a row, a column or a symbol.
    Latin {
        /// Cells of a side.
        side: usize,
    },
}

impl Family {
    /// Number of vertices.
    pub fn n(&self) -> usize {
        match *self {
            Family::Random { n, .. }
            | Family::Flat { n, .. }
            | Family::Geometric { n, .. }
            | Family::Leighton { n, .. } => n,
            Family::Queen { side } | Family::Latin { side } => side.saturating_mul(side),
        }
    }

    /// A graph of the family.
    pub fn generate(&self, seed: u64) -> Result<Instance, ColoringError> {
        self.check()?;
        let mut draw = Draw::new(seed, 0x6772_6170);
        let (name, edges) = match *self {
            Family::Random { n, p } => (format!("random{n}_{p}"), random(n, p, &mut draw)),
            Family::Flat { n, k, p } => (format!("flat{n}_{k}"), planted::flat(n, k, p, &mut draw)),
            Family::Geometric { n, radius } => {
                (format!("geometric{n}_{radius}"), geometric(n, radius, &mut draw))
            }
            Family::Leighton { n, k, m } => {
                (format!("leighton{n}_{k}"), planted::leighton(n, k, m, &mut draw))
            }
            Family::Queen { side } => (format!("queen{side}_{side}"), regular::queen(side)),
            Family::Latin { side } => (format!("latin{side}"), regular::latin(side)),
        };
        Ok(Instance::new(name, self.n(), edges))
    }

    fn check(&self) -> Result<(), ColoringError> {
        let problem = |name, value: String, expected: &str| {
            Err(ColoringError::Option { name, value, expected: expected.to_owned() })
        };
        let n = self.n();
        if n == 0 || n > MOST_VERTICES {
            return problem("vertices", n.to_string(), &format!("1 to {MOST_VERTICES}"));
        }
        match *self {
            Family::Random { p, .. } | Family::Flat { p, .. } if !(0.0..=1.0).contains(&p) => {
                problem("p", p.to_string(), "a share from 0 to 1")
            }
            Family::Geometric { radius, .. } if !(radius >= 0.0 && radius.is_finite()) => {
                problem("radius", radius.to_string(), "a number that is not negative")
            }
            Family::Flat { k, .. } | Family::Leighton { k, .. } if k == 0 || k > n => {
                problem("k", k.to_string(), "1 to the number of vertices")
            }
            Family::Leighton { n, k, m } if m > planted::most_edges(n, k) => problem(
                "edges",
                m.to_string(),
                &format!("at most {}, half of what {k} colours allow", planted::most_edges(n, k)),
            ),
            _ => Ok(()),
        }
    }
}

fn random(n: usize, p: f64, draw: &mut Draw) -> Vec<(u32, u32)> {
    let mut edges = Vec::new();
    for b in 1..n as u32 {
        edges.extend((0..b).filter(|_| draw.unit() < p).map(|a| (a, b)));
    }
    edges
}

fn geometric(n: usize, radius: f64, draw: &mut Draw) -> Vec<(u32, u32)> {
    let points: Vec<(f64, f64)> = (0..n).map(|_| (draw.unit(), draw.unit())).collect();
    let mut edges = Vec::new();
    for b in 0..n {
        for a in 0..b {
            let (x, y) = (points[a].0 - points[b].0, points[a].1 - points[b].1);
            if x * x + y * y < radius * radius {
                edges.push((a as u32, b as u32));
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::verify;

    #[test]
    fn a_seed_is_a_graph() {
        let family = Family::Random { n: 60, p: 0.3 };
        assert_eq!(family.generate(1).unwrap().dimacs(), family.generate(1).unwrap().dimacs());
        assert_ne!(family.generate(1).unwrap().edges(), family.generate(2).unwrap().edges());
    }

    #[test]
    fn random_graphs_have_the_density_asked_for() {
        let m = Family::Random { n: 200, p: 0.3 }.generate(5).unwrap().edges().len() as f64;
        assert!((m / 19_900.0 - 0.3).abs() < 0.02, "{m}");
        assert_eq!(Family::Random { n: 9, p: 1.0 }.generate(5).unwrap().edges().len(), 36);
    }

    #[test]
    fn geometric_graphs_are_local() {
        let m = Family::Geometric { n: 300, radius: 0.1 }.generate(5).unwrap().edges().len() as f64;
        let expected = 44_850.0 * std::f64::consts::PI * 0.01;
        assert!((0.7..1.1).contains(&(m / expected)), "{m} of {expected}");
    }

    #[test]
    fn queens_and_latin_squares_have_their_sizes() {
        // Figures of the public benchmark files queen5_5 and queen8_8.
        assert_eq!(Family::Queen { side: 5 }.generate(0).unwrap().edges().len(), 160);
        assert_eq!(Family::Queen { side: 8 }.generate(0).unwrap().edges().len(), 728);
        let latin = Family::Latin { side: 5 }.generate(0).unwrap();
        assert_eq!(latin.edges().len(), 25 * 12 / 2);
        // Row plus twice the column is an orthogonal mate of the cyclic square of odd side.
        let colors: Vec<u32> = (0..25).map(|cell| (cell / 5 + 2 * (cell % 5)) % 5).collect();
        assert_eq!(verify(&latin, &colors).unwrap().k, 5);
    }

    #[test]
    fn measures_that_make_no_sense_are_refused() {
        let refused = |family: Family| family.generate(0).unwrap_err().to_string();
        assert_eq!(refused(Family::Random { n: 0, p: 0.5 }), "vertices = 0: expected 1 to 65536");
        assert_eq!(refused(Family::Random { n: 5, p: f64::NAN }), "p = NaN: expected a share from 0 to 1");
        assert_eq!(
            refused(Family::Flat { n: 5, k: 6, p: 0.5 }),
            "k = 6: expected 1 to the number of vertices"
        );
        assert!(refused(Family::Queen { side: usize::MAX }).starts_with("vertices"));
        assert!(refused(Family::Leighton { n: 10, k: 3, m: 40 }).starts_with("edges = 40: expected at most"));
    }
}

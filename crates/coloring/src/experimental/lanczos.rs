//! The Fiedler vector of a graph, by the Lanczos method.
//!
//! The Laplacian's least eigenvalue is 0, with the constant vector; the Fiedler vector belongs to the next one. The method looks for the
//! largest eigenvalue of `c − L` among vectors whose sum is 0. Every new vector is made orthogonal to all before it, twice, and the
//! search begins again from the best vector until the residual is small.

use crate::draw::Draw;
use crate::graph::Graph;

/// Vectors that are kept before the search begins again.
const BASIS: usize = 60;

/// How often it begins again.
const RESTARTS: usize = 60;

/// Residual, as a share of the largest eigenvalue's bound, at which the vector is good.
const GOOD: f64 = 1e-8;

/// The second smallest eigenvalue of the Laplacian, and its vector of length 1. A graph of less than two vertices has zeros.
pub(super) fn fiedler(graph: &Graph, seed: u64) -> (f64, Vec<f64>) {
    let n = graph.n();
    if n < 2 {
        return (0.0, vec![0.0; n]);
    }
    let degree = |vertex: usize| graph.neighbours(vertex).len() as f64;
    let bound = (0..n).map(degree).fold(1.0, f64::max) * 2.0;
    // c − L, with c so large that the wanted eigenvalue is the largest in size.
    let apply = |x: &[f64]| -> Vec<f64> {
        let row = |vertex: usize| {
            let sum: f64 = graph.neighbours(vertex).iter().map(|other| x[*other as usize]).sum();
            (bound - degree(vertex)) * x[vertex] + sum
        };
        (0..n).map(row).collect()
    };
    let mut draw = Draw::new(seed, 0x6c61_6e63);
    let mut start: Vec<f64> = (0..n).map(|_| draw.unit() - 0.5).collect();
    let mut value = 0.0;
    for _ in 0..RESTARTS {
        center(&mut start);
        if normalize(&mut start) == 0.0 {
            start = (0..n).map(|_| draw.unit() - 0.5).collect();
            continue;
        }
        (value, start) = best_of_basis(&apply, start);
        let image = apply(&start);
        let residual: f64 = image.iter().zip(&start).map(|(y, x)| (y - value * x).powi(2)).sum();
        if residual.sqrt() <= GOOD * bound {
            break;
        }
    }
    center(&mut start);
    normalize(&mut start);
    // The sign of an eigenvector is open; the first part that is not 0 is positive.
    if start.iter().find(|x| x.abs() > 1e-9).is_some_and(|x| *x < 0.0) {
        start.iter_mut().for_each(|x| *x = -*x);
    }
    ((bound - value).max(0.0), start)
}

/// The largest eigenvalue over the Krylov space of a vector, and its vector.
fn best_of_basis(apply: &impl Fn(&[f64]) -> Vec<f64>, start: Vec<f64>) -> (f64, Vec<f64>) {
    let n = start.len();
    let mut basis = vec![start];
    let (mut diagonal, mut off) = (Vec::new(), Vec::new());
    while basis.len() <= BASIS.min(n - 1) {
        let last = &basis[basis.len() - 1];
        let mut next = apply(last);
        diagonal.push(dot(&next, last));
        for _ in 0..2 {
            center(&mut next);
            for vector in &basis {
                let share = dot(&next, vector);
                next.iter_mut().zip(vector).for_each(|(x, y)| *x -= share * y);
            }
        }
        let size = normalize(&mut next);
        if size < 1e-10 || diagonal.len() == BASIS.min(n - 1) {
            break;
        }
        off.push(size);
        basis.push(next);
    }
    let (value, weights) = largest(&diagonal, &off[..diagonal.len() - 1]);
    let mut vector = vec![0.0; n];
    for (weight, of) in weights.iter().zip(&basis) {
        vector.iter_mut().zip(of).for_each(|(x, y)| *x += weight * y);
    }
    normalize(&mut vector);
    (value, vector)
}

/// The largest eigenvalue of a symmetric tridiagonal matrix, by counting signs, and its vector, by inverse iteration.
fn largest(diagonal: &[f64], off: &[f64]) -> (f64, Vec<f64>) {
    let n = diagonal.len();
    let reach = |at: usize| {
        let left = if at > 0 { off[at - 1].abs() } else { 0.0 };
        left + off.get(at).map_or(0.0, |right| right.abs())
    };
    let mut high = (0..n).map(|at| diagonal[at] + reach(at)).fold(f64::NEG_INFINITY, f64::max);
    let mut low = (0..n).map(|at| diagonal[at] - reach(at)).fold(f64::INFINITY, f64::min);
    // Whether an eigenvalue is above `x`: the pivots of `T − x` are not all negative.
    let is_above = |x: f64| {
        let mut pivot = diagonal[0] - x;
        for at in 1..n {
            if pivot >= 0.0 {
                return true;
            }
            pivot = diagonal[at] - x - off[at - 1] * off[at - 1] / pivot;
        }
        pivot >= 0.0
    };
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if is_above(middle) { low = middle } else { high = middle }
    }
    let value = low + (high - low) / 2.0;
    // A hair above the eigenvalue all pivots are negative, so that no exchange of rows is needed.
    let shift = high + (high.abs() + 1.0) * 1e-13;
    let mut vector: Vec<f64> = (0..n).map(|at| 1.0 + at as f64 / n as f64).collect();
    for _ in 0..4 {
        solve(diagonal, off, shift, &mut vector);
        normalize(&mut vector);
    }
    (value, vector)
}

/// Solves `(T − shift) x = b` in place.
fn solve(diagonal: &[f64], off: &[f64], shift: f64, vector: &mut [f64]) {
    let n = diagonal.len();
    let away = |pivot: f64| if pivot.abs() < 1e-300 { -1e-300 } else { pivot };
    let mut pivots = vec![away(diagonal[0] - shift); n];
    for at in 1..n {
        let factor = off[at - 1] / pivots[at - 1];
        pivots[at] = away(diagonal[at] - shift - factor * off[at - 1]);
        vector[at] -= factor * vector[at - 1];
    }
    vector[n - 1] /= pivots[n - 1];
    for at in (0..n - 1).rev() {
        vector[at] = (vector[at] - off[at] * vector[at + 1]) / pivots[at];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Takes the mean away, so that nothing of the constant vector is left.
fn center(vector: &mut [f64]) {
    let mean = vector.iter().sum::<f64>() / vector.len() as f64;
    vector.iter_mut().for_each(|x| *x -= mean);
}

/// Makes it a vector of length 1 and says what it was.
fn normalize(vector: &mut [f64]) -> f64 {
    let size = dot(vector, vector).sqrt();
    if size > 0.0 {
        vector.iter_mut().for_each(|x| *x /= size);
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Family;

    #[test]
    fn the_fiedler_vector_of_a_path_is_a_cosine() {
        let n = 50;
        let graph = Graph::new(n, (1..n as u32).map(|at| (at - 1, at)));
        let (value, vector) = fiedler(&graph, 3);
        let expected = 2.0 - 2.0 * (std::f64::consts::PI / n as f64).cos();
        assert!((value - expected).abs() < 1e-9, "{value} for {expected}");
        let wave = |at: usize| (std::f64::consts::PI * (at as f64 + 0.5) / n as f64).cos();
        let scale = vector[0] / wave(0);
        assert!((0..n).all(|at| (vector[at] - scale * wave(at)).abs() < 1e-4));
    }

    #[test]
    fn the_residual_is_small_and_the_vector_is_not_constant() {
        for (seed, p) in [(1, 0.1), (2, 0.5), (3, 0.9)] {
            let graph = Family::Random { n: 150, p }.generate(seed).unwrap().graph();
            let (value, vector) = fiedler(&graph, seed);
            let row = |v: usize| {
                let around: f64 = graph.neighbours(v).iter().map(|other| vector[*other as usize]).sum();
                graph.neighbours(v).len() as f64 * vector[v] - around - value * vector[v]
            };
            let residual: f64 = (0..150).map(|v| row(v).powi(2)).sum::<f64>().sqrt();
            assert!(residual < 1e-5, "p {p}: {residual}");
            assert!(value > 0.0 && vector.iter().sum::<f64>().abs() < 1e-9);
            assert!((dot(&vector, &vector) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn parts_that_are_not_joined_have_values_of_their_own() {
        let graph = Graph::new(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]);
        let (value, vector) = fiedler(&graph, 1);
        assert!(value < 1e-9);
        assert!((vector[0] - vector[2]).abs() < 1e-6 && (vector[0] - vector[3]).abs() > 0.5, "{vector:?}");
    }

    #[test]
    fn complete_and_tiny_graphs_have_an_answer() {
        let graph = Family::Random { n: 7, p: 1.0 }.generate(0).unwrap().graph();
        assert!((fiedler(&graph, 1).0 - 7.0).abs() < 1e-9);
        assert_eq!(fiedler(&Graph::new(1, []), 1), (0.0, vec![0.0]));
        assert!(fiedler(&Graph::new(2, [(0, 1)]), 1).0 - 2.0 < 1e-9);
    }
}

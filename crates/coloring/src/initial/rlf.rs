//! Recursive largest first, after Leighton: one class after the other, as full as can be.

use super::Preference;
use crate::graph::Graph;

const NONE: u32 = u32::MAX;

/// Where a vertex stands while a class is filled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It may still join.
    Candidate,
    /// A neighbour is in the class.
    Excluded,
    /// It has a colour.
    Colored,
}

/// A class begins with the vertex that has most uncoloured neighbours; then always the candidate joins that has most neighbours among
/// the excluded, and of those the one with fewest among the candidates.
pub(super) fn color(graph: &Graph, preference: &Preference) -> Vec<u32> {
    let n = graph.n();
    let mut colors = vec![NONE; n];
    let mut place = vec![Place::Candidate; n];
    let mut n_left = n;
    let mut color = 0;
    while n_left > 0 {
        let mut candidates: Vec<u32> = Vec::new();
        for (vertex, place) in place.iter_mut().enumerate().filter(|(_, place)| **place != Place::Colored) {
            *place = Place::Candidate;
            candidates.push(vertex as u32);
        }
        let mut among_candidates = vec![0_u32; n];
        let mut among_excluded = vec![0_u32; n];
        for vertex in &candidates {
            let free = |other: &&u32| place[**other as usize] == Place::Candidate;
            among_candidates[*vertex as usize] =
                graph.neighbours(*vertex as usize).iter().filter(free).count() as u32;
        }
        let rank = |vertex: u32| preference.rank[vertex as usize];
        let mut next = candidates.iter().copied().max_by_key(|v| (among_candidates[*v as usize], rank(*v)));
        while let Some(vertex) = next {
            colors[vertex as usize] = color;
            place[vertex as usize] = Place::Colored;
            n_left -= 1;
            for neighbour in graph.neighbours(vertex as usize) {
                if place[*neighbour as usize] == Place::Candidate {
                    place[*neighbour as usize] = Place::Excluded;
                    for other in graph.neighbours(*neighbour as usize) {
                        among_excluded[*other as usize] += 1;
                        among_candidates[*other as usize] =
                            among_candidates[*other as usize].saturating_sub(1);
                    }
                }
            }
            candidates.retain(|other| place[*other as usize] == Place::Candidate);
            let key = |v: &u32| (among_excluded[*v as usize], NONE - among_candidates[*v as usize], rank(*v));
            next = candidates.iter().copied().max_by_key(key);
        }
        color += 1;
    }
    colors
}

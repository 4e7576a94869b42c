//! Greedy partition crossover: a child takes the largest class of one parent, then the largest of what is left of the other, and so on in turn.

use crate::random::Random;

/// The child of two colourings with `k` colours, beginning with a class of `first`. Vertices that no class was taken of get random colours, and of
/// equally large classes that of the lowest colour is taken.
///
/// # Panics
/// If a colour is not below `k`, or the parents have different lengths.
pub fn crossover(first: &[u32], second: &[u32], k: usize, random: &Random) -> Vec<u32> {
    assert_eq!(first.len(), second.len(), "parents color the same graph");
    let parents = [first, second];
    let mut sizes = parents.map(|parent| sizes(parent, k));
    let classes = parents.map(|parent| members(parent, k));
    let mut child = vec![u32::MAX; first.len()];
    for color in 0..k {
        let (giver, other) = (color % 2, (color + 1) % 2);
        let largest = (0..k).rev().max_by_key(|&class| sizes[giver][class]).unwrap_or(0);
        for &vertex in &classes[giver][largest] {
            if child[vertex as usize] == u32::MAX {
                child[vertex as usize] = color as u32;
                sizes[other][parents[other][vertex as usize] as usize] -= 1;
            }
        }
        sizes[giver][largest] = 0;
    }
    for (vertex, color) in child.iter_mut().enumerate().filter(|(_, color)| **color == u32::MAX) {
        *color = random.below(vertex as u64, k as u32);
    }
    child
}

fn sizes(colors: &[u32], k: usize) -> Vec<u32> {
    let mut sizes = vec![0; k];
    colors.iter().for_each(|color| sizes[*color as usize] += 1);
    sizes
}

fn members(colors: &[u32], k: usize) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); k];
    for (vertex, color) in colors.iter().enumerate() {
        members[*color as usize].push(vertex as u32);
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_give_their_largest_classes_in_turn() {
        let first = [0, 0, 0, 1, 1, 2, 2, 2, 2, 1];
        let second = [0, 1, 1, 1, 1, 1, 2, 2, 0, 0];
        // {5, 6, 7, 8} of the first; of the second {1, 2, 3, 4} is left of class 1; of the first {0} and {9}, equally large.
        let child = crossover(&first, &second, 3, &Random::new(1, 0));
        assert_eq!(child[..9], [2, 1, 1, 1, 1, 0, 0, 0, 0]);
        assert!(child[9] < 3);
    }

    #[test]
    fn the_child_of_twins_is_their_partition() {
        let parent: Vec<u32> = (0..60).map(|vertex| vertex * 7 % 5).collect();
        let renamed: Vec<u32> = parent.iter().map(|color| (color + 2) % 5).collect();
        let child = crossover(&parent, &renamed, 5, &Random::new(1, 0));
        assert_eq!(super::super::distance(&parent, &child, 5), 0);
    }
}

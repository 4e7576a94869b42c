//! How far two colourings are apart as partitions, whatever the names of their colours.

/// Vertices that have to change their class for one partition to become the other, at least. Classes are matched greedily, the largest overlap
/// first, so that the number may be too large where overlaps are small; it is 0 exactly for equal partitions.
///
/// # Panics
/// If a colour is not below `k`.
pub fn distance(first: &[u32], second: &[u32], k: usize) -> u32 {
    let mut overlaps = vec![0_u32; k * k];
    for (a, b) in first.iter().zip(second) {
        overlaps[*a as usize * k + *b as usize] += 1;
    }
    let mut moved = first.len() as u32;
    for _ in 0..k {
        // Of equal overlaps the first counts, so that a kernel finds the same.
        let Some((place, &largest)) = overlaps.iter().enumerate().rev().max_by_key(|(_, overlap)| **overlap)
        else {
            break;
        };
        if largest == 0 {
            break;
        }
        moved -= largest;
        let (row, column) = (place / k, place % k);
        overlaps[row * k..][..k].fill(0);
        overlaps.iter_mut().skip(column).step_by(k).for_each(|overlap| *overlap = 0);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_colours_do_not_matter() {
        assert_eq!(distance(&[0, 0, 1, 1, 2], &[2, 2, 0, 0, 1], 3), 0);
        assert_eq!(distance(&[0, 0, 1, 1, 2], &[2, 2, 0, 1, 1], 3), 1);
        assert_eq!(distance(&[0, 0, 0, 0], &[0, 1, 2, 3], 4), 3);
        assert_eq!(distance(&[], &[], 0), 0);
    }
}

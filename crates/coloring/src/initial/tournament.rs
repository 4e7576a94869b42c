//! Who has the largest key, while keys change one by one.

/// A tree of matches: each node knows the best of the two below it, so that a change costs a way to the top at most.
pub(super) struct Tournament<K> {
    keys: Vec<Option<K>>,
    winners: Vec<u32>,
    size: usize,
}

impl<K: Copy + Ord> Tournament<K> {
    /// Everybody's key; who has none takes no part.
    pub(super) fn new(mut keys: Vec<Option<K>>) -> Self {
        let size = keys.len().next_power_of_two();
        keys.resize(size, None);
        let mut winners = vec![0; 2 * size];
        for at in 0..size {
            winners[size + at] = at as u32;
        }
        let mut tournament = Self { keys, winners, size };
        for node in (1..size).rev() {
            tournament.winners[node] = tournament.winner(node);
        }
        tournament
    }

    /// Who has the largest key, if anybody has one.
    pub(super) fn best(&self) -> Option<usize> {
        let best = self.winners[1] as usize;
        self.keys[best].map(|_| best)
    }

    /// Changes a key, or takes it away.
    pub(super) fn set(&mut self, at: usize, key: Option<K>) {
        self.keys[at] = key;
        let mut node = (self.size + at) / 2;
        while node > 0 {
            let winner = self.winner(node);
            if winner == self.winners[node] && winner != at as u32 {
                return;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }

    fn winner(&self, node: usize) -> u32 {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        if self.keys[left as usize] >= self.keys[right as usize] { left } else { right }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;

    #[test]
    fn the_best_is_the_largest_whatever_changes() {
        let mut draw = Draw::new(3, 0);
        for n in [0, 1, 2, 7, 33] {
            let mut keys: Vec<Option<usize>> = (0..n).map(|at| Some(at * 31 % 17)).collect();
            let mut tournament = Tournament::new(keys.clone());
            for _ in 0..200 {
                let largest = keys.iter().copied().max().flatten();
                assert_eq!(tournament.best().map(|at| keys[at]), largest.map(Some));
                if n > 0 {
                    let (at, key) = (draw.below(n), draw.below(20));
                    keys[at] = (key > 4).then_some(key);
                    tournament.set(at, keys[at]);
                }
            }
        }
    }
}

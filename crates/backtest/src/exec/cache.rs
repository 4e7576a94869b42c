//! An LRU cache of columns and masks by identity.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column::Item;
use super::spare::Spare;

/// What a formula is written out as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Numbers, or sums of them.
    Column,
    /// Bits with an index.
    Mask,
    /// Bits.
    Bits,
}

/// Identity of a column: symbol, shape and the bits of the scalars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The symbol.
    pub symbol: u32,
    /// The formula.
    pub shape: u32,
    /// What it is written out as.
    pub kind: Kind,
    /// The scalars that fill it.
    pub scalars: Box<[u64]>,
}

struct Entry {
    item: Arc<Item>,
    /// Memory that it took when it was last counted: sums grow when they are asked for more than tests.
    bytes: usize,
    used: u64,
}

impl Entry {
    /// Counts its memory again, and returns by how much it has grown.
    fn recount(&mut self) -> usize {
        let grown = self.item.bytes().saturating_sub(self.bytes);
        self.bytes += grown;
        grown
    }
}

/// Shared results under a memory budget.
pub struct Cache {
    entries: FxHashMap<Key, Entry>,
    bytes: usize,
    budget: usize,
    tick: u64,
}

impl Cache {
    /// An empty cache that keeps at most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self { entries: FxHashMap::default(), bytes: 0, budget, tick: 0 }
    }

    /// Memory that it may use.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// An item, marked as used now.
    pub fn get(&mut self, key: &Key) -> Option<Arc<Item>> {
        self.tick += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.tick;
        self.bytes += entry.recount();
        Some(entry.item.clone())
    }

    /// Whether an item is there; does not count as use.
    pub fn contains(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    /// Keeps an item; makes room by dropping a quarter of the budget, oldest first.
    pub fn insert(&mut self, key: Key, item: Arc<Item>, spare: &Spare) {
        self.tick += 1;
        let bytes = item.bytes();
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(key, Entry { item, bytes, used: self.tick }) {
            self.bytes -= old.bytes;
        }
        if self.bytes > self.budget {
            self.shrink(self.budget / 4 * 3, spare);
        }
    }

    /// Whether so many bytes more leave a quarter of the budget to others.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= self.budget / 4 * 3
    }

    /// Makes room for so many bytes, so that their memory can be that of what is dropped, and for an eighth of the budget: looking for the
    /// oldest items takes too long to do it for each new one.
    pub fn make_room(&mut self, bytes: usize, spare: &Spare) {
        if self.bytes.saturating_add(bytes) > self.budget {
            self.shrink(self.budget.saturating_sub(bytes).saturating_sub(self.budget / 8), spare);
        }
    }

    /// Drops the items used longest ago until at most so many bytes are left.
    fn shrink(&mut self, left: usize, spare: &Spare) {
        self.bytes += self.entries.values_mut().map(Entry::recount).sum::<usize>();
        let mut ages: Vec<(u64, usize)> =
            self.entries.values().map(|entry| (entry.used, entry.bytes)).collect();
        ages.sort_unstable();
        let mut youngest = None;
        for (used, bytes) in ages {
            if self.bytes <= left {
                break;
            }
            self.bytes -= bytes;
            youngest = Some(used);
        }
        let Some(youngest) = youngest else { return };
        for (_, entry) in self.entries.extract_if(|_, entry| entry.used <= youngest) {
            Arc::into_inner(entry.item).into_iter().for_each(|item| spare.keep(item));
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::indicator::{Moments, Prefix};

    use super::*;

    fn key(shape: u32) -> Key {
        Key { symbol: 0, shape, kind: Kind::Column, scalars: Box::new([]) }
    }

    #[test]
    fn makes_room_for_more_than_the_next_item() {
        let mut cache = Cache::new(80_000);
        for shape in 0..100 {
            cache.insert(key(shape), Arc::new(Item::Column(vec![0.0; 100])), &Spare::new(0));
        }
        cache.make_room(800, &Spare::new(0));
        // Twelve more items of that size come without another look for the oldest.
        assert!(cache.bytes() <= 80_000 - 800 - 10_000, "{}", cache.bytes());
        assert!(!cache.contains(&key(0)) && cache.contains(&key(99)));
    }

    #[test]
    fn stays_under_its_budget_and_keeps_what_was_used_last() {
        let mut cache = Cache::new(4_000);
        for shape in 0..20 {
            cache.insert(key(shape), Arc::new(Item::Column(vec![0.0; 100])), &Spare::new(0));
            cache.get(&key(0));
            assert!(cache.bytes() <= 4_000);
        }
        assert!(cache.contains(&key(0)) && cache.contains(&key(19)) && !cache.contains(&key(3)));
        cache.make_room(3_900, &Spare::new(0));
        assert_eq!(cache.bytes(), 0);
        assert!(cache.has_room(3_000) && !cache.has_room(3_001));
    }

    #[test]
    fn what_grows_is_counted_again() {
        let (mut cache, spare) = (Cache::new(20_000), Spare::new(0));
        let sums: Vec<Prefix> =
            (0..3).map(|_| Prefix::new(&[1.0, 2.0, 4.0].repeat(50), Moments::SumSquares)).collect();
        let tested = sums[0].bytes();
        let items: Vec<Arc<Item>> =
            sums.into_iter().map(|sums| Arc::new(Item::Prefix(Box::new(sums)))).collect();
        items.iter().zip(0..).for_each(|(item, shape)| cache.insert(key(shape), item.clone(), &spare));
        assert_eq!(cache.bytes(), 3 * tested);
        for item in &items {
            let Item::Prefix(sums) = &**item else { panic!("these are sums") };
            assert!(sums.mean_at(100, 10) > 0.0);
        }
        let asked = items[0].bytes();
        assert!(asked > 2 * tested);
        cache.get(&key(1));
        assert_eq!(cache.bytes(), 2 * tested + asked);
        // Two of them have to go, by what they take now.
        cache.make_room(20_000 - asked - tested, &spare);
        assert_eq!(cache.bytes(), asked);
        assert!(cache.contains(&key(1)));
    }
}

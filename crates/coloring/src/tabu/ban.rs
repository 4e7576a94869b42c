//! When bans end: a vertex may not take a colour again that it left a little while ago.
//!
//! A calendar with one entry for each of the last [`DAYS`] iterations, because an iteration makes one ban at most. Kernels keep the same.

use super::chance::MAX_TENURE;

/// Iterations that the calendar looks ahead.
pub(super) const DAYS: usize = MAX_TENURE as usize + 1;

const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    vertex: u32,
    color: u32,
    /// The next entry that ends on the same day.
    next: u16,
    /// Where it stands among the bans in force.
    place: u16,
}

const FREE: Entry = Entry { vertex: 0, color: 0, next: NONE, place: NONE };

/// The bans of a search.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    entries: Vec<Entry>,
    days: Vec<u16>,
    in_force: Vec<u16>,
}

impl Calendar {
    pub(super) fn new() -> Self {
        Self { entries: vec![FREE; DAYS], days: vec![NONE; DAYS], in_force: Vec::with_capacity(DAYS) }
    }

    /// The bans in force: vertices and colours.
    #[inline(always)]
    pub(super) fn in_force(&self) -> impl Iterator<Item = (u32, u32)> {
        self.in_force.iter().map(|&at| (self.entries[at as usize].vertex, self.entries[at as usize].color))
    }

    /// Tells the bans that end with this iteration, and forgets them.
    #[inline(always)]
    pub(super) fn begin(&mut self, iteration: u64, mut end: impl FnMut(u32, u32)) {
        let mut at = std::mem::replace(&mut self.days[iteration as usize % DAYS], NONE);
        while at != NONE {
            let Entry { vertex, color, next, place } = self.entries[at as usize];
            if place != NONE {
                end(vertex, color);
                self.remove(at);
            }
            at = next;
        }
    }

    /// Writes down a ban for the `tenure` iterations after this one. There is none yet for this vertex and colour.
    #[inline(always)]
    pub(super) fn add(&mut self, iteration: u64, tenure: u64, vertex: u32, color: u32) {
        let at = iteration as usize % DAYS;
        let day = (iteration + tenure + 1) as usize % DAYS;
        let place = self.in_force.len() as u16;
        self.entries[at] = Entry { vertex, color, next: self.days[day], place };
        self.days[day] = at as u16;
        self.in_force.push(at as u16);
    }

    /// Lifts a ban before its end.
    #[cold]
    pub(super) fn lift(&mut self, vertex: u32, color: u32) {
        let found = self.in_force.iter().copied().find(|&at| {
            let entry = &self.entries[at as usize];
            (entry.vertex, entry.color) == (vertex, color)
        });
        if let Some(at) = found {
            self.remove(at);
        }
    }

    #[inline(always)]
    fn remove(&mut self, at: u16) {
        let place = std::mem::replace(&mut self.entries[at as usize].place, NONE) as usize;
        self.in_force.swap_remove(place);
        if let Some(&moved) = self.in_force.get(place) {
            self.entries[moved as usize].place = place as u16;
        }
    }
}

/// When bans end, where an iteration may make many: the last iteration of each ban, and a list of bans for each iteration to come.
#[derive(Clone, Debug)]
pub(super) struct Expiry {
    k: usize,
    /// By vertex and colour: the iteration in which the ban ends.
    ends: Vec<u64>,
    days: Vec<Vec<(u32, u32)>>,
}

impl Expiry {
    pub(super) fn new(n: usize, k: usize) -> Self {
        Self { k, ends: vec![0; n * k], days: vec![Vec::new(); DAYS] }
    }

    /// Tells the bans that end with this iteration.
    #[inline(always)]
    pub(super) fn begin(&mut self, iteration: u64, mut end: impl FnMut(u32, u32)) {
        for (vertex, color) in self.days[iteration as usize % DAYS].drain(..) {
            if self.ends[vertex as usize * self.k + color as usize] == iteration {
                end(vertex, color);
            }
        }
    }

    /// Writes down a ban for the `tenure` iterations after this one, in place of one that is in force.
    #[inline(always)]
    pub(super) fn add(&mut self, iteration: u64, tenure: u64, vertex: u32, color: u32) {
        let end = iteration + tenure + 1;
        self.ends[vertex as usize * self.k + color as usize] = end;
        self.days[end as usize % DAYS].push((vertex, color));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(calendar: &mut Calendar, iteration: u64) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        calendar.begin(iteration, |vertex, color| all.push((vertex, color)));
        all
    }

    #[test]
    fn a_ban_lasts_as_long_as_it_says() {
        let mut calendar = Calendar::new();
        for (iteration, tenure) in [(7, 1), (1_000, 3), (5_000, MAX_TENURE)] {
            ended(&mut calendar, iteration);
            calendar.add(iteration, tenure, 1, 69);
            for later in iteration + 1..=iteration + tenure {
                assert_eq!(ended(&mut calendar, later), []);
                assert_eq!(calendar.in_force().collect::<Vec<_>>(), [(1, 69)]);
            }
            assert_eq!(ended(&mut calendar, iteration + tenure + 1), [(1, 69)]);
            assert_eq!(calendar.in_force().count(), 0);
        }
    }

    #[test]
    fn a_lifted_ban_does_not_end_a_later_one() {
        let mut calendar = Calendar::new();
        calendar.add(1, 5, 0, 2);
        calendar.add(2, 4, 0, 3);
        calendar.lift(0, 2);
        calendar.add(3, 10, 0, 2);
        for iteration in 4..=14 {
            let expected = if iteration == 7 {
                vec![(0, 3)]
            } else if iteration == 14 {
                vec![(0, 2)]
            } else {
                vec![]
            };
            assert_eq!(ended(&mut calendar, iteration), expected, "{iteration}");
        }
    }
}

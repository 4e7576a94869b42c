//! The vertices of each colour, as lists that are walked through often and changed a little.

/// The vertices of each colour.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    members: Vec<Vec<u32>>,
    place: Vec<u32>,
}

impl Classes {
    pub(super) fn new(n: usize, k: usize) -> Self {
        Self { members: vec![Vec::new(); k], place: vec![u32::MAX; n] }
    }

    #[inline(always)]
    pub(super) fn of(&self, color: u32) -> &[u32] {
        &self.members[color as usize]
    }

    #[inline]
    pub(super) fn enter(&mut self, vertex: u32, color: u32) {
        let members = &mut self.members[color as usize];
        self.place[vertex as usize] = members.len() as u32;
        members.push(vertex);
    }

    #[inline]
    pub(super) fn leave(&mut self, vertex: u32, color: u32) {
        let members = &mut self.members[color as usize];
        let place = self.place[vertex as usize] as usize;
        members.swap_remove(place);
        if let Some(&moved) = members.get(place) {
            self.place[moved as usize] = place as u32;
        }
    }
}

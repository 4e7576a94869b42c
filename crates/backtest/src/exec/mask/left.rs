//! The bars that the factors of a condition leave of a block: as bits, or as a list where they are few.

use super::{BLOCK, Block, Factor};
use crate::exec::frame::{Frame, Scratch, WORD};

/// The bars of a block that are left.
pub(super) struct Left {
    pub(super) n: usize,
    /// Whether they are those of the list of places: then the bits of the block are out of date.
    are_listed: bool,
}

impl Left {
    /// Those of the bits.
    pub(super) fn new(block: &Block) -> Self {
        Self { n: block.n_left(), are_listed: false }
    }

    /// Keeps the bars where a factor may be true, and notes whether it is open where it is.
    pub(super) fn keep(
        &mut self,
        factor: &mut Factor<'_>,
        block: &mut Block,
        frame: &Frame<'_>,
        scratch: &mut Scratch,
    ) {
        match &factor.quick {
            Some(quick) => {
                let first = block.first * WORD;
                if factor.are_few(self.n, block) {
                    let (n_left, are_sure) = quick.keep(first, self.list(block, scratch));
                    (self.n, factor.is_open) = (n_left, !are_sure);
                } else {
                    self.unlist(block, scratch);
                    factor.is_open = !quick.thin(first, &mut block.bits[..block.len]);
                    self.n = block.n_left();
                }
            }
            None => {
                self.unlist(block, scratch);
                factor.keep(block, self.n, frame, scratch);
                self.n = block.n_left();
            }
        }
    }

    /// Keeps the bars where a factor is true, of those where it may be.
    pub(super) fn settle(&mut self, factor: &Factor<'_>, block: &mut Block, scratch: &mut Scratch) {
        self.unlist(block, scratch);
        block.retain(|bar| factor.at(bar, &mut scratch.points));
        self.n = block.n_left();
    }

    /// Their places.
    fn list<'a>(&mut self, block: &Block, scratch: &'a mut Scratch) -> &'a mut [u16] {
        if !self.are_listed {
            scratch.places.list(&block.bits);
            self.are_listed = true;
        }
        &mut scratch.places.0[..self.n]
    }

    /// Brings the bits of the block up to date.
    pub(super) fn unlist(&mut self, block: &mut Block, scratch: &Scratch) {
        if std::mem::take(&mut self.are_listed) {
            block.bits = [0; BLOCK];
            for place in &scratch.places.0[..self.n] {
                block.bits[usize::from(*place) / WORD] |= 1 << (place % WORD as u16);
            }
        }
    }
}

//! Finds the signals of a group of trials block by block, all of them one block after the other: what they read of the data, and of columns
//! that they share, is still in the cache then, and averages that only one trial reads need no memory beyond the block.

use std::ops::Range;

use super::Engine;
use super::prepare::{Prepared, PreparedCondition};
use crate::exec::column::Item;
use crate::exec::frame::{Frame, Scratch, WORD};
use crate::exec::mask::Signal;
use crate::exec::tile::Tiles;
use crate::exec::walk::{ExitTrigger, SideRun};
use crate::plan::{Decided, Slot};
use tidemill_market::indicator::window;

impl PreparedCondition {
    /// Whether no mask decides all of it for a trial.
    pub(super) fn is_open(&self, trial: usize) -> bool {
        !self.is_whole && *self.left[trial] != Decided::Never
    }
}

/// The entry signal of a side, then those of its exits.
fn signals<'a, 'b>(side: &'a mut SideRun<'b>) -> impl Iterator<Item = &'a mut Signal<'b>> {
    let exits = side.exits.iter_mut().filter_map(|exit| match &mut exit.watch {
        ExitTrigger::Signal(signal) => Some(signal),
        ExitTrigger::Number(_) => None,
    });
    std::iter::once(&mut side.enter).chain(exits)
}

impl Engine<'_> {
    /// The averages that some trials read and that are not written out.
    pub(super) fn tiles<'b>(
        &'b self,
        symbol: usize,
        trials: impl ExactSizeIterator<Item = usize>,
        scalars: &[Vec<f64>],
        prepared: &Prepared,
    ) -> Tiles<'b> {
        let mut tiles = Tiles::new(trials.len(), self.block_words * WORD);
        for (at, trial) in trials.enumerate() {
            for (slot, tiled) in prepared.tiled.iter().enumerate() {
                let (Some(needed), Slot::Call { inputs, arguments, .. }) = (tiled, &self.plan.slots[slot])
                else {
                    continue;
                };
                let item = prepared.slot_of[slot][trial] as usize;
                let is_written =
                    !matches!(&*prepared.slots[slot][item], Item::Column(column) if column.is_empty());
                let Slot::Source(source) = self.plan.slots[inputs[0]] else { continue };
                if needed[item] && !is_written {
                    let span = window(scalars[trial][arguments[0]]);
                    tiles.add(at, slot, self.symbols[symbol].source(source), span);
                }
            }
        }
        tiles
    }

    /// Writes the signals of trials out: entries, and exits where they read tiles. Exits that do not are looked for from trade to trade.
    pub(super) fn write_signals<'b>(
        &self,
        symbol: usize,
        sides: &mut [Vec<SideRun<'_>>],
        frames: &[Frame<'b>],
        tiles: &mut Tiles<'b>,
        scratch: &mut Scratch,
    ) {
        for (at, (sides, frame)) in sides.iter_mut().zip(frames).enumerate() {
            for signal in sides.iter_mut().flat_map(signals) {
                signal.read_tiles(|tape| tiles.read(at, tape, frame.scalars, frame.columns));
            }
        }
        if sides.len() == 1 && tiles.is_empty() {
            return;
        }
        let (n_bars, block_bars) = (self.symbols[symbol].bars.len(), self.block_words * WORD);
        let segments: Vec<&Range<usize>> = self
            .segments
            .iter()
            .filter_map(|segment| (segment.symbol == symbol).then_some(&segment.range))
            .collect();
        let end = segments.iter().map(|range| range.end).max().unwrap_or(0);
        let has_tiles = !tiles.is_empty();
        for first in (0..end.min(n_bars)).step_by(block_bars) {
            let bars = first..n_bars.min(first + block_bars);
            if has_tiles {
                tiles.advance(bars.clone());
            }
            if !segments.iter().any(|range| range.start < bars.end && bars.start < range.end) {
                continue;
            }
            for (at, (sides, frame)) in sides.iter_mut().zip(frames).enumerate() {
                let own = if has_tiles { tiles.of(at, frame.columns.len()) } else { Vec::new() };
                let frame = Frame { tiles: &own, compared: tiles.compared(), ..*frame };
                for side in sides {
                    side.enter.write(first, &frame, scratch);
                    for signal in signals(side).skip(1).filter(|signal| signal.reads_tiles()) {
                        signal.write(first, &frame, scratch);
                    }
                }
            }
        }
    }
}

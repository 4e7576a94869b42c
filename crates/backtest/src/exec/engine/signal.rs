//! Finds the signals of a group of trials block by block, all of them one block after the other: what they read of the data, and of columns
//! that they share, is still in the cache then, and averages that only one trial reads need no memory beyond the block. Where a trial can walk
//! as far as its signals are known, it does: bars that it holds a position through are not looked at.

use std::ops::Range;

use super::Engine;
use super::pool::{Pool, Row};
use super::prepare::{Prepared, PreparedCondition};
use crate::exec::column::Item;
use crate::exec::frame::{Frame, Scratch, WORD};
use crate::exec::mask::Signal;
use crate::exec::tile::Tiles;
use crate::exec::walk::{BoundExit, ExitTrigger, SideRun, WalkState, Walker};
use crate::plan::{Decided, Slot};
use crate::segment::Segment;
use crate::tally::Tally;
use tidemill_market::indicator::{Tested, window};

/// Trials that walk together while their signals are found, at most: what one reads, the next finds in the cache.
const MOST_ALONG: usize = 64;

/// A series is brought into the cache as a whole if the tests of so many trials read it: one trial reads a bar in a hundred.
const TRIALS_PER_FETCH: usize = 8;

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

/// The series that the quick tests of many trials read.
fn shared_series<'b>(sides: &[Vec<SideRun<'b>>]) -> Vec<Tested<'b>> {
    let mut counted: Vec<(Tested<'b>, usize)> = Vec::new();
    for series in sides.iter().flatten().flat_map(|side| side.enter.tested()) {
        match counted.iter_mut().find(|(other, _)| *other == series) {
            Some((_, n_trials)) => *n_trials += 1,
            None => counted.push((series, 1)),
        }
    }
    counted.retain(|(_, n_trials)| *n_trials >= TRIALS_PER_FETCH);
    counted.into_iter().map(|(series, _)| series).collect()
}

/// Asks for what the signals of trials read of tiles.
pub(super) fn tiles_of_signals<'b>(
    sides: &mut [Vec<SideRun<'_>>],
    frames: &[Frame<'b>],
    tiles: &mut Tiles<'b>,
) {
    for (at, (sides, frame)) in sides.iter_mut().zip(frames).enumerate() {
        for signal in sides.iter_mut().flat_map(signals) {
            signal.read_tiles(|tape| tiles.read(at, tape, frame.scalars, frame.columns));
        }
    }
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
                let Some(needed) = tiled else { continue };
                let item = prepared.slot_of[slot][trial] as usize;
                let is_written =
                    !matches!(&*prepared.slots[slot][item], Item::Column(column) if column.is_empty());
                if needed[item] && !is_written {
                    self.add_average(&mut tiles, at, slot, symbol, &scalars[trial]);
                }
            }
        }
        tiles
    }

    /// Adds what a trial may read of a slot, if it is an average of a series of the data.
    pub(super) fn add_average<'b>(
        &'b self,
        tiles: &mut Tiles<'b>,
        at: usize,
        slot: usize,
        symbol: usize,
        scalars: &[f64],
    ) {
        if let Slot::Call { inputs, arguments, .. } = &self.plan.slots[slot]
            && let Slot::Source(source) = self.plan.slots[inputs[0]]
        {
            tiles.add(at, slot, self.symbols[symbol].source(source), window(scalars[arguments[0]]));
        }
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
        if sides.len() == 1 && tiles.is_empty() {
            return;
        }
        let (n_bars, block_bars) = (self.symbols[symbol].bars.len(), self.block_words * WORD);
        let segments: Vec<&Range<usize>> = self
            .measure
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

    /// How many trials may walk through a symbol together while their signals are found.
    pub(super) fn most_along(&self, symbol: usize, prepared: &Prepared) -> usize {
        let is_tiled = prepared.tiled.iter().any(Option::is_some);
        if is_tiled && self.can_go_along(symbol) { MOST_ALONG } else { 0 }
    }

    /// Whether these trials walk while their signals are found: these read tiles, and no exit does, of which only one block is there.
    pub(super) fn goes_along(&self, symbol: usize, sides: &[Vec<SideRun<'_>>], tiles: &Tiles<'_>) -> bool {
        let reads_tiles = |exit: &BoundExit<'_>| match &exit.watch {
            ExitTrigger::Signal(signal) => signal.reads_tiles(),
            ExitTrigger::Number(_) => false,
        };
        let can_go = |side: &SideRun<'_>| side.enter.exact().is_none() && !side.exits.iter().any(reads_tiles);
        self.can_go_along(symbol) && !tiles.is_empty() && sides.iter().flatten().all(can_go)
    }

    /// Whether trials may walk through a symbol while their signals are found: once, and with one side, so that
    /// none asks for a bar again.
    fn can_go_along(&self, symbol: usize) -> bool {
        let mut segments = self.measure.segments.iter().filter(|segment| segment.symbol == symbol);
        let is_one =
            matches!((segments.next(), segments.next()), (Some(only), None) if !only.range.is_empty());
        is_one && self.plan.sides.iter().flatten().count() == 1
    }

    /// Walks trials through a segment that is not empty block by block, each as far as its signals are known. What
    /// a trial holds a position through is not looked at, and what trials read of the data for their signals and
    /// their trades is still in the cache.
    pub(super) fn walk_along<'b>(
        &'b self,
        segment: usize,
        group: &mut [(usize, &mut Row)],
        sides: Vec<Vec<SideRun<'b>>>,
        frames: &[Frame<'b>],
        tiles: &mut Tiles<'b>,
        scratch: &mut Scratch,
    ) {
        let Segment { symbol, role, range, .. } = &self.measure.segments[segment];
        let tested = shared_series(&sides);
        let (data, block_bars) = (&self.symbols[*symbol], self.block_words * WORD);
        let mut walks: Vec<(Walker<'_>, WalkState, Pool<'_>)> = group
            .iter_mut()
            .zip(sides.into_iter().zip(frames))
            .map(|((_, row), (sides, frame))| {
                let walker = Walker::new(data, *frame, &self.strategy.execution, sides);
                let state = walker.begin(range.clone(), scratch);
                (walker, state, row.pool(*role, &data.calendar, &self.blocks))
            })
            .collect();
        let n_walks = walks.len();
        for first in (0..range.end).step_by(block_bars) {
            let bars = first..data.bars.len().min(first + block_bars);
            tiles.advance(bars.clone());
            if bars.end <= range.start {
                continue;
            }
            let next = bars.end..data.bars.len().min(bars.end + block_bars);
            let part = |at: usize| next.start + next.len() * at / n_walks;
            for (at, (walker, state, pool)) in walks.iter_mut().enumerate() {
                // Single bars of the next block would come from memory one by one: meanwhile a part of all of them is on its way.
                tested.iter().for_each(|series| series.fetch(part(at)..part(at + 1)));
                if state.looks_before(bars.end) {
                    let own = tiles.of(at, frames[at].columns.len());
                    let frame = Frame { tiles: &own, compared: tiles.compared(), ..frames[at] };
                    walker.look(first, state, &frame, scratch);
                    walker.go_on(state, bars.end, scratch, pool);
                }
            }
        }
        let finish = |(mut walker, state, mut pool): (Walker<'_>, WalkState, Pool<'_>)| {
            walker.finish(state, scratch, &mut pool)
        };
        let tallies: Vec<Tally> = walks.into_iter().map(finish).collect();
        for ((_, row), tally) in group.iter_mut().zip(tallies) {
            row.segments[segment] = tally;
        }
    }
}

//! Recursive averages of a group of trials, some bars at a time.
//!
//! A window that hardly any other trial uses is not worth a column: written once and read once, it would come from memory twice. The averages
//! of a group of trials run side by side instead, in the lanes of vectors, up to the end of the block of bars for which conditions are
//! written out next; only that block, and what conditions read of the bars before it, is kept, and stays in the cache. Where a condition only
//! compares averages, with each other or with a series of the data, not even they are kept, but the bits of the comparison.

use std::ops::Range;

use tidemill_market::indicator::{EmaCompare, EmaStream, Function, Relation};

use super::frame::{MOST_WORDS, Tile, WORD};
use crate::graph::{Func, Op2};
use crate::plan::{Op, Slot, Tape};

/// Bars before a block that are kept at most.
pub const MOST_HISTORY: usize = KEPT_WORDS * WORD;

/// The same in words.
const KEPT_WORDS: usize = 4;

const EMA: Func = Function::named("ema");

/// Whether a slot can be computed some bars at a time: an average of a series of the data.
pub fn can_hold(slot: &Slot, slots: &[Slot]) -> bool {
    matches!(slot, Slot::Call { func, inputs, .. } if *func == EMA && matches!(slots[inputs[0]], Slot::Source(_)))
}

/// What a trial reads of a slot: an average of a series of the data.
#[derive(Clone, Copy)]
struct Average<'a> {
    slot: usize,
    source: &'a [f64],
    span: usize,
}

/// The averages of one series that somebody reads.
struct Bank<'a> {
    source: &'a [f64],
    /// Each span once.
    spans: Vec<usize>,
    stream: EmaStream,
    /// For each span the bars that are kept, then those of the block.
    values: Vec<f64>,
}

/// Comparisons of averages of one series with each other, or with one series of the data.
struct Comparisons<'a> {
    source: &'a [f64],
    other: &'a [f64],
    relation: Relation,
    /// Each pair once.
    spans: Vec<(usize, Option<usize>)>,
    stream: EmaCompare,
    /// For each pair the words that are kept, then those of the block.
    words: Vec<[u64; KEPT_WORDS + MOST_WORDS]>,
}

/// The bits of a comparison for one block, as many bars later as the condition says.
pub struct Compared {
    pub words: [u64; MOST_WORDS],
    comparisons: usize,
    lane: usize,
    /// None if what is compared is never available.
    ago: Option<usize>,
}

/// Where a trial finds the values of a slot.
struct Place {
    slot: usize,
    bank: usize,
    lane: usize,
}

/// The averages that the trials of a group read, for one block of bars.
pub struct Tiles<'a> {
    /// By trial of the group, what it may read, and where it finds what it does.
    averages: Vec<Vec<Average<'a>>>,
    places: Vec<Vec<Place>>,
    banks: Vec<Bank<'a>>,
    comparisons: Vec<Comparisons<'a>>,
    compared: Vec<Compared>,
    /// The most bars of a block, and those that are kept before it.
    block_bars: usize,
    history: usize,
    /// The bars of the block.
    bars: Range<usize>,
}

/// The place of an item in a list, at the end of it if it is new.
fn place<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|other| *other == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

fn relation(op: Op2) -> Option<Relation> {
    match op {
        Op2::Lt => Some(Relation::Less),
        Op2::Le => Some(Relation::LessOrEqual),
        Op2::Gt => Some(Relation::Greater),
        Op2::Ge => Some(Relation::GreaterOrEqual),
        _ => None,
    }
}

impl<'a> Tiles<'a> {
    /// None yet, for a group of so many trials.
    pub fn new(n_trials: usize, block_bars: usize) -> Self {
        Self {
            averages: vec![Vec::new(); n_trials],
            places: (0..n_trials).map(|_| Vec::new()).collect(),
            banks: Vec::new(),
            comparisons: Vec::new(),
            compared: Vec::new(),
            block_bars,
            history: 0,
            bars: 0..0,
        }
    }

    /// Adds what a trial may read of a slot: an average of `source`.
    pub fn add(&mut self, trial: usize, slot: usize, source: &'a [f64], span: usize) {
        self.averages[trial].push(Average { slot, source, span });
    }

    /// The slots of which a trial will have tiles: each with a tile without values.
    pub fn announced(&self, trial: usize, n_slots: usize) -> Vec<Option<Tile<'static>>> {
        let mut out = vec![None; if self.averages[trial].is_empty() { 0 } else { n_slots }];
        for average in &self.averages[trial] {
            out[average.slot] = Some(Tile { first: 0, values: &[] });
        }
        out
    }

    /// Notes that a trial reads a condition in the blocks to come. Says which of the comparisons the whole condition is, if it is one; else
    /// its averages will be there.
    pub fn read(
        &mut self,
        trial: usize,
        tape: &Tape,
        scalars: &[f64],
        columns: &[&'a [f64]],
    ) -> Option<usize> {
        let compared = self.compare(trial, tape, scalars, columns);
        if compared.is_some() {
            return compared;
        }
        for op in &tape.ops {
            let Op::Column { slot, shift } = op else { continue };
            let Some(Average { source, span, .. }) = self.average(trial, *slot) else { continue };
            let ago = shift.map_or(0.0, |scalar| scalars[scalar]);
            self.history = self.history.max(ago as usize);
            let bank = self.banks.iter().position(|bank| std::ptr::eq(bank.source, source));
            let bank = bank.unwrap_or_else(|| {
                let (spans, values) = (Vec::new(), Vec::new());
                self.banks.push(Bank { source, spans, stream: EmaStream::new(&[]), values });
                self.banks.len() - 1
            });
            let lane = place(&mut self.banks[bank].spans, span);
            self.places[trial].push(Place { slot: *slot, bank, lane });
        }
        None
    }

    fn average(&self, trial: usize, slot: usize) -> Option<Average<'a>> {
        self.averages[trial].iter().find(|average| average.slot == slot).copied()
    }

    /// Which of the comparisons a condition is: of an average with another one of the same series, or with a series of the data, on the
    /// same bar.
    pub fn compare(
        &mut self,
        trial: usize,
        tape: &Tape,
        scalars: &[f64],
        columns: &[&'a [f64]],
    ) -> Option<usize> {
        let (a, b, op, shift) = match tape.ops[..] {
            [Op::Column { slot: a, shift }, Op::Column { slot: b, shift: other }, Op::Compare(op, at, _)]
                if shift == other =>
            {
                if at == 0 {
                    (a, b, op, shift)
                } else {
                    (b, a, op, shift)
                }
            }
            _ => return None,
        };
        let (first, second, other, op) = match (self.average(trial, a), self.average(trial, b)) {
            (Some(a), Some(b)) if std::ptr::eq(a.source, b.source) => (a, Some(b.span), &[][..], op),
            (Some(a), None) if columns[b].len() == a.source.len() => (a, None, columns[b], op),
            (None, Some(b)) if columns[a].len() == b.source.len() => (b, None, columns[a], op.mirrored()),
            _ => return None,
        };
        let relation = relation(op)?;
        let is_same = |comparisons: &Comparisons<'_>| {
            std::ptr::eq(comparisons.source, first.source)
                && std::ptr::eq(comparisons.other, other)
                && comparisons.relation == relation
                && comparisons.spans[0].1.is_some() == second.is_some()
        };
        let comparisons = self.comparisons.iter().position(is_same).unwrap_or_else(|| {
            let (spans, words, stream) = (Vec::new(), Vec::new(), EmaCompare::new(relation, &[]));
            self.comparisons.push(Comparisons {
                source: first.source,
                other,
                relation,
                spans,
                stream,
                words,
            });
            self.comparisons.len() - 1
        });
        let lane = place(&mut self.comparisons[comparisons].spans, (first.span, second));
        let ago = shift.map_or(0.0, |scalar| scalars[scalar]);
        let ago = (ago >= 0.0).then_some(ago as usize);
        self.compared.push(Compared { words: [0; MOST_WORDS], comparisons, lane, ago });
        Some(self.compared.len() - 1)
    }

    /// Whether no trial reads any.
    pub fn is_empty(&self) -> bool {
        self.banks.is_empty() && self.comparisons.is_empty()
    }

    /// Goes on to the next block.
    pub fn advance(&mut self, bars: Range<usize>) {
        let (history, stride) = (self.history, self.history + self.block_bars);
        let before = self.bars.len();
        for bank in &mut self.banks {
            if bars.start == 0 {
                bank.stream = EmaStream::new(&bank.spans);
                bank.values.clear();
                bank.values.resize(bank.spans.len() * stride, f64::NAN);
            }
            let blocks = bank.values.chunks_exact_mut(stride).map(|tile| {
                tile.copy_within(before..before + history, 0);
                &mut tile[history..history + bars.len()]
            });
            bank.stream.advance(&bank.source[bars.clone()], &mut blocks.collect::<Vec<_>>());
        }
        let (before, n_words) = (before.div_ceil(WORD), bars.len().div_ceil(WORD));
        for comparisons in &mut self.comparisons {
            if bars.start == 0 {
                comparisons.stream = EmaCompare::new(comparisons.relation, &comparisons.spans);
                comparisons.words = vec![[0; _]; comparisons.spans.len()];
            }
            let blocks = comparisons.words.iter_mut().map(|words| {
                words.copy_within(before..before + KEPT_WORDS, 0);
                &mut words[KEPT_WORDS..KEPT_WORDS + n_words]
            });
            let other = comparisons.other.get(bars.clone()).unwrap_or_default();
            comparisons.stream.advance(
                &comparisons.source[bars.clone()],
                other,
                &mut blocks.collect::<Vec<_>>(),
            );
        }
        for compared in &mut self.compared {
            let words = &self.comparisons[compared.comparisons].words[compared.lane];
            compared.words = compared.ago.map_or([0; MOST_WORDS], |ago| later(words, ago));
        }
        self.bars = bars;
    }

    /// The bits of the comparisons that conditions are.
    pub fn compared(&self) -> &[Compared] {
        &self.compared
    }

    /// The tiles of a trial by slot.
    pub fn of(&self, trial: usize, n_slots: usize) -> Vec<Option<Tile<'_>>> {
        let places = &self.places[trial];
        let mut out = vec![None; if places.is_empty() { 0 } else { n_slots }];
        for Place { slot, bank, lane } in places {
            let stride = self.history + self.block_bars;
            let values = &self.banks[*bank].values[lane * stride..][..self.history + self.bars.len()];
            out[*slot] = Some(Tile { first: self.bars.start as isize - self.history as isize, values });
        }
        out
    }
}

/// The words of a block, each bit as many bars later.
fn later(words: &[u64; KEPT_WORDS + MOST_WORDS], by: usize) -> [u64; MOST_WORDS] {
    let (whole, rest) = (by / WORD, by % WORD);
    std::array::from_fn(|at| {
        let at = at + KEPT_WORDS - whole;
        let carry = if rest > 0 { words[at - 1] >> (WORD - rest) } else { 0 };
        words[at] << rest | carry
    })
}

#[cfg(test)]
mod tests {
    use tidemill_market::indicator::ema;

    use super::*;

    fn column(source: &[f64], span: usize) -> Vec<f64> {
        let mut column = vec![0.0; source.len()];
        ema(source, span, &mut column);
        column
    }

    /// `a ∘ b`, both as many bars ago as a scalar says.
    fn compare(op: Op2, a: usize, b: usize, shift: Option<usize>) -> Tape {
        Tape::new(vec![Op::Column { slot: a, shift }, Op::Column { slot: b, shift }, Op::Compare(op, 0, 1)])
    }

    #[test]
    fn tiles_are_the_columns_piece_by_piece() {
        let source: Vec<f64> =
            (0..1_000).map(|i| if i % 177 == 3 { f64::NAN } else { 10.0 + f64::from(i * i % 23) }).collect();
        let other: Vec<f64> = source.iter().map(|v| v * 3.0).collect();
        for (block_bars, history) in [(64, 0), (64, 1), (64, 200), (128, 3), (1_024, 24)] {
            let mut tiles = Tiles::new(2, block_bars);
            let wanted = [(0, 4, &source, 7), (0, 5, &other, 30), (1, 4, &source, 9), (1, 6, &source, 7)];
            for (trial, slot, source, span) in wanted {
                tiles.add(trial, slot, source, span);
                let tape = Tape::new(vec![Op::Column { slot, shift: Some(0) }]);
                assert!(tiles.read(trial, &tape, &[f64::from(history)], &[]).is_none());
            }
            for first in (0..source.len()).step_by(block_bars) {
                tiles.advance(first..source.len().min(first + block_bars));
                for (trial, slot, source, span) in wanted {
                    let column = column(source, span);
                    let of = tiles.of(trial, 8);
                    assert!(of[0].is_none());
                    let Some(Tile { first: begin, values }) = of[slot] else {
                        panic!("slot {slot} has a tile")
                    };
                    assert_eq!(begin, first as isize - history as isize);
                    for (bar, value) in (begin..).zip(values).filter(|(bar, _)| *bar >= 0) {
                        let expected = column[bar as usize];
                        assert!(*value == expected || value.is_nan() && expected.is_nan(), "bar {bar}");
                    }
                }
            }
        }
    }

    #[test]
    fn comparisons_are_those_of_the_columns_some_bars_ago() {
        let source: Vec<f64> =
            (0..1_000).map(|i| if i % 177 == 3 { f64::NAN } else { 10.0 + f64::from(i * i % 23) }).collect();
        let other: Vec<f64> = source.iter().map(|v| 2.0 * v - 20.0).collect();
        let columns = [&other[..], &[], &[]];
        let spans = [(1, 7), (2, 30)];
        for (block_bars, ago) in [(64, 0.0), (64, 1.0), (64, 64.0), (128, 200.0), (1_024, 256.0), (192, -1.0)]
        {
            for (op, a, b) in
                [(Op2::Lt, 1, 2), (Op2::Ge, 2, 1), (Op2::Le, 0, 1), (Op2::Gt, 2, 0), (Op2::Eq, 1, 2)]
            {
                let mut tiles = Tiles::new(1, block_bars);
                spans.iter().for_each(|(slot, span)| tiles.add(0, *slot, &source, *span));
                let compared = tiles.read(0, &compare(op, a, b, Some(0)), &[ago], &columns);
                let Some(compared) = compared else {
                    assert!(op == Op2::Eq, "equality is left to the values");
                    continue;
                };
                let [a, b] = [a, b].map(|slot| match slot {
                    0 => other.clone(),
                    _ => column(&source, spans[slot - 1].1),
                });
                for first in (0..source.len()).step_by(block_bars) {
                    let bars = first..source.len().min(first + block_bars);
                    tiles.advance(bars.clone());
                    let words = &tiles.compared()[compared].words;
                    for bar in bars {
                        let at = (ago >= 0.0).then(|| bar.checked_sub(ago as usize)).flatten();
                        let expected = at.is_some_and(|at| crate::point::binary(op, a[at], b[at]) == 1.0);
                        let found = words[(bar - first) / WORD] >> (bar % WORD) & 1 == 1;
                        assert_eq!(found, expected, "{op:?} {ago} bars ago, bar {bar}");
                    }
                }
            }
        }
    }
}

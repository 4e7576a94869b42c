//! Evaluates formulas of one trial over one symbol: at a single bar, or 64 bars at a time. One file because every reader of a formula goes
//! through the same blocks.

use multiversion::multiversion;
use tidemill_market::indicator::{Call, Limit, Series, ZscoreTest};

use super::book::Ledger;
use super::lazy::Lazy;
use super::places::Places;
use super::simd;
use super::tile::Compared;
use crate::graph::{Func, Op1, Op2};
use crate::plan::{Op, Tape};
use crate::point;
use crate::trade::Trade;

/// Bars of one word.
pub const WORD: usize = 64;

/// What formulas read: the columns and scalars of one trial over one symbol.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// Columns by slot; empty where a slot holds no numbers, or none was written.
    pub columns: &'a [&'a [f64]],
    /// By slot, those that are computed where they are read; may be shorter than the columns.
    pub lazies: &'a [Option<Lazy<'a>>],
    /// By slot, those of which only some bars are there; may be shorter than the columns.
    pub tiles: &'a [Option<Tile<'a>>],
    /// Comparisons of which the bits of a block are there.
    pub compared: &'a [Compared],
    /// Scalars of the trial.
    pub scalars: &'a [f64],
    /// Number of bars.
    pub n_bars: usize,
    /// Words that conditions are computed for at a time; at most [`MOST_WORDS`].
    pub block_words: usize,
}

/// Words that conditions are computed for at a time at most: enough that the operations, not their dispatch, cost time, few enough to
/// stay in the first cache.
pub const MOST_WORDS: usize = 16;

/// Some bars of a column.
#[derive(Clone, Copy)]
pub struct Tile<'a> {
    /// The bar of the first value; before the first bar where there are more values than bars so far.
    pub first: isize,
    /// The values from there on.
    pub values: &'a [f64],
}

/// Values of the trade being opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Fill price.
    pub entry: f64,
    /// Level of the first stop, NaN if absent.
    pub stop: f64,
    /// What one R is.
    pub risk: f64,
}

impl Opening {
    /// Before anything is known.
    pub const NONE: Self = Self { entry: f64::NAN, stop: f64::NAN, risk: f64::NAN };
}

/// Scratch space for formulas; reused so that evaluation does not allocate.
#[derive(Default)]
pub struct Scratch {
    /// Places of bars in a block.
    pub places: Places,
    /// Steps of a formula at a single bar.
    pub points: Vec<f64>,
    /// Memory for the trades of walks to come.
    pub trades: Vec<Vec<Trade>>,
    /// What they do to equity.
    pub ledger: Ledger,
    /// Results of number operations, one block each.
    numbers: Vec<f64>,
    /// Results of truth operations, one block each: the bits that are true.
    yes: Vec<u64>,
    /// The bits that are false; those in neither are not available.
    no: Vec<u64>,
}

impl Scratch {
    /// Makes room for the blocks of so many operations.
    fn reserve(&mut self, n_ops: usize) {
        if self.yes.len() < n_ops * BLOCK {
            self.numbers.resize(n_ops * BLOCK * WORD, 0.0);
            self.yes.resize(n_ops * BLOCK, 0);
            self.no.resize(n_ops * BLOCK, 0);
        }
    }
}

/// Words of one block when a whole column is written out: large enough that the operations, not their dispatch, cost time.
const BLOCK: usize = 32;

/// Bars ago as an offset; `None` where it would look ahead or is not available.
#[inline(always)]
fn bars_ago(frame: &Frame<'_>, shift: Option<usize>) -> Option<usize> {
    match shift {
        None => Some(0),
        Some(scalar) => {
            let value = frame.scalars[scalar];
            if value >= 0.0 { Some(value.min(u32::MAX as f64) as usize) } else { None }
        }
    }
}

/// A function at one bar, without its column.
pub fn point_function(func: Func, x: &[f64], arguments: &[f64], bar: usize) -> f64 {
    match func.at {
        Some(at) => at(&Call { series: &[Series::Column(x)], arguments }, bar),
        None => unreachable!("only functions with a point form are planned as points"),
    }
}

impl<'a> Frame<'a> {
    /// Truth of a condition for the bars of some words; bits past the last bar are undefined.
    pub fn truth_words<'b>(
        &self,
        tape: &Tape,
        word: usize,
        n_words: usize,
        scratch: &'b mut Scratch,
    ) -> &'b [u64] {
        self.run(tape, word, n_words, scratch);
        &scratch.yes[(tape.ops.len() - 1) * n_words..][..n_words]
    }

    /// The bars of a column that are there.
    #[inline(always)]
    fn column(&self, slot: usize) -> Tile<'a> {
        let tile = self.tiles.get(slot).copied().flatten();
        tile.unwrap_or(Tile { first: 0, values: self.columns[slot] })
    }

    /// The bar that is read for a bar; none before the first one, and where it would look ahead or is not available.
    pub fn bar_ago(&self, bar: usize, shift: Option<usize>) -> Option<usize> {
        bar.checked_sub(bars_ago(self, shift)?)
    }

    /// One value of a column.
    pub fn at(&self, slot: usize, bar: usize) -> f64 {
        let Tile { first, values } = self.column(slot);
        values[(bar as isize - first) as usize]
    }

    /// Whether a formula reads a column of which only some bars are there.
    pub fn reads_tiles(&self, tape: &Tape) -> bool {
        let is_tile = |slot: usize| matches!(self.tiles.get(slot), Some(Some(_)));
        tape.ops.iter().any(|op| matches!(op, Op::Column { slot, .. } if is_tile(*slot)))
    }

    /// The call behind a slot that has no column.
    pub fn lazy(&self, slot: usize) -> Option<&'a Lazy<'a>> {
        self.lazies.get(slot)?.as_ref()
    }

    /// About what a condition costs per bar, where reading a column costs half: what is not shared comes from afar.
    pub fn cost(&self, tape: &Tape) -> f64 {
        let cost = |op: &Op| match op {
            Op::Column { slot, .. } if self.lazy(*slot).is_some() => 10.0,
            Op::Column { .. } => 0.5,
            Op::Scalar(_) | Op::Truth(_) => 0.0,
            _ => 0.25,
        };
        tape.ops.iter().map(cost).sum()
    }

    /// The quick test of a condition `series ∘ threshold` over a column that is computed where it is read.
    pub fn quick_test(&self, tape: &Tape) -> Option<ZscoreTest<'a>> {
        let (slot, op, scalar) = match tape.ops[..] {
            [Op::Column { slot, shift: None }, Op::Scalar(scalar), Op::Compare(op, 0, 1)] => {
                (slot, op, scalar)
            }
            [Op::Column { slot, shift: None }, Op::Scalar(scalar), Op::Compare(op, 1, 0)] => {
                (slot, op.mirrored(), scalar)
            }
            [Op::Scalar(scalar), Op::Column { slot, shift: None }, Op::Compare(op, 0, 1)] => {
                (slot, op.mirrored(), scalar)
            }
            _ => return None,
        };
        let sign = match op {
            Op2::Gt | Op2::Ge => 1.0,
            Op2::Lt | Op2::Le => -1.0,
            _ => return None,
        };
        let limit = Limit { threshold: sign * self.scalars[scalar], sign };
        self.lazy(slot).filter(|_| limit.threshold > 0.0)?.test(limit)
    }

    /// Truth of a condition over all bars.
    pub fn truth(&self, tape: &Tape, scratch: &mut Scratch) -> Vec<u64> {
        Self::truths(std::slice::from_ref(self), tape, scratch).swap_remove(0)
    }

    /// Truth of a condition over all bars for several trials over one symbol, all of them block by block: what they share of
    /// their columns is still in the cache then.
    pub fn truths(frames: &[Self], tape: &Tape, scratch: &mut Scratch) -> Vec<Vec<u64>> {
        let Some(n_words) = frames.first().map(|frame| frame.n_bars.div_ceil(WORD)) else {
            return Vec::new();
        };
        let mut out: Vec<Vec<u64>> = frames.iter().map(|_| Vec::with_capacity(n_words)).collect();
        for word in (0..n_words).step_by(BLOCK) {
            let count = BLOCK.min(n_words - word);
            let last = (tape.ops.len() - 1) * count;
            for (frame, out) in frames.iter().zip(&mut out) {
                frame.run(tape, word, count, scratch);
                out.extend_from_slice(&scratch.yes[last..last + count]);
            }
        }
        for (frame, out) in frames.iter().zip(&mut out) {
            if let Some(last) = out.last_mut() {
                *last &= frame.valid(n_words - 1);
            }
        }
        out
    }

    /// Values of a formula over all bars.
    pub fn numbers(&self, tape: &Tape, scratch: &mut Scratch, out: &mut [f64]) {
        for (at, out) in out.chunks_mut(BLOCK * WORD).enumerate() {
            let count = out.len().div_ceil(WORD);
            if out.len() == count * WORD {
                self.run_into(tape, at * BLOCK, count, scratch, Some(out));
                continue;
            }
            self.run(tape, at * BLOCK, count, scratch);
            let last = (tape.ops.len() - 1) * count * WORD;
            out.copy_from_slice(&scratch.numbers[last..last + out.len()]);
        }
    }

    /// Values of some operations of a formula over the bars of some words, each given to `write` with its place among them and the bar within
    /// the words; truth is 1, 0 or not available.
    pub fn rows(
        &self,
        tape: &Tape,
        roots: &[usize],
        word: usize,
        n_words: usize,
        scratch: &mut Scratch,
        mut write: impl FnMut(usize, usize, f64),
    ) {
        self.run(tape, word, n_words, scratch);
        let lanes = n_words * WORD;
        for (row, root) in roots.iter().enumerate() {
            let op = &tape.ops[*root];
            if op.is_truth() {
                let words = root * n_words..(root + 1) * n_words;
                for (at, (yes, no)) in scratch.yes[words.clone()].iter().zip(&scratch.no[words]).enumerate() {
                    for bit in 0..WORD {
                        let (yes, no) = (yes >> bit & 1 == 1, no >> bit & 1 == 1);
                        write(row, at * WORD + bit, if yes || no { point::truth(yes) } else { point::NA });
                    }
                }
                continue;
            }
            let here = self.in_place(op, word * WORD, lanes).filter(|_| root + 1 < tape.ops.len());
            let values = here.unwrap_or(&scratch.numbers[root * lanes..(root + 1) * lanes]);
            values.iter().enumerate().for_each(|(bar, value)| write(row, bar, *value));
        }
    }

    /// Bits of a word that are bars.
    pub fn valid(&self, word: usize) -> u64 {
        let bars = self.n_bars - word * WORD;
        if bars >= WORD { u64::MAX } else { (1_u64 << bars) - 1 }
    }

    /// A column's block as it lies in memory, if all of it is there.
    #[inline(always)]
    fn in_place(&self, op: &Op, first: usize, lanes: usize) -> Option<&'a [f64]> {
        let Op::Column { slot, shift } = op else { return None };
        let begin = first.checked_sub(bars_ago(self, *shift)?)?;
        let Tile { first, values } = self.column(*slot);
        let begin = usize::try_from(begin as isize - first).ok()?;
        values.get(begin..begin + lanes)
    }

    /// Runs a formula over `n_words` words; operation `k` leaves its result in block `k` of the scratch space.
    fn run(&self, tape: &Tape, word: usize, n_words: usize, scratch: &mut Scratch) {
        self.run_into(tape, word, n_words, scratch, None);
    }

    /// The same; the numbers of the last operation go to `column`, if there is one, and not by way of the scratch space.
    fn run_into(
        &self,
        tape: &Tape,
        word: usize,
        n_words: usize,
        scratch: &mut Scratch,
        mut column: Option<&mut [f64]>,
    ) {
        let (n_ops, first, lanes) = (tape.ops.len(), word * WORD, n_words * WORD);
        scratch.reserve(n_ops);
        for (at, op) in tape.ops.iter().enumerate() {
            let (earlier, rest) = scratch.numbers.split_at_mut(at * lanes);
            let out = match &mut column {
                Some(column) if at + 1 == n_ops => &mut column[..],
                _ => &mut rest[..lanes],
            };
            let number = |operand: usize| {
                let here = self.in_place(&tape.ops[operand], first, lanes);
                here.unwrap_or(&earlier[operand * lanes..(operand + 1) * lanes])
            };
            let words = |operand: usize| operand * n_words..(operand + 1) * n_words;
            let ((yeses, yes), (noes, no)) =
                (scratch.yes.split_at_mut(at * n_words), scratch.no.split_at_mut(at * n_words));
            let (yes, no) = (&mut yes[..n_words], &mut no[..n_words]);
            let (needs_yes, needs_no) = tape.needs[at];
            match op {
                // Whole blocks are read where they lie.
                Op::Column { .. } if at + 1 < n_ops && self.in_place(op, first, lanes).is_some() => {}
                Op::Column { slot, shift } => match self.lazy(*slot) {
                    Some(lazy) => lazy.fill(first, bars_ago(self, *shift), out),
                    None => load(self.column(*slot), first, bars_ago(self, *shift), out),
                },
                Op::Point { func, input, arguments, shift } => {
                    let ago = bars_ago(self, *shift);
                    let arguments: Vec<f64> = arguments.iter().map(|scalar| self.scalars[*scalar]).collect();
                    for (bar, value) in (first..).zip(out) {
                        *value = match ago {
                            Some(ago) if ago <= bar && bar < self.n_bars => {
                                point_function(func, self.columns[*input], &arguments, bar - ago)
                            }
                            _ => point::NA,
                        };
                    }
                }
                Op::Scalar(scalar) => {
                    if tape.spreads[at] {
                        out.fill(self.scalars[*scalar]);
                    }
                }
                Op::Truth(scalar) => {
                    let (all_yes, all_no) = spread(self.scalars[*scalar]);
                    yes.fill(all_yes);
                    no.fill(all_no);
                }
                Op::Position(_) => out.fill(point::NA),
                Op::Unary(op, a) => unary_lanes(*op, number(*a), out),
                Op::Binary(op, a, b) => binary_lanes(*op, number(*a), number(*b), out),
                Op::Compare(op, a, b) => {
                    let compare = |op: Op2, out: &mut [u64]| match (&tape.ops[*a], &tape.ops[*b]) {
                        (_, Op::Scalar(scalar)) => {
                            simd::compare_scalar(op, number(*a), self.scalars[*scalar], out)
                        }
                        (Op::Scalar(scalar), _) => {
                            simd::compare_scalar(op.mirrored(), number(*b), self.scalars[*scalar], out);
                        }
                        _ => simd::compare(op, number(*a), number(*b), out),
                    };
                    if needs_yes {
                        compare(*op, yes);
                    }
                    if needs_no {
                        compare(op.opposite(), no);
                    }
                }
                Op::IsNa(a) => {
                    simd::compare(Op2::Eq, number(*a), number(*a), no);
                    yes.iter_mut().zip(no).for_each(|(yes, no)| *yes = !*no);
                }
                Op::Not(a) => {
                    if needs_yes {
                        yes.copy_from_slice(&noes[words(*a)]);
                    }
                    if needs_no {
                        no.copy_from_slice(&yeses[words(*a)]);
                    }
                }
                Op::Logic(op, a, b) => {
                    let join = |and: bool, out: &mut [u64], all: &[u64]| {
                        let pairs = all[words(*a)].iter().zip(&all[words(*b)]);
                        if and {
                            out.iter_mut().zip(pairs).for_each(|(out, (a, b))| *out = a & b);
                        } else {
                            out.iter_mut().zip(pairs).for_each(|(out, (a, b))| *out = a | b);
                        }
                    };
                    if needs_yes {
                        join(*op == Op2::And, yes, yeses);
                    }
                    if needs_no {
                        join(*op == Op2::Or, no, noes);
                    }
                }
                Op::SelectTruth(c, a, b) => {
                    for word in 0..n_words {
                        let at = |operand: usize| {
                            (yeses[operand * n_words + word], noes[operand * n_words + word])
                        };
                        let ((cy, cn), (ay, an), (by, bn)) = (at(*c), at(*a), at(*b));
                        yes[word] = (cy & ay) | (cn & by);
                        no[word] = (cy & an) | (cn & bn);
                    }
                }
                Op::Select(c, a, b) => {
                    let (yes, no) = (&yeses[words(*c)], &noes[words(*c)]);
                    let (a, b) = (number(*a), number(*b));
                    for lane in 0..lanes {
                        out[lane] = if yes[lane / WORD] >> (lane % WORD) & 1 == 1 {
                            a[lane]
                        } else if no[lane / WORD] >> (lane % WORD) & 1 == 1 {
                            b[lane]
                        } else {
                            point::NA
                        };
                    }
                }
            }
        }
    }
}

/// A scalar truth value in every lane.
fn spread(value: f64) -> (u64, u64) {
    let all = |yes: bool| if yes { u64::MAX } else { 0 };
    (all(value == 1.0), all(value == 0.0))
}

/// Reads bars from `ago` bars before `first` on; NaN before the first bar and past the last.
fn load(column: Tile<'_>, first: usize, ago: Option<usize>, out: &mut [f64]) {
    for (bar, value) in (first..).zip(out) {
        let at = ago.and_then(|ago| bar.checked_sub(ago)).map(|bar| bar as isize - column.first);
        *value = match at {
            Some(at) if at >= 0 => column.values.get(at as usize).copied().unwrap_or(point::NA),
            _ => point::NA,
        };
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn unary_lanes(op: Op1, a: &[f64], out: &mut [f64]) {
    macro_rules! lanes {
        ($op:expr) => {
            for (out, a) in out.iter_mut().zip(a) {
                *out = point::unary($op, *a);
            }
        };
    }
    match op {
        Op1::Neg => lanes!(Op1::Neg),
        Op1::Abs => lanes!(Op1::Abs),
        Op1::Sqrt => lanes!(Op1::Sqrt),
        other => lanes!(other),
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn binary_lanes(op: Op2, a: &[f64], b: &[f64], out: &mut [f64]) {
    macro_rules! lanes {
        ($op:expr) => {
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = point::binary($op, *a, *b);
            }
        };
    }
    match op {
        Op2::Add => lanes!(Op2::Add),
        Op2::Sub => lanes!(Op2::Sub),
        Op2::Mul => lanes!(Op2::Mul),
        Op2::Div => lanes!(Op2::Div),
        Op2::Min => lanes!(Op2::Min),
        Op2::Max => lanes!(Op2::Max),
        other => lanes!(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::formula::Formula;
    use super::*;

    #[test]
    fn words_equal_points_on_every_operation() {
        let specials = [f64::NAN, 0.0, -0.0, 1.0, -1.5, 2.5, f64::INFINITY, 1e-300];
        let a: Vec<f64> = (0..100).map(|i| specials[i % 8] * (1.0 + (i / 8) as f64)).collect();
        let b: Vec<f64> = (0..100).map(|i| specials[(i / 3) % 8]).collect();
        let columns = [a.as_slice(), b.as_slice()];
        let frame = Frame {
            columns: &columns,
            lazies: &[],
            tiles: &[],
            compared: &[],
            scalars: &[3.0],
            n_bars: 100,
            block_words: 1,
        };
        let base = vec![Op::Column { slot: 0, shift: None }, Op::Column { slot: 1, shift: Some(0) }];
        let mut scratch = Scratch::default();
        let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
        for op in [Op2::Add, Op2::Sub, Op2::Mul, Op2::Div, Op2::Min, Op2::Max] {
            let mut ops = base.clone();
            ops.push(Op::Binary(op, 0, 1));
            let tape = Tape { needs: vec![(false, false); 3], spreads: vec![true; 3], ops };
            let mut column = vec![0.0; 100];
            frame.numbers(&tape, &mut scratch, &mut column);
            for (bar, word) in column.into_iter().enumerate() {
                let single = Formula::new(&tape, &frame).value(bar, &Opening::NONE, &mut scratch.points);
                assert_eq!(bits(word), bits(single), "{op:?} at {bar}");
            }
        }
        for op in [Op2::Lt, Op2::Le, Op2::Gt, Op2::Ge, Op2::Eq, Op2::Ne] {
            for negated in [false, true] {
                let mut ops = base.clone();
                ops.push(Op::Compare(op, 0, 1));
                if negated {
                    ops.push(Op::Not(2));
                }
                let tape = Tape { needs: vec![(true, true); ops.len()], spreads: vec![true; ops.len()], ops };
                for bar in 0..100 {
                    let word = frame.truth_words(&tape, bar / 64, 1, &mut scratch)[0] >> (bar % 64) & 1;
                    let single = Formula::new(&tape, &frame).value(bar, &Opening::NONE, &mut scratch.points);
                    assert_eq!(word == 1, single == 1.0, "{op:?} at {bar}, negated {negated}");
                }
            }
        }
    }

    #[test]
    fn scalars_are_compared_whatever_was_there_before() {
        let a: Vec<f64> = (0..100).map(f64::from).collect();
        let frame = Frame {
            columns: &[&a],
            lazies: &[],
            tiles: &[],
            compared: &[],
            scalars: &[2.0, 1.0],
            n_bars: 100,
            block_words: 1,
        };
        let mut scratch = Scratch::default();
        for (op, is_true) in [(Op2::Gt, true), (Op2::Le, false), (Op2::Ne, true), (Op2::Lt, false)] {
            let dirty = Tape::new(vec![Op::Column { slot: 0, shift: None }, Op::Unary(Op1::Neg, 0)]);
            frame.numbers(&dirty, &mut scratch, &mut [0.0; 100]);
            let tape = Tape::new(vec![Op::Scalar(0), Op::Scalar(1), Op::Compare(op, 0, 1)]);
            assert_eq!(frame.truth(&tape, &mut scratch)[0] == u64::MAX, is_true, "{op:?}");
        }
    }

    #[test]
    fn bits_past_the_last_bar_are_clear() {
        let a = vec![1.0; 70];
        let frame = Frame {
            columns: &[&a],
            lazies: &[],
            tiles: &[],
            compared: &[],
            scalars: &[0.5],
            n_bars: 70,
            block_words: 1,
        };
        let ops = vec![Op::Column { slot: 0, shift: None }, Op::Scalar(0), Op::Compare(Op2::Gt, 0, 1)];
        let tape = Tape { needs: vec![(true, true); 3], spreads: vec![true; 3], ops };
        assert_eq!(frame.truth(&tape, &mut Scratch::default()), [u64::MAX, 0b11_1111]);
    }
}

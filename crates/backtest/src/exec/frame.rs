//! Evaluates formulas of one trial over one symbol: at a single bar, or 64 bars at a time.

use multiversion::multiversion;
use tidemill_market::indicator;

use crate::graph::{Func, Op1, Op2, Position};
use crate::plan::{Op, Tape};
use crate::point;

/// Bars of one word.
pub const WORD: usize = 64;

/// What formulas read: the columns and scalars of one trial over one symbol.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// Columns by slot; empty where a slot holds no numbers.
    pub columns: &'a [&'a [f64]],
    /// Scalars of the trial.
    pub scalars: &'a [f64],
    /// Number of bars.
    pub n_bars: usize,
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
    points: Vec<f64>,
    numbers: Vec<[f64; WORD]>,
    truths: Vec<(u64, u64)>,
}

/// A scalar as a window length: 0 where it makes no sense, which gives a column of NaN.
pub fn window(scalar: f64) -> usize {
    if scalar >= 1.0 && scalar < u32::MAX as f64 { scalar as usize } else { 0 }
}

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

fn point_function(func: Func, x: &[f64], arguments: &[usize], frame: &Frame<'_>, bar: usize) -> f64 {
    let arg = |at: usize| window(frame.scalars[arguments[at]]);
    match func {
        Func::Highest => indicator::highest_at(x, arg(0), bar),
        Func::Lowest => indicator::lowest_at(x, arg(0), bar),
        Func::SwingHigh => indicator::swing_high_at(x, arg(0), arg(1), bar),
        Func::SwingLow => indicator::swing_low_at(x, arg(0), arg(1), bar),
        _ => unreachable!("only functions with a point form are planned as points"),
    }
}

impl Frame<'_> {
    /// Value of a formula at one bar; truth is 1, 0 or NaN.
    #[inline]
    pub fn point(&self, tape: &Tape, bar: usize, opening: &Opening, scratch: &mut Scratch) -> f64 {
        let values = &mut scratch.points;
        values.clear();
        for op in &tape.ops {
            let value = match op {
                Op::Column { slot, shift } => match bars_ago(self, *shift) {
                    Some(ago) if ago <= bar => self.columns[*slot][bar - ago],
                    _ => point::NA,
                },
                Op::Point { func, input, arguments, shift } => match bars_ago(self, *shift) {
                    Some(ago) if ago <= bar => {
                        point_function(*func, self.columns[*input], arguments, self, bar - ago)
                    }
                    _ => point::NA,
                },
                Op::Scalar(scalar) | Op::Truth(scalar) => self.scalars[*scalar],
                Op::Position(Position::Entry) => opening.entry,
                Op::Position(Position::Stop) => opening.stop,
                Op::Position(Position::Risk) => opening.risk,
                Op::Unary(op, a) => point::unary(*op, values[*a]),
                Op::IsNa(a) => point::unary(Op1::IsNa, values[*a]),
                Op::Not(a) => point::unary(Op1::Not, values[*a]),
                Op::Binary(op, a, b) | Op::Compare(op, a, b) | Op::Logic(op, a, b) => {
                    point::binary(*op, values[*a], values[*b])
                }
                Op::Select(c, a, b) | Op::SelectTruth(c, a, b) => {
                    point::select(values[*c], values[*a], values[*b])
                }
            };
            values.push(value);
        }
        values.last().copied().unwrap_or(point::NA)
    }

    /// Truth of a condition for the 64 bars of one word; bits past the last bar are clear.
    pub fn truth_word(&self, tape: &Tape, word: usize, scratch: &mut Scratch) -> u64 {
        self.run_word(tape, word, scratch);
        let bars = self.n_bars - word * WORD;
        let valid = if bars >= WORD { u64::MAX } else { (1_u64 << bars) - 1 };
        scratch.truths[tape.ops.len() - 1].0 & valid
    }

    /// Values of a formula for the bars of one word.
    pub fn number_word<'s>(&self, tape: &Tape, word: usize, scratch: &'s mut Scratch) -> &'s [f64; WORD] {
        self.run_word(tape, word, scratch);
        &scratch.numbers[tape.ops.len() - 1]
    }

    fn run_word(&self, tape: &Tape, word: usize, scratch: &mut Scratch) {
        let n_ops = tape.ops.len();
        if scratch.numbers.len() < n_ops {
            scratch.numbers.resize(n_ops, [0.0; WORD]);
            scratch.truths.resize(n_ops, (0, 0));
        }
        let first = word * WORD;
        for (at, op) in tape.ops.iter().enumerate() {
            let (numbers, rest) = scratch.numbers.split_at_mut(at);
            let out = &mut rest[0];
            let truths = &mut scratch.truths;
            match op {
                Op::Column { slot, shift } => load(self.columns[*slot], first, bars_ago(self, *shift), out),
                Op::Point { func, input, arguments, shift } => {
                    let ago = bars_ago(self, *shift);
                    for (lane, value) in out.iter_mut().enumerate() {
                        *value = match ago {
                            Some(ago) if ago <= first + lane && first + lane < self.n_bars => point_function(
                                *func,
                                self.columns[*input],
                                arguments,
                                self,
                                first + lane - ago,
                            ),
                            _ => point::NA,
                        };
                    }
                }
                Op::Scalar(scalar) => *out = [self.scalars[*scalar]; WORD],
                Op::Truth(scalar) => truths[at] = spread(self.scalars[*scalar]),
                Op::Position(_) => *out = [point::NA; WORD],
                Op::Unary(op, a) => unary_word(*op, &numbers[*a], out),
                Op::Binary(op, a, b) => binary_word(*op, &numbers[*a], &numbers[*b], out),
                Op::Compare(op, a, b) => {
                    truths[at] = compare_word(*op, &numbers[*a], &numbers[*b], tape.needs[at])
                }
                Op::IsNa(a) => {
                    let number = compare_one(&numbers[*a], &numbers[*a], |x, y| x == y);
                    truths[at] = (!number, number);
                }
                Op::Not(a) => truths[at] = (truths[*a].1, truths[*a].0),
                Op::Logic(op, a, b) => {
                    let ((at_, af), (bt, bf)) = (truths[*a], truths[*b]);
                    truths[at] = if *op == Op2::And { (at_ & bt, af | bf) } else { (at_ | bt, af & bf) };
                }
                Op::SelectTruth(c, a, b) => {
                    let ((ct, cf), (at_, af), (bt, bf)) = (truths[*c], truths[*a], truths[*b]);
                    truths[at] = ((ct & at_) | (cf & bt), (ct & af) | (cf & bf));
                }
                Op::Select(c, a, b) => {
                    let (ct, cf) = truths[*c];
                    let (a, b) = (&numbers[*a], &numbers[*b]);
                    for lane in 0..WORD {
                        out[lane] = if ct >> lane & 1 == 1 {
                            a[lane]
                        } else if cf >> lane & 1 == 1 {
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

/// Reads 64 bars beginning `ago` bars before `first`; NaN before the first bar and past the last.
#[inline]
fn load(column: &[f64], first: usize, ago: Option<usize>, out: &mut [f64; WORD]) {
    let Some(ago) = ago else {
        *out = [point::NA; WORD];
        return;
    };
    if ago <= first && first - ago + WORD <= column.len() {
        out.copy_from_slice(&column[first - ago..first - ago + WORD]);
        return;
    }
    for (lane, value) in out.iter_mut().enumerate() {
        *value = match (first + lane).checked_sub(ago) {
            Some(bar) if bar < column.len() => column[bar],
            _ => point::NA,
        };
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn unary_word(op: Op1, a: &[f64; WORD], out: &mut [f64; WORD]) {
    macro_rules! lanes {
        ($op:expr) => {
            for lane in 0..WORD {
                out[lane] = point::unary($op, a[lane]);
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
fn binary_word(op: Op2, a: &[f64; WORD], b: &[f64; WORD], out: &mut [f64; WORD]) {
    macro_rules! lanes {
        ($op:expr) => {
            for lane in 0..WORD {
                out[lane] = point::binary($op, a[lane], b[lane]);
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

/// Bits of a comparison over 64 lanes: bytes first, which vectorise, then eight bytes to eight bits by a multiplication.
#[inline(always)]
fn compare_one(a: &[f64; WORD], b: &[f64; WORD], holds: impl Fn(f64, f64) -> bool) -> u64 {
    let mut bytes = [0_u8; WORD];
    for lane in 0..WORD {
        bytes[lane] = u8::from(holds(a[lane], b[lane]));
    }
    let mut bits = 0;
    for (group, chunk) in bytes.chunks_exact(8).enumerate() {
        let packed = u64::from_le_bytes([
            chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
        ]);
        bits |= (packed.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (group * 8);
    }
    bits
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn compare_word(op: Op2, a: &[f64; WORD], b: &[f64; WORD], needs: (bool, bool)) -> (u64, u64) {
    macro_rules! both {
        ($yes:expr, $no:expr) => {
            (
                if needs.0 { compare_one(a, b, $yes) } else { 0 },
                if needs.1 { compare_one(a, b, $no) } else { 0 },
            )
        };
    }
    match op {
        Op2::Lt => both!(|x, y| x < y, |x, y| x >= y),
        Op2::Le => both!(|x, y| x <= y, |x, y| x > y),
        Op2::Gt => both!(|x, y| x > y, |x, y| x <= y),
        Op2::Ge => both!(|x, y| x >= y, |x, y| x < y),
        Op2::Eq => both!(|x, y| x == y, |x, y| x < y || x > y),
        Op2::Ne => both!(|x, y| x < y || x > y, |x, y| x == y),
        _ => unreachable!("only comparisons are planned as comparisons"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_equal_points_on_every_operation() {
        let specials = [f64::NAN, 0.0, -0.0, 1.0, -1.5, 2.5, f64::INFINITY, 1e-300];
        let a: Vec<f64> = (0..100).map(|i| specials[i % 8] * (1.0 + (i / 8) as f64)).collect();
        let b: Vec<f64> = (0..100).map(|i| specials[(i / 3) % 8]).collect();
        let columns = [a.as_slice(), b.as_slice()];
        let frame = Frame { columns: &columns, scalars: &[3.0], n_bars: 100 };
        let base = vec![Op::Column { slot: 0, shift: None }, Op::Column { slot: 1, shift: Some(0) }];
        let mut scratch = Scratch::default();
        let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
        for op in [Op2::Add, Op2::Sub, Op2::Mul, Op2::Div, Op2::Min, Op2::Max] {
            let mut ops = base.clone();
            ops.push(Op::Binary(op, 0, 1));
            let tape = Tape { needs: vec![(false, false); 3], ops };
            for bar in 0..100 {
                let word = frame.number_word(&tape, bar / 64, &mut scratch)[bar % 64];
                let single = frame.point(&tape, bar, &Opening::NONE, &mut scratch);
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
                let tape = Tape { needs: vec![(true, true); ops.len()], ops };
                for bar in 0..100 {
                    let word = frame.truth_word(&tape, bar / 64, &mut scratch) >> (bar % 64) & 1;
                    let single = frame.point(&tape, bar, &Opening::NONE, &mut scratch);
                    assert_eq!(word == 1, single == 1.0, "{op:?} at {bar}, negated {negated}");
                }
            }
        }
    }

    #[test]
    fn bits_past_the_last_bar_are_clear() {
        let a = vec![1.0; 70];
        let frame = Frame { columns: &[&a], scalars: &[0.5], n_bars: 70 };
        let ops = vec![Op::Column { slot: 0, shift: None }, Op::Scalar(0), Op::Compare(Op2::Gt, 0, 1)];
        let tape = Tape { needs: vec![(true, true); 3], ops };
        assert_eq!(frame.truth_word(&tape, 1, &mut Scratch::default()), 0b11_1111);
    }
}

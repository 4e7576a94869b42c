//! Recursions that a strategy writes down. Twin of `recursion.cu`.
//!
//! Each value waits for the one before, so that bars cannot be computed side by side; trials can. What does not depend on the last value is
//! computed block of bars by block for each trial, and what is left bar by bar for several trials at once.

use multiversion::multiversion;

use super::frame::{Frame, Scratch, WORD};
use crate::graph::{Op1, Op2, Position};
use crate::plan::{Op, Tape};
use crate::point;

/// Trials side by side.
pub const LANES: usize = 8;

/// Words of a block: its values of all trials should stay in the first cache.
const WORDS: usize = 2;

/// A value of each trial.
type Lanes = [f64; LANES];

/// Writes recursions of several trials over one symbol out as columns: the first formula until it has a value, then always the other one. Where
/// that has none, the last value stays the last.
pub fn recursions(
    start: &Tape,
    next: &Tape,
    frames: &[Frame<'_>],
    outs: &mut [Vec<f64>],
    scratch: &mut Scratch,
) {
    let mut begin = 0;
    while let Some(frame) = frames.get(begin) {
        let formulas = [start, next].map(|tape| tape.pruned(frame.scalars));
        // Switches may leave other formulas to other trials.
        let is_same = |frame: &&Frame<'_>| {
            formulas[0] == start.pruned(frame.scalars) && formulas[1] == next.pruned(frame.scalars)
        };
        let n_same = frames[begin..].iter().take(LANES).take_while(is_same).count();
        let (frames, outs) = (&frames[begin..begin + n_same], &mut outs[begin..begin + n_same]);
        Recursion::new(&formulas[0], &formulas[1]).run(frames, outs, scratch);
        begin += n_same;
    }
}

/// One operation on registers.
#[derive(Clone, Copy)]
enum Step {
    Unary(Op1, usize),
    Binary(Op2, usize, usize),
    Select(usize, usize, usize),
}

/// A recursion taken apart. The registers are the last value, the scalars, the rows and the results of the steps, in this order.
struct Recursion<'a> {
    start: &'a Tape,
    /// What `next` reads that does not depend on the last value, and which of its operations are read.
    rows: Tape,
    roots: Vec<usize>,
    /// Scalars that are read.
    scalars: Vec<usize>,
    /// What depends on the last value.
    steps: Vec<Step>,
    /// The register of the next value.
    result: usize,
}

impl<'a> Recursion<'a> {
    fn new(start: &'a Tape, next: &Tape) -> Self {
        let ops = &next.ops;
        let mut depends = vec![false; ops.len()];
        for (at, op) in ops.iter().enumerate() {
            let mut is_dependent = matches!(op, Op::Position(Position::Itself));
            op.operands(|operand| is_dependent |= depends[operand]);
            depends[at] = is_dependent;
        }
        // What the steps read, and the result if it is none of theirs.
        let mut is_read = vec![false; ops.len()];
        if let Some(last) = is_read.last_mut() {
            *last = true;
        }
        for (op, _) in ops.iter().zip(&depends).filter(|(_, depends)| **depends) {
            op.operands(|operand| is_read[operand] = true);
        }
        let scalar = |op: &Op| match op {
            Op::Scalar(scalar) | Op::Truth(scalar) => Some(*scalar),
            _ => None,
        };
        let of_kind = |is_scalar: bool| {
            let is = |at: &usize| is_read[*at] && !depends[*at] && scalar(&ops[*at]).is_some() == is_scalar;
            (0..ops.len()).filter(is).collect::<Vec<usize>>()
        };
        let (constants, read) = (of_kind(true), of_kind(false));
        let (rows, roots) = next.cut(&read);
        let mut register = vec![0; ops.len()];
        for (number, at) in constants.iter().chain(&read).enumerate() {
            register[*at] = 1 + number;
        }
        let n_given = 1 + constants.len() + read.len();
        let mut steps = Vec::new();
        for at in (0..ops.len()).filter(|at| depends[*at]) {
            let of = |operand: usize| register[operand];
            let step = match ops[at] {
                Op::Unary(op, a) => Step::Unary(op, of(a)),
                Op::IsNa(a) => Step::Unary(Op1::IsNa, of(a)),
                Op::Not(a) => Step::Unary(Op1::Not, of(a)),
                Op::Binary(op, a, b) | Op::Compare(op, a, b) | Op::Logic(op, a, b) => {
                    Step::Binary(op, of(a), of(b))
                }
                Op::Select(c, a, b) | Op::SelectTruth(c, a, b) => Step::Select(of(c), of(a), of(b)),
                // The last value itself, which is the first register.
                Op::Position(_) | Op::Column { .. } | Op::Point { .. } | Op::Scalar(_) | Op::Truth(_) => {
                    continue;
                }
            };
            register[at] = n_given + steps.len();
            steps.push(step);
        }
        let scalars = constants.iter().filter_map(|at| scalar(&ops[*at])).collect();
        Self { start, rows, roots, scalars, steps, result: register.last().copied().unwrap_or(0) }
    }

    fn run(&self, frames: &[Frame<'_>], outs: &mut [Vec<f64>], scratch: &mut Scratch) {
        let (n_rows, first_row) = (self.roots.len(), 1 + self.scalars.len());
        let mut registers: Vec<Lanes> = vec![[point::NA; LANES]; first_row + n_rows + self.steps.len()];
        for (register, scalar) in registers[1..].iter_mut().zip(&self.scalars) {
            for (value, frame) in register.iter_mut().zip(frames) {
                *value = frame.scalars[*scalar];
            }
        }
        let mut rows: Vec<Lanes> = vec![[point::NA; LANES]; WORDS * WORD * n_rows];
        let mut starts: Vec<Lanes> = vec![[point::NA; LANES]; WORDS * WORD];
        let mut values = starts.clone();
        let n_bars = frames.first().map_or(0, |frame| frame.n_bars);
        let last_start = self.start.ops.len().saturating_sub(1);
        for first in (0..n_bars).step_by(WORDS * WORD) {
            let n = (n_bars - first).min(WORDS * WORD);
            let (word, n_words) = (first / WORD, n.div_ceil(WORD));
            for (lane, frame) in frames.iter().enumerate() {
                frame.rows(&self.rows, &self.roots, word, n_words, scratch, |row, bar, value| {
                    rows[bar * n_rows + row][lane] = value;
                });
                if registers[0][lane].is_nan() {
                    frame.rows(self.start, &[last_start], word, n_words, scratch, |_, bar, value| {
                        starts[bar][lane] = value;
                    });
                }
            }
            let block = Block { rows: &rows, n_rows, first_row, starts: &starts[..n], result: self.result };
            walk(&self.steps, &block, &mut registers, &mut values[..n]);
            for (lane, out) in outs.iter_mut().enumerate() {
                for (out, values) in out[first..first + n].iter_mut().zip(&values) {
                    *out = values[lane];
                }
            }
        }
    }
}

/// What a block of bars is given.
struct Block<'a> {
    /// By bar, the values that do not depend on the last one.
    rows: &'a [Lanes],
    n_rows: usize,
    /// Their first register.
    first_row: usize,
    /// The first formula, by bar; read only by trials that have no value yet.
    starts: &'a [Lanes],
    /// The register of the next value.
    result: usize,
}

/// Goes through the bars of a block.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn walk(steps: &[Step], block: &Block<'_>, registers: &mut [Lanes], out: &mut [Lanes]) {
    let Block { rows, n_rows, first_row, starts, result } = *block;
    let first_step = first_row + n_rows;
    for (bar, (out, start)) in out.iter_mut().zip(starts).enumerate() {
        registers[first_row..first_step].copy_from_slice(&rows[bar * n_rows..(bar + 1) * n_rows]);
        for (at, step) in steps.iter().enumerate() {
            registers[first_step + at] = match *step {
                Step::Unary(op, a) => unary(op, &registers[a]),
                Step::Binary(op, a, b) => binary(op, &registers[a], &registers[b]),
                Step::Select(c, a, b) => {
                    let (c, a, b) = (&registers[c], &registers[a], &registers[b]);
                    std::array::from_fn(|lane| point::select(c[lane], a[lane], b[lane]))
                }
            };
        }
        let next = registers[result];
        for lane in 0..LANES {
            let last = registers[0][lane];
            let value = if last.is_nan() { start[lane] } else { next[lane] };
            out[lane] = value;
            registers[0][lane] = if value.is_nan() { last } else { value };
        }
    }
}

/// A function of an operation and a lane, for all lanes; the operation is chosen once for them.
macro_rules! lanes {
    ($op:expr, [$($chosen:path),*], $function:expr) => {
        match $op {
            $($chosen => std::array::from_fn(|lane| $function($chosen, lane)),)*
        }
    };
}

#[inline(always)]
fn unary(op: Op1, a: &Lanes) -> Lanes {
    use Op1::{Abs, Ceil, Floor, IsNa, Neg, Not, Round, Sqrt};
    let function = |op: Op1, lane: usize| point::unary(op, a[lane]);
    lanes!(op, [Neg, Not, Abs, IsNa, Sqrt, Floor, Ceil, Round], function)
}

#[inline(always)]
fn binary(op: Op2, a: &Lanes, b: &Lanes) -> Lanes {
    use Op2::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Max, Min, Mul, Ne, Or, Sub};
    let function = |op: Op2, lane: usize| point::binary(op, a[lane], b[lane]);
    lanes!(op, [Add, Sub, Mul, Div, Min, Max, Lt, Le, Gt, Ge, Eq, Ne, And, Or], function)
}

#[cfg(test)]
mod tests {
    use super::super::formula::Formula;
    use super::super::frame::Opening;
    use super::*;

    /// The definition, bar by bar.
    fn plainly(start: &Tape, next: &Tape, frame: &Frame<'_>) -> Vec<f64> {
        let (start, next) = (Formula::new(start, frame), Formula::new(next, frame));
        let mut last = Opening::NONE;
        let mut values = Vec::new();
        let value = |bar: usize| {
            let formula = if last.entry.is_nan() { &start } else { &next };
            let value = formula.value(bar, &last, &mut values);
            if !value.is_nan() {
                last.entry = value;
            }
            value
        };
        (0..frame.n_bars).map(value).collect()
    }

    #[test]
    fn blocks_of_trials_have_the_values_of_the_definition() {
        let n_bars = 300;
        let x: Vec<f64> =
            (0..n_bars).map(|i| if i % 41 < 5 { f64::NAN } else { (i * 7 % 31) as f64 }).collect();
        let y: Vec<f64> =
            (0..n_bars).map(|i| if i < 140 { f64::NAN } else { (i % 13) as f64 - 6.0 }).collect();
        let columns = [x.as_slice(), y.as_slice()];
        let (x, y, before) = (
            Op::Column { slot: 0, shift: None },
            Op::Column { slot: 1, shift: None },
            Op::Column { slot: 0, shift: Some(1) },
        );
        let itself = Op::Position(Position::Itself);
        let cases = [
            // A stop that follows: `if(x[k] >= self, max(self, x - y), x - y)`.
            vec![
                before,
                itself.clone(),
                Op::Compare(Op2::Ge, 0, 1),
                x.clone(),
                y.clone(),
                Op::Binary(Op2::Sub, 3, 4),
                Op::Binary(Op2::Max, 1, 5),
                Op::Select(2, 6, 5),
            ],
            // Truths on both sides, a switch and a scalar: `if(x > y and s and not (self > k), -self, self + k)`.
            vec![
                x.clone(),
                y.clone(),
                Op::Compare(Op2::Gt, 0, 1),
                Op::Truth(2),
                Op::Logic(Op2::And, 2, 3),
                itself.clone(),
                Op::Scalar(0),
                Op::Compare(Op2::Gt, 5, 6),
                Op::Not(7),
                Op::Logic(Op2::And, 4, 8),
                Op::Unary(Op1::Neg, 5),
                Op::Binary(Op2::Add, 5, 6),
                Op::Select(9, 10, 11),
            ],
            // Nothing of the last value, a truth of nothing but rows, and the last value alone.
            vec![x.clone(), y.clone(), Op::Binary(Op2::Add, 0, 1)],
            vec![x.clone(), Op::IsNa(0), itself.clone(), y.clone(), Op::Select(1, 2, 3)],
            vec![itself],
            vec![Op::Scalar(0)],
        ];
        let scalars: Vec<[f64; 3]> = (0..11)
            .map(|at| [f64::from(at) - 3.0, f64::from(at % 4), f64::from(u8::from(at % 3 > 0))])
            .collect();
        let frames: Vec<Frame<'_>> = scalars
            .iter()
            .map(|scalars| Frame {
                columns: &columns,
                lazies: &[],
                tiles: &[],
                compared: &[],
                scalars,
                n_bars,
                block_words: 1,
            })
            .collect();
        let starts = [Tape::new(vec![x]), Tape::new(vec![y]), Tape::new(vec![Op::Scalar(0)])];
        for (start, next) in starts.iter().flat_map(|start| cases.iter().map(move |next| (start, next))) {
            let next = Tape::new(next.clone());
            let mut outs = vec![vec![-1.0; n_bars]; frames.len()];
            recursions(start, &next, &frames, &mut outs, &mut Scratch::default());
            let bits = |values: &[f64]| -> Vec<u64> {
                values.iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
            };
            for (at, (out, frame)) in outs.iter().zip(&frames).enumerate() {
                assert_eq!(bits(out), bits(&plainly(start, &next, frame)), "trial {at} of {next:?}");
            }
        }
    }
}

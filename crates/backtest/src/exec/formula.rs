//! A level's formula bound to one trial: columns and scalars looked up once, so that a trade costs a few operations.

use super::frame::{Frame, Opening, point_function};
use super::lazy::Lazy;
use crate::graph::{Func, Op1, Op2, Position};
use crate::plan::{Op, Tape};
use crate::point;

/// Something that needs no other value of the formula.
#[derive(Clone, Copy)]
enum Leaf<'a> {
    Column(&'a [f64], usize),
    Constant(f64),
    Position(Position),
}

impl Leaf<'_> {
    #[inline(always)]
    fn value(self, bar: usize, opening: &Opening) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Column(column, ago) => {
                if ago <= bar {
                    column[bar - ago]
                } else {
                    point::NA
                }
            }
            // A recursion opens no trade: its last value comes in that place.
            Self::Position(Position::Entry | Position::Itself) => opening.entry,
            Self::Position(Position::Stop) => opening.stop,
            Self::Position(Position::Risk) => opening.risk,
        }
    }
}

#[derive(Clone)]
enum Term<'a> {
    Leaf(Leaf<'a>),
    Lazy(&'a Lazy<'a>, usize),
    Point(Func, &'a [f64], Vec<f64>, usize),
    Unary(Op1, usize),
    Binary(Op2, usize, usize),
    Select(usize, usize, usize),
}

enum Form<'a> {
    /// One value.
    Leaf(Leaf<'a>),
    /// `a ∘ b`.
    Two(Op2, Leaf<'a>, Leaf<'a>),
    /// `a + factor × column`: most levels are a price and a multiple of a range. `a − b × c` is `a + (−b) × c`, bit for bit.
    Linear(Leaf<'a>, f64, &'a [f64], usize),
    /// `a ∘ (b ∘ c)`.
    Three(Op2, Leaf<'a>, Op2, Leaf<'a>, Leaf<'a>),
    /// Anything else, step by step.
    Steps(Vec<Term<'a>>),
}

/// A formula of one trial.
pub struct Formula<'a>(Form<'a>);

impl<'a> Formula<'a> {
    /// Binds a formula to the columns and scalars of a trial.
    pub fn new(tape: &Tape, frame: &Frame<'a>) -> Self {
        let tape = tape.pruned(frame.scalars);
        let ago = |shift: Option<usize>| match shift {
            None => Some(0),
            Some(scalar) if frame.scalars[scalar] >= 0.0 => {
                Some(frame.scalars[scalar].min(u32::MAX as f64) as usize)
            }
            Some(_) => None,
        };
        let terms: Vec<Term<'a>> = tape
            .ops
            .iter()
            .map(|op| match op {
                Op::Column { slot, shift } => match ago(*shift) {
                    Some(ago) => match frame.lazy(*slot) {
                        Some(lazy) => Term::Lazy(lazy, ago),
                        None => Term::Leaf(Leaf::Column(frame.columns[*slot], ago)),
                    },
                    None => Term::Leaf(Leaf::Constant(point::NA)),
                },
                Op::Point { func, input, arguments, shift } => match ago(*shift) {
                    Some(ago) => {
                        let arguments = arguments.iter().map(|scalar| frame.scalars[*scalar]).collect();
                        Term::Point(func, frame.columns[*input], arguments, ago)
                    }
                    None => Term::Leaf(Leaf::Constant(point::NA)),
                },
                Op::Scalar(scalar) | Op::Truth(scalar) => Term::Leaf(Leaf::Constant(frame.scalars[*scalar])),
                Op::Position(position) => Term::Leaf(Leaf::Position(*position)),
                Op::Unary(op, a) => Term::Unary(*op, *a),
                Op::IsNa(a) => Term::Unary(Op1::IsNa, *a),
                Op::Not(a) => Term::Unary(Op1::Not, *a),
                Op::Binary(op, a, b) | Op::Compare(op, a, b) | Op::Logic(op, a, b) => {
                    Term::Binary(*op, *a, *b)
                }
                Op::Select(c, a, b) | Op::SelectTruth(c, a, b) => Term::Select(*c, *a, *b),
            })
            .collect();
        let leaf = |at: usize| match &terms[at] {
            Term::Leaf(leaf) => Some(*leaf),
            _ => None,
        };
        let form = match terms.last() {
            Some(Term::Leaf(leaf)) => Some(Form::Leaf(*leaf)),
            Some(Term::Binary(op, a, b)) => match (leaf(*a), leaf(*b), &terms[*b]) {
                (Some(a), Some(b), _) => Some(Form::Two(*op, a, b)),
                (Some(a), None, Term::Binary(inner, b, c)) => match (leaf(*b), leaf(*c)) {
                    (Some(Leaf::Constant(k)), Some(Leaf::Column(column, ago)))
                    | (Some(Leaf::Column(column, ago)), Some(Leaf::Constant(k)))
                        if *inner == Op2::Mul && matches!(op, Op2::Add | Op2::Sub) =>
                    {
                        Some(Form::Linear(a, if *op == Op2::Add { k } else { -k }, column, ago))
                    }
                    (Some(b), Some(c)) => Some(Form::Three(*op, a, *inner, b, c)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        Self(form.unwrap_or(Form::Steps(terms)))
    }

    /// The value, if it is the same on every bar and for every trade.
    pub fn constant(&self) -> Option<f64> {
        match &self.0 {
            Form::Leaf(Leaf::Constant(value)) => Some(*value),
            _ => None,
        }
    }

    /// Factor and column, if it is the entry price plus a multiple of the column on the signal bar.
    pub fn multiple_from_entry(&self) -> Option<(f64, &'a [f64])> {
        match self.0 {
            Form::Linear(Leaf::Position(Position::Entry), factor, column, 0) => Some((factor, column)),
            _ => None,
        }
    }

    /// Relation, column and number, if it compares a column on the same bar with a number.
    pub fn comparison(&self) -> Option<(Op2, &'a [f64], f64)> {
        let (op, column, number) = match self.0 {
            Form::Two(op, Leaf::Column(column, 0), Leaf::Constant(number)) => (op, column, number),
            Form::Two(op, Leaf::Constant(number), Leaf::Column(column, 0)) => (op.mirrored(), column, number),
            _ => return None,
        };
        let compares = matches!(op, Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::Eq | Op2::Ne);
        compares.then_some((op, column, number))
    }

    /// Value at a bar; truth is 1, 0 or NaN.
    #[inline(always)]
    pub fn value(&self, bar: usize, opening: &Opening, values: &mut Vec<f64>) -> f64 {
        match &self.0 {
            Form::Leaf(leaf) => leaf.value(bar, opening),
            Form::Linear(a, factor, column, ago) => {
                a.value(bar, opening) + factor * if *ago <= bar { column[bar - ago] } else { point::NA }
            }
            Form::Two(op, a, b) => point::binary(*op, a.value(bar, opening), b.value(bar, opening)),
            Form::Three(op, a, inner, b, c) => {
                let right = point::binary(*inner, b.value(bar, opening), c.value(bar, opening));
                point::binary(*op, a.value(bar, opening), right)
            }
            Form::Steps(terms) => steps(terms, bar, opening, values),
        }
    }
}

/// A condition at one bar, read where it lies just now: for those that a formula cannot be bound to because only some bars of what it reads
/// are there.
pub fn value_at(tape: &Tape, frame: &Frame<'_>, bar: usize, values: &mut Vec<f64>) -> f64 {
    values.clear();
    for op in &tape.ops {
        let value = match op {
            Op::Column { slot, shift } => match frame.bar_ago(bar, *shift) {
                Some(bar) => frame.lazy(*slot).map_or_else(|| frame.at(*slot, bar), |lazy| lazy.at(bar)),
                None => point::NA,
            },
            Op::Point { func, input, arguments, shift } => match frame.bar_ago(bar, *shift) {
                Some(bar) => {
                    let arguments: Vec<f64> = arguments.iter().map(|scalar| frame.scalars[*scalar]).collect();
                    point_function(func, frame.columns[*input], &arguments, bar)
                }
                None => point::NA,
            },
            Op::Scalar(scalar) | Op::Truth(scalar) => frame.scalars[*scalar],
            Op::Position(_) => point::NA,
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

fn steps(terms: &[Term<'_>], bar: usize, opening: &Opening, values: &mut Vec<f64>) -> f64 {
    values.clear();
    for term in terms {
        let value = match term {
            Term::Leaf(leaf) => leaf.value(bar, opening),
            Term::Lazy(lazy, ago) => {
                if *ago <= bar {
                    lazy.at(bar - ago)
                } else {
                    point::NA
                }
            }
            Term::Point(func, x, arguments, ago) => {
                if *ago <= bar {
                    point_function(func, x, arguments, bar - ago)
                } else {
                    point::NA
                }
            }
            Term::Unary(op, a) => point::unary(*op, values[*a]),
            Term::Binary(op, a, b) => point::binary(*op, values[*a], values[*b]),
            Term::Select(c, a, b) => point::select(values[*c], values[*a], values[*b]),
        };
        values.push(value);
    }
    values.last().copied().unwrap_or(point::NA)
}

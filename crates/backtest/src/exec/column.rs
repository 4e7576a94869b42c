//! Computes one slot of the plan for one tuple of scalars.

use tidemill_market::indicator::{self, Moments, Prefix};

use super::frame::{Frame, Scratch, window};
use super::mask::Mask;
use crate::graph::Func;
use crate::plan::Tape;

/// What a slot holds.
#[derive(Debug)]
pub enum Item {
    /// One number per bar.
    Column(Vec<f64>),
    /// Prefix sums.
    Prefix(Prefix),
    /// One bit per bar: the condition is true.
    Mask(Mask),
    /// The same without an index, for a part of a condition. Bits past the last bar are undefined.
    Bits(Vec<u64>),
}

impl Item {
    /// Memory it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Column(column) => column.len() * 8,
            Self::Prefix(prefix) => prefix.bytes(),
            Self::Mask(mask) => mask.bytes(),
            Self::Bits(bits) => bits.len() * 8,
        }
    }
}

/// An input of a function: a series of numbers, prefix sums, or bits.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// Numbers.
    Column(&'a [f64]),
    /// Prefix sums.
    Prefix(&'a Prefix),
    /// Bits.
    Mask(&'a Mask),
}

impl<'a> Input<'a> {
    fn column(self) -> &'a [f64] {
        match self {
            Self::Column(column) => column,
            _ => unreachable!("the plan gives this function a column"),
        }
    }

    fn prefix(self) -> &'a Prefix {
        match self {
            Self::Prefix(prefix) => prefix,
            _ => unreachable!("the plan gives this function prefix sums"),
        }
    }

    fn bools(self, n_bars: usize) -> Vec<bool> {
        match self {
            Self::Mask(mask) => (0..n_bars).map(|bar| mask.at(bar)).collect(),
            _ => unreachable!("the plan gives this function a mask"),
        }
    }
}

/// Runs a function over its inputs.
pub fn call(func: Func, inputs: &[Input<'_>], arguments: &[f64], n_bars: usize) -> Item {
    let x = || inputs[0].column();
    let prefix = |moments| Item::Prefix(Prefix::new(inputs[0].column(), moments));
    match func {
        Func::PrefixSum => return prefix(Moments::Sum),
        Func::PrefixSquares => return prefix(Moments::SumSquares),
        Func::PrefixIndex => return prefix(Moments::SumIndex),
        _ => {}
    }
    let arg = |at: usize| window(arguments[at]);
    let bars = || (inputs[0].column(), inputs[1].column(), inputs[2].column());
    let mut out = vec![0.0; n_bars];
    let o = &mut out;
    match func {
        Func::PrefixSum | Func::PrefixSquares | Func::PrefixIndex => {}
        Func::Sma => indicator::sma(inputs[0].prefix(), arg(0), o),
        Func::Stddev => indicator::stddev(inputs[0].prefix(), arg(0), o),
        Func::StddevSample => indicator::stddev_sample(inputs[0].prefix(), arg(0), o),
        Func::Zscore => indicator::zscore(x(), inputs[1].prefix(), arg(0), o),
        Func::Lsma => indicator::lsma(inputs[0].prefix(), arg(0), o),
        Func::Wma => indicator::wma(inputs[0].prefix(), arg(0), o),
        Func::Ema => indicator::ema(x(), arg(0), o),
        Func::EmaSma => indicator::ema_sma(x(), arg(0), o),
        Func::Rma => indicator::rma(x(), arg(0), o),
        Func::Hma => indicator::hma(x(), arg(0), o),
        Func::Dema => indicator::dema(x(), arg(0), o),
        Func::Tema => indicator::tema(x(), arg(0), o),
        Func::Kama => indicator::kama(x(), arg(0), arg(1), arg(2), o),
        Func::TrueRange => {
            let (high, low, close) = bars();
            indicator::true_range(high, low, close, o);
        }
        Func::AtrWilder | Func::Adx | Func::PlusDi | Func::MinusDi | Func::Cci => {
            let (high, low, close) = bars();
            let function = match func {
                Func::AtrWilder => indicator::atr_wilder,
                Func::Adx => indicator::adx,
                Func::PlusDi => indicator::plus_di,
                Func::MinusDi => indicator::minus_di,
                _ => indicator::cci,
            };
            function(high, low, close, arg(0), o);
        }
        Func::Rsi => indicator::rsi(x(), arg(0), o),
        Func::Obv => indicator::obv(x(), inputs[1].column(), o),
        Func::Highest => indicator::highest(x(), arg(0), o),
        Func::Lowest => indicator::lowest(x(), arg(0), o),
        Func::SwingHigh => indicator::swing_high(x(), arg(0), arg(1), o),
        Func::SwingLow => indicator::swing_low(x(), arg(0), arg(1), o),
        Func::BarsSince => indicator::bars_since(&inputs[0].bools(n_bars), o),
        Func::ValueWhen => indicator::value_when(&inputs[0].bools(n_bars), inputs[1].column(), o),
        Func::Cum => indicator::cum(x(), o),
        Func::Atc => indicator::atc(x(), arg(0), arguments[1], arguments[2], o),
    }
    Item::Column(out)
}

/// Writes a formula out as a column.
pub fn formula(tape: &Tape, frame: &Frame<'_>, scratch: &mut Scratch) -> Item {
    Item::Column(frame.numbers(tape, scratch))
}

/// Writes a condition out as bits.
pub fn mask(tape: &Tape, frame: &Frame<'_>, scratch: &mut Scratch) -> Item {
    Item::Mask(Mask::new(frame.truth(tape, scratch)))
}

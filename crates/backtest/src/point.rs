//! Pointwise operations on single values: the definition that every faster form must equal bit for bit.
//!
//! Truth is a number here: 1 true, 0 false, NaN not available.

use crate::graph::{Op1, Op2};

/// The one NaN that results carry; x86 and CUDA make different payloads.
pub const NA: f64 = f64::NAN;

/// A truth value as a number.
#[inline(always)]
pub fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// Applies an operation of one operand.
#[inline(always)]
pub fn unary(op: Op1, a: f64) -> f64 {
    match op {
        Op1::Neg => -a,
        Op1::Not => 1.0 - a,
        Op1::Abs => a.abs(),
        Op1::IsNa => truth(a.is_nan()),
        Op1::Sqrt => a.sqrt(),
        Op1::Floor => a.floor(),
        Op1::Ceil => a.ceil(),
        Op1::Round => a.round_ties_even(),
    }
}

/// Applies an operation of two operands.
#[inline(always)]
pub fn binary(op: Op2, a: f64, b: f64) -> f64 {
    let known = |value: bool| if a.is_nan() || b.is_nan() { NA } else { truth(value) };
    match op {
        Op2::Add => a + b,
        Op2::Sub => a - b,
        Op2::Mul => a * b,
        Op2::Div => a / b,
        Op2::Min => minimum(a, b),
        Op2::Max => maximum(a, b),
        Op2::Lt => known(a < b),
        Op2::Le => known(a <= b),
        Op2::Gt => known(a > b),
        Op2::Ge => known(a >= b),
        Op2::Eq => known(a == b),
        Op2::Ne => known(a != b),
        Op2::And => {
            if a == 0.0 || b == 0.0 {
                0.0
            } else if a == 1.0 && b == 1.0 {
                1.0
            } else {
                NA
            }
        }
        Op2::Or => {
            if a == 1.0 || b == 1.0 {
                1.0
            } else if a == 0.0 && b == 0.0 {
                0.0
            } else {
                NA
            }
        }
    }
}

/// Compare-and-select minimum; not available if either is.
#[inline(always)]
pub fn minimum(a: f64, b: f64) -> f64 {
    if a < b {
        a
    } else if b <= a {
        b
    } else {
        NA
    }
}

/// Compare-and-select maximum; not available if either is.
#[inline(always)]
pub fn maximum(a: f64, b: f64) -> f64 {
    if a > b {
        a
    } else if b >= a {
        b
    } else {
        NA
    }
}

/// `if(condition, a, b)`.
#[inline(always)]
pub fn select(condition: f64, a: f64, b: f64) -> f64 {
    if condition == 1.0 {
        a
    } else if condition == 0.0 {
        b
    } else {
        NA
    }
}

/// A duration in bars: at least one, ties to even.
pub fn duration_in_bars(duration_ms: i64, timeframe_ms: i64) -> f64 {
    let bars = (duration_ms as f64 / timeframe_ms.max(1) as f64).round_ties_even();
    if bars < 1.0 { 1.0 } else { bars }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logic_is_three_valued() {
        assert_eq!(binary(Op2::And, 0.0, NA), 0.0);
        assert_eq!(binary(Op2::Or, NA, 1.0), 1.0);
        assert!(binary(Op2::And, 1.0, NA).is_nan());
        assert!(binary(Op2::Or, 0.0, NA).is_nan());
        assert!(unary(Op1::Not, NA).is_nan());
        assert!(binary(Op2::Ne, NA, 1.0).is_nan());
        assert_eq!(unary(Op1::IsNa, NA), 1.0);
    }

    #[test]
    fn extremes_are_not_available_if_either_is() {
        assert!(minimum(NA, 1.0).is_nan() && minimum(1.0, NA).is_nan() && maximum(NA, 1.0).is_nan());
        assert_eq!((minimum(2.0, 1.0), maximum(2.0, 1.0)), (1.0, 2.0));
    }

    #[test]
    fn durations_round_half_to_even_and_never_to_nothing() {
        assert_eq!(duration_in_bars(7 * 60_000, 15 * 60_000), 1.0);
        assert_eq!(duration_in_bars(150, 60), 2.0);
        assert_eq!(duration_in_bars(0, 60), 1.0);
    }
}

//! Numbers of about 106 significant bits, as the unevaluated sum of two `f64`.
//!
//! Built from the classic error-free transformations (Knuth's TwoSum, Dekker's FastTwoSum, Veltkamp's split
//! and Dekker's TwoProd) with additions and multiplications only: a fused multiply-add would be shorter, but
//! then every platform and every twin of this code would have to have one. Operation order is part of the
//! specification.

/// `hi + lo`, where `hi` is the sum rounded to `f64` and `lo` is what the rounding lost.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(crate) struct DoubleDouble {
    pub hi: f64,
    pub lo: f64,
}

/// Knuth: `hi + lo == a + b` exactly, for any order of magnitude of the two.
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> DoubleDouble {
    let hi = a + b;
    let b_part = hi - a;
    let a_part = hi - b_part;
    DoubleDouble { hi, lo: (a - a_part) + (b - b_part) }
}

/// Dekker: the same for `|a| >= |b|`, at half the price.
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> DoubleDouble {
    let hi = a + b;
    DoubleDouble { hi, lo: b - (hi - a) }
}

/// Veltkamp: two halves of at most 26 bits, whose products are exact.
#[inline(always)]
fn split(a: f64) -> (f64, f64) {
    let c = 134_217_729.0 * a;
    let hi = c - (c - a);
    (hi, a - hi)
}

/// Dekker: `hi + lo == a * b` exactly, unless it over- or underflows.
#[inline(always)]
pub(crate) fn two_prod(a: f64, b: f64) -> DoubleDouble {
    let hi = a * b;
    let (a_hi, a_lo) = split(a);
    let (b_hi, b_lo) = split(b);
    let lo = (((a_hi * b_hi - hi) + a_hi * b_lo) + a_lo * b_hi) + a_lo * b_lo;
    DoubleDouble { hi, lo }
}

impl DoubleDouble {
    /// `self + b`.
    #[inline(always)]
    pub fn add_f64(self, b: f64) -> Self {
        let s = two_sum(self.hi, b);
        fast_two_sum(s.hi, s.lo + self.lo)
    }

    /// `self + b`.
    #[inline(always)]
    pub fn add(self, b: Self) -> Self {
        let s = two_sum(self.hi, b.hi);
        fast_two_sum(s.hi, s.lo + (self.lo + b.lo))
    }

    /// `self - b`. Off by a few units of 2^-106 of the larger operand, which is what the operands themselves
    /// are off by.
    #[inline(always)]
    pub fn sub(self, b: Self) -> Self {
        self.add(Self { hi: -b.hi, lo: -b.lo })
    }

    /// `self * b`.
    #[inline(always)]
    pub fn mul_f64(self, b: f64) -> Self {
        let p = two_prod(self.hi, b);
        fast_two_sum(p.hi, p.lo + self.lo * b)
    }

    /// `self * self`.
    #[inline(always)]
    pub fn square(self) -> Self {
        let p = two_prod(self.hi, self.hi);
        fast_two_sum(p.hi, p.lo + 2.0 * (self.hi * self.lo))
    }

    /// `self / divisor`, rounded once.
    ///
    /// A first quotient from the reciprocal, then one Newton correction whose remainder is computed exactly;
    /// no division in the loop, so that it vectorises well.
    #[inline(always)]
    pub fn divide(self, divisor: f64, reciprocal: f64) -> f64 {
        let q = self.hi * reciprocal;
        let p = two_prod(q, divisor);
        let remainder = ((self.hi - p.hi) - p.lo) + self.lo;
        q + remainder * reciprocal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_keeps_what_rounding_loses() {
        let s = two_sum(1e16, 1.5);
        assert_eq!((s.hi, s.lo), (1e16 + 2.0, -0.5));
        let s = two_sum(1.5, 1e16);
        assert_eq!((s.hi, s.lo), (1e16 + 2.0, -0.5));
    }

    #[test]
    fn product_keeps_what_rounding_loses() {
        // (2^27 + 1)^2 = 2^54 + 2^28 + 1 needs 55 bits.
        let p = two_prod(134_217_729.0, 134_217_729.0);
        assert_eq!(p.hi as i128 + p.lo as i128, 134_217_729_i128 * 134_217_729);
        assert_ne!(p.lo, 0.0);
    }

    #[test]
    fn quotient_is_correctly_rounded() {
        // Exact rational check in integers: |q * d - s| <= |next(q) * d - s| on both sides.
        let mut state = 7_u64;
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let s = (state >> 12) as i128; // below 2^52, exact in f64
            let d = 1 + (state % 997) as i128;
            let q = DoubleDouble { hi: s as f64, lo: 0.0 }.divide(d as f64, 1.0 / d as f64);
            assert_eq!(q.to_bits(), (s as f64 / d as f64).to_bits(), "{s} / {d}");
        }
    }

    #[test]
    fn square_and_product_agree_with_integers() {
        let a = DoubleDouble { hi: 9_007_199_254_740_993_i64 as f64, lo: 0.5 };
        let sq = a.square();
        // (2^53 + 0.5)^2 = 2^106 + 2^53 + 0.25
        assert_eq!(sq.hi, 2f64.powi(106));
        assert_eq!(sq.lo, 2f64.powi(53));
        let m = a.mul_f64(3.0);
        assert_eq!(m.hi as i128, 27_021_597_764_222_976);
        assert_eq!(m.hi + m.lo, 27_021_597_764_222_976.0 + 1.5);
    }
}

//! Counts that are narrow enough for whole rows of them to be added and compared at once, and the instructions for that.
//!
//! Sums and minima are plain loops, which the compiler turns into vectors; a search compiles as a whole for each instruction set (see [`dispatch`]).
//! What it does not find by itself, bits of a comparison, is written out; a plain loop says what they all compute.

/// Counts that are compared together.
pub(crate) const LANES: usize = 64;

/// How many neighbours of a vertex have a colour: a number that is narrow enough for the graph at hand. Its highest bit is a ban.
pub(crate) trait Count: Copy + Ord + Send + Sync + 'static {
    /// No neighbours.
    const ZERO: Self;
    /// The bit of a ban.
    const BAN: Self;
    /// Above all counts and costs.
    const NONE: Self;
    /// The largest count.
    const LARGEST: u32;

    /// As a number.
    fn get(self) -> u32;

    /// From a number that fits.
    fn from_u32(number: u32) -> Self;

    /// The count without the bit of a ban.
    fn without_ban(self) -> u32;

    /// The count with the bit of a ban.
    fn with_ban(self) -> Self;

    /// Adds a byte.
    fn plus(self, byte: u8) -> Self;

    /// Takes a byte away.
    fn minus(self, byte: u8) -> Self;

    /// The cost of a move: the sum, or [`NONE`](Self::NONE) if that is less.
    fn shifted(self, shift: Self) -> Self;

    /// A bit for each count that is at most `threshold`.
    fn at_most<I: Instructions>(chunk: &[Self; LANES], threshold: Self) -> u64;
}

macro_rules! count {
    ($count:ty, $vector:ident) => {
        impl Count for $count {
            const ZERO: Self = 0;
            const BAN: Self = <$count>::MAX / 2 + 1;
            const NONE: Self = <$count>::MAX;
            const LARGEST: u32 = <$count>::MAX as u32 / 2 - 1;

            #[inline(always)]
            fn get(self) -> u32 {
                u32::from(self)
            }

            #[inline(always)]
            fn from_u32(number: u32) -> Self {
                number as Self
            }

            #[inline(always)]
            fn without_ban(self) -> u32 {
                u32::from(self & !Self::BAN)
            }

            #[inline(always)]
            fn with_ban(self) -> Self {
                self | Self::BAN
            }

            #[inline(always)]
            fn plus(self, byte: u8) -> Self {
                self.wrapping_add(<$count>::from(byte))
            }

            #[inline(always)]
            fn minus(self, byte: u8) -> Self {
                self.wrapping_sub(<$count>::from(byte))
            }

            #[inline(always)]
            fn shifted(self, shift: Self) -> Self {
                self.saturating_add(shift)
            }

            #[inline(always)]
            fn at_most<I: Instructions>(chunk: &[Self; LANES], threshold: Self) -> u64 {
                I::$vector(chunk, threshold)
            }
        }
    };
}

count!(u8, bytes_at_most);
count!(u16, words_at_most);

/// An instruction set. Its methods may be called only where the processor has it; all are inlined, so that a function compiled for it holds
/// their instructions.
pub(crate) trait Instructions {
    fn bytes_at_most(chunk: &[u8; LANES], threshold: u8) -> u64;
    fn words_at_most(chunk: &[u16; LANES], threshold: u16) -> u64;
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn at_most_plain<C: Count>(chunk: &[C; LANES], threshold: C) -> u64 {
    chunk.iter().enumerate().fold(0, |bits, (lane, count)| bits | u64::from(*count <= threshold) << lane)
}

/// What every processor of the target has.
pub(crate) struct Baseline;

#[cfg(not(target_arch = "x86_64"))]
impl Instructions for Baseline {
    fn bytes_at_most(chunk: &[u8; LANES], threshold: u8) -> u64 {
        at_most_plain(chunk, threshold)
    }

    fn words_at_most(chunk: &[u16; LANES], threshold: u16) -> u64 {
        at_most_plain(chunk, threshold)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Baseline, Instructions, LANES};

    /// AVX2.
    pub(crate) struct Avx2;

    /// AVX-512 F and BW.
    pub(crate) struct Avx512;

    impl Instructions for Baseline {
        #[inline(always)]
        fn bytes_at_most(chunk: &[u8; LANES], threshold: u8) -> u64 {
            let mut bits = 0;
            for part in 0..4 {
                // SAFETY: SSE2 is part of x86-64, and the sixteen bytes read lie inside the chunk.
                let some = unsafe {
                    let counts = _mm_loadu_si128(chunk.as_ptr().add(part * 16).cast());
                    let above = _mm_subs_epu8(counts, _mm_set1_epi8(threshold as i8));
                    _mm_movemask_epi8(_mm_cmpeq_epi8(above, _mm_setzero_si128())) as u32
                };
                bits |= u64::from(some) << (part * 16);
            }
            bits
        }

        #[inline(always)]
        fn words_at_most(chunk: &[u16; LANES], threshold: u16) -> u64 {
            let mut bits = 0;
            for part in 0..8 {
                // SAFETY: SSE2 is part of x86-64, and the eight words read lie inside the chunk.
                let some = unsafe {
                    let counts = _mm_loadu_si128(chunk.as_ptr().add(part * 8).cast());
                    let above = _mm_subs_epu16(counts, _mm_set1_epi16(threshold as i16));
                    let equal = _mm_cmpeq_epi16(above, _mm_setzero_si128());
                    _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) as u32
                };
                bits |= u64::from(some) << (part * 8);
            }
            bits
        }
    }

    impl Instructions for Avx2 {
        #[inline(always)]
        fn bytes_at_most(chunk: &[u8; LANES], threshold: u8) -> u64 {
            let mut bits = 0;
            for part in 0..2 {
                // SAFETY: the caller knows that there is AVX2, and the 32 bytes read lie inside the chunk.
                let some = unsafe {
                    let counts = _mm256_loadu_si256(chunk.as_ptr().add(part * 32).cast());
                    let above = _mm256_subs_epu8(counts, _mm256_set1_epi8(threshold as i8));
                    _mm256_movemask_epi8(_mm256_cmpeq_epi8(above, _mm256_setzero_si256())) as u32
                };
                bits |= u64::from(some) << (part * 32);
            }
            bits
        }

        #[inline(always)]
        fn words_at_most(chunk: &[u16; LANES], threshold: u16) -> u64 {
            Baseline::words_at_most(chunk, threshold)
        }
    }

    impl Instructions for Avx512 {
        #[inline(always)]
        fn bytes_at_most(chunk: &[u8; LANES], threshold: u8) -> u64 {
            // SAFETY: the caller knows that there is AVX-512 BW, and the chunk is what is read.
            unsafe {
                let counts = _mm512_loadu_si512(chunk.as_ptr().cast());
                _mm512_cmple_epu8_mask(counts, _mm512_set1_epi8(threshold as i8))
            }
        }

        #[inline(always)]
        fn words_at_most(chunk: &[u16; LANES], threshold: u16) -> u64 {
            let mut bits = 0;
            for part in 0..2 {
                // SAFETY: the caller knows that there is AVX-512 BW, and the 32 words read lie inside the chunk.
                let some = unsafe {
                    let counts = _mm512_loadu_si512(chunk.as_ptr().add(part * 32).cast());
                    _mm512_cmple_epu16_mask(counts, _mm512_set1_epi16(threshold as i16))
                };
                bits |= u64::from(some) << (part * 32);
            }
            bits
        }
    }
}

/// Something that is done with the best instruction set of the processor.
pub(crate) trait Work {
    type Output;

    /// Does it. Implementations are `#[inline(always)]`, down to the loops that count.
    fn with<I: Instructions>(self) -> Self::Output;
}

/// Does it with the best instruction set of the processor.
pub(crate) fn dispatch<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2")]
        fn avx512<W: Work>(work: W) -> W::Output {
            work.with::<Avx512>()
        }
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        fn avx2<W: Work>(work: W) -> W::Output {
            work.with::<Avx2>()
        }
        let has_avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        if has_avx2 && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has these instructions.
            return unsafe { avx512(work) };
        }
        if has_avx2 {
            // SAFETY: the processor has these instructions.
            return unsafe { avx2(work) };
        }
    }
    work.with::<Baseline>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    struct Compare;

    impl Work for Compare {
        type Output = ();

        #[inline(always)]
        fn with<I: Instructions>(self) {
            let random = Random::new(1, 1);
            for case in 0..2_000_u64 {
                let bits = |lane: usize| random.bits(case * 100 + lane as u64);
                let bytes: [u8; LANES] = std::array::from_fn(|lane| bits(lane) as u8);
                let threshold = random.below(case, 256) as u8;
                assert_eq!(u8::at_most::<I>(&bytes, threshold), at_most_plain(&bytes, threshold));
                let words: [u16; LANES] = std::array::from_fn(|lane| bits(lane) as u16);
                let threshold = random.bits(case) as u16;
                assert_eq!(u16::at_most::<I>(&words, threshold), at_most_plain(&words, threshold));
            }
        }
    }

    #[test]
    fn every_instruction_set_says_what_the_plain_loop_says() {
        dispatch(Compare);
        Compare.with::<Baseline>();
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            Compare.with::<Avx2>();
        }
    }
}

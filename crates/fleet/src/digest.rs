//! A digest of numbers by their bits.
//!
//! It tells results and points apart that differ by chance: a bit that flipped, a row in the wrong place, another sequence. It is no defence
//! against somebody who makes two of them alike, and it costs a nanosecond a number, because the coordinator computes it for all points.

/// The bits of a value, one pattern for all that is not a number.
pub(crate) fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// A digest of columns of values.
pub(crate) fn digest<'a>(columns: impl Iterator<Item = &'a [f64]>) -> u64 {
    of_words(columns.flat_map(|column| {
        let len = std::iter::once(column.len() as u64);
        len.chain(column.iter().map(|value| bits(*value)))
    }))
}

/// A digest of a text.
pub(crate) fn digest_text(text: &str) -> u64 {
    of_words(text.bytes().map(u64::from))
}

fn of_words(words: impl Iterator<Item = u64>) -> u64 {
    // Xor, multiply by an odd number and rotate are each one-to-one in the state, so that no bit of what came before is lost.
    let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
    let state = words.fold(0x9e37_79b9_7f4a_7c15, mix);
    state ^ state >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_knows_every_bit_every_place_and_the_cut_into_columns() {
        let of = |columns: &[&[f64]]| digest(columns.iter().copied());
        let base = of(&[&[1.0, 2.0], &[3.0, f64::NAN]]);
        assert_eq!(base, of(&[&[1.0, 2.0], &[3.0, -f64::NAN]]), "all that is not a number is alike");
        assert_ne!(base, of(&[&[1.0, 2.0], &[f64::from_bits(3.0_f64.to_bits() ^ 1), f64::NAN]]));
        assert_ne!(base, of(&[&[2.0, 1.0], &[3.0, f64::NAN]]));
        assert_ne!(base, of(&[&[1.0], &[2.0, 3.0, f64::NAN]]));
        assert_ne!(of(&[&[0.0]]), of(&[&[-0.0]]));
    }
}

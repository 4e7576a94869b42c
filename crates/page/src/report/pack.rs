//! Compact text forms for long number columns.
//!
//! Prices are whole numbers of the smallest decimal step, stored as differences in a variable-length byte code; about
//! eight bytes a bar and exact for quoted prices, where JSON numbers would take thirty. Regular index and time columns
//! are runs. Everything becomes base64, because the page is text.

/// Standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let sextet = (word >> (18 - 6 * i)) & 63;
            out.push(if i > chunk.len() { '=' } else { char::from(ALPHABET[sextet as usize]) });
        }
    }
    out
}

/// Little-endian `f32` values in base64; seven digits are more than a chart can show.
pub fn floats(values: impl Iterator<Item = f64>) -> String {
    let bytes: Vec<u8> = values.flat_map(|value| (value as f32).to_le_bytes()).collect();
    base64(&bytes)
}

/// A column as flat triples (first, step, count), greedily the longest runs of equal steps.
pub fn runs(values: &[i64]) -> Vec<i64> {
    let mut out = Vec::new();
    let mut i = 0;
    while i < values.len() {
        let step = values.get(i + 1).map_or(0, |next| next.wrapping_sub(values[i]));
        let mut end = i + 1;
        while end < values.len() && values[end].wrapping_sub(values[end - 1]) == step {
            end += 1;
        }
        out.extend([values[i], step, (end - i) as i64]);
        i = end;
    }
    out
}

/// A number rounded to ten significant digits, so that it is short as JSON; non-finite becomes NaN (JSON `null`).
pub fn short(value: f64) -> f64 {
    if value.is_finite() { format!("{value:.9e}").parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// One bar to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Opening price.
    pub open: f64,
    /// Highest price.
    pub high: f64,
    /// Lowest price.
    pub low: f64,
    /// Closing price.
    pub close: f64,
}

impl Bar {
    /// The four prices.
    fn prices(&self) -> [f64; 4] {
        [self.open, self.high, self.low, self.close]
    }
}

/// Number of decimals that writes all prices of the bars exactly, or else keeps nine significant digits of the
/// largest.
pub fn decimals(bars: &[Bar]) -> u32 {
    let largest =
        bars.iter().flat_map(Bar::prices).filter(|p| p.is_finite()).fold(0.0f64, |a, p| a.max(p.abs()));
    if largest == 0.0 {
        return 2;
    }
    let most = (8.0 - largest.log10().floor()).clamp(0.0, 15.0) as u32;
    let mut needed = 0;
    for price in bars.iter().flat_map(Bar::prices).filter(|p| p.is_finite()) {
        while needed < most && !is_whole(price, needed) {
            needed += 1;
        }
    }
    needed
}

/// Whether a price is a whole number of steps of 10^-decimals, up to rounding.
fn is_whole(price: f64, decimals: u32) -> bool {
    let scaled = price * 10f64.powi(decimals as i32);
    (scaled - scaled.round()).abs() <= 1e-9 * scaled.abs().max(1.0)
}

/// The bars as base64 of variable-length integers: per bar open − previous close, close − open, high − open and
/// open − low, each in steps of 10^-decimals, signed values folded to even and odd. A non-finite price repeats the
/// last known close.
pub fn bars(bars: &[Bar], decimals: u32) -> String {
    let scale = 10f64.powi(decimals as i32);
    let mut bytes = Vec::with_capacity(bars.len() * 9);
    let mut previous = 0i64;
    for bar in bars {
        let step = |price: f64| if price.is_finite() { (price * scale).round() as i64 } else { previous };
        let [open, high, low, close] = bar.prices().map(step);
        for difference in [
            open.saturating_sub(previous),
            close.saturating_sub(open),
            high.saturating_sub(open),
            open.saturating_sub(low),
        ] {
            push_varint(&mut bytes, difference);
        }
        previous = close;
    }
    base64(&bytes)
}

/// Appends a signed integer, seven bits a byte, lowest first, the high bit meaning "more follows".
fn push_varint(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = (value.wrapping_shl(1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(price: f64) -> Bar {
        Bar { open: price, high: price, low: price, close: price }
    }

    #[test]
    fn base64_matches_the_published_vectors() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn runs_expand_to_the_column() {
        for column in [vec![], vec![7], vec![0, 10, 20, 30, 90, 100, 110, 111], vec![5, 5, 5, 1]] {
            let mut back = Vec::new();
            for run in runs(&column).chunks(3) {
                back.extend((0..run[2]).map(|i| run[0] + i * run[1]));
            }
            assert_eq!(back, column);
        }
        assert_eq!(runs(&[0, 1, 2, 3]), [0, 1, 4]);
    }

    #[test]
    fn decimals_are_those_of_the_quotes() {
        assert_eq!(decimals(&[flat(1.0), flat(1.25)]), 2);
        assert_eq!(decimals(&[flat(67_234.5)]), 1);
        assert_eq!(decimals(&[flat(0.000_012_34)]), 8);
        assert_eq!(decimals(&[flat(100.0)]), 0);
        assert_eq!(decimals(&[flat(100.0 / 3.0)]), 7);
        assert_eq!(decimals(&[flat(f64::NAN)]), 2);
    }

    #[test]
    fn varints_fold_signs_and_carry() {
        let mut bytes = Vec::new();
        for value in [0, -1, 1, 63, 64, -65] {
            push_varint(&mut bytes, value);
        }
        assert_eq!(bytes, [0, 1, 2, 126, 0x80, 1, 0x81, 1]);
    }

    #[test]
    fn non_finite_price_repeats_the_close() {
        let broken = Bar { open: f64::NAN, high: f64::INFINITY, low: f64::NAN, close: f64::NAN };
        assert_eq!(bars(&[flat(1.5), broken], 1), bars(&[flat(1.5), flat(1.5)], 1));
    }

    #[test]
    fn short_keeps_ten_digits() {
        assert_eq!(short(1.0 / 3.0), 0.333_333_333_3);
        assert_eq!(short(0.25), 0.25);
        assert!(short(f64::INFINITY).is_nan());
    }
}

//! Numbers for people, by one rule for tables, messages and the monitor.

/// At least three significant digits, with trailing zeros, so that the numbers of a column align; `–` if the value is not finite.
pub fn aligned(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !value.is_finite() => return "–".into(),
        _ if value.fract() == 0.0 && size < 1e7 => 0,
        s if !(1e-4..1e7).contains(&s) => return format!("{value:.3e}"),
        s if s >= 1e3 => 0,
        s if s >= 1e2 => 1,
        s if s >= 1e1 => 2,
        s if s >= 1e-1 => 3,
        s if s >= 1e-2 => 4,
        s if s >= 1e-3 => 5,
        _ => 6,
    };
    format!("{value:.decimals$}")
}

/// The same without trailing zeros, for running text.
pub fn short(value: f64) -> String {
    let text = aligned(value);
    match text.split_once('e') {
        Some((digits, power)) => format!("{}e{power}", without_zeros(digits)),
        None => without_zeros(&text).to_owned(),
    }
}

/// Digits without the zeros at the end of a fraction: `1.5` of `1.50`.
pub fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// A count with thousands separated: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 bar`, `2 bars`.
pub fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// A time for people: `0.42 s`, `12.3 s`, `4 min 7 s`, `2 h 5 min`.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        _ if !seconds.is_finite() || seconds < 0.0 => "–".into(),
        s if s < 10.0 => format!("{s:.2} s"),
        s if s < 120.0 => format!("{s:.1} s"),
        _ if whole < 7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Reads a count as people write it: `20000`, `20_000`, `20,000`, `1e6`, `2.5e5`, `10k`, `1.5M`; `None` if it is no whole number.
pub fn parse_count(text: &str) -> Option<u64> {
    let plain: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    if let Ok(count) = plain.parse::<u64>() {
        return Some(count);
    }
    let (digits, factor) = match plain.char_indices().last()? {
        (at, 'k' | 'K') => (&plain[..at], 1e3),
        (at, 'm' | 'M') => (&plain[..at], 1e6),
        (at, 'g' | 'G' | 'b' | 'B') => (&plain[..at], 1e9),
        _ => (plain.as_str(), 1.0),
    };
    // `inf`, `nan` and the like are numbers to Rust, and to nobody who counts.
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<f64>().ok()? * factor;
    // Decimal fractions are not exact: 0.3M is no whole number to the last bit.
    let count = value.round();
    let is_whole = (value - count).abs() <= 1e-9 * count && count < 9e15;
    is_whole.then_some(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_more() {
        let rows = [
            (3.0, "3", "3"),
            (1.93, "1.930", "1.93"),
            (172_032.0, "172032", "172032"),
            (1_234.5, "1234", "1234"),
            (-210.0, "-210", "-210"),
            (100.04, "100.0", "100"),
            (0.123_456, "0.123", "0.123"),
            (0.0123, "0.0123", "0.0123"),
            (0.000_5, "0.000500", "0.0005"),
            (1.9e8, "1.900e8", "1.9e8"),
            (1.5e-9, "1.500e-9", "1.5e-9"),
            (f64::NAN, "–", "–"),
            (f64::INFINITY, "–", "–"),
        ];
        for (value, with_zeros, without) in rows {
            assert_eq!((aligned(value).as_str(), short(value).as_str()), (with_zeros, without));
        }
    }

    #[test]
    fn times_have_the_units_that_people_use() {
        let rows = [
            (0.4211, "0.42 s"),
            (12.34, "12.3 s"),
            (247.4, "4 min 7 s"),
            (7500.0, "2 h 5 min"),
            (f64::NAN, "–"),
        ];
        for (value, text) in rows {
            assert_eq!(seconds(value), text);
        }
        assert_eq!(seconds(119.99), "120.0 s");
    }

    #[test]
    fn counts_are_read_as_people_write_them() {
        let rows = [
            ("20000", 20_000),
            ("20_000", 20_000),
            ("20,000", 20_000),
            ("1e6", 1_000_000),
            ("2.5e5", 250_000),
            ("1E3", 1_000),
            ("10k", 10_000),
            ("1.5M", 1_500_000),
            ("0.3m", 300_000),
            (" 2M ", 2_000_000),
            ("1b", 1_000_000_000),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, count) in rows {
            assert_eq!(parse_count(text), Some(count), "{text}");
        }
        for text in [
            "", "k", "1.5", "1e-3", "-1", "-1k", "inf", "nan", "1e400", "10 k x", "1kk", "0x10", "1e16",
            "+5k",
        ] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    #[test]
    fn counts_have_their_thousands_separated() {
        assert_eq!([count(0), count(999), count(1_000)], ["0", "999", "1,000"]);
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!([counted(1, "bar"), counted(2_000, "bar")], ["1 bar", "2,000 bars"]);
    }
}

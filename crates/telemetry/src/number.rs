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
    fn counts_have_their_thousands_separated() {
        assert_eq!([count(0), count(999), count(1_000)], ["0", "999", "1,000"]);
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!([counted(1, "bar"), counted(2_000, "bar")], ["1 bar", "2,000 bars"]);
    }
}

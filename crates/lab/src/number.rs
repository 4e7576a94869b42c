//! Numbers for people.

/// About four significant digits; `–` for "not defined".
pub fn short(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".into() };
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e7 {
        return format!("{value:.0}");
    }
    match size {
        s if s >= 1e7 => format!("{value:.3e}"),
        s if s >= 1_000.0 => format!("{value:.0}"),
        s if s >= 100.0 => format!("{value:.1}"),
        s if s >= 10.0 => format!("{value:.2}"),
        s if s >= 0.01 => format!("{value:.3}"),
        s if s >= 0.0001 => format!("{value:.6}"),
        _ => format!("{value:.3e}"),
    }
}

/// A count with thousands separated.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
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

/// A metric as reports show it: those labelled `[%]` in per cent.
pub fn metric(label: &str, value: Option<f64>) -> String {
    match value {
        Some(value) if label.ends_with("[%]") => format!("{:.2}", value * 100.0),
        value => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_but_tell() {
        assert_eq!(short(Some(3.0)), "3");
        assert_eq!(short(Some(0.123_456)), "0.123");
        assert_eq!(short(Some(1.5e-9)), "1.500e-9");
        assert_eq!(short(None), "–");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(metric("Return [%]", Some(0.1234)), "12.34");
    }
}

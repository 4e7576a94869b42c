//! Numbers as spreadsheets and brokers write them.

/// How a file separates decimals, which follows from its delimiter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decimal {
    /// `1234.5`; a comma inside a quoted cell groups thousands.
    Point,
    /// `1234,5` is accepted too, as files delimited by semicolons or tabs often have it.
    PointOrComma,
}

impl Decimal {
    pub(crate) fn beside(delimiter: u8) -> Self {
        if delimiter == b',' { Decimal::Point } else { Decimal::PointOrComma }
    }
}

/// Whether a cell says "nothing here" in one of the usual ways.
pub(crate) fn is_null(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    match cell.len() {
        0 => true,
        1 => matches!(cell[0], b'-' | b'.' | b'?'),
        2 => cell.eq_ignore_ascii_case(b"na") || cell == b"\\N" || cell == b"--",
        3 => [b"nan", b"n/a"].iter().any(|null| cell.eq_ignore_ascii_case(*null)),
        4 => {
            [b"null", b"none", b"#n/a", b"-nan", b"<na>"].iter().any(|null| cell.eq_ignore_ascii_case(*null))
        }
        _ => false,
    }
}

/// The cell's number; NaN for nulls and for text.
pub(crate) fn parse_number(cell: &[u8], decimal: Decimal) -> f64 {
    if let Some(number) = parse_plain(cell) {
        return number;
    }
    let cell = cell.trim_ascii();
    let Ok(text) = std::str::from_utf8(cell) else { return f64::NAN };
    if let Ok(number) = text.parse::<f64>() {
        // One NaN for all spellings, so that bits can be compared.
        return if number.is_nan() { f64::NAN } else { number };
    }
    if !cell
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'$' | b','))
    {
        return f64::NAN;
    }
    parse_decorated(text, decimal)
}

/// Digits with at most one point, few enough that number and power of ten are both exact doubles; one division then
/// rounds correctly. Nearly all prices are of this kind, and this is several times faster than the general way.
fn parse_plain(cell: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    if !(1..=16).contains(&cell.len()) {
        return None;
    }
    let mut digits = 0_u64;
    let mut point = None;
    for (index, &byte) in cell.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(index),
            _ => return None,
        }
    }
    let n_decimals = point.map_or(0, |point| cell.len() - 1 - point);
    let n_digits = cell.len() - usize::from(point.is_some());
    ((1..=15).contains(&n_digits)).then(|| digits as f64 / POWERS[n_decimals])
}

/// The rare spellings: `1,234.5`, `1.234,5`, `1234,5`, `$12`, `1.2M`.
fn parse_decorated(text: &str, decimal: Decimal) -> f64 {
    let text = text.strip_prefix('$').unwrap_or(text);
    let (text, scale) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1e3),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1e6),
        Some(b'B' | b'b') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let plain = match (text.rfind(','), text.rfind('.')) {
        (Some(comma), Some(point)) if comma > point && decimal == Decimal::PointOrComma => {
            text.replace('.', "").replace(',', ".")
        }
        (Some(_), None) if decimal == Decimal::PointOrComma && text.matches(',').count() == 1 => {
            text.replace(',', ".")
        }
        (Some(_), _) if grouped_by_comma(text) => text.replace(',', ""),
        (Some(_), _) => return f64::NAN,
        (None, _) => text.to_string(),
    };
    plain.parse::<f64>().map_or(f64::NAN, |number| number * scale)
}

/// Whether all commas before the point stand in front of exactly three digits.
fn grouped_by_comma(text: &str) -> bool {
    let whole = text.split('.').next().unwrap_or("");
    let mut groups = whole.split(',');
    let head_fits = groups.next().is_some_and(|head| (1..=4).contains(&head.len()));
    head_fits && groups.all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorated_numbers_are_read() {
        let point = |text: &str| parse_number(text.as_bytes(), Decimal::Point);
        let comma = |text: &str| parse_number(text.as_bytes(), Decimal::PointOrComma);
        assert_eq!(point(" 1.5 "), 1.5);
        assert_eq!(point("1e-3"), 0.001);
        assert_eq!(point("1,234,567.5"), 1_234_567.5);
        assert_eq!(point("$12.5"), 12.5);
        assert_eq!(point("2.5M"), 2_500_000.0);
        assert_eq!(comma("1,2345"), 1.2345);
        assert_eq!(comma("1.234,5"), 1234.5);
        assert_eq!(comma("1,234.5"), 1234.5);
    }

    #[test]
    fn the_fast_way_gives_the_nearest_double() {
        for text in [
            "0",
            "1",
            "0.1",
            "0.3",
            "16541.77",
            "123456789012345",
            ".000000000000001",
            "99999999.9999999",
            "5.",
            "00.50",
            "1234567890123456",
            "9007199254740993",
        ] {
            let number = parse_number(text.as_bytes(), Decimal::Point);
            assert_eq!(number.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert!(parse_number(b".", Decimal::Point).is_nan());
    }

    #[test]
    fn text_is_not_a_number() {
        for text in ["", "null", "open", "1,2,3", "12-5", "1,23", "M", "$", ",", "1 2"] {
            assert!(parse_number(text.as_bytes(), Decimal::Point).is_nan(), "{text}");
        }
        assert!(parse_number(&[0xff, 0xfe], Decimal::Point).is_nan());
        assert!(parse_number(b"inf", Decimal::Point).is_infinite());
    }

    #[test]
    fn nulls_are_recognised_and_tickers_are_not_asked() {
        for text in ["", " ", "null", "NULL", "NaN", "N/A", "-", "None", "#N/A"] {
            assert!(is_null(text.as_bytes()), "{text}");
        }
        assert!(!is_null(b"0") && !is_null(b"TRUE"));
    }
}

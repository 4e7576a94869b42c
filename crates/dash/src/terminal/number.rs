//! Numbers, durations and values by their names, in the few characters that a terminal has for them.

use tidemill_telemetry::number::without_zeros;
pub use tidemill_telemetry::number::{count, counted, short};

/// Parts of names of values that are shares of one.
const SHARES: [&str; 4] = ["busy", "fill", "share", "ratio"];

/// How much of something there is: a count, or a number that is [`short`].
pub fn amount(value: f64) -> String {
    if value.fract() != 0.0 || value.abs() >= 1e15 {
        return short(value);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs() as u64))
}

/// A count in few characters: `950`, `262k`, `1.5M`.
pub fn rough(value: f64) -> String {
    let size = value.abs();
    let (divisor, unit) = match size {
        s if s >= 1e15 => return short(value),
        s if s >= 1e12 => (1e12, "T"),
        s if s >= 1e9 => (1e9, "G"),
        s if s >= 1e6 => (1e6, "M"),
        s if s >= 1e4 => (1e3, "k"),
        _ => return short(value),
    };
    let part = value / divisor;
    let decimals = usize::from(part.abs() < 100.0);
    without_zeros(&format!("{part:.decimals$}")).to_owned() + unit
}

/// A duration: `0.12ms`, `12.30ms`, `1.50s`, `2m03s`, `3h04m`, `2d05h`.
pub fn duration(ms: f64) -> String {
    let whole_s = (ms / 1e3).max(0.0) as u64;
    match ms {
        ms if !ms.is_finite() => "–".into(),
        ms if ms < 1e3 => format!("{ms:.2}ms"),
        ms if ms < 6e4 => format!("{:.2}s", ms / 1e3),
        ms if ms < 3.6e6 => format!("{}m{:02}s", whole_s / 60, whole_s % 60),
        ms if ms < 8.64e7 => format!("{}h{:02}m", whole_s / 3600, whole_s / 60 % 60),
        _ => format!("{}d{:02}h", whole_s / 86_400, whole_s / 3600 % 24),
    }
}

/// A duration that is a round number: `200ms`, `2s`.
pub fn round_duration(ms: f64) -> String {
    if ms < 1e3 { format!("{}ms", short(ms)) } else { format!("{}s", short(ms / 1e3)) }
}

/// A time to the second: `7s`, `2m03s`.
pub fn seconds(s: f64) -> String {
    if s.is_finite() && s < 60.0 { format!("{:.0}s", s.max(0.0).floor()) } else { duration(s * 1e3) }
}

/// A share of one: `98.1%`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", share * 100.0) } else { "–".into() }
}

/// A value with its name, in the form that fits the name: `trials=172032`, `busy=98.1%`, `ask=1.20ms`, `1.9e8 it/s`.
pub fn named(name: &str, value: f64) -> String {
    if let Some(what) = name.strip_suffix("_per_s") {
        return format!("{} {what}/s", short(value));
    }
    if let Some(what) = name.strip_suffix("_ms") {
        return format!("{what}={}", duration(value));
    }
    if let Some(what) = name.strip_suffix("_s") {
        return format!("{what}={}", duration(value * 1e3));
    }
    if name.split('_').any(|part| SHARES.contains(&part)) {
        return format!("{name}={}", percent(value));
    }
    if value.fract() == 0.0 && value.abs() < 1e12 {
        return format!("{name}={value:.0}");
    }
    format!("{name}={}", short(value))
}

/// Whether the name of a value says that it is a duration.
pub fn is_duration(name: &str) -> bool {
    name.ends_with("_ms") || (name.ends_with("_s") && !name.ends_with("_per_s"))
}

/// A JSON value in few characters, text without quotes.
pub fn setting(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => clean(text),
        serde_json::Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), short),
        serde_json::Value::Null => "–".into(),
        other => clean(&other.to_string()),
    }
}

/// Text on one line and without control characters: the text of a journal must not be able to move the cursor.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_counts_where_they_can_be() {
        assert_eq!([amount(1_234_567.0), amount(-1_234.0), amount(0.5)], ["1,234,567", "-1,234", "0.5"]);
        assert_eq!([amount(1e15), amount(f64::NAN)], ["1e15", "–"]);
        assert_eq!([rough(262_144.0), rough(1.5e6), rough(950.0)], ["262k", "1.5M", "950"]);
    }

    #[test]
    fn durations_change_their_unit() {
        let pairs = [
            (0.1234, "0.12ms"),
            (12.3, "12.30ms"),
            (1500.0, "1.50s"),
            (123_400.0, "2m03s"),
            (11_040_000.0, "3h04m"),
        ];
        for (ms, text) in pairs {
            assert_eq!(duration(ms), text);
        }
        assert_eq!((seconds(7.9), seconds(192.0)), ("7s".into(), "3m12s".into()));
        assert_eq!(duration(190_800_000.0), "2d05h");
    }

    #[test]
    fn the_name_of_a_value_says_how_it_is_shown() {
        assert_eq!(named("busy", 0.981), "busy=98.1%");
        assert_eq!(named("it_per_s", 1.9e8), "1.9e8 it/s");
        assert_eq!(named("ask_ms", 1.2), "ask=1.20ms");
        assert_eq!(named("wall_s", 90.0), "wall=1m30s");
        assert!(is_duration("wall_s") && !is_duration("it_per_s"));
        assert_eq!(named("trials", 172_032.0), "trials=172032");
        assert_eq!(named("valid_share", 0.5), "valid_share=50.0%");
        assert_eq!(named("share_0_sobol", 0.25), "share_0_sobol=25.0%");
    }

    #[test]
    fn text_cannot_move_the_cursor() {
        assert_eq!(clean("a\nb\x1b[2Jc\r\n"), "a b [2Jc");
    }
}

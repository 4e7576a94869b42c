//! Figures of results as people read them; `–` stands for "not defined".

pub use tidemill_telemetry::number::{count, counted, seconds};

/// A figure of a table, by [`aligned`](tidemill_telemetry::number::aligned).
pub fn short(value: Option<f64>) -> String {
    tidemill_telemetry::number::aligned(value.unwrap_or(f64::NAN))
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
    fn a_metric_has_the_unit_of_its_label() {
        assert_eq!(metric("Return [%]", Some(0.1234)), "12.34");
        assert_eq!(metric("Sharpe Ratio", Some(0.123_456)), "0.123");
        assert_eq!(metric("Sharpe Ratio", None), "–");
    }
}

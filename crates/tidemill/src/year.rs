//! States how many days a year has, for figures that are annualised.

/// Names that are listed before the rest is counted.
const MOST_NAMES: usize = 4;

/// The year of a pool, and the symbols whose own differs.
pub fn describe<'a>(pool: f64, symbols: impl IntoIterator<Item = (&'a str, f64)>) -> String {
    let others: Vec<(&str, f64)> = symbols.into_iter().filter(|(_, days)| *days != pool).collect();
    let mut out = format!("year of {pool} days");
    for (at, (name, days)) in others.iter().take(MOST_NAMES).enumerate() {
        out += &format!("{}{name} {days}", if at == 0 { "; " } else { ", " });
    }
    if others.len() > MOST_NAMES {
        out += &format!(" and {} more symbols with their own", others.len() - MOST_NAMES);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_years_that_differ_are_named() {
        assert_eq!(describe(365.0, [("BTC", 365.0)]), "year of 365 days");
        assert_eq!(describe(365.0, [("BTC", 365.0), ("AAPL", 252.0)]), "year of 365 days; AAPL 252");
        let many = ["A", "B", "C", "D", "E", "F"].map(|name| (name, 252.0));
        assert_eq!(
            describe(312.0, many),
            "year of 312 days; A 252, B 252, C 252, D 252 and 2 more symbols with their own"
        );
    }
}

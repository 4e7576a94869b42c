//! Names of symbols with `*` for any text and `?` for any character.

/// Whether a name fits a pattern as a whole.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stands, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, read));
                at += 1;
            }
            (Some(c), _) if *c == '?' || *c == name[read] => {
                at += 1;
                read += 1;
            }
            (_, Some((stands, reaches))) => {
                star = Some((stands, reaches + 1));
                (at, read) = (stands + 1, reaches + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// The first pattern that no name fits.
pub fn unmatched(
    patterns: &[String],
    names: impl Iterator<Item = impl AsRef<str>> + Clone,
) -> Option<&String> {
    patterns.iter().find(|pattern| !names.clone().any(|name| fits(pattern, name.as_ref())))
}

/// Whether a name fits one of some patterns.
pub fn fits_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name) in [
            ("BTCUSDT", "BTCUSDT"),
            ("*USDT", "BTCUSDT"),
            ("B*T*T", "BTCUSDT"),
            ("*", ""),
            ("E?H*", "ETH"),
            ("*a*", "ba"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("BTC", "BTCUSDT"),
            ("*USD", "BTCUSDT"),
            ("?", ""),
            ("btc*", "BTCUSDT"),
            ("", "x"),
            ("a*b", "ac"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_without_a_name_is_found() {
        let patterns = ["A*".to_owned(), "Z".to_owned()];
        assert_eq!(unmatched(&patterns, ["AB", "C"].iter()), Some(&patterns[1]));
        assert_eq!(unmatched(&patterns[..1], ["AB", "C"].iter()), None);
        assert!(fits_any(&patterns, "Z") && !fits_any(&patterns, "C"));
    }
}

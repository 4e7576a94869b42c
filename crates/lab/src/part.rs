//! `StudyPart`: one of several equal pieces of a study that are searched on their own and put together afterwards.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The second of eight parts, for example: its trials are the second eighth of those of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyPart {
    number: u64,
    of: u64,
}

impl StudyPart {
    /// Which one, from 1.
    pub fn number(self) -> u64 {
        self.number
    }

    /// How many there are.
    pub fn of(self) -> u64 {
        self.of
    }

    /// Its trials among so many.
    pub fn range(self, n_trials: u64) -> Range<u64> {
        let end = |number: u64| (u128::from(n_trials) * u128::from(number) / u128::from(self.of)) as u64;
        end(self.number - 1)..end(self.number)
    }
}

impl fmt::Display for StudyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for StudyPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if 1 <= number && number <= of => Ok(Self { number, of }),
            _ => Err("write the number of the part, from 1, and how many there are: 2/8".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_trials_once() {
        for (n_trials, of) in [(100, 8), (3, 5), (0, 2), (u64::MAX, 3)] {
            let parts = (1..=of).map(|number| StudyPart { number, of }.range(n_trials));
            let end = parts.fold(0, |end, range| {
                assert_eq!(range.start, end);
                range.end
            });
            assert_eq!(end, n_trials);
        }
    }

    #[test]
    fn a_part_reads_as_it_is_written() {
        assert_eq!("2/8".parse::<StudyPart>().unwrap().to_string(), "2/8");
        for wrong in ["0/8", "9/8", "1", "a/b", "1/0", "-1/2"] {
            assert!(wrong.parse::<StudyPart>().is_err(), "{wrong}");
        }
    }
}

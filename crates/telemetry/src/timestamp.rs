//! When something happened.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, in whole milliseconds, shown as `2026-01-06T12:34:56.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    ms: i64,
}

impl Timestamp {
    /// The present.
    pub fn now() -> Self {
        // A clock before 1970 is a clock that was never set.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// From milliseconds since 1970; what lies beyond the years -9999 to 9999 becomes their end.
    pub fn from_ms(ms: i64) -> Self {
        Self { ms: ms.clamp(jiff::Timestamp::MIN.as_millisecond(), jiff::Timestamp::MAX.as_millisecond()) }
    }

    /// Milliseconds since 1970.
    pub fn as_ms(self) -> i64 {
        self.ms
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        let shown = jiff::Timestamp::from_millisecond(self.ms).unwrap_or(end);
        write!(f, "{shown:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Ok(Self::from_ms(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimestampVisitor;

        impl Visitor<'_> for TimestampVisitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a time such as 2026-01-06T12:34:56.123Z")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(TimestampVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_keep_their_milliseconds() {
        assert_eq!(Timestamp::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_ms(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_ms(1_767_702_896_123).to_string(), "2026-01-06T12:34:56.123Z");
        assert!(Timestamp::from_ms(i64::MAX).to_string().starts_with("9999-12-30T"));
    }

    #[test]
    fn text_reads_back_as_the_same_time() {
        for ms in [0, -1, 1, 951_782_400_000, 1_767_702_896_123, 4_102_444_799_999, i64::MIN, i64::MAX] {
            let time = Timestamp::from_ms(ms);
            assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
            assert_eq!(
                serde_json::from_str::<Timestamp>(&serde_json::to_string(&time).unwrap()).unwrap(),
                time
            );
        }
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
        assert!(serde_json::from_str::<Timestamp>("3").is_err());
    }

    #[test]
    fn now_is_after_2025() {
        assert!(Timestamp::now() > Timestamp::from_ms(1_735_689_600_000));
    }
}

use std::fmt;
use std::ops::{Add, Sub};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Duration;

/// A moment in UTC: nanoseconds since 1970-01-01T00:00:00Z, on whatever clock its source used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// The text is no RFC 3339 instant between the years 1678 and 2262.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an instant like 2026-11-29T16:13:10.608Z")]
pub struct InstantError(pub String);

impl Instant {
    /// From nanoseconds since the Unix epoch.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339, any zone, up to nine fractional digits, `T` or a space between date and time.
    ///
    /// Stamps are compared as instants and never as text: `.57518Z` is before `.575182Z`.
    pub fn parse(text: &str) -> Result<Self, InstantError> {
        DateTime::parse_from_rfc3339(text)
            .ok()
            .and_then(|t| t.timestamp_nanos_opt())
            .map(Self)
            .ok_or_else(|| InstantError(text.to_owned()))
    }

    /// RFC 3339 in UTC with as many of 0, 3, 6 or 9 fractional digits as needed.
    pub fn to_rfc3339(self) -> String {
        self.to_utc().to_rfc3339_opts(SecondsFormat::AutoSi, true)
    }

    /// The same moment as chrono's type.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.0)
    }

    /// The later of two moments; sums saturate, so hostile stamps cannot wrap around.
    pub fn saturating_add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.as_nanos()))
    }
}

impl From<DateTime<Utc>> for Instant {
    /// Saturates outside the years 1678 to 2262.
    fn from(t: DateTime<Utc>) -> Self {
        Self(
            t.timestamp_nanos_opt()
                .unwrap_or(if t.timestamp() < 0 { i64::MIN } else { i64::MAX }),
        )
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        self.saturating_add(d)
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.as_nanos()))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_ordered_by_time_and_not_by_text() {
        let order = [
            "2026-05-31T07:12:53Z",
            "2026-05-31T07:12:53.5Z",
            "2026-05-31T07:12:53.57518Z",
            "2026-05-31T07:12:53.575182Z",
            "2026-05-31T16:12:53.576+09:00",
            "2026-05-31T07:12:53.6Z",
            "2026-05-31T07:12:53.600000001Z",
            "2026-05-31T07:12:54Z",
        ];
        let mut sorted = order.map(|t| Instant::parse(t).expect(t)).to_vec();
        sorted.sort();
        assert_eq!(sorted, order.map(|t| Instant::parse(t).expect(t)).to_vec());
    }

    #[test]
    fn text_round_trips() {
        for t in [
            "2026-11-29T16:13:10.608Z",
            "2026-11-29T16:13:10Z",
            "2026-11-29T16:13:10.000000001Z",
        ] {
            assert_eq!(Instant::parse(t).expect(t).to_rfc3339(), t);
        }
        assert!(Instant::parse("yesterday").is_err());
    }
}

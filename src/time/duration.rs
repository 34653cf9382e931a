use std::fmt;
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A signed length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(i64);

/// Why a text is no duration of the scenario language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit: nobody remembers whether a bare 60 means seconds.
    #[error("`{0}` has no unit; write for example {0}s, {0}ms or {0}m")]
    UnitMissing(String),
    /// Not of the form `1h30m`, `1.5s`, `200ms`.
    #[error("`{0}` is not a duration; units are us, ms, s, m, h, from large to small, each once: 200ms, 60s, 1m30s")]
    Malformed(String),
    /// More than 292 years.
    #[error("`{0}` is too long for a duration")]
    TooLong(String),
}

const UNITS: [(&str, i64); 5] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
];

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds, negative for "before".
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// From whole microseconds.
    pub const fn from_micros(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// From whole milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// From whole seconds.
    pub const fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// From seconds, rounded to the nanosecond; not a number becomes zero, too large saturates.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as i64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length without its sign.
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// Half of it, rounded towards zero.
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// `n` times as long, saturating.
    pub const fn times(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// The unsigned standard type; a negative length is zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0).unsigned_abs())
    }
}

impl From<std::time::Duration> for Duration {
    fn from(d: std::time::Duration) -> Self {
        Self(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    /// The language's durations: `200ms`, `1m30s`, `1.5s`; every part has a unit, units go from large to small.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        let malformed = || DurationError::Malformed(text.to_owned());
        if text.is_empty() || !text.is_ascii() {
            return Err(malformed());
        }
        if text.parse::<f64>().is_ok() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(DurationError::UnitMissing(text.to_owned()));
        }
        let (mut rest, mut next_unit, mut total) = (text, 0, 0i128);
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
            let (unit, tail) = tail.split_at(letters);
            let index = UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(malformed)?;
            if index < next_unit {
                return Err(malformed());
            }
            next_unit = index + 1;
            total += part(number, UNITS[index].1).ok_or_else(malformed)?;
            if total > i128::from(i64::MAX) {
                return Err(DurationError::TooLong(text.to_owned()));
            }
            rest = tail;
        }
        i64::try_from(total)
            .map(Self)
            .map_err(|_| DurationError::TooLong(text.to_owned()))
    }
}

/// `digits[.digits]` of a unit in nanoseconds, exactly; finer than a nanosecond is cut. A number too long for
/// the arithmetic counts as far too long, not as malformed.
fn part(number: &str, unit: i64) -> Option<i128> {
    let (whole, fraction) = match number.split_once('.') {
        Some((w, f)) if !f.is_empty() => (w, f),
        Some(_) => return None,
        None => (number, ""),
    };
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole = whole.parse::<i64>().unwrap_or(i64::MAX);
    let mut nanos = i128::from(whole) * i128::from(unit);
    let mut scale = i128::from(unit);
    for digit in fraction.bytes() {
        nanos += i128::from(digit - b'0') * scale / 10;
        scale /= 10;
    }
    Some(nanos)
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Duration {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl fmt::Display for Duration {
    /// The language's own form, so that it can be read back: `1m30s`, `1.5s`, `200ms`, `0s`; below 1 us as `0.5us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.unsigned_abs();
        if left == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        for (name, unit) in &UNITS[..2] {
            let unit = unit.unsigned_abs();
            if left >= unit {
                write!(f, "{}{name}", left / unit)?;
                left %= unit;
            }
        }
        if left == 0 {
            return Ok(());
        }
        let (name, unit) = match left {
            1_000_000_000.. => ("s", 1_000_000_000),
            1_000_000.. => ("ms", 1_000_000),
            _ => ("us", 1_000),
        };
        let (whole, rest) = (left / unit, left % unit);
        if rest == 0 {
            return write!(f, "{whole}{name}");
        }
        let digits = unit.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    /// The text form; also a leading minus, which files that gtrun wrote may hold.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        match text.strip_prefix('-') {
            Some(rest) => rest.parse::<Self>().map(|d| -d),
            None => text.parse(),
        }
        .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings() {
        for (text, ms) in [
            ("60s", 60_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("0s", 0),
        ] {
            assert_eq!(text.parse(), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!("10us".parse(), Ok(Duration::from_micros(10)));
        for text in ["60", "1.5"] {
            assert!(
                matches!(text.parse::<Duration>(), Err(DurationError::UnitMissing(_))),
                "{text}"
            );
        }
        for text in [
            "-5s", "5M", "1h30", "PT1M30S", "1:30", "60S", "5 s", "1m 30s", "", "s", "１０s", "1e3s", "1.s", ".5s",
            "1s1s", "1s1m",
        ] {
            assert!(
                matches!(text.parse::<Duration>(), Err(DurationError::Malformed(_))),
                "{text}"
            );
        }
        assert!(matches!(
            "99999999999999999999s".parse::<Duration>(),
            Err(DurationError::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(nanos in 0i64..i64::MAX / 2) {
            let d = Duration::from_nanos(nanos);
            prop_assert_eq!(d.to_string().parse::<Duration>(), Ok(d));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = text.parse::<Duration>();
        }
    }
}

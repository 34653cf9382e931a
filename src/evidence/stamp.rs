//! Stamps as logs write them, with what their text says about resolution and zone.

use crate::time::{Bracket, Duration, Instant};

/// A moment as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The moment; read as if it were UTC when there is no zone.
    pub(crate) at: Instant,
    /// Digits of the fraction, 0 to 9.
    pub(crate) digits: u8,
    /// Seconds east of UTC; `None` when the text has no zone.
    pub(crate) zone: Option<i32>,
}

impl Stamp {
    /// Resolution that the text of this stamp alone shows: 1 s, 1 ms for three digits and so on.
    pub(crate) fn resolution(self) -> Duration {
        resolution(self.digits)
    }
}

/// Resolution of a fraction with this many digits.
pub(crate) fn resolution(digits: u8) -> Duration {
    Duration::from_nanos(10i64.pow(9 - u32::from(digits.min(9))))
}

/// How finely the stamps of one file are written.
///
/// Writers that trim trailing zeros (kubelet, Go) write `.5` for `.500000000`: such a stamp is as fine as the
/// finest of its file. Writers of 0, 3, 6 or 9 digits write always as many, so a stamp with so many may come from
/// another, coarser writer of the same file and keeps its own, wider resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Resolution {
    finest: u8,
}

impl Resolution {
    /// Takes note of a stamp.
    pub(crate) fn saw(&mut self, digits: u8) {
        self.finest = self.finest.max(digits);
    }

    /// Takes note of all stamps of another.
    pub(crate) fn include(&mut self, other: Self) {
        self.saw(other.finest);
    }

    /// Of the finest stamp seen.
    pub(crate) fn finest(self) -> Duration {
        resolution(self.finest)
    }

    /// Of a stamp with so many digits.
    pub(crate) fn of(self, digits: u8) -> Duration {
        resolution(if digits.is_multiple_of(3) {
            digits
        } else {
            digits.max(self.finest)
        })
    }
}

/// A bracket whose width is not known yet: both ends 1 ns before the stamp. [`widen`] completes it.
pub(crate) fn pending(at: Instant) -> Bracket {
    Bracket::floored(at, Duration::ZERO)
}

/// Completes a [`pending`] bracket.
pub(crate) fn widen(bracket: &mut Bracket, resolution: Duration) {
    bracket.hi = bracket.hi.map(|hi| hi + resolution);
}

/// The difference of two readings of one moment in two zones, to the quarter of an hour: what a zone can explain.
pub(crate) fn quarter_hours(difference: Duration) -> Duration {
    const QUARTER: i64 = 900_000_000_000;
    let n = difference.as_nanos();
    Duration::from_nanos(
        (n.saturating_add(QUARTER / 2))
            .div_euclid(QUARTER)
            .saturating_mul(QUARTER),
    )
}

fn digit(b: u8) -> Option<i64> {
    b.is_ascii_digit().then(|| i64::from(b - b'0'))
}

fn two(text: &[u8], at: usize) -> Option<i64> {
    Some(digit(*text.get(at)?)? * 10 + digit(*text.get(at + 1)?)?)
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
pub(crate) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let longest = match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !(1678..2262).contains(&year) || !(1..=longest).contains(&day) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// `HH:MM:SS` and a fraction after `.` or `,`: seconds of the day, nanoseconds, digits, length.
fn clock(text: &[u8]) -> Option<(i64, i64, u8, usize)> {
    let (h, m, s) = (two(text, 0)?, two(text, 3)?, two(text, 6)?);
    // 60: a leap second.
    if text[2] != b':' || text[5] != b':' || h > 23 || m > 59 || s > 60 {
        return None;
    }
    let (nanos, digits, length) = fraction(&text[8..]);
    Some((h * 3600 + m * 60 + s, nanos, digits, 8 + length))
}

/// `.123456`: nanoseconds, digits (at most 9), length; all zero when there is none.
fn fraction(text: &[u8]) -> (i64, u8, usize) {
    if !matches!(text.first(), Some(b'.' | b',')) {
        return (0, 0, 0);
    }
    let all = text[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    if all == 0 {
        return (0, 0, 0);
    }
    let kept = all.min(9);
    let nanos = text[1..=kept].iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'));
    (nanos * 10i64.pow(9 - kept as u32), kept as u8, 1 + all)
}

/// `Z`, `+09:00`, `+0900`, `+09`: seconds east of UTC and length.
fn zone(text: &[u8]) -> Option<(i32, usize)> {
    let sign = match text.first()? {
        b'Z' | b'z' => return Some((0, 1)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let h = two(text, 1)?;
    let (m, length) = match text.get(3) {
        Some(b':') => (two(text, 4)?, 6),
        Some(b) if b.is_ascii_digit() => (two(text, 3)?, 5),
        _ => (0, 3),
    };
    (h <= 18 && m < 60).then(|| (sign * (h * 3600 + m * 60) as i32, length))
}

fn instant(day: i64, second: i64, nanos: i64, zone: Option<i32>) -> Instant {
    let seconds = day * 86_400 + second - i64::from(zone.unwrap_or(0));
    Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// An ISO 8601 stamp at the beginning of the text: `T` or a blank in the middle, `.` or `,` before up to nine
/// digits, any zone or none. Also its length.
pub(crate) fn iso(text: &[u8]) -> Option<(Stamp, usize)> {
    if text.len() < 19 || text[4] != b'-' || text[7] != b'-' || !matches!(text[10], b'T' | b't' | b' ') {
        return None;
    }
    let day = days(two(text, 0)? * 100 + two(text, 2)?, two(text, 5)?, two(text, 8)?)?;
    let (second, nanos, digits, length) = clock(&text[11..])?;
    let mut used = 11 + length;
    let zone = zone(&text[used..]).map(|(z, n)| {
        used += n;
        z
    });
    let at = instant(day, second, nanos, zone);
    Some((Stamp { at, digits, zone }, used))
}

/// An ISO stamp that is the whole text.
pub(crate) fn iso_whole(text: &[u8]) -> Option<Stamp> {
    iso(text).and_then(|(s, n)| (n == text.len()).then_some(s))
}

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

fn month(text: &[u8]) -> Option<i64> {
    let name = text.get(..3)?;
    (1..).zip(MONTHS).find(|(_, m)| m.as_slice() == name).map(|(i, _)| i)
}

/// HAProxy's `%t`, `%tr` (`29/Nov/2026:16:12:45.703`, local, no zone) and `%T`, `%Tl` (`... +0900`, whole seconds).
pub(crate) fn clf(text: &[u8]) -> Option<(Stamp, usize)> {
    if text.len() < 20 || text[2] != b'/' || text[6] != b'/' || text[11] != b':' {
        return None;
    }
    let year = two(text, 7)? * 100 + two(text, 9)?;
    let day = days(year, month(&text[3..])?, two(text, 0)?)?;
    let (second, nanos, digits, length) = clock(&text[12..])?;
    let mut used = 12 + length;
    let zone = text
        .get(used)
        .filter(|b| **b == b' ')
        .and_then(|_| zone(&text[used + 1..]))
        .map(|(z, n)| {
            used += 1 + n;
            z
        });
    let at = instant(day, second, nanos, zone);
    Some((Stamp { at, digits, zone }, used))
}

/// A stamp without a year: `Nov 29 16:12:45`, as RFC 3164 and `journalctl` write it, in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct YearlessStamp {
    month: i64,
    day: i64,
    second: i64,
    nanos: i64,
    /// Digits of the fraction.
    pub(crate) digits: u8,
    /// A year in the text after all (`Nov 29 2026 16:12:45`).
    year: Option<i64>,
}

impl YearlessStamp {
    /// In the year that brings it nearest to `near`, read as UTC.
    pub(crate) fn near(self, near: Instant) -> Option<Instant> {
        let at = |year| days(year, self.month, self.day).map(|d| instant(d, self.second, self.nanos, None));
        if let Some(year) = self.year {
            return at(year);
        }
        let guess = i64::from(chrono::Datelike::year(&near.to_utc()));
        // Two more on each side: 29 February exists in few years only.
        (guess - 4..=guess + 4)
            .filter_map(at)
            .min_by_key(|t| (*t - near).abs().as_nanos())
    }
}

/// A stamp without a year at the beginning of the text, and its length.
pub(crate) fn yearless(text: &[u8]) -> Option<(YearlessStamp, usize)> {
    let month = month(text)?;
    if text.get(3) != Some(&b' ') {
        return None;
    }
    // The day is padded with a blank (RFC 3164), a zero, or not at all.
    let mut at = 4;
    while text.get(at) == Some(&b' ') && at < 6 {
        at += 1;
    }
    let first = digit(*text.get(at)?)?;
    let (day, mut at) = match text.get(at + 1).copied().and_then(digit) {
        Some(second) => (first * 10 + second, at + 2),
        None => (first, at + 1),
    };
    if text.get(at) != Some(&b' ') {
        return None;
    }
    at += 1;
    let mut year = None;
    if text.get(at + 4) == Some(&b' ')
        && let (Some(a), Some(b)) = (two(text, at), two(text, at + 2))
    {
        year = Some(a * 100 + b);
        at += 5;
    }
    let (second, nanos, digits, length) = clock(text.get(at..)?)?;
    days(2000, month, day)?;
    let stamp = YearlessStamp {
        month,
        day,
        second,
        nanos,
        digits,
        year,
    };
    Some((stamp, at + length))
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970 as decimal digits, told apart by their size.
pub(crate) fn epoch(text: &[u8]) -> Option<Stamp> {
    let whole = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(9..=19).contains(&whole) {
        return None;
    }
    let (fraction_nanos, fraction_digits, used) = fraction(&text[whole..]);
    if whole + used != text.len() {
        return None;
    }
    let mut number: i64 = 0;
    for b in &text[..whole] {
        number = number.checked_mul(10)?.checked_add(i64::from(b - b'0'))?;
    }
    // Until the year 2286 seconds have at most 10 digits, milliseconds 13, microseconds 16.
    let (unit, digits) = match whole {
        9 | 10 => (1_000_000_000, 0),
        11..=13 => (1_000_000, 3),
        14..=16 => (1_000, 6),
        _ => (1, 9),
    };
    let at = number
        .checked_mul(unit)?
        .checked_add(fraction_nanos / (1_000_000_000 / unit))?;
    Some(Stamp {
        at: Instant::from_nanos(at),
        digits: (digits + fraction_digits).min(9),
        zone: Some(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utc(text: &str) -> Instant {
        Instant::parse(text).expect(text)
    }

    #[test]
    fn iso_stamps_in_every_spelling() {
        for (text, same, digits, zone) in [
            ("2026-05-31T07:12:53Z", "2026-05-31T07:12:53Z", 0, Some(0)),
            (
                "2026-05-31T07:12:53.57518Z rest",
                "2026-05-31T07:12:53.57518Z",
                5,
                Some(0),
            ),
            (
                "2026-05-31T16:12:53.576+09:00",
                "2026-05-31T07:12:53.576Z",
                3,
                Some(32_400),
            ),
            (
                "2026-05-31T16:12:53,576+0900",
                "2026-05-31T07:12:53.576Z",
                3,
                Some(32_400),
            ),
            ("2026-05-31 07:12:41.883][x", "2026-05-31T07:12:41.883Z", 3, None),
            (
                "2024-02-29T00:00:00.123456789123Z",
                "2024-02-29T00:00:00.123456789Z",
                9,
                Some(0),
            ),
        ] {
            let (stamp, _) = iso(text.as_bytes()).expect(text);
            assert_eq!(
                (stamp.at, stamp.digits, stamp.zone),
                (utc(same), digits, zone),
                "{text}"
            );
        }
        for bad in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-05-31T24:00:00Z",
            "2026-05-31",
            "x",
        ] {
            assert_eq!(iso(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn stamps_of_haproxy() {
        let (local, used) = clf(b"29/Nov/2026:16:12:45.703] x").expect("clf");
        assert_eq!(
            (local.at, local.digits, local.zone, used),
            (utc("2026-11-29T16:12:45.703Z"), 3, None, 24)
        );
        let (zoned, _) = clf(b"30/Nov/2026:01:59:27 +0900").expect("clf");
        assert_eq!((zoned.at, zoned.zone), (utc("2026-11-29T16:59:27Z"), Some(32_400)));
    }

    #[test]
    fn a_missing_year_is_the_nearest() {
        let (stamp, used) = yearless(b"Dec 31 23:59:59 lb").expect("stamp");
        assert_eq!(used, 15);
        assert_eq!(
            stamp.near(utc("2027-01-01T00:00:10Z")),
            Some(utc("2026-12-31T23:59:59Z"))
        );
        assert_eq!(
            stamp.near(utc("2026-12-01T00:00:00Z")),
            Some(utc("2026-12-31T23:59:59Z"))
        );
        let (stamp, _) = yearless(b"Jan  1 00:00:01 lb").expect("stamp");
        assert_eq!(
            stamp.near(utc("2026-12-31T23:59:00Z")),
            Some(utc("2027-01-01T00:00:01Z"))
        );
        let (stamp, _) = yearless(b"Feb 29 12:00:00").expect("stamp");
        assert_eq!(
            stamp.near(utc("2028-03-01T00:00:00Z")),
            Some(utc("2028-02-29T12:00:00Z"))
        );
        let (stamp, _) = yearless(b"Nov 29 2026 16:12:45.5").expect("stamp");
        assert_eq!(
            stamp.near(utc("1999-01-01T00:00:00Z")),
            Some(utc("2026-11-29T16:12:45.5Z"))
        );
    }

    #[test]
    fn numbers_since_1970() {
        for (text, same, digits) in [
            ("1780211558.25", "2026-05-31T07:12:38.25Z", 2),
            ("1780211558", "2026-05-31T07:12:38Z", 0),
            ("1780211558250", "2026-05-31T07:12:38.25Z", 3),
            ("1780211558250.5", "2026-05-31T07:12:38.2505Z", 4),
            ("1780211558250000001", "2026-05-31T07:12:38.250000001Z", 9),
        ] {
            let stamp = epoch(text.as_bytes()).expect(text);
            assert_eq!((stamp.at, stamp.digits), (utc(same), digits), "{text}");
        }
        assert_eq!(epoch(b"12"), None);
        assert_eq!(epoch(b"99999999999999999999"), None);
    }

    #[test]
    fn trimmed_zeros_do_not_widen_and_coarse_writers_are_not_narrowed() {
        let mut r = Resolution::default();
        for digits in [9, 7, 0, 3] {
            r.saw(digits);
        }
        assert_eq!(r.of(7), Duration::from_nanos(1));
        assert_eq!(r.of(0), Duration::from_secs(1));
        assert_eq!(r.of(3), Duration::from_millis(1));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = (iso(&text), clf(&text), yearless(&text), epoch(&text));
        }

        #[test]
        fn iso_agrees_with_rfc3339(nanos in 0i64..4_000_000_000_000_000_000) {
            let text = Instant::from_nanos(nanos).to_rfc3339();
            prop_assert_eq!(iso_whole(text.as_bytes()).map(|s| s.at), Some(Instant::from_nanos(nanos)));
        }
    }
}

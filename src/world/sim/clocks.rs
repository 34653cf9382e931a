//! The hosts' clocks: each runs beside the true time with an offset and a drift.

use std::fmt::Write;

use chrono::{Datelike, Timelike};

use crate::time::{Duration, Instant};

/// One host's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HostClock {
    /// Where it stood at `since`, relative to the true time.
    pub(super) offset: Duration,
    /// Parts per million by which it runs fast.
    pub(super) drift_ppm: f64,
    /// The moment of `offset`.
    pub(super) since: Instant,
}

impl HostClock {
    /// What it shows at a true moment.
    pub(super) fn read(&self, true_time: Instant) -> Instant {
        let elapsed = (true_time - self.since).as_nanos() as f64;
        true_time + self.offset + Duration::from_nanos((elapsed * self.drift_ppm / 1e6) as i64)
    }
}

/// RFC 3339 in UTC, cut to `digits` fractional digits, with `zone` behind it (`Z`, `+00:00`).
pub(super) fn stamp(at: Instant, digits: usize, zone: &str) -> String {
    let mut out = String::with_capacity(36);
    write_stamp(&mut out, at, digits, zone);
    out
}

/// The same, appended.
pub(super) fn write_stamp(out: &mut String, at: Instant, digits: usize, zone: &str) {
    let (y, mo, d, secs, nanos) = civil(at);
    let (h, mi, s) = (secs / 3600, secs / 60 % 60, secs % 60);
    // Writing to a String cannot fail.
    let _ = write!(out, "{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}");
    if digits > 0 {
        let cut = nanos / 10u32.pow(9 - digits as u32);
        let _ = write!(out, ".{cut:0digits$}");
    }
    out.push_str(zone);
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// HAProxy's `%tr`: `29/Nov/2026:16:13:10.624`, cut to milliseconds.
pub(super) fn write_haproxy_date(out: &mut String, at: Instant) {
    let (y, mo, d, secs, nanos) = civil(at);
    let (h, mi, s) = (secs / 3600, secs / 60 % 60, secs % 60);
    let month = MONTHS[mo as usize - 1];
    let _ = write!(
        out,
        "{d:02}/{month}/{y:04}:{h:02}:{mi:02}:{s:02}.{:03}",
        nanos / 1_000_000
    );
}

/// The stamp of RFC 3164: `Nov 29 16:13:05`, whole seconds, no year.
pub(super) fn write_rfc3164(out: &mut String, at: Instant) {
    let (_, mo, d, secs, _) = civil(at);
    let (h, mi, s) = (secs / 3600, secs / 60 % 60, secs % 60);
    let _ = write!(out, "{} {d:>2} {h:02}:{mi:02}:{s:02}", MONTHS[mo as usize - 1]);
}

/// Year, month, day, second of the day, nanosecond of the second.
fn civil(at: Instant) -> (i32, u32, u32, u32, u32) {
    let t = at.to_utc();
    (
        t.year(),
        t.month(),
        t.day(),
        t.num_seconds_from_midnight(),
        t.nanosecond(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stamps_are_those_of_chrono(nanos in any::<i64>()) {
            let at = Instant::from_nanos(nanos);
            let expected = at.to_utc().format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string();
            prop_assert_eq!(stamp(at, 9, "Z"), expected);
            let mut date = String::new();
            write_haproxy_date(&mut date, at);
            prop_assert_eq!(date, at.to_utc().format("%d/%b/%Y:%H:%M:%S%.3f").to_string());
        }
    }

    #[test]
    fn a_clock_drifts_from_its_offset() {
        let clock = HostClock {
            offset: Duration::from_millis(20),
            drift_ppm: 50.0,
            since: Instant::from_nanos(0),
        };
        let hundred = Instant::from_nanos(0) + Duration::from_secs(100);
        assert_eq!(clock.read(hundred) - hundred, Duration::from_millis(25));
    }
}

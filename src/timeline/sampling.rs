//! When a sampled value was read: from the stamps of a poller to brackets.

use crate::evidence::Sampled;
use crate::evidence::envoy_stats::GaugeSeries;
use crate::evidence::haproxy_csv::StatSeries;
use crate::time::{Bracket, Duration};

/// On which side of its stamp an old poller read the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The stamp was taken after the fetch: `envoy-active.tsv`.
    Before,
    /// Nothing is known: the old CSV timeline.
    Either,
}

/// For each sample of a series the bracket in which its value was read, on the poller's clock.
///
/// With *sent* and *received* it is `(sent, received]`. With one stamp, an old poller that works one after the
/// other read sample k after stamp k-1; before stamp k plus its resolution when the stamp is taken after the
/// fetch, else before stamp k+1.
fn brackets(samples: impl Iterator<Item = Sampled>, side: Side) -> Vec<Bracket> {
    let samples: Vec<Sampled> = samples.collect();
    let ns = Duration::from_nanos(1);
    (0..samples.len())
        .map(|k| {
            let s = samples[k];
            if let (Some(sent), Some(received)) = (s.sent, s.received) {
                return Bracket::new(sent - ns, received.max(sent));
            }
            let Some(stamp) = s.stamp else { return Bracket::OPEN };
            let lo = k.checked_sub(1).and_then(|p| samples[p].stamp).map(|t| t - ns);
            let hi = match side {
                Side::Before => Some(stamp + s.resolution - ns),
                Side::Either => samples.get(k + 1).and_then(|n| n.stamp.map(|t| t + n.resolution - ns)),
            };
            // A file that was put together in another order says nothing.
            match (lo, hi) {
                (Some(lo), Some(hi)) if lo >= hi => Bracket::OPEN,
                _ => Bracket { lo, hi },
            }
        })
        .collect()
}

/// When each gauge sample was read.
pub fn gauge_brackets(series: &GaugeSeries) -> Vec<Bracket> {
    brackets(series.samples.iter().map(|s| s.when), Side::Before)
}

/// When each statistics snapshot was read.
pub fn stat_brackets(series: &StatSeries) -> Vec<Bracket> {
    brackets(series.samples.iter().map(|s| s.when), Side::Either)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    fn stamp(s: i64) -> Sampled {
        Sampled {
            sent: None,
            received: None,
            stamp: Some(Instant::from_nanos(s * 1_000_000_000)),
            resolution: Duration::from_secs(1),
        }
    }

    #[test]
    fn an_old_gauge_was_read_between_the_stamp_before_and_the_end_of_its_own_second() {
        let b = brackets([stamp(10), stamp(12), stamp(14)].into_iter(), Side::Before);
        let s = |s: i64| Instant::from_nanos(s * 1_000_000_000);
        assert!(b[1].contains(s(10)) && b[1].contains(s(12)) && !b[1].contains(s(13)));
        assert_eq!(b[0].lo, None);
    }

    #[test]
    fn an_old_csv_row_was_read_between_its_neighbours() {
        let b = brackets([stamp(10), stamp(12), stamp(14)].into_iter(), Side::Either);
        let s = |s: i64| Instant::from_nanos(s * 1_000_000_000);
        assert!(b[1].contains(s(10)) && b[1].contains(s(14)) && !b[1].contains(s(15)));
        assert_eq!(b[2].hi, None);
    }
}

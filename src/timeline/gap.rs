//! The time between two events that several sources saw, each on its own clock.

use super::clocks::{Clocks, Sighting};
use crate::time::{Duration, Gap};

/// Bounds of the time from one event to another over all their sightings.
///
/// Pairs whose clocks are tied are intersected; among pairs that rest on the assumed skew only the narrowest
/// counts, and only when no pair is tied. `None` when tied pairs contradict each other.
pub fn gap_between(clocks: &Clocks, x: &[Sighting], y: &[Sighting]) -> Option<Gap> {
    let mut tied: Option<Gap> = None;
    let mut assumed: Option<Gap> = None;
    for a in x {
        for b in y {
            let gap = clocks.gap(a, b);
            if gap == Gap::UNKNOWN {
                continue;
            }
            if gap.tied {
                tied = Some(match tied {
                    Some(t) => t.intersect(gap)?,
                    None => gap,
                });
            } else {
                let width = |g: &Gap| g.width().map_or(i64::MAX, Duration::as_nanos);
                if assumed.as_ref().is_none_or(|old| width(&gap) < width(old)) {
                    assumed = Some(gap);
                }
            }
        }
    }
    Some(match (tied, assumed) {
        // A tied pair that is open on a side says nothing there; the assumption may.
        (Some(t), Some(a)) if t.min.is_none() || t.max.is_none() => Gap {
            min: t.min.or(a.min),
            max: t.max.or(a.max),
            clock_error: t.clock_error,
            tied: false,
        },
        (Some(t), _) => t,
        (None, a) => a.unwrap_or(Gap::UNKNOWN),
    })
}

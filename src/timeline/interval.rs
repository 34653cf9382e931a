//! The three intervals of the old harness, with bounds: `intervals.json`.

use serde::{Deserialize, Serialize};

use super::Timeline;
use super::clocks::Sighting;
use super::event::{Event, What};
use super::gap::gap_between;
use crate::time::{Duration, Gap};

/// The content of `intervals.json`: seconds; `null` when not measured or when a bracket is open, never 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Intervals {
    /// From the drain's begin to active_zero.
    pub drain_to_active_zero: Option<f64>,
    /// From active_zero to lb_down: negative when the order is reversed.
    pub active_zero_to_lb_down: Option<f64>,
    /// From lb_down to the first reset on live work: null in most runs.
    pub lb_down_to_first_rst: Option<f64>,
    /// Least and greatest value of each that the evidence allows.
    pub bounds: Bounds,
}

/// `[min, max]` of each interval, seconds; a side that nothing bounds is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// Of `drain_to_active_zero`.
    pub drain_to_active_zero: [Option<f64>; 2],
    /// Of `active_zero_to_lb_down`.
    pub active_zero_to_lb_down: [Option<f64>; 2],
    /// Of `lb_down_to_first_rst`.
    pub lb_down_to_first_rst: [Option<f64>; 2],
}

impl Intervals {
    /// Of the first target for which both ends are known.
    pub fn measure(timeline: &Timeline<'_>, events: &[Event]) -> Self {
        let mut intervals = Self::default();
        let Some(target) = timeline
            .targets
            .iter()
            .find(|t| t.down.is_some() && t.zero.seen)
            .or(timeline.targets.first())
        else {
            return intervals;
        };
        let down = target.down.as_ref().map(|d| d.sightings.as_slice()).unwrap_or_default();
        let zero = if target.zero.seen {
            target.zero.sightings.as_slice()
        } else {
            &[]
        };
        let drain: Vec<Sighting> = events
            .iter()
            .filter(|e| e.server.as_ref() == Some(&target.server))
            .filter(|e| matches!(&e.what, What::Transition { from, .. } if matches!(from.as_str(), "OPEN" | "READY")))
            .take(1)
            .flat_map(|e| e.sightings.clone())
            .collect();
        let rst: Vec<Sighting> = events
            .iter()
            .filter(|e| matches!(e.what, What::Rst { .. }))
            .flat_map(|e| e.sightings.clone())
            .filter(|s| down.iter().any(|d| !timeline.clocks.gap(d, s).surely_negative()))
            .take(1)
            .collect();
        let measure = |x: &[Sighting], y: &[Sighting]| gap_between(&timeline.clocks, x, y).unwrap_or(Gap::UNKNOWN);
        (intervals.drain_to_active_zero, intervals.bounds.drain_to_active_zero) = shown(measure(&drain, zero));
        (
            intervals.active_zero_to_lb_down,
            intervals.bounds.active_zero_to_lb_down,
        ) = shown(measure(zero, down));
        (intervals.lb_down_to_first_rst, intervals.bounds.lb_down_to_first_rst) = shown(measure(down, &rst));
        intervals
    }
}

fn shown(gap: Gap) -> (Option<f64>, [Option<f64>; 2]) {
    let seconds = |d: Duration| (d.as_secs_f64() * 1e6).round() / 1e6;
    (
        gap.midpoint().map(seconds),
        [gap.min.map(seconds), gap.max.map(seconds)],
    )
}

use crate::time::{Duration, Instant};

/// A stretch of time laid over a number of columns or pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    from: Instant,
    until: Instant,
    length: f64,
}

/// Distances between ticks that a person counts in, in milliseconds.
const STEPS_MS: [i64; 22] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000,
];

impl Axis {
    /// From the first to the last moment over `length`. Both the same: a millisecond is shown.
    pub(super) fn new((from, until): (Instant, Instant), length: f64) -> Self {
        let until = until.max(from + Duration::from_millis(1));
        Self { from, until, length }
    }

    /// The same with a little room on both sides.
    pub(super) fn with_margin((from, until): (Instant, Instant), length: f64) -> Self {
        let room = Duration::from_nanos(((until - from).as_nanos() / 50).max(500_000));
        Self::new((from - room, until + room), length)
    }

    /// Where a moment lies, cut to the ends of the axis.
    pub(super) fn position(&self, at: Instant) -> f64 {
        let whole = (self.until - self.from).as_nanos() as f64;
        ((at - self.from).as_nanos() as f64 / whole * self.length).clamp(0.0, self.length)
    }

    /// Its ends.
    pub(super) const fn window(&self) -> (Instant, Instant) {
        (self.from, self.until)
    }

    /// Ticks at round distances from the origin, at most `most` of them.
    pub(super) fn ticks(&self, origin: Instant, most: usize) -> Vec<Tick> {
        let whole = (self.until - self.from).as_nanos();
        let most = i64::try_from(most.max(1)).unwrap_or(1);
        let fits = |step: &i64| whole / (step * 1_000_000) < most;
        // Longer than any step: multiples of the longest.
        let longest = STEPS_MS[STEPS_MS.len() - 1];
        let step_ms = STEPS_MS
            .into_iter()
            .find(fits)
            .unwrap_or(longest * (whole / (longest * 1_000_000) / most + 1));
        let step = step_ms * 1_000_000;
        let first = (self.from - origin).as_nanos().div_euclid(step);
        let offsets = (first..)
            .map(|n| n * step)
            .skip_while(|ns| origin + Duration::from_nanos(*ns) < self.from);
        offsets
            .map(|ns| (ns, origin + Duration::from_nanos(ns)))
            .take_while(|(_, at)| *at <= self.until)
            .map(|(ns, at)| Tick {
                position: self.position(at),
                label: label(ns, step_ms),
            })
            .collect()
    }
}

/// A labelled line across the picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) position: f64,
    pub(super) label: String,
}

/// Seconds with as many digits as the step needs: `+2.5`, `0`, `-10`.
fn label(ns: i64, step_ms: i64) -> String {
    let digits = if step_ms % 1_000 == 0 {
        0
    } else if step_ms % 100 == 0 {
        1
    } else if step_ms % 10 == 0 {
        2
    } else {
        3
    };
    if ns == 0 {
        "0".to_owned()
    } else {
        format!("{:+.digits$}", ns as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(1_767_225_600_000_000_000) + Duration::from_millis(ms)
    }

    fn labels(from: i64, until: i64, most: usize) -> Vec<String> {
        Axis::new((at(from), at(until)), 100.0)
            .ticks(at(0), most)
            .into_iter()
            .map(|t| t.label)
            .collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(-5_200, 62_000, 8),
            ["0", "+10", "+20", "+30", "+40", "+50", "+60"]
        );
        assert_eq!(labels(2_000, 2_350, 5), ["+2.0", "+2.1", "+2.2", "+2.3"]);
        assert_eq!(labels(0, 0, 5), ["0", "+0.001"]);
        assert_eq!(labels(-3_600_000, 7_200_000, 4), ["-3600", "0", "+3600", "+7200"]);
    }

    proptest! {
        #[test]
        fn ticks_are_few_and_on_the_axis(from in -1_000_000_000i64..1_000_000_000, length in 0i64..1_000_000_000_000, most in 2usize..20) {
            let axis = Axis::new((at(from), at(from + length)), 100.0);
            let ticks = axis.ticks(at(0), most);
            prop_assert!(ticks.len() <= most + 1, "{}", ticks.len());
            prop_assert!(ticks.iter().all(|t| (0.0..=100.0).contains(&t.position)));
            prop_assert!(ticks.windows(2).all(|w| w[0].position < w[1].position && w[0].label != w[1].label));
        }
    }
}

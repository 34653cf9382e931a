use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Duration, Instant};

/// When something happened, as far as it is known: after `lo` and not after `hi`, `(lo, hi]`.
///
/// A side that nothing bounds is `None`. Both ends are on one clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, Default)]
pub struct Bracket {
    /// It happened after this moment.
    pub lo: Option<Instant>,
    /// It happened at this moment or before.
    pub hi: Option<Instant>,
}

impl Bracket {
    /// Nothing is known.
    pub const OPEN: Self = Self { lo: None, hi: None };

    /// `(lo, hi]`.
    pub const fn new(lo: Instant, hi: Instant) -> Self {
        Self {
            lo: Some(lo),
            hi: Some(hi),
        }
    }

    /// A stamp cut to its resolution: `(t - 1 ns, t + r - 1 ns]`.
    pub fn floored(t: Instant, resolution: Duration) -> Self {
        let ns = Duration::from_nanos(1);
        Self::new(t - ns, t + resolution - ns)
    }

    /// A stamp rounded to its resolution: `(t - r/2, t + r/2]`.
    pub fn rounded(t: Instant, resolution: Duration) -> Self {
        Self::new(t - resolution.half(), t + resolution.half())
    }

    /// Both ends moved by the same amount.
    pub fn shifted(self, by: Duration) -> Self {
        Self {
            lo: self.lo.map(|t| t + by),
            hi: self.hi.map(|t| t + by),
        }
    }

    /// Both ends moved apart by `error`.
    pub fn widened(self, error: Duration) -> Self {
        Self {
            lo: self.lo.map(|t| t - error),
            hi: self.hi.map(|t| t + error),
        }
    }

    /// What both brackets allow; `None` when they contradict each other.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let lo = self.lo.max(other.lo);
        let hi = match (self.hi, other.hi) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        match (lo, hi) {
            (Some(lo), Some(hi)) if lo >= hi => None,
            _ => Some(Self { lo, hi }),
        }
    }

    /// The smallest bracket that holds both.
    pub fn hull(self, other: Self) -> Self {
        Self {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    /// True when this certainly happened before the other: `hi <= other.lo`.
    pub fn surely_before(self, other: Self) -> bool {
        matches!((self.hi, other.lo), (Some(hi), Some(lo)) if hi <= lo)
    }

    /// True when the moment may lie inside.
    pub fn contains(self, t: Instant) -> bool {
        self.lo.is_none_or(|lo| lo < t) && self.hi.is_none_or(|hi| t <= hi)
    }

    /// `hi - lo`, when both ends are known.
    pub fn width(self) -> Option<Duration> {
        Some(self.hi? - self.lo?)
    }

    /// The middle, when both ends are known.
    pub fn midpoint(self) -> Option<Instant> {
        let (lo, hi) = (self.lo?, self.hi?);
        Some(lo + (hi - lo).half())
    }
}

impl fmt::Display for Bracket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lo {
            Some(lo) => write!(f, "({lo}, ")?,
            None => f.write_str("(?, ")?,
        }
        match self.hi {
            Some(hi) => write!(f, "{hi}]"),
            None => f.write_str("?)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bracket() -> impl Strategy<Value = Bracket> {
        (any::<Option<i32>>(), 1..1000i64, any::<bool>()).prop_map(|(lo, width, open)| {
            let lo = lo.map(|v| Instant::from_nanos(i64::from(v)));
            let hi = if open {
                None
            } else {
                Some(lo.unwrap_or(Instant::from_nanos(0)) + Duration::from_nanos(width))
            };
            Bracket { lo, hi }
        })
    }

    proptest! {
        #[test]
        fn an_order_is_claimed_by_one_side_at_most(a in bracket(), b in bracket()) {
            prop_assert!(!(a.surely_before(b) && b.surely_before(a)));
        }

        #[test]
        fn an_intersection_holds_what_both_hold(a in bracket(), b in bracket(), t in any::<i32>()) {
            let t = Instant::from_nanos(i64::from(t));
            let inside = a.intersect(b).is_some_and(|both| both.contains(t));
            prop_assert_eq!(inside, a.contains(t) && b.contains(t));
        }

        #[test]
        fn a_hull_holds_what_either_holds(a in bracket(), b in bracket(), t in any::<i32>()) {
            let t = Instant::from_nanos(i64::from(t));
            prop_assert!(a.hull(b).contains(t) || !(a.contains(t) || b.contains(t)));
        }
    }
}

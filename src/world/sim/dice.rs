//! Randomness of the model: one seeded generator, so that the same seed draws the same world on every machine.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::time::Duration;

/// The model's only source of chance.
#[derive(Debug, Clone)]
pub(super) struct Dice(StdRng);

impl Dice {
    /// From a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// True with probability `p`.
    pub(super) fn chance(&mut self, p: f64) -> bool {
        self.0.random::<f64>() < p
    }

    /// Evenly between the two, in nanoseconds; `lo` when the range is empty.
    pub(super) fn between(&mut self, lo: Duration, hi: Duration) -> Duration {
        if hi <= lo {
            return lo;
        }
        Duration::from_nanos(self.0.random_range(lo.as_nanos()..hi.as_nanos()))
    }

    /// Evenly between two numbers of microseconds, to the nanosecond.
    pub(super) fn micros(&mut self, lo: i64, hi: i64) -> Duration {
        self.between(Duration::from_micros(lo), Duration::from_micros(hi))
    }

    /// A measured spread of microseconds: never below `min` nor above `max`, half of the draws below `median`, and the
    /// far ends rare.
    pub(super) fn spread(&mut self, min: i64, median: i64, max: i64) -> Duration {
        let [min, median, max] = [min, median, max].map(Duration::from_micros);
        self.spread_of(min, median, max)
    }

    /// The same for durations.
    pub(super) fn spread_of(&mut self, min: Duration, median: Duration, max: Duration) -> Duration {
        let u: f64 = self.0.random();
        // Cubic towards the maximum: measured tails are long and thin.
        let (from, to, share) = if u < 0.5 {
            (median, min, 1.0 - 2.0 * u)
        } else {
            (median, max, 2.0 * u - 1.0)
        };
        let bend = if u < 0.5 { share } else { share.powi(3) };
        let nanos = (to - from).as_nanos() as f64 * bend;
        Duration::from_nanos(from.as_nanos() + nanos as i64)
    }

    /// An integer in `lo..hi`; `lo` when the range is empty.
    pub(super) fn int(&mut self, lo: i64, hi: i64) -> i64 {
        if hi <= lo { lo } else { self.0.random_range(lo..hi) }
    }

    /// One of the given; the slice must not be empty.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.random_range(0..of.len())]
    }

    /// A fraction in `lo..hi`.
    pub(super) fn fraction(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.0.random::<f64>()
    }

    /// A word of lower-case letters and digits as Kubernetes makes them (no vowels, no 0, 1, 3).
    pub(super) fn suffix(&mut self, len: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..len).map(|_| char::from(*self.pick(LETTERS))).collect()
    }

    /// A UUID, version 4.
    pub(super) fn uuid(&mut self) -> String {
        let bits: u128 = self.0.random();
        let hex = format!("{bits:032x}");
        let variant = b"89ab"[(bits & 3) as usize] as char;
        format!(
            "{}-{}-4{}-{variant}{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..]
        )
    }

    /// A 32-bit number, for initial sequence numbers.
    pub(super) fn word(&mut self) -> u32 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_stays_inside_and_has_its_median() {
        let mut dice = Dice::new(1);
        let mut draws: Vec<_> = (0..10_001).map(|_| dice.spread(4, 14, 44)).collect();
        draws.sort();
        assert!(draws[0] >= Duration::from_micros(4) && draws[10_000] <= Duration::from_micros(44));
        let off = (draws[5_000] - Duration::from_micros(14)).abs();
        assert!(off < Duration::from_micros(1), "median off by {off}");
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed| (Dice::new(seed).uuid(), Dice::new(seed).suffix(5));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}

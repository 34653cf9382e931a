//! Offsets between clocks, bounded by what is known to have happened in which order.
//!
//! Two clocks tell the same moment differently; the difference is never assumed to be zero. Every pair of
//! moments of which one certainly came before the other, read on two clocks, bounds it from one side. All bounds
//! together are a system of difference constraints, solved by shortest paths: the result is sound however the
//! messages are spread over the clocks, and a system without a solution is a contradiction.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::{Bracket, Duration, Instant};

/// A clock; an index that the owner of [`ClockTies`] gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock(pub u16);

/// How far clock A is ahead of clock B: `A - B` of one moment, at least `min` and at most `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetBounds {
    /// At least this much ahead; `None` when nothing bounds it.
    pub min: Option<Duration>,
    /// At most this much ahead.
    pub max: Option<Duration>,
    /// Both bounds come from messages or exchanges; false when a bound is the assumed greatest skew.
    pub tied: bool,
}

impl OffsetBounds {
    /// One clock with itself.
    pub const SAME: Self = Self {
        min: Some(Duration::ZERO),
        max: Some(Duration::ZERO),
        tied: true,
    };

    /// `max - min`.
    pub fn width(self) -> Option<Duration> {
        Some(self.max? - self.min?)
    }
}

/// One bound between two clocks, taken at a time.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// When, on the first clock of the pair.
    at: Instant,
    /// Greatest value of `first - second`.
    value: Duration,
}

/// The greatest `first - second` at any time: the best of all bounds, each loosened by the drift since it was taken.
#[derive(Debug, Clone, Default)]
struct Envelope {
    bounds: Vec<Bound>,
}

impl Envelope {
    fn at(&self, t: Instant, drift: f64) -> Option<Duration> {
        self.bounds.iter().map(|b| b.value + drift_over(t - b.at, drift)).min()
    }

    /// Drops bounds that another one beats even after drifting to their time; keeps queries short.
    fn thin(&mut self, drift: f64) {
        if self.bounds.len() < 2 {
            return;
        }
        self.bounds.sort_by_key(|b| (b.at, b.value));
        let mut keep: Vec<Bound> = Vec::new();
        for b in std::mem::take(&mut self.bounds) {
            if keep
                .last()
                .is_some_and(|k| k.value + drift_over(b.at - k.at, drift) <= b.value)
            {
                continue;
            }
            while keep
                .last()
                .is_some_and(|k| b.value + drift_over(b.at - k.at, drift) <= k.value)
            {
                keep.pop();
            }
            keep.push(b);
        }
        self.bounds = keep;
    }
}

fn drift_over(span: Duration, drift: f64) -> Duration {
    Duration::from_nanos((span.abs().as_nanos() as f64 * drift) as i64)
}

/// All that is known about the differences of a set of clocks.
#[derive(Debug, Clone)]
pub struct ClockTies {
    clocks: usize,
    upper: BTreeMap<(Clock, Clock), Envelope>,
    excluded: Vec<bool>,
    max_skew: Duration,
    drift: f64,
    solved: RefCell<HashMap<i64, Rc<Solution>>>,
}

/// Greatest `a - b` for all pairs at one time, from ties alone.
type Solution = Vec<Option<Duration>>;

/// A set of clocks whose ties contradict each other, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The clocks on the shortest contradicting round.
    pub clocks: Vec<Clock>,
    /// By how much the ties miss each other.
    pub size: Duration,
}

impl ClockTies {
    /// No clock is tied yet. `max_skew` is assumed for any two clocks that stay untied; `drift` is the greatest
    /// relative rate difference of two clocks (1e-4 is 100 ppm).
    pub fn new(clocks: usize, max_skew: Duration, drift: f64) -> Self {
        Self {
            clocks,
            upper: BTreeMap::new(),
            excluded: vec![false; clocks],
            max_skew,
            drift,
            solved: RefCell::new(HashMap::new()),
        }
    }

    /// What is assumed of two clocks that nothing ties.
    pub fn max_skew(&self) -> Duration {
        self.max_skew
    }

    /// `earlier`, read on its clock, happened before `later`, read on its own, or at most `slack` after it.
    pub fn before(&mut self, earlier: (Clock, Bracket), later: (Clock, Bracket), slack: Duration) {
        let ((a, x), (b, y)) = (earlier, later);
        if a == b {
            return;
        }
        // The earlier moment is after x.lo on A and the later one not after y.hi on B, so B - A <= y.hi - x.lo.
        if let (Some(lo), Some(hi)) = (x.lo, y.hi) {
            self.upper.entry((b, a)).or_default().bounds.push(Bound {
                at: hi,
                value: hi - lo + slack,
            });
            self.solved.get_mut().clear();
        }
    }

    /// Both brackets hold one moment, give or take `slack`.
    pub fn same(&mut self, x: (Clock, Bracket), y: (Clock, Bracket), slack: Duration) {
        self.before(x, y, slack);
        self.before(y, x, slack);
    }

    /// Sorts out bounds that others beat; call once after all ties are made.
    pub fn finish(&mut self) {
        for envelope in self.upper.values_mut() {
            envelope.thin(self.drift);
        }
        self.solved.get_mut().clear();
    }

    /// Takes a clock out: nothing is ordered by it any more.
    pub fn exclude(&mut self, clock: Clock) {
        self.excluded[usize::from(clock.0)] = true;
        self.solved.get_mut().clear();
    }

    /// The clock is out.
    pub fn is_excluded(&self, clock: Clock) -> bool {
        self.excluded[usize::from(clock.0)]
    }

    /// Number of bounds between the two clocks, both directions.
    pub fn count(&self, a: Clock, b: Clock) -> usize {
        [(a, b), (b, a)]
            .iter()
            .filter_map(|pair| self.upper.get(pair))
            .map(|e| e.bounds.len())
            .sum()
    }

    /// How far clock `a` is ahead of clock `b` at about `t`.
    pub fn offset(&self, a: Clock, b: Clock, t: Instant) -> OffsetBounds {
        if a == b {
            return OffsetBounds::SAME;
        }
        if self.is_excluded(a) || self.is_excluded(b) {
            return OffsetBounds {
                min: None,
                max: None,
                tied: false,
            };
        }
        let solution = self.solution(t);
        let max = solution[self.index(a, b)];
        let min = solution[self.index(b, a)].map(|d| -d);
        match (min, max) {
            (Some(_), Some(_)) => OffsetBounds { min, max, tied: true },
            // One side is tied: the assumption closes the other only where it does not contradict the tie.
            (Some(lo), None) => OffsetBounds {
                min,
                max: Some(self.max_skew).filter(|s| *s > lo),
                tied: false,
            },
            (None, Some(hi)) => OffsetBounds {
                min: Some(-self.max_skew).filter(|s| *s < hi),
                max,
                tied: false,
            },
            (None, None) => OffsetBounds {
                min: Some(-self.max_skew),
                max: Some(self.max_skew),
                tied: false,
            },
        }
    }

    fn index(&self, a: Clock, b: Clock) -> usize {
        usize::from(a.0) * self.clocks + usize::from(b.0)
    }

    /// Shortest paths over the bounds as they stand in the second of `t`; solved once a second.
    fn solution(&self, t: Instant) -> Rc<Solution> {
        const SECOND: i64 = 1_000_000_000;
        let second = t.as_nanos().div_euclid(SECOND);
        if let Some(s) = self.solved.borrow().get(&second) {
            return Rc::clone(s);
        }
        let s = Rc::new(self.solve(Instant::from_nanos(second.saturating_mul(SECOND))));
        self.solved.borrow_mut().insert(second, Rc::clone(&s));
        s
    }

    fn solve(&self, t: Instant) -> Solution {
        let n = self.clocks;
        let within_the_second = drift_over(Duration::from_secs(1), self.drift);
        let mut d: Solution = vec![None; n * n];
        for ((a, b), envelope) in &self.upper {
            if !self.is_excluded(*a) && !self.is_excluded(*b) {
                d[self.index(*a, *b)] = envelope.at(t, self.drift).map(|v| v + within_the_second);
            }
        }
        for k in 0..n {
            for i in 0..n {
                let Some(ik) = d[i * n + k] else { continue };
                for j in 0..n {
                    if let Some(kj) = d[k * n + j] {
                        let via = ik + kj;
                        if d[i * n + j].is_none_or(|old| via < old) {
                            d[i * n + j] = Some(via);
                        }
                    }
                }
            }
        }
        d
    }

    /// The largest contradiction at about `t`: between two clocks where there is one, else on a round of three,
    /// else on a longer one.
    pub fn contradiction(&self, t: Instant) -> Option<Contradiction> {
        let n = self.clocks;
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| vec![a, b]));
        if let Some(worst) = self.worst_round(pairs, t) {
            return Some(worst);
        }
        let triples = (0..n).flat_map(|a| {
            (a + 1..n).flat_map(move |b| (a + 1..n).filter(move |c| *c != b).map(move |c| vec![a, b, c]))
        });
        if let Some(worst) = self.worst_round(triples, t) {
            return Some(worst);
        }
        let d = self.solve(t);
        let negative = |i: &usize| d[i * n + i].is_some_and(|v| v < Duration::ZERO);
        let clocks: Vec<Clock> = (0..n).filter(negative).map(|i| Clock(i as u16)).collect();
        let size = clocks.iter().filter_map(|c| d[self.index(*c, *c)]).min()?;
        Some(Contradiction { clocks, size: -size })
    }

    /// The round whose bounds, added up, lie furthest below zero.
    fn worst_round(&self, rounds: impl Iterator<Item = Vec<usize>>, t: Instant) -> Option<Contradiction> {
        let bound = |a: usize, b: usize| {
            if self.excluded[a] || self.excluded[b] {
                return None;
            }
            self.upper.get(&(Clock(a as u16), Clock(b as u16)))?.at(t, self.drift)
        };
        rounds
            .filter_map(|round| {
                let next = round.iter().cycle().skip(1);
                let sum = round
                    .iter()
                    .zip(next)
                    .try_fold(Duration::ZERO, |sum, (a, b)| Some(sum + bound(*a, *b)?))?;
                (sum < Duration::ZERO).then(|| Contradiction {
                    clocks: round.iter().map(|i| Clock(*i as u16)).collect(),
                    size: -sum,
                })
            })
            .max_by_key(|c| c.size)
    }

    /// Bounds of `y - x`, each moment read on its own clock. `None` on a side that nothing bounds.
    pub fn gap(&self, x: (Clock, Bracket), y: (Clock, Bracket)) -> Gap {
        let Some(t) = x.1.hi.or(x.1.lo).or(y.1.hi).or(y.1.lo) else {
            return Gap::UNKNOWN;
        };
        let ahead = self.offset(x.0, y.0, t);
        let sum =
            |end: Option<Instant>, start: Option<Instant>, offset: Option<Duration>| Some(end? - start? + offset?);
        Gap {
            min: sum(y.1.lo, x.1.hi, ahead.min),
            max: sum(y.1.hi, x.1.lo, ahead.max),
            clock_error: ahead.width().map(Duration::half),
            tied: ahead.tied,
        }
    }

    /// The bracket as clock `to` would read it.
    pub fn convert(&self, from: Clock, at: Bracket, to: Clock) -> Bracket {
        let Some(t) = at.hi.or(at.lo) else { return at };
        let ahead = self.offset(from, to, t);
        Bracket {
            lo: at.lo.zip(ahead.max).map(|(lo, d)| lo - d),
            hi: at.hi.zip(ahead.min).map(|(hi, d)| hi - d),
        }
    }
}

/// Bounds of the time from one event to another: more than `min`, at most `max`; negative when the second came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// More than this.
    pub min: Option<Duration>,
    /// At most this.
    pub max: Option<Duration>,
    /// What the two clocks contribute to the error; zero on one clock.
    pub clock_error: Option<Duration>,
    /// No assumption about clocks was needed.
    pub tied: bool,
}

impl Gap {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        min: None,
        max: None,
        clock_error: None,
        tied: false,
    };

    /// `max - min`.
    pub fn width(self) -> Option<Duration> {
        Some(self.max? - self.min?)
    }

    /// The middle.
    pub fn midpoint(self) -> Option<Duration> {
        let (min, max) = (self.min?, self.max?);
        Some(min + (max - min).half())
    }

    /// What both allow; `None` when they contradict each other.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let min = self.min.max(other.min);
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if matches!((min, max), (Some(a), Some(b)) if a > b) {
            return None;
        }
        let clock_error = match (self.clock_error, other.clock_error) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Some(Self {
            min,
            max,
            clock_error,
            tied: self.tied && other.tied,
        })
    }

    /// The second surely came after the first, or at the same moment.
    pub fn surely_positive(self) -> bool {
        self.min.is_some_and(|m| m >= Duration::ZERO)
    }

    /// The second surely came before the first, or at the same moment.
    pub fn surely_negative(self) -> bool {
        self.max.is_some_and(|m| m <= Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Clock = Clock(0);
    const B: Clock = Clock(1);
    const C: Clock = Clock(2);

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(1_000_000_000_000 + ms * 1_000_000)
    }

    fn point(ms: i64) -> Bracket {
        Bracket::floored(at(ms), Duration::from_millis(1))
    }

    #[test]
    fn untied_clocks_differ_by_the_assumption() {
        let ties = ClockTies::new(2, Duration::from_secs(1), 0.0);
        let o = ties.offset(A, B, at(0));
        assert_eq!(
            (o.min, o.max, o.tied),
            (Some(Duration::from_secs(-1)), Some(Duration::from_secs(1)), false)
        );
    }

    #[test]
    fn a_message_each_way_bounds_the_offset_on_both_sides() {
        let mut ties = ClockTies::new(2, Duration::from_secs(1), 0.0);
        // B is 3 s ahead of A; a request takes 2 ms there and 3 ms back.
        ties.before((A, point(0)), (B, point(3002)), Duration::ZERO);
        ties.before((B, point(3010)), (A, point(13)), Duration::ZERO);
        let o = ties.offset(B, A, at(0));
        assert!(o.tied);
        assert!(
            o.min <= Some(Duration::from_secs(3)) && Some(Duration::from_secs(3)) <= o.max,
            "{o:?}"
        );
        assert!(o.width().expect("both sides") < Duration::from_millis(8), "{o:?}");
    }

    #[test]
    fn ties_go_through_a_third_clock() {
        let mut ties = ClockTies::new(3, Duration::from_secs(1), 0.0);
        ties.same((A, point(0)), (B, point(100)), Duration::ZERO);
        ties.same((B, point(200)), (C, point(500)), Duration::ZERO);
        let o = ties.offset(C, A, at(0));
        assert!(
            o.tied && o.min > Some(Duration::from_millis(390)) && o.max < Some(Duration::from_millis(410)),
            "{o:?}"
        );
    }

    #[test]
    fn what_cannot_be_is_a_contradiction() {
        let mut ties = ClockTies::new(2, Duration::from_secs(1), 0.0);
        ties.same((A, point(0)), (B, point(0)), Duration::ZERO);
        ties.same((A, point(1000)), (B, point(2000)), Duration::ZERO);
        let c = ties.contradiction(at(0)).expect("one second");
        assert_eq!(c.clocks, [A, B]);
        assert!(c.size > Duration::from_millis(990));
    }

    proptest! {
        /// Whatever the true offset and the delays, the true offset is inside, and gaps hold the true gap.
        #[test]
        fn bounds_hold_the_truth(
            offset in -5000i64..5000, drift in -50i64..50,
            messages in prop::collection::vec((0i64..60_000, 0i64..50, any::<bool>()), 1..20),
            x in 0i64..60_000, y in 0i64..60_000,
        ) {
            let on_b = |t: i64| t + offset + t * drift / 1_000_000;
            let mut ties = ClockTies::new(2, Duration::from_secs(10), 1e-4);
            for (t, delay, there) in messages {
                if there {
                    ties.before((A, point(t)), (B, point(on_b(t + delay))), Duration::ZERO);
                } else {
                    ties.before((B, point(on_b(t))), (A, point(t + delay)), Duration::ZERO);
                }
            }
            ties.finish();
            prop_assert!(ties.contradiction(at(x)).is_none());
            let gap = ties.gap((A, point(x)), (B, point(on_b(y))));
            let truth = Duration::from_millis(y - x);
            let ms = Duration::from_millis(2);
            prop_assert!(gap.min.is_none_or(|m| m <= truth + ms), "{gap:?} {truth}");
            prop_assert!(gap.max.is_none_or(|m| m >= truth - ms), "{gap:?} {truth}");
        }
    }
}

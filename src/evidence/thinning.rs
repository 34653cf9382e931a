//! What is kept of a file that is too long to be kept: first and last of runs of equal samples; of the requests of a
//! load all that were out of the ordinary, with those around them in time.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// Lists below this length are never thinned.
const SMALL: usize = 20_000;

/// Decides when to thin a growing list of samples, and what stays.
#[derive(Debug)]
pub(crate) struct Thinning {
    next: usize,
}

impl Default for Thinning {
    fn default() -> Self {
        Self { next: SMALL }
    }
}

impl Thinning {
    /// The list has grown so much since the last time that thinning is worth a pass.
    pub(crate) fn due(&self, length: usize) -> bool {
        length >= self.next
    }

    /// Which items stay: the first and the last of every run of equal ones.
    pub(crate) fn keep<T>(&mut self, items: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<bool> {
        let keep: Vec<bool> = (0..items.len())
            .map(|i| {
                let before = i > 0 && same(&items[i - 1], &items[i]);
                let after = i + 1 < items.len() && same(&items[i], &items[i + 1]);
                !(before && after)
            })
            .collect();
        self.next = SMALL.max(2 * keep.iter().filter(|k| **k).count());
        keep
    }
}

/// Keeps the items that `keep` marks.
pub(crate) fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut marks = keep.iter();
    items.retain(|_| marks.next().is_some_and(|k| *k));
}

/// How much is kept of a folder, whatever it says. A run of a quarter of an hour at 30 requests a second keeps
/// everything; what is longer keeps what is out of the ordinary, up to three times as much. All of it together takes
/// about 150 MB, however large the folder.
pub(crate) mod room {
    /// Lines of HAProxy's log.
    pub(crate) const HAPROXY_LOG: usize = 30_000;
    /// Lines of a further log: as a rule a copy in another format.
    pub(crate) const FURTHER_HAPROXY_LOG: usize = 8_000;
    /// Access lines of all pods.
    pub(crate) const ENVOY_LOG: usize = 40_000;
    /// Records of one load.
    pub(crate) const LOAD: usize = 30_000;
    /// Packets of all captures: those of some fifteen thousand connections.
    pub(crate) const CAPTURE: usize = 60_000;
    /// Lines of all pods' FSM logs.
    pub(crate) const HC_LOG: usize = 60_000;
    /// Snapshots of HAProxy's statistics, after thinning: eight hours of changes at each poll of 0.5 s.
    pub(crate) const HAPROXY_CSV: usize = 60_000;
    /// Samples of all pods' gauges, after thinning.
    pub(crate) const ENVOY_STATS: usize = 100_000;
    /// Watch events of one file.
    pub(crate) const WATCH: usize = 50_000;
}
/// Regular lines this long before and after an irregular one are kept with it.
const AROUND: Duration = Duration::from_secs(60);
/// At most so many of them before it.
const BEFORE: usize = 4_096;

/// A list of lines of which, beyond a length, the regular ones are counted only.
#[derive(Debug)]
pub(crate) struct Keeper<T> {
    kept: Vec<T>,
    /// Regular lines of the last minute that may yet be wanted.
    recent: VecDeque<(Option<Instant>, T)>,
    /// Until then regular lines are kept.
    until: Option<Instant>,
    all_kept: usize,
    omitted: u64,
    lost: u64,
}

impl<T> Keeper<T> {
    /// Keeps so many whatever they say.
    pub(crate) fn new(all_kept: usize) -> Self {
        Self {
            kept: Vec::new(),
            recent: VecDeque::new(),
            until: None,
            all_kept,
            omitted: 0,
            lost: 0,
        }
    }

    /// Takes a line, stamped `at`. A regular one says nothing but that all was well.
    pub(crate) fn push(&mut self, item: T, at: Option<Instant>, regular: bool) {
        if self.kept.len() < self.all_kept {
            self.kept.push(item);
            return;
        }
        let room = self.has_room();
        if regular {
            if room && self.until.zip(at).is_some_and(|(until, at)| at <= until) {
                self.kept.push(item);
                return;
            }
            if room {
                self.recent.push_back((at, item));
                while self.recent.len() > BEFORE || self.is_old(at) {
                    self.recent.pop_front();
                    self.omitted += 1;
                }
            } else {
                self.omitted += 1 + self.recent.len() as u64;
                self.recent.clear();
            }
            return;
        }
        if self.kept.len() >= self.all_kept * 3 {
            self.lost += 1;
            return;
        }
        if room {
            self.kept.extend(self.recent.drain(..).map(|(_, item)| item));
        }
        self.kept.push(item);
        self.until = at.map(|t| t + AROUND).or(self.until);
    }

    /// Regular lines are no longer kept as a matter of course.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= self.all_kept
    }

    /// For regular lines around others.
    fn has_room(&self) -> bool {
        self.kept.len() < self.all_kept + self.all_kept / 4
    }

    fn is_old(&self, now: Option<Instant>) -> bool {
        let oldest = self.recent.front().and_then(|(t, _)| *t);
        oldest.zip(now).is_some_and(|(oldest, now)| now - oldest > AROUND)
    }

    /// What was kept, how many regular lines were counted only, and how many others had no room.
    pub(crate) fn finish(mut self) -> (Vec<T>, u64, u64) {
        // The end of a file is of interest by itself.
        if self.has_room() {
            self.kept.extend(self.recent.drain(..).map(|(_, item)| item));
        } else {
            self.omitted += self.recent.len() as u64;
        }
        (self.kept, self.omitted, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_and_last_of_a_run_stay() {
        let mut items = vec![
            (1, 'a'),
            (2, 'a'),
            (3, 'a'),
            (4, 'b'),
            (5, 'a'),
            (6, 'a'),
            (7, 'c'),
            (8, 'c'),
            (9, 'c'),
        ];
        let keep = Thinning::default().keep(&items, |x, y| x.1 == y.1);
        retain(&mut items, &keep);
        assert_eq!(items.iter().map(|x| x.0).collect::<Vec<_>>(), [1, 3, 4, 5, 6, 7, 9]);
    }

    fn second(n: i64) -> Option<Instant> {
        Some(Instant::from_nanos(n * 1_000_000_000))
    }

    #[test]
    fn what_is_out_of_the_ordinary_stays_with_its_surroundings() {
        let mut keeper = Keeper::new(1000);
        for n in 0..3000 {
            keeper.push(n, second(n), n != 2000);
        }
        let (kept, omitted, lost) = keeper.finish();
        let expected: Vec<i64> = (0..1000).chain(1939..=2060).chain(2939..3000).collect();
        assert!(kept == expected, "{:?}", &kept[1000..]);
        assert_eq!((omitted, lost), (3000 - expected.len() as u64, 0));
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut keeper = Keeper::new(room::HAPROXY_LOG);
        for n in 0..400_000 {
            keeper.push(n, second(n), n % 2 == 0);
        }
        let (kept, omitted, lost) = keeper.finish();
        assert!(kept.len() <= 3 * room::HAPROXY_LOG);
        assert_eq!(kept.len() as u64 + omitted + lost, 400_000);
        assert!(kept.is_sorted());
    }

    proptest! {
        #[test]
        fn irregular_lines_are_kept_and_all_are_counted(marks in proptest::collection::vec(any::<bool>(), 0..400), gap in 0i64..90) {
            let mut keeper = Keeper::new(200);
            for (n, regular) in marks.iter().enumerate() {
                keeper.push(n, second(n as i64 * gap), *regular);
            }
            let (kept, omitted, lost) = keeper.finish();
            prop_assert_eq!(kept.len() as u64 + omitted + lost, marks.len() as u64);
            prop_assert!(kept.is_sorted());
            prop_assert!(marks.iter().enumerate().all(|(n, regular)| *regular || kept.contains(&n)));
        }
    }
}

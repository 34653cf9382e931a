//! The clocks of a run folder: one for each file that nothing says shares another's, tied by measured exchanges
//! and by the messages of the run.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{self, Message};
use super::request::Requests;
use super::site::{Knowledge, Site};
use crate::evidence::{Evidence, FileClock, FileId, SourceKind};
use crate::time::{Bracket, Clock, ClockTies, Duration, Gap, Instant};

/// Greatest rate difference of two clocks: 100 ppm, twice what quartz and NTP's slewing show.
const DRIFT: f64 = 1e-4;
/// Clocks of one run differ by less than this, a wrong zone aside, which is found apart.
const PLAUSIBLE: Duration = Duration::from_secs(60);
/// Messages of one run contradict each other by less than this, whatever a clock did.
const IMPLAUSIBLE: Duration = Duration::from_secs(5);
/// Assumed greatest difference of two clocks that nothing ties.
pub const DEFAULT_MAX_SKEW: Duration = Duration::from_secs(1);

/// A moment as one source tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The clock.
    pub clock: Clock,
    /// The bracket on that clock.
    pub at: Bracket,
    /// The file.
    pub file: FileId,
    /// Its line or record, from 1; 0 for none.
    pub line: u32,
}

/// What is wrong with a file's clock, or with the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Its messages contradict another file's: nothing is ordered by either.
    Disagrees {
        /// The other file or host.
        with: String,
        /// By how much.
        by: Duration,
    },
    /// Its clock is further off than what is assumed of untied clocks; its messages say how far.
    Off {
        /// The other file or host.
        with: String,
        /// Least and greatest offset.
        offset: (Duration, Duration),
    },
    /// It does not belong to this run: it shares no message with the others and is of another time.
    Foreign,
    /// Local time of an unknown zone, and nothing tells which.
    UnknownZone,
}

/// The clocks of a run.
#[derive(Debug, Clone)]
pub struct Clocks {
    ties: ClockTies,
    of_file: Vec<Option<Clock>>,
    /// Subtracted from a file's stamps first: the zone of a log whose stamps carry none.
    zone_shift: Vec<Duration>,
    names: Vec<String>,
    counts: BTreeMap<(Clock, Clock), u64>,
    /// What is wrong, by clock.
    pub trouble: BTreeMap<Clock, Trouble>,
    messages: Vec<Message>,
}

impl Clocks {
    /// Ties the clocks of a run folder.
    pub fn tie(evidence: &Evidence, site: &Site, requests: &Requests, log: Option<usize>, known: &Knowledge) -> Self {
        let mut clocks = Self::assign(evidence, known.max_skew.unwrap_or(DEFAULT_MAX_SKEW));
        clocks.find_zones(evidence, requests, log);
        let found = message::all(evidence, site, requests, log, &clocks);
        for m in &found {
            clocks
                .ties
                .before((m.earlier.clock, m.earlier.at), (m.later.clock, m.later.at), m.slack);
            let key = ordered(m.earlier.clock, m.later.clock);
            *clocks.counts.entry(key).or_default() += 1;
        }
        clocks.messages = found;
        clocks.ties.finish();
        let told: BTreeSet<Clock> = message::request_sightings(evidence, requests, &clocks)
            .iter()
            .map(|s| s.clock)
            .collect();
        let home = clocks.home(&told);
        let window = clocks.request_window(evidence, requests, &home);
        clocks.find_contradictions(evidence, &home, window);
        clocks.find_foreign(evidence, &home, window);
        clocks.find_far_off(&home);
        clocks
    }

    fn assign(evidence: &Evidence, max_skew: Duration) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut named = |name: String| {
            let i = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            Clock(i as u16)
        };
        let of_file: Vec<Option<Clock>> = evidence
            .files
            .iter()
            .map(|f| match &f.clock {
                FileClock::Gtrun => Some(named("gtrun".to_owned())),
                FileClock::Host(h) => Some(named(format!("host {h}"))),
                FileClock::Own | FileClock::OwnUnknownZone => Some(named(f.name.clone())),
                FileClock::None => None,
            })
            .collect();
        named(ARRIVAL.to_owned());
        for exchange in &evidence.clock_exchanges {
            named("gtrun".to_owned());
            named(format!("host {}", exchange.host));
        }
        Self {
            ties: ClockTies::new(names.len(), max_skew, DRIFT),
            zone_shift: vec![Duration::ZERO; of_file.len()],
            of_file,
            names,
            counts: BTreeMap::new(),
            trouble: BTreeMap::new(),
            messages: Vec::new(),
        }
    }

    /// The clock by its name.
    pub fn named(&self, name: &str) -> Option<Clock> {
        self.names.iter().position(|n| n == name).map(|i| Clock(i as u16))
    }

    /// The clock that arrivals of log lines and watch events were stamped on: gtrun's, or the old script's.
    pub fn arrival(&self) -> Option<Clock> {
        self.named("gtrun").or_else(|| self.named(ARRIVAL))
    }

    /// Name of a clock: `gtrun`, `host lb`, or the file's name.
    pub fn name(&self, clock: Clock) -> &str {
        &self.names[usize::from(clock.0)]
    }

    /// The clocks.
    pub fn all(&self) -> impl Iterator<Item = Clock> + use<> {
        (0..self.names.len() as u16).map(Clock)
    }

    /// The clock of a file; `None` for a file without stamps or of an unknown zone.
    pub fn of(&self, file: FileId) -> Option<Clock> {
        let clock = self.of_file[file.0 as usize]?;
        (self.trouble.get(&clock) != Some(&Trouble::UnknownZone)).then_some(clock)
    }

    /// A moment of a file.
    pub fn sight(&self, file: FileId, line: u32, at: Bracket) -> Option<Sighting> {
        if at == Bracket::OPEN {
            return None;
        }
        let at = at.shifted(-self.zone_shift[file.0 as usize]);
        Some(Sighting {
            clock: self.of(file)?,
            at,
            file,
            line,
        })
    }

    /// A moment on gtrun's clock (or the old script's), for an arrival.
    pub fn sight_arrival(&self, file: FileId, line: u32, at: Bracket) -> Option<Sighting> {
        Some(Sighting {
            clock: self.arrival()?,
            at,
            file,
            line,
        })
    }

    /// Bounds of `y - x`.
    pub fn gap(&self, x: &Sighting, y: &Sighting) -> Gap {
        self.ties.gap((x.clock, x.at), (y.clock, y.at))
    }

    /// The sighting as another clock would tell it.
    pub fn convert(&self, x: &Sighting, to: Clock) -> Bracket {
        self.ties.convert(x.clock, x.at, to)
    }

    /// Least and greatest `a - b` at a time, and whether ties alone give it.
    pub fn offset(&self, a: Clock, b: Clock, t: Instant) -> crate::time::OffsetBounds {
        self.ties.offset(a, b, t)
    }

    /// Number of messages between two clocks.
    pub fn messages_between(&self, a: Clock, b: Clock) -> u64 {
        self.counts.get(&ordered(a, b)).copied().unwrap_or(0)
    }

    /// The messages that tie the clocks.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The assumption for untied clocks.
    pub fn max_skew(&self) -> Duration {
        self.ties.max_skew()
    }

    /// The file belongs to this run: its facts may be used.
    pub fn belongs(&self, file: FileId) -> bool {
        self.of_file[file.0 as usize].is_none_or(|c| self.trouble.get(&c) != Some(&Trouble::Foreign))
    }

    /// The file's times may be used.
    pub fn orders(&self, file: FileId) -> bool {
        self.of(file).is_some_and(|c| !self.ties.is_excluded(c))
    }

    /// A log without a zone: its matched requests differ from another file's by a multiple of 15 minutes.
    fn find_zones(&mut self, evidence: &Evidence, requests: &Requests, log: Option<usize>) {
        for (i, file) in evidence.files.iter().enumerate() {
            if file.clock != FileClock::OwnUnknownZone {
                continue;
            }
            match message::zone_shift(evidence, requests, FileId(i as u32)) {
                Some(shift) => self.zone_shift[i] = shift,
                None => {
                    // A copy that is not used needs no zone.
                    let used = log.is_some_and(|l| evidence.haproxy_logs[l].file.0 as usize == i);
                    if let Some(clock) = self.of_file[i].filter(|_| used) {
                        self.trouble.insert(clock, Trouble::UnknownZone);
                    }
                }
            }
        }
    }

    /// Contradicting ties take both sides out of all ordering. A contradiction that no clock could explain takes out
    /// only the side that nothing sure ties to the others: it is another run's file.
    fn find_contradictions(&mut self, evidence: &Evidence, home: &BTreeSet<Clock>, window: Option<Bracket>) {
        let Some(middle) = self.middle() else { return };
        while let Some(c) = self.ties.contradiction(middle) {
            let mut strangers: Vec<Clock> = c.clocks.iter().copied().filter(|k| !home.contains(k)).collect();
            if strangers.len() == c.clocks.len() {
                strangers.retain(|k| window.is_some_and(|w| self.covers(evidence, *k, w) == Some(false)));
            }
            if c.size > IMPLAUSIBLE && !strangers.is_empty() && strangers.len() < c.clocks.len() {
                for clock in strangers {
                    self.trouble.insert(clock, Trouble::Foreign);
                    self.ties.exclude(clock);
                }
                continue;
            }
            for (i, clock) in c.clocks.iter().enumerate() {
                let with = c.clocks[(i + 1) % c.clocks.len()];
                let with = self.name(with).to_owned();
                self.trouble
                    .entry(*clock)
                    .or_insert(Trouble::Disagrees { with, by: c.size });
                self.ties.exclude(*clock);
            }
        }
    }

    /// A moment in the middle of the messages.
    fn middle(&self) -> Option<Instant> {
        let mut times: Vec<Instant> = self.messages.iter().filter_map(|m| m.later.at.hi).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// A file that nothing sure ties to the others is of this run when its clock is tied on both sides and plausible,
    /// or when its stamps cover the requests' time as the others tell it. Otherwise it is of another run.
    fn find_foreign(&mut self, evidence: &Evidence, home: &BTreeSet<Clock>, window: Option<Bracket>) {
        let Some(window) = window else { return };
        let anchor = home.iter().copied().find(|c| !self.ties.is_excluded(*c));
        for clock in self.all().collect::<Vec<_>>() {
            if home.contains(&clock) || self.trouble.contains_key(&clock) {
                continue;
            }
            let tied = anchor.zip(window.hi).is_some_and(|(anchor, t)| {
                let o = self.ties.offset(clock, anchor, t);
                o.tied && o.min.is_some_and(|d| d.abs() <= PLAUSIBLE) && o.max.is_some_and(|d| d.abs() <= PLAUSIBLE)
            });
            if self.covers(evidence, clock, window) == Some(false) && !tied {
                self.trouble.insert(clock, Trouble::Foreign);
                self.ties.exclude(clock);
            }
        }
    }

    /// The stamps of a clock's files reach into the window, give or take the assumed skew; `None` without stamps.
    fn covers(&self, evidence: &Evidence, clock: Clock, window: Bracket) -> Option<bool> {
        let files = (0..evidence.files.len()).filter(|i| self.of_file[*i] == Some(clock));
        let spans: Vec<Bracket> = files
            .filter_map(|i| message::span(evidence, FileId(i as u32)))
            .collect();
        // Open ends cannot be: a span is made of stamps.
        let reaches = |a: Option<Instant>, b: Option<Instant>| match (a, b) {
            (Some(a), Some(b)) => a <= b + self.max_skew(),
            _ => true,
        };
        let covers = |s: &Bracket| reaches(window.lo, s.hi) && reaches(s.lo, window.hi);
        (!spans.is_empty()).then(|| spans.iter().any(covers))
    }

    /// Clocks that sure messages tie to each other and of which some tell of requests (`told`), the most of them; without
    /// sure messages one clock that tells of requests.
    fn home(&self, told: &BTreeSet<Clock>) -> BTreeSet<Clock> {
        let mut near: BTreeMap<Clock, BTreeSet<Clock>> = BTreeMap::new();
        for m in self.messages.iter().filter(|m| m.kind.is_sure()) {
            near.entry(m.earlier.clock).or_default().insert(m.later.clock);
            near.entry(m.later.clock).or_default().insert(m.earlier.clock);
        }
        let mut left: BTreeSet<Clock> = near.keys().copied().collect();
        let mut largest = BTreeSet::new();
        while let Some(first) = left.pop_first() {
            let mut component = BTreeSet::from([first]);
            let mut queue = vec![first];
            while let Some(c) = queue.pop() {
                for d in near.get(&c).into_iter().flatten() {
                    if left.remove(d) {
                        component.insert(*d);
                        queue.push(*d);
                    }
                }
            }
            if component.len() > largest.len() && !component.is_disjoint(told) {
                largest = component;
            }
        }
        if largest.is_empty() {
            largest.extend(told.first().copied());
        }
        largest
    }

    /// Clocks tied to each other by any message, the most of them.
    fn largest_component(&self) -> BTreeSet<Clock> {
        let mut left: BTreeSet<Clock> = self.all().filter(|c| !self.ties.is_excluded(*c)).collect();
        let mut largest = BTreeSet::new();
        while let Some(first) = left.pop_first() {
            let mut component = BTreeSet::from([first]);
            let mut queue = vec![first];
            while let Some(c) = queue.pop() {
                let near: Vec<Clock> = left
                    .iter()
                    .copied()
                    .filter(|d| self.messages_between(c, *d) > 0)
                    .collect();
                for d in near {
                    left.remove(&d);
                    component.insert(d);
                    queue.push(d);
                }
            }
            if component.len() > largest.len() {
                largest = component;
            }
        }
        largest
    }

    /// From the first request's start to the last one's end, as the given clocks tell it.
    fn request_window(&self, evidence: &Evidence, requests: &Requests, home: &BTreeSet<Clock>) -> Option<Bracket> {
        let mut window: Option<Bracket> = None;
        for s in message::request_sightings(evidence, requests, self) {
            if home.is_empty() || home.contains(&s.clock) {
                window = Some(window.map_or(s.at, |w| w.hull(s.at)));
            }
        }
        window
    }

    /// Clocks whose messages put them further off than what is assumed of untied clocks.
    fn find_far_off(&mut self, sure: &BTreeSet<Clock>) {
        let home = self.largest_component();
        let Some(reference) = self.reference_among(if sure.is_empty() { &home } else { sure }) else {
            return;
        };
        for clock in home {
            let Some(t) = self
                .messages
                .iter()
                .find(|m| m.later.clock == clock || m.earlier.clock == clock)
            else {
                continue;
            };
            let Some(t) = t.later.at.hi else { continue };
            let o = self.ties.offset(clock, reference, t);
            let (Some(min), Some(max)) = (o.min, o.max) else {
                continue;
            };
            let beyond = |d: Duration| min > d || max < -d;
            if beyond(PLAUSIBLE) && !sure.contains(&clock) && !self.trouble.contains_key(&clock) {
                self.trouble.insert(clock, Trouble::Foreign);
                self.ties.exclude(clock);
            } else if beyond(self.max_skew()) && !self.trouble.contains_key(&clock) {
                let with = self.name(reference).to_owned();
                self.trouble.insert(
                    clock,
                    Trouble::Off {
                        with,
                        offset: (min, max),
                    },
                );
            }
        }
    }

    fn reference_among(&self, home: &BTreeSet<Clock>) -> Option<Clock> {
        let most = |c: &Clock| home.iter().map(|d| self.messages_between(*c, *d)).sum::<u64>();
        let prefer = |c: &Clock| matches!(self.name(*c), "gtrun") || self.name(*c).starts_with("haproxy");
        home.iter().copied().max_by_key(|c| (prefer(c), most(c)))
    }

    /// The clock that events are shown on: gtrun's own; else the load balancer's log; else the best tied one.
    pub fn reference(&self, evidence: &Evidence) -> Option<Clock> {
        if let Some(c) = self.named("gtrun").filter(|c| !self.ties.is_excluded(*c)) {
            return Some(c);
        }
        let order = [
            SourceKind::HaproxyLog,
            SourceKind::EnvoyLog,
            SourceKind::HaproxyCsv,
            SourceKind::EnvoyStats,
            SourceKind::RunLog,
        ];
        order
            .iter()
            .flat_map(|kind| evidence.files.iter().enumerate().filter(move |(_, f)| f.kind == *kind))
            .filter_map(|(i, _)| self.of(FileId(i as u32)))
            .find(|c| !self.ties.is_excluded(*c))
    }
}

const ARRIVAL: &str = "arrivals";

fn ordered(a: Clock, b: Clock) -> (Clock, Clock) {
    if a <= b { (a, b) } else { (b, a) }
}

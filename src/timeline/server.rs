//! One server on the load balancer over time: its samples, its state changes, its DOWN after the pod was told to
//! stop.

use std::sync::Arc;

use super::clocks::{Clocks, Sighting};
use super::request::haproxy_request;
use super::sampling;
use super::site::Site;
use crate::evidence::haproxy_csv::{StatKind, StatRow};
use crate::evidence::haproxy_log::{HaproxyEvent, HaproxyLine, ServerChange, ServerState};
use crate::evidence::{Evidence, FileId};
use crate::time::{Bracket, Duration};

/// HAProxy sends the FIN of a kill, and so lets the gauge fall, up to 4 ms before it logs DOWN.
pub const DOWN_BEFORE_ITS_LINE: Duration = Duration::from_millis(5);

/// A row of a server's statistics and when it was read.
#[derive(Debug, Clone, Copy)]
pub struct StatPoint<'e> {
    /// The file.
    pub file: FileId,
    /// When, on the sampler's clock.
    pub at: Bracket,
    /// Line.
    pub line: u32,
    /// The row; `None` for a failed poll.
    pub row: Option<&'e StatRow>,
}

/// A server's statistics in time order.
pub fn stat_points<'e>(evidence: &'e Evidence, site: &Site, server: &str) -> Vec<StatPoint<'e>> {
    let Some(proxy) = &site.proxy else { return Vec::new() };
    let series = evidence.haproxy_csv.iter().filter(|s| s.kind == StatKind::Timeline);
    series
        .flat_map(|s| {
            let brackets = sampling::stat_brackets(s);
            s.samples.iter().zip(brackets).map(move |(sample, at)| StatPoint {
                file: s.file,
                at,
                line: sample.place.line,
                row: sample
                    .rows
                    .iter()
                    .find(|r| !r.is_backend && &*r.server == server && r.proxy == *proxy),
            })
        })
        .collect()
}

/// A change of state, with everybody who saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Server.
    pub server: Arc<str>,
    /// Into what.
    pub to: ServerChange,
    /// Who saw it, each on its own clock.
    pub sightings: Vec<Sighting>,
    /// Its line in HAProxy's log, where there is one.
    pub state: Option<ServerState>,
    /// Index of that line.
    pub log_line: Option<usize>,
}

/// Every change of a server in HAProxy's log, in the log's order.
pub fn logged_changes<'e>(
    evidence: &'e Evidence,
    site: &Site,
    log: Option<usize>,
    server: &str,
) -> Vec<(usize, &'e HaproxyLine, &'e ServerState)> {
    let Some(log) = log.map(|i| &evidence.haproxy_logs[i]) else {
        return Vec::new();
    };
    log.lines
        .iter()
        .enumerate()
        .filter_map(|(i, line)| match &line.what {
            HaproxyEvent::ServerState(s) if &*s.server == server && Some(&s.backend) == site.proxy.as_ref() => {
                Some((i, line, s))
            }
            _ => None,
        })
        .collect()
}

/// A reload of the load balancer: an old process stops listening, counters are thrown back.
pub fn reloads(evidence: &Evidence, site: &Site, log: Option<usize>, clocks: &Clocks) -> Vec<Sighting> {
    let mut found = Vec::new();
    if let Some(log) = log.map(|i| &evidence.haproxy_logs[i]) {
        for line in &log.lines {
            if let HaproxyEvent::ProxyStopped(p) = &line.what
                && Some(p) == site.proxy.as_ref()
            {
                found.extend(clocks.sight(log.file, line.place.line, line.at));
            }
        }
    }
    for server in &site.servers {
        let points = stat_points(evidence, site, &server.name);
        for (a, b) in pairs(&points) {
            let (Some(before), Some(after)) = (a.row, b.row) else {
                continue;
            };
            let fell = |x: Option<u64>, y: Option<u64>| matches!((x, y), (Some(x), Some(y)) if y < x);
            if fell(before.stot, after.stot)
                || fell(before.chkfail, after.chkfail)
                || fell(before.chkdown, after.chkdown)
            {
                let at = Bracket {
                    lo: a.at.lo,
                    hi: b.at.hi,
                };
                found.extend(clocks.sight(b.file, b.line, at));
            }
        }
    }
    found
}

/// Neighbouring points that were read; failed polls between them only widen.
pub fn pairs<'a, 'e>(points: &'a [StatPoint<'e>]) -> impl Iterator<Item = (&'a StatPoint<'e>, &'a StatPoint<'e>)> {
    let read: Vec<&StatPoint<'e>> = points.iter().filter(|p| p.row.is_some()).collect();
    (1..read.len()).map(move |i| (read[i - 1], read[i]))
}

/// The first DOWN of the server after its pod was told to stop.
///
/// `after` are the moments of that order; what was surely before all of them is no answer to it.
pub fn down_after(
    evidence: &Evidence,
    site: &Site,
    log: Option<usize>,
    clocks: &Clocks,
    server: &Arc<str>,
    after: &[Sighting],
) -> Option<Change> {
    let too_early = |s: &Sighting| {
        after
            .iter()
            .any(|a| clocks.gap(a, s).surely_negative() && !is_later_line(a, s))
    };
    let mut sightings = Vec::new();
    let mut state = None;
    let mut log_line = None;
    let mut up = false;
    for (i, line, s) in logged_changes(evidence, site, log, server) {
        let file = line.place.file;
        match s.to {
            ServerChange::Down => {
                let at = Bracket {
                    lo: line.at.lo.map(|t| t - DOWN_BEFORE_ITS_LINE),
                    hi: line.at.hi,
                };
                let sighting = clocks.sight(file, line.place.line, at);
                let early = sighting.as_ref().is_some_and(&too_early);
                // Without usable times the first DOWN after an UP is meant.
                if !early && (sighting.is_some() || up || was_up_before(evidence, site, log, server, i)) {
                    let refined = refined_by_kills(evidence, log, server, line, at);
                    sightings.extend(clocks.sight(file, line.place.line, refined));
                    state = Some(s.clone());
                    log_line = Some(i);
                    break;
                }
            }
            ServerChange::Up => up = true,
            ServerChange::DownByTracking
            | ServerChange::Stopping
            | ServerChange::Running
            | ServerChange::Maint
            | ServerChange::LeavingMaint
            | ServerChange::Drain
            | ServerChange::LeavingDrain => {}
        }
    }
    let points = stat_points(evidence, site, server);
    for (a, b) in pairs(&points) {
        let (Some(before), Some(now)) = (a.row, b.row) else {
            continue;
        };
        let went_down = before.status.class.is_alive() && now.status.class.is_down();
        // Counted though it was UP again at the next sample.
        let between = before.status.class.is_alive()
            && !now.status.class.is_down()
            && matches!((before.chkdown, now.chkdown), (Some(x), Some(y)) if y > x);
        if !(went_down || between) {
            continue;
        }
        let at = Bracket {
            lo: a.at.lo,
            hi: b.at.hi,
        };
        let at = last_change(b, now).and_then(|l| at.intersect(l)).unwrap_or(at);
        let Some(sighting) = clocks.sight(b.file, b.line, at) else {
            continue;
        };
        if !too_early(&sighting) {
            sightings.push(sighting);
            break;
        }
    }
    if sightings.is_empty() && state.is_none() {
        return None;
    }
    Some(Change {
        server: Arc::clone(server),
        to: ServerChange::Down,
        sightings,
        state,
        log_line,
    })
}

/// Two stamps of one file are in the file's order even when both are of one second.
fn is_later_line(a: &Sighting, s: &Sighting) -> bool {
    a.file == s.file && a.line < s.line
}

/// `lastchg` is whole seconds since the change: it lies in `(t - lastchg - 1, t - lastchg + 1)`.
fn last_change(point: &StatPoint<'_>, row: &StatRow) -> Option<Bracket> {
    let since = Duration::from_secs(i64::try_from(row.lastchg?).ok()?);
    let second = Duration::from_secs(1);
    Some(Bracket {
        lo: point.at.lo.map(|t| t - since - second),
        hi: point.at.hi.map(|t| t - since + second),
    })
}

/// A line with whole seconds is narrowed by the requests that this DOWN killed: their end is accept stamp plus
/// total time, both in milliseconds of the same process.
fn refined_by_kills(evidence: &Evidence, log: Option<usize>, server: &str, down: &HaproxyLine, at: Bracket) -> Bracket {
    let Some(log) = log else { return at };
    let mut refined = at;
    for i in 0..evidence.haproxy_logs[log].lines.len() {
        let Some((line, h)) = haproxy_request(evidence, (log, i)) else {
            continue;
        };
        if h.server.as_deref() != Some(server) || !h.termination.cut_by_down() {
            continue;
        }
        let near = |a: Option<crate::time::Instant>, b: Option<crate::time::Instant>| matches!((a, b), (Some(a), Some(b)) if (a - b).abs() <= Duration::from_secs(2));
        if near(line.at.lo, down.at.lo) {
            let end = super::message::haproxy_end(line.at, h);
            // Killed by the walk over the sessions right after the change of state.
            let kill = Bracket {
                lo: end.lo.map(|t| t - Duration::from_millis(10)),
                hi: end.hi.map(|t| t + Duration::from_millis(2)),
            };
            refined = refined.intersect(kill).unwrap_or(refined);
        }
    }
    refined
}

/// The server had passed a check, or served a request, before this line.
fn was_up_before(evidence: &Evidence, site: &Site, log: Option<usize>, server: &str, line: usize) -> bool {
    let Some(log) = log.map(|i| &evidence.haproxy_logs[i]) else {
        return false;
    };
    log.lines[..line].iter().any(|l| match &l.what {
        HaproxyEvent::HealthCheck(h) => {
            &*h.server == server
                && Some(&h.backend) == site.proxy.as_ref()
                && (h.ok || h.status.as_ref().is_some_and(|(n, _, w)| &**w == "UP" && *n > 0))
        }
        HaproxyEvent::Request(r) => r.server.as_deref() == Some(server) && r.termination.is_normal(),
        HaproxyEvent::ServerState(_)
        | HaproxyEvent::ProxyStopped(_)
        | HaproxyEvent::ProxyStarted(_)
        | HaproxyEvent::NoServer(_) => false,
    })
}

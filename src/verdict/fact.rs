//! Direct facts: one source states it, no two clocks involved.

use crate::evidence::haproxy_csv::{StatRow, StatusClass};
use crate::evidence::haproxy_log::{HaproxyEvent, HaproxyRequest, ServerChange};
use crate::evidence::hc_log::HcEvent;
use crate::time::{Bracket, Duration};
use crate::timeline::server::{self, StatPoint};
use crate::timeline::{Target, Timeline};

use super::Cause;
use super::attempt::{AttemptView, Shown, cut_by_downstream};

/// A stated fact and the sentence that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it says.
    pub kind: FactKind,
    /// For a person.
    pub sentence: String,
}

/// The facts about the order of `active_zero` and `lb_down`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// DOWN cut work: it was still in flight.
    CutWork,
    /// Everything was over before DOWN.
    QuietBefore,
}

/// What the statistics alone say about the moment the server left service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatStory {
    /// So many sessions were cut when it left service.
    Cut {
        /// How many.
        sessions: u64,
        /// Into maintenance and not DOWN.
        maintenance: bool,
        /// The checks were refused, not answered: the listener was closed.
        listener_closed: bool,
    },
    /// No session and none queued in the last sample before, and none came.
    Quiet,
    /// Nothing definite.
    Silent,
}

/// The last sample in service and the first out of it, after the order to stop.
fn leaving<'a, 'e>(
    timeline: &Timeline<'e>,
    target: &Target,
    points: &'a [StatPoint<'e>],
) -> Option<(&'a StatPoint<'e>, &'e StatRow, &'a StatPoint<'e>, &'e StatRow)> {
    let too_early = |p: &StatPoint<'_>| {
        let sight = timeline.clocks.sight(p.file, p.line, p.at);
        sight.is_some_and(|s| {
            target
                .stop
                .known()
                .any(|k| timeline.clocks.gap(k, &s).surely_negative())
        })
    };
    server::pairs(points)
        .filter(|(a, b)| timeline.clocks.belongs(a.file) && !too_early(b))
        .filter_map(|(a, b)| Some((a, a.row?, b, b.row?)))
        .find(|(_, a, _, b)| {
            let out = b.status.class.is_down() || b.status.class == StatusClass::Maint;
            a.status.class.is_alive() && out
        })
}

/// What the statistics alone say, for one target.
pub fn stat_story(timeline: &Timeline<'_>, target: &Target) -> StatStory {
    let points = server::stat_points(timeline.evidence, &timeline.site, &target.server);
    let Some((a, before, b, after)) = leaving(timeline, target, &points) else {
        return StatStory::Silent;
    };
    // A reload anywhere near: counters of two processes cannot be compared.
    if !timeline.reloads.is_empty() {
        return StatStory::Silent;
    }
    let same = |f: fn(&StatRow) -> Option<u64>| f(before).is_some() && f(before) == f(after);
    let (Some(scur), Some(left)) = (before.scur, after.scur) else {
        return StatStory::Silent;
    };
    if scur == 0 && before.qcur == Some(0) {
        return if same(|r| r.stot) {
            StatStory::Quiet
        } else {
            StatStory::Silent
        };
    }
    if left != 0 || !same(|r| r.stot) || !same(|r| r.hrsp_5xx) {
        return StatStory::Silent;
    }
    let errors = match (before.eresp, after.eresp) {
        (Some(x), Some(y)) if y >= x => y - x,
        _ => return StatStory::Silent,
    };
    // 2.x counts a response error for each kill; 3.x none, but then no answer was counted either.
    let sessions = match errors {
        0 if same(|r| r.hrsp_2xx) => scur,
        0 => return StatStory::Silent,
        n if n <= scur => n,
        _ => return StatStory::Silent,
    };
    // Those that ended by themselves between the two samples were answered.
    if sessions < scur
        && !matches!((before.hrsp_2xx, after.hrsp_2xx), (Some(x), Some(y)) if y - x.min(y) == scur - sessions)
    {
        return StatStory::Silent;
    }
    // The pod must have been alive: its last check was answered, or the session outlived the first refused check
    // by a sample. A pod that dies takes its sessions with it before the checks notice.
    let answered = |r: &StatRow| {
        r.check_code.is_some() && r.check_status.as_deref().is_some_and(|s| s.starts_with("L7")) && !r.check_running
    };
    let refused = |r: &StatRow| r.check_status.as_deref().is_some_and(|s| s.starts_with("L4"));
    let maintenance = after.status.class == StatusClass::Maint;
    let outlived = before.status.class == StatusClass::GoingDown && refused(before) && scur > 0;
    let alive = answered(after) || outlived || (maintenance && answered(before));
    let _ = (a, b);
    if !alive {
        return StatStory::Silent;
    }
    StatStory::Cut {
        sessions,
        maintenance,
        listener_closed: outlived && !answered(after),
    }
}

/// A response error was counted while the server was still UP: a session ended without an answer before DOWN.
pub fn ended_while_up(timeline: &Timeline<'_>, target: &Target) -> Option<(Bracket, crate::evidence::FileId)> {
    let points = server::stat_points(timeline.evidence, &timeline.site, &target.server);
    if !timeline.reloads.is_empty() {
        return None;
    }
    server::pairs(&points).find_map(|(a, b)| {
        let (x, y) = (a.row?, b.row?);
        let rose = matches!((x.eresp, y.eresp), (Some(x), Some(y)) if y > x);
        (rose && x.status.class.is_alive() && y.status.class.is_alive() && timeline.clocks.belongs(a.file)).then_some((
            Bracket {
                lo: a.at.lo,
                hi: b.at.hi,
            },
            b.file,
        ))
    })
}

/// Response errors, retries or redispatches of the server between the order to stop and its DOWN.
fn errors_before_down(timeline: &Timeline<'_>, target: &Target) -> bool {
    ended_while_up(timeline, target).is_some()
}

/// A line that says by itself that a DOWN killed work at the server: `DH`, and 3.x's `DC` of a connected session.
fn states_a_kill(h: &HaproxyRequest) -> bool {
    let t = h.termination;
    t.cause() == b'D' && (t.phase() == b'H' || (t.phase() == b'C' && h.time_connect.is_some()))
}

/// The last change of the server at or before a line of HAProxy's log: what killed its session.
pub fn change_at(timeline: &Timeline<'_>, server: &str, line: usize) -> Option<ServerChange> {
    let log = timeline.haproxy_log?;
    let lines = &timeline.evidence.haproxy_logs[log].lines;
    let written = lines.get(line)?.at;
    // The line of a kill may stand a little before the line of the change that caused it.
    let near = |at: Bracket| match (at.lo, written.hi) {
        (Some(a), Some(b)) => a - b <= Duration::from_millis(50),
        _ => true,
    };
    let changes = server::logged_changes(timeline.evidence, &timeline.site, Some(log), server);
    changes
        .into_iter()
        .filter(|(i, l, _)| *i <= line || near(l.at))
        .rfind(|(_, _, s)| {
            matches!(
                s.to,
                ServerChange::Down | ServerChange::DownByTracking | ServerChange::Maint | ServerChange::Up
            )
        })
        .map(|(_, _, s)| s.to)
}

/// Why a cut request was cut.
pub fn cut_cause(timeline: &Timeline<'_>, target: &Target, line: Option<usize>) -> Cause {
    let change = line.and_then(|l| change_at(timeline, &target.server, l));
    if change == Some(ServerChange::Maint) {
        return Cause::LbMaint;
    }
    if listener_was_closed(timeline, target) {
        Cause::ListenerClosed
    } else {
        Cause::LbDown
    }
}

/// The checks that led to this DOWN were refused, though the pod was alive: its own drain had closed the listener.
fn listener_was_closed(timeline: &Timeline<'_>, target: &Target) -> bool {
    let Some(down) = &target.down else { return false };
    if let (Some(log), Some(line)) = (timeline.haproxy_log, down.log_line) {
        let lines = &timeline.evidence.haproxy_logs[log].lines;
        let last_check = lines[..line].iter().rev().find_map(|l| match &l.what {
            HaproxyEvent::HealthCheck(h) if h.server == target.server && !h.agent => Some(h),
            _ => None,
        });
        if let Some(check) = last_check {
            return !check.ok && !check.answered() && refused(check.reason.as_deref());
        }
        if let Some(reason) = down.state.as_ref().and_then(|s| s.reason.as_deref()) {
            return refused(Some(reason));
        }
    }
    match stat_story(timeline, target) {
        StatStory::Cut { listener_closed, .. } => listener_closed,
        StatStory::Quiet | StatStory::Silent => {
            // The page itself never failed before DOWN.
            let points = server::stat_points(timeline.evidence, &timeline.site, &target.server);
            leaving(timeline, target, &points)
                .is_some_and(|(_, _, _, r)| r.check_status.as_deref().is_some_and(|s| s.starts_with("L4")))
        }
    }
}

fn refused(reason: Option<&str>) -> bool {
    reason.is_some_and(|r| r.starts_with("Layer4") || r.contains("Connection refused"))
}

/// Every direct fact about a target.
pub fn facts(timeline: &Timeline<'_>, target: &Target, given_up: bool) -> Vec<Fact> {
    let mut found = Vec::new();
    let views: Vec<AttemptView<'_>> = timeline
        .requests
        .attempts()
        .map(|a| AttemptView::of(timeline, a))
        .collect();
    let on_target = |v: &&AttemptView<'_>| v.server.as_ref() == Some(&target.server);
    for v in views.iter().filter(on_target) {
        let Some((line, _, h)) = v.haproxy else { continue };
        if !h.termination.cut_by_down() {
            continue;
        }
        let by_down = matches!(
            change_at(timeline, &target.server, line),
            Some(ServerChange::Down | ServerChange::DownByTracking)
        );
        let corroborated = v.envoy.is_some_and(cut_by_downstream);
        if by_down && (states_a_kill(h) || corroborated) && v.in_flight_at(timeline, &target.stop) != Shown::No {
            let file = &timeline
                .evidence
                .file(timeline.evidence.haproxy_logs[timeline.haproxy_log.unwrap_or(0)].file)
                .name;
            found.push(Fact {
                kind: FactKind::CutWork,
                sentence: format!(
                    "{file} line {}: a request on {} ended with {}, killed because the server went down",
                    v.haproxy.map_or(0, |h| h.1.place.line),
                    target.server,
                    h.termination
                ),
            });
            break;
        }
    }
    if let Some(fact) = redispatched_away(timeline, target) {
        found.push(fact);
    }
    match stat_story(timeline, target) {
        StatStory::Cut {
            sessions,
            maintenance: false,
            ..
        } => found.push(Fact {
            kind: FactKind::CutWork,
            sentence: format!(
                "statistics: {sessions} open session{} of {} ended at DOWN without a counted answer",
                if sessions == 1 { "" } else { "s" },
                target.server
            ),
        }),
        StatStory::Quiet if target.zero.seen && !given_up && !errors_before_down(timeline, target) => {
            found.push(Fact {
                kind: FactKind::QuietBefore,
                sentence: format!(
                    "statistics: {} had no session and none queued in its last sample before DOWN, and none came",
                    target.server
                ),
            })
        }
        StatStory::Cut { maintenance: true, .. } | StatStory::Quiet | StatStory::Silent => {}
    }
    if let Some(fact) = work_was_done(timeline, target, &views) {
        found.push(fact);
    }
    found
}

/// Cut at the target and sent again elsewhere by the load balancer, at its DOWN.
fn redispatched_away(timeline: &Timeline<'_>, target: &Target) -> Option<Fact> {
    timeline.requests.single.iter().find_map(|request| {
        let views: Vec<AttemptView<'_>> = request.attempts.iter().map(|a| AttemptView::of(timeline, a)).collect();
        let cut = views
            .iter()
            .find(|v| v.server.as_ref() == Some(&target.server) && v.envoy_cut())?;
        let again = views.iter().find(|v| {
            v.server.as_ref().is_some_and(|s| *s != target.server)
                && v.haproxy.is_some_and(|(_, _, h)| h.retries > 0 || h.redispatched)
        })?;
        // Cut by DOWN and by nothing else: the end at the target lies on it.
        let on_down = cut.ended.iter().any(|e| {
            target.down.iter().flat_map(|d| &d.sightings).any(|d| {
                let gap = timeline.clocks.gap(e, d);
                matches!((gap.min, gap.max), (Some(a), Some(b))
                    if a > Duration::from_millis(-100) && b < Duration::from_millis(100))
            })
        });
        on_down.then(|| Fact {
            kind: FactKind::CutWork,
            sentence: format!(
                "{} was sent again to {} by the load balancer when {} went DOWN",
                request.id,
                again.server.as_deref().unwrap_or("another server"),
                target.server
            ),
        })
    })
}

/// The server's sessions all have their line before the line of DOWN, each with a regular end.
fn work_was_done(timeline: &Timeline<'_>, target: &Target, views: &[AttemptView<'_>]) -> Option<Fact> {
    let down = target.down.as_ref()?;
    let (log, down_line) = (timeline.haproxy_log?, down.log_line?);
    if !timeline.reloads.is_empty() {
        return None;
    }
    let of_target: Vec<&AttemptView<'_>> = views
        .iter()
        .filter(|v| v.server.as_ref() == Some(&target.server))
        .collect();
    if of_target.iter().any(|v| v.envoy_cut()) {
        return None;
    }
    let lines: Vec<_> = of_target
        .iter()
        .filter_map(|v| v.haproxy)
        .filter(|(i, _, _)| *i < down_line)
        .collect();
    if lines.is_empty() || lines.iter().any(|(_, _, h)| !h.termination.is_normal()) {
        return None;
    }
    let points = server::stat_points(timeline.evidence, &timeline.site, &target.server);
    let (_, _, _, after) = leaving(timeline, target, &points)?;
    let first = points
        .iter()
        .filter(|p| timeline.clocks.belongs(p.file))
        .find_map(|p| p.row?.stot)?;
    let rose = after.stot?.checked_sub(first)?;
    // Work had to be in flight when it was told to stop, else nothing was done before anything.
    (rose == lines.len() as u64).then(|| Fact {
        kind: FactKind::QuietBefore,
        sentence: format!(
            "{}: all {rose} sessions of {} have their line, with a regular end, before the line of DOWN",
            timeline.evidence.file(timeline.evidence.haproxy_logs[log].file).name,
            target.server
        ),
    })
}

/// The last sample that is surely before the order to stop and the first that is surely after it, of one process.
fn around_stop<'e>(timeline: &Timeline<'e>, target: &Target) -> Option<(&'e StatRow, &'e StatRow)> {
    let clocks = &timeline.clocks;
    let surely = |p: &StatPoint<'_>, after: bool| {
        clocks.sight(p.file, p.line, p.at).is_some_and(|s| {
            target.stop.known().any(|k| {
                let gap = if after { clocks.gap(k, &s) } else { clocks.gap(&s, k) };
                gap.surely_positive()
            })
        })
    };
    let points = server::stat_points(timeline.evidence, &timeline.site, &target.server);
    let read: Vec<_> = points
        .iter()
        .filter(|p| clocks.belongs(p.file) && p.row.is_some())
        .collect();
    let after = read.iter().find(|p| surely(p, true))?;
    let before = read.iter().rev().find(|p| surely(p, false))?;
    timeline.reloads.is_empty().then_some((before.row?, after.row?))
}

/// No session was open on the server around the order to stop, and none came in between.
pub fn idle_at_stop(timeline: &Timeline<'_>, target: &Target) -> bool {
    around_stop(timeline, target)
        .is_some_and(|(a, b)| a.scur == Some(0) && b.scur == Some(0) && a.stot.is_some() && a.stot == b.stot)
}

/// Work was in flight at the target when it was told to stop, by any source.
pub fn at_stake(timeline: &Timeline<'_>, target: &Target) -> Shown {
    let mut any_unknown = false;
    for attempt in timeline.requests.attempts() {
        let v = AttemptView::of(timeline, attempt);
        if v.server.as_ref() == Some(&target.server) {
            match v.in_flight_at(timeline, &target.stop) {
                Shown::Yes => return Shown::Yes,
                Shown::Unknown => any_unknown = true,
                Shown::No => {}
            }
        }
    }
    let clocks = &timeline.clocks;
    // The same sessions, with no new one in between.
    if let Some((before, after)) = around_stop(timeline, target)
        && before.scur.is_some_and(|n| n > 0)
        && after.scur.is_some_and(|n| n > 0)
        && before.stot == after.stot
    {
        return Shown::Yes;
    }
    // The workload's own polls begin with the drain: busy then is work that was accepted before.
    for hc in timeline
        .site
        .pods_of(&target.server)
        .filter_map(|p| p.hc)
        .map(|i| &timeline.evidence.hc_logs[i])
    {
        let first = hc.lines.iter().find_map(|l| match &l.what {
            HcEvent::Poll { downstream, upstream } => Some((*downstream, *upstream)),
            _ => None,
        });
        if clocks.belongs(hc.file)
            && let Some((_, Some(n))) = first
        {
            return if n > 0 { Shown::Yes } else { Shown::No };
        }
    }
    if any_unknown || timeline.requests.attempts().next().is_none() {
        Shown::Unknown
    } else {
        Shown::No
    }
}

//! The occurrences of an event, the first one that is meant, and whether its absence would have been noticed.

use super::Scope;
use crate::evidence::haproxy_csv::StatKind;
use crate::evidence::haproxy_log::ServerChange;
use crate::evidence::pod_watch::WatchChange;
use crate::evidence::run_folder::OwnCall;
use crate::evidence::{FileId, NoteKind, SourceKind};
use crate::language::expression::{Event as Named, EventRef, LbChange, Window};
use crate::language::vocabulary::ServerChoice;
use crate::time::{Bracket, Duration};
use crate::timeline::clocks::Sighting;
use crate::timeline::event::{Event, What};
use crate::timeline::gap::gap_between;
use crate::verdict::EventUsed;
use crate::verdict::attempt::Shown;

/// One occurrence.
#[derive(Debug, Clone)]
pub struct Occurrence<'a> {
    /// Who saw it.
    pub sightings: Vec<Sighting>,
    /// The event, where it is one of the timeline.
    pub event: Option<&'a Event>,
}

/// Every occurrence of a named event in the run, in time order as far as it is known.
pub fn all<'a>(scope: &Scope<'a>, named: &Named) -> Vec<Occurrence<'a>> {
    if let Named::Log(probe, pattern) = named {
        return lines(scope, probe.as_str(), pattern.as_str());
    }
    let mut found: Vec<Occurrence<'a>> = scope
        .events
        .iter()
        .filter(|e| is(scope, e, named))
        .map(|e| Occurrence {
            sightings: e.sightings.clone(),
            event: Some(e),
        })
        .collect();
    found.sort_by_key(|o| shown(scope, o).hi);
    found
}

/// The first occurrence that is meant: since the disturbance, for events that are not gtrun's own.
pub fn first<'a>(scope: &Scope<'a>, event: &EventRef) -> Option<Occurrence<'a>> {
    let all = all(scope, &event.event);
    if counts_from_the_start(&event.event) {
        return all.into_iter().next();
    }
    let disturbance = disturbance(scope);
    all.into_iter().find(|o| {
        disturbance.as_ref().is_none_or(|d| {
            !gap_between(&scope.timeline.clocks, std::slice::from_ref(d), &o.sightings)
                .is_some_and(|g| g.surely_negative())
        })
    })
}

fn counts_from_the_start(event: &Named) -> bool {
    match event {
        Named::Started(_)
        | Named::Ended(_)
        | Named::Mark(_)
        | Named::Finished(_)
        | Named::Failed(_)
        | Named::Step(_)
        | Named::Delete => true,
        Named::Drain
        | Named::Transition(..)
        | Named::DrainListeners
        | Named::ActiveZero
        | Named::FirstActiveZero
        | Named::HealthFail
        | Named::Lb(..)
        | Named::LbReload
        | Named::Rst(_)
        | Named::Cut(_)
        | Named::Goaway(_)
        | Named::Sigterm(_)
        | Named::ContainerExit(_)
        | Named::PodTerminating
        | Named::PodGone
        | Named::PodReady
        | Named::NotReady
        | Named::EndpointRemoved
        | Named::RolloutStarted
        | Named::RolloutFinished
        | Named::Log(..) => false,
    }
}

/// The start of the first step that acts on the cluster or a host.
pub fn disturbance(scope: &Scope<'_>) -> Option<Sighting> {
    let acts = |c: &&OwnCall| {
        let steps = scope.plan.all_steps();
        steps.iter().any(|s| s.verb.acts() && s.verb.name() == c.verb)
    };
    let first = scope
        .timeline
        .evidence
        .own_calls
        .iter()
        .filter(acts)
        .min_by_key(|c| c.sent);
    if let (Some(call), Some(clock)) = (first, scope.timeline.clocks.named("gtrun")) {
        let at = Bracket {
            lo: Some(call.sent - Duration::from_nanos(1)),
            hi: Some(call.sent),
        };
        return Some(Sighting {
            clock,
            at,
            file: FileId(0),
            line: 0,
        });
    }
    scope
        .events
        .iter()
        .find(|e| e.what == What::Delete)
        .and_then(|e| e.sightings.first().copied())
}

fn is(scope: &Scope<'_>, event: &Event, named: &Named) -> bool {
    let timeline = scope.timeline;
    let target_server = || {
        event
            .server
            .as_ref()
            .is_none_or(|s| timeline.targets.is_empty() || timeline.targets.iter().any(|t| t.server == *s))
    };
    let target_pod = || {
        let Some(pod) = &event.pod else { return true };
        match target_pod_name(scope) {
            Some(name) => *pod == name,
            None => true,
        }
    };
    let container = |wanted: &Option<crate::language::Id>, name: &str| {
        wanted.as_ref().is_none_or(|key| {
            name == key.as_str()
                || scope
                    .plan
                    .environment
                    .workload
                    .containers
                    .get(key)
                    .is_some_and(|real| real == name)
        })
    };
    match (named, &event.what) {
        (Named::Step(id), What::Step { id: own, .. }) => id == own.as_str(),
        (Named::Delete, What::Delete) => true,
        (Named::Drain, What::Transition { from, .. }) => is_first_state(scope, from) && target_server(),
        (Named::Drain, What::DrainListeners) => {
            let fsm = scope
                .events
                .iter()
                .any(|e| matches!(&e.what, What::Transition { from, .. } if is_first_state(scope, from)));
            !fsm && target_server()
        }
        (Named::Transition(a, b), What::Transition { from, to }) => a.matches(from) && b.matches(to) && target_server(),
        (Named::DrainListeners, What::DrainListeners)
        | (Named::ActiveZero, What::ActiveZero)
        | (Named::FirstActiveZero, What::FirstActiveZero)
        | (Named::HealthFail, What::HealthFail) => target_server(),
        (Named::Lb(change, choice), What::Lb(to)) => {
            let on_target = event
                .server
                .as_ref()
                .is_some_and(|s| timeline.targets.iter().any(|t| t.server == *s));
            let meant = match choice {
                None => on_target || timeline.targets.is_empty(),
                Some(ServerChoice::Any) => true,
                Some(ServerChoice::Others) => !on_target,
            };
            meant && matches_change(*change, *to)
        }
        (Named::LbReload, What::LbReload) | (Named::Rst(None), What::Rst { .. }) => true,
        (Named::Rst(Some(id)), What::Rst { request }) => request.as_deref() == Some(id.as_str()),
        (Named::Cut(id), What::Cut { request }) => id == request.as_str(),
        (Named::Started(id), What::Started { id: own }) | (Named::Goaway(id), What::Goaway { id: own }) => {
            id == own.as_str()
        }
        (Named::Ended(id), What::Ended { id: own, .. }) => id == own.as_str(),
        (Named::Started(id), What::Step { id: own, .. }) | (Named::Ended(id), What::Step { id: own, .. }) => {
            id == own.as_str() && !is_request_or_load(scope, own)
        }
        (Named::Finished(id), What::Ended { id: own, whole }) => id == own.as_str() && *whole == Some(true),
        (Named::Failed(id), What::Ended { id: own, whole }) => id == own.as_str() && *whole == Some(false),
        (Named::Sigterm(key), What::Sigterm { container: name }) => {
            container(key, name) && target_server() && target_pod()
        }
        (Named::ContainerExit(key), What::ContainerExit { container: name }) => {
            container(key, name) && target_server() && target_pod()
        }
        (Named::PodTerminating, What::PodTerminating)
        | (Named::PodGone, What::PodGone)
        | (Named::NotReady, What::NotReady)
        | (Named::EndpointRemoved, What::EndpointRemoved) => target_pod(),
        (Named::PodReady, What::PodReady)
        | (Named::RolloutStarted, What::RolloutStarted)
        | (Named::RolloutFinished, What::RolloutFinished) => true,
        (Named::Mark(id), What::Mark { name }) => id == name.as_str(),
        _ => false,
    }
}

fn is_request_or_load(scope: &Scope<'_>, id: &str) -> bool {
    use crate::language::plan::Verb;
    scope
        .plan
        .step(id)
        .is_some_and(|s| matches!(s.verb, Verb::Request(_) | Verb::Load(_)))
}

fn is_first_state(scope: &Scope<'_>, state: &str) -> bool {
    scope.plan.environment.fsm.states.first().is_some_and(|s| s == state)
}

fn matches_change(change: LbChange, to: ServerChange) -> bool {
    match change {
        LbChange::Down => matches!(to, ServerChange::Down | ServerChange::DownByTracking),
        LbChange::Up => matches!(
            to,
            ServerChange::Up | ServerChange::Running | ServerChange::LeavingMaint
        ),
        LbChange::Drain => to == ServerChange::Drain,
        LbChange::Nolb => to == ServerChange::Stopping,
        LbChange::Maint => to == ServerChange::Maint,
    }
}

/// Name of the pod that was told to stop.
fn target_pod_name(scope: &Scope<'_>) -> Option<String> {
    let calls = &scope.timeline.evidence.own_calls;
    calls
        .iter()
        .find(|c| matches!(c.verb.as_str(), "delete_pod" | "evict_pod" | "scale" | "drain_node") && c.pod.is_some())
        .and_then(|c| c.pod.clone())
}

/// Lines of a probe's log that match.
fn lines<'a>(scope: &Scope<'a>, probe: &str, pattern: &str) -> Vec<Occurrence<'a>> {
    let matches = scope.timeline.evidence.log_matches.iter();
    matches
        .filter(|m| m.probe == probe && m.pattern == pattern)
        .filter_map(|m| scope.timeline.clocks.sight(m.place.file, m.place.line, m.at))
        .map(|s| Occurrence {
            sightings: vec![s],
            event: None,
        })
        .collect()
}

/// The bracket of an occurrence on the reference clock.
pub fn shown(scope: &Scope<'_>, occurrence: &Occurrence<'_>) -> Bracket {
    crate::timeline::record::bracket(scope.timeline, &occurrence.sightings)
}

/// The event as it is listed in a finding.
pub fn used(scope: &Scope<'_>, name: &EventRef, occurrence: Option<&Occurrence<'_>>) -> EventUsed {
    let mut sources: Vec<String> = occurrence
        .iter()
        .flat_map(|o| &o.sightings)
        .map(|s| scope.timeline.source(s))
        .collect();
    sources.sort();
    sources.dedup();
    EventUsed {
        event: name.event.to_string(),
        at: occurrence.map(|o| shown(scope, o)).unwrap_or_default(),
        source: sources.join(", "),
    }
}

/// Where an occurrence lies relative to a window: inside, outside, or not decided. `None` when the window itself
/// is not known: an event that bounds it never happened.
pub fn inside(scope: &Scope<'_>, occurrence: &Occurrence<'_>, window: &Window) -> Option<Shown> {
    let clocks = &scope.timeline.clocks;
    let mut shown = Shown::Yes;
    for (bound, is_from) in [(&window.from, true), (&window.until, false)] {
        let Some(bound) = bound else { continue };
        let edge = first(scope, bound)?;
        let gap = if is_from {
            gap_between(clocks, &edge.sightings, &occurrence.sightings)
        } else {
            gap_between(clocks, &occurrence.sightings, &edge.sightings)
        };
        match gap {
            Some(g) if g.surely_negative() => return Some(Shown::No),
            Some(g) if g.surely_positive() => {}
            _ => shown = Shown::Unknown,
        }
    }
    Some(shown)
}

/// Why the absence of an event would, or would not, have been noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// A source that shows it was alive until the end.
    Yes,
    /// None was, and what to do about it.
    No(String),
}

/// Whether some source that would have shown the event was alive until the end of the run.
pub fn watched(scope: &Scope<'_>, event: &Named) -> Watched {
    let evidence = scope.timeline.evidence;
    let clean = |file: FileId| {
        scope.timeline.clocks.belongs(file)
            && !evidence.notes.iter().any(|n| {
                n.place.is_some_and(|p| p.file == file) && matches!(n.kind, NoteKind::Incomplete | NoteKind::Unreadable)
            })
    };
    let has = |kind: SourceKind| {
        evidence
            .files
            .iter()
            .enumerate()
            .any(|(i, f)| f.kind == kind && f.size > 0 && clean(FileId(i as u32)))
    };
    let yes_if = |ok: bool, advice: &str| {
        if ok {
            Watched::Yes
        } else {
            Watched::No(advice.to_owned())
        }
    };
    match event {
        Named::Lb(..) | Named::LbReload => yes_if(
            has(SourceKind::HaproxyLog) || statistics_to_the_end(scope),
            "no complete log or statistics of the load balancer until the end; give the `haproxy_log` source",
        ),
        Named::Rst(_) | Named::Cut(_) => captures_complete(scope),
        Named::Transition(..) | Named::Drain | Named::DrainListeners | Named::HealthFail => {
            let whole = evidence
                .hc_logs
                .iter()
                .any(|l| clean(l.file) && !l.follow_ended_early && !l.lines.is_empty());
            yes_if(
                whole,
                "the FSM log is missing or ended early; follow `hc` until the pod is gone",
            )
        }
        Named::Sigterm(_) | Named::ContainerExit(_) | Named::Log(..) => yes_if(
            has(SourceKind::EnvoyLog) || has(SourceKind::HcLog) || has(SourceKind::ContainerLog),
            "no complete container log; follow it until the pod is gone",
        ),
        Named::ActiveZero | Named::FirstActiveZero => yes_if(
            false,
            "a zero that was not seen may have happened between two samples; poll `active` every 50ms",
        ),
        Named::PodTerminating | Named::PodGone | Named::PodReady | Named::NotReady | Named::EndpointRemoved => {
            let gap = evidence
                .watches
                .iter()
                .flat_map(|w| &w.events)
                .any(|e| matches!(e.what, WatchChange::Gap(_)));
            yes_if(
                has(SourceKind::Watch) && !gap,
                "the watch of the pods is missing or has gaps; give the `pod_watch` probe",
            )
        }
        Named::RolloutStarted | Named::RolloutFinished => {
            yes_if(!evidence.own_calls.is_empty(), "no record of gtrun's own calls")
        }
        Named::Started(_) | Named::Ended(_) | Named::Finished(_) | Named::Failed(_) | Named::Goaway(_) => yes_if(
            has(SourceKind::Client) || has(SourceKind::Load),
            "no record of the client's side",
        ),
        Named::Step(_) | Named::Delete | Named::Mark(_) => yes_if(
            !evidence.own_calls.is_empty() || evidence.run_log.is_some(),
            "no record of gtrun's own calls",
        ),
    }
}

/// The statistics go on until the last step was over, without a failed poll at the end.
fn statistics_to_the_end(scope: &Scope<'_>) -> bool {
    let evidence = scope.timeline.evidence;
    let end = evidence.own_calls.iter().filter_map(|c| c.received).max();
    evidence
        .haproxy_csv
        .iter()
        .filter(|s| s.kind == StatKind::Timeline && scope.timeline.clocks.belongs(s.file))
        .any(|s| {
            let last = s.samples.iter().rev().find(|x| x.failed.is_none());
            let at = last.and_then(|x| x.when.received.or(x.when.stamp));
            match (at, end) {
                (Some(at), Some(end)) => at + Duration::from_secs(2) >= end,
                (Some(_), None) => true,
                (None, _) => false,
            }
        })
}

/// Absence of a packet needs captures that were listening, lost nothing and are whole.
pub fn captures_complete(scope: &Scope<'_>) -> Watched {
    let captures = &scope.timeline.evidence.captures;
    if captures.is_empty() {
        return Watched::No("no capture; give the `rst_capture` probe".to_owned());
    }
    for capture in captures {
        let l = &capture.losses;
        let trouble = if let Some(why) = &l.skipped {
            Some(format!("it was skipped: {why}"))
        } else if l.cut {
            Some("the file is cut".to_owned())
        } else if l.dropped_by_kernel.is_none() {
            Some("tcpdump's own summary is missing, so its losses are not known".to_owned())
        } else if l.dropped_by_kernel.is_some_and(|n| n > 0) {
            Some(format!(
                "{} packets were dropped by the kernel",
                l.dropped_by_kernel.unwrap_or(0)
            ))
        } else if l.listening == Some(false) {
            Some("it was never seen listening".to_owned())
        } else {
            None
        };
        if let Some(why) = trouble {
            return Watched::No(format!("the capture of {} is not complete: {why}", capture.host));
        }
    }
    Watched::Yes
}

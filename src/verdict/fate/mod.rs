//! The fate of a single request: protected, broken, rescued, lost, not in flight, or the evidence cannot say.

mod client;
mod statistics;

use crate::evidence::client::{ClientRequest, Outcome as ClientOutcome};
use crate::evidence::envoy_log::EnvoyEvent;
use crate::evidence::envoy_stats::Reading;
use crate::evidence::haproxy_log::HaproxyRequest;
use crate::evidence::hc_log::HcEvent;
use crate::evidence::run_log::RunLogLine;
use crate::time::Duration;
use crate::timeline::clocks::Sighting;
use crate::timeline::request::Request;
use crate::timeline::{Target, Timeline, message, sampling, server};
use crate::verdict::attempt::{self, AttemptView, Shown};
use crate::verdict::fact::{self, StatStory};
use crate::verdict::{AttemptFinding, Cause, Fate, RequestFinding};
use client::{ClientView, left_early};
use statistics::without_lines;

/// A fate with its reasons.
struct Judgement {
    fate: Fate,
    cause: Option<Cause>,
    explanation: String,
    reason: Option<String>,
}

impl Judgement {
    fn is(fate: Fate, explanation: impl Into<String>) -> Self {
        Self {
            fate,
            cause: None,
            explanation: explanation.into(),
            reason: None,
        }
    }

    fn because(fate: Fate, cause: Cause, explanation: impl Into<String>) -> Self {
        Self {
            fate,
            cause: Some(cause),
            explanation: explanation.into(),
            reason: None,
        }
    }

    fn inconclusive(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            fate: Fate::Inconclusive,
            cause: None,
            explanation: reason.clone(),
            reason: Some(reason),
        }
    }
}

/// The fate of one request.
pub fn of(timeline: &Timeline<'_>, request: &Request, warnings: &mut Vec<String>) -> RequestFinding {
    let mut client = ClientView::of(timeline, request, warnings);
    let views: Vec<AttemptView<'_>> = request.attempts.iter().map(|a| AttemptView::of(timeline, a)).collect();
    client.left_early = left_early(timeline, request, &views);
    let judgement = judge(timeline, request, &client, &views);
    let client_by = client.by.clone().or_else(|| {
        (client.outcome.is_none() && views.iter().any(|v| v.haproxy.is_some())).then(|| "haproxy.log".to_owned())
    });
    RequestFinding {
        id: request.id.clone(),
        fate: judgement.fate,
        outcome: client.outcome,
        status: client.status,
        cause: judgement.cause,
        explanation: judgement.explanation,
        reason: judgement.reason,
        attempts: views.iter().map(|v| attempt_finding(timeline, v)).collect(),
        target_by: timeline.site.target_by.clone(),
        duration_s: client.total.map(Duration::as_secs_f64),
        bytes: client.bytes,
        client_by,
    }
}

fn attempt_finding(timeline: &Timeline<'_>, v: &AttemptView<'_>) -> AttemptFinding {
    let target = timeline.targets.iter().find(|t| v.server.as_ref() == Some(&t.server));
    let on_target = match (target, &v.server) {
        (Some(t), _) => match v.in_flight_at(timeline, &t.stop) {
            Shown::Yes => Some(true),
            Shown::No => Some(false),
            Shown::Unknown => None,
        },
        (None, Some(_)) => Some(false),
        (None, None) => v.haproxy.map(|_| false),
    };
    AttemptFinding {
        server: v.server.as_ref().map(ToString::to_string),
        client_port: v.haproxy.and_then(|(_, _, h)| h.client.map(|c| c.port())),
        lb_port: v
            .haproxy
            .and_then(|(_, _, h)| h.backend_source.map(|s| s.port()))
            .or_else(|| v.envoy.and_then(|e| e.downstream.map(|d| d.port()))),
        termination: v.haproxy.map(|(_, _, h)| h.termination.to_string()),
        envoy_flags: v.envoy.map(|e| {
            if e.flags.is_empty() {
                "-".to_owned()
            } else {
                e.flags.join(",")
            }
        }),
        on_target,
        started: v.started_on(timeline),
        ended: v.ended_on(timeline),
    }
}

fn judge(timeline: &Timeline<'_>, request: &Request, client: &ClientView, views: &[AttemptView<'_>]) -> Judgement {
    if timeline.targets.is_empty() {
        return Judgement::inconclusive("no server is known whose pod was told to stop");
    }
    let mut unknown = false;
    for target in &timeline.targets {
        for v in views.iter().filter(|v| v.server.as_ref() == Some(&target.server)) {
            match v.in_flight_at(timeline, &target.stop) {
                Shown::Yes => return on_target(timeline, client, views, v, target),
                Shown::Unknown => unknown = true,
                Shown::No => {}
            }
        }
    }
    // Every attempt that any source tells of was elsewhere, or not there at the time. A kill that HAProxy does not
    // log (2.x, kept connections and HTTP/2) leaves only Envoy's line, so Envoy's log of the targets must be there.
    let placed = views.iter().any(|v| v.server.is_some());
    let targets_logged = timeline.targets.iter().all(|t| {
        timeline.site.pods_of(&t.server).any(|p| p.envoy.is_some()) || views.iter().any(|v| v.haproxy.is_some())
    });
    // A request that was sent again was elsewhere before; where, and how that ended, no line here tells.
    let sent_again = views
        .iter()
        .any(|v| v.haproxy.is_some_and(|(_, _, h)| h.retries > 0 || h.redispatched))
        || client.connects.is_some_and(|n| n > 1) && !request.path_is_unique;
    if placed
        && !unknown
        && !sent_again
        && targets_logged
        && views.iter().all(|v| v.server.is_some() || v.haproxy.is_some())
    {
        let elsewhere = views
            .iter()
            .filter_map(|v| v.server.as_deref())
            .next()
            .unwrap_or("no server");
        return Judgement::is(
            Fate::NotInFlight,
            format!("it was on {elsewhere}, and not in flight on a server that was told to stop"),
        );
    }
    without_lines(timeline, request, client, views.is_empty(), unknown)
}

/// The attempt was on the target when it was told to stop.
fn on_target(
    timeline: &Timeline<'_>,
    client: &ClientView,
    views: &[AttemptView<'_>],
    v: &AttemptView<'_>,
    target: &Target,
) -> Judgement {
    if let Some((line, written, h)) = v.haproxy.filter(|(_, _, h)| h.termination.is_known()) {
        return by_termination(timeline, client, v, target, (line, written.place.line, h));
    }
    // HAProxy's line, if any, tells of another attempt.
    if v.envoy_cut() {
        return cut_without_a_line(timeline, client, views, v, target);
    }
    let Some(envoy) = v.envoy else {
        return Judgement::inconclusive("no source tells how it ended at the target");
    };
    match (envoy.flags.is_empty(), client.whole()) {
        (true, Some(true)) if client.connects.is_none_or(|n| n <= 1) && !client.unanswered() => Judgement::is(
            Fate::Protected,
            format!(
                "in flight on {} when it was told to stop; Envoy answered it whole and the client has all of it",
                target.server
            ),
        ),
        (true, None) => Judgement::inconclusive(
            "Envoy answered it, but neither the client nor HAProxy tells whether the answer arrived",
        ),
        (true, _) if client.gave_up() => Judgement::because(
            Fate::Lost,
            Cause::ClientAbort,
            "the client gave up before the answer was there",
        ),
        _ => Judgement::inconclusive(
            "Envoy and the client tell different stories of its end; give the `haproxy_log` source",
        ),
    }
}

/// HAProxy's own line tells how the attempt ended.
fn by_termination(
    timeline: &Timeline<'_>,
    client: &ClientView,
    v: &AttemptView<'_>,
    target: &Target,
    (line, line_number, h): (usize, u32, &HaproxyRequest),
) -> Judgement {
    let t = h.termination;
    let on = &target.server;
    let says = |what: &str| {
        format!("in flight on {on} when it was told to stop; HAProxy's line {line_number} ends with {t}: {what}")
    };
    if t.cut_by_down() {
        if client.gave_up() {
            return Judgement::because(
                Fate::Lost,
                Cause::ClientAbort,
                says("but the client had given up before"),
            );
        }
        let cause = fact::cut_cause(timeline, target, Some(line));
        let what = match cause {
            Cause::LbMaint => "cut when the server was put into maintenance",
            Cause::ListenerClosed => "cut at DOWN, which came because the pod's own drain had closed its listener",
            _ => "cut when the server was marked DOWN",
        };
        return Judgement::because(Fate::Broken, cause, says(what));
    }
    match (t.cause(), t.phase()) {
        (b'-' | b'D' | b'L', _) => match client.whole() {
            Some(false) if client.gave_up() => {
                Judgement::because(Fate::Lost, Cause::ClientAbort, says("the client gave up"))
            }
            Some(false) => Judgement::because(
                Fate::Lost,
                Cause::Network,
                says("whole, but the client did not get all of it"),
            ),
            Some(true) if matches!(client.status, Some(s) if Some(s) != h.status && h.status.is_some()) => {
                Judgement::inconclusive(says(
                    "but the client tells another status: they may not be of one attempt",
                ))
            }
            Some(true) | None => Judgement::is(Fate::Protected, says("answered whole")),
        },
        (b's', _) => Judgement::because(Fate::Lost, Cause::ServerTimeout, says("`timeout server` passed")),
        (b'S', b'C') => Judgement::because(Fate::Lost, Cause::Refused, says("the server refused the connection")),
        (b'S', _) => match pod_ended(timeline, target, &v.ended) {
            Shown::Yes => Judgement::because(
                Fate::Lost,
                Cause::PodKilled,
                says("the server closed it: the pod ended"),
            ),
            Shown::No => Judgement::because(
                Fate::Lost,
                Cause::ListenerClosed,
                says("the server closed it while the pod lived on"),
            ),
            Shown::Unknown => Judgement {
                cause: None,
                ..Judgement::is(Fate::Lost, says("the server closed it"))
            },
        },
        (b'C', _) => Judgement::because(Fate::Lost, Cause::ClientAbort, says("the client gave up")),
        (b'c', _) => Judgement::because(Fate::Lost, Cause::ClientTimeout, says("`timeout client` passed")),
        _ => Judgement::because(
            Fate::Lost,
            Cause::Unknown,
            says("ended by the load balancer for another reason"),
        ),
    }
}

/// Envoy says that the load balancer went away, and HAProxy has no line of that attempt: not logged, or no log.
fn cut_without_a_line(
    timeline: &Timeline<'_>,
    client: &ClientView,
    views: &[AttemptView<'_>],
    v: &AttemptView<'_>,
    target: &Target,
) -> Judgement {
    let on = &target.server;
    if client.gave_up() {
        return Judgement::because(
            Fate::Lost,
            Cause::ClientAbort,
            format!("in flight on {on}; the client gave up"),
        );
    }
    // Answered elsewhere, on the load balancer's own account.
    let again = views.iter().find(|o| o.server.as_ref().is_some_and(|s| s != on));
    if let Some(again) = again {
        let by_lb = again.haproxy.is_some_and(|(_, _, h)| h.retries > 0 || h.redispatched);
        let alone = again.haproxy.is_none() && client.connects == Some(1);
        let whole = client.whole() == Some(true) && !client.unanswered()
            || client.whole().is_none() && again.haproxy.is_some_and(|(_, _, h)| h.termination.is_normal());
        if whole && (by_lb || alone) {
            let to = again.server.as_deref().unwrap_or("another server");
            return Judgement::is(
                Fate::Rescued,
                format!("cut on {on}, then sent to {to} by the load balancer and answered there"),
            );
        }
    }
    if client.status == Some(504) && client.connects.is_none_or(|n| n <= 1) {
        return Judgement::because(
            Fate::Lost,
            Cause::ServerTimeout,
            format!("in flight on {on}; 504: `timeout server` passed"),
        );
    }
    if client.whole() == Some(true) && !client.unanswered() && client.connects.is_none_or(|n| n <= 1) && again.is_none()
    {
        return Judgement::inconclusive(
            "Envoy says that it was cut, the client that it was answered; give the `haproxy_log` source",
        );
    }
    match fact::stat_story(timeline, target) {
        StatStory::Cut {
            sessions, maintenance, ..
        } if accounts_for(timeline, target, sessions) => {
            let cause = if maintenance {
                Cause::LbMaint
            } else {
                fact::cut_cause(timeline, target, None)
            };
            return Judgement::because(
                Fate::Broken,
                cause,
                format!(
                    "in flight on {on}; the statistics show {sessions} open session(s) cut as it left service, Envoy says that its peer went away"
                ),
            );
        }
        StatStory::Cut { .. } | StatStory::Quiet | StatStory::Silent => {}
    }
    if let Some(by) = crate::verdict::capture::cut(timeline, v, target) {
        return Judgement::because(
            Fate::Broken,
            fact::cut_cause(timeline, target, None),
            format!("in flight on {on}; {by}"),
        );
    }
    if fact::ended_while_up(timeline, target).is_some() {
        let cause = (pod_ended(timeline, target, &v.ended) == Shown::Yes).then_some(Cause::PodKilled);
        let how = format!("in flight on {on}; it ended without an answer while {on} was still UP");
        return Judgement {
            cause,
            ..Judgement::is(Fate::Lost, how)
        };
    }
    Judgement::inconclusive(
        "Envoy says that the load balancer went away, but no source tells why; give the `haproxy_log` source, or poll `lb` every 100ms",
    )
}

/// The number of cut sessions is the number of requests that ended unanswered on the target: each is one of them.
fn accounts_for(timeline: &Timeline<'_>, target: &Target, sessions: u64) -> bool {
    let cut = timeline
        .requests
        .attempts()
        .map(|a| AttemptView::of(timeline, a))
        .filter(|v| v.server.as_ref() == Some(&target.server) && v.envoy_cut())
        .count() as u64;
    cut == sessions
}

/// The pod of the target ended within a second of these moments.
fn pod_ended(timeline: &Timeline<'_>, target: &Target, at: &[Sighting]) -> Shown {
    let clocks = &timeline.clocks;
    let near = |s: Option<Sighting>| {
        s.is_some_and(|s| {
            at.iter().any(|e| {
                let g = clocks.gap(e, &s);
                matches!((g.min, g.max), (Some(a), Some(b)) if a > Duration::from_millis(-2500) && b < Duration::from_millis(2500))
            })
        })
    };
    for pod in timeline.site.pods_of(&target.server) {
        if let Some(envoy) = pod.envoy.map(|i| &timeline.evidence.envoy_logs[i]) {
            let ends = envoy
                .lines
                .iter()
                .filter(|l| matches!(l.what, EnvoyEvent::Sigterm | EnvoyEvent::Exiting));
            if ends.clone().any(|l| near(clocks.sight(envoy.file, l.place.line, l.at))) {
                return Shown::Yes;
            }
            // It served a check well after: it was alive. Only a log that has the attempt itself can say so.
            let has_it = at.iter().any(|e| e.file == envoy.file);
            let later = envoy.requests.iter().any(|r| {
                clocks.sight(envoy.file, r.place.line, r.started).is_some_and(|s| {
                    at.iter()
                        .any(|e| clocks.gap(e, &s).min.is_some_and(|m| m > Duration::from_millis(1500)))
                })
            });
            if later && has_it {
                return Shown::No;
            }
        }
        for series in pod
            .stats
            .iter()
            .map(|i| &timeline.evidence.envoy_stats[*i])
            .filter(|s| clocks.belongs(s.file))
        {
            let brackets = sampling::gauge_brackets(series);
            let last_good = series
                .samples
                .iter()
                .zip(&brackets)
                .rev()
                .find(|(s, _)| matches!(s.reading, Reading::Values(_)))
                .and_then(|(_, b)| clocks.sight(series.file, 0, *b));
            let died = last_good.is_some_and(|s| at.iter().any(|e| clocks.gap(&s, e).surely_positive()));
            let trailing = series
                .samples
                .last()
                .is_some_and(|s| matches!(s.reading, Reading::Unknown(_)));
            if died && trailing {
                return Shown::Yes;
            }
        }
        if let Some(hc) = pod.hc.map(|i| &timeline.evidence.hc_logs[i]) {
            let ends = hc
                .lines
                .iter()
                .filter(|l| matches!(l.what, HcEvent::Sigterm | HcEvent::Exiting));
            if ends.clone().any(|l| near(clocks.sight(hc.file, l.place.line, l.at))) {
                return Shown::Yes;
            }
        }
    }
    for entry in timeline.evidence.run_log.iter().flat_map(|l| &l.entries) {
        let ends = matches!(entry.what, RunLogLine::Sigterm { .. } | RunLogLine::PodGone { .. });
        if ends && near(clocks.sight(entry.place.file, entry.place.line, entry.at)) {
            return Shown::Yes;
        }
    }
    Shown::Unknown
}

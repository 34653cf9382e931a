//! The fate where no line of HAProxy or Envoy is of the request: the client and the statistics alone.

use super::*;

/// No line of HAProxy or Envoy is of this request, or its time is not known: the client and the statistics alone.
pub(super) fn without_lines(
    timeline: &Timeline<'_>,
    request: &Request,
    client: &ClientView,
    no_lines: bool,
    unknown: bool,
) -> Judgement {
    let missing = if unknown {
        "it is not shown whether it was in flight on the target when it was told to stop"
    } else {
        "no source shows on which server it was"
    };
    if no_lines && timeline.targets.iter().all(|t| fact::idle_at_stop(timeline, t)) {
        let why = "no session was open on a server that was told to stop, in the samples around that moment";
        return Judgement::is(Fate::NotInFlight, why);
    }
    let Some(target) = sole_target(timeline) else {
        return Judgement::inconclusive(format!("{missing}; give the `haproxy_log` source"));
    };
    // A few hundred milliseconds from the client to the server and back are allowed for.
    let (sent, over) = message::client_moments(timeline.evidence, request, &timeline.clocks);
    match attempt::in_flight(timeline, &sent, &over, &target.stop, Duration::from_millis(200)) {
        Shown::Yes => {}
        Shown::No => {
            return Judgement::is(
                Fate::NotInFlight,
                "it was over, or not yet sent, when the target was told to stop",
            );
        }
        Shown::Unknown => return Judgement::inconclusive(missing),
    }
    let on = &target.server;
    if client.gave_up() {
        return Judgement::because(
            Fate::Lost,
            Cause::ClientAbort,
            format!("in flight on {on}; the client gave up"),
        );
    }
    if client.connects.is_some_and(|n| n > 1) {
        return Judgement::inconclusive("the client sent it again by itself; give the `haproxy_log` source");
    }
    match client.whole() {
        Some(true) if !client.unanswered() => {
            if retried(timeline, target) {
                return Judgement::inconclusive(
                    "the load balancer sent a request again; give the `haproxy_log` source",
                );
            }
            Judgement::is(
                Fate::Protected,
                format!(
                    "every session was on {on}, which served it when it was told to stop; the client has the whole answer"
                ),
            )
        }
        None => Judgement::inconclusive("nothing tells how it ended for its client"),
        Some(_) if client.status == Some(504) => Judgement::because(
            Fate::Lost,
            Cause::ServerTimeout,
            format!("in flight on {on}; 504: `timeout server` passed"),
        ),
        Some(_) => unanswered_by_statistics(timeline, target),
    }
}

/// The request was on the target and got no answer: was it cut as the server left service, or did it end before?
pub(super) fn unanswered_by_statistics(timeline: &Timeline<'_>, target: &Target) -> Judgement {
    let on = &target.server;
    let failed = failed_clients(timeline);
    match fact::stat_story(timeline, target) {
        StatStory::Cut {
            sessions, maintenance, ..
        } if sessions == failed => {
            let cause = if maintenance {
                Cause::LbMaint
            } else {
                fact::cut_cause(timeline, target, None)
            };
            Judgement::because(
                Fate::Broken,
                cause,
                format!(
                    "in flight on {on}; the statistics show {sessions} open session(s) cut as it left service, and {failed} request(s) got no answer"
                ),
            )
        }
        StatStory::Cut { .. } | StatStory::Quiet | StatStory::Silent => match fact::ended_while_up(timeline, target) {
            Some((at, file)) => {
                let ended: Vec<Sighting> = timeline.clocks.sight(file, 0, at).into_iter().collect();
                let cause = match pod_ended(timeline, target, &ended) {
                    Shown::Yes => Some(Cause::PodKilled),
                    Shown::No | Shown::Unknown => None,
                };
                Judgement {
                    cause,
                    ..Judgement::is(
                        Fate::Lost,
                        format!("in flight on {on}; it ended without an answer while {on} was still UP"),
                    )
                }
            }
            None => Judgement::inconclusive(format!(
                "it got no answer, but the statistics of {on} do not tell why; give the `haproxy_log` source, or poll `lb` every 100ms"
            )),
        },
    }
}

/// Single requests that got no answer from a pod, and did not give up themselves.
pub(super) fn failed_clients(timeline: &Timeline<'_>) -> u64 {
    let mut ignored = Vec::new();
    let views = timeline
        .requests
        .single
        .iter()
        .map(|r| ClientView::of(timeline, r, &mut ignored))
        .collect::<Vec<_>>();
    views.iter().filter(|c| c.unanswered() && !c.gave_up()).count() as u64
}

/// The only server that had any session in the whole run, when it is a target.
pub(super) fn sole_target<'t>(timeline: &'t Timeline<'_>) -> Option<&'t Target> {
    let mut busy = Vec::new();
    for s in &timeline.site.servers {
        let points = server::stat_points(timeline.evidence, &timeline.site, &s.name);
        let usable = points.iter().filter(|p| timeline.clocks.belongs(p.file));
        let counts: Vec<u64> = usable.filter_map(|p| p.row?.stot).collect();
        match (counts.iter().min(), counts.iter().max()) {
            (Some(a), Some(b)) if a < b => busy.push(&s.name),
            (Some(_), Some(_)) => {}
            _ => return None,
        }
    }
    let [only] = busy[..] else { return None };
    timeline.targets.iter().find(|t| t.server == *only)
}

/// Retries or redispatches were counted in the run.
pub(super) fn retried(timeline: &Timeline<'_>, target: &Target) -> bool {
    let points = server::stat_points(timeline.evidence, &timeline.site, &target.server);
    let rows: Vec<_> = points.iter().filter_map(|p| p.row).collect();
    let (Some(a), Some(b)) = (rows.first(), rows.last()) else {
        return true;
    };
    a.wredis != b.wredis || a.wretr != b.wretr
}

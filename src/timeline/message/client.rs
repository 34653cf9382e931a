//! A request between its client and the proxies.

use super::*;

/// The client sends before HAProxy accepts, HAProxy is done before the client is.
pub(super) fn clients(evidence: &Evidence, requests: &Requests, clocks: &Clocks, c: &mut Collector) {
    for request in &requests.single {
        let (sent, over) = client_moments(evidence, request, clocks);
        let (there, back) = kinds_of_client(evidence, request);
        let first = request.attempts.first();
        for attempt in &request.attempts {
            let h = attempt
                .haproxy
                .and_then(|at| Some((at, haproxy_request(evidence, at)?)));
            let sure = attempt.client_haproxy_sure || request.path_is_unique;
            match h {
                Some((at, (line, h))) if sure => {
                    let file = evidence.haproxy_logs[at.0].file;
                    let accepted = clocks.sight(file, line.place.line, h.accepted);
                    let ended = clocks.sight(file, line.place.line, haproxy_end(line.at, h));
                    for s in &sent {
                        c.before(there(s, attempt), Some(*s), accepted, SCHEDULING);
                    }
                    // A client that gave up was done long before HAProxy noticed; only a regular end, or a
                    // client that says that it waited, is sure to come after HAProxy's.
                    if h.termination.is_normal() || waited_for_the_end(evidence, request) {
                        for s in &over {
                            c.before(back(s, attempt), ended, Some(*s), LINE_AFTER_RESPONSE);
                        }
                    }
                }
                _ => {
                    // Without HAProxy's line only a path of its own makes it sure; a client that gave up may be
                    // done before Envoy notices.
                    let Some(at) = attempt.envoy.filter(|_| request.path_is_unique) else {
                        continue;
                    };
                    let Some(e) = envoy_request(evidence, at) else { continue };
                    let file = evidence.envoy_logs[at.0].file;
                    for s in &sent {
                        c.before(
                            MessageKind::ClientByPath,
                            Some(*s),
                            clocks.sight(file, e.place.line, e.started),
                            SCHEDULING,
                        );
                    }
                    if e.flags.is_empty() && Some(attempt) == first {
                        for s in &over {
                            c.before(
                                MessageKind::ClientByPath,
                                clocks.sight(file, e.place.line, e.ended),
                                Some(*s),
                                SCHEDULING,
                            );
                        }
                    }
                }
            }
        }
    }
    for attempt in requests.load.iter().flatten().filter(|a| a.client_haproxy_sure) {
        let (Some(l_at), Some(h_at)) = (attempt.load, attempt.haproxy) else {
            continue;
        };
        let (Some(l), Some((line, h))) = (load_request(evidence, l_at), haproxy_request(evidence, h_at)) else {
            continue;
        };
        let (l_file, h_file) = (evidence.loads[l_at.0].file, evidence.haproxy_logs[h_at.0].file);
        let l_sight = |at| clocks.sight(l_file, l.place.line, at);
        let h_sight = |at| clocks.sight(h_file, line.place.line, at);
        c.before(
            MessageKind::ClientToHaproxy,
            l_sight(l.started),
            h_sight(h.accepted),
            SCHEDULING,
        );
        if h.termination.cause() != b'C' {
            c.before(
                MessageKind::HaproxyToClient,
                h_sight(haproxy_end(line.at, h)),
                l_sight(l.ended),
                LINE_AFTER_RESPONSE,
            );
        }
    }
}

/// What ties a client's moment to HAProxy's line: its own port, or only the path. The run log speaks of the same
/// client when its summary is that client's, to the microsecond.
pub(super) fn kinds_of_client<'a>(
    evidence: &'a Evidence,
    request: &'a crate::timeline::request::Request,
) -> (
    impl Fn(&Sighting, &crate::timeline::request::Attempt) -> MessageKind + 'a,
    impl Fn(&Sighting, &crate::timeline::request::Attempt) -> MessageKind + 'a,
) {
    let client = request.client.map(|i| &evidence.clients[i]);
    let same_client = client.is_some_and(|c| {
        evidence.run_log.iter().flat_map(|l| &l.entries).any(|e| {
            matches!(&e.what, RunLogLine::Summary { id, total: Some(total), .. }
                if *id == request.id && Some(*total) == c.total)
        })
    });
    let sure = move |s: &Sighting, a: &crate::timeline::request::Attempt| {
        let own = client.is_some_and(|c| c.place.file == s.file);
        a.client_haproxy_sure && (own || same_client)
    };
    let there = move |s: &Sighting, a: &crate::timeline::request::Attempt| {
        if sure(s, a) {
            MessageKind::ClientToHaproxy
        } else {
            MessageKind::ClientByPath
        }
    };
    let back = move |s: &Sighting, a: &crate::timeline::request::Attempt| {
        if sure(s, a) {
            MessageKind::HaproxyToClient
        } else {
            MessageKind::ClientByPath
        }
    };
    (there, back)
}

/// The client's own record says that it was answered, or that the other side ended it.
pub(super) fn waited_for_the_end(evidence: &Evidence, request: &crate::timeline::request::Request) -> bool {
    request.client.is_some_and(|i| match evidence.clients[i].outcome {
        ClientOutcome::Ok
        | ClientOutcome::HttpError
        | ClientOutcome::Truncated
        | ClientOutcome::Reset
        | ClientOutcome::ClosedEarly => true,
        ClientOutcome::Refused
        | ClientOutcome::RefusedStream
        | ClientOutcome::Timeout
        | ClientOutcome::TlsError
        | ClientOutcome::DnsError
        | ClientOutcome::Aborted
        | ClientOutcome::Unknown => false,
    })
}

/// When a single request was sent and was over, as its own record and the run log tell it.
pub fn client_moments(
    evidence: &Evidence,
    request: &crate::timeline::request::Request,
    clocks: &Clocks,
) -> (Vec<Sighting>, Vec<Sighting>) {
    let (mut sent, mut over) = (Vec::new(), Vec::new());
    if let Some(client) = request.client.map(|i| &evidence.clients[i]) {
        sent.extend(clocks.sight(client.place.file, client.place.line, client.started));
        over.extend(clocks.sight(client.place.file, client.place.line, client.ended));
    }
    for entry in evidence.run_log.iter().flat_map(|l| &l.entries) {
        match &entry.what {
            // Logged just before the client was started.
            RunLogLine::RequestStarted { id, .. } if *id == request.id => {
                sent.extend(clocks.sight(entry.place.file, entry.place.line, entry.at));
            }
            RunLogLine::RequestFinished { id } if *id == request.id => {
                over.extend(clocks.sight(entry.place.file, entry.place.line, entry.at));
            }
            _ => {}
        }
    }
    (sent, over)
}

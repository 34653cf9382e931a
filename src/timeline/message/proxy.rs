//! A request between HAProxy and Envoy.

use super::*;

/// HAProxy connects, Envoy starts; Envoy ends, HAProxy ends. A kill goes the other way round.
pub(super) fn haproxy_and_envoy(evidence: &Evidence, requests: &Requests, clocks: &Clocks, c: &mut Collector) {
    for attempt in requests.attempts().filter(|a| a.haproxy_envoy_sure) {
        let (Some(h_at), Some(e_at)) = (attempt.haproxy, attempt.envoy) else {
            continue;
        };
        let (Some((line, h)), Some(e)) = (haproxy_request(evidence, h_at), envoy_request(evidence, e_at)) else {
            continue;
        };
        let h_file = evidence.haproxy_logs[h_at.0].file;
        let e_file = evidence.envoy_logs[e_at.0].file;
        let h_sight = |at| clocks.sight(h_file, line.place.line, at);
        let e_sight = |at| clocks.sight(e_file, e.place.line, at);
        // Timers are cut to milliseconds, so accepted + TR + Tw + Tc is never later than the truth. After a retry
        // the accept stamp is that of the first attempt, which is only earlier still.
        let waited = [h.time_request, h.time_queue, h.time_connect]
            .into_iter()
            .flatten()
            .fold(Duration::ZERO, |a, b| a + b);
        let sent = if h.retries > 0 {
            h.accepted
        } else {
            h.accepted.shifted(waited)
        };
        c.before(
            MessageKind::HaproxyToEnvoy,
            h_sight(sent),
            e_sight(e.started),
            SCHEDULING,
        );
        let cut_by_lb = h.termination.cut_by_down() || matches!(h.termination.cause(), b's' | b'c' | b'C' | b'K');
        if h.termination.is_normal() && e.flags.is_empty() {
            c.before(
                MessageKind::EnvoyToHaproxy,
                e_sight(e.ended),
                h_sight(haproxy_end(line.at, h)),
                SCHEDULING,
            );
        } else if cut_by_lb {
            c.before(
                MessageKind::Kill,
                h_sight(haproxy_end(line.at, h)),
                e_sight(e.ended),
                KILL,
            );
            c.before(MessageKind::Kill, e_sight(e.ended), h_sight(line.at), KILL);
        }
    }
}

/// When HAProxy's session ended: accept stamp plus total time, and not after the line was written.
pub fn haproxy_end(written: Bracket, h: &crate::evidence::haproxy_log::HaproxyRequest) -> Bracket {
    let total = h.time_total.filter(|_| !h.as_soon_as_possible);
    let Some(total) = total else {
        return Bracket {
            lo: h.accepted.lo,
            hi: written.hi,
        };
    };
    // Both are cut to milliseconds: the sum is up to 2 ms early.
    let computed = Bracket {
        lo: h.accepted.lo.map(|t| t + total),
        hi: h.accepted.hi.map(|t| t + total + Duration::from_millis(1)),
    };
    if h.accepted == Bracket::OPEN {
        return Bracket {
            lo: None,
            hi: written.hi,
        };
    }
    // The line's stamp and the timers are of one process; where they disagree the stamp only bounds.
    computed
        .intersect(Bracket {
            lo: None,
            hi: written.hi,
        })
        .unwrap_or(computed)
}

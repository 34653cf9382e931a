//! HAProxy's statistics and what its log, or Envoy's, tells of the same.

use super::*;

/// Statistics of a server change with what HAProxy's log tells of it, or with Envoy's lines where there is none.
pub(super) fn statistics(
    evidence: &Evidence,
    site: &Site,
    requests: &Requests,
    log: Option<usize>,
    clocks: &Clocks,
    c: &mut Collector,
) {
    for series in evidence.haproxy_csv.iter().filter(|s| s.kind == StatKind::Timeline) {
        let brackets = sampling::stat_brackets(series);
        for server in &site.servers {
            let rows: Vec<(Bracket, &crate::evidence::haproxy_csv::StatRow)> = series
                .samples
                .iter()
                .zip(&brackets)
                .filter_map(|(s, b)| {
                    let row = s
                        .rows
                        .iter()
                        .find(|r| !r.is_backend && r.server == server.name && Some(&r.proxy) == site.proxy.as_ref())?;
                    Some((*b, row))
                })
                .collect();
            let sight = |b: Bracket| clocks.sight(series.file, 0, b);
            // UP to DOWN, once each: the same moment in the log.
            if let Some(log) = log.map(|i| &evidence.haproxy_logs[i]) {
                let downs: Vec<_> = rows
                    .windows(2)
                    .filter(|w| w[0].1.status.class.is_alive() && w[1].1.status.class.is_down())
                    .collect();
                let logged: Vec<_> = log
                    .lines
                    .iter()
                    .filter(|l| {
                        matches!(&l.what, HaproxyEvent::ServerState(s) if s.server == server.name
                            && Some(&s.backend) == site.proxy.as_ref() && s.to == ServerChange::Down)
                    })
                    .collect();
                let starts_up = rows.first().is_some_and(|r| r.1.status.class.is_alive());
                if let ([w], [line], true) = (&downs[..], &logged[..], starts_up) {
                    let line = clocks.sight(log.file, line.place.line, line.at);
                    c.before(MessageKind::Statistics, sight(w[0].0), line, SCHEDULING);
                    c.before(MessageKind::Statistics, line, sight(w[1].0), SCHEDULING);
                }
            }
            // Sessions are counted as they come: the n-th rise of `stot` is the n-th request of the server.
            let (Some(first), Some(last)) = (rows.first().and_then(|r| r.1.stot), rows.last().and_then(|r| r.1.stot))
            else {
                continue;
            };
            let mut starts = server_starts(evidence, site, requests, &server.name, clocks);
            if last <= first || starts.len() as u64 != last - first || starts.iter().any(|s| s.clock != starts[0].clock)
            {
                continue;
            }
            starts.sort_by_key(|s| s.at.lo);
            for w in rows.windows(2) {
                let (Some(a), Some(b)) = (w[0].1.stot, w[1].1.stot) else {
                    continue;
                };
                if a < b && b >= first {
                    let before = starts.get((a - first) as usize).copied();
                    let after = starts.get((b - 1 - first) as usize).copied();
                    c.before(MessageKind::Statistics, sight(w[0].0), before, SCHEDULING);
                    c.before(MessageKind::Statistics, after, sight(w[1].0), SCHEDULING);
                }
            }
        }
    }
}

/// Starts of all requests of a server, from HAProxy's log, else from Envoy's.
pub(super) fn server_starts(
    evidence: &Evidence,
    site: &Site,
    requests: &Requests,
    server: &str,
    clocks: &Clocks,
) -> Vec<Sighting> {
    let from_haproxy: Vec<Sighting> = requests
        .attempts()
        .filter_map(|a| {
            let at = a.haproxy?;
            let (line, h) = haproxy_request(evidence, at)?;
            (h.server.as_deref() == Some(server)).then_some(())?;
            // Counted when it is given to the server, after request and queue.
            let waited = [h.time_request, h.time_queue]
                .into_iter()
                .flatten()
                .fold(Duration::ZERO, |a, b| a + b);
            let b = h.accepted.shifted(waited);
            clocks.sight(
                evidence.haproxy_logs[at.0].file,
                line.place.line,
                Bracket {
                    lo: b.lo,
                    hi: b.hi.map(|t| t + Duration::from_millis(2)),
                },
            )
        })
        .collect();
    if !from_haproxy.is_empty() {
        return from_haproxy;
    }
    let pods: Vec<_> = site.pods_of(server).filter_map(|p| p.envoy).collect();
    let [envoy] = pods[..] else { return Vec::new() };
    let log = &evidence.envoy_logs[envoy];
    log.requests
        .iter()
        .filter(|r| !site.is_check(r.path.as_deref()))
        .filter_map(|r| {
            // Counted before the connect, which may take a while: at most 20 ms earlier was allowed for.
            let b = Bracket {
                lo: r.started.lo.map(|t| t - Duration::from_millis(20)),
                hi: r.started.hi,
            };
            clocks.sight(log.file, r.place.line, b)
        })
        .collect()
}

//! How far a file reaches: its zone, its requests, its first and last stamp.

use super::*;

/// A log without a zone: what its matched requests differ by from another file's, rounded to 15 minutes.
pub fn zone_shift(evidence: &Evidence, requests: &Requests, file: FileId) -> Option<Duration> {
    const QUARTER: i64 = 15 * 60;
    let mut shift = None;
    for request in requests.attempts() {
        let Some((at, (_, h))) = request
            .haproxy
            .and_then(|at| Some((at, haproxy_request(evidence, at)?)))
        else {
            continue;
        };
        if evidence.haproxy_logs[at.0].file != file {
            continue;
        }
        let other = match (
            request.envoy.and_then(|e| envoy_request(evidence, e)),
            request.load.and_then(|l| load_request(evidence, l)),
        ) {
            (Some(e), _) => e.started.lo,
            (None, Some(l)) => l.started.lo,
            (None, None) => None,
        };
        shift = shift.or(whole_quarters(h.accepted.lo, other, QUARTER));
    }
    // Without Envoy's log: the run log's line of the request.
    for request in &requests.single {
        for attempt in &request.attempts {
            let Some((at, (_, h))) = attempt
                .haproxy
                .and_then(|at| Some((at, haproxy_request(evidence, at)?)))
            else {
                continue;
            };
            if evidence.haproxy_logs[at.0].file != file {
                continue;
            }
            let started = evidence
                .run_log
                .iter()
                .flat_map(|l| &l.entries)
                .find_map(|e| match &e.what {
                    RunLogLine::RequestStarted { id, .. } if *id == request.id => e.at.lo,
                    _ => None,
                });
            shift = shift.or(whole_quarters(h.accepted.lo, started, QUARTER));
        }
    }
    shift
}

pub(super) fn whole_quarters(
    local: Option<crate::time::Instant>,
    other: Option<crate::time::Instant>,
    quarter: i64,
) -> Option<Duration> {
    let difference = local? - other?;
    let seconds = difference.as_nanos() as f64 / 1e9;
    let quarters = (seconds / quarter as f64).round() as i64;
    // Zones go from -12 to +14 hours; another minute or more off is no zone.
    let rest = seconds - (quarters * quarter) as f64;
    (quarters.abs() <= 14 * 4 && rest.abs() < 60.0).then(|| Duration::from_secs(quarters * quarter))
}

/// Moments at which a request is known to have run, as any source tells it.
pub fn request_sightings(evidence: &Evidence, requests: &Requests, clocks: &Clocks) -> Vec<Sighting> {
    let mut found = Vec::new();
    for request in &requests.single {
        let (sent, over) = client_moments(evidence, request, clocks);
        found.extend(sent);
        found.extend(over);
    }
    let singles = requests.single.iter().flat_map(|r| &r.attempts);
    for attempt in singles.chain(requests.load.iter().flatten()) {
        if let Some((at, (line, h))) = attempt
            .haproxy
            .and_then(|at| Some((at, haproxy_request(evidence, at)?)))
        {
            let file = evidence.haproxy_logs[at.0].file;
            found.extend(clocks.sight(file, line.place.line, h.accepted));
            found.extend(clocks.sight(file, line.place.line, line.at));
        }
        if let Some((at, e)) = attempt.envoy.and_then(|at| Some((at, envoy_request(evidence, at)?))) {
            let file = evidence.envoy_logs[at.0].file;
            found.extend(clocks.sight(file, e.place.line, e.started));
            found.extend(clocks.sight(file, e.place.line, e.ended));
        }
        if let Some((at, l)) = attempt.load.and_then(|at| Some((at, load_request(evidence, at)?))) {
            found.extend(clocks.sight(evidence.loads[at.0].file, l.place.line, l.started));
        }
    }
    found
}

/// First to last stamp of a file that carries regular evidence; `None` for one that does not.
pub fn span(evidence: &Evidence, file: FileId) -> Option<Bracket> {
    let mut span: Option<Bracket> = None;
    let mut add = |b: Bracket| {
        if b.lo.is_some() && b.hi.is_some() {
            span = Some(span.map_or(b, |s| s.hull(b)));
        }
    };
    evidence
        .haproxy_logs
        .iter()
        .filter(|l| l.file == file)
        .flat_map(|l| &l.lines)
        .for_each(|l| add(l.at));
    evidence
        .hc_logs
        .iter()
        .filter(|l| l.file == file)
        .flat_map(|l| &l.lines)
        .for_each(|l| add(l.at));
    evidence
        .envoy_logs
        .iter()
        .filter(|l| l.file == file)
        .flat_map(|l| &l.requests)
        .for_each(|r| add(r.started));
    evidence
        .captures
        .iter()
        .filter(|c| c.file == file)
        .flat_map(|c| &c.packets)
        .for_each(|p| add(p.at));
    evidence
        .run_log
        .iter()
        .filter(|l| l.file == Some(file))
        .flat_map(|l| &l.entries)
        .for_each(|e| add(e.at));
    evidence
        .loads
        .iter()
        .filter(|l| l.file == file)
        .flat_map(|l| &l.requests)
        .for_each(|r| add(r.started));
    for s in evidence.envoy_stats.iter().filter(|s| s.file == file) {
        sampling::gauge_brackets(s).into_iter().for_each(&mut add);
    }
    for s in evidence.haproxy_csv.iter().filter(|s| s.file == file) {
        sampling::stat_brackets(s).into_iter().for_each(&mut add);
    }
    for w in evidence
        .watches
        .iter()
        .filter(|w| w.file == file)
        .flat_map(|w| &w.events)
    {
        add(Bracket::new(w.arrival - Duration::from_nanos(1), w.arrival));
    }
    span
}

//! Exchanges with hosts, arrivals of lines, and what an order caused.

use super::*;

pub(super) fn exchanges(evidence: &Evidence, clocks: &Clocks, c: &mut Collector) {
    let Some(own) = clocks.named("gtrun") else { return };
    let ns = Duration::from_nanos(1);
    for x in &evidence.clock_exchanges {
        let Some(host) = clocks.named(&format!("host {}", x.host)) else {
            continue;
        };
        let s = |clock, t: crate::time::Instant| {
            Some(Sighting {
                clock,
                at: Bracket::new(t - ns, t),
                file: FileId(0),
                line: 0,
            })
        };
        c.before(MessageKind::Exchange, s(own, x.sent), s(host, x.remote), Duration::ZERO);
        c.before(
            MessageKind::Exchange,
            s(host, x.remote),
            s(own, x.received),
            Duration::ZERO,
        );
    }
}

/// A line is written before it arrives; the runtime stamps it in between.
pub(super) fn arrivals(evidence: &Evidence, clocks: &Clocks, c: &mut Collector) {
    let ns = Duration::from_nanos(1);
    let mut add = |file, line, at: Bracket, arrival: Option<crate::time::Instant>| {
        if let Some(arrival) = arrival {
            let there = clocks.sight_arrival(file, line, Bracket::new(arrival - ns, arrival));
            c.before(MessageKind::Arrival, clocks.sight(file, line, at), there, SCHEDULING);
        }
    };
    for log in &evidence.hc_logs {
        for l in &log.lines {
            add(log.file, l.place.line, l.at, l.arrival);
        }
    }
    for log in &evidence.envoy_logs {
        for r in &log.requests {
            add(log.file, r.place.line, r.ended, r.arrival);
        }
    }
}

/// What an order to the pod caused: the drain after the delete, the end of the pod after its SIGTERM.
pub(super) fn causes(evidence: &Evidence, site: &Site, clocks: &Clocks, c: &mut Collector) {
    let Some(run_log) = &evidence.run_log else { return };
    let mut deletes = run_log
        .entries
        .iter()
        .filter(|e| matches!(e.what, RunLogLine::DeletePod { .. }));
    let (Some(delete), None) = (deletes.next(), deletes.next()) else {
        return;
    };
    let gone = run_log
        .entries
        .iter()
        .find(|e| matches!(e.what, RunLogLine::PodGone { .. }));
    let targets: Vec<_> = site.targets().map(|i| &*site.servers[i].name).collect();
    let [target] = targets[..] else { return };
    for hc in site.pods_of(target).filter_map(|p| p.hc).map(|i| &evidence.hc_logs[i]) {
        let drains: Vec<_> = hc
            .lines
            .iter()
            .filter(|l| matches!(&l.what, HcEvent::Transition { from, .. } if from == "OPEN" || from == "READY"))
            .collect();
        if let [drain] = drains[..] {
            let ordered = clocks.sight(delete.place.file, delete.place.line, delete.at);
            c.before(
                MessageKind::Cause,
                ordered,
                clocks.sight(hc.file, drain.place.line, drain.at),
                SCHEDULING,
            );
        }
        if let (Some(gone), Some(term)) = (gone, hc.lines.iter().rev().find(|l| matches!(l.what, HcEvent::Sigterm))) {
            let gone = clocks.sight(gone.place.file, gone.place.line, gone.at);
            // The script's line may be written while the last process is still on its way out.
            c.before(
                MessageKind::Cause,
                clocks.sight(hc.file, term.place.line, term.at),
                gone,
                Duration::from_millis(500),
            );
        }
    }
}

//! Gauges and the requests that they count.

use super::*;

/// A sample of a gauge: when it was read, and how many requests it counted.
pub type Count = (Bracket, Option<u64>);

/// The application's gauge counts what Envoy's own lines say is running: a count that they reach only once ties the
/// sample to that time. A log that lacks a line (a killed proxy loses them) counts less than the gauge did, and ties
/// nothing.
pub(super) fn gauges(evidence: &Evidence, site: &Site, clocks: &Clocks, c: &mut Collector) {
    for pod in &site.pods {
        let Some(envoy) = pod.envoy.map(|i| &evidence.envoy_logs[i]) else {
            continue;
        };
        let app: Vec<&EnvoyRequest> = envoy
            .requests
            .iter()
            .filter(|r| !site.is_check(r.path.as_deref()))
            .collect();
        let Some(cluster) = app.first().and_then(|r| r.cluster.as_deref()) else {
            continue;
        };
        let Some(levels) = levels(&app) else { continue };
        let name = format!("cluster.{cluster}.upstream_rq_active");
        let most = levels.iter().map(|l| l.count).max().unwrap_or(0);
        let mut tie = |file, samples: &[Count]| {
            if samples.iter().filter_map(|s| s.1).max() != Some(most) {
                return;
            }
            for (at, count) in samples {
                let Some(count) = count.filter(|n| *n > 0) else {
                    continue;
                };
                let mut at_level = levels.iter().filter(|l| l.count == count);
                let (Some(level), None) = (at_level.next(), at_level.next()) else {
                    continue;
                };
                let sample = clocks.sight(file, 0, *at);
                let edge = |b| clocks.sight(envoy.file, 0, b);
                c.before(MessageKind::BusyGauge, edge(level.from), sample, GAUGE);
                c.before(MessageKind::BusyGauge, sample, edge(level.until), GAUGE);
            }
            let [before, after] = around_the_only_request(&app, samples);
            let begin = clocks.sight(envoy.file, 0, levels[0].from);
            let end = levels.last().and_then(|l| clocks.sight(envoy.file, 0, l.until));
            c.before(
                MessageKind::BusyGauge,
                before.and_then(|b| clocks.sight(file, 0, b)),
                begin,
                GAUGE,
            );
            c.before(
                MessageKind::BusyGauge,
                end,
                after.and_then(|b| clocks.sight(file, 0, b)),
                GAUGE,
            );
        };
        for series in pod.stats.iter().map(|i| &evidence.envoy_stats[*i]) {
            let brackets = sampling::gauge_brackets(series);
            let samples: Vec<Count> = series
                .samples
                .iter()
                .zip(brackets)
                .map(|(s, b)| match &s.reading {
                    Reading::Values(v) => (b, v.get(name.as_str()).copied()),
                    Reading::Unknown(_) => (b, None),
                })
                .collect();
            tie(series.file, &samples);
        }
        if let Some(hc) = pod.hc.map(|i| &evidence.hc_logs[i]) {
            tie(hc.file, &own_polls(hc));
        }
    }
}

/// Idle samples next to the busy ones, when Envoy had one request only.
pub(super) fn around_the_only_request(app: &[&EnvoyRequest], samples: &[Count]) -> [Option<Bracket>; 2] {
    let busy = |s: &Count| s.1.is_some_and(|n| n > 0);
    let (Some(first), Some(last)) = (samples.iter().position(busy), samples.iter().rposition(busy)) else {
        return [None, None];
    };
    if app.len() != 1 {
        return [None, None];
    }
    let idle = |s: &&Count| s.1 == Some(0);
    let before = samples[..first].iter().rev().find(idle).map(|s| s.0);
    let after = samples[last + 1..].iter().find(idle).map(|s| s.0);
    [before, after]
}

/// A time in which a number of requests ran.
pub(super) struct Level {
    count: u64,
    from: Bracket,
    until: Bracket,
}

/// How many of the requests ran at a time, step by step; `None` when a line has no end.
pub(super) fn levels(requests: &[&EnvoyRequest]) -> Option<Vec<Level>> {
    let mut steps: Vec<(Instant, Bracket, i64)> = Vec::new();
    for r in requests {
        steps.push((r.started.lo?, r.started, 1));
        steps.push((r.ended.lo?, r.ended, -1));
    }
    // An end before a start of the same millisecond: a level of no length ties nothing.
    steps.sort_by_key(|s| (s.0, s.2));
    let mut count: i64 = 0;
    let mut found = Vec::new();
    for pair in steps.windows(2) {
        count += pair[0].2;
        let long_enough = pair[1].0 - pair[0].0 > GAUGE;
        if count > 0 && (long_enough || pair[1].2 < 0) {
            found.push(Level {
                count: count.unsigned_abs(),
                from: pair[0].1,
                until: pair[1].1,
            });
        }
    }
    Some(found)
}

/// The workload's own view of the application's gauge: each poll was read after the line before it was written.
pub fn own_polls(hc: &crate::evidence::hc_log::HcLog) -> Vec<Count> {
    let mut before: Option<Bracket> = None;
    let mut polls = Vec::new();
    for line in &hc.lines {
        if let HcEvent::Poll { upstream, .. } = &line.what {
            polls.push((
                Bracket {
                    lo: before.and_then(|b| b.lo),
                    hi: line.at.hi,
                },
                *upstream,
            ));
        }
        before = Some(line.at);
    }
    polls
}

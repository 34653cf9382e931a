//! `active_zero`: when the in-flight count of a pod reached zero and stayed there.

use super::Timeline;
use super::clocks::Sighting;
use super::message;
use super::sampling;
use super::server;
use crate::evidence::Evidence;
use crate::evidence::envoy_stats::{GaugeSample, GaugeValues, Reading};
use crate::evidence::haproxy_csv::StatKind;
use crate::time::Bracket;

/// When the count settled at zero, as each source bounds it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActiveZero {
    /// One bracket a source.
    pub sightings: Vec<Sighting>,
    /// Some source shows it: work in flight, and later an explicit zero with the pod alive.
    pub seen: bool,
    /// Why a source could not bound it.
    pub notes: Vec<String>,
}

/// What one gauge sample says of requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlight {
    /// At least one.
    Busy,
    /// Explicitly none.
    Idle,
    /// Not said, or not told apart from a health check being served.
    Unknown,
}

/// Which gauges count. A health check that is being served shows as 1 in the ingress gauge: its own cluster is
/// subtracted. Admin, agent and xDS streams never count.
#[derive(Debug, Clone, Default)]
pub struct GaugeNames {
    ingress: Option<String>,
    app: Vec<String>,
    checks: Vec<String>,
    /// The health page's cluster could not be told from the application's.
    ambiguous: bool,
}

const SUFFIX_DOWN: &str = ".downstream_rq_active";
const SUFFIX_UP: &str = ".upstream_rq_active";

impl GaugeNames {
    /// From what is known, from Envoy's own access lines, else from the names alone.
    pub fn learn(timeline: &Timeline<'_>, samples: &[GaugeSample]) -> Self {
        let mut names = std::collections::BTreeSet::new();
        for sample in samples {
            if let Reading::Values(v) = &sample.reading {
                names.extend(v.keys().cloned());
            }
        }
        let ingress = names
            .iter()
            .filter(|n| n.starts_with("http.") && n.ends_with(SUFFIX_DOWN))
            .filter(|n| match &timeline.known.ingress {
                Some(prefix) => n
                    .strip_prefix("http.")
                    .is_some_and(|rest| rest.trim_end_matches(SUFFIX_DOWN) == prefix),
                None => !["admin", "agent", "stats", "outbound"]
                    .iter()
                    .any(|own| n[5..].starts_with(own)),
            })
            .map(|n| n.to_string())
            .collect::<Vec<_>>();
        let clusters: Vec<String> = names
            .iter()
            .filter(|n| n.starts_with("cluster.inbound|") && n.ends_with(SUFFIX_UP))
            .map(|n| n.to_string())
            .collect();
        let gauge_of = |cluster: &str| format!("cluster.{cluster}{SUFFIX_UP}");
        let seen = |check: bool| -> std::collections::BTreeSet<String> {
            let lines = timeline.evidence.envoy_logs.iter().flat_map(|l| &l.requests);
            lines
                .filter(|r| timeline.site.is_check(r.path.as_deref()) == check)
                .filter_map(|r| r.cluster.as_deref().map(gauge_of))
                .collect()
        };
        let (check_seen, app_seen) = (seen(true), seen(false));
        let mut checks: Vec<String> = clusters
            .iter()
            .filter(|c| check_seen.contains(*c) && !app_seen.contains(*c))
            .cloned()
            .collect();
        let mut app: Vec<String> = match &timeline.known.app_cluster {
            Some(name) => clusters.iter().filter(|c| **c == gauge_of(name)).cloned().collect(),
            None => clusters.iter().filter(|c| app_seen.contains(*c)).cloned().collect(),
        };
        let mut ambiguous = false;
        if app.is_empty() {
            // Nobody tells; a cluster that was never busy does not matter, and one that alone was busy is the
            // application's. Two busy ones cannot be told apart.
            let busy: Vec<String> = clusters
                .iter()
                .filter(|c| !checks.contains(c) && was_busy(samples, c))
                .cloned()
                .collect();
            ambiguous = busy.len() > 1;
            app = if busy.is_empty() {
                clusters.iter().filter(|c| !checks.contains(c)).cloned().collect()
            } else {
                busy
            };
        }
        if checks.is_empty() && timeline.known.app_cluster.is_some() {
            checks = clusters.iter().filter(|c| !app.contains(c)).cloned().collect();
        }
        Self {
            ingress: (ingress.len() == 1).then(|| ingress[0].clone()),
            app,
            checks,
            ambiguous,
        }
    }

    /// Requests between load balancer and proxy, and between proxy and application, without health checks.
    pub fn counts(&self, values: &GaugeValues) -> (Option<u64>, Option<u64>) {
        let checks: u64 = self.checks.iter().filter_map(|n| values.get(n.as_str())).sum();
        let downstream = self
            .ingress
            .as_ref()
            .and_then(|n| values.get(n.as_str()))
            .map(|n| n.saturating_sub(checks));
        let app: Vec<u64> = self
            .app
            .iter()
            .filter_map(|n| values.get(n.as_str()).copied())
            .collect();
        (downstream, (!app.is_empty()).then(|| app.iter().sum()))
    }

    /// What a reply says.
    pub fn judge(&self, reading: &Reading) -> InFlight {
        let Reading::Values(values) = reading else {
            return InFlight::Unknown;
        };
        let app: Vec<Option<u64>> = self.app.iter().map(|n| values.get(n.as_str()).copied()).collect();
        let any_app_busy = app.iter().flatten().any(|n| *n > 0);
        let downstream = self.ingress.as_ref().and_then(|n| values.get(n.as_str()).copied());
        let checks: u64 = self.checks.iter().filter_map(|n| values.get(n.as_str())).sum();
        if self.ambiguous {
            // Both sides zero is zero whoever is who; anything else may be a health check.
            return match downstream {
                Some(0) if app.iter().all(|n| *n == Some(0)) => InFlight::Idle,
                Some(n) if n > 1 || app.iter().flatten().filter(|n| **n > 0).count() > 1 => InFlight::Busy,
                _ => InFlight::Unknown,
            };
        }
        let downstream = downstream.map(|n| n.saturating_sub(checks));
        if any_app_busy || downstream.is_some_and(|n| n > 0 && !self.checks.is_empty()) {
            return InFlight::Busy;
        }
        match downstream {
            // Only a request that has not reached the application, or a health check that nothing tells apart.
            Some(n) if n > 0 => InFlight::Unknown,
            // An application gauge that is absent (Istio shows only used stats) is not zero, but the ingress gauge
            // of the same proxy is.
            Some(_) if self.app.is_empty() || app.iter().all(|n| n.is_none_or(|n| n == 0)) => InFlight::Idle,
            Some(_) => InFlight::Unknown,
            None if !app.is_empty() && app.iter().all(|n| *n == Some(0)) => InFlight::Idle,
            None => InFlight::Unknown,
        }
    }
}

fn was_busy(samples: &[GaugeSample], name: &str) -> bool {
    samples
        .iter()
        .any(|s| matches!(&s.reading, Reading::Values(v) if v.get(name).is_some_and(|n| *n > 0)))
}

/// The last fall to zero in a series: after the last busy sample, not after the first idle one that follows.
/// Failed polls between them widen it. `None` when it never was busy, or no zero followed.
fn settled(samples: &[(Bracket, InFlight)]) -> Option<Bracket> {
    let last_busy = samples.iter().rposition(|s| s.1 == InFlight::Busy)?;
    let first_idle = samples[last_busy + 1..].iter().find(|s| s.1 == InFlight::Idle)?;
    let (lo, hi) = (samples[last_busy].0.lo, first_idle.0.hi);
    matches!((lo, hi), (Some(lo), Some(hi)) if lo < hi).then_some(Bracket { lo, hi })
}

/// The settled zero of a server's pod.
pub fn of(timeline: &Timeline<'_>, server: &str) -> ActiveZero {
    let evidence = timeline.evidence;
    let mut zero = ActiveZero::default();
    let quiet = no_sessions_after(timeline, server);
    for pod in timeline.site.pods_of(server) {
        for series in pod.stats.iter().map(|i| &evidence.envoy_stats[*i]) {
            if !timeline.clocks.belongs(series.file) {
                continue;
            }
            let names = GaugeNames::learn(timeline, &series.samples);
            let brackets = sampling::gauge_brackets(series);
            let samples: Vec<(Bracket, InFlight)> = series
                .samples
                .iter()
                .zip(brackets)
                .map(|(s, b)| (b, names.judge(&s.reading)))
                .collect();
            if let Some(at) = settled(&samples) {
                zero.seen = true;
                // A flap between two samples is invisible: the upper end holds only when no session came later.
                let at = if quiet(at, series.file) {
                    at
                } else {
                    Bracket { lo: at.lo, hi: None }
                };
                zero.sightings.extend(timeline.clocks.sight(series.file, 0, at));
            }
        }
        if let Some(hc) = pod
            .hc
            .map(|i| &evidence.hc_logs[i])
            .filter(|h| timeline.clocks.belongs(h.file))
        {
            let polls: Vec<(Bracket, InFlight)> = message::own_polls(hc)
                .into_iter()
                .map(|(b, count)| {
                    let in_flight = match count {
                        Some(0) => InFlight::Idle,
                        Some(_) => InFlight::Busy,
                        None => InFlight::Unknown,
                    };
                    (b, in_flight)
                })
                .collect();
            if let Some(at) = settled(&polls) {
                zero.seen = true;
                let at = if quiet(at, hc.file) {
                    at
                } else {
                    Bracket { lo: at.lo, hi: None }
                };
                zero.sightings.extend(timeline.clocks.sight(hc.file, 0, at));
            }
        }
        if let Some(envoy) = pod
            .envoy
            .map(|i| &evidence.envoy_logs[i])
            .filter(|e| timeline.clocks.belongs(e.file))
        {
            access_log(timeline, server, envoy, &mut zero);
        }
    }
    zero
}

/// The first zero after the drain began, as the gauges or the workload's own polls show it.
pub fn first_after_drain(timeline: &Timeline<'_>, target: &super::Target) -> Option<Sighting> {
    let drain = target.stop.drain.first()?;
    for pod in timeline.site.pods_of(&target.server) {
        for series in pod.stats.iter().map(|i| &timeline.evidence.envoy_stats[*i]) {
            let names = GaugeNames::learn(timeline, &series.samples);
            let brackets = sampling::gauge_brackets(series);
            let mut before: Option<Bracket> = None;
            for (sample, at) in series.samples.iter().zip(brackets) {
                let Some(s) = timeline.clocks.sight(series.file, sample.place.line, at) else {
                    continue;
                };
                let after = timeline.clocks.gap(drain, &s).surely_positive();
                if after && names.judge(&sample.reading) == InFlight::Idle {
                    let lo = before.and_then(|b| b.lo);
                    return Some(Sighting {
                        at: Bracket { lo, hi: s.at.hi },
                        ..s
                    });
                }
                if names.judge(&sample.reading) == InFlight::Busy {
                    before = Some(s.at);
                }
            }
        }
    }
    None
}

/// The last end in Envoy's access log: the zero itself when every session of the server has its line there, else
/// only a lower bound. The pod must have been alive afterwards: what dies with work in it never reached zero.
fn access_log(
    timeline: &Timeline<'_>,
    server: &str,
    envoy: &crate::evidence::envoy_log::EnvoyLog,
    zero: &mut ActiveZero,
) {
    let app: Vec<_> = envoy
        .requests
        .iter()
        .filter(|r| !timeline.site.is_check(r.path.as_deref()))
        .collect();
    let Some(last) = app.iter().max_by_key(|r| (r.ended.hi, r.place.line)) else {
        return;
    };
    let alive_after = envoy
        .requests
        .iter()
        .any(|r| matches!((r.started.lo, last.ended.hi), (Some(start), Some(end)) if start >= end));
    let complete = sessions(timeline, server) == Some(app.len() as u64);
    // A zero that was read from the living pod shows the same as a later line.
    if (alive_after || zero.seen) && complete {
        zero.seen = true;
        zero.sightings
            .extend(timeline.clocks.sight(envoy.file, last.place.line, last.ended));
    } else {
        if !complete {
            zero.notes
                .push("Envoy's access log does not hold every session of the server".to_owned());
        }
        let at = Bracket {
            lo: last.ended.lo,
            hi: None,
        };
        zero.sightings
            .extend(timeline.clocks.sight(envoy.file, last.place.line, at));
    }
}

/// How many sessions the server had in the whole run: by its statistics (first to last sample, no reload), or by
/// HAProxy's lines when the log tells of it from UP to DOWN.
pub fn sessions(timeline: &Timeline<'_>, server: &str) -> Option<u64> {
    let evidence = timeline.evidence;
    if !timeline.reloads.is_empty() {
        return None;
    }
    let usable = |file| timeline.clocks.belongs(file);
    let points = server::stat_points(evidence, &timeline.site, server);
    let rows: Vec<_> = points
        .iter()
        .filter(|p| usable(p.file))
        .filter_map(|p| p.row?.stot)
        .collect();
    let counted = rows.first().zip(rows.last()).map(|(a, b)| b.saturating_sub(*a));
    let first = evidence
        .haproxy_csv
        .iter()
        .filter(|s| s.kind == StatKind::Before)
        .flat_map(|s| &s.samples)
        .flat_map(|s| &s.rows)
        .find(|r| !r.is_backend && &*r.server == server && Some(&r.proxy) == timeline.site.proxy.as_ref())
        .and_then(|r| r.stot);
    let counted = match (counted, first, rows.first()) {
        // The timeline began after some sessions: those of before the snapshot do not matter, those after it do.
        (Some(n), Some(before), Some(start)) if *start >= before => Some(n + (start - before)),
        (n, _, _) => n,
    };
    counted.or_else(|| {
        let log = timeline.haproxy_log?;
        let lines = &evidence.haproxy_logs[log].lines;
        let of_server = (0..lines.len())
            .filter_map(|i| super::request::haproxy_request(evidence, (log, i)))
            .filter(|(_, h)| h.server.as_deref() == Some(server));
        Some(of_server.count() as u64).filter(|n| *n > 0)
    })
}

/// A test whether no session came to the server after a zero: its session count did not rise any more.
fn no_sessions_after<'t>(
    timeline: &'t Timeline<'_>,
    server: &'t str,
) -> impl Fn(Bracket, crate::evidence::FileId) -> bool + 't {
    let evidence: &Evidence = timeline.evidence;
    let points = server::stat_points(evidence, &timeline.site, server);
    move |at, file| {
        let Some(zero) = timeline.clocks.sight(file, 0, Bracket { lo: at.lo, hi: at.lo }) else {
            return false;
        };
        let usable = points
            .iter()
            .filter(|p| timeline.clocks.belongs(p.file) && p.row.is_some());
        let rows: Vec<_> = usable.collect();
        if !rows.is_empty() && timeline.reloads.is_empty() {
            let last = rows.last().and_then(|p| p.row?.stot);
            let before = rows
                .iter()
                .rev()
                .find(|p| {
                    let s = timeline.clocks.sight(p.file, p.line, p.at);
                    s.is_some_and(|s| timeline.clocks.gap(&s, &zero).surely_positive())
                })
                .and_then(|p| p.row?.stot);
            return last.is_some() && last == before;
        }
        // Without statistics: HAProxy's or Envoy's lines of the server all began before. Lines that were not kept
        // would have to be known.
        if evidence.haproxy_logs.iter().any(|l| l.omitted > 0) {
            return false;
        }
        let starts: Vec<Sighting> = timeline
            .requests
            .attempts()
            .filter_map(|a| {
                let (h, (line, r)) = a
                    .haproxy
                    .and_then(|h| Some((h, super::request::haproxy_request(evidence, h)?)))?;
                (r.server.as_deref() == Some(server)).then_some(())?;
                timeline
                    .clocks
                    .sight(evidence.haproxy_logs[h.0].file, line.place.line, r.accepted)
            })
            .collect();
        !starts.is_empty() && starts.iter().all(|s| timeline.clocks.gap(s, &zero).surely_positive())
    }
}

//! The account of a load: how many requests were disrupted, which, and why.

use std::collections::BTreeMap;

use super::attempt::AttemptView;
use super::{Cause, DownInterval, LoadFinding, LostRequest, fact};
use crate::evidence::client::Outcome;
use crate::evidence::haproxy_log::{HaproxyRequest, ServerChange};
use crate::evidence::load::{Load, LoadDetail, LoadRequest};
use crate::time::{Bracket, Duration};
use crate::timeline::request::Attempt;
use crate::timeline::{Timeline, server};

/// Not answered whole, or answered by the load balancer or the pod with a failure of the server's kind.
pub fn is_disrupted(outcome: Outcome, status: Option<u16>) -> bool {
    outcome.whole() != Some(true) || status.is_some_and(|s| s >= 500)
}

/// The account of every load.
pub fn all(timeline: &Timeline<'_>) -> Vec<LoadFinding> {
    let mut hidden = hidden_losses(timeline);
    let loads = timeline.evidence.loads.iter().zip(&timeline.requests.load);
    loads
        .filter(|(load, _)| timeline.clocks.belongs(load.file))
        .map(|(load, attempts)| {
            let mut finding = match load.detail {
                LoadDetail::EveryRequest | LoadDetail::EveryRequestRetried | LoadDetail::SuccessesOnly => {
                    of_requests(timeline, load, attempts)
                }
                LoadDetail::Summary => of_summary(load),
            };
            if load.detail != LoadDetail::EveryRequest {
                finding.hidden = std::mem::take(&mut hidden);
            }
            finding.reason = what_it_cannot_show(load, finding.hidden);
            finding.down_intervals = down_intervals(timeline);
            finding
        })
        .collect()
}

fn what_it_cannot_show(load: &Load, hidden: u64) -> Option<String> {
    let found = if hidden > 0 {
        format!("; {hidden} request(s) that the load balancer or the proxy cut are in no client's record")
    } else {
        String::new()
    };
    match load.detail {
        LoadDetail::EveryRequest => None,
        LoadDetail::EveryRequestRetried => Some(format!(
            "this client sends lost requests again by itself and shows only the last result{found}"
        )),
        LoadDetail::SuccessesOnly => Some(format!(
            "the file holds successes only: what failed is not in it{found}"
        )),
        LoadDetail::Summary => Some(format!(
            "a summary: no request can be tied to a cause, and a client that repeats by itself hides losses{found}"
        )),
    }
}

fn of_requests(timeline: &Timeline<'_>, load: &Load, attempts: &[Attempt]) -> LoadFinding {
    let mut by_outcome = BTreeMap::new();
    let mut by_cause = BTreeMap::new();
    let mut lost = Vec::new();
    let mut took = Vec::new();
    for (request, attempt) in load.requests.iter().zip(attempts) {
        *by_outcome.entry(outcome_word(request.outcome)).or_default() += 1;
        took.extend(request.total.map(Duration::as_secs_f64));
        if is_disrupted(request.outcome, request.status) {
            let one = lost_request(timeline, request, attempt);
            *by_cause.entry(word(&one.cause)).or_default() += 1;
            lost.push(one);
        }
    }
    // A very long file: these were answered whole.
    if !load.omitted.is_empty() {
        *by_outcome.entry(outcome_word(Outcome::Ok)).or_default() += load.omitted.len() as u64;
        took.extend(load.omitted.iter().map(|us| f64::from(*us) / 1e6));
    }
    took.sort_by(f64::total_cmp);
    let requests = load.requests.len() as u64 + load.omitted.len() as u64;
    let disrupted = lost.len() as u64;
    LoadFinding {
        id: load.id.clone(),
        requests,
        disrupted,
        rate: rate(disrupted, requests),
        rate_interval: wilson(disrupted, requests),
        by_outcome,
        by_cause,
        lost,
        hidden: 0,
        latency_s: latencies(&took),
        down_intervals: Vec::new(),
        reason: None,
    }
}

fn lost_request(timeline: &Timeline<'_>, request: &LoadRequest, attempt: &Attempt) -> LostRequest {
    let v = AttemptView::of(timeline, attempt);
    LostRequest {
        line: request.place.line,
        started: request.started,
        ended: request.ended,
        outcome: request.outcome,
        status: request.status,
        cause: cause(timeline, request, &v),
        server: v.server.as_ref().map(ToString::to_string),
        termination: v.haproxy.map(|(_, _, h)| h.termination.to_string()),
        envoy_flags: v.envoy.map(|e| {
            if e.flags.is_empty() {
                "-".to_owned()
            } else {
                e.flags.join(",")
            }
        }),
    }
}

fn cause(timeline: &Timeline<'_>, request: &LoadRequest, v: &AttemptView<'_>) -> Cause {
    if let Some((line, _, h)) = v.haproxy {
        return cause_of_line(timeline, line, h);
    }
    match request.outcome {
        Outcome::Refused => Cause::Refused,
        Outcome::Timeout => Cause::ClientTimeout,
        Outcome::Aborted => Cause::ClientAbort,
        Outcome::Ok
        | Outcome::HttpError
        | Outcome::Truncated
        | Outcome::Reset
        | Outcome::ClosedEarly
        | Outcome::RefusedStream
        | Outcome::TlsError
        | Outcome::DnsError
        | Outcome::Unknown => Cause::Unknown,
    }
}

/// What HAProxy's own line says of the end.
fn cause_of_line(timeline: &Timeline<'_>, line: usize, h: &HaproxyRequest) -> Cause {
    let t = h.termination;
    let Some(name) = &h.server else { return Cause::NoServer };
    if t.cut_by_down() {
        return match fact::change_at(timeline, name, line) {
            Some(ServerChange::Maint) => Cause::LbMaint,
            _ => match timeline.targets.iter().find(|target| target.server == *name) {
                Some(target) => fact::cut_cause(timeline, target, Some(line)),
                None => Cause::LbDown,
            },
        };
    }
    match (t.cause(), t.phase()) {
        (b's', _) => Cause::ServerTimeout,
        (b'S', b'C') => Cause::Refused,
        (b'S', _) => Cause::PodKilled,
        (b'C', _) => Cause::ClientAbort,
        (b'c', _) => Cause::ClientTimeout,
        _ => Cause::Unknown,
    }
}

/// Attempts that the load balancer or the proxy cut and that no client's record is tied to.
fn hidden_losses(timeline: &Timeline<'_>) -> u64 {
    let cut = |a: &&Attempt| {
        let v = AttemptView::of(timeline, a);
        v.envoy_cut()
            || v.haproxy
                .is_some_and(|(_, _, h)| h.termination.cut_by_down() || h.server.is_none())
    };
    timeline.requests.others.iter().filter(cut).count() as u64
}

fn of_summary(load: &Load) -> LoadFinding {
    let stated = load.stated.clone().unwrap_or_default();
    let failed: u64 = stated.by_status.iter().filter(|(s, _)| *s >= 500).map(|(_, n)| n).sum();
    let errors: u64 = stated.errors.iter().map(|(_, n)| n).sum();
    let disrupted = failed + errors;
    let by_outcome = stated
        .by_status
        .iter()
        .map(|(s, n)| (s.to_string(), *n))
        .chain((errors > 0).then(|| ("error".to_owned(), errors)))
        .collect();
    LoadFinding {
        id: load.id.clone(),
        requests: stated.requests,
        disrupted,
        rate: rate(disrupted, stated.requests),
        rate_interval: wilson(disrupted, stated.requests),
        by_outcome,
        by_cause: BTreeMap::new(),
        lost: Vec::new(),
        hidden: 0,
        latency_s: BTreeMap::new(),
        down_intervals: Vec::new(),
        reason: None,
    }
}

fn rate(disrupted: u64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| disrupted as f64 / requests as f64)
}

/// The 95 % interval of Wilson for a share.
pub fn wilson(disrupted: u64, requests: u64) -> Option<(f64, f64)> {
    const Z: f64 = 1.959_963_984_540_054;
    let n = requests as f64;
    (requests > 0).then(|| {
        let p = disrupted as f64 / n;
        let centre = p + Z * Z / (2.0 * n);
        let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        (
            ((centre - spread) / scale).max(0.0),
            ((centre + spread) / scale).min(1.0),
        )
    })
}

fn latencies(sorted: &[f64]) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    if let Some(max) = sorted.last() {
        found.insert("max".to_owned(), *max);
        for p in [50, 90, 99] {
            found.insert(format!("p{p}"), percentile(sorted, f64::from(p)));
        }
    }
    found
}

/// The smallest value that at least `p` percent are not above. `sorted` is not empty.
pub fn percentile(sorted: &[f64], p: f64) -> f64 {
    let rank = (p / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}

/// DOWN times of every server of the proxy, by the log, else by the statistics.
pub fn down_intervals(timeline: &Timeline<'_>) -> Vec<DownInterval> {
    let mut found = Vec::new();
    for s in &timeline.site.servers {
        let changes = server::logged_changes(timeline.evidence, &timeline.site, timeline.haproxy_log, &s.name);
        let mut open: Option<Bracket> = None;
        let mut push = |from: Bracket, until: Bracket| {
            let name = format!("{}/{}", timeline.site.proxy.as_deref().unwrap_or("?"), s.name);
            found.push(DownInterval {
                server: name,
                from,
                until,
                killed: None,
            });
        };
        if changes.is_empty() {
            let points = server::stat_points(timeline.evidence, &timeline.site, &s.name);
            for (a, b) in server::pairs(&points) {
                let at = Bracket {
                    lo: a.at.lo,
                    hi: b.at.hi,
                };
                match (
                    a.row.map(|r| r.status.class.is_down()),
                    b.row.map(|r| r.status.class.is_down()),
                ) {
                    (Some(false), Some(true)) => open = Some(at),
                    (Some(true), Some(false)) => {
                        if let Some(from) = open.take() {
                            push(from, at);
                        }
                    }
                    _ => {}
                }
            }
        }
        for (_, line, change) in changes {
            match change.to {
                ServerChange::Down | ServerChange::DownByTracking => open = open.or(Some(line.at)),
                ServerChange::Up => {
                    if let Some(from) = open.take() {
                        push(from, line.at);
                    }
                }
                ServerChange::Stopping
                | ServerChange::Running
                | ServerChange::Maint
                | ServerChange::LeavingMaint
                | ServerChange::Drain
                | ServerChange::LeavingDrain => {}
            }
        }
        if let Some(from) = open {
            push(from, Bracket::OPEN);
        }
    }
    found
}

fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn outcome_word(outcome: Outcome) -> String {
    word(&outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_holds_the_share_and_never_leaves_zero_to_one() {
        let (lo, hi) = wilson(8, 496).expect("requests");
        assert!(lo < 8.0 / 496.0 && 8.0 / 496.0 < hi);
        let (lo, hi) = wilson(0, 315).expect("requests");
        assert!(
            lo == 0.0 && hi > 0.0 && hi < 0.02,
            "none of 315 is not a proof of zero: {hi}"
        );
        assert_eq!(wilson(0, 0), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(percentile(&sorted, 50.0), 2.0);
        assert_eq!(percentile(&sorted, 99.0), 4.0);
        assert_eq!(percentile(&sorted, 0.0), 1.0);
    }
}

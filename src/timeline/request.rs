//! One request across its sources: the client's record, HAProxy's line, Envoy's line.
//!
//! Matching uses ports, paths and the order of starts on each file's own clock, never a comparison between two
//! clocks: clocks are tied by what is matched here.

use std::collections::{BTreeMap, BTreeSet};

use super::site::Site;
use crate::evidence::Evidence;
use crate::evidence::envoy_log::EnvoyRequest;
use crate::evidence::haproxy_log::{HaproxyEvent, HaproxyLine, HaproxyRequest};
use crate::evidence::load::LoadRequest;
use crate::evidence::run_log::RunLogLine;
use crate::time::{Bracket, Duration};

/// HAProxy's access line: index of the log and of the line.
pub type HaproxyRef = (usize, usize);
/// Envoy's access line: index of the log and of the request.
pub type EnvoyRef = (usize, usize);
/// A load's request: index of the load and of the request.
pub type LoadRef = (usize, usize);

/// One attempt, as far as its sources were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempt {
    /// The load's record.
    pub load: Option<LoadRef>,
    /// HAProxy's line.
    pub haproxy: Option<HaproxyRef>,
    /// Envoy's line.
    pub envoy: Option<EnvoyRef>,
    /// HAProxy's and Envoy's lines are certainly of one attempt (same connection, or nothing else it could be).
    pub haproxy_envoy_sure: bool,
    /// The client's record and HAProxy's line are certainly of one attempt.
    pub client_haproxy_sure: bool,
}

/// A single request with all its attempts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Step id.
    pub id: String,
    /// Index of the client's (last) record.
    pub client: Option<usize>,
    /// Path and query.
    pub path: Option<String>,
    /// The attempts, first to last.
    pub attempts: Vec<Attempt>,
    /// No other request of the run has this path, so every line with it is of this request.
    pub path_is_unique: bool,
    /// Why the client's record was put aside.
    pub client_trouble: Option<String>,
}

/// All requests of a run, matched across their sources.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requests {
    /// Single requests.
    pub single: Vec<Request>,
    /// Loads' requests, by load and in the load's order.
    pub load: Vec<Vec<Attempt>>,
    /// Lines of HAProxy and Envoy that belong to no known client.
    pub others: Vec<Attempt>,
}

impl Requests {
    /// Every attempt.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.single
            .iter()
            .flat_map(|r| &r.attempts)
            .chain(self.load.iter().flatten())
            .chain(&self.others)
    }

    /// Matches the sources.
    pub fn trace(evidence: &Evidence, site: &Site, haproxy_log: Option<usize>) -> Self {
        let mut lines = Lines::collect(evidence, site, haproxy_log);
        lines.join_by_port();
        lines.join_by_path();
        let load = claim_loads(evidence, &mut lines);
        let single = claim_singles(evidence, site, &mut lines);
        let others = lines.rest();
        Self { single, load, others }
    }
}

/// The access line that a reference names.
pub fn haproxy_request(evidence: &Evidence, at: HaproxyRef) -> Option<(&HaproxyLine, &HaproxyRequest)> {
    let line = evidence.haproxy_logs.get(at.0)?.lines.get(at.1)?;
    match &line.what {
        HaproxyEvent::Request(r) => Some((line, r)),
        _ => None,
    }
}

/// The access line that a reference names.
pub fn envoy_request(evidence: &Evidence, at: EnvoyRef) -> Option<&EnvoyRequest> {
    evidence.envoy_logs.get(at.0)?.requests.get(at.1)
}

/// The load's record that a reference names.
pub fn load_request(evidence: &Evidence, at: LoadRef) -> Option<&LoadRequest> {
    evidence.loads.get(at.0)?.requests.get(at.1)
}

/// HAProxy's and Envoy's lines while they are being matched.
struct Lines<'a> {
    evidence: &'a Evidence,
    site: &'a Site,
    haproxy: Vec<HaproxyRef>,
    envoy: Vec<EnvoyRef>,
    partner: BTreeMap<HaproxyRef, (EnvoyRef, bool)>,
    envoy_used: BTreeSet<EnvoyRef>,
    claimed: BTreeSet<HaproxyRef>,
    envoy_claimed: BTreeSet<EnvoyRef>,
}

impl<'a> Lines<'a> {
    fn collect(evidence: &'a Evidence, site: &'a Site, haproxy_log: Option<usize>) -> Self {
        let haproxy = haproxy_log
            .map(|log| {
                let lines = evidence.haproxy_logs[log].lines.iter().enumerate();
                lines
                    .filter(|(_, l)| matches!(l.what, HaproxyEvent::Request(_)))
                    .map(|(i, _)| (log, i))
                    .collect()
            })
            .unwrap_or_default();
        let mut envoy = Vec::new();
        for (log, l) in evidence.envoy_logs.iter().enumerate() {
            for (i, r) in l.requests.iter().enumerate() {
                if !site.is_check(r.path.as_deref()) {
                    envoy.push((log, i));
                }
            }
        }
        Self {
            evidence,
            site,
            haproxy,
            envoy,
            partner: BTreeMap::new(),
            envoy_used: BTreeSet::new(),
            claimed: BTreeSet::new(),
            envoy_claimed: BTreeSet::new(),
        }
    }

    fn h(&self, at: HaproxyRef) -> Option<&'a HaproxyRequest> {
        haproxy_request(self.evidence, at).map(|(_, r)| r)
    }

    fn e(&self, at: EnvoyRef) -> Option<&'a EnvoyRequest> {
        envoy_request(self.evidence, at)
    }

    /// `bi=` names the connection: port and path are the same on both sides. A port that recurs is told apart by
    /// the order of the starts, when both sides have as many.
    fn join_by_port(&mut self) {
        let mut groups: BTreeMap<(u16, &str), (Vec<HaproxyRef>, Vec<EnvoyRef>)> = BTreeMap::new();
        for at in &self.haproxy {
            if let Some(r) = self.h(*at)
                && let (Some(source), Some(path), Some(_)) = (r.backend_source, r.path.as_deref(), &r.server)
            {
                groups.entry((source.port(), path)).or_default().0.push(*at);
            }
        }
        for at in &self.envoy {
            if let Some(r) = self.e(*at)
                && let (Some(peer), Some(path)) = (r.downstream, r.path.as_deref())
            {
                groups.entry((peer.port(), path)).or_default().1.push(*at);
            }
        }
        for (hs, es) in groups.into_values() {
            self.join_in_order(hs, es);
        }
    }

    /// Without the connection: the same path on the same server, as many lines on both sides, in order.
    fn join_by_path(&mut self) {
        let mut groups: BTreeMap<(&str, String), (Vec<HaproxyRef>, Vec<EnvoyRef>)> = BTreeMap::new();
        for at in &self.haproxy {
            if let Some(r) = self.h(*at)
                && let (Some(path), Some(server), false) = (r.path.as_deref(), &r.server, self.partner.contains_key(at))
                && r.backend_source.is_none()
            {
                groups.entry((path, server.to_string())).or_default().0.push(*at);
            }
        }
        for at in &self.envoy {
            let server = self
                .site
                .pods
                .iter()
                .find(|p| p.envoy == Some(at.0))
                .and_then(|p| p.server.clone());
            if let (Some(path), Some(server), false) = (
                self.e(*at).and_then(|r| r.path.as_deref()),
                server,
                self.envoy_used.contains(at),
            ) {
                groups.entry((path, server.to_string())).or_default().1.push(*at);
            }
        }
        for (hs, es) in groups.into_values() {
            self.join_in_order(hs, es);
        }
    }

    fn join_in_order(&mut self, mut hs: Vec<HaproxyRef>, mut es: Vec<EnvoyRef>) {
        if hs.is_empty() || hs.len() != es.len() {
            return;
        }
        hs.sort_by_key(|at| (self.h(*at).and_then(|r| r.accepted.lo), *at));
        es.sort_by_key(|at| (self.e(*at).and_then(|r| r.started.lo), *at));
        let apart = well_apart(hs.iter().map(|at| self.h(*at).map(|r| r.accepted).unwrap_or_default()))
            && well_apart(es.iter().map(|at| self.e(*at).map(|r| r.started).unwrap_or_default()));
        for (h, e) in hs.into_iter().zip(es) {
            self.partner.insert(h, (e, apart));
            self.envoy_used.insert(e);
        }
    }

    fn attempt(&self, h: HaproxyRef) -> Attempt {
        let partner = self.partner.get(&h);
        Attempt {
            haproxy: Some(h),
            envoy: partner.map(|p| p.0),
            haproxy_envoy_sure: partner.is_some_and(|p| p.1),
            ..Attempt::default()
        }
    }

    fn claim(&mut self, h: HaproxyRef) -> Attempt {
        self.claimed.insert(h);
        let attempt = self.attempt(h);
        self.envoy_claimed.extend(attempt.envoy);
        attempt
    }

    /// Lines of HAProxy that nobody has claimed.
    fn free(&self) -> impl Iterator<Item = (HaproxyRef, &'a HaproxyRequest)> + '_ {
        self.haproxy
            .iter()
            .filter(|h| !self.claimed.contains(h))
            .filter_map(|h| Some((*h, self.h(*h)?)))
    }

    /// Lines of Envoy without a line of HAProxy.
    fn free_envoy(&self) -> impl Iterator<Item = (EnvoyRef, &'a EnvoyRequest)> + '_ {
        self.envoy
            .iter()
            .filter(|e| !self.envoy_claimed.contains(e) && !self.envoy_used.contains(e))
            .filter_map(|e| Some((*e, self.e(*e)?)))
    }

    fn rest(mut self) -> Vec<Attempt> {
        let free: Vec<HaproxyRef> = self.free().map(|(h, _)| h).collect();
        let mut rest: Vec<Attempt> = free.into_iter().map(|h| self.claim(h)).collect();
        let alone: Vec<EnvoyRef> = self.free_envoy().map(|(e, _)| e).collect();
        rest.extend(alone.into_iter().map(|e| Attempt {
            envoy: Some(e),
            ..Attempt::default()
        }));
        rest
    }
}

/// Two starts closer than this may be told in another order by another source.
const CLOSE: Duration = Duration::from_millis(100);

/// Sorted starts are all further apart than what could change their order between two sources.
fn well_apart(starts: impl Iterator<Item = Bracket>) -> bool {
    let starts: Vec<Bracket> = starts.collect();
    starts
        .windows(2)
        .all(|w| matches!((w[0].hi, w[1].lo), (Some(a), Some(b)) if b - a > CLOSE))
}

/// A load's records and HAProxy's lines share the client's port; where it recurs, the order decides.
fn claim_loads(evidence: &Evidence, lines: &mut Lines<'_>) -> Vec<Vec<Attempt>> {
    let singles: BTreeSet<u16> = evidence.clients.iter().filter_map(|c| c.local_port).collect();
    let mut result: Vec<Vec<Attempt>> = Vec::new();
    let mut by_port: BTreeMap<u16, Vec<HaproxyRef>> = BTreeMap::new();
    for (h, r) in lines.free() {
        if let Some(port) = r.client.map(|c| c.port()) {
            by_port.entry(port).or_default().push(h);
        }
    }
    let mut records: BTreeMap<u16, Vec<LoadRef>> = BTreeMap::new();
    for (l, load) in evidence.loads.iter().enumerate() {
        let mut attempts = Vec::with_capacity(load.requests.len());
        for (i, r) in load.requests.iter().enumerate() {
            attempts.push(Attempt {
                load: Some((l, i)),
                ..Attempt::default()
            });
            if let Some(port) = r.local_port {
                records.entry(port).or_default().push((l, i));
            }
        }
        result.push(attempts);
    }
    for (port, mut refs) in records {
        let Some(mut hs) = by_port.remove(&port) else { continue };
        if refs.len() != hs.len() || singles.contains(&port) {
            continue;
        }
        refs.sort_by_key(|at| (load_request(evidence, *at).and_then(|r| r.started.lo), *at));
        hs.sort_by_key(|h| (lines.h(*h).and_then(|r| r.accepted.lo), *h));
        let apart = well_apart(
            refs.iter()
                .map(|at| load_request(evidence, *at).map(|r| r.started).unwrap_or_default()),
        );
        for (at, h) in refs.into_iter().zip(hs) {
            let attempt = lines.claim(h);
            result[at.0][at.1] = Attempt {
                load: Some(at),
                client_haproxy_sure: apart,
                ..attempt
            };
        }
    }
    result
}

fn claim_singles(evidence: &Evidence, site: &Site, lines: &mut Lines<'_>) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    let index = |requests: &mut Vec<Request>, id: &str| match requests.iter().position(|r| r.id == id) {
        Some(i) => i,
        None => {
            requests.push(Request {
                id: id.to_owned(),
                ..Request::default()
            });
            requests.len() - 1
        }
    };
    for entry in evidence.run_log.iter().flat_map(|l| &l.entries) {
        match &entry.what {
            RunLogLine::RequestStarted { id, path } => {
                let i = index(&mut requests, id);
                requests[i].path = path.clone();
            }
            RunLogLine::Summary { id, .. }
                if evidence.loads.is_empty() || evidence.clients.iter().any(|c| c.id == *id) =>
            {
                index(&mut requests, id);
            }
            _ => {}
        }
    }
    for (c, client) in evidence.clients.iter().enumerate() {
        let i = index(&mut requests, &client.id);
        requests[i].client = Some(c);
        if client.path.is_some() {
            requests[i].path = client.path.clone();
        }
    }
    let paths: Vec<Option<String>> = requests.iter().map(|r| r.path.clone()).collect();
    for request in &mut requests {
        request.path_is_unique = request.path.is_some() && paths.iter().filter(|p| **p == request.path).count() == 1;
        claim_by_port(evidence, lines, request);
    }
    for request in &mut requests {
        claim_by_path(evidence, site, lines, request);
    }
    requests
}

/// The client's own port names its (last) connection.
fn claim_by_port(evidence: &Evidence, lines: &mut Lines<'_>, request: &mut Request) {
    let Some(client) = request.client.map(|c| &evidence.clients[c]) else {
        return;
    };
    let Some(port) = client.local_port else { return };
    let same_path = |r: &HaproxyRequest| match (&request.path, &r.path) {
        (Some(a), Some(b)) => **a == **b,
        _ => true,
    };
    let hits: Vec<HaproxyRef> = lines
        .free()
        .filter(|(_, r)| r.client.is_some_and(|c| c.port() == port) && same_path(r))
        .map(|(h, _)| h)
        .collect();
    // Kept connections carry several requests on one port; then the path must tell them apart.
    if let [h] = hits[..] {
        let attempt = lines.claim(h);
        request.attempts.push(Attempt {
            client_haproxy_sure: true,
            ..attempt
        });
    }
}

/// A path that only this request has names all its attempts, those that were re-sent included.
fn claim_by_path(evidence: &Evidence, site: &Site, lines: &mut Lines<'_>, request: &mut Request) {
    let Some(path) = request.path.clone().filter(|_| request.path_is_unique) else {
        return;
    };
    let had_port = request.client.and_then(|c| evidence.clients[c].local_port).is_some();
    let claimed = !request.attempts.is_empty();
    let hits: Vec<HaproxyRef> = lines
        .free()
        .filter(|(_, r)| r.path.as_deref() == Some(path.as_str()))
        .map(|(h, _)| h)
        .collect();
    let several = request
        .client
        .and_then(|c| evidence.clients[c].connects)
        .is_some_and(|n| n > 1);
    if had_port && !claimed && !hits.is_empty() && !several {
        request.client_trouble = Some(format!(
            "HAProxy's log has requests for {path}, but none from the client's port: they are not of one run"
        ));
    }
    if several || !had_port || request.client_trouble.is_some() {
        for h in hits {
            let attempt = lines.claim(h);
            request.attempts.push(attempt);
        }
    }
    let alone: Vec<EnvoyRef> = lines
        .free_envoy()
        .filter(|(_, r)| r.path.as_deref() == Some(path.as_str()))
        .map(|(e, _)| e)
        .collect();
    for e in alone {
        lines.envoy_claimed.insert(e);
        // A redispatched request has one line of HAProxy and one of Envoy on each pod that it was on.
        let server = site
            .pods
            .iter()
            .find(|p| p.envoy == Some(e.0))
            .and_then(|p| p.server.clone());
        let home = request.attempts.iter_mut().find(|a| {
            a.envoy.is_none()
                && a.haproxy
                    .and_then(|h| lines.h(h))
                    .is_some_and(|h| h.server.is_some() && h.server == server)
        });
        match home {
            Some(a) => a.envoy = Some(e),
            None => request.attempts.push(Attempt {
                envoy: Some(e),
                ..Attempt::default()
            }),
        }
    }
    let start = |a: &Attempt| {
        let h = a.haproxy.and_then(|h| lines.h(h)).and_then(|r| r.accepted.lo);
        let e = a.envoy.and_then(|e| lines.e(e)).and_then(|r| r.started.lo);
        e.or(h)
    };
    request.attempts.sort_by_key(start);
}

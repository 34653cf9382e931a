//! Messages that tie clocks: what was sent on one clock was received later on another.
//!
//! Each kind has its own slack, by which the written order of its two stamps may be wrong. Figures are from
//! recorded runs of HAProxy 2.6 to 3.4 and Envoy 1.40; a message that might be another one ties nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::clocks::{Clocks, Sighting};
use super::request::{Requests, envoy_request, haproxy_request, load_request};
use super::sampling;
use super::site::{Site, SitePod};
use crate::evidence::client::Outcome as ClientOutcome;
use crate::evidence::envoy_log::EnvoyRequest;
use crate::evidence::envoy_stats::Reading;
use crate::evidence::haproxy_csv::StatKind;
use crate::evidence::haproxy_log::{HaproxyEvent, HaproxyLine, HaproxyLog, HealthCheck, ServerChange};
use crate::evidence::hc_log::HcEvent;
use crate::evidence::run_log::RunLogLine;
use crate::evidence::{Evidence, FileId};
use crate::time::{Bracket, Duration, Instant};

/// Stamps are written by threads that were scheduled a little after what they stamp.
const SCHEDULING: Duration = Duration::from_millis(2);
/// HAProxy writes a request's line after the client has got the last byte: up to 5 ms were seen on busy machines.
const LINE_AFTER_RESPONSE: Duration = Duration::from_millis(10);
/// HAProxy sends the FIN of a kill up to 4 ms before it logs DOWN; Envoy's line of it is cut to milliseconds.
const KILL: Duration = Duration::from_millis(10);
/// Copies of one packet on two hosts: median 5 us, worst 2.7 ms on busy machines.
const PACKET: Duration = Duration::from_millis(3);

/// Envoy's gauge moves with the request, its lines are cut to milliseconds; the workload's poll takes a few.
const GAUGE: Duration = Duration::from_millis(10);

/// What kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// The client sent before HAProxy accepted.
    ClientToHaproxy,
    /// HAProxy was done before the client was.
    HaproxyToClient,
    /// HAProxy connected before Envoy began.
    HaproxyToEnvoy,
    /// Envoy was done before HAProxy was.
    EnvoyToHaproxy,
    /// HAProxy cut and Envoy noticed.
    Kill,
    /// A health check seen by both ends.
    HealthCheck,
    /// The health page's flip lies between the last good and the first bad answer.
    HealthFlip,
    /// A packet in two captures.
    Packet,
    /// A connection's packets around its request.
    Connection,
    /// A log line and its arrival.
    Arrival,
    /// A gauge that is busy only while requests run.
    BusyGauge,
    /// A server's statistics change with a request or a state in HAProxy's log.
    Statistics,
    /// The client and the proxies, matched by a path that no other request has.
    ClientByPath,
    /// What an order to the pod caused.
    Cause,
    /// A measured exchange.
    Exchange,
}

impl MessageKind {
    /// Ports or the run's own record name both sides: the two files are of one run. The others rest on order and
    /// shape, which another run's file may have too.
    pub fn is_sure(self) -> bool {
        match self {
            Self::ClientToHaproxy
            | Self::HaproxyToClient
            | Self::HaproxyToEnvoy
            | Self::EnvoyToHaproxy
            | Self::Kill
            | Self::Packet
            | Self::Arrival
            | Self::Exchange => true,
            // A port alone recurs between runs.
            Self::Connection
            | Self::ClientByPath
            | Self::HealthCheck
            | Self::HealthFlip
            | Self::BusyGauge
            | Self::Statistics
            | Self::Cause => false,
        }
    }
}

/// One message: `earlier` came before `later`, or at most `slack` after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// Sent.
    pub earlier: Sighting,
    /// Received.
    pub later: Sighting,
    /// By how much the stamps may be in the wrong order.
    pub slack: Duration,
    /// What it is.
    pub kind: MessageKind,
}

/// Collects messages; moments that are not known, or on one clock, make none.
struct Collector {
    found: Vec<Message>,
}

impl Collector {
    fn before(&mut self, kind: MessageKind, earlier: Option<Sighting>, later: Option<Sighting>, slack: Duration) {
        if let (Some(earlier), Some(later)) = (earlier, later)
            && earlier.clock != later.clock
        {
            self.found.push(Message {
                earlier,
                later,
                slack,
                kind,
            });
        }
    }
}

/// All messages of a run.
pub fn all(evidence: &Evidence, site: &Site, requests: &Requests, log: Option<usize>, clocks: &Clocks) -> Vec<Message> {
    let mut c = Collector { found: Vec::new() };
    exchanges(evidence, clocks, &mut c);
    haproxy_and_envoy(evidence, requests, clocks, &mut c);
    clients(evidence, requests, clocks, &mut c);
    health_checks(evidence, site, log, clocks, &mut c);
    health_flips(evidence, site, clocks, &mut c);
    captures(evidence, site, requests, clocks, &mut c);
    arrivals(evidence, clocks, &mut c);
    gauges(evidence, site, clocks, &mut c);
    statistics(evidence, site, requests, log, clocks, &mut c);
    causes(evidence, site, clocks, &mut c);
    c.found
}

fn exchanges(evidence: &Evidence, clocks: &Clocks, c: &mut Collector) {
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

/// HAProxy connects, Envoy starts; Envoy ends, HAProxy ends. A kill goes the other way round.
fn haproxy_and_envoy(evidence: &Evidence, requests: &Requests, clocks: &Clocks, c: &mut Collector) {
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

/// The client sends before HAProxy accepts, HAProxy is done before the client is.
fn clients(evidence: &Evidence, requests: &Requests, clocks: &Clocks, c: &mut Collector) {
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
fn kinds_of_client<'a>(
    evidence: &'a Evidence,
    request: &'a super::request::Request,
) -> (
    impl Fn(&Sighting, &super::request::Attempt) -> MessageKind + 'a,
    impl Fn(&Sighting, &super::request::Attempt) -> MessageKind + 'a,
) {
    let client = request.client.map(|i| &evidence.clients[i]);
    let same_client = client.is_some_and(|c| {
        evidence.run_log.iter().flat_map(|l| &l.entries).any(|e| {
            matches!(&e.what, RunLogLine::Summary { id, total: Some(total), .. }
                if *id == request.id && Some(*total) == c.total)
        })
    });
    let sure = move |s: &Sighting, a: &super::request::Attempt| {
        let own = client.is_some_and(|c| c.place.file == s.file);
        a.client_haproxy_sure && (own || same_client)
    };
    let there = move |s: &Sighting, a: &super::request::Attempt| {
        if sure(s, a) {
            MessageKind::ClientToHaproxy
        } else {
            MessageKind::ClientByPath
        }
    };
    let back = move |s: &Sighting, a: &super::request::Attempt| {
        if sure(s, a) {
            MessageKind::HaproxyToClient
        } else {
            MessageKind::ClientByPath
        }
    };
    (there, back)
}

/// The client's own record says that it was answered, or that the other side ended it.
fn waited_for_the_end(evidence: &Evidence, request: &super::request::Request) -> bool {
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
    request: &super::request::Request,
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

/// Checks that were answered with another status than before: HAProxy logs each while the server is UP, Envoy has a
/// line of each. The first with a status on one side is the first with it on the other, and so on while both go on
/// with the same status.
fn health_checks(evidence: &Evidence, site: &Site, log: Option<usize>, clocks: &Clocks, c: &mut Collector) {
    let Some(log) = log.map(|i| &evidence.haproxy_logs[i]) else {
        return;
    };
    for server in &site.servers {
        let pods: Vec<&SitePod> = site.pods_of(&server.name).filter(|p| p.envoy.is_some()).collect();
        let [pod] = pods[..] else { continue };
        let Some(envoy) = pod.envoy.map(|i| &evidence.envoy_logs[i]) else {
            continue;
        };
        let mut checks: Vec<&EnvoyRequest> = envoy
            .requests
            .iter()
            .filter(|r| site.is_check(r.path.as_deref()))
            .filter(|r| r.downstream.is_some_and(|d| site.lb_addresses.contains(&d.ip())))
            .collect();
        checks.sort_by_key(|r| (r.started.lo, r.place.line));
        let peers: BTreeSet<_> = checks.iter().filter_map(|r| r.downstream.map(|d| d.ip())).collect();
        if peers.len() != 1 {
            continue;
        }
        let answered = logged_checks(site, log, &server.name);
        let mut codes: Vec<u16> = answered.iter().filter_map(|(_, h)| h.code).collect();
        codes.dedup();
        for code in codes {
            // A status that comes twice could be another time of it.
            let of_code = |r: &&EnvoyRequest| r.status == Some(code);
            let Some(first) = checks.iter().position(of_code).filter(|i| *i > 0) else {
                continue;
            };
            let run = checks[first..].iter().take_while(|r| of_code(r)).count();
            if checks[first + run..].iter().any(|r| of_code(&r)) {
                continue;
            }
            let logged: Vec<_> = answered.iter().filter(|(_, h)| h.code == Some(code)).collect();
            // The first must be the change itself: health one below full, or the conditional success.
            let is_change = logged.first().is_some_and(|(_, h)| {
                h.ok || h
                    .status
                    .as_ref()
                    .is_some_and(|(n, of, word)| &**word == "UP" && *n == of - 1)
            });
            if !is_change {
                continue;
            }
            let exact = if logged[0].1.ok { 1 } else { logged.len() };
            for ((line, h), check) in logged.iter().take(exact).zip(&checks[first..first + run]) {
                let ended = clocks.sight(log.file, line.place.line, line.at);
                let took = h.duration.unwrap_or(Duration::ZERO) + Duration::from_millis(1);
                let begun = h.duration.and_then(|_| {
                    clocks.sight(
                        log.file,
                        line.place.line,
                        Bracket {
                            lo: line.at.lo.map(|t| t - took),
                            hi: line.at.hi,
                        },
                    )
                });
                let e = |at| clocks.sight(envoy.file, check.place.line, at);
                c.before(MessageKind::HealthCheck, begun, e(check.started), SCHEDULING);
                c.before(MessageKind::HealthCheck, e(check.ended), ended, SCHEDULING);
            }
        }
    }
}

/// A server's logged checks that were answered with another status than 200, from when its health was last full up
/// to its DOWN.
fn logged_checks<'e>(site: &Site, log: &'e HaproxyLog, server: &str) -> Vec<(&'e HaproxyLine, &'e HealthCheck)> {
    let mut answered = Vec::new();
    let mut down = false;
    for line in &log.lines {
        match &line.what {
            HaproxyEvent::HealthCheck(h) if &*h.server == server && Some(&h.backend) == site.proxy.as_ref() => {
                if h.ok && h.code.is_none_or(|code| code < 400) {
                    answered.clear();
                    down = false;
                } else if !down && h.answered() && !h.agent {
                    answered.push((line, h));
                }
            }
            HaproxyEvent::ServerState(s) if &*s.server == server && Some(&s.backend) == site.proxy.as_ref() => {
                match s.to {
                    ServerChange::Down => down = true,
                    ServerChange::Up => {
                        answered.clear();
                        down = false;
                    }
                    ServerChange::DownByTracking
                    | ServerChange::Stopping
                    | ServerChange::Running
                    | ServerChange::Maint
                    | ServerChange::LeavingMaint
                    | ServerChange::Drain
                    | ServerChange::LeavingDrain => {}
                }
            }
            HaproxyEvent::HealthCheck(_)
            | HaproxyEvent::ServerState(_)
            | HaproxyEvent::Request(_)
            | HaproxyEvent::ProxyStopped(_)
            | HaproxyEvent::ProxyStarted(_)
            | HaproxyEvent::NoServer(_) => {}
        }
    }
    answered
}

/// The page answered 200 after the request for it began, and with a failure before that answer ended.
fn health_flips(evidence: &Evidence, site: &Site, clocks: &Clocks, c: &mut Collector) {
    for pod in &site.pods {
        let (Some(envoy), Some(hc)) = (pod.envoy, pod.hc) else {
            continue;
        };
        let (envoy, hc) = (&evidence.envoy_logs[envoy], &evidence.hc_logs[hc]);
        let mut checks: Vec<_> = envoy
            .requests
            .iter()
            .filter(|r| site.is_check(r.path.as_deref()))
            .collect();
        checks.sort_by_key(|r| (r.started.lo, r.place.line));
        for line in &hc.lines {
            let HcEvent::Health { from: Some(from), to } = line.what else {
                continue;
            };
            // Once each way, else it could be another flip.
            let same = hc
                .lines
                .iter()
                .filter(|l| matches!(l.what, HcEvent::Health { to: t, .. } if t == to))
                .count();
            let first_new = checks.iter().position(|r| r.status == Some(to)).filter(|_| same == 1);
            let Some(first_new) = first_new else { continue };
            let flipped = clocks.sight(hc.file, line.place.line, line.at);
            let e = |r: &EnvoyRequest, at| clocks.sight(envoy.file, r.place.line, at);
            let new = checks[first_new];
            c.before(MessageKind::HealthFlip, flipped, e(new, new.ended), SCHEDULING);
            if let Some(old) = checks[..first_new].iter().rev().find(|r| r.status == Some(from)) {
                c.before(MessageKind::HealthFlip, e(old, old.started), flipped, SCHEDULING);
            }
        }
    }
}

/// A packet in two captures; a connection's SYN before the request on it, and its end after the response.
fn captures(evidence: &Evidence, site: &Site, requests: &Requests, clocks: &Clocks, c: &mut Collector) {
    type Key = (std::net::SocketAddr, std::net::SocketAddr, u32, u32, bool, bool, bool);
    let mut seen: BTreeMap<Key, Vec<(usize, usize)>> = BTreeMap::new();
    for (i, capture) in evidence.captures.iter().enumerate() {
        for (j, p) in capture.packets.iter().enumerate() {
            seen.entry((p.from, p.to, p.seq, p.ack, p.flags.syn, p.flags.fin, p.flags.rst))
                .or_default()
                .push((i, j));
        }
    }
    for places in seen.values() {
        // Seen once a capture; retransmissions would be ambiguous.
        let mut hosts: Vec<usize> = places.iter().map(|p| p.0).collect();
        hosts.dedup();
        if hosts.len() != places.len() {
            continue;
        }
        for (k, a) in places.iter().enumerate() {
            for b in &places[k + 1..] {
                let sight = |at: &(usize, usize)| {
                    let p = &evidence.captures[at.0].packets[at.1];
                    (
                        clocks.sight(evidence.captures[at.0].file, p.place.line, p.at),
                        p.outgoing,
                    )
                };
                let ((x, x_out), (y, y_out)) = (sight(a), sight(b));
                // The sender's copy is earlier; the other way round holds within what a network takes, which is
                // bounded only by what was seen.
                let (first, second) = if y_out == Some(true) && x_out != Some(true) {
                    (y, x)
                } else {
                    (x, y)
                };
                c.before(MessageKind::Packet, first, second, PACKET);
            }
        }
    }
    // Connections from the load balancer by its port: first SYN and first FIN or RST.
    for capture in &evidence.captures {
        let mut opened: BTreeMap<u16, Vec<&crate::evidence::capture::Packet>> = BTreeMap::new();
        let mut closed: BTreeMap<u16, &crate::evidence::capture::Packet> = BTreeMap::new();
        for p in &capture.packets {
            let from_lb = site.lb_addresses.contains(&p.from.ip());
            let port = if from_lb { p.from.port() } else { p.to.port() };
            if p.flags.syn && !p.flags.ack && from_lb {
                opened.entry(port).or_default().push(p);
            } else if p.flags.fin || p.flags.rst {
                closed.entry(port).or_insert(p);
            }
        }
        let once = |port: u16| opened.get(&port).filter(|o| o.len() == 1).map(|o| o[0]);
        let sight = |p: &crate::evidence::capture::Packet| clocks.sight(capture.file, p.place.line, p.at);
        for log in &evidence.envoy_logs {
            let mut by_port: BTreeMap<u16, Vec<&crate::evidence::envoy_log::EnvoyRequest>> = BTreeMap::new();
            for r in &log.requests {
                if let Some(peer) = r.downstream.filter(|d| site.lb_addresses.contains(&d.ip())) {
                    by_port.entry(peer.port()).or_default().push(r);
                }
            }
            for (port, rs) in by_port {
                let Some(syn) = once(port) else { continue };
                let (Some(first), Some(last)) = (
                    rs.iter().min_by_key(|r| r.started.lo),
                    rs.iter().max_by_key(|r| r.ended.hi),
                ) else {
                    continue;
                };
                c.before(
                    MessageKind::Connection,
                    sight(syn),
                    clocks.sight(log.file, first.place.line, first.started),
                    SCHEDULING,
                );
                if let Some(end) = closed.get(&port).filter(|_| rs.iter().all(|r| r.flags.is_empty())) {
                    // A server that closes sends its FIN right after the response's last byte.
                    c.before(
                        MessageKind::Connection,
                        clocks.sight(log.file, last.place.line, last.ended),
                        sight(end),
                        SCHEDULING,
                    );
                }
            }
        }
        for attempt in requests.attempts() {
            let Some((at, (line, h))) = attempt
                .haproxy
                .and_then(|at| Some((at, haproxy_request(evidence, at)?)))
            else {
                continue;
            };
            let Some(port) = h.backend_source.map(|s| s.port()) else {
                continue;
            };
            let file = evidence.haproxy_logs[at.0].file;
            let connect = h.time_connect.filter(|_| h.retries == 0);
            let (Some(syn), Some(connect)) = (once(port), connect) else {
                continue;
            };
            // The SYN left between the end of the queue and the end of the connect, both cut to milliseconds. A
            // reused connection (connect 0 and an older SYN) would contradict, so only the upper side is used.
            let waited = [h.time_request, h.time_queue]
                .into_iter()
                .flatten()
                .fold(connect, |a, b| a + b);
            let connected = h.accepted.shifted(waited).hi.map(|t| t + Duration::from_millis(3));
            let connected = Bracket {
                lo: h.accepted.lo,
                hi: connected,
            };
            c.before(
                MessageKind::Connection,
                sight(syn),
                clocks.sight(file, line.place.line, connected),
                SCHEDULING,
            );
            if let Some(end) = closed.get(&port).filter(|_| h.termination.is_normal()) {
                // Kept connections are purged long after, closed ones not before the response was there.
                let response = h.time_response.map(|r| h.accepted.shifted(waited + r));
                if let Some(response) = response {
                    c.before(
                        MessageKind::Connection,
                        clocks.sight(file, line.place.line, response),
                        sight(end),
                        SCHEDULING,
                    );
                }
            }
        }
    }
}

/// A line is written before it arrives; the runtime stamps it in between.
fn arrivals(evidence: &Evidence, clocks: &Clocks, c: &mut Collector) {
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

/// A sample of a gauge: when it was read, and how many requests it counted.
pub type Count = (Bracket, Option<u64>);

/// The application's gauge counts what Envoy's own lines say is running: a count that they reach only once ties the
/// sample to that time. A log that lacks a line (a killed proxy loses them) counts less than the gauge did, and ties
/// nothing.
fn gauges(evidence: &Evidence, site: &Site, clocks: &Clocks, c: &mut Collector) {
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
fn around_the_only_request(app: &[&EnvoyRequest], samples: &[Count]) -> [Option<Bracket>; 2] {
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
struct Level {
    count: u64,
    from: Bracket,
    until: Bracket,
}

/// How many of the requests ran at a time, step by step; `None` when a line has no end.
fn levels(requests: &[&EnvoyRequest]) -> Option<Vec<Level>> {
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

/// Statistics of a server change with what HAProxy's log tells of it, or with Envoy's lines where there is none.
fn statistics(
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
fn server_starts(
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

/// What an order to the pod caused: the drain after the delete, the end of the pod after its SIGTERM.
fn causes(evidence: &Evidence, site: &Site, clocks: &Clocks, c: &mut Collector) {
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

fn whole_quarters(
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

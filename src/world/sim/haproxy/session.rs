//! Sessions: one request of a client on its way to a server, its retries, and every way in which it can end.

mod ending;

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::super::client::RequestId;
use super::super::model::{Event as ModelEvent, Model};
use super::super::network::{ConnId, FIRST_WORKER, HostId, LB, Side};
use super::super::pod::exchange::{self, Exchange, ExchangeId, Kind};
use super::super::pod::{self, PodId};
use super::super::truth::{AttemptEnd, TruthAttempt};
use super::{Event, SessionId};
use crate::time::{Duration, Instant};

/// One request at the load balancer.
#[derive(Debug)]
pub(in crate::world::sim) struct Session {
    pub(in crate::world::sim) process: usize,
    pub(in crate::world::sim) request: RequestId,
    pub(in crate::world::sim) client: (Ipv4Addr, u16),
    pub(in crate::world::sim) method: Arc<str>,
    pub(in crate::world::sim) path: Arc<str>,
    /// The request was there.
    pub(in crate::world::sim) accepted: Instant,
    pub(in crate::world::sim) server: Option<usize>,
    /// Which attempt, from 1; a late event of an earlier attempt is ignored.
    pub(in crate::world::sim) attempt: u32,
    pub(in crate::world::sim) conn: Option<ConnId>,
    exchange: Option<ExchangeId>,
    /// This attempt was begun.
    pub(in crate::world::sim) assigned: Instant,
    pub(in crate::world::sim) connected: Option<Instant>,
    pub(in crate::world::sim) head: Option<Instant>,
    pub(in crate::world::sim) retries: u32,
    pub(in crate::world::sim) redispatched: bool,
    /// The client's first request on its connection.
    pub(in crate::world::sim) first: bool,
    /// This attempt goes over a kept server connection.
    reused: bool,
    pub(in crate::world::sim) client_gone: bool,
    /// Its server went down while its response was on the way to the client: whole all the same, `D---`.
    pub(in crate::world::sim) marked: bool,
    /// Its connection to the server was closed by a cut; whatever still arrives from there is dropped.
    cut: bool,
    pub(in crate::world::sim) over: bool,
}

/// How a session ends, for the log and the counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    /// As logged.
    pub(super) status: u16,
    pub(super) bytes: u64,
    /// `DH`.
    pub(super) state: &'static str,
    /// A response from the server was counted whole.
    pub(super) whole: bool,
    /// No line is written.
    pub(super) silent: bool,
}

const HEAD_BYTES: u64 = 150;

impl Model {
    /// Where a pod is behind a worker's hostPort, its own address.
    pub(super) fn behind(&self, pod: Option<PodId>) -> Option<Ipv4Addr> {
        pod.filter(|_| self.spec.network.host_port).map(|p| self.pods[p.0].ip)
    }

    /// A client's request is at the load balancer.
    pub(in crate::world::sim) fn new_session(
        &mut self,
        request: RequestId,
        client: (Ipv4Addr, u16),
        first: bool,
    ) -> SessionId {
        let r = &self.requests[request.0];
        let (method, path) = (r.method.clone(), r.path.clone());
        self.lb.sessions.push(Session {
            process: self.lb.processes.len() - 1,
            request,
            client,
            method,
            path,
            accepted: self.now,
            server: None,
            attempt: 0,
            conn: None,
            exchange: None,
            assigned: self.now,
            connected: None,
            head: None,
            retries: 0,
            redispatched: false,
            first,
            reused: false,
            client_gone: false,
            marked: false,
            cut: false,
            over: false,
        });
        SessionId(self.lb.sessions.len() - 1)
    }

    pub(super) fn session_begins(&mut self, id: SessionId) {
        let now = self.now;
        let s = &mut self.lb.sessions[id.0];
        s.accepted = now;
        s.process = self.lb.processes.len() - 1;
        let p = &mut self.lb.processes[s.process];
        p.frontend.begin(now);
        p.frontend.req_tot += 1;
        self.session_assigned(id, None);
    }

    /// Gives the session to a server: the round robin's next, or none but 503.
    fn session_assigned(&mut self, id: SessionId, not: Option<usize>) {
        let process = self.lb.sessions[id.0].process;
        let p = &self.lb.processes[process];
        let count = p.servers.len();
        let order = (0..count).map(|i| (p.cursor + i) % count);
        let usable = |s: &usize| p.servers[*s].usable() && (Some(*s) != not || p.usable() == 1);
        let Some(server) = order.into_iter().find(usable) else {
            return self.session_without_server(id);
        };
        let now = self.now;
        let p = &mut self.lb.processes[process];
        p.cursor = (server + 1) % count;
        p.servers[server].counters.begin(now);
        if self.lb.sessions[id.0].attempt == 0 {
            p.backend.begin(now);
        }
        self.session_connects(id, server);
    }

    fn session_connects(&mut self, id: SessionId, server: usize) {
        let process = self.lb.sessions[id.0].process;
        let s = &mut self.lb.processes[process].servers[server];
        let (node, name) = (s.node, s.name.clone());
        // A client's first request never goes over a kept server connection (`http-reuse safe`).
        let kept = if self.lb.sessions[id.0].first {
            None
        } else {
            s.idle.pop()
        };
        let pod = self.listening_on(node);
        let session = &mut self.lb.sessions[id.0];
        session.attempt += 1;
        session.server = Some(server);
        session.assigned = self.now;
        session.connected = None;
        session.reused = kept.is_some();
        let attempt = session.attempt;
        let request = session.request;
        let alive = kept.filter(|(c, _)| !self.net.closed_by(*c, Side::Acceptor));
        let c = &mut self.lb.processes[process].servers[server].counters;
        let (conn, pod, wait) = match alive {
            Some((conn, _)) => {
                c.reuse += 1;
                // The pod that this very connection leads to; it may drain already.
                (conn, self.pod_of(conn), Duration::from_micros(5))
            }
            None => {
                c.connect += 1;
                self.lb.processes[process].backend.connect += 1;
                let behind = self.behind(pod);
                let conn = self
                    .net
                    .connect(LB, HostId(FIRST_WORKER + node), 8080, behind, &mut self.dice);
                let syn = self.now + self.dice.spread(20, 60, 300);
                self.net.syn(syn, conn, pod.is_some(), &mut self.dice);
                let round = self.net.one_way + self.net.one_way;
                (conn, pod, (syn - self.now) + round + self.dice.spread(30, 80, 300))
            }
        };
        self.lb.sessions[id.0].conn = pod.map(|_| conn);
        let attempts = &mut self.requests[request.0].attempts;
        attempts.push(TruthAttempt {
            server: name,
            pod: pod.map(|p| self.pods[p.0].name.clone()),
            uid: pod.map(|p| self.pods[p.0].uid.clone()),
            lb_port: Some(self.net.conns[conn.0].opener.port),
            from: None,
            until: None,
            end: AttemptEnd::Open,
        });
        let Some(pod) = pod else {
            return self.after(wait, ModelEvent::Haproxy(Event::Refused { session: id, attempt }));
        };
        let r = &self.requests[request.0];
        let exchange = ExchangeId(self.exchanges.len());
        self.exchanges.push(Exchange {
            kind: Kind::Session { session: id, attempt },
            pod,
            conn,
            method: r.method.clone(),
            path: r.path.clone(),
            request_bytes: 75 + r.path.len() as u64 + r.body_bytes,
            drained_at: r.read_rate,
            arrived: None,
            downstream: false,
            upstream: false,
            head: false,
            head_at: None,
            status: 0,
            body: 0,
            body_sent: 0,
            over: false,
        });
        self.lb.sessions[id.0].exchange = Some(exchange);
        self.conn_pods.insert(conn, pod);
        self.after(wait, ModelEvent::Haproxy(Event::Connected { session: id, attempt }));
    }

    fn pod_of(&self, conn: ConnId) -> Option<PodId> {
        self.conn_pods
            .get(&conn)
            .copied()
            .filter(|p| self.pods[p.0].runs(pod::Role::Sidecar))
    }

    /// The session is on this attempt still.
    fn current(&self, id: SessionId, attempt: u32) -> bool {
        let s = &self.lb.sessions[id.0];
        !s.over && !s.cut && s.attempt == attempt
    }

    pub(super) fn session_connected(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) {
            return;
        }
        self.lb.sessions[id.0].connected = Some(self.now);
        let Some(exchange) = self.lb.sessions[id.0].exchange else {
            return;
        };
        let there = self.net.one_way + self.dice.spread(15, 40, 150);
        self.after(
            there,
            ModelEvent::Pod(pod::Event::Exchange(exchange, exchange::Event::Arrive)),
        );
        let limit = self.spec.load_balancer.timeout_server + self.dice.micros(0, 1_000);
        self.after(
            limit,
            ModelEvent::Haproxy(Event::ServerTimeout { session: id, attempt }),
        );
    }

    pub(super) fn session_refused(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) {
            return;
        }
        self.end_attempt(id, AttemptEnd::Refused);
        let s = &self.lb.sessions[id.0];
        let (process, retries) = (s.process, s.retries);
        let Some(server) = s.server else { return };
        if retries >= self.spec.load_balancer.retries {
            let p = &mut self.lb.processes[process];
            p.servers[server].counters.econ += 1;
            p.backend.econ += 1;
            return self.session_ends(
                id,
                Ending {
                    status: 503,
                    bytes: 217,
                    state: "SC",
                    whole: false,
                    silent: false,
                },
            );
        }
        self.lb.sessions[id.0].retries += 1;
        let p = &mut self.lb.processes[process];
        p.servers[server].counters.wretr += 1;
        p.backend.wretr += 1;
        // HAProxy waits a second before it tries the same server again.
        let wait = Duration::from_secs(1) + self.dice.micros(200, 1_500);
        self.after(wait, ModelEvent::Haproxy(Event::Retry { session: id, attempt }));
    }

    pub(super) fn session_retries(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) {
            return;
        }
        let s = &self.lb.sessions[id.0];
        let Some(server) = s.server else { return };
        let down = !self.lb.processes[s.process].servers[server].up;
        let last = s.retries >= self.spec.load_balancer.retries;
        if self.spec.load_balancer.redispatch && (down || last) {
            self.session_redispatched(id, server);
        } else {
            self.session_connects(id, server);
        }
    }

    fn session_redispatched(&mut self, id: SessionId, from: usize) {
        let s = &mut self.lb.sessions[id.0];
        s.redispatched = true;
        s.server = None;
        s.conn = None;
        let p = &mut self.lb.processes[s.process];
        p.servers[from].counters.wredis += 1;
        p.servers[from].counters.end();
        p.backend.wredis += 1;
        self.session_assigned(id, Some(from));
    }

    fn session_without_server(&mut self, id: SessionId) {
        let s = &mut self.lb.sessions[id.0];
        s.server = None;
        s.conn = None;
        s.assigned = self.now;
        self.session_ends(
            id,
            Ending {
                status: 503,
                bytes: 217,
                state: "SC",
                whole: false,
                silent: false,
            },
        );
    }

    pub(super) fn session_head(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) {
            return;
        }
        self.lb.sessions[id.0].head = Some(self.now);
        let request = self.lb.sessions[id.0].request;
        let wait = self.net.one_way + self.dice.micros(20, 80);
        self.after(wait, ModelEvent::Client(super::super::client::Event::Head(request)));
    }

    /// The server's response is whole at the load balancer.
    pub(super) fn session_answered(&mut self, id: SessionId, attempt: u32, exchange: ExchangeId) {
        if !self.current(id, attempt) {
            return;
        }
        self.end_attempt(id, AttemptEnd::Whole);
        let now = self.now;
        let s = &mut self.lb.sessions[id.0];
        s.head = s.head.or(Some(now));
        let process = s.process;
        let (Some(conn), Some(server)) = (s.conn, s.server) else {
            return;
        };
        let pod = self.exchanges[exchange.0].pod;
        if self.pods[pod.0].envoy.draining {
            // The response said `connection: close`.
            let at = now + self.dice.micros(10, 60);
            self.net.fin(at, conn, Side::Acceptor, &mut self.dice);
            let back = at + self.dice.micros(20, 90);
            self.net.fin(back, conn, Side::Opener, &mut self.dice);
        } else if !self.net.closed_by(conn, Side::Acceptor) {
            self.lb.processes[process].servers[server].idle.push((conn, now));
            let after = self.spec.load_balancer.purge_after + self.dice.micros(100, 5_000);
            self.after(
                after,
                ModelEvent::Haproxy(Event::Purge {
                    process,
                    server,
                    conn,
                    since: now,
                }),
            );
        }
        // A slow reader holds the session until its kernel has taken the rest.
        let e = &self.exchanges[exchange.0];
        let wait = match e.drained_at {
            Some(rate) if e.body_sent > 500_000 => {
                Duration::from_secs_f64(1_000_000.0_f64.min(e.body_sent as f64 - 500_000.0) / rate)
            }
            _ => self.dice.spread(10, 40, 200),
        };
        self.lb.sessions[id.0].conn = None;
        self.after(wait, ModelEvent::Haproxy(Event::Forwarded { session: id, attempt }));
    }

    pub(super) fn session_forwarded(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) {
            return;
        }
        let s = &self.lb.sessions[id.0];
        let Some(exchange) = s.exchange else { return };
        let e = &self.exchanges[exchange.0];
        let (status, bytes) = (e.status, HEAD_BYTES + e.body_sent);
        let state = match (s.client_gone, s.marked) {
            (true, _) => "CD",
            (false, true) => "D-",
            (false, false) => "--",
        };
        self.session_ends(
            id,
            Ending {
                status,
                bytes,
                state,
                whole: true,
                silent: false,
            },
        );
    }
}

//! One request and its response between the load balancer and a pod: through Envoy to the application or to the
//! health page, and back.

use std::sync::Arc;

use super::super::haproxy;
use super::super::model::{Event as ModelEvent, Model};
use super::super::network::{ConnId, Side};
use super::{PodId, Role};
use crate::time::{Duration, Instant};

/// An exchange; an index that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::world::sim) struct ExchangeId(pub(in crate::world::sim) usize);

/// Path of the health page.
pub(in crate::world::sim) const HEALTH_PAGE: &str = "/health_check.html";

/// Whose exchange it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world::sim) enum Kind {
    /// A session's, by an attempt of it.
    Session {
        /// Session.
        session: haproxy::SessionId,
        /// Attempt, from 1.
        attempt: u32,
    },
    /// A health check's.
    Check(haproxy::CheckId),
}

impl Kind {
    /// It belongs to a session.
    pub(in crate::world::sim) fn is_session(self) -> bool {
        match self {
            Self::Session { .. } => true,
            Self::Check(_) => false,
        }
    }
}

/// One exchange.
#[derive(Debug)]
pub(in crate::world::sim) struct Exchange {
    pub(in crate::world::sim) kind: Kind,
    pub(in crate::world::sim) pod: PodId,
    pub(in crate::world::sim) conn: ConnId,
    pub(in crate::world::sim) method: Arc<str>,
    pub(in crate::world::sim) path: Arc<str>,
    /// Bytes of the client's request body and head, as the load balancer sends them.
    pub(in crate::world::sim) request_bytes: u64,
    /// How slowly the client takes the body, bytes a second; without: at once.
    pub(in crate::world::sim) drained_at: Option<f64>,
    /// It reached Envoy.
    pub(in crate::world::sim) arrived: Option<Instant>,
    /// Counted at the ingress listener.
    pub(in crate::world::sim) downstream: bool,
    /// Counted at its cluster.
    pub(in crate::world::sim) upstream: bool,
    /// The response has begun.
    pub(in crate::world::sim) head: bool,
    /// When the response began at Envoy.
    pub(in crate::world::sim) head_at: Option<Instant>,
    pub(in crate::world::sim) status: u16,
    /// Bytes of the whole body; for a response without a known end as far as it goes.
    pub(in crate::world::sim) body: u64,
    /// Bytes of the body that Envoy has sent.
    pub(in crate::world::sim) body_sent: u64,
    pub(in crate::world::sim) over: bool,
}

impl Exchange {
    /// It goes to the application, not to the health page.
    pub(in crate::world::sim) fn to_app(&self) -> bool {
        !self.path.starts_with(HEALTH_PAGE)
    }
}

/// Stages of an exchange.
#[derive(Debug, Clone, Copy)]
pub(in crate::world::sim) enum Event {
    /// The request is at Envoy.
    Arrive,
    /// Envoy hands it to its cluster.
    Forward,
    /// The response begins, its end is later.
    Head,
    /// The application or the health page has answered whole.
    Answered,
    /// Envoy has sent the end of the response.
    Finish,
    /// The load balancer's FIN or RST is there.
    PeerClosed,
    /// The cluster's side is let go after the peer has closed.
    PeerClosedUpstream,
}

impl Model {
    pub(super) fn exchange_event(&mut self, id: ExchangeId, event: Event) {
        if self.exchanges[id.0].over && !matches!(event, Event::PeerClosedUpstream) {
            return;
        }
        match event {
            Event::Arrive => self.exchange_arrives(id),
            Event::Forward => self.exchange_forwarded(id),
            Event::Head => self.exchange_head(id),
            Event::Answered => self.exchange_answered(id),
            Event::Finish => self.exchange_finished(id),
            Event::PeerClosed => self.exchange_peer_closed(id),
            Event::PeerClosedUpstream => self.uncount_upstream(id),
        }
    }

    pub(super) fn exchange_soon(&mut self, id: ExchangeId, after: Duration, event: Event) {
        self.after(after, ModelEvent::Pod(super::Event::Exchange(id, event)));
    }

    fn exchange_arrives(&mut self, id: ExchangeId) {
        let e = &self.exchanges[id.0];
        let (pod, conn, bytes) = (e.pod, e.conn, e.request_bytes);
        self.net.data(conn, Side::Opener, bytes);
        if !self.pods[pod.0].runs(Role::Sidecar) {
            self.exchange_dies(id, true);
            return;
        }
        self.exchanges[id.0].arrived = Some(self.now);
        self.count_downstream(id);
        let routing = self.dice.spread(40, 130, 600);
        self.exchange_soon(id, routing, Event::Forward);
    }

    fn exchange_forwarded(&mut self, id: ExchangeId) {
        let e = &self.exchanges[id.0];
        let (pod, to_app) = (e.pod, e.to_app());
        let role = if to_app { Role::App } else { Role::Hc };
        if !self.pods[pod.0].runs(role) {
            self.exchange_fails(
                id,
                "UF",
                "upstream_reset_before_response_started{remote_connection_failure}",
            );
            return;
        }
        self.count_upstream(id);
        if to_app {
            self.app_serves(id);
        } else {
            let delay = self.spec.pod.health_delay + self.dice.spread(50, 200, 900);
            self.exchange_soon(id, delay, Event::Answered);
        }
    }

    fn exchange_head(&mut self, id: ExchangeId) {
        let e = &mut self.exchanges[id.0];
        e.head = true;
        e.head_at = Some(self.now);
        let Kind::Session { session, attempt } = e.kind else {
            return;
        };
        let conn = e.conn;
        self.net.data(conn, Side::Acceptor, 160);
        let wait = self.net.one_way + self.dice.micros(10, 40);
        self.after(
            wait,
            ModelEvent::Haproxy(haproxy::Event::ResponseHead { session, attempt }),
        );
    }

    fn exchange_answered(&mut self, id: ExchangeId) {
        let e = &self.exchanges[id.0];
        let pod = e.pod;
        if e.to_app() {
            self.pods[pod.0].working.retain(|w| *w != id);
            self.app_answered(id);
        } else {
            let p = &self.pods[pod.0];
            let status = if p.readiness_broken { 503 } else { p.fsm.health };
            let e = &mut self.exchanges[id.0];
            e.status = status;
            e.body = if status == 200 { 9 } else { 8 };
        }
        self.uncount_upstream(id);
        let encode = self.dice.micros(10, 80);
        self.exchange_soon(id, encode, Event::Finish);
    }

    fn exchange_finished(&mut self, id: ExchangeId) {
        let e = &mut self.exchanges[id.0];
        let (kind, conn, began) = (e.kind, e.conn, e.head);
        e.head = true;
        e.head_at = e.head_at.or(Some(self.now));
        e.body_sent = e.body;
        let body = e.body;
        self.net
            .data(conn, Side::Acceptor, if began { body } else { 150 + body });
        self.uncount_downstream(id);
        self.exchanges[id.0].over = true;
        self.log_access(id, "-", "via_upstream");
        let wait = self.net.one_way + self.dice.micros(5, 30);
        match kind {
            Kind::Session { session, attempt } => {
                self.after(
                    wait,
                    ModelEvent::Haproxy(haproxy::Event::ResponseEnd {
                        session,
                        attempt,
                        exchange: id,
                    }),
                );
            }
            Kind::Check(check) => {
                let status = self.exchanges[id.0].status;
                // The check asked for `connection: close`: Envoy closes first, the answer is on its way already.
                let fin = self.now + self.dice.micros(10, 60);
                self.net.fin(fin, conn, Side::Acceptor, &mut self.dice);
                let end = haproxy::Event::CheckDone {
                    check,
                    result: haproxy::CheckResult::Status(status),
                };
                self.after(wait, ModelEvent::Haproxy(end));
            }
        }
    }

    /// The load balancer has closed this exchange's connection before the response was whole.
    fn exchange_peer_closed(&mut self, id: ExchangeId) {
        let e = &self.exchanges[id.0];
        let (pod, conn) = (e.pod, e.conn);
        if e.arrived.is_none() {
            self.exchanges[id.0].over = true;
            return;
        }
        self.exchange_body_so_far(id);
        self.pods[pod.0].working.retain(|w| *w != id);
        self.uncount_downstream(id);
        self.exchanges[id.0].over = true;
        self.log_access(id, "DC", "downstream_remote_disconnect");
        let later = self.dice.spread(15, 60, 400);
        self.exchange_soon(id, later, Event::PeerClosedUpstream);
        let fin = self.now + self.dice.micros(20, 110);
        self.net.fin(fin, conn, Side::Acceptor, &mut self.dice);
    }

    /// Envoy answers in the application's place: 503, or the end of what had begun.
    pub(super) fn exchange_fails(&mut self, id: ExchangeId, flags: &str, details: &str) {
        if self.exchanges[id.0].over {
            return;
        }
        self.exchange_body_so_far(id);
        let e = &mut self.exchanges[id.0];
        let (kind, conn, pod, began) = (e.kind, e.conn, e.pod, e.head);
        e.over = true;
        if !began {
            e.status = 503;
            e.head = true;
            e.body = 95;
            e.body_sent = 95;
        }
        self.pods[pod.0].working.retain(|w| *w != id);
        self.uncount_upstream(id);
        self.uncount_downstream(id);
        self.log_access(id, flags, details);
        let wait = self.net.one_way + self.dice.micros(10, 40);
        if began {
            self.net.fin(self.now, conn, Side::Acceptor, &mut self.dice);
            self.pod_closed(kind, wait);
            return;
        }
        self.net.data(conn, Side::Acceptor, 245);
        match kind {
            Kind::Session { session, attempt } => {
                self.after(
                    wait,
                    ModelEvent::Haproxy(haproxy::Event::ResponseEnd {
                        session,
                        attempt,
                        exchange: id,
                    }),
                );
            }
            Kind::Check(check) => {
                let end = haproxy::Event::CheckDone {
                    check,
                    result: haproxy::CheckResult::Status(503),
                };
                self.after(wait, ModelEvent::Haproxy(end));
            }
        }
    }

    /// Envoy's process is gone: the connection is closed by its kernel. Nothing fell to zero: the gauge died.
    pub(super) fn exchange_dies(&mut self, id: ExchangeId, killed: bool) {
        if self.exchanges[id.0].over {
            return;
        }
        self.exchange_body_so_far(id);
        let e = &mut self.exchanges[id.0];
        (e.over, e.downstream, e.upstream) = (true, false, false);
        let (kind, conn, pod) = (e.kind, e.conn, e.pod);
        self.pods[pod.0].working.retain(|w| *w != id);
        if !killed {
            let details = "downstream_local_disconnect(purging_socket_that_have_not_progressed_to_connections)";
            self.log_access(id, "DC", details);
        }
        if self.exchanges[id.0].arrived.is_some() {
            self.net.fin(self.now, conn, Side::Acceptor, &mut self.dice);
        } else {
            self.net.rst(self.now, conn, Side::Acceptor, &mut self.dice);
        }
        let wait = self.net.one_way + self.dice.micros(10, 40);
        self.pod_closed(kind, wait);
    }

    /// The load balancer learns that the pod's side has closed.
    fn pod_closed(&mut self, kind: Kind, wait: Duration) {
        let event = match kind {
            Kind::Session { session, attempt } => haproxy::Event::ServerClosed { session, attempt },
            Kind::Check(check) => haproxy::Event::CheckDone {
                check,
                result: haproxy::CheckResult::Reset,
            },
        };
        self.after(wait, ModelEvent::Haproxy(event));
    }

    /// What has gone out of a body that is cut now.
    pub(in crate::world::sim) fn exchange_body_so_far(&mut self, id: ExchangeId) {
        let now = self.now;
        let e = &mut self.exchanges[id.0];
        let Some(since) = e.head_at.filter(|_| e.head) else {
            return;
        };
        let seconds = (now - since).as_secs_f64();
        // Buffers on the way hold about 1.5 MB beyond what the client has taken; a stream sends 64 bytes a second.
        let sent = match e.drained_at {
            Some(rate) => 1_500_000.0 + rate * seconds,
            None => 64.0 * seconds.floor(),
        };
        e.body_sent = if e.body == 0 {
            sent as u64
        } else {
            e.body.min(sent as u64)
        };
    }
}

//! Envoy: gauges with their traps, the access log, graceful drain, and its end.

use std::fmt::Write;

use super::super::clocks::{stamp, write_stamp};
use super::super::model::{Event as ModelEvent, Model};
use super::super::network::{FIRST_WORKER, HostId};
use super::super::truth::Happened;
use super::exchange::{Exchange, ExchangeId, Kind};
use super::{PodId, Role};
use crate::time::{Duration, Instant};

/// One pod's Envoy.
#[derive(Debug, Default)]
pub(in crate::world::sim) struct Envoy {
    /// Its ingress listener accepts connections.
    pub(in crate::world::sim) listening: bool,
    /// It drains gracefully: responses carry `connection: close`.
    pub(in crate::world::sim) draining: bool,
    /// `downstream_rq_active` of the ingress listener: requests of sessions and of health checks.
    pub(in crate::world::sim) downstream: u32,
    /// `upstream_rq_active` of the application's cluster.
    pub(in crate::world::sim) upstream: u32,
    /// `upstream_rq_active` of the health page's cluster.
    pub(in crate::world::sim) checks: u32,
    downstream_total: u64,
    upstream_total: u64,
    checks_total: u64,
    admin_total: u64,
    /// Exchanges that are going on, in order of arrival.
    pub(in crate::world::sim) open: Vec<ExchangeId>,
    /// Access lines that were not written yet.
    unwritten: Vec<String>,
}

/// Envoy's own affairs.
#[derive(Debug)]
pub(in crate::world::sim) enum Event {
    /// It is told to drain its listeners.
    Drain {
        /// Gracefully: the listener closes after the drain time.
        graceful: bool,
    },
    /// The drain time is over.
    CloseListener,
    /// Access lines are written.
    Flush,
}

/// Which of the stats a filter keeps, found once for a sampler.
#[derive(Debug, Clone)]
pub(in crate::world::sim) struct StatFilter(Vec<bool>);

/// The stats that the model knows, in the order in which Envoy answers.
const STATS: [&str; 15] = [
    "cluster.inbound|8000||.upstream_rq_active",
    "cluster.inbound|8000||.upstream_rq_active_overflow",
    "cluster.inbound|8000||.upstream_rq_total",
    "cluster.inbound|8001||.upstream_rq_active",
    "cluster.inbound|8001||.upstream_rq_active_overflow",
    "cluster.inbound|8001||.upstream_rq_total",
    "cluster.xds-grpc.upstream_rq_active",
    "cluster.xds-grpc.upstream_rq_active_overflow",
    "cluster.xds-grpc.upstream_rq_total",
    "http.admin.downstream_rq_active",
    "http.admin.downstream_rq_total",
    "http.agent.downstream_rq_active",
    "http.agent.downstream_rq_total",
    "http.inbound_0.0.0.0_8080.downstream_rq_active",
    "http.inbound_0.0.0.0_8080.downstream_rq_total",
];

impl StatFilter {
    /// Envoy's filter is an unanchored regular expression; one that does not compile matches nothing.
    pub(in crate::world::sim) fn new(filter: &str, xds_stream: bool) -> Self {
        let pattern = regex::Regex::new(filter).ok();
        let keeps = |name: &&str| {
            pattern.as_ref().is_some_and(|p| p.is_match(name)) && (xds_stream || !name.starts_with("cluster.xds-grpc"))
        };
        Self(STATS.iter().map(keeps).collect())
    }
}

impl Envoy {
    /// The admin's answer to a request for stats; asking counts itself.
    pub(in crate::world::sim) fn stats(&mut self, filter: &StatFilter, uptime: Duration) -> String {
        self.admin_total += 1;
        let agent_total = uptime.as_nanos() / 2_000_000_000;
        let mut out = String::with_capacity(700);
        for (name, kept) in STATS.iter().zip(&filter.0) {
            if !kept {
                continue;
            }
            let value = match *name {
                "cluster.inbound|8000||.upstream_rq_active" => u64::from(self.upstream),
                "cluster.inbound|8000||.upstream_rq_total" => self.upstream_total,
                "cluster.inbound|8001||.upstream_rq_active" => u64::from(self.checks),
                "cluster.inbound|8001||.upstream_rq_total" => self.checks_total,
                "cluster.xds-grpc.upstream_rq_active" | "cluster.xds-grpc.upstream_rq_total" => 1,
                "http.admin.downstream_rq_active" => 1,
                "http.admin.downstream_rq_total" => self.admin_total,
                "http.agent.downstream_rq_total" => agent_total.max(0).unsigned_abs(),
                "http.inbound_0.0.0.0_8080.downstream_rq_active" => u64::from(self.downstream),
                "http.inbound_0.0.0.0_8080.downstream_rq_total" => self.downstream_total,
                // Overflow counters and the agent's gauge.
                _ => 0,
            };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name}: {value}");
        }
        out
    }

    /// Requests of sessions at the ingress listener: health checks not counted.
    pub(in crate::world::sim) fn sessions(&self, exchanges: &[Exchange]) -> u32 {
        let counts = |id: &&ExchangeId| {
            let e = &exchanges[id.0];
            e.downstream && e.kind.is_session()
        };
        self.open.iter().filter(counts).count() as u32
    }
}

impl Model {
    pub(super) fn envoy_event(&mut self, pod: PodId, event: Event) {
        match event {
            Event::Drain { graceful } => self.envoy_drain(pod, graceful),
            Event::CloseListener => self.envoy_close_listener(pod),
            Event::Flush => self.envoy_flush(pod),
        }
    }

    fn envoy_drain(&mut self, pod: PodId, graceful: bool) {
        if !self.pods[pod.0].runs(Role::Sidecar) {
            return;
        }
        let name = self.pods[pod.0].name.clone();
        self.truth.note(self.now, Happened::DrainListeners { pod: name });
        if graceful {
            self.pods[pod.0].envoy.draining = true;
            let drain_time = self.spec.pod.drain_time;
            self.after(
                drain_time,
                ModelEvent::Pod(super::Event::Envoy(pod, Event::CloseListener)),
            );
        } else {
            self.envoy_close_listener(pod);
        }
    }

    fn envoy_close_listener(&mut self, pod: PodId) {
        let p = &mut self.pods[pod.0];
        if std::mem::take(&mut p.envoy.listening) {
            let name = p.name.clone();
            self.truth.note(self.now, Happened::ListenerClosed { pod: name });
        }
    }

    /// A gauge of a pod's Envoy goes up or down: the truth notes what is in flight of sessions.
    pub(super) fn note_active(&mut self, pod: PodId) {
        let p = &self.pods[pod.0];
        let what = Happened::Active {
            pod: p.name.clone(),
            downstream: p.envoy.sessions(&self.exchanges),
            upstream: p.envoy.upstream,
        };
        self.truth.note(self.now, what);
    }

    /// Counts an exchange in at the ingress listener.
    pub(super) fn count_downstream(&mut self, id: ExchangeId) {
        let pod = self.exchanges[id.0].pod;
        self.exchanges[id.0].downstream = true;
        let envoy = &mut self.pods[pod.0].envoy;
        envoy.downstream += 1;
        envoy.downstream_total += 1;
        envoy.open.push(id);
        if self.exchanges[id.0].kind.is_session() {
            self.note_active(pod);
        }
    }

    /// Counts an exchange in at its cluster.
    pub(super) fn count_upstream(&mut self, id: ExchangeId) {
        let (pod, to_app) = (self.exchanges[id.0].pod, self.exchanges[id.0].to_app());
        self.exchanges[id.0].upstream = true;
        let envoy = &mut self.pods[pod.0].envoy;
        if to_app {
            envoy.upstream += 1;
            envoy.upstream_total += 1;
            self.note_active(pod);
        } else {
            envoy.checks += 1;
            envoy.checks_total += 1;
        }
    }

    /// Counts an exchange out at its cluster.
    pub(super) fn uncount_upstream(&mut self, id: ExchangeId) {
        let (pod, to_app) = (self.exchanges[id.0].pod, self.exchanges[id.0].to_app());
        if !std::mem::take(&mut self.exchanges[id.0].upstream) {
            return;
        }
        let envoy = &mut self.pods[pod.0].envoy;
        if to_app {
            envoy.upstream -= 1;
            self.note_active(pod);
        } else {
            envoy.checks -= 1;
        }
    }

    /// Counts an exchange out at the ingress listener.
    pub(super) fn uncount_downstream(&mut self, id: ExchangeId) {
        let pod = self.exchanges[id.0].pod;
        if !std::mem::take(&mut self.exchanges[id.0].downstream) {
            return;
        }
        let envoy = &mut self.pods[pod.0].envoy;
        envoy.downstream -= 1;
        envoy.open.retain(|o| *o != id);
        if self.exchanges[id.0].kind.is_session() {
            self.note_active(pod);
        }
    }

    /// The access line of an exchange that ends now; it is written at the next flush.
    pub(super) fn log_access(&mut self, id: ExchangeId, flags: &str, details: &str) {
        let e = &self.exchanges[id.0];
        let pod = e.pod;
        let p = &self.pods[pod.0];
        let node = p.node.unwrap_or(0);
        let host = HostId(FIRST_WORKER + node);
        let started = e.arrived.unwrap_or(self.now);
        // Start and duration are both cut to milliseconds; the duration runs on the monotonic clock.
        let duration = (self.now - started).as_nanos() / 1_000_000;
        let conn = &self.net.conns[e.conn.0];
        // Behind a hostPort Envoy sees its own node's address with the load balancer's port.
        let (down, local) = if self.spec.network.host_port {
            (self.net.hosts[host.0].ip, p.ip)
        } else {
            (conn.opener.ip, conn.acceptor.ip)
        };
        let status = match e.kind {
            Kind::Session { .. } | Kind::Check { .. } if e.head => e.status,
            Kind::Session { .. } | Kind::Check { .. } => 0,
        };
        let port = if e.to_app() { 8000 } else { 8001 };
        let mut line = String::with_capacity(220);
        line.push('[');
        write_stamp(&mut line, self.net.hosts[host.0].clock.read(started), 3, "Z");
        let _ = write!(
            line,
            "] \"{} {} HTTP/1.1\" {status} {flags} {details} 0 {} {duration} down={down}:{} local={local}:8080 \
             up=127.0.0.1:{port} cluster=inbound|{port}||",
            e.method, e.path, e.body_sent, conn.opener.port
        );
        let envoy = &mut self.pods[pod.0].envoy;
        envoy.unwritten.push(line);
        if envoy.unwritten.len() == 1 {
            let wait = self
                .dice
                .between(Duration::from_micros(200), self.spec.pod.access_log_flush);
            self.after(wait, ModelEvent::Pod(super::Event::Envoy(pod, Event::Flush)));
        }
    }

    fn envoy_flush(&mut self, pod: PodId) {
        if !self.pods[pod.0].runs(Role::Sidecar) {
            return;
        }
        for line in std::mem::take(&mut self.pods[pod.0].envoy.unwritten) {
            self.write_line(pod, Role::Sidecar, line);
        }
    }

    /// Envoy's process ends: by SIGTERM with its last words, by SIGKILL without any. Its connections are closed.
    pub(super) fn envoy_exits(&mut self, pod: PodId, killed: bool) {
        let open = self.pods[pod.0].envoy.open.clone();
        for id in open {
            self.exchange_dies(id, killed);
        }
        self.pods[pod.0].envoy.listening = false;
        if killed {
            self.pods[pod.0].envoy.unwritten.clear();
        } else {
            let said = [
                ("info", "server.cc:1167", "shutting down server instance"),
                ("info", "server.cc:1107", "main dispatch loop exited"),
                ("info", "server.cc:1159", "exiting"),
            ];
            for (level, place, text) in said {
                self.envoy_says(pod, level, place, text);
            }
            for line in std::mem::take(&mut self.pods[pod.0].envoy.unwritten) {
                self.write_line(pod, Role::Sidecar, line);
            }
        }
        self.lb_loses_idle(pod);
    }

    /// One of Envoy's own lines.
    pub(super) fn envoy_says(&mut self, pod: PodId, level: &str, place: &str, text: &str) {
        let node = self.pods[pod.0].node.unwrap_or(0);
        let shown = self.net.read_clock(HostId(FIRST_WORKER + node), self.now);
        let line = format!(
            "{}\t{level}\tenvoy main source/server/{place}\t{text}",
            stamp(shown, 6, "Z")
        );
        self.write_line(pod, Role::Sidecar, line);
    }

    /// How long a pod's Envoy has run.
    pub(in crate::world::sim) fn envoy_uptime(&self, pod: PodId, at: Instant) -> Duration {
        self.pods[pod.0]
            .container(Role::Sidecar)
            .started
            .map_or(Duration::ZERO, |since| at - since)
    }
}

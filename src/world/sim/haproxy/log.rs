//! HAProxy's log: the lines of its three formats, and who follows them.

use std::fmt::Write;

use tokio::sync::mpsc::UnboundedSender;

use super::super::clocks::{write_haproxy_date, write_rfc3164, write_stamp};
use super::super::model::{Event as ModelEvent, Model};
use super::super::network::LB;
use super::super::pod::log::Delivery;
use super::super::spec::LogStamps;
use super::session::Ending;
use super::state::Mark;
use super::{LastCheck, SessionId};
use crate::time::{Duration, Instant};
use crate::world::port::LogItem;

/// Somebody who follows the log.
#[derive(Debug)]
pub(in crate::world::sim) struct LogFollower {
    pub(in crate::world::sim) to: UnboundedSender<LogItem>,
    pub(in crate::world::sim) last_arrival: Instant,
}

/// Severity for the formats of syslog: `local0.alert`, `local0.notice`, `local0.info`.
#[derive(Clone, Copy)]
enum Level {
    Alert = 129,
    Notice = 133,
    Info = 134,
}

impl Model {
    /// A line about servers, in the name of a process.
    pub(super) fn log_line(&mut self, process: usize, text: &str) {
        self.log_at(process, Level::Alert, text);
    }

    fn log_at(&mut self, process: usize, level: Level, text: &str) {
        let shown = self.net.read_clock(LB, self.now);
        let pid = self.lb.processes[process].pid;
        let mut line = String::with_capacity(text.len() + 48);
        match self.spec.load_balancer.log {
            LogStamps::Iso => {
                write_stamp(&mut line, shown, 6, "+00:00 ");
            }
            LogStamps::Rfc5424 => {
                // Writing to a String cannot fail.
                let _ = write!(line, "<{}>1 ", level as u8);
                write_stamp(&mut line, shown, 6, "+00:00");
                let _ = write!(line, " - haproxy {pid} - - ");
            }
            LogStamps::Rfc3164 { zone } => {
                write_rfc3164(&mut line, shown + zone);
                let _ = write!(line, " {} haproxy[{pid}]: ", self.spec.names.lb);
            }
        }
        line.push_str(text);
        let mut deliveries = Vec::new();
        for follower in &mut self.lb.followers {
            let arrival =
                (self.now + self.dice.spread(400, 1_500, 20_000)).max(follower.last_arrival + Duration::from_micros(5));
            follower.last_arrival = arrival;
            let item = LogItem::Line {
                arrival,
                runtime: None,
                text: line.clone().into_bytes(),
            };
            deliveries.push((arrival, Delivery::new(follower.to.clone(), item)));
        }
        for (arrival, delivery) in deliveries {
            self.schedule(arrival, ModelEvent::Log(delivery));
        }
    }

    /// `Health check for server ...`.
    pub(super) fn log_check(
        &mut self,
        process: usize,
        server: usize,
        last: LastCheck,
        passed: bool,
        conditional: bool,
        health: u32,
    ) {
        if !self.spec.load_balancer.log_health_checks {
            return;
        }
        let lb = &self.spec.load_balancer;
        let name = &self.lb.processes[process].servers[server].name;
        let result = match (passed, conditional) {
            (true, true) => "conditionally succeeded",
            (true, false) => "succeeded",
            (false, _) => "failed",
        };
        let mut text = format!(
            "Health check for server {}/{name} {result}, reason: {}",
            self.spec.names.backend, last.text
        );
        if let Some(code) = last.code {
            let _ = write!(text, ", code: {code}");
        }
        if !last.info.is_empty() {
            let _ = write!(text, ", info: \"{}\"", last.info);
        }
        let (have, of, word) = if health >= lb.rise {
            (health - lb.rise + 1, lb.fall, "UP")
        } else {
            (health, lb.rise, "DOWN")
        };
        let _ = write!(text, ", check duration: {}ms, status: {have}/{of} {word}.", last.took);
        self.log_at(process, Level::Notice, &text);
    }

    /// `Server b/s is DOWN. ...`.
    pub(super) fn log_mark(&mut self, process: usize, server: usize, to: Mark) {
        let p = &self.lb.processes[process];
        let s = &p.servers[server];
        let usable = p.usable();
        // Printed in a race with the kills: those whose connection is closed already are not counted any more.
        let waiting = self
            .cut_waiting
            .iter()
            .filter(|(_, _, pr, se)| (*pr, *se) == (process, server))
            .count() as u32;
        let sessions = s.counters.scur.saturating_sub(waiting);
        let reason = match (to, self.spec.load_balancer.log_health_checks) {
            (Mark::Down, false) => {
                let last = s.last_check;
                let mut text = format!(", reason: {}", last.text);
                if let Some(code) = last.code {
                    let _ = write!(text, ", code: {code}");
                }
                if !last.info.is_empty() {
                    let _ = write!(text, ", info: \"{}\"", last.info);
                }
                let _ = write!(text, ", check duration: {}ms", last.took);
                text
            }
            _ => String::new(),
        };
        let who = format!("Server {}/{}", self.spec.names.backend, s.name);
        let left = format!(
            "{usable} active and 0 backup servers left. {sessions} sessions active, 0 requeued, 0 remaining in queue."
        );
        let online = format!("{usable} active and 0 backup servers online. 0 sessions requeued, 0 total in queue.");
        let text = match to {
            Mark::Down => format!("{who} is DOWN{reason}. {left}"),
            Mark::Up | Mark::Running => format!("{who} is UP. {online}"),
            Mark::Stopping => format!("{who} is stopping. {online}"),
            Mark::Maint => format!("{who} is going DOWN for maintenance. {left}"),
            Mark::LeaveMaint => format!("{who} is UP/READY (leaving forced maintenance)."),
            Mark::Drain => format!("{who} enters drain state. {online}"),
            Mark::LeaveDrain => format!("{who} is UP/READY (leaving forced drain)."),
        };
        self.log_line(process, &text);
        match to {
            Mark::Down | Mark::Maint => self.cut_sessions_end(process, server),
            Mark::Up | Mark::Stopping | Mark::Running | Mark::LeaveMaint | Mark::Drain | Mark::LeaveDrain => {}
        }
    }

    /// The line of a request, in the `log-format` of the configuration.
    pub(super) fn log_request(&mut self, id: SessionId, ending: &Ending) {
        let s = &self.lb.sessions[id.0];
        let p = &self.lb.processes[s.process];
        let millis = |from: Instant, to: Instant| ((to - from).as_nanos().max(0) / 1_000_000).to_string();
        let unknown = || "-1".to_owned();
        let server = s.server.map(|i| &p.servers[i]);
        let (queue, connect) = match (server, s.connected) {
            (None, _) => (unknown(), unknown()),
            (Some(_), None) => (millis(s.accepted, s.assigned), unknown()),
            (Some(_), Some(at)) => (millis(s.accepted, s.assigned), millis(s.assigned, at)),
        };
        let response = match (s.connected, s.head) {
            (Some(from), Some(to)) => millis(from, to),
            _ => unknown(),
        };
        let total = millis(s.accepted, self.now);
        let mut text = String::with_capacity(260);
        let _ = write!(text, "{}:{} [", s.client.0, s.client.1);
        write_haproxy_date(&mut text, self.net.read_clock(LB, s.accepted) + self.lb_zone());
        let _ = write!(
            text,
            "] {} {}/{} 0/{queue}/{connect}/{response}/{total} {} {} - - {}-- {}/{}/{}/{}/",
            self.spec.names.frontend,
            self.spec.names.backend,
            server.map_or("<NOSRV>", |s| s.name.as_str()),
            ending.status,
            ending.bytes,
            ending.state,
            p.frontend.scur + 1,
            p.frontend.scur + 1,
            p.backend.scur,
            server.map_or(0, |s| s.counters.scur),
        );
        let plus = if s.redispatched { "+" } else { "" };
        let _ = write!(text, "{plus}{} 0/0 \"{} {} HTTP/1.1\" bi=", s.retries, s.method, s.path);
        let local = self.requests[s.request.0]
            .attempts
            .last()
            .and_then(|a| a.lb_port)
            .filter(|_| server.is_some());
        match local {
            Some(port) => {
                let _ = write!(text, "{}:{port}", self.net.hosts[LB.0].ip);
            }
            None => text.push_str("-:-"),
        }
        let process = s.process;
        self.log_at(process, Level::Info, &text);
    }

    /// Local time of the load balancer's stamps, east of UTC.
    fn lb_zone(&self) -> Duration {
        match self.spec.load_balancer.log {
            LogStamps::Iso | LogStamps::Rfc5424 => Duration::ZERO,
            LogStamps::Rfc3164 { zone } => zone,
        }
    }
}

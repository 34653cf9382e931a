//! Changes of a server's state: UP, DOWN, NOLB, MAINT, DRAIN, what happens to sessions then, and a reload.

use super::super::model::{Event as ModelEvent, Model};
use super::super::network::Side;
use super::super::pod::PodId;
use super::super::truth::Happened;
use super::{Admin, Cut, Event, LastCheck, Process, Server, SessionId};
use crate::time::{Duration, Instant};

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world::sim) enum Mark {
    /// DOWN by checks.
    Down,
    /// UP by checks.
    Up,
    /// NOLB.
    Stopping,
    /// Back from NOLB.
    Running,
    /// Into maintenance.
    Maint,
    /// Out of maintenance.
    LeaveMaint,
    /// DRAIN, by the agent.
    Drain,
    /// Out of DRAIN.
    LeaveDrain,
}

/// A server before its first check: UP, one failure away from DOWN.
pub(in crate::world::sim) fn fresh_server(node: usize, name: &str, rise: u32, now: Instant) -> Server {
    Server {
        node,
        name: name.to_owned(),
        health: rise,
        up: true,
        stopping: false,
        admin: Admin::Ready,
        changed: now,
        downtime: Duration::ZERO,
        number: 0,
        running: None,
        last_check: LastCheck {
            status: "INI",
            code: None,
            took: 0,
            text: "Initializing",
            info: "",
        },
        counters: super::Counters::default(),
        chkfail: 0,
        chkdown: 0,
        idle: Vec::new(),
    }
}

impl Model {
    /// Decides, at the end of the deciding check, when each open session of the server is cut: the FIN may leave up to
    /// the whole lag *before* DOWN is logged, the request's own line comes after it.
    pub(super) fn plan_cuts(&mut self, process: usize, server: usize, lag: Duration, why: Cut) {
        if !self.spec.load_balancer.shutdown_sessions && why == Cut::Down {
            return;
        }
        for index in 0..self.lb.sessions.len() {
            let s = &self.lb.sessions[index];
            if s.over || s.process != process || s.server != Some(server) {
                continue;
            }
            if s.conn.is_none() {
                self.lb.sessions[index].marked = true;
                continue;
            }
            let attempt = s.attempt;
            let early = self.dice.chance(0.3);
            let wait = if early {
                self.dice.between(Duration::from_micros(15), lag)
            } else {
                lag + self.dice.spread(15, 40, 250)
            };
            let id = SessionId(index);
            self.after(
                wait,
                ModelEvent::Haproxy(Event::Cut {
                    session: id,
                    attempt,
                    why,
                }),
            );
        }
    }

    pub(super) fn server_marked(&mut self, process: usize, server: usize, to: Mark) {
        let full = self.full_health();
        let now = self.now;
        let s = &mut self.lb.processes[process].servers[server];
        let was_up = s.up;
        match to {
            Mark::Down => {
                (s.up, s.health, s.stopping) = (false, 0, false);
                s.chkdown += 1;
                s.changed = now;
            }
            Mark::Up => {
                (s.up, s.health) = (true, full);
                s.downtime = s.downtime + (now - s.changed);
                s.changed = now;
            }
            Mark::Stopping => {
                s.stopping = true;
                s.changed = now;
            }
            Mark::Running => {
                s.stopping = false;
                s.changed = now;
            }
            Mark::Maint => {
                s.admin = Admin::Maint;
                s.running = None;
                s.number += 1;
                if was_up {
                    s.chkdown += 1;
                }
                s.up = false;
                s.changed = now;
            }
            Mark::LeaveMaint => {
                (s.admin, s.up, s.health) = (Admin::Ready, true, self.spec.load_balancer.rise);
                s.changed = now;
                self.schedule_check(process, server, now + Duration::from_millis(2));
            }
            Mark::Drain => s.admin = Admin::Drain,
            Mark::LeaveDrain => s.admin = Admin::Ready,
        }
        let state = match to {
            Mark::Down => "down",
            Mark::Up => "up",
            Mark::Stopping => "nolb",
            Mark::Running | Mark::LeaveMaint | Mark::LeaveDrain => "ready",
            Mark::Maint => "maint",
            Mark::Drain => "drain",
        };
        let name = self.lb.processes[process].servers[server].name.clone();
        self.truth.note(
            now,
            Happened::Server {
                server: name,
                state: state.to_owned(),
                process,
            },
        );
        self.log_mark(process, server, to);
        self.backend_follows(process);
    }

    /// The backend is UP while one server is usable.
    fn backend_follows(&mut self, process: usize) {
        let now = self.now;
        let p = &mut self.lb.processes[process];
        let is = p.usable() > 0;
        if p.backend_up == is {
            return;
        }
        p.backend_up = is;
        p.backend_changed = now;
        if !is {
            p.backend_downs += 1;
            let text = format!("backend {} has no server available!", self.spec.names.backend);
            self.log_line(process, &text);
        }
    }

    /// A server goes into maintenance, or leaves it.
    pub(in crate::world::sim) fn set_maintenance(&mut self, server: usize, on: bool) {
        let process = self.current_process();
        let is = self.lb.processes[process].servers[server].admin == Admin::Maint;
        if is == on {
            return;
        }
        if on {
            let lag = self.dice.spread(30, 90, 400);
            self.plan_cuts(process, server, lag, Cut::Maint);
            self.after(
                lag,
                ModelEvent::Haproxy(Event::Mark {
                    process,
                    server,
                    to: Mark::Maint,
                }),
            );
        } else {
            self.server_marked(process, server, Mark::LeaveMaint);
        }
    }

    /// The agent of the pod behind a server says `drain` or `ready`, every 2 s.
    pub(super) fn agent_check(&mut self, process: usize, server: usize) {
        if self.lb.processes[process].old {
            return;
        }
        let s = &self.lb.processes[process].servers[server];
        let (admin, node) = (s.admin, s.node);
        if let Some(pod) = self.listening_on(node) {
            let drain = self.pods[pod.0].agent_drain;
            match (admin, drain) {
                (Admin::Ready, true) => self.server_marked(process, server, Mark::Drain),
                (Admin::Drain, false) => self.server_marked(process, server, Mark::LeaveDrain),
                (Admin::Ready | Admin::Drain | Admin::Maint, _) => {}
            }
        }
        let again = Duration::from_secs(2) + self.dice.micros(500, 1_600);
        self.after(again, ModelEvent::Haproxy(Event::Agent { process, server }));
    }

    /// A reload: the old process stops listening and checking and keeps its sessions; in the new one every server is UP
    /// until its first check.
    pub(super) fn reload(&mut self) {
        let old = self.current_process();
        for text in [
            format!(
                "Proxy {} stopped (cumulated conns: FE: {}, BE: 0).",
                self.spec.names.frontend, self.lb.processes[old].frontend.stot
            ),
            format!(
                "Proxy {} stopped (cumulated conns: FE: 0, BE: {}).",
                self.spec.names.backend, self.lb.processes[old].backend.stot
            ),
        ] {
            self.log_line(old, &text);
        }
        self.truth.note(self.now, Happened::Reload);
        let now = self.now;
        let rise = self.spec.load_balancer.rise;
        let p = &mut self.lb.processes[old];
        p.old = true;
        let servers: Vec<Server> = p
            .servers
            .iter()
            .map(|s| fresh_server(s.node, &s.name, rise, now))
            .collect();
        let pid = p.pid + 40;
        self.lb.processes.push(Process::new(pid, servers, now));
        self.start_checks();
    }

    /// The first check of each server: spread over `inter`.
    pub(in crate::world::sim) fn start_checks(&mut self) {
        let process = self.current_process();
        let count = self.lb.processes[process].servers.len();
        for server in 0..count {
            let share = self.spec.load_balancer.inter.as_nanos() * server as i64 / count as i64;
            let at = self.now + Duration::from_nanos(share) + self.dice.micros(800, 2_000);
            self.schedule_check(process, server, at);
            if self.spec.load_balancer.agent_check {
                self.schedule(at, ModelEvent::Haproxy(Event::Agent { process, server }));
            }
        }
    }

    pub(super) fn purge(&mut self, process: usize, server: usize, conn: super::ConnId, since: Instant) {
        let s = &mut self.lb.processes[process].servers[server];
        let before = s.idle.len();
        s.idle.retain(|(c, at)| !(*c == conn && *at == since));
        if s.idle.len() < before {
            self.net.rst(self.now, conn, Side::Opener, &mut self.dice);
        }
    }

    /// A pod's Envoy is gone: idle connections to it are closed by both sides.
    pub(in crate::world::sim) fn lb_loses_idle(&mut self, pod: PodId) {
        let node = self.pods[pod.0].node;
        let (back, now) = (self.net.one_way, self.now);
        for process in 0..self.lb.processes.len() {
            for server in 0..self.lb.processes[process].servers.len() {
                if Some(self.lb.processes[process].servers[server].node) != node {
                    continue;
                }
                for (conn, _) in std::mem::take(&mut self.lb.processes[process].servers[server].idle) {
                    self.net.fin(now, conn, Side::Acceptor, &mut self.dice);
                    let answer = now + back + self.dice.micros(20, 80);
                    self.net.fin(answer, conn, Side::Opener, &mut self.dice);
                }
            }
        }
    }
}

//! Health checks: when they run, what they see, how they close, and what they do to a server's health.

use std::sync::Arc;

use super::super::model::{Event as ModelEvent, Model};
use super::super::network::{FIRST_WORKER, HostId, LB, Side};
use super::super::pod::exchange::{self, Exchange, ExchangeId, HEALTH_PAGE, Kind};
use super::state::Mark;
use super::{Admin, CheckId, CheckResult, Event, LastCheck};
use crate::time::{Duration, Instant};

impl Model {
    /// Health that a server has when it is fully UP.
    pub(super) fn full_health(&self) -> u32 {
        self.spec.load_balancer.rise + self.spec.load_balancer.fall - 1
    }

    /// `inter`, or `fastinter` in a transition, or `downinter` while DOWN.
    fn check_interval(&self, process: usize, server: usize) -> Duration {
        let lb = &self.spec.load_balancer;
        let s = &self.lb.processes[process].servers[server];
        if s.health >= self.full_health() {
            lb.inter
        } else if s.health == 0 {
            lb.downinter.unwrap_or(lb.inter)
        } else {
            lb.fastinter.unwrap_or(lb.inter)
        }
    }

    pub(super) fn schedule_check(&mut self, process: usize, server: usize, at: Instant) {
        let number = self.lb.processes[process].servers[server].number;
        self.schedule(
            at,
            ModelEvent::Haproxy(Event::CheckStart {
                process,
                server,
                number,
            }),
        );
    }

    pub(super) fn check_starts(&mut self, process: usize, server: usize, number: u64) {
        let p = &self.lb.processes[process];
        let s = &p.servers[server];
        if p.old || s.admin == Admin::Maint || s.number != number {
            return;
        }
        let node = s.node;
        let pod = self.listening_on(node);
        let behind = self.behind(pod);
        let conn = self
            .net
            .connect(LB, HostId(FIRST_WORKER + node), 8080, behind, &mut self.dice);
        self.net.syn(self.now, conn, pod.is_some(), &mut self.dice);
        self.lb.processes[process].servers[server].running = Some((number, self.now, pod.map(|_| conn)));
        let check = CheckId {
            process,
            server,
            number,
        };
        let round = self.net.one_way + self.net.one_way;
        let Some(pod) = pod else {
            let wait = round + self.dice.spread(30, 90, 300);
            return self.after(
                wait,
                ModelEvent::Haproxy(Event::CheckDone {
                    check,
                    result: CheckResult::Refused,
                }),
            );
        };
        let id = ExchangeId(self.exchanges.len());
        self.exchanges.push(Exchange {
            kind: Kind::Check(check),
            pod,
            conn,
            method: Arc::from("GET"),
            path: Arc::from(HEALTH_PAGE),
            request_bytes: 71,
            drained_at: None,
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
        let there = round + self.net.one_way + self.dice.spread(40, 110, 500);
        let arrive = super::super::pod::Event::Exchange(id, exchange::Event::Arrive);
        self.after(there, ModelEvent::Pod(arrive));
        // Without `timeout check` a check may take as long as `inter`.
        let limit = self.spec.load_balancer.inter;
        self.after(
            limit,
            ModelEvent::Haproxy(Event::CheckDone {
                check,
                result: CheckResult::Timeout,
            }),
        );
    }

    pub(super) fn check_done(&mut self, check: CheckId, result: CheckResult) {
        let CheckId {
            process,
            server,
            number,
        } = check;
        let s = &mut self.lb.processes[process].servers[server];
        let Some((_, started, conn)) = s.running.take_if(|(running, ..)| *running == number) else {
            return;
        };
        s.number += 1;
        if let Some(conn) = conn {
            // HAProxy closes a check with RST more often than not: a race with Envoy's FIN, rarer on a slow network.
            let reset = if self.net.one_way < Duration::from_micros(200) {
                0.65
            } else {
                0.37
            };
            let close = self.now + self.dice.micros(20, 90);
            if self.dice.chance(reset) || result == CheckResult::Timeout {
                self.net.rst(close, conn, Side::Opener, &mut self.dice);
            } else {
                self.net.fin(close, conn, Side::Opener, &mut self.dice);
            }
        }
        let took = (self.now - started).as_nanos() / 1_000_000;
        let seen = |status, code, text, info| LastCheck {
            status,
            code,
            took,
            text,
            info,
        };
        let conditional = result == CheckResult::Status(404) && self.spec.load_balancer.disable_on_404;
        let (last, passed) = match result {
            CheckResult::Status(200) => (seen("L7OK", Some(200), "Layer7 check passed", ""), true),
            CheckResult::Status(404) if conditional => {
                (seen("L7OKC", Some(404), "Layer7 check conditionally passed", ""), true)
            }
            CheckResult::Status(code) => {
                let reason = if code == 404 {
                    "Not Found"
                } else {
                    "Service Unavailable"
                };
                (seen("L7STS", Some(code), "Layer7 wrong status", reason), false)
            }
            CheckResult::Refused => (
                seen("L4CON", None, "Layer4 connection problem", "Connection refused"),
                false,
            ),
            CheckResult::Reset => (seen("SOCKERR", None, "Socket error", "Connection reset by peer"), false),
            CheckResult::Timeout => (seen("L7TOUT", None, "Layer7 timeout", ""), false),
        };
        self.check_counts(process, server, last, passed, conditional);
        if !self.lb.processes[process].old {
            // The task's timer has steps of a millisecond and begins at the end of the check before.
            let floor = self.now.as_nanos().div_euclid(1_000_000) * 1_000_000;
            let wait = self.check_interval(process, server) + self.dice.micros(500, 1_600);
            let at = Instant::from_nanos(floor) + wait;
            self.schedule_check(process, server, at);
        }
    }

    /// What a check's result does to the server's health; changes of state are logged a little later.
    fn check_counts(&mut self, process: usize, server: usize, last: LastCheck, passed: bool, conditional: bool) {
        let (rise, full) = (self.spec.load_balancer.rise, self.full_health());
        let s = &mut self.lb.processes[process].servers[server];
        let before = std::mem::replace(&mut s.last_check, last);
        let health = s.health;
        // Logged: a new status, a failure of a server that is not fully down, a success of one that is not fully up.
        let logged = before.status != last.status || if passed { health != full } else { health != 0 };
        let (shown, mark) = if passed {
            s.health = if health + 1 >= rise { full } else { health + 1 };
            let was_up = s.up;
            let mark = match (was_up, conditional, s.stopping) {
                (false, _, _) if s.health == full => Some(Mark::Up),
                (true, true, false) => Some(Mark::Stopping),
                (true, false, true) => Some(Mark::Running),
                _ => None,
            };
            if mark == Some(Mark::Up) {
                // The server stays DOWN until it is marked.
                s.health = rise.saturating_sub(1);
                (full, mark)
            } else {
                (s.health, mark)
            }
        } else {
            if health >= rise {
                s.chkfail += 1;
            }
            if health > rise {
                s.health = health - 1;
                (s.health, None)
            } else {
                let mark = s.up.then_some(Mark::Down);
                if mark.is_none() {
                    s.health = 0;
                }
                (0, mark)
            }
        };
        if logged {
            self.log_check(process, server, last, passed, conditional, shown);
        }
        if let Some(to) = mark {
            let lag = self.mark_lag();
            if to == Mark::Down {
                self.plan_cuts(process, server, lag, super::Cut::Down);
            }
            self.after(lag, ModelEvent::Haproxy(Event::Mark { process, server, to }));
        }
    }

    /// From the end of the deciding check to the log line: mostly 0.1 ms, in one run of six up to 4 ms.
    pub(super) fn mark_lag(&mut self) -> Duration {
        if self.dice.chance(0.16) {
            self.dice.micros(600, 4_100)
        } else {
            self.dice.spread(45, 110, 600)
        }
    }
}

//! How a session ends: the server closed, a time limit, a cut, the client gone.

use super::*;
use crate::world::sim::client::Answer;
use crate::world::sim::haproxy::{Cut, SessionId};
use crate::world::sim::model::{Event as ModelEvent, Model};
use crate::world::sim::network::Side;
use crate::world::sim::pod::exchange::{self};
use crate::world::sim::pod::{self};
use crate::world::sim::truth::AttemptEnd;

impl Model {
    /// The pod's side is gone before the response was whole.
    pub(in crate::world::sim::haproxy) fn session_server_closed(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) {
            return;
        }
        self.end_attempt(id, AttemptEnd::PodClosed);
        let (began, conn) = (self.lb.sessions[id.0].head.is_some(), self.lb.sessions[id.0].conn);
        if let Some(conn) = conn {
            let at = self.now + self.dice.micros(20, 90);
            self.net.fin(at, conn, Side::Opener, &mut self.dice);
        }
        self.count_response_error(id);
        let ending = if began {
            Ending {
                status: 200,
                bytes: self.bytes_so_far(id),
                state: "SD",
                whole: false,
                silent: false,
            }
        } else {
            Ending {
                status: 502,
                bytes: 209,
                state: "SH",
                whole: false,
                silent: false,
            }
        };
        self.session_ends(id, ending);
    }

    pub(in crate::world::sim::haproxy) fn session_timeout(&mut self, id: SessionId, attempt: u32) {
        if !self.current(id, attempt) || self.lb.sessions[id.0].conn.is_none() {
            return;
        }
        let s = &self.lb.sessions[id.0];
        if s.head.is_some() {
            // Data keep coming: the timeout begins again with each of them.
            return;
        }
        self.end_attempt(id, AttemptEnd::ServerTimeout);
        self.close_server_side(id, false);
        self.count_response_error(id);
        self.session_ends(
            id,
            Ending {
                status: 504,
                bytes: 198,
                state: "sH",
                whole: false,
                silent: false,
            },
        );
    }

    /// The server is down or in maintenance: the FIN leaves now, the session's own end and line follow.
    pub(in crate::world::sim::haproxy) fn session_cut(&mut self, id: SessionId, attempt: u32, why: Cut) {
        if !self.current(id, attempt) || self.lb.sessions[id.0].conn.is_none() {
            return;
        }
        let (process, server) = (self.lb.sessions[id.0].process, self.lb.sessions[id.0].server);
        let Some(server) = server else { return };
        let marked = !self.lb.processes[process].servers[server].up;
        if !self.lb.sessions[id.0].client_gone {
            self.end_attempt(
                id,
                if why == Cut::Down {
                    AttemptEnd::CutByDown
                } else {
                    AttemptEnd::CutByMaint
                },
            );
        }
        self.close_server_side(id, true);
        self.lb.sessions[id.0].cut = true;
        if !marked {
            // The line of the request comes after that of the server: 0.04 / 0.14 / 1.06 ms.
            self.cut_waiting.push((id, attempt, process, server));
            return;
        }
        self.session_cut_ends(id);
    }

    /// The server's line is written: sessions whose connection was closed already end now.
    pub(in crate::world::sim::haproxy) fn cut_sessions_end(&mut self, process: usize, server: usize) {
        let waiting = std::mem::take(&mut self.cut_waiting);
        let (mine, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(_, _, p, s)| (*p, *s) == (process, server));
        self.cut_waiting = rest;
        for (id, attempt, ..) in mine {
            let s = &self.lb.sessions[id.0];
            if !s.over && s.attempt == attempt {
                self.session_cut_ends(id);
            }
        }
    }

    pub(in crate::world::sim::haproxy) fn session_cut_ends(&mut self, id: SessionId) {
        let lb = &self.spec.load_balancer;
        let again = lb
            .retry_on
            .iter()
            .any(|w| w == "all-retryable-errors" || w == "empty-response");
        let redispatch = lb.redispatch;
        let s = &self.lb.sessions[id.0];
        let (process, began, retries, server) = (s.process, s.head.is_some(), s.retries, s.server);
        let Some(server) = server else { return };
        if again && !began && retries < lb.retries {
            let s = &mut self.lb.sessions[id.0];
            s.retries += 1;
            s.conn = None;
            s.cut = false;
            let p = &mut self.lb.processes[process];
            p.servers[server].counters.wretr += 1;
            p.backend.wretr += 1;
            if redispatch {
                self.session_redispatched(id, server);
            } else {
                self.session_connects(id, server);
            }
            return;
        }
        let answers = self.spec.load_balancer.version.answers_502();
        // On 2.x a request on a kept client and a kept server connection is dropped without an answer and a line.
        let silent = answers && !self.lb.sessions[id.0].first && self.lb.sessions[id.0].reused && !began;
        if answers {
            self.count_response_error(id);
        }
        let ending = match (answers, began) {
            (true, false) => Ending {
                status: 502,
                bytes: 209,
                state: "DH",
                whole: false,
                silent,
            },
            (true, true) => Ending {
                status: 200,
                bytes: self.bytes_so_far(id),
                state: "DD",
                whole: false,
                silent,
            },
            (false, false) => Ending {
                status: 500,
                bytes: 0,
                state: "DC",
                whole: false,
                silent,
            },
            (false, true) => Ending {
                status: 500,
                bytes: self.bytes_so_far(id),
                state: "DC",
                whole: false,
                silent,
            },
        };
        let wait = self.dice.spread(40, 140, 1_060);
        self.lb.sessions[id.0].conn = None;
        let at = self.now + wait;
        self.schedule(
            at,
            ModelEvent::Do(Box::new(move |m: &mut Self| {
                if !m.lb.sessions[id.0].over {
                    m.session_ends(id, ending);
                }
            })),
        );
    }

    /// Bytes of the response's body that have come from the server.
    pub(in crate::world::sim) fn session_body(&mut self, id: SessionId) -> u64 {
        let Some(exchange) = self.lb.sessions[id.0].exchange else {
            return 0;
        };
        if !self.exchanges[exchange.0].over {
            self.exchange_body_so_far(exchange);
        }
        self.exchanges[exchange.0].body_sent
    }

    pub(in crate::world::sim::haproxy) fn bytes_so_far(&mut self, id: SessionId) -> u64 {
        HEAD_BYTES + self.session_body(id)
    }

    pub(in crate::world::sim::haproxy) fn count_response_error(&mut self, id: SessionId) {
        let s = &self.lb.sessions[id.0];
        let p = &mut self.lb.processes[s.process];
        p.backend.eresp += 1;
        if let Some(server) = s.server {
            p.servers[server].counters.eresp += 1;
        }
    }

    /// Closes the connection to the server in the midst of things. A kill is FIN, FIN then RST, or RST at once.
    pub(in crate::world::sim::haproxy) fn close_server_side(&mut self, id: SessionId, kill: bool) {
        let s = &self.lb.sessions[id.0];
        let (Some(conn), Some(exchange)) = (s.conn, s.exchange) else {
            return;
        };
        if self.dice.chance(if kill { 0.05 } else { 0.0 }) {
            self.net.rst(self.now, conn, Side::Opener, &mut self.dice);
        } else {
            self.net.fin(self.now, conn, Side::Opener, &mut self.dice);
            // Without latency mostly no reset at all, with a millisecond of it always.
            let millis = (self.net.one_way + self.net.one_way).as_secs_f64() * 1e3;
            if self.dice.chance((0.27 + 0.73 * millis).min(1.0)) {
                let at = self.now + self.dice.micros(100, 300) + self.net.one_way + self.net.one_way;
                self.net.rst(at, conn, Side::Opener, &mut self.dice);
            }
        }
        let there = self.net.one_way + self.dice.micros(10, 60);
        self.after(
            there,
            ModelEvent::Pod(pod::Event::Exchange(exchange, exchange::Event::PeerClosed)),
        );
    }

    /// The client is gone before the response: without `abortonclose` the server's side goes on.
    pub(in crate::world::sim) fn session_client_gone(&mut self, id: SessionId) {
        if !self.lb.sessions[id.0].over && !std::mem::replace(&mut self.lb.sessions[id.0].client_gone, true) {
            self.end_attempt(id, AttemptEnd::ClientGone);
            let s = &self.lb.sessions[id.0];
            let (process, server) = (s.process, s.server);
            if s.head.is_some() {
                // A response that was flowing has nowhere to go: the session ends.
                let p = &mut self.lb.processes[process];
                p.backend.cli_abrt += 1;
                if let Some(server) = server {
                    p.servers[server].counters.cli_abrt += 1;
                }
                let bytes = self.bytes_so_far(id);
                self.close_server_side(id, false);
                self.session_ends(
                    id,
                    Ending {
                        status: 200,
                        bytes,
                        state: "CD",
                        whole: false,
                        silent: false,
                    },
                );
            }
        }
    }

    /// The session is over: counters, the line, and what the client gets.
    pub(in crate::world::sim::haproxy) fn session_ends(&mut self, id: SessionId, ending: Ending) {
        let s = &mut self.lb.sessions[id.0];
        s.over = true;
        let (process, server, request, gone) = (s.process, s.server, s.request, s.client_gone);
        let bin = 70 + s.path.len() as u64;
        let logged_status = ending.status;
        let bout = if ending.status == 500 && ending.state == "DC" {
            0
        } else {
            ending.bytes
        };
        let p = &mut self.lb.processes[process];
        for c in [&mut p.frontend, &mut p.backend] {
            c.end();
            c.bin += bin;
            c.bout += bout;
            c.response(logged_status);
        }
        p.backend.req_tot += 1;
        if let Some(server) = server {
            let c = &mut p.servers[server].counters;
            c.end();
            c.bin += bin;
            c.bout += bout;
            if ending.whole {
                c.response(logged_status);
                c.req_tot += 1;
            }
        }
        if !ending.silent {
            self.log_request(id, &ending);
        }
        if gone {
            return;
        }
        let answer = match ending.state {
            "--" | "D-" => Answer::Whole { status: ending.status },
            _ if ending.silent => Answer::Closed,
            "DC" if self.lb.sessions[id.0].head.is_none() => Answer::Closed,
            "DD" | "DC" | "SD" => Answer::Cut,
            _ => Answer::ErrorPage { status: ending.status },
        };
        let wait = self.net.one_way + self.dice.micros(10, 60);
        self.after(
            wait,
            ModelEvent::Client(crate::world::sim::client::Event::Answer(request, answer)),
        );
    }

    /// The truth about the present attempt; its first end counts.
    pub(in crate::world::sim::haproxy) fn end_attempt(&mut self, id: SessionId, end: AttemptEnd) {
        let s = &self.lb.sessions[id.0];
        let from = s.exchange.and_then(|e| self.exchanges[e.0].arrived);
        let now = self.now;
        if let Some(attempt) = self.requests[s.request.0].attempts.last_mut()
            && attempt.end == AttemptEnd::Open
        {
            attempt.end = end;
            attempt.until = Some(now);
            attempt.from = from;
        }
    }
}

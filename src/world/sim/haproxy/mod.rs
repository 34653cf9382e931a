//! HAProxy: health checks, sessions, what it does to them when a server goes down, its log and its statistics.
//!
//! After a reload there are two processes: the new one checks and takes new sessions, the old one keeps its own.

use super::model::Model;
use super::network::ConnId;
use super::pod::exchange::ExchangeId;
use crate::time::{Duration, Instant};

pub(super) mod check;
pub(super) mod config;
pub(super) mod log;
pub(super) mod session;
pub(super) mod stat;
pub(super) mod state;

use log::LogFollower;
use session::Session;

/// A session: one request of a client; an index that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SessionId(pub(super) usize);

/// A health check that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CheckId {
    /// Process.
    pub(super) process: usize,
    /// Server.
    pub(super) server: usize,
    /// Which of its checks.
    pub(super) number: u64,
}

/// What a health check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckResult {
    /// An HTTP answer.
    Status(u16),
    /// The connection was refused.
    Refused,
    /// The connection was closed or reset before an answer.
    Reset,
    /// No answer in time.
    Timeout,
}

/// What happens at the load balancer.
#[derive(Debug)]
pub(super) enum Event {
    /// A client's request is there.
    Request(SessionId),
    /// The server has accepted the connection of an attempt.
    Connected { session: SessionId, attempt: u32 },
    /// The server has refused it.
    Refused { session: SessionId, attempt: u32 },
    /// The turn-around delay after a refused connection is over.
    Retry { session: SessionId, attempt: u32 },
    /// The response has begun.
    ResponseHead { session: SessionId, attempt: u32 },
    /// The response is whole.
    ResponseEnd {
        session: SessionId,
        attempt: u32,
        exchange: ExchangeId,
    },
    /// The last byte of the response has gone to the client's kernel.
    Forwarded { session: SessionId, attempt: u32 },
    /// The server's side has closed before the response was whole.
    ServerClosed { session: SessionId, attempt: u32 },
    /// `timeout server` has passed.
    ServerTimeout { session: SessionId, attempt: u32 },
    /// The session is cut: the server is down or in maintenance.
    Cut { session: SessionId, attempt: u32, why: Cut },
    /// A check begins.
    CheckStart { process: usize, server: usize, number: u64 },
    /// A check is over.
    CheckDone { check: CheckId, result: CheckResult },
    /// A server's state changes and is logged.
    Mark {
        process: usize,
        server: usize,
        to: state::Mark,
    },
    /// The agent check.
    Agent { process: usize, server: usize },
    /// An idle server connection is purged.
    Purge {
        process: usize,
        server: usize,
        conn: ConnId,
        since: Instant,
    },
    /// Somebody reloads it.
    Reload,
}

/// Why a session is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The server went DOWN.
    Down,
    /// It was put into maintenance.
    Maint,
}

/// The load balancer.
#[derive(Debug)]
pub(super) struct Haproxy {
    /// Processes, the present one last.
    pub(super) processes: Vec<Process>,
    pub(super) sessions: Vec<Session>,
    pub(super) followers: Vec<LogFollower>,
}

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) servers: Vec<Server>,
    pub(super) frontend: Counters,
    pub(super) backend: Counters,
    /// The backend's last change between usable and not, and whether it is usable.
    pub(super) backend_changed: Instant,
    pub(super) backend_up: bool,
    pub(super) backend_downs: u64,
    /// Next server of the round robin.
    pub(super) cursor: usize,
    /// It takes no new sessions and makes no checks any more.
    pub(super) old: bool,
}

/// Administrative state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admin {
    /// None.
    Ready,
    /// DRAIN.
    Drain,
    /// MAINT.
    Maint,
}

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    /// Index of its node.
    pub(super) node: usize,
    pub(super) name: String,
    /// `check->health`: 0 to rise + fall - 1; UP from rise on.
    pub(super) health: u32,
    pub(super) up: bool,
    /// NOLB: the check answered 404.
    pub(super) stopping: bool,
    pub(super) admin: Admin,
    pub(super) changed: Instant,
    pub(super) downtime: Duration,
    /// Number of its next check.
    pub(super) number: u64,
    /// The check that is running: its number, start and connection.
    pub(super) running: Option<(u64, Instant, Option<ConnId>)>,
    pub(super) last_check: LastCheck,
    pub(super) counters: Counters,
    pub(super) chkfail: u64,
    pub(super) chkdown: u64,
    /// Idle connections and since when.
    pub(super) idle: Vec<(ConnId, Instant)>,
}

/// The last check of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastCheck {
    /// `L7OK`.
    pub(super) status: &'static str,
    pub(super) code: Option<u16>,
    /// Whole milliseconds.
    pub(super) took: i64,
    /// `Layer7 check passed`.
    pub(super) text: &'static str,
    /// `Connection refused`.
    pub(super) info: &'static str,
}

/// Counters of a row of the statistics.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    pub(super) scur: u32,
    pub(super) smax: u32,
    pub(super) stot: u64,
    pub(super) bin: u64,
    pub(super) bout: u64,
    pub(super) econ: u64,
    pub(super) eresp: u64,
    pub(super) wretr: u64,
    pub(super) wredis: u64,
    /// Responses by class: 1xx to 5xx and other.
    pub(super) hrsp: [u64; 6],
    pub(super) req_tot: u64,
    pub(super) cli_abrt: u64,
    pub(super) srv_abrt: u64,
    pub(super) connect: u64,
    pub(super) reuse: u64,
    pub(super) last_session: Option<Instant>,
}

impl Counters {
    /// A session begins.
    pub(super) fn begin(&mut self, now: Instant) {
        self.scur += 1;
        self.smax = self.smax.max(self.scur);
        self.stot += 1;
        self.last_session = Some(now);
    }

    /// A session ends.
    pub(super) fn end(&mut self) {
        self.scur = self.scur.saturating_sub(1);
    }

    /// A response is counted.
    pub(super) fn response(&mut self, status: u16) {
        let class = match status {
            100..=599 => usize::from(status / 100 - 1),
            _ => 5,
        };
        self.hrsp[class] += 1;
    }
}

impl Server {
    /// It gets new sessions.
    pub(super) fn usable(&self) -> bool {
        self.up && !self.stopping && self.admin == Admin::Ready
    }
}

impl Process {
    /// A process whose servers are all UP until their first check.
    pub(super) fn new(pid: u32, servers: Vec<Server>, now: Instant) -> Self {
        Self {
            pid,
            servers,
            frontend: Counters::default(),
            backend: Counters::default(),
            backend_changed: now,
            backend_up: true,
            backend_downs: 0,
            cursor: 0,
            old: false,
        }
    }

    /// Servers that get new sessions.
    pub(super) fn usable(&self) -> usize {
        self.servers.iter().filter(|s| s.usable()).count()
    }
}

impl Model {
    /// Hands an event to its part.
    pub(super) fn haproxy_event(&mut self, event: Event) {
        match event {
            Event::Request(session) => self.session_begins(session),
            Event::Connected { session, attempt } => self.session_connected(session, attempt),
            Event::Refused { session, attempt } => self.session_refused(session, attempt),
            Event::Retry { session, attempt } => self.session_retries(session, attempt),
            Event::ResponseHead { session, attempt } => self.session_head(session, attempt),
            Event::ResponseEnd {
                session,
                attempt,
                exchange,
            } => self.session_answered(session, attempt, exchange),
            Event::Forwarded { session, attempt } => self.session_forwarded(session, attempt),
            Event::ServerClosed { session, attempt } => self.session_server_closed(session, attempt),
            Event::ServerTimeout { session, attempt } => self.session_timeout(session, attempt),
            Event::Cut { session, attempt, why } => self.session_cut(session, attempt, why),
            Event::CheckStart {
                process,
                server,
                number,
            } => self.check_starts(process, server, number),
            Event::CheckDone { check, result } => self.check_done(check, result),
            Event::Mark { process, server, to } => self.server_marked(process, server, to),
            Event::Agent { process, server } => self.agent_check(process, server),
            Event::Purge {
                process,
                server,
                conn,
                since,
            } => self.purge(process, server, conn, since),
            Event::Reload => self.reload(),
        }
    }

    /// The process that takes new sessions.
    pub(super) fn current_process(&self) -> usize {
        self.lb.processes.len() - 1
    }
}

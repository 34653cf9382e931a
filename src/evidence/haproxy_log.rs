//! HAProxy's log: server states, health checks, requests. `iso`, `rfc5424` and `rfc3164`; httplog, httpslog and
//! formats learned from `haproxy.cfg`.

use std::sync::Arc;

use super::{Endpoint, FileId, Place};
use crate::time::{Bracket, Duration};

mod compile;
mod draft;
mod format;
mod header;
mod message;
mod parser;
pub(crate) mod reader;

pub(crate) use draft::path_of;
pub use parser::{ParsedLine, Parser};

/// One log, on its own clock.
#[derive(Debug, Clone, PartialEq)]
pub struct HaproxyLog {
    /// The file.
    pub file: FileId,
    /// Resolution of its stamps: 1 us, 1 s.
    pub resolution: Duration,
    /// The lines that mean something, in file order.
    pub lines: Vec<HaproxyLine>,
    /// Regular lines of a very long log that were read and counted, but not kept: all of answered requests and
    /// passed checks, none within a minute of anything else as long as there was room.
    pub omitted: u64,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct HaproxyLine {
    /// The line's own stamp: when it was written.
    pub at: Bracket,
    /// Where.
    pub place: Place,
    /// Process id, where the line has one; it tells two processes of a reload apart.
    pub pid: Option<u32>,
    /// What it says.
    pub what: HaproxyEvent,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum HaproxyEvent {
    /// `Server b/s is DOWN`, `is UP`, `is stopping`, `is going DOWN for maintenance`, ...
    ServerState(ServerState),
    /// `Health check for server b/s failed, ...`.
    HealthCheck(HealthCheck),
    /// An access line; boxed, since it is much larger than the others.
    Request(Box<HaproxyRequest>),
    /// `Proxy p stopped`: an old process ends its listening, at a reload.
    ProxyStopped(Arc<str>),
    /// `Proxy p started`, or a new process's first words.
    ProxyStarted(Arc<str>),
    /// `backend b has no server available!`.
    NoServer(Arc<str>),
}

/// A change of a server's state.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerState {
    /// Proxy.
    pub backend: Arc<str>,
    /// Server.
    pub server: Arc<str>,
    /// Into which state.
    pub to: ServerChange,
    /// `reason: Layer7 wrong status, code: 503, ...`, where given.
    pub reason: Option<Arc<str>>,
    /// `n sessions active`: printed in a race with the kills, proves nothing.
    pub sessions: Option<u64>,
}

/// Into which state a server changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerChange {
    /// DOWN by checks, agent or `set server health`.
    Down,
    /// DOWN because a tracked server is.
    DownByTracking,
    /// UP.
    Up,
    /// `is stopping`: NOLB (404 with disable-on-404).
    Stopping,
    /// Back from stopping.
    Running,
    /// Going DOWN for maintenance, or entering it.
    Maint,
    /// Out of maintenance, but still DOWN by its checks or without an address (`UP/READY` is [`Self::Up`]).
    LeavingMaint,
    /// Drain.
    Drain,
    /// Out of drain.
    LeavingDrain,
}

/// A logged check.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthCheck {
    /// Proxy.
    pub backend: Arc<str>,
    /// Server.
    pub server: Arc<str>,
    /// It succeeded (also conditionally, with 404).
    pub ok: bool,
    /// An agent check.
    pub agent: bool,
    /// `Layer7 wrong status`.
    pub reason: Option<Arc<str>>,
    /// HTTP status.
    pub code: Option<u16>,
    /// How long it took, whole milliseconds, cut.
    pub duration: Option<Duration>,
    /// `1/2 UP`: health, of, word.
    pub status: Option<(i32, i32, Arc<str>)>,
}

impl HealthCheck {
    /// The check was answered over HTTP, so the pod's listener was there.
    pub fn answered(&self) -> bool {
        self.code.is_some()
    }
}

/// An access line.
#[derive(Debug, Clone, PartialEq)]
pub struct HaproxyRequest {
    /// Client's address and port.
    pub client: Option<Endpoint>,
    /// `%tr`, `%t` or `%T`: when the request (or connection) was accepted, on the log's clock; ms, cut, in the
    /// process's local time. Open when the format has none.
    pub accepted: Bracket,
    /// Frontend, without the `~` of TLS.
    pub frontend: Option<Arc<str>>,
    /// Proxy.
    pub backend: Option<Arc<str>>,
    /// Server; `None` for `<NOSRV>`, `<STATS>` and the like.
    pub server: Option<Arc<str>>,
    /// `%TR`, `%Tq`: time to receive the request; -1 is `None`.
    pub time_request: Option<Duration>,
    /// `%Tw`: in queues.
    pub time_queue: Option<Duration>,
    /// `%Tc`: to connect.
    pub time_connect: Option<Duration>,
    /// `%Tr`: to the response; `None` for -1: no response came.
    pub time_response: Option<Duration>,
    /// `%Ta` or `%Tt`: all of it, ms, cut.
    pub time_total: Option<Duration>,
    /// A `+` in front of the total or logasap: the line was written before the end.
    pub as_soon_as_possible: bool,
    /// Status as logged; `None` for -1. On 3.x a killed request says 500 though the client saw nothing.
    pub status: Option<u16>,
    /// Bytes sent to the client as logged.
    pub bytes: Option<u64>,
    /// The four letters of the termination state, `----`, `DH--`; [`Termination::UNKNOWN`] where the format has none.
    pub termination: Termination,
    /// `%rc`: retries.
    pub retries: u32,
    /// `+` in front of the retries: redispatched to another server.
    pub redispatched: bool,
    /// Method.
    pub method: Option<Arc<str>>,
    /// Path and query; an absolute URI (HTTP/2) is cut to its path.
    pub path: Option<Arc<str>>,
    /// `HTTP/1.1`.
    pub protocol: Option<Arc<str>>,
    /// `%bi:%bp`: HAProxy's own address and port towards the server.
    pub backend_source: Option<Endpoint>,
}

/// A termination state: who or what ended the session, and in which phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Termination(pub [u8; 4]);

impl Termination {
    /// First letter: the cause. `D` is "killed because the server went down or into maintenance".
    pub fn cause(self) -> u8 {
        self.0[0]
    }

    /// Second letter: the phase. `H` waiting for headers, `D` data, `C` connecting, `-` the end was regular.
    pub fn phase(self) -> u8 {
        self.0[1]
    }

    /// Killed because the server went down or into maintenance, before the response was whole. `D---` is whole.
    pub fn cut_by_down(self) -> bool {
        self.cause() == b'D' && self.phase() != b'-'
    }

    /// The format of the log does not tell: neither regular nor cut.
    pub const UNKNOWN: Self = Self(*b"????");

    /// The line's format has it: a custom format may not.
    pub fn is_known(self) -> bool {
        self.0[0] != b'?'
    }

    /// Nothing out of the ordinary.
    pub fn is_normal(self) -> bool {
        self.0[0] == b'-' && self.0[1] == b'-'
    }
}

impl std::fmt::Display for Termination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

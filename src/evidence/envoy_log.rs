//! Envoy's log: access lines (default format, Istio's text and JSON, custom keys) mixed with application lines.

use std::sync::Arc;

use super::{Endpoint, FileId, Place};
use crate::time::{Bracket, Duration, Instant};

mod access;
mod application;
pub(crate) mod reader;

pub use access::JsonKeys;
pub use reader::{ParsedLine, parse_line};

/// One pod's Envoy log, on its own clock. Access lines are written at the end and may be flushed late.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvoyLog {
    /// The file.
    pub file: FileId,
    /// Node or pod from the file's name.
    pub subject: Option<String>,
    /// Access lines, in file order (not in time order).
    pub requests: Vec<EnvoyRequest>,
    /// Regular access lines of a very long log that were read and counted, but not kept: without a flag and with a
    /// status below 400.
    pub omitted: u64,
    /// Application lines that mean something.
    pub lines: Vec<EnvoyLine>,
    /// The log holds Envoy's own end: every access line that it could write is there.
    pub ended: bool,
}

/// One access line.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvoyRequest {
    /// `START_TIME`, cut to milliseconds.
    pub started: Bracket,
    /// `DURATION` in whole milliseconds, cut; `None` for `-`.
    pub duration: Option<Duration>,
    /// Start plus duration, with the resolution of both (up to 2 ms wide).
    pub ended: Bracket,
    /// Where.
    pub place: Place,
    /// Runtime's stamp of the line, where kept.
    pub runtime: Option<Instant>,
    /// Arrival of the line at gtrun, where kept.
    pub arrival: Option<Instant>,
    /// Method.
    pub method: Option<Arc<str>>,
    /// Path and query.
    pub path: Option<Arc<str>>,
    /// `HTTP/1.1`, `HTTP/2`.
    pub protocol: Option<Arc<str>>,
    /// Status; `None` for 0 (no response was sent).
    pub status: Option<u16>,
    /// Response flags, `-` is empty: `["DC"]`, `["DC", "UR"]`.
    pub flags: Vec<Arc<str>>,
    /// `RESPONSE_CODE_DETAILS`.
    pub details: Option<Arc<str>>,
    /// Bytes sent to the load balancer.
    pub bytes_sent: Option<u64>,
    /// Peer: the load balancer's own address and port.
    pub downstream: Option<Endpoint>,
    /// Envoy's own address: which pod this is.
    pub local: Option<Endpoint>,
    /// Address of the application.
    pub upstream: Option<Endpoint>,
    /// `inbound|8000||`.
    pub cluster: Option<Arc<str>>,
    /// `x-request-id`.
    pub request_id: Option<String>,
}

/// One application line that means something.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvoyLine {
    /// Its stamp.
    pub at: Bracket,
    /// Where.
    pub place: Place,
    /// What it says.
    pub what: EnvoyEvent,
}

/// What an application line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvoyEvent {
    /// `caught ENVOY_SIGTERM` or the agent's word for it.
    Sigterm,
    /// `starting main dispatch loop`.
    Started,
    /// `exiting`.
    Exiting,
    /// Istio's agent: `Agent draining Proxy`, `Graceful termination period is 5s`.
    AgentDrain,
    /// Istio's agent: number of active connections, newest line counts; `None` for -1 (gauge not there).
    AgentActive(Option<u64>),
}

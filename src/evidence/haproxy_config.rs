//! `haproxy.cfg`: the timers and policies that decide when a server is down and what happens then.

use super::{Endpoint, FileId};
use crate::time::Duration;

mod parse;
mod words;

pub use parse::parse;

/// What matters of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct HaproxyConfig {
    /// The file.
    pub file: FileId,
    /// Log targets of `global` with their format: `iso`, `rfc5424`, `rfc3164`.
    pub log_formats: Vec<String>,
    /// Proxies that have servers.
    pub backends: Vec<Backend>,
    /// Frontends and listens: name, log format (httplog when not set), default backend.
    pub frontends: Vec<Frontend>,
    /// `timeout` values of `defaults` and of backends are resolved into the backends.
    pub timeout_client: Option<Duration>,
}

/// One frontend.
#[derive(Debug, Clone, PartialEq)]
pub struct Frontend {
    /// Name.
    pub name: String,
    /// How its request lines are written.
    pub log_format: LogFormat,
    /// `default_backend`.
    pub default_backend: Option<String>,
}

/// How request lines are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFormat {
    /// `option httplog`.
    HttpLog,
    /// `option httpslog`.
    HttpsLog,
    /// `option tcplog`.
    TcpLog,
    /// The default (connection only) format.
    Default,
    /// An explicit `log-format`, as written.
    Custom(String),
}

/// One backend (or listen) with its servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Backend {
    /// Proxy name.
    pub name: String,
    /// `timeout server`.
    pub timeout_server: Option<Duration>,
    /// `option httpchk` and `http-check send uri`: path of the health page.
    pub check_path: Option<String>,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `option redispatch`.
    pub redispatch: bool,
    /// `option abortonclose`.
    pub abort_on_close: bool,
    /// `option log-health-checks`.
    pub log_health_checks: bool,
    /// `retry-on` words.
    pub retry_on: Vec<String>,
    /// `retries`.
    pub retries: Option<u32>,
    /// Servers.
    pub servers: Vec<Server>,
}

/// One `server` line with `default-server` applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Name.
    pub name: String,
    /// Address, where it is an IP and a port.
    pub address: Option<Endpoint>,
    /// `check` is set.
    pub check: bool,
    /// `inter`, 2 s when not set.
    pub inter: Duration,
    /// `fastinter`.
    pub fastinter: Option<Duration>,
    /// `downinter`.
    pub downinter: Option<Duration>,
    /// `fall`, 3 when not set.
    pub fall: u32,
    /// `rise`, 2 when not set.
    pub rise: u32,
    /// `on-marked-down shutdown-sessions`.
    pub shutdown_sessions: bool,
    /// `agent-check`.
    pub agent_check: bool,
    /// `proto h2`.
    pub h2: bool,
}

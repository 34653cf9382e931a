//! HAProxy's statistics as CSV: `show stat`, one snapshot or a timeline with a stamp in front. Read by header
//! name, RFC 4180, `# ` stripped.

use std::sync::Arc;

use super::{FileId, Place, Sampled};

pub(crate) mod reader;
mod row;

pub use reader::parse_snapshot;

/// Snapshots in file order, on the sampler's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct StatSeries {
    /// The file.
    pub file: FileId,
    /// What it is.
    pub kind: StatKind,
    /// The snapshots. Runs of equal snapshots may be thinned to their first and last in a very long file.
    pub samples: Vec<StatSample>,
}

/// Which of the three files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatKind {
    /// `haproxy-stat-before.csv`: no stamp, before anything was done.
    Before,
    /// `haproxy-stat-after.csv`.
    After,
    /// `haproxy-stat-timeline.csv`.
    Timeline,
    /// A snapshot of a `snapshot` step.
    Snapshot,
}

/// One `show stat`.
#[derive(Debug, Clone, PartialEq)]
pub struct StatSample {
    /// When; nothing for `before` and `after`.
    pub when: Sampled,
    /// Where its first row is.
    pub place: Place,
    /// A failed poll: no rows, and why.
    pub failed: Option<String>,
    /// The rows of servers (type 2) and of backends (type 1).
    pub rows: Vec<StatRow>,
}

/// One row. What HAProxy counts up by itself stands beside the fields that rows of several samples share.
#[derive(Debug, Clone, PartialEq)]
pub struct StatRow {
    /// Whole seconds since the last UP/DOWN change.
    pub lastchg: Option<u64>,
    /// Seconds in DOWN.
    pub downtime: Option<u64>,
    /// All others; reachable as if they were the row's own.
    pub fields: Arc<StatFields>,
}

impl std::ops::Deref for StatRow {
    type Target = StatFields;

    fn deref(&self) -> &StatFields {
        &self.fields
    }
}

/// The fields of a row that stay as they are while nothing happens.
#[derive(Debug, Clone, PartialEq)]
pub struct StatFields {
    /// `pxname`.
    pub proxy: Arc<str>,
    /// `svname`, `BACKEND` for the proxy itself.
    pub server: Arc<str>,
    /// True for a backend's own row.
    pub is_backend: bool,
    /// State.
    pub status: ServerStatus,
    /// Current sessions.
    pub scur: Option<u64>,
    /// Queued requests.
    pub qcur: Option<u64>,
    /// Total sessions.
    pub stot: Option<u64>,
    /// Response errors.
    pub eresp: Option<u64>,
    /// Connection errors.
    pub econ: Option<u64>,
    /// 2xx responses.
    pub hrsp_2xx: Option<u64>,
    /// 5xx responses.
    pub hrsp_5xx: Option<u64>,
    /// Retries.
    pub wretr: Option<u64>,
    /// Redispatches.
    pub wredis: Option<u64>,
    /// Aborts by the client.
    pub cli_abrt: Option<u64>,
    /// Aborts by the server.
    pub srv_abrt: Option<u64>,
    /// Failed checks.
    pub chkfail: Option<u64>,
    /// UP to DOWN transitions.
    pub chkdown: Option<u64>,
    /// `L7OK`, `L7STS`, `L4CON`; without the `* ` of a running check.
    pub check_status: Option<Arc<str>>,
    /// HTTP status of the last check.
    pub check_code: Option<u16>,
    /// A check is running (`* L7OK`): the fields are those of the check before.
    pub check_running: bool,
    /// Agent's status.
    pub agent_status: Option<Arc<str>>,
    /// Weight; 0 means no new balanced traffic.
    pub weight: Option<u64>,
    /// Slow start, percent.
    pub throttle: Option<u64>,
    /// `addr`.
    pub addr: Option<Arc<str>>,
}

/// A server's state: its class and HAProxy's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// The class.
    pub class: StatusClass,
    /// As HAProxy wrote it: `UP 1/2`.
    pub text: Arc<str>,
    /// `1` and `2` of `UP 1/2`.
    pub health: Option<(i32, i32)>,
}

/// The classes of a server's state: the words of the signal `lb_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusClass {
    /// `UP`.
    Up,
    /// `UP 1/2`: still up, failing checks.
    GoingDown,
    /// `DOWN`, `DOWN (agent)`.
    Down,
    /// `DOWN 1/2`: still down, passing checks.
    ComingUp,
    /// `DRAIN`.
    Drain,
    /// `NOLB`.
    Nolb,
    /// `MAINT`.
    Maint,
    /// `no check`.
    NoCheck,
    /// `OPEN`, `STOP`, `PAUSED`: not a server.
    NotAServer,
    /// Empty or a word of a future version.
    Unknown,
}

impl StatusClass {
    /// DOWN for new and open sessions alike, by checks.
    pub fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::ComingUp)
    }

    /// Not DOWN and not in maintenance: open sessions live on.
    pub fn is_alive(self) -> bool {
        matches!(
            self,
            Self::Up | Self::GoingDown | Self::Drain | Self::Nolb | Self::NoCheck
        )
    }
}

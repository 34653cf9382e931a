//! Loads as their generator saw them: `load-<id>.jsonl` of gtrun, `client.tsv` of the old scripts, hey and others.

use super::client::Outcome;
use super::{FileId, Place};
use crate::time::{Bracket, Duration};

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Step id, or the file's stem: `client`, `hey`.
    pub id: String,
    /// The file.
    pub file: FileId,
    /// What the file can show.
    pub detail: LoadDetail,
    /// One entry a request, in file order; empty for a summary.
    pub requests: Vec<LoadRequest>,
    /// Totals that the file states.
    pub stated: Option<StatedTotals>,
}

/// What a load's file can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadDetail {
    /// Every attempt, with absolute times.
    EveryRequest,
    /// Every request, but a client that repeats by itself hides losses.
    EveryRequestRetried,
    /// Successes only: what failed is not in the file.
    SuccessesOnly,
    /// Totals only.
    Summary,
}

/// Totals that a tool's summary states.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatedTotals {
    /// Requests.
    pub requests: u64,
    /// Count by status.
    pub by_status: Vec<(u16, u64)>,
    /// Errors that the tool lists, with their text.
    pub errors: Vec<(String, u64)>,
}

/// One request of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadRequest {
    /// Where it was read.
    pub place: Place,
    /// When it should have been sent (open loop).
    pub intended: Bracket,
    /// Sent.
    pub started: Bracket,
    /// Over.
    pub ended: Bracket,
    /// HTTP status.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// Total time.
    pub total: Option<Duration>,
    /// Client's own port.
    pub local_port: Option<u16>,
    /// Connection and ordinal on it, where connections are kept.
    pub connection: Option<(u32, u32)>,
    /// Bytes of the body.
    pub bytes: Option<u64>,
    /// Server that answered, where the response says so.
    pub server: Option<String>,
    /// The error's text.
    pub error: Option<String>,
}

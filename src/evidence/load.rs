//! Loads as their generator saw them: `load-<id>.jsonl` of gtrun, `client.tsv` of the old scripts, hey and others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::client::Outcome;
use super::{FileId, Place};
use crate::time::{Bracket, Duration, Instant};

pub(crate) mod hey;
pub(crate) mod reader;
pub(crate) mod tools;

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
    /// Further requests of a very long file that were answered whole with a status below 400 and whose records are
    /// not kept: their total times in microseconds.
    pub omitted: Vec<u32>,
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
    pub server: Option<Arc<str>>,
    /// The error's text.
    pub error: Option<Arc<str>>,
}

/// One line of `load-<id>.jsonl`, written when the request is over. All stamps are gtrun's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// When it should have been sent (open loop).
    pub intended: Instant,
    /// Just before the connection was opened or the request was written on a kept one.
    pub started: Instant,
    /// When its new connection stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<Instant>,
    /// When the first byte of the response was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Instant>,
    /// When it was over; absent for one that the end of the run cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Instant>,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// Connection, counted from 0, where connections are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// Ordinal of the request on its connection, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u32>,
    /// Own port of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_port: Option<u16>,
    /// Bytes of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Server that answered, where the response says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The error's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

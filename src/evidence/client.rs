//! Single requests as their client saw them: `requests.jsonl` of gtrun, `curl[-id].out` of the old scripts.

use serde::{Deserialize, Serialize};

use super::Place;
use crate::time::{Bracket, Duration, Instant};

mod curl;
pub(crate) mod reader;

pub use curl::outcome as curl_outcome;

/// One attempt of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRequest {
    /// Step id; `long` for a plain `curl.out`, `r1` for `curl-r1.out`.
    pub id: String,
    /// 1 for the first attempt; more when the client itself sent it again (`num_connects` of curl is 2).
    pub attempt: u32,
    /// Where it was read.
    pub place: Place,
    /// Sent; curl's output has no stamp: open.
    pub started: Bracket,
    /// First byte of the response.
    pub first_byte: Bracket,
    /// Over, in whatever way.
    pub ended: Bracket,
    /// Total time on the client's own monotonic clock (curl's `time_total`), with its resolution of 1 us or 1 ms.
    pub total: Option<Duration>,
    /// HTTP method.
    pub method: Option<String>,
    /// Path and query as sent, where the file tells it.
    pub path: Option<String>,
    /// HTTP status; `None` when none arrived (curl's 000).
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// curl's exit code, kept beside the outcome.
    pub exit: Option<i32>,
    /// Client's own port of the (last) connection.
    pub local_port: Option<u16>,
    /// Connections that curl opened for it; more than one means that it sent the request again by itself.
    pub connects: Option<u32>,
    /// Bytes of the body that arrived.
    pub bytes: Option<u64>,
    /// Connection id and ordinal of the request on it, where the client keeps connections.
    pub connection: Option<String>,
    /// Times at which an HTTP/2 GOAWAY came in on its connection.
    pub goaway: Option<Bracket>,
    /// The error's text, where there is one.
    pub error: Option<String>,
}

/// How a request ended for its client: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A whole response with a status below 400, or a stream that we ended ourselves as asked.
    Ok,
    /// A whole response with a status of 400 or more.
    HttpError,
    /// A status arrived, the body did not.
    Truncated,
    /// RST before any status.
    Reset,
    /// Closed (FIN) before any status: curl 52.
    ClosedEarly,
    /// No connection: refused.
    Refused,
    /// HTTP/2 REFUSED_STREAM.
    RefusedStream,
    /// The client's own time limit.
    Timeout,
    /// TLS failed.
    TlsError,
    /// The name could not be resolved.
    DnsError,
    /// Given up by us, at the end of the run.
    Aborted,
    /// The file does not say (a summary without an exit code).
    Unknown,
}

impl Outcome {
    /// The response was whole, whatever its status. `None`: not known.
    pub fn whole(self) -> Option<bool> {
        match self {
            Self::Ok | Self::HttpError => Some(true),
            Self::Truncated
            | Self::Reset
            | Self::ClosedEarly
            | Self::Refused
            | Self::RefusedStream
            | Self::Timeout
            | Self::TlsError
            | Self::DnsError
            | Self::Aborted => Some(false),
            Self::Unknown => None,
        }
    }
}

/// One line of `requests.jsonl`: written when a request is sent and again when it is over, the last one of an id and
/// attempt counts. All stamps are gtrun's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Step id.
    pub id: String,
    /// 1 for the first attempt.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path and query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Just before the connection was opened or the request was written on a kept one.
    pub started: Instant,
    /// When the first byte of the response was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Instant>,
    /// When it was over; absent in the line written at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Instant>,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Own port of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_port: Option<u16>,
    /// Address that it was connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Connection id, where connections are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Ordinal of the request on its connection, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u32>,
    /// Bytes of the body that arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// When an HTTP/2 GOAWAY came in on its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goaway: Option<Instant>,
    /// The error's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn first_attempt() -> u32 {
    1
}

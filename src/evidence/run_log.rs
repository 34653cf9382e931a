//! `run.log`: the human log of gtrun and of the old scripts, read for what only it says.

use serde::Serialize;

use super::{FileId, Place};
use crate::time::{Bracket, Duration};

pub(crate) mod reader;

/// What a run log says. Its own clock; stamps of the old scripts have whole seconds, floored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunLog {
    /// The file.
    pub file: Option<FileId>,
    /// Scenario tag, `S1` of `[S1]`.
    pub scenario: Option<String>,
    /// `mode=current` of the first line.
    pub mode: Option<String>,
    /// `target=... node=... backend=...`.
    pub target: Option<RunLogTarget>,
    /// The lines that mean something, in file order.
    pub entries: Vec<RunLogEntry>,
}

/// The target as an old script named it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunLogTarget {
    /// Pod name.
    pub pod: Option<String>,
    /// Node name.
    pub node: Option<String>,
    /// HAProxy server (the scripts call it `backend=`).
    pub server: Option<String>,
}

/// One line of the run log.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLogEntry {
    /// When it was logged, on the log's own clock.
    pub at: Bracket,
    /// Where.
    pub place: Place,
    /// What it says.
    pub what: RunLogLine,
}

/// What a line of the run log says.
#[derive(Debug, Clone, PartialEq)]
pub enum RunLogLine {
    /// `long request: curl /sleep?seconds=60`, `request r1: curl ...`: logged just before the client was started.
    RequestStarted {
        /// `long` or the request's id.
        id: String,
        /// Path and query.
        path: Option<String>,
    },
    /// `curl finished`, `request r1 finished`: seen some time after it ended.
    RequestFinished {
        /// `long` or the request's id.
        id: String,
    },
    /// `delete pod worker1 --grace-period=210`: logged just before the call.
    DeletePod {
        /// Pod, or the name that the lab's script used for it (a server).
        pod: String,
        /// Grace period in the command.
        grace: Option<Duration>,
    },
    /// `haproxy reload (-sf)`.
    HaproxyReload,
    /// `preStop finished, SIGTERM to pod`.
    Sigterm {
        /// Pod, where the line names one.
        pod: Option<String>,
    },
    /// `pod gone`.
    PodGone {
        /// Pod, where the line names one.
        pod: Option<String>,
    },
    /// `rollout restart ...` was started.
    RolloutRestart,
    /// `rollout ... finished` or `rollout status rc=0`.
    RolloutFinished,
    /// `summary [id] curl_http_code=502 time_total=8.2 exit=0`.
    Summary {
        /// `long` where the line has no id.
        id: String,
        /// HTTP status; `None` for curl's 000.
        status: Option<u16>,
        /// Total time as curl measured it.
        total: Option<Duration>,
        /// curl's exit code.
        exit: Option<i32>,
    },
    /// Anything else, kept as it is.
    Other(String),
}

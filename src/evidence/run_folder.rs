//! From the files of a run folder to [`Evidence`]: which file is what, and which reader reads it.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Evidence;
use crate::time::Instant;

mod name;
mod reader;

/// One call of gtrun that acts or is awaited, from `journal.jsonl`: a step of the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnCall {
    /// The step's id, or `step-<n>` counted from 1 where the author gave none.
    pub step: String,
    /// The verb as written in the scenario: `delete_pod`, `mark`, `wait_for`.
    pub verb: String,
    /// Just before the call was made, on gtrun's clock.
    pub sent: Instant,
    /// When its answer was there; `None` when the run ended before.
    pub received: Option<Instant>,
    /// What came of it.
    pub outcome: CallOutcome,
    /// Status of the API or of an exec, where there is one.
    pub status: Option<i64>,
    /// Pod that the call hit, and its uid.
    pub pod: Option<String>,
    /// Uid of that pod.
    pub uid: Option<String>,
    /// HAProxy server in front of the pod, where known.
    pub server: Option<String>,
    /// Results for expressions: `stdout`, `body`, and the text of a failure.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub results: serde_json::Map<String, serde_json::Value>,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Done.
    Ok,
    /// The API refused it (a PodDisruptionBudget, a conflict).
    Refused,
    /// It could not be carried out.
    Error,
    /// A `wait_for` or `poll` that ran out of time.
    TimedOut,
    /// Its `when` was false, or it used the result of a step that never ran.
    Skipped,
    /// The run ended while it was going on.
    Interrupted,
}

/// `run.json`: what gtrun itself says of a run; rewritten as it goes on, the last state counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// `sim`, `lab`, or the name of the cluster's environment.
    pub environment: String,
    /// Nothing of it was real.
    pub simulated: bool,
    /// When it began, on gtrun's clock.
    pub started: Instant,
    /// When its last step was over; `None`: it is still going on, or was killed.
    pub ended: Option<Instant>,
    /// `int` or `term`: the signal that ended it.
    pub interrupted: Option<Signal>,
    /// Why nothing, or not everything, was carried out.
    pub stopped: Option<Stopped>,
    /// What became of the changes that were made; `None`: none was made, or it is not over.
    pub cleanup: Option<Cleanup>,
}

/// The signal that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
}

/// Why nothing, or not everything, was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// What kind.
    pub kind: StopKind,
    /// What happened and what to do, for a person.
    pub message: String,
}

/// Kinds of an early end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// A precondition does not hold, or the environment cannot be measured: nothing was touched.
    Preflight,
    /// A step could not be carried out.
    Step,
    /// The run's own time limit passed.
    Timeout,
    /// A container of the target restarted during the run.
    Restart,
    /// The scenario's only subject is a probe that no host can run.
    Skipped,
}

/// What became of the changes that were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// All undone.
    Done,
    /// What could not be undone, for a person.
    Failed(String),
}

/// How to read a folder.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// FSM states of the workload, in order; empty: OPEN, DRAINING, CLOSING, CLOSED.
    pub fsm_states: Vec<String>,
    /// Old names of FSM states to the present ones.
    pub fsm_aliases: Vec<(String, String)>,
    /// Zone of HAProxy's log where its stamps carry none, as an IANA name.
    pub haproxy_log_zone: Option<String>,
    /// Keys of Envoy's JSON access log: Istio's key and the site's own, `("response_code", "status")`.
    pub envoy_json_keys: Vec<(String, String)>,
    /// Names of further probes that write `<name>.log`.
    pub log_probes: Vec<String>,
    /// Patterns to look for in container logs: the probe's name and the regular expression.
    pub patterns: Vec<(String, regex::Regex)>,
}

/// Reads every known file of a run folder.
///
/// A file that is missing, empty, cut or garbage becomes a note; the error is only for a folder that cannot be
/// listed at all. `meta.json` and `truth/` are answers and are never opened.
pub fn read(folder: &Path, options: &ReadOptions) -> io::Result<Evidence> {
    reader::read(folder, options)
}

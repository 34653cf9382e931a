//! Facts, attempts, fates, orders and assertions: three-valued opinions with their reasons.
//!
//! From a [`crate::timeline::Timeline`] to a [`Report`], the content of `verdict.json`. Nothing here reads a
//! clock: the same evidence gives the same bytes.

pub mod assertion;
pub mod attempt;
pub mod capture;
pub mod clock;
pub mod fact;
pub mod fate;
pub mod judge;
pub mod load;
pub mod mutate;
pub mod order;

use serde::{Deserialize, Serialize};

use crate::time::Bracket;
use crate::timeline::Timeline;

/// What a claim came to. In a list FAIL outranks INCONCLUSIVE, which outranks PASS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Shown to hold.
    Pass,
    /// The evidence cannot decide.
    Inconclusive,
    /// Shown not to hold.
    Fail,
}

impl Outcome {
    /// FAIL over INCONCLUSIVE over PASS; `None` for an empty list: nothing was claimed.
    pub fn of_all(outcomes: impl IntoIterator<Item = Self>) -> Option<Self> {
        outcomes.into_iter().max()
    }
}

/// The verdict of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// Every assertion passed (an expected failure was reproduced).
    Pass,
    /// An assertion or an awaited condition failed.
    Fail,
    /// The evidence cannot decide.
    Inconclusive,
    /// Preflight, environment or a step that could not be carried out: nothing was proved about the drain.
    Invalid,
    /// The scenario's only subject is a probe that no host can run.
    Skipped,
}

/// The content of `verdict.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `null` for a folder without a scenario.
    pub verdict: Option<RunVerdict>,
    /// The exit code that `gtrun` ends with.
    pub exit: i32,
    /// Name of the scenario, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// `sim`, `lab`, the name of a cluster environment; `null` when the folder does not say.
    pub environment: Option<String>,
    /// Evidence of the simulator: proves nothing about a real system.
    pub simulated: bool,
    /// The run was ended by a signal; what could be judged was judged.
    pub interrupted: bool,
    /// One sentence: what happened.
    pub summary: String,
    /// The assertions, and awaited conditions that failed, in the scenario's order.
    pub assertions: Vec<Finding>,
    /// Single requests.
    pub requests: Vec<RequestFinding>,
    /// Loads.
    pub loads: Vec<LoadFinding>,
    /// The order of `active_zero` and `lb_down`.
    pub order: OrderFinding,
    /// What is known about the clocks of the files.
    pub clocks: Vec<ClockFinding>,
    /// What a reader of the verdict must know.
    pub warnings: Vec<String>,
    /// `done`, or `failed: ...`; `null` when nothing was changed or the run is not over.
    pub cleanup: Option<String>,
}

/// One assertion's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The expression, as written.
    pub assert: String,
    /// The author's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The author's reason for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// `assertion`, or `step` for a `wait_for`, `poll` or `expect` that is a claim.
    pub kind: FindingKind,
    /// The outcome.
    pub verdict: Outcome,
    /// How far it was from the other answer, seconds; `null` when there is no distance (a direct fact).
    pub margin_s: Option<f64>,
    /// Half the width of what the evidence allows for the margin, seconds.
    pub margin_error_s: Option<f64>,
    /// Where the error comes from: `envoy poll 204 ms`, `clock of lb 3 ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_budget: Vec<String>,
    /// One sentence.
    pub explanation: String,
    /// Why it is inconclusive, and the cheapest change that would settle it.
    pub reason: Option<String>,
    /// The events used.
    pub events: Vec<EventUsed>,
    /// Where it stands in the scenario file: byte offsets of the expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<(u32, u32)>,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// An entry of `assertions:`.
    Assertion,
    /// A step that is a claim.
    Step,
    /// `expected_failure: true`: at least one request was really disrupted.
    ExpectedFailure,
}

/// An event as it was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventUsed {
    /// As named in the assertion: `lb_down`, `ended(long)`.
    pub event: String,
    /// Its bracket on the reference clock; both `null` when it was not seen.
    #[serde(flatten)]
    pub at: Bracket,
    /// The sources that told of it: `haproxy.log`, `haproxy-stat-timeline.csv`.
    pub source: String,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFinding {
    /// Step id.
    pub id: String,
    /// The fate.
    pub fate: Fate,
    /// How it ended for its client.
    pub outcome: Option<crate::evidence::client::Outcome>,
    /// HTTP status that the client saw.
    pub status: Option<u16>,
    /// Why it was broken or lost.
    pub cause: Option<Cause>,
    /// How it was shown; names the direct fact where there is one.
    pub explanation: String,
    /// Why it is inconclusive, and what would settle it.
    pub reason: Option<String>,
    /// The attempts, by source.
    pub attempts: Vec<AttemptFinding>,
    /// How the target was found: `delete step, uid`, `only server that went DOWN after the delete`.
    pub target_by: Option<String>,
    /// How long it took, seconds.
    pub duration_s: Option<f64>,
    /// Bytes of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Which evidence the client's side comes from, when not its own file: `haproxy.log`, `run.log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_by: Option<String>,
}

/// One attempt as the sources tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFinding {
    /// HAProxy server, `null` for no server.
    pub server: Option<String>,
    /// Client's port.
    pub client_port: Option<u16>,
    /// Load balancer's own port towards the server.
    pub lb_port: Option<u16>,
    /// HAProxy's termination state.
    pub termination: Option<String>,
    /// Envoy's response flags.
    pub envoy_flags: Option<String>,
    /// It was on the target when it was told to stop.
    pub on_target: Option<bool>,
    /// Sent.
    pub started: Bracket,
    /// Over.
    pub ended: Bracket,
}

/// The fates of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// On the target when it was told to stop, and answered whole.
    Protected,
    /// There, not answered whole, and cut by the load balancer when it marked the server down or into maintenance.
    Broken,
    /// Cut at the target, then answered because the load balancer sent it elsewhere.
    Rescued,
    /// Not answered whole for another reason.
    Lost,
    /// It was elsewhere, or not yet there.
    NotInFlight,
    /// The evidence cannot say.
    Inconclusive,
}

/// Why a request was broken or lost: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The load balancer marked the server DOWN.
    LbDown,
    /// The load balancer put the server into maintenance.
    LbMaint,
    /// The pod's own drain closed its listener, or that very connection was closed or refused.
    ListenerClosed,
    /// `timeout server` of the load balancer (504).
    ServerTimeout,
    /// The pod ended with the request in it.
    PodKilled,
    /// The load balancer had no server.
    NoServer,
    /// The client gave up.
    ClientAbort,
    /// The client's own time limit.
    ClientTimeout,
    /// Connection refused.
    Refused,
    /// Lost on the way.
    Network,
    /// Nothing says why.
    Unknown,
}

/// A load's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadFinding {
    /// Step id, or the file's stem.
    pub id: String,
    /// Requests sent.
    pub requests: u64,
    /// Requests that were not answered whole with a status below 500.
    pub disrupted: u64,
    /// Disrupted over all, with the bounds of a 95 % Wilson interval.
    pub rate: Option<f64>,
    /// Lower and upper bound of the rate.
    pub rate_interval: Option<(f64, f64)>,
    /// Count by the client's outcome.
    pub by_outcome: std::collections::BTreeMap<String, u64>,
    /// Disrupted ones by cause.
    pub by_cause: std::collections::BTreeMap<String, u64>,
    /// Every disrupted request with what is known of it.
    pub lost: Vec<LostRequest>,
    /// Losses that the load's own file hides, found in other sources (a client that repeats by itself).
    pub hidden: u64,
    /// Worst and percentile latencies, seconds: `max`, `p50`, `p99`.
    pub latency_s: std::collections::BTreeMap<String, f64>,
    /// DOWN intervals of servers during the load.
    pub down_intervals: Vec<DownInterval>,
    /// What the numbers cannot show, and why they may be inconclusive.
    pub reason: Option<String>,
}

/// A disrupted request of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostRequest {
    /// Line of the load's file.
    pub line: u32,
    /// Sent.
    pub started: Bracket,
    /// Over.
    pub ended: Bracket,
    /// The client's outcome.
    pub outcome: crate::evidence::client::Outcome,
    /// Status.
    pub status: Option<u16>,
    /// Cause.
    pub cause: Cause,
    /// Server it was on.
    pub server: Option<String>,
    /// HAProxy's termination state.
    pub termination: Option<String>,
    /// Envoy's flags.
    pub envoy_flags: Option<String>,
}

/// A time in which a server was DOWN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DownInterval {
    /// Proxy and server: `istio-http-backend/worker1`.
    pub server: String,
    /// When it went down.
    pub from: Bracket,
    /// When it came up; open when it did not.
    pub until: Bracket,
    /// In-flight requests that were killed when it went down.
    pub killed: Option<u64>,
}

/// The order of `active_zero` and `lb_down`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderFinding {
    /// `before(active_zero, lb_down)`.
    pub active_zero_before_lb_down: Outcome,
    /// Why it is inconclusive.
    pub reason: Option<String>,
    /// How it was shown.
    pub explanation: String,
    /// The same for each target server.
    pub by_server: std::collections::BTreeMap<String, Outcome>,
}

/// What is known about one file's or host's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockFinding {
    /// File or host.
    pub clock: String,
    /// The clock it is compared with.
    pub against: String,
    /// Least and greatest offset, seconds; positive when this clock is ahead.
    pub offset_s: Option<(f64, f64)>,
    /// `exchange`, `messages`, `assumption`.
    pub by: String,
    /// How many messages tie it.
    pub ties: u64,
    /// *clocks disagree*, *foreign*: what is wrong with it.
    pub trouble: Option<String>,
}

/// What the evidence of a folder says, before any assertion is evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Single requests.
    pub requests: Vec<RequestFinding>,
    /// Loads.
    pub loads: Vec<LoadFinding>,
    /// The order over all targets.
    pub order: OrderFinding,
    /// The order by target, with its gap.
    pub by_target: Vec<(String, order::TargetOrder)>,
    /// The clocks.
    pub clocks: Vec<ClockFinding>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl Account {
    /// Judges fates, orders and loads.
    pub fn of(timeline: &Timeline<'_>) -> Self {
        let mut warnings = Vec::new();
        let requests: Vec<RequestFinding> = timeline
            .requests
            .single
            .iter()
            .map(|r| fate::of(timeline, r, &mut warnings))
            .collect();
        let by_target: Vec<(String, order::TargetOrder)> = timeline
            .targets
            .iter()
            .map(|t| (t.server.to_string(), order::of_target(timeline, t, &requests)))
            .collect();
        let clocks = clock::findings(timeline);
        warnings.extend(clock::warnings(timeline));
        Self {
            order: order::of_all(&by_target),
            loads: load::all(timeline),
            requests,
            by_target,
            clocks,
            warnings,
        }
    }
}

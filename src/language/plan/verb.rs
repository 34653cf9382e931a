use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Step, Template};
use crate::language::Id;
use crate::language::expression::Expression;
use crate::time::Duration;

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// One HTTP request through the entry point.
    Request(Request),
    /// Open-loop load in the background.
    Load(Load),
    /// Deletes a pod.
    DeletePod(DeletePod),
    /// Evicts a pod; a PodDisruptionBudget may refuse.
    EvictPod(DeletePod),
    /// Sets the number of replicas.
    Scale(Scale),
    /// Restarts the rollout.
    RolloutRestart(RolloutRestart),
    /// Cordons the target's node and evicts what runs there.
    DrainNode(DrainNode),
    /// Sets labels of the Deployment.
    Label(Label),
    /// A fixed time.
    Wait(Wait),
    /// Until an event has happened or a condition holds.
    WaitFor(WaitFor),
    /// Reads something, once or until a condition on the reply holds.
    Poll(Poll),
    /// A command in a container of the target.
    Exec(Exec),
    /// A command on a host.
    Ssh(Ssh),
    /// HAProxy statistics now.
    Snapshot(Snapshot),
    /// A named event on the timeline.
    Mark(Mark),
    /// Step lists side by side.
    Parallel(Parallel),
}

impl Verb {
    /// The verb, as in scenario files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Request(_) => "request",
            Self::Load(_) => "load",
            Self::DeletePod(_) => "delete_pod",
            Self::EvictPod(_) => "evict_pod",
            Self::Scale(_) => "scale",
            Self::RolloutRestart(_) => "rollout_restart",
            Self::DrainNode(_) => "drain_node",
            Self::Label(_) => "label",
            Self::Wait(_) => "wait",
            Self::WaitFor(_) => "wait_for",
            Self::Poll(_) => "poll",
            Self::Exec(_) => "exec",
            Self::Ssh(_) => "ssh",
            Self::Snapshot(_) => "snapshot",
            Self::Mark(_) => "mark",
            Self::Parallel(_) => "parallel",
        }
    }

    /// True when it acts on the cluster or a host: the first such step is the disturbance.
    pub const fn acts(&self) -> bool {
        match self {
            Self::DeletePod(_)
            | Self::EvictPod(_)
            | Self::Scale(_)
            | Self::RolloutRestart(_)
            | Self::DrainNode(_)
            | Self::Label(_)
            | Self::Exec(_)
            | Self::Ssh(_) => true,
            Self::Request(_)
            | Self::Load(_)
            | Self::Wait(_)
            | Self::WaitFor(_)
            | Self::Poll(_)
            | Self::Snapshot(_)
            | Self::Mark(_)
            | Self::Parallel(_) => false,
        }
    }
}

/// One HTTP request through the entry point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Path and query.
    pub path: Template,
    /// Method.
    pub method: Method,
    /// Headers in the order of the file.
    pub headers: Vec<Header>,
    /// Body.
    pub body: Option<Template>,
    /// The client gives up after this.
    pub timeout: Duration,
    /// The next step starts at once.
    pub background: bool,
    /// The connection it uses.
    pub connection: Connection,
    /// HTTP version.
    pub protocol: Protocol,
    /// A slow reader: most bytes of the body per second.
    pub read_rate: Option<u64>,
    /// Our side ends the stream after this; ended so, the outcome is `ok`.
    pub stop_after: Option<Duration>,
    /// The next step starts only when the request is seen in flight at the target.
    pub expect_in_flight: bool,
}

/// A header of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Name.
    pub name: String,
    /// Value.
    pub value: Template,
}

/// HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
    /// OPTIONS
    Options,
}

impl Method {
    /// As it is sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// The connection of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// A new one.
    New,
    /// Any kept one of this run, else a new one.
    Reused,
    /// The one that all requests with this name share.
    Named(Id),
}

/// The connections of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// A new one for each request.
    #[default]
    New,
    /// Kept ones.
    Reused,
}

/// HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1
    #[default]
    H1,
    /// HTTP/2
    H2,
}

/// Open-loop load in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Requests per second.
    pub rate: f64,
    /// Path and query.
    pub path: Template,
    /// Method.
    pub method: Method,
    /// Headers in the order of the file.
    pub headers: Vec<Header>,
    /// Body.
    pub body: Option<Template>,
    /// New or kept connections.
    pub connections: Connections,
    /// HTTP version.
    pub protocol: Protocol,
    /// When it stops.
    pub end: LoadEnd,
    /// The client gives up a request after this.
    pub request_timeout: Duration,
}

/// When a load stops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEnd {
    /// After this time.
    Duration(Duration),
    /// When this holds.
    Until(Expression),
    /// When the last step has ended.
    Steps,
}

/// Deletes or evicts a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletePod {
    /// Grace period of the call, in whole seconds; `None`: the pod's own.
    pub grace: Option<Duration>,
    /// Wait until the pod is gone.
    pub wait: bool,
    /// A label selector for another pod than the target.
    pub pod: Option<Template>,
}

/// Sets the number of replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// To this number.
    pub replicas: u32,
    /// Which pod must go when the number falls.
    pub victim: Victim,
    /// Wait until as many pods are ready and the others gone.
    pub wait: bool,
}

/// Which pod must go when the number of replicas falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Victim {
    /// Whichever the controller takes.
    #[default]
    Any,
    /// The target: its `pod-deletion-cost` is lowered.
    Target,
}

/// Restarts the rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutRestart {
    /// Wait until the rollout is finished.
    pub wait: bool,
}

/// Cordons the target's node and evicts what runs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainNode {
    /// Grace period of the evictions; `None`: each pod's own.
    pub grace: Option<Duration>,
    /// Wait until the pods are gone.
    pub wait: bool,
}

/// Sets labels of the Deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// By label.
    pub labels: IndexMap<String, Template>,
}

/// A fixed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// This long.
    pub duration: Duration,
}

/// Until an event has happened or a condition holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitFor {
    /// What is awaited.
    pub condition: Expression,
}

/// Reads something, once or until a condition on the reply holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// What is read.
    pub read: PollRead,
    /// Time between reads.
    pub every: Duration,
    /// Until this holds of the last reply; `None`: read once.
    pub until: Option<Expression>,
}

/// What a poll reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PollRead {
    /// GET of this path through the entry point.
    Http {
        /// Path and query.
        path: Template,
    },
    /// A command in a container of the target.
    Exec(Exec),
}

/// A command in a container of the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Key of the environment's `containers`.
    pub container: Id,
    /// Command and arguments; never given to a shell.
    pub argv: Vec<Template>,
    /// Name of the file in the run folder that keeps its output.
    pub save_as: Option<String>,
}

/// A command on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// Key of the environment's `hosts`.
    pub host: Template,
    /// With `sudo -n`.
    pub sudo: bool,
    /// Command and arguments; never given to a shell.
    pub argv: Vec<Template>,
    /// Name of the file in the run folder that keeps its output.
    pub save_as: Option<String>,
}

/// HAProxy statistics now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Name in the file name: `haproxy-stat-<name>.csv`.
    pub name: Id,
}

/// A named event on the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The name that `mark(M)` says.
    pub name: Id,
}

/// Step lists side by side; one that fails stops the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// By name.
    pub branches: IndexMap<Id, Vec<Step>>,
}

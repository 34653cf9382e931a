use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AntiAffinity, CountOrPercent, HpaPresence, OnMarkedDown, Prestop, SidecarKind};
use crate::language::Id;
use crate::time::Duration;

/// What `sim` and `lab` are built as. Everything has a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// What the workload does when it is told to stop: `current`, `improved` or `nolb`.
    pub mode: String,
    /// Pods of the Deployment.
    pub replicas: u32,
    /// The pods.
    pub pod: PodWorld,
    /// Nodes by name.
    pub nodes: IndexMap<String, NodeWorld>,
    /// The load balancer.
    pub load_balancer: LoadBalancerWorld,
    /// The Deployment's strategy.
    pub rollout: RolloutWorld,
    /// The network.
    pub network: NetworkWorld,
    /// Clocks by host; a host that is not named has the reference clock.
    pub clocks: IndexMap<String, ClockWorld>,
    /// Other clients.
    pub traffic: TrafficWorld,
    /// What commands of `exec` and `ssh` do in the simulator; an unknown one exits with 127.
    pub exec: Vec<ExecEffect>,
}

/// The pods of a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodWorld {
    /// terminationGracePeriodSeconds.
    pub grace: Duration,
    /// preStop sleeps by container, beside what the mode does.
    pub prestop: IndexMap<Id, Prestop>,
    /// How the proxy runs.
    pub sidecar: SidecarKind,
    /// Environment variables by container.
    pub env: IndexMap<Id, IndexMap<String, String>>,
    /// The proxy's terminationDrainDuration.
    pub termination_drain: Duration,
    /// minAvailable of a PodDisruptionBudget; `None`: there is none.
    pub pdb_min_available: Option<u32>,
    /// Whether an autoscaler targets the Deployment.
    pub hpa: HpaPresence,
    /// Time from CLOSING to CLOSED: the wait for the load balancer to look away.
    pub lb_wait: Duration,
    /// The workload's own cap on waiting for zero; `None`: as long as it takes.
    pub drain_max: Option<Duration>,
    /// When the workload asks Envoy to drain its listeners.
    pub drain_listeners: DrainListeners,
    /// Envoy's `--drain-time-s`.
    pub drain_time: Duration,
}

/// When the workload asks Envoy to drain its listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DrainListeners {
    /// Never.
    Never,
    /// When DRAINING begins.
    AtDraining,
    /// When CLOSING begins.
    AtClosing,
}

/// A node of a world.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeWorld {
    /// Nothing new is scheduled on it.
    pub cordoned: bool,
    /// Taints that the workload does not tolerate, as `key=value:effect`.
    pub taints: Vec<String>,
}

/// The load balancer of a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancerWorld {
    /// HAProxy's version: `2.6` to `3.4`; its manners change with it.
    pub version: String,
    /// Interval of health checks.
    pub inter: Duration,
    /// Interval after a failed check, while the server is UP.
    pub fastinter: Option<Duration>,
    /// Interval while the server is DOWN.
    pub downinter: Option<Duration>,
    /// Where in the cycle of checks the run begins; `None`: by chance of the seed.
    pub phase: Option<Duration>,
    /// Failed checks until DOWN.
    pub fall: u32,
    /// Good checks until UP.
    pub rise: u32,
    /// What happens to sessions of a server that is marked down.
    pub on_marked_down: OnMarkedDown,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `agent-check`.
    pub agent_check: bool,
    /// `option redispatch`.
    pub redispatch: bool,
    /// `retry-on`, in HAProxy's words.
    pub retry_on: Vec<String>,
    /// `timeout server`.
    pub timeout_server: Duration,
    /// Format of its log.
    pub log: HaproxyLogFormat,
}

/// Format of HAProxy's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HaproxyLogFormat {
    /// Microseconds and zone.
    Iso,
    /// Microseconds and zone.
    Rfc5424,
    /// Whole seconds, local time, no year.
    Rfc3164,
    /// No log.
    None,
}

/// The Deployment's strategy in a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutWorld {
    /// minReadySeconds.
    pub min_ready: Duration,
    /// maxSurge.
    pub max_surge: CountOrPercent,
    /// maxUnavailable.
    pub max_unavailable: CountOrPercent,
    /// Required pod anti-affinity.
    pub anti_affinity: AntiAffinity,
}

/// The network of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkWorld {
    /// Round trip between any two hosts.
    pub rtt: Duration,
}

/// A host's clock, against the reference.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockWorld {
    /// It is ahead by this; negative: behind.
    pub offset: Duration,
    /// It gains this many parts per million.
    pub drift: f64,
}

/// Other clients of a world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficWorld {
    /// Their requests per second, over all servers.
    pub rate: f64,
}

/// What a command does in the simulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecEffect {
    /// The command, exactly.
    pub argv: Vec<String>,
    /// What it does.
    pub effect: Effect,
    /// Its standard output.
    #[serde(default)]
    pub stdout: String,
    /// Its exit code.
    #[serde(default)]
    pub exit: i32,
}

/// An effect of a command in the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// None but its output.
    #[default]
    None,
    /// The health page answers 503 from now on.
    FailReadiness,
    /// The health page answers as the FSM says again.
    RestoreReadiness,
    /// The agent check answers `drain`.
    AgentDrain,
    /// The agent check answers `ready`.
    AgentReady,
    /// The FSM begins to drain as if preStop had been called.
    BeginDrain,
    /// HAProxy is reloaded.
    ReloadHaproxy,
}

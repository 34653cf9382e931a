use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::language::plan::{
    CountOrPercent, DrainListeners, Effect, HaproxyLogFormat, HpaPresence, OnMarkedDown, SidecarKind,
};
use crate::language::scenario::{IdText, RetryOn};
use crate::language::value::{AsWritten, At, Count, Flag, Offset, Opt, Plain, PositiveCount, Rate, Ratio};
use crate::time::Duration;

/// What `sim` and `lab` are built as. What it does not say comes from the scenario's preconditions, and what neither says is: mode
/// improved, 1 replica, HAProxy 2.6 with inter 2s, fall 2, rise 2 and shutdown-sessions, 500us between hosts, clocks equal.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorldFile {
    /// What the workload does when it is told to stop: current, improved or nolb.
    #[serde(default)]
    pub mode: Opt<At<String>>,
    /// Pods of the Deployment.
    #[serde(default)]
    pub replicas: Opt<Plain<Count>>,
    /// The pods.
    #[serde(default)]
    pub pod: Opt<PodWorldFile>,
    /// Nodes by name. Default worker1, worker2.
    #[serde(default)]
    pub nodes: IndexMap<At<String>, NodeFile>,
    /// The load balancer.
    #[serde(default)]
    pub load_balancer: Opt<LoadBalancerWorldFile>,
    /// The Deployment's strategy.
    #[serde(default)]
    pub rollout: Opt<RolloutWorldFile>,
    /// The network.
    #[serde(default)]
    pub network: Opt<NetworkFile>,
    /// Clocks by host, against the reference: `{ lb: { offset: 20ms } }`.
    #[serde(default)]
    pub clocks: IndexMap<At<String>, ClockFile>,
    /// Other clients.
    #[serde(default)]
    pub traffic: Opt<TrafficFile>,
    /// What commands of `exec` and `ssh` do in the simulator; an unknown one exits with 127.
    #[serde(default)]
    pub exec: Opt<Vec<ExecEffectFile>>,
}

/// The pods of a world.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodWorldFile {
    /// terminationGracePeriodSeconds. Default 210s.
    #[serde(default)]
    pub grace: Opt<Plain<Duration>>,
    /// preStop sleeps by container.
    #[serde(default)]
    pub prestop: IndexMap<At<IdText>, PlainPrestop>,
    /// How the proxy runs. Default container.
    #[serde(default)]
    pub sidecar: Opt<SidecarKind>,
    /// Environment variables by container.
    #[serde(default)]
    pub env: IndexMap<At<IdText>, IndexMap<String, Plain<AsWritten>>>,
    /// terminationDrainDuration of the proxy. Default 5s.
    #[serde(default)]
    pub termination_drain: Opt<Plain<Duration>>,
    /// minAvailable of a PodDisruptionBudget. Default: there is none.
    #[serde(default)]
    pub pdb_min_available: Opt<Plain<Count>>,
    /// allowed: a HorizontalPodAutoscaler targets the Deployment. Default absent.
    #[serde(default)]
    pub hpa: Opt<HpaPresence>,
    /// Time from CLOSING to CLOSED, in which the load balancer looks away. Default 6s.
    #[serde(default)]
    pub lb_wait: Opt<Plain<Duration>>,
    /// The workload's own cap on waiting for zero. Default: none.
    #[serde(default)]
    pub drain_max: Opt<Plain<Duration>>,
    /// When the workload asks Envoy to drain its listeners. Default at_closing.
    #[serde(default)]
    pub drain_listeners: Opt<DrainListeners>,
    /// Envoy's --drain-time-s. Default 45s.
    #[serde(default)]
    pub drain_time: Opt<Plain<Duration>>,
}

/// A preStop hook.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlainPrestop {
    /// It sleeps this long.
    pub sleep: Plain<Duration>,
}

/// A node of a world.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// true: nothing new is scheduled on it. Default false.
    #[serde(default)]
    pub cordoned: Opt<Plain<Flag>>,
    /// Taints that the workload does not tolerate, as key=value:effect.
    #[serde(default)]
    pub taints: Vec<String>,
}

/// The load balancer of a world.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancerWorldFile {
    /// HAProxy's version, in quotes: "2.6" (default) to "3.4".
    #[serde(default)]
    pub version: Opt<Plain<AsWritten>>,
    /// Interval of health checks. Default 2s.
    #[serde(default)]
    pub inter: Opt<Plain<Duration>>,
    /// Interval after a failed check, while the server is UP. Default: as inter.
    #[serde(default)]
    pub fastinter: Opt<Plain<Duration>>,
    /// Interval while the server is DOWN. Default: as inter.
    #[serde(default)]
    pub downinter: Opt<Plain<Duration>>,
    /// Where in the cycle of checks the run begins. Default: by chance of the seed.
    #[serde(default)]
    pub phase: Opt<Plain<Duration>>,
    /// Failed checks until DOWN. Default 2.
    #[serde(default)]
    pub fall: Opt<Plain<PositiveCount>>,
    /// Good checks until UP. Default 2.
    #[serde(default)]
    pub rise: Opt<Plain<PositiveCount>>,
    /// What happens to the sessions of a server that is marked down. Default shutdown-sessions.
    #[serde(default)]
    pub on_marked_down: Opt<OnMarkedDown>,
    /// `http-check disable-on-404`. Default false.
    #[serde(default)]
    pub disable_on_404: Opt<Plain<Flag>>,
    /// `agent-check`. Default false.
    #[serde(default)]
    pub agent_check: Opt<Plain<Flag>>,
    /// `option redispatch`. Default false.
    #[serde(default)]
    pub redispatch: Opt<Plain<Flag>>,
    /// `retry-on`. Default conn-failure.
    #[serde(default)]
    pub retry_on: Vec<RetryOn>,
    /// `timeout server`. Default 5m.
    #[serde(default)]
    pub timeout_server: Opt<Plain<Duration>>,
    /// Format of its log. Default iso.
    #[serde(default)]
    pub log: Opt<HaproxyLogFormat>,
}

/// The Deployment's strategy in a world.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutWorldFile {
    /// minReadySeconds. Default 0s.
    #[serde(default)]
    pub min_ready: Opt<Plain<Duration>>,
    /// maxSurge. Default 0.
    #[serde(default)]
    pub max_surge: Opt<Plain<CountOrPercent>>,
    /// maxUnavailable. Default 1.
    #[serde(default)]
    pub max_unavailable: Opt<Plain<CountOrPercent>>,
    /// Required pod anti-affinity: none, hostname, or a topology key. Default hostname.
    #[serde(default)]
    pub anti_affinity: Opt<At<String>>,
}

/// The network of a world.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkFile {
    /// Round trip between any two hosts. Default 500us.
    #[serde(default)]
    pub rtt: Opt<Plain<Duration>>,
}

/// A host's clock, against the reference.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockFile {
    /// It is ahead by this; negative: behind. Default 0s.
    #[serde(default)]
    pub offset: Opt<Plain<Offset>>,
    /// It gains this many parts per million. Default 0.
    #[serde(default)]
    pub drift: Opt<Plain<Ratio>>,
}

/// Other clients of a world.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficFile {
    /// Their requests per second, over all servers. Default 0/s.
    pub rate: Plain<Rate>,
}

/// What a command does in the simulator.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecEffectFile {
    /// The command, exactly.
    #[schemars(length(min = 1))]
    pub argv: Vec<Plain<AsWritten>>,
    /// What it does. Default none.
    #[serde(default)]
    pub effect: Opt<Effect>,
    /// Its standard output.
    #[serde(default)]
    pub stdout: Opt<String>,
    /// Its exit code. Default 0.
    #[serde(default)]
    pub exit: Opt<i32>,
}

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::language::Id;
use crate::time::Duration;

/// Facts that must be so before anything is touched. `None` and empty: nothing is claimed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preconditions {
    /// Value of the Deployment's mode label.
    pub mode: Option<String>,
    /// spec, status and ready, and no other pod of the selector terminating.
    pub replicas: Option<u32>,
    /// The pod template.
    pub pod: PodFacts,
    /// The load balancer's configuration.
    pub load_balancer: LoadBalancerFacts,
    /// How the Deployment rolls out.
    pub rollout: RolloutFacts,
}

/// Facts of the pod template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodFacts {
    /// terminationGracePeriodSeconds.
    pub grace: Option<Duration>,
    /// preStop hooks by container (key of the environment's `containers`).
    pub prestop: IndexMap<Id, Prestop>,
    /// How the proxy runs.
    pub sidecar: Option<SidecarKind>,
    /// Environment variables by container.
    pub env: IndexMap<Id, IndexMap<String, String>>,
    /// The proxy's terminationDrainDuration.
    pub termination_drain: Option<Duration>,
    /// minAvailable of a PodDisruptionBudget that selects the pod.
    pub pdb_min_available: Option<u32>,
    /// Whether a HorizontalPodAutoscaler may target the Deployment; never one by default.
    pub hpa: HpaPresence,
    /// The workload's own cap on waiting for zero; `None`: it waits as long as it takes.
    pub drain_max: Option<Duration>,
}

/// A preStop hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prestop {
    /// It sleeps this long.
    pub sleep: Duration,
}

/// How the proxy runs in the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SidecarKind {
    /// A plain container.
    Container,
    /// An init container with `restartPolicy: Always`: it ends after the others.
    Native,
}

/// Whether a HorizontalPodAutoscaler may target the Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HpaPresence {
    /// None may.
    #[default]
    Absent,
    /// One may.
    Allowed,
}

/// Facts of the load balancer's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadBalancerFacts {
    /// Interval of health checks.
    pub inter: Option<Duration>,
    /// Interval after a failed check, while the server is UP.
    pub fastinter: Option<Duration>,
    /// Interval while the server is DOWN.
    pub downinter: Option<Duration>,
    /// Failed checks until DOWN.
    pub fall: Option<u32>,
    /// Good checks until UP.
    pub rise: Option<u32>,
    /// What happens to sessions of a server that is marked down.
    pub on_marked_down: Option<OnMarkedDown>,
    /// `http-check disable-on-404`.
    pub disable_on_404: Option<bool>,
    /// `agent-check`.
    pub agent_check: Option<bool>,
    /// `option redispatch`.
    pub redispatch: Option<bool>,
    /// `retry-on`, in HAProxy's words; empty: nothing is claimed.
    pub retry_on: Vec<String>,
    /// `timeout server`.
    pub timeout_server: Option<Duration>,
}

/// `on-marked-down`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OnMarkedDown {
    /// Its sessions are cut.
    #[serde(rename = "shutdown-sessions")]
    ShutdownSessions,
    /// They live on.
    #[serde(rename = "none")]
    None,
}

/// Facts of the Deployment's strategy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolloutFacts {
    /// minReadySeconds.
    pub min_ready: Option<Duration>,
    /// maxSurge.
    pub max_surge: Option<CountOrPercent>,
    /// maxUnavailable.
    pub max_unavailable: Option<CountOrPercent>,
    /// Required pod anti-affinity among the workload's own pods.
    pub anti_affinity: Option<AntiAffinity>,
}

/// A number of pods, or a share of the replicas (`25%`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountOrPercent {
    /// Pods.
    Count(u32),
    /// Percent of the replicas.
    Percent(u32),
}

/// Required pod anti-affinity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AntiAffinity {
    /// None.
    None,
    /// No two on a node.
    Hostname,
    /// No two in a domain of this topology key.
    Key(String),
}

/// What a run may set, and then restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ensure {
    /// The number of replicas.
    Replicas,
}

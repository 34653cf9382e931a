use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::IdText;
use crate::language::plan::{CountOrPercent, Ensure, HpaPresence, OnMarkedDown, SidecarKind};
use crate::language::value::{AsWritten, At, Count, Flag, Opt, PositiveCount, Templated};
use crate::time::Duration;

/// Facts, checked before anything is touched. In a cluster each is compared with what is there, and one that cannot be read is a
/// miss; `sim` and `lab` build their world from them.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preconditions {
    /// Value of the Deployment's metadata label `mode` (the environment's `mode_label`).
    #[serde(default)]
    pub mode: Opt<Templated<String>>,
    /// Number of pods: spec, status and ready, and no other pod of the selector terminating.
    #[serde(default)]
    pub replicas: Opt<Templated<Count>>,
    /// Facts to set when they differ, and to restore at the end.
    #[serde(default)]
    pub ensure: Opt<Vec<At<Ensure>>>,
    /// Facts of the pod template.
    #[serde(default)]
    pub pod: Opt<PodFacts>,
    /// Facts of the load balancer's configuration.
    #[serde(default)]
    pub load_balancer: Opt<LoadBalancerFacts>,
    /// How the Deployment rolls out.
    #[serde(default)]
    pub rollout: Opt<RolloutFacts>,
}

/// Facts of the pod template.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodFacts {
    /// terminationGracePeriodSeconds.
    #[serde(default)]
    pub grace: Opt<Templated<Duration>>,
    /// preStop hooks by container: `{ app: { sleep: 15s } }`.
    #[serde(default)]
    pub prestop: IndexMap<At<IdText>, Prestop>,
    /// How the proxy runs: a plain container, or native: an init container with restartPolicy Always.
    #[serde(default)]
    pub sidecar: Opt<SidecarKind>,
    /// Environment variables by container: `{ sidecar: { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true" } }`.
    #[serde(default)]
    pub env: IndexMap<At<IdText>, IndexMap<String, Templated<AsWritten>>>,
    /// terminationDrainDuration of the proxy.
    #[serde(default)]
    pub termination_drain: Opt<Templated<Duration>>,
    /// minAvailable of a PodDisruptionBudget that selects the pod.
    #[serde(default)]
    pub pdb_min_available: Opt<Templated<Count>>,
    /// Whether a HorizontalPodAutoscaler may target the Deployment. Default absent.
    #[serde(default)]
    pub hpa: Opt<HpaPresence>,
    /// The workload's own cap on waiting for zero. Default: none, it waits as long as it takes.
    #[serde(default)]
    pub drain_max: Opt<Templated<Duration>>,
}

/// A preStop hook.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prestop {
    /// It sleeps this long.
    pub sleep: Templated<Duration>,
}

/// Facts of the load balancer's configuration, in HAProxy's words.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancerFacts {
    /// Interval of health checks.
    #[serde(default)]
    pub inter: Opt<Templated<Duration>>,
    /// Interval after a failed check, while the server is UP. Default: as `inter`.
    #[serde(default)]
    pub fastinter: Opt<Templated<Duration>>,
    /// Interval while the server is DOWN. Default: as `inter`.
    #[serde(default)]
    pub downinter: Opt<Templated<Duration>>,
    /// Failed checks until DOWN.
    #[serde(default)]
    pub fall: Opt<Templated<PositiveCount>>,
    /// Good checks until UP.
    #[serde(default)]
    pub rise: Opt<Templated<PositiveCount>>,
    /// What happens to the sessions of a server that is marked down.
    #[serde(default)]
    pub on_marked_down: Opt<OnMarkedDown>,
    /// `http-check disable-on-404`: 404 asks for no new requests.
    #[serde(default)]
    pub disable_on_404: Opt<Templated<Flag>>,
    /// `agent-check`.
    #[serde(default)]
    pub agent_check: Opt<Templated<Flag>>,
    /// `option redispatch`.
    #[serde(default)]
    pub redispatch: Opt<Templated<Flag>>,
    /// `retry-on`: what makes HAProxy send a request again.
    #[serde(default)]
    pub retry_on: Vec<RetryOn>,
    /// `timeout server`.
    #[serde(default)]
    pub timeout_server: Opt<Templated<Duration>>,
}

/// A word of HAProxy's `retry-on`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryOn(pub String);

/// The words of HAProxy's `retry-on`; a status stands without quotes.
const RETRY_ON: [&str; 7] = [
    "none",
    "conn-failure",
    "empty-response",
    "junk-response",
    "response-timeout",
    "0rtt-rejected",
    "all-retryable-errors",
];
const RETRY_ON_STATUS: [u16; 12] = [401, 403, 404, 408, 421, 425, 429, 500, 501, 502, 503, 504];

impl<'de> Deserialize<'de> for RetryOn {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let found = crate::language::value::Plain::<AsWritten>::deserialize(d)?;
        Ok(Self(found.value.0))
    }
}

impl JsonSchema for RetryOn {
    fn schema_name() -> Cow<'static, str> {
        "RetryOn".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = RETRY_ON.iter().map(|word| serde_json::json!(word));
        let words: Vec<serde_json::Value> = words
            .chain(RETRY_ON_STATUS.iter().map(|status| serde_json::json!(status)))
            .collect();
        json_schema!({ "enum": words })
    }
}

/// How the Deployment rolls out.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutFacts {
    /// minReadySeconds: time between Ready and the next deletion; the load balancer needs `rise * inter`.
    #[serde(default)]
    pub min_ready: Opt<Templated<Duration>>,
    /// maxSurge.
    #[serde(default)]
    pub max_surge: Opt<Templated<CountOrPercent>>,
    /// maxUnavailable.
    #[serde(default)]
    pub max_unavailable: Opt<Templated<CountOrPercent>>,
    /// Required pod anti-affinity among the workload's own pods: none, hostname, or a topology key.
    #[serde(default)]
    pub anti_affinity: Opt<Templated<String>>,
}

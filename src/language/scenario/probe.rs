use schemars::JsonSchema;
use serde::Deserialize;

use super::IdText;
use crate::language::one_of::one_of;
use crate::language::value::{At, Flag, Opt, Plain, Templated};
use crate::time::Duration;

one_of! {
    /// A probe: one kind with its options.
    Probe,
    /// What a probe watches, and how.
    ProbeKind, "a probe", "kind";
    common {
        /// false: the run may go on without it, and assertions that need it are then inconclusive. Default true: a probe that the
        /// file names must start.
        required: Plain<Flag>,
    }
    kinds {
        /// Follows the log of a container of the target. Shows drain, transition, drain_listeners, health_fail, sigterm, log.
        container_log => ContainerLog(ContainerLog),
        /// Samples Envoy's in-flight gauges. Shows active, downstream, upstream, active_zero, first_active_zero.
        envoy_active => EnvoyActive(Every),
        /// Samples HAProxy's `show stat`. Shows lb_status, lb_down and its relatives, down_time.
        haproxy_stat => HaproxyStat(Every),
        /// Follows HAProxy's log. Shows lb_down and its relatives with fields, health_fail, termination states.
        haproxy_log => HaproxyLog(NoOptions),
        /// Captures SYN, FIN and RST packets. Shows rst, cut.
        rst_capture => RstCapture(RstCapture),
        /// Watches pods, endpoints and events of the workload. Shows pod_gone and its relatives, ready_replicas, rollout_finished.
        pod_watch => PodWatch(NoOptions),
        /// Polls the health page of the target. Shows health, health_fail.
        health => Health(Every),
    }
}

/// No options: `{}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}

/// Follows the log of a container of the target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerLog {
    /// A key of the environment's `containers`: app, hc, sidecar.
    pub container: At<IdText>,
}

/// How often a value is read.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Every {
    /// Time between samples. Default: envoy_active 200ms, haproxy_stat 500ms, health 1s.
    #[serde(default)]
    pub every: Opt<Templated<Duration>>,
}

/// Captures SYN, FIN and RST packets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RstCapture {
    /// Hosts or groups of the environment. Default: lb, workers.
    #[serde(default)]
    pub hosts: Opt<Vec<At<String>>>,
}

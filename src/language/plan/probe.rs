use serde::{Deserialize, Serialize};

use crate::diagnostic::Span;
use crate::language::Id;
use crate::time::Duration;

/// Something that is watched in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Its name: `hc`, `active`, `lb`, ...
    pub name: Id,
    /// What it watches, and how.
    pub kind: ProbeKind,
    /// The run may not go on without it: the file names it and does not say `required: false`.
    pub required: bool,
    /// Its place in the scenario; `None` when it comes from the standard set.
    pub span: Option<Span>,
}

/// What a probe watches, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// Follows the log of a container of the target.
    ContainerLog {
        /// Key of the environment's `containers`.
        container: Id,
    },
    /// Samples Envoy's in-flight gauges.
    EnvoyActive {
        /// Time between samples.
        every: Duration,
    },
    /// Samples HAProxy's `show stat`.
    HaproxyStat {
        /// Time between samples.
        every: Duration,
    },
    /// Follows HAProxy's log.
    HaproxyLog,
    /// Captures SYN, FIN and RST packets.
    RstCapture {
        /// Names of hosts, groups already replaced.
        hosts: Vec<String>,
    },
    /// Watches pods, endpoints and events of the workload.
    PodWatch,
    /// Polls the health page of the target.
    Health {
        /// Time between polls.
        every: Duration,
    },
}

impl ProbeKind {
    /// The kind's name, as in scenario files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ContainerLog { .. } => "container_log",
            Self::EnvoyActive { .. } => "envoy_active",
            Self::HaproxyStat { .. } => "haproxy_stat",
            Self::HaproxyLog => "haproxy_log",
            Self::RstCapture { .. } => "rst_capture",
            Self::PodWatch => "pod_watch",
            Self::Health { .. } => "health",
        }
    }
}

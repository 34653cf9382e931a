use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::World;
use crate::language::Id;
use crate::time::Duration;

/// Where a run happens. `sim` and `lab` have all of it too, with names of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// `sim`, `lab`, or the name of the file.
    pub name: String,
    /// What is real.
    pub kind: EnvironmentKind,
    /// Path of the file it was read from; `None` for the built-in `sim` and `lab`.
    pub file: Option<String>,
    /// kubeconfig context; always present in a cluster.
    pub context: Option<String>,
    /// The workload.
    pub workload: Workload,
    /// The entry point that requests go to.
    pub entry: Entry,
    /// The load balancer.
    pub load_balancer: LoadBalancer,
    /// Hosts by name.
    pub hosts: IndexMap<String, Host>,
    /// States of the workload's FSM.
    pub fsm: Fsm,
    /// Bounds for the clocks.
    pub clocks: Clocks,
    /// Seed of the simulator's chances.
    pub seed: u64,
    /// What `sim` and `lab` are built as: the defaults, then the scenario's preconditions, then the file's `world`. `None` in a
    /// cluster, which is as it is.
    pub world: Option<World>,
}

impl Environment {
    /// True when nothing of it is real.
    pub fn simulated(&self) -> bool {
        self.kind == EnvironmentKind::Sim
    }

    /// Hosts of a group, or the host of this name, in the order of the file.
    pub fn hosts_of(&self, group_or_name: &str) -> Vec<&str> {
        let named = self
            .hosts
            .iter()
            .filter(|(name, host)| *name == group_or_name || host.groups.iter().any(|g| g == group_or_name));
        named.map(|(name, _)| name.as_str()).collect()
    }
}

/// What is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentKind {
    /// Nothing: a model in virtual time.
    Sim,
    /// HAProxy, Envoy, sshd, tcpdump and TCP on this machine.
    Lab,
    /// Everything.
    Cluster,
}

impl EnvironmentKind {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Lab => "lab",
            Self::Cluster => "cluster",
        }
    }
}

impl std::fmt::Display for EnvironmentKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The Deployment that is disturbed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Namespace.
    pub namespace: String,
    /// Name of the Deployment.
    pub deployment: String,
    /// Label of the Deployment's metadata that names the mode.
    pub mode_label: String,
    /// Names in the pod by the names that scenarios use: `app`, `hc`, `sidecar`.
    pub containers: IndexMap<Id, String>,
    /// Envoy's admin port on the pod's loopback.
    pub envoy_admin: u16,
    /// The pod's port that the load balancer sends requests and checks to.
    pub port: u16,
    /// Path of the health page.
    pub health_path: String,
}

/// The entry point that requests go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Scheme, host and, when not the default, port; no path.
    pub url: String,
    /// Address to connect to instead of resolving the host; Host and SNI stay those of the url.
    pub connect_to: Option<String>,
    /// PEM file of the authority that signed the entry's certificate; resolved against the environment file.
    pub ca_file: Option<String>,
}

/// The load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancer {
    /// Key of `hosts`.
    pub host: String,
    /// Its admin socket on that host.
    pub socket: String,
    /// Its configuration file on that host.
    pub config: Option<String>,
    /// Where its log is.
    pub log: Option<LogSource>,
    /// `pxname` of the backend, exactly.
    pub backend: String,
    /// `svname` of the server by node name.
    pub servers: IndexMap<String, String>,
    /// Timers, where the configuration cannot be read.
    pub facts: super::LoadBalancerFacts,
}

/// Where a log is read on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// A unit of the journal.
    Journal(String),
    /// A file; the zone of its stamps when they carry none (IANA name).
    File {
        /// Path on the host.
        path: String,
        /// `Asia/Seoul`; `None` when the stamps say it or nobody knows.
        zone: Option<String>,
    },
}

/// A host that is reached by SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// `user@address[:port]`; `None` where the environment makes the host itself (`sim`, `lab`).
    pub ssh: Option<String>,
    /// Hosts to go through, in order: names of this file, else of the user's ssh configuration.
    pub jump: Vec<String>,
    /// Commands that need root may use `sudo -n`.
    pub sudo: bool,
    /// Names for several hosts at once, such as `workers`.
    pub groups: Vec<String>,
}

/// The states of the workload's FSM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fsm {
    /// States in their order; the first is the one before the drain.
    pub states: Vec<String>,
    /// Other names of states, as older logs have them.
    pub aliases: IndexMap<String, String>,
}

impl Fsm {
    /// The state's own name: aliases replaced, anything else as it is.
    pub fn canonical<'a>(&'a self, state: &'a str) -> &'a str {
        self.aliases.get(state).map_or(state, String::as_str)
    }

    /// True for a state or an alias.
    pub fn knows(&self, state: &str) -> bool {
        self.states.iter().any(|known| known == state) || self.aliases.contains_key(state)
    }
}

/// Bounds for the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// Preflight refuses a host whose offset is known less exactly.
    pub max_error: Duration,
}

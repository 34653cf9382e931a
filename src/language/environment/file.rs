use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::WorldFile;
use crate::language::one_of::one_of;
use crate::language::plan::EnvironmentKind;
use crate::language::scenario::{IdText, LoadBalancerFacts, Version};
use crate::language::value::{At, Flag, Opt, Plain, Port};
use crate::time::Duration;

/// An environment says where: contexts, hosts, labels, addresses. A cluster needs `context`, `workload`, `entry`, `load_balancer`
/// and `hosts`; for `sim` and `lab` everything is optional.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentFile {
    /// Language version: always 1.
    pub gtrun: At<Version>,
    /// What is real: sim (nothing), lab (real parts on this machine), cluster (everything).
    pub kind: At<EnvironmentKind>,
    /// kubeconfig context.
    #[serde(default)]
    pub context: Opt<At<String>>,
    /// Seed of the simulator's chances. Default 0; `--seed` wins.
    #[serde(default)]
    pub seed: Opt<u64>,
    /// What `sim` and `lab` are built as, in the words of a scenario's preconditions and some of its own. It wins over the
    /// scenario, and then the scenario's preconditions fail as they would in a cluster.
    #[serde(default)]
    pub world: Opt<At<WorldFile>>,
    /// The Deployment that is disturbed.
    #[serde(default)]
    pub workload: Opt<At<WorkloadFile>>,
    /// The entry point that requests go to.
    #[serde(default)]
    pub entry: Opt<At<EntryFile>>,
    /// The load balancer.
    #[serde(default)]
    pub load_balancer: Opt<At<LoadBalancerFile>>,
    /// Hosts that are reached by SSH, by name.
    #[serde(default)]
    pub hosts: IndexMap<At<String>, HostFile>,
    /// States of the workload's FSM.
    #[serde(default)]
    pub fsm: Opt<FsmFile>,
    /// Bounds for the clocks.
    #[serde(default)]
    pub clocks: Opt<ClocksFile>,
}

/// The Deployment that is disturbed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Namespace.
    #[serde(default)]
    pub namespace: Opt<At<String>>,
    /// Name of the Deployment.
    #[serde(default)]
    pub deployment: Opt<At<String>>,
    /// Label of the Deployment's metadata that names the mode. Default mode.
    #[serde(default)]
    pub mode_label: Opt<At<String>>,
    /// Names in the pod by the names that scenarios use: `{ app: app, hc: hc, sidecar: istio-proxy }`, which is the default.
    #[serde(default)]
    pub containers: IndexMap<At<IdText>, String>,
    /// Envoy's admin port on the pod's loopback; not 15020, not 15090. Default 15000.
    #[serde(default)]
    pub envoy_admin: Opt<Plain<Port>>,
    /// The pod's port that the load balancer sends requests and checks to. Default 8080.
    #[serde(default)]
    pub port: Opt<Plain<Port>>,
    /// Path of the health page. Default /health_check.html.
    #[serde(default)]
    pub health_path: Opt<At<String>>,
}

/// The entry point that requests go to.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntryFile {
    /// Scheme, host and port, no path: https://service-a.example.test
    #[serde(default)]
    pub url: Opt<At<String>>,
    /// Address and port to connect to instead of resolving the host; Host and SNI stay those of the url.
    #[serde(default)]
    pub connect_to: Opt<At<String>>,
    /// PEM file of the authority that signed the entry's certificate, relative to this file.
    #[serde(default)]
    pub ca_file: Opt<At<String>>,
}

/// Which load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadBalancerKind {
    /// HAProxy 2.x or 3.x.
    Haproxy,
}

/// The load balancer.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancerFile {
    /// Which one: haproxy.
    #[serde(default)]
    pub kind: Opt<LoadBalancerKind>,
    /// A key of `hosts`.
    #[serde(default)]
    pub host: Opt<At<String>>,
    /// Its admin socket on that host.
    #[serde(default)]
    pub socket: Opt<At<String>>,
    /// Its configuration file on that host; inter, fall, rise and timeouts are read from it.
    #[serde(default)]
    pub config: Opt<At<String>>,
    /// Where its log is: `{ journal: haproxy }`, or `{ file: /var/log/haproxy.log, zone: Asia/Seoul }`.
    #[serde(default)]
    pub log: Opt<LogSourceFile>,
    /// pxname of the backend, exactly.
    #[serde(default)]
    pub backend: Opt<At<String>>,
    /// svname of the server by node: `{ worker1: worker1 }`.
    #[serde(default)]
    pub servers: IndexMap<At<String>, String>,
    /// Timers, where the configuration file cannot be read.
    #[serde(default)]
    pub facts: Opt<LoadBalancerFacts>,
}

one_of! {
    /// Where a log is read.
    LogSourceFile,
    /// The kind of place that a log is read from.
    LogKind, "a log source", "kind";
    common {
        /// Time zone of the stamps when they carry none, as Asia/Seoul.
        zone: At<String>,
    }
    kinds {
        /// A unit of the journal.
        journal => Journal(At<String>),
        /// A file.
        file => File(At<String>),
    }
}

/// A host that is reached by SSH.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// user@address, or user@address:port.
    #[serde(default)]
    pub ssh: Opt<At<String>>,
    /// Hosts to go through, in order: names of this file, else of ~/.ssh/config.
    #[serde(default)]
    pub jump: Vec<At<String>>,
    /// true: commands that need root may use `sudo -n`. Default false.
    #[serde(default)]
    pub sudo: Opt<Plain<Flag>>,
    /// Names for several hosts at once: `[workers]`.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// States of the workload's FSM.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FsmFile {
    /// States in their order; the first is the one before the drain. Default OPEN, DRAINING, CLOSING, CLOSED.
    #[serde(default)]
    #[schemars(length(min = 2))]
    pub states: Opt<Vec<At<String>>>,
    /// Other names of states, as older logs have them: `{ READY: OPEN }`.
    #[serde(default)]
    pub aliases: IndexMap<At<String>, At<String>>,
}

/// Bounds for the clocks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClocksFile {
    /// Preflight refuses a host whose clock is known less exactly. Default 50ms.
    #[serde(default)]
    pub max_error: Opt<Plain<Duration>>,
}

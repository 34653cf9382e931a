//! The pod that a run is about, and what stands in front of it.

use crate::language::plan::Environment;
use crate::world::facts::PodFacts;
use crate::world::port::PodIdentity;

/// The target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Name and uid.
    pub(crate) pod: PodIdentity,
    /// Its node.
    pub(crate) node: Option<String>,
    /// Its IP.
    pub(crate) ip: Option<String>,
    /// Its server on the load balancer, by the environment's table.
    pub(crate) server: Option<String>,
}

impl Target {
    /// From a pod as the API shows it.
    pub(crate) fn of(pod: &PodFacts, environment: &Environment) -> Self {
        Self {
            pod: pod.identity.clone(),
            node: pod.node.clone(),
            ip: pod.ip.clone(),
            server: pod.node.as_deref().and_then(|n| server_of(n, environment)),
        }
    }
}

/// The server in front of a node.
pub(crate) fn server_of(node: &str, environment: &Environment) -> Option<String> {
    environment.load_balancer.servers.get(node).cloned()
}

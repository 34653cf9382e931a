//! What a user of a lab needs to know: the values of an environment file of kind `cluster`.

use std::fmt::Write;
use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Everything that the adapters of a real cluster need to work on a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabFacts {
    /// The lab's name.
    pub name: String,
    /// The kubeconfig file.
    pub kubeconfig: PathBuf,
    /// The context in it that may do everything.
    pub context: String,
    /// The context that may only look.
    pub context_viewer: String,
    /// The context that may do nothing.
    pub context_nobody: String,
    /// The API server's URL.
    pub api_url: String,
    /// The workload in Kubernetes.
    pub workload: WorkloadFacts,
    /// URL of the entry point, with the name that the service goes by.
    pub entry_url: String,
    /// Address and port of the entry point.
    pub entry_connect_to: String,
    /// HAProxy.
    pub load_balancer: LoadBalancerFacts,
    /// The hosts by name; `jump` is the way to the others.
    pub hosts: IndexMap<String, HostFacts>,
    /// A whole configuration for `ssh -F`: the hosts by their names, with the key, the host keys and the jump.
    pub ssh_config: PathBuf,
    /// The client's private key.
    pub ssh_key: PathBuf,
    /// The hosts' keys.
    pub ssh_known_hosts: PathBuf,
    /// An environment file of kind `cluster` with all of this.
    pub environment: PathBuf,
}

/// The workload in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its Deployment.
    pub deployment: String,
    /// The Deployment's label that names the mode.
    pub mode_label: String,
    /// Names of the containers by the words of scenarios: `app`, `hc`, `sidecar`.
    pub containers: IndexMap<String, String>,
    /// The port of Envoy's admin interface on loopback inside the pod.
    pub envoy_admin: u16,
    /// The prefix of the ingress listener's gauges.
    pub stat_prefix: String,
    /// The cluster of the application in Envoy.
    pub app_cluster: String,
}

/// HAProxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancerFacts {
    /// The host that it runs on.
    pub host: String,
    /// Its admin socket on that host.
    pub socket: PathBuf,
    /// Its configuration on that host.
    pub config: PathBuf,
    /// Its log on that host.
    pub log: PathBuf,
    /// `pxname` of the servers.
    pub backend: String,
    /// `svname` by node.
    pub servers: IndexMap<String, String>,
}

/// A host that is reached by SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its address; the port is 22.
    pub address: String,
    /// Who logs in.
    pub user: String,
    /// The hosts on the way, the first one first.
    pub jump: Vec<String>,
    /// Whether commands need `sudo -n`. The lab's user is root.
    pub sudo: bool,
    /// Groups of hosts, as `workers`.
    pub groups: Vec<String>,
    /// The network namespace, for `ip netns exec`.
    pub namespace: String,
}

impl LabFacts {
    /// The environment file. Strings are JSON strings, which YAML reads as they are.
    pub(crate) fn environment_yaml(&self) -> String {
        let text = |s: &str| serde_json::Value::from(s).to_string();
        let path = |p: &PathBuf| text(&p.display().to_string());
        let pairs = |map: &IndexMap<String, String>| {
            map.iter()
                .map(|(k, v)| format!("{k}: {}", text(v)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (w, lb) = (&self.workload, &self.load_balancer);
        let mut yaml = format!(
            "# The lab `{}` as a cluster; made by `gtrun lab up`, gone with it. For use with KUBECONFIG={}\n\
             gtrun: 1\nkind: cluster\ncontext: {}\nworkload:\n  namespace: {}\n  deployment: {}\n  mode_label: {}\n  \
             containers: {{ {} }}\n  envoy_admin: {}\nentry:\n  url: {}\n  connect_to: {}\nload_balancer:\n  kind: haproxy\n  \
             host: {}\n  socket: {}\n  config: {}\n  log: {{ file: {} }}\n  backend: {}\n  servers: {{ {} }}\nhosts:\n",
            self.name,
            self.kubeconfig.display(),
            text(&self.context),
            text(&w.namespace),
            text(&w.deployment),
            text(&w.mode_label),
            pairs(&w.containers),
            w.envoy_admin,
            text(&self.entry_url),
            text(&self.entry_connect_to),
            text(&lb.host),
            path(&lb.socket),
            path(&lb.config),
            path(&lb.log),
            text(&lb.backend),
            pairs(&lb.servers),
        );
        for (name, host) in &self.hosts {
            let _ = write!(
                yaml,
                "  {name}: {{ ssh: {}",
                text(&format!("{}@{}", host.user, host.address))
            );
            if !host.jump.is_empty() {
                let _ = write!(
                    yaml,
                    ", jump: [{}]",
                    host.jump.iter().map(|j| text(j)).collect::<Vec<_>>().join(", ")
                );
            }
            let _ = write!(yaml, ", sudo: {}", host.sudo);
            if !host.groups.is_empty() {
                let _ = write!(yaml, ", groups: [{}]", host.groups.join(", "));
            }
            yaml.push_str(" }\n");
        }
        yaml
    }
}

//! What world a lab offers: the words of a scenario's `preconditions` and of an environment's `world`.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::LabError;
use crate::time::Duration;

/// The world that [`Lab::up`](super::Lab::up) builds. Every word left out has the default of the reference:
/// mode `improved`, one replica, two nodes, `inter 2s fall 2 rise 2`, `on-marked-down shutdown-sessions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabWorld {
    /// How the workload drains, and the Deployment's `mode` label.
    pub mode: Mode,
    /// `spec.replicas` of the Deployment.
    pub replicas: u32,
    /// The pods.
    pub pod: PodWorld,
    /// Worker nodes by name, in the order of their addresses.
    pub nodes: IndexMap<String, NodeWorld>,
    /// HAProxy.
    pub load_balancer: LoadBalancerWorld,
    /// How the Deployment replaces its pods.
    pub rollout: RolloutWorld,
}

/// What the health page says while the workload drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// 503 as soon as the drain begins: the load balancer cuts what is still in flight.
    Current,
    /// 200 until nothing is in flight, only then 503.
    Improved,
    /// 404 while draining, for `http-check disable-on-404`; 503 once nothing is in flight.
    Nolb,
}

impl Mode {
    /// The word in the files, in the label and in the hc container's environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Improved => "improved",
            Self::Nolb => "nolb",
        }
    }
}

/// The pods of the Deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PodWorld {
    /// `terminationGracePeriodSeconds`; whole seconds.
    pub grace: Duration,
    /// By container (`app`, `hc`, `sidecar`), where it differs from the default: hc drains, the others hold until
    /// hc is CLOSED.
    pub prestop: BTreeMap<String, Prestop>,
    /// How the proxy runs beside the application.
    pub sidecar: Sidecar,
    /// More environment variables by container (`app`, `hc`, `sidecar`).
    pub env: BTreeMap<String, BTreeMap<String, String>>,
    /// `terminationDrainDuration` of the proxy, as its annotation says it. Envoy itself exits at SIGTERM.
    pub termination_drain: Option<Duration>,
    /// Creates a PodDisruptionBudget with this `minAvailable`.
    pub pdb_min_available: Option<u32>,
    /// Whether a HorizontalPodAutoscaler names the Deployment.
    pub hpa: Hpa,
    /// After this long hc stops waiting for zero (`event=drain_timeout`). Left out: it waits for ever.
    pub drain_max: Option<Duration>,
    /// How long hc waits between CLOSING and CLOSED for the load balancer to notice.
    pub lb_wait: Duration,
    /// When hc tells Envoy to drain its listeners.
    pub drain_listeners: DrainListeners,
    /// Envoy's `--drain-time-s`: a listener that drains gracefully closes this long after it was told to.
    pub drain_time: Duration,
}

/// A container's preStop hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prestop {
    /// Starts hc's drain and waits until hc is CLOSED.
    Drain,
    /// Waits until hc is CLOSED.
    Hold,
    /// The API's own `sleep` hook; whole seconds.
    Sleep(Duration),
    /// No hook: the kubelet sends SIGTERM at once.
    None,
}

/// How the proxy runs beside the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sidecar {
    /// One of the pod's containers.
    Container,
    /// An init container with `restartPolicy: Always`: it is stopped after the containers have ended.
    Native,
}

/// Whether a HorizontalPodAutoscaler names the Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hpa {
    /// None.
    Absent,
    /// One, which never changes anything by itself.
    Present,
}

/// When hc tells Envoy to drain its listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainListeners {
    /// When nothing is in flight any more (`?graceful`).
    AtClosing,
    /// Two seconds into the drain (`?graceful`): after `drain_time` the listener closes under whatever is in flight.
    AtDraining,
    /// Not at all.
    Never,
}

/// A worker node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeWorld {
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// Taints as `kubectl taint` writes them: `key=value:NoSchedule` or `key:NoExecute`.
    pub taints: Vec<String>,
}

/// HAProxy: the words are those of its `server` line and its backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadBalancerWorld {
    /// Time between two checks.
    pub inter: Duration,
    /// Time between two checks in transition; left out: `inter`.
    pub fastinter: Option<Duration>,
    /// Time between two checks of a server that is down; left out: `inter`.
    pub downinter: Option<Duration>,
    /// Failed checks until DOWN.
    pub fall: u32,
    /// Good checks until UP.
    pub rise: u32,
    /// What happens to sessions when their server goes down.
    pub on_marked_down: OnMarkedDown,
    /// `http-check disable-on-404`; left out: on in mode `nolb` only.
    pub disable_on_404: Option<bool>,
    /// `agent-check` against hc's own agent.
    pub agent_check: bool,
    /// `option redispatch`.
    pub redispatch: bool,
    /// `retry-on`; empty: HAProxy's default (`conn-failure`).
    pub retry_on: Vec<String>,
    /// `timeout server`.
    pub timeout_server: Duration,
    /// The layout of its log.
    pub log: LogFormat,
}

/// `on-marked-down` of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMarkedDown {
    /// Every open session is cut.
    ShutdownSessions,
    /// Sessions go on.
    None,
}

/// `log ... format` of HAProxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Microseconds and an offset.
    Iso,
    /// The same, in syslog's newer layout.
    Rfc5424,
    /// Whole seconds of local time without a year.
    Rfc3164,
}

/// The Deployment's strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutWorld {
    /// `minReadySeconds`; whole seconds.
    pub min_ready: Duration,
    /// `maxSurge`.
    pub max_surge: Amount,
    /// `maxUnavailable`.
    pub max_unavailable: Amount,
    /// Topology key of a required pod anti-affinity: `none`, `hostname`, or a key.
    pub anti_affinity: String,
}

/// A number of pods, or a share of the replicas (`25%`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Pods.
    Count(u32),
    /// Percent of the replicas.
    Percent(u32),
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(n) => serializer.serialize_u32(*n),
            Self::Percent(n) => serializer.serialize_str(&format!("{n}%")),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let percent = || value.as_str()?.strip_suffix('%')?.parse().ok().map(Self::Percent);
        let count = || value.as_u64().and_then(|n| u32::try_from(n).ok()).map(Self::Count);
        count()
            .or_else(percent)
            .ok_or_else(|| de::Error::custom(format!("{value} is no number of pods and no percentage")))
    }
}

impl Default for LabWorld {
    fn default() -> Self {
        Self {
            mode: Mode::Improved,
            replicas: 1,
            pod: PodWorld::default(),
            nodes: ["worker1", "worker2"]
                .map(|n| (n.to_owned(), NodeWorld::default()))
                .into_iter()
                .collect(),
            load_balancer: LoadBalancerWorld::default(),
            rollout: RolloutWorld::default(),
        }
    }
}

impl Default for PodWorld {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(210),
            prestop: BTreeMap::new(),
            sidecar: Sidecar::Container,
            env: BTreeMap::new(),
            termination_drain: None,
            pdb_min_available: None,
            hpa: Hpa::Absent,
            drain_max: None,
            lb_wait: Duration::from_secs(6),
            drain_listeners: DrainListeners::AtClosing,
            drain_time: Duration::from_secs(45),
        }
    }
}

impl Default for LoadBalancerWorld {
    fn default() -> Self {
        Self {
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            fall: 2,
            rise: 2,
            on_marked_down: OnMarkedDown::ShutdownSessions,
            disable_on_404: None,
            agent_check: false,
            redispatch: false,
            retry_on: Vec::new(),
            timeout_server: Duration::from_secs(300),
            log: LogFormat::Iso,
        }
    }
}

impl Default for RolloutWorld {
    fn default() -> Self {
        Self {
            min_ready: Duration::ZERO,
            max_surge: Amount::Count(0),
            max_unavailable: Amount::Count(1),
            anti_affinity: "none".into(),
        }
    }
}

/// Most nodes a lab has: their addresses are 11 to 42 of the lab's network.
const MAX_NODES: usize = 32;

impl LabWorld {
    /// Reads a world: the defaults, then a JSON document merged over them, then dotted settings
    /// (`load_balancer.inter=1s`, `replicas=2`). A `null` takes away what is there (`nodes.worker2=null`).
    ///
    /// # Errors
    /// A setting without `=`, an unknown word, or a value of the wrong kind.
    pub fn with_settings(document: serde_json::Value, settings: &[String]) -> Result<Self, LabError> {
        let mut root = serde_json::to_value(Self::default()).map_err(|e| LabError::World(e.to_string()))?;
        json_patch::merge(&mut root, &document);
        for setting in settings {
            let refuse = |why: String| LabError::World(format!("`--set {setting}`: {why}"));
            let (path, text) = setting
                .split_once('=')
                .ok_or_else(|| refuse("there is no `=`; write for example `--set load_balancer.inter=1s`".into()))?;
            let value = serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.to_owned()));
            let keys: Vec<&str> = path.split('.').collect();
            let patch = keys
                .iter()
                .rev()
                .fold(value, |below, key| serde_json::json!({ *key: below }));
            json_patch::merge(&mut root, &patch);
        }
        let world: Self = serde_json::from_value(root).map_err(|e| {
            let unit = if e.to_string().contains("integer") {
                "; a time needs a unit, as in `60s`"
            } else {
                ""
            };
            LabError::World(format!("{e}{unit}"))
        })?;
        world.check()?;
        Ok(world)
    }

    /// Refuses what no lab can be built from.
    ///
    /// # Errors
    /// No node, too many, names that are no host names, durations that Kubernetes counts in whole seconds and that
    /// have a fraction, `fall` or `rise` of zero, taints or containers that do not exist.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |why: String| Err(LabError::World(why));
        if self.nodes.is_empty() || self.nodes.len() > MAX_NODES {
            return refuse(format!(
                "`nodes` has {} entries; a lab has 1 to {MAX_NODES}",
                self.nodes.len()
            ));
        }
        for (name, node) in &self.nodes {
            let plain = name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            if !plain || name.is_empty() || name.len() > 16 || ["lb", "client", "net"].contains(&name.as_str()) {
                return refuse(format!(
                    "`nodes`: `{name}` is no name for a node; use up to 16 of a-z, 0-9 and `-`, and not lb, client or net"
                ));
            }
            for taint in &node.taints {
                super::kubernetes::taint(taint).map_err(LabError::World)?;
            }
        }
        let whole = [
            ("pod.grace", Some(self.pod.grace)),
            ("pod.drain_time", Some(self.pod.drain_time)),
            ("pod.termination_drain", self.pod.termination_drain),
            ("rollout.min_ready", Some(self.rollout.min_ready)),
        ];
        let sleeps = self.pod.prestop.iter().filter_map(|(c, p)| match p {
            Prestop::Sleep(d) => Some((c.as_str(), Some(*d))),
            Prestop::Drain | Prestop::Hold | Prestop::None => None,
        });
        for (name, value) in whole.into_iter().chain(sleeps) {
            if let Some(value) = value
                && (value < Duration::ZERO || value.as_nanos() % 1_000_000_000 != 0)
            {
                return refuse(format!(
                    "`{name}: {value}`: Kubernetes and Envoy count this in whole seconds"
                ));
            }
        }
        for container in self.pod.prestop.keys().chain(self.pod.env.keys()) {
            if !["app", "hc", "sidecar"].contains(&container.as_str()) {
                return refuse(format!(
                    "`{container}` is no container of the lab's pods; they are app, hc and sidecar"
                ));
            }
        }
        let lb = &self.load_balancer;
        if lb.fall == 0 || lb.rise == 0 {
            return refuse("`load_balancer`: fall and rise are at least 1".into());
        }
        let times = [Some(lb.inter), lb.fastinter, lb.downinter, Some(lb.timeout_server)];
        if times.into_iter().flatten().any(|d| d < Duration::from_millis(1)) {
            return refuse("`load_balancer`: times are at least 1ms".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_world_has_the_defaults_of_the_reference() {
        let world = LabWorld::with_settings(serde_json::json!({}), &[]).expect("defaults");
        assert_eq!(world, LabWorld::default());
        assert_eq!(world.nodes.keys().collect::<Vec<_>>(), ["worker1", "worker2"]);
    }

    #[test]
    fn settings_reach_into_the_world() {
        let set = [
            "mode=current",
            "replicas=2",
            "load_balancer.inter=500ms",
            "pod.prestop.app=none",
            "nodes.w.cordoned=true",
        ]
        .map(String::from);
        let world = LabWorld::with_settings(serde_json::json!({}), &set).expect("valid");
        assert_eq!((world.mode, world.replicas), (Mode::Current, 2));
        assert_eq!(world.load_balancer.inter, Duration::from_millis(500));
        assert_eq!(world.pod.prestop["app"], Prestop::None);
        assert!(world.nodes["w"].cordoned);
        assert_eq!(world.nodes.len(), 3);
        let one = LabWorld::with_settings(serde_json::json!({}), &["nodes.worker2=null".to_owned()]).expect("valid");
        assert_eq!(one.nodes.keys().collect::<Vec<_>>(), ["worker1"]);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_its_name() {
        for (set, wanted) in [
            ("mode", "there is no `=`"),
            ("mode=fast", "unknown variant `fast`"),
            ("pod.grase=10s", "unknown field `grase`"),
            ("pod.grace=1500ms", "`pod.grace: 1.5s`"),
            ("pod.grace=60", "a time needs a unit"),
            ("load_balancer.fall=0", "at least 1"),
            ("nodes.lb={}", "`lb` is no name for a node"),
            ("nodes.w.taints=[\"a\"]", "`a` is no taint"),
            ("pod.prestop.proxy=hold", "`proxy` is no container"),
        ] {
            let error = LabWorld::with_settings(serde_json::json!({}), &[set.to_owned()])
                .expect_err(set)
                .to_string();
            assert!(error.contains(wanted), "{set}: {error}");
        }
    }
}

//! What a simulated world is made of: everything that a scenario's preconditions or an environment's `world:` can pin,
//! and the faults of observation that only `selfcheck` draws.

use std::collections::BTreeMap;

use crate::time::{Duration, Instant};

/// A world. Its default is the one that the documentation describes: `mode: improved`, one replica, HAProxy 2.6 with
/// `inter 2s fall 2 rise 2 on-marked-down shutdown-sessions`, a round trip of 500 us, equal clocks.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldSpec {
    /// The virtual moment at which the run begins; the world has been up for ten seconds then.
    pub start: Instant,
    /// Names.
    pub names: Names,
    /// What the workload does when it is told to stop.
    pub mode: Mode,
    /// `spec.replicas` of the Deployment at the start.
    pub replicas: u32,
    /// Pods.
    pub pod: PodSpec,
    /// Nodes, in order.
    pub nodes: Vec<NodeSpec>,
    /// Strategy of the Deployment.
    pub rollout: RolloutSpec,
    /// HAProxy.
    pub load_balancer: LoadBalancerSpec,
    /// The network.
    pub network: NetworkSpec,
    /// Offset and drift of the hosts' clocks, by host; a host that is not here has the true time.
    pub clocks: BTreeMap<String, ClockSpec>,
    /// Other clients' requests in a second through the same entry.
    pub traffic: f64,
    /// What commands do, first match wins.
    pub commands: Vec<CommandRule>,
    /// How well things can be seen.
    pub observation: Observation,
}

/// Names in the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Namespace.
    pub namespace: String,
    /// Deployment.
    pub deployment: String,
    /// Key of the mode label on the Deployment.
    pub mode_label: String,
    /// Container of the application.
    pub app: String,
    /// Container of the health page and the FSM.
    pub hc: String,
    /// Container of Envoy.
    pub sidecar: String,
    /// HAProxy's frontend.
    pub frontend: String,
    /// HAProxy's backend.
    pub backend: String,
    /// The load balancer's host.
    pub lb: String,
    /// FSM states: open, draining, closing, closed.
    pub states: [String; 4],
}

impl Default for Names {
    fn default() -> Self {
        Self {
            namespace: "service-a".to_owned(),
            deployment: "service-a-igw".to_owned(),
            mode_label: "mode".to_owned(),
            app: "app".to_owned(),
            hc: "hc".to_owned(),
            sidecar: "istio-proxy".to_owned(),
            frontend: "istio-http-frontend".to_owned(),
            backend: "istio-http-backend".to_owned(),
            lb: "lb".to_owned(),
            states: ["OPEN", "DRAINING", "CLOSING", "CLOSED"].map(str::to_owned),
        }
    }
}

/// What the workload does when it is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The health page answers 503 at once.
    Current,
    /// 200 until nothing is in flight (or `drain_max` has passed), then 503.
    Improved,
    /// 404 while draining (for `http-check disable-on-404`), then 503.
    Nolb,
}

impl Mode {
    /// The value of the mode label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Improved => "improved",
            Self::Nolb => "nolb",
        }
    }
}

/// Pods.
#[derive(Debug, Clone, PartialEq)]
pub struct PodSpec {
    /// `terminationGracePeriodSeconds`.
    pub grace: Duration,
    /// From CLOSING to CLOSED: the workload's wait for the load balancer.
    pub lb_wait: Duration,
    /// The workload's own cap on waiting for zero.
    pub drain_max: Option<Duration>,
    /// How often the workload reads Envoy's gauges while it drains.
    pub drain_poll: Duration,
    /// When the workload tells Envoy to drain its listeners.
    pub drain_listeners: DrainListeners,
    /// Envoy's `--drain-time-s`: from a graceful drain to the closing of the listener.
    pub drain_time: Duration,
    /// preStop of the application's container.
    pub app_hook: Hook,
    /// preStop of the health page's container.
    pub hc_hook: Hook,
    /// preStop of Envoy's container.
    pub sidecar_hook: Hook,
    /// Envoy runs as a native sidecar: it is told to stop after the main containers are gone.
    pub native_sidecar: bool,
    /// What Envoy's container does on SIGTERM.
    pub sidecar_end: SidecarEnd,
    /// The application finishes its requests on SIGTERM before it exits; otherwise it exits at once.
    pub app_finishes: bool,
    /// Time that the health page takes to answer.
    pub health_delay: Duration,
    /// How long Envoy keeps access lines before it writes them.
    pub access_log_flush: Duration,
    /// `minAvailable` of a PodDisruptionBudget.
    pub pdb_min_available: Option<u32>,
    /// A HorizontalPodAutoscaler acts on the Deployment.
    pub autoscaler: bool,
    /// Environment of the containers, by the container's role (`app`, `hc`, `sidecar`).
    pub env: BTreeMap<String, BTreeMap<String, String>>,
}

/// When and how the workload tells Envoy to drain its listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DrainListeners {
    /// Gracefully, when it enters CLOSING: the way of the improved workload.
    AtClosing,
    /// Gracefully, two seconds into DRAINING: the listener is closed before the work is done.
    AtDraining,
    /// Without `graceful` at the beginning of DRAINING: the listener closes at once.
    AtDrainingAtOnce,
    /// Never.
    Never,
}

/// A preStop hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Waits until the FSM is CLOSED; that of the health page starts the drain.
    Fsm,
    /// Sleeps.
    Sleep(Duration),
    /// There is none: SIGTERM comes at once.
    None,
}

/// What Envoy's container does on SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SidecarEnd {
    /// Plain Envoy: gone at once, without draining.
    AtOnce,
    /// Istio's agent: drains, and leaves after this time (`terminationDrainDuration`).
    After(Duration),
    /// `EXIT_ON_ZERO_ACTIVE_CONNECTIONS`: leaves when nothing is active, looked at every second after this minimum.
    AtZero(Duration),
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Name, also that of its host.
    pub name: String,
    /// Its server on the load balancer.
    pub server: String,
    /// Not schedulable from the start.
    pub cordoned: bool,
    /// Taints, `key=value:effect`.
    pub taints: Vec<String>,
}

/// Strategy of the Deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSpec {
    /// `minReadySeconds`.
    pub min_ready: Duration,
    /// `maxSurge`.
    pub max_surge: u32,
    /// `maxUnavailable`.
    pub max_unavailable: u32,
    /// Topology key of required anti-affinity against its own pods.
    pub anti_affinity: Option<String>,
}

/// HAProxy.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadBalancerSpec {
    /// Whose manners it has.
    pub version: Version,
    /// `inter`.
    pub inter: Duration,
    /// `fastinter`.
    pub fastinter: Option<Duration>,
    /// `downinter`.
    pub downinter: Option<Duration>,
    /// `fall`.
    pub fall: u32,
    /// `rise`.
    pub rise: u32,
    /// `on-marked-down shutdown-sessions`.
    pub shutdown_sessions: bool,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `agent-check`.
    pub agent_check: bool,
    /// `option redispatch`.
    pub redispatch: bool,
    /// `retries`.
    pub retries: u32,
    /// `retry-on` holds a word that covers a request which was sent and cut (`all-retryable-errors`,
    /// `empty-response`, `response-timeout`, ...), as written.
    pub retry_on: Vec<String>,
    /// `timeout server`.
    pub timeout_server: Duration,
    /// Format of the log's stamps.
    pub log: LogStamps,
    /// `option log-health-checks`.
    pub log_health_checks: bool,
    /// An idle server connection is purged this long after its last response.
    pub purge_after: Duration,
    /// How long before the start of the run the first server was checked; drawn when not pinned.
    pub phase: Option<Duration>,
}

/// HAProxy's versions, as far as their manners differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// 2.6.
    V2_6,
    /// 2.8: more columns.
    V2_8,
    /// 3.0: a killed request gets no answer and is logged `500 0 DC--`.
    V3_0,
    /// 3.2.
    V3_2,
}

impl Version {
    /// As people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::V2_6 => "2.6.12",
            Self::V2_8 => "2.8.25",
            Self::V3_0 => "3.0.11",
            Self::V3_2 => "3.2.26",
        }
    }

    /// A killed request is answered with 502 (2.x) and not with silence (3.x).
    pub fn answers_502(self) -> bool {
        match self {
            Self::V2_6 | Self::V2_8 => true,
            Self::V3_0 | Self::V3_2 => false,
        }
    }
}

/// How HAProxy stamps its log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogStamps {
    /// `log stdout format iso`: microseconds.
    Iso,
    /// `format rfc5424`: microseconds.
    Rfc5424,
    /// `format rfc3164`: whole seconds without a year, local time of a zone this far east of UTC.
    Rfc3164 {
        /// East of UTC.
        zone: Duration,
    },
}

/// The network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkSpec {
    /// Round trip between any two hosts.
    pub rtt: Duration,
    /// Pods are reached through a hostPort: a packet is seen twice on its worker, before and after the translation.
    pub host_port: bool,
}

/// A host's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockSpec {
    /// Ahead of the true time at the start of the run.
    pub offset: Duration,
    /// Parts per million by which it runs fast.
    pub drift_ppm: f64,
}

/// What a command does in the simulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRule {
    /// The command, word by word.
    pub argv: Vec<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// Its standard output.
    pub stdout: String,
    /// Its exit code.
    pub exit: i32,
}

/// Effects of commands. Those on the load balancer act on the server of the pod or host that the command runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// None but its output.
    None,
    /// The health page answers 503 from now on.
    FailReadiness,
    /// The health page answers as the FSM says again.
    RestoreReadiness,
    /// The agent check answers `drain`.
    AgentDrain,
    /// The agent check answers `ready`.
    AgentReady,
    /// The FSM begins to drain as if preStop had been called.
    BeginDrain,
    /// HAProxy is reloaded: a second process, the first keeps its sessions.
    ReloadHaproxy,
    /// Every server is put into maintenance.
    Maintenance,
    /// Every server leaves maintenance.
    LeaveMaintenance,
}

/// How well things can be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Share of gauge and statistics samples that are lost (time out).
    pub lost_samples: f64,
    /// Followers of container logs break off for good at a random moment.
    pub followers_break: bool,
    /// The watch breaks once in the run for a second.
    pub watch_breaks: bool,
    /// Hosts that cannot capture.
    pub no_capture: Vec<String>,
    /// The load balancer's log cannot be read.
    pub no_lb_log: bool,
    /// The load balancer's statistics cannot be read.
    pub no_lb_stats: bool,
    /// Envoy's gauges cannot be read.
    pub no_gauges: bool,
    /// Envoy has an xDS stream open: one more request that is always active.
    pub xds_stream: bool,
}

impl Default for WorldSpec {
    fn default() -> Self {
        Self {
            // 2026-01-01T00:00:00Z
            start: Instant::from_nanos(1_767_225_600_000_000_000),
            names: Names::default(),
            mode: Mode::Improved,
            replicas: 1,
            pod: PodSpec::default(),
            nodes: ["worker1", "worker2"].map(NodeSpec::named).to_vec(),
            rollout: RolloutSpec {
                min_ready: Duration::ZERO,
                max_surge: 0,
                max_unavailable: 1,
                anti_affinity: None,
            },
            load_balancer: LoadBalancerSpec::default(),
            network: NetworkSpec {
                rtt: Duration::from_micros(500),
                host_port: false,
            },
            clocks: BTreeMap::new(),
            traffic: 0.0,
            commands: Vec::new(),
            observation: Observation::default(),
        }
    }
}

impl NodeSpec {
    /// A schedulable node.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            server: name.to_owned(),
            cordoned: false,
            taints: Vec::new(),
        }
    }
}

impl Default for PodSpec {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(210),
            lb_wait: Duration::from_secs(6),
            drain_max: None,
            drain_poll: Duration::from_secs(1),
            drain_listeners: DrainListeners::AtClosing,
            drain_time: Duration::from_secs(45),
            app_hook: Hook::Fsm,
            hc_hook: Hook::Fsm,
            sidecar_hook: Hook::Fsm,
            native_sidecar: false,
            sidecar_end: SidecarEnd::AtOnce,
            app_finishes: false,
            health_delay: Duration::from_micros(300),
            access_log_flush: Duration::from_millis(50),
            pdb_min_available: None,
            autoscaler: false,
            env: BTreeMap::new(),
        }
    }
}

impl Default for LoadBalancerSpec {
    fn default() -> Self {
        Self {
            version: Version::V2_6,
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            fall: 2,
            rise: 2,
            shutdown_sessions: true,
            disable_on_404: false,
            agent_check: false,
            redispatch: false,
            retries: 3,
            retry_on: vec!["conn-failure".to_owned()],
            timeout_server: Duration::from_secs(300),
            log: LogStamps::Iso,
            log_health_checks: true,
            purge_after: Duration::from_secs(5),
            phase: None,
        }
    }
}

impl Default for Observation {
    fn default() -> Self {
        Self {
            lost_samples: 0.0,
            followers_break: false,
            watch_breaks: false,
            no_capture: Vec::new(),
            no_lb_log: false,
            no_lb_stats: false,
            no_gauges: false,
            xds_stream: true,
        }
    }
}

//! What `sim` and `lab` are when nothing says otherwise.

use indexmap::IndexMap;

use crate::language::Id;
use crate::language::plan::{
    AntiAffinity, Clocks, CountOrPercent, DrainListeners, Effect, Entry, Environment, EnvironmentKind, ExecEffect, Fsm,
    HaproxyLogFormat, Host, HpaPresence, LoadBalancer, LoadBalancerFacts, LoadBalancerWorld, NetworkWorld, NodeWorld,
    OnMarkedDown, PodWorld, RolloutWorld, SidecarKind, TrafficWorld, Workload, World,
};
use crate::time::Duration;

const NODES: [&str; 2] = ["worker1", "worker2"];

/// The environment of this kind without a file. For a cluster these are only the defaults of what its file may leave out.
pub(crate) fn built_in(name: &str, kind: EnvironmentKind) -> Environment {
    let container = |key: &str, name: &str| (Id::trusted(key), name.to_owned());
    let host = |groups: &[&str]| Host {
        ssh: None,
        jump: Vec::new(),
        sudo: true,
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
    };
    let hosts = match kind {
        EnvironmentKind::Sim | EnvironmentKind::Lab => {
            let workers = NODES.map(|node| (node.to_owned(), host(&["workers"])));
            std::iter::once(("lb".to_owned(), host(&[]))).chain(workers).collect()
        }
        EnvironmentKind::Cluster => IndexMap::new(),
    };
    let own = matches!(kind, EnvironmentKind::Sim | EnvironmentKind::Lab);
    Environment {
        name: name.to_owned(),
        kind,
        file: None,
        context: None,
        workload: Workload {
            namespace: "service-a".to_owned(),
            deployment: "service-a-igw".to_owned(),
            mode_label: "mode".to_owned(),
            containers: [
                container("app", "app"),
                container("hc", "hc"),
                container("sidecar", "istio-proxy"),
            ]
            .into(),
            envoy_admin: 15000,
            port: 8080,
            health_path: "/health_check.html".to_owned(),
        },
        entry: Entry {
            url: "http://service-a.example.test".to_owned(),
            connect_to: None,
            ca_file: None,
        },
        load_balancer: LoadBalancer {
            host: "lb".to_owned(),
            socket: "/run/haproxy/admin.sock".to_owned(),
            config: Some("/etc/haproxy/haproxy.cfg".to_owned()),
            log: None,
            backend: "istio-http-backend".to_owned(),
            servers: if own {
                NODES.map(|node| (node.to_owned(), node.to_owned())).into()
            } else {
                IndexMap::new()
            },
            facts: LoadBalancerFacts::default(),
        },
        hosts,
        fsm: Fsm {
            states: ["OPEN", "DRAINING", "CLOSING", "CLOSED"].map(str::to_owned).into(),
            aliases: IndexMap::new(),
        },
        clocks: Clocks {
            max_error: Duration::from_millis(50),
        },
        seed: 0,
        world: own.then(default_world),
    }
}

/// The world that `sim` and `lab` build when neither the scenario nor the environment says otherwise.
pub(crate) fn default_world() -> World {
    let touch = |path: &str, effect| ExecEffect {
        argv: vec!["touch".to_owned(), path.to_owned()],
        effect,
        stdout: String::new(),
        exit: 0,
    };
    let agent = |word: &str, effect| ExecEffect {
        argv: vec!["set-agent".to_owned(), word.to_owned()],
        effect,
        stdout: String::new(),
        exit: 0,
    };
    World {
        mode: "improved".to_owned(),
        replicas: 1,
        pod: PodWorld {
            grace: Duration::from_secs(210),
            prestop: IndexMap::new(),
            sidecar: SidecarKind::Container,
            env: IndexMap::new(),
            termination_drain: Duration::from_secs(5),
            pdb_min_available: None,
            hpa: HpaPresence::Absent,
            lb_wait: Duration::from_secs(6),
            drain_max: None,
            drain_listeners: DrainListeners::AtClosing,
            drain_time: Duration::from_secs(45),
        },
        nodes: NODES.map(|node| (node.to_owned(), NodeWorld::default())).into(),
        load_balancer: LoadBalancerWorld {
            version: "2.6".to_owned(),
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            phase: None,
            fall: 2,
            rise: 2,
            on_marked_down: OnMarkedDown::ShutdownSessions,
            disable_on_404: false,
            agent_check: false,
            redispatch: false,
            retry_on: vec!["conn-failure".to_owned()],
            timeout_server: Duration::from_secs(300),
            log: HaproxyLogFormat::Iso,
        },
        rollout: RolloutWorld {
            min_ready: Duration::ZERO,
            max_surge: CountOrPercent::Count(0),
            max_unavailable: CountOrPercent::Count(1),
            anti_affinity: AntiAffinity::Hostname,
        },
        network: NetworkWorld {
            rtt: Duration::from_micros(500),
        },
        clocks: IndexMap::new(),
        traffic: TrafficWorld { rate: 0.0 },
        exec: vec![
            touch("/drain", Effect::FailReadiness),
            touch("/ready", Effect::RestoreReadiness),
            agent("drain", Effect::AgentDrain),
            agent("ready", Effect::AgentReady),
        ],
    }
}

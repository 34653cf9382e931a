//! The model: its state, what happens next, and the clockwork that makes it happen.
//!
//! It knows no runtime and reads no clock. Time is the time of the event that is being handled; chance is the seed's.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use serde_json::Value;

use super::client::{self, Clients, Request};
use super::clocks::HostClock;
use super::control::{self, Control};
use super::dice::Dice;
use super::haproxy::{self, Haproxy, Process, SessionId, state::fresh_server};
use super::network::{ConnId, Host, Network};
use super::pod::exchange::Exchange;
use super::pod::{self, Pod, PodId, Role};
use super::queue::Queue;
use super::spec::WorldSpec;
use super::truth::TruthLog;
use crate::time::{Duration, Instant};
use crate::world::port::{HttpStage, HttpWatcher};

/// How long the world has been up when the run begins.
const WARM_UP: Duration = Duration::from_secs(10);

/// The world.
pub(super) struct Model {
    /// The true time.
    pub(super) now: Instant,
    queue: Queue<Event>,
    pub(super) dice: Dice,
    pub(super) spec: WorldSpec,
    pub(super) net: Network,
    pub(super) lb: Haproxy,
    pub(super) pods: Vec<Pod>,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) requests: Vec<Request>,
    pub(super) clients: Clients,
    pub(super) control: Control,
    pub(super) truth: TruthLog,
    /// The pod that a connection of the load balancer leads to.
    pub(super) conn_pods: HashMap<ConnId, PodId>,
    /// Sessions whose connection was closed before their server's DOWN was logged.
    pub(super) cut_waiting: Vec<(SessionId, u32, usize, usize)>,
    /// The Deployment as watchers saw it last.
    pub(super) deployment_shown: Value,
    /// Callbacks to make once the model is not locked any more.
    pub(super) outbox: Vec<Told>,
}

/// Something to do with the model at its time.
pub(super) type Action = Box<dyn FnOnce(&mut Model) + Send>;

/// What happens.
pub(super) enum Event {
    /// At a client.
    Client(client::Event),
    /// At the load balancer.
    Haproxy(haproxy::Event),
    /// In a pod.
    Pod(pod::Event),
    /// In the control plane.
    Control(control::Event),
    /// A log line arrives at gtrun.
    Log(pod::log::Delivery),
    /// A watch event arrives at gtrun.
    Watch(control::watch::Delivery),
    /// Followers of a container's log lose their connection.
    BreakFollowers(PodId, Role),
    /// Whatever a port asked for.
    Do(Action),
}

/// Somebody is told of a stage of a request.
pub(super) struct Told {
    /// Who.
    pub(super) watcher: HttpWatcher,
    /// What.
    pub(super) stage: HttpStage,
}

impl Model {
    /// A world that has been up for ten seconds.
    pub(super) fn new(spec: WorldSpec, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let begin = spec.start - WARM_UP;
        let clock = |name: &str| {
            let c = spec.clocks.get(name).copied();
            HostClock {
                offset: c.map_or(Duration::ZERO, |c| c.offset),
                drift_ppm: c.map_or(0.0, |c| c.drift_ppm),
                since: spec.start,
            }
        };
        let host = |name: &str, ip: [u8; 4]| Host {
            name: name.to_owned(),
            ip: Ipv4Addr::from(ip),
            clock: clock(name),
            packets: Vec::new(),
            captures: 0,
        };
        let mut hosts = vec![host("client", [10, 77, 0, 100]), host(&spec.names.lb, [10, 77, 0, 211])];
        for (index, node) in spec.nodes.iter().enumerate() {
            hosts.push(host(&node.name, [10, 77, 0, 11 + index as u8]));
        }
        let net = Network::new(hosts, spec.network.rtt.half(), &mut dice);
        let rise = spec.load_balancer.rise;
        let servers = spec
            .nodes
            .iter()
            .enumerate()
            .map(|(i, n)| fresh_server(i, &n.server, rise, begin))
            .collect();
        let lb = Haproxy {
            processes: vec![Process::new(dice.int(900, 30_000) as u32, servers, begin)],
            sessions: Vec::new(),
            followers: Vec::new(),
        };
        let labels = BTreeMap::from([
            ("app".to_owned(), spec.names.deployment.clone()),
            (spec.names.mode_label.clone(), spec.mode.word().to_owned()),
        ]);
        let (hash, uid) = (dice.suffix(10), dice.uuid());
        let cordoned = spec.nodes.iter().map(|n| n.cordoned).collect();
        let control = Control::new(spec.replicas, labels, hash, uid, cordoned);
        let mut model = Self {
            now: begin,
            queue: Queue::default(),
            dice,
            spec,
            net,
            lb,
            pods: Vec::new(),
            exchanges: Vec::new(),
            requests: Vec::new(),
            clients: Clients::default(),
            control,
            truth: TruthLog::default(),
            conn_pods: HashMap::new(),
            cut_waiting: Vec::new(),
            deployment_shown: Value::Null,
            outbox: Vec::new(),
        };
        model.warm_up();
        model
    }

    /// Brings the world to its start: pods ready, servers checked, phases where the seed (or the pin) puts them.
    fn warm_up(&mut self) {
        for _ in 0..self.spec.replicas {
            let pod = self.create_pod();
            // Pods exist for a while already; only their last seconds are lived through.
            self.pods[pod.0].created = self.now - Duration::from_secs(300);
        }
        self.place_ready_pods();
        let inter = self.spec.load_balancer.inter;
        let phase = match self.spec.load_balancer.phase {
            Some(before) => {
                let period = inter.as_nanos().max(1);
                Duration::from_nanos((WARM_UP - before).as_nanos().rem_euclid(period))
            }
            None => self.dice.between(Duration::ZERO, inter),
        };
        self.after(phase, Event::Do(Box::new(|m: &mut Self| m.start_checks())));
        while self.queue.next_at().is_some_and(|at| at <= self.spec.start) {
            self.step();
        }
        self.now = self.spec.start;
        self.truth.events.clear();
        self.next_other_client();
        if self.spec.observation.watch_breaks {
            let at = self.dice.micros(1_000_000, 30_000_000);
            self.after(at, Event::Control(control::Event::BreakWatches));
        }
    }

    /// Schedules an event; the past is now.
    pub(super) fn schedule(&mut self, at: Instant, event: Event) {
        self.queue.push(at.max(self.now), event);
    }

    /// Schedules an event after a time.
    pub(super) fn after(&mut self, wait: Duration, event: Event) {
        self.schedule(self.now + wait, event);
    }

    /// Makes the next event happen; false when there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some((at, event)) = self.queue.pop() else {
            return false;
        };
        self.now = at;
        match event {
            Event::Client(e) => self.client_event(e),
            Event::Haproxy(e) => self.haproxy_event(e),
            Event::Pod(e) => self.pod_event(e),
            Event::Control(e) => self.control_event(e),
            Event::Log(delivery) => delivery.arrive(),
            Event::Watch(delivery) => delivery.arrive(),
            Event::BreakFollowers(pod, role) => self.break_followers(pod, role),
            Event::Do(action) => action(self),
        }
        true
    }
}

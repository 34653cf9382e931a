//! Pods: the kubelet's part, the containers, Envoy, the application and the FSM of the health page.

use std::net::Ipv4Addr;

use super::model::Model;
use crate::time::{Duration, Instant};

pub(super) mod app;
pub(super) mod envoy;
pub(super) mod exchange;
pub(super) mod fsm;
pub(super) mod kubelet;
pub(super) mod log;

use envoy::Envoy;
use exchange::ExchangeId;
use fsm::Fsm;
use log::ContainerLog;

/// A pod; an index that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PodId(pub(super) usize);

/// The three containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Role {
    /// The application.
    App,
    /// Health page and FSM.
    Hc,
    /// Envoy.
    Sidecar,
}

impl Role {
    /// All of them, in the order of the pod's specification.
    pub(super) const ALL: [Self; 3] = [Self::App, Self::Hc, Self::Sidecar];

    /// The key that scenarios use.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Hc => "hc",
            Self::Sidecar => "sidecar",
        }
    }
}

/// `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not scheduled, or its containers do not run yet.
    Pending,
    /// Containers run.
    Running,
    /// All ended with 0.
    Succeeded,
    /// All ended, one of them not with 0.
    Failed,
}

impl Phase {
    /// As the API writes it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Its containers have ended: its ports are free.
    pub(super) fn terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Running => false,
        }
    }
}

/// Told to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deletion {
    /// When the API server accepted it.
    pub(super) asked: Instant,
    /// Grace period.
    pub(super) grace: Duration,
}

/// One container.
#[derive(Debug, Default)]
pub(super) struct Container {
    /// Its process runs since.
    pub(super) started: Option<Instant>,
    /// Its end and its exit code, truly.
    pub(super) ended: Option<(Instant, i32)>,
    /// Its preStop was begun.
    pub(super) hook_begun: bool,
    /// SIGTERM was sent.
    pub(super) sigterm: Option<Instant>,
    /// Its readiness as the kubelet last reported it.
    pub(super) ready: bool,
    /// Its log.
    pub(super) log: ContainerLog,
}

/// A pod.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) ip: Ipv4Addr,
    /// Generation of the Deployment's template.
    pub(super) generation: usize,
    pub(super) created: Instant,
    pub(super) node: Option<usize>,
    /// As the API shows it.
    pub(super) phase: Phase,
    /// Ready condition as the API shows it, and since when.
    pub(super) ready: Option<Instant>,
    pub(super) deletion: Option<Deletion>,
    /// The API shows its containers as terminated (until then they are stale).
    pub(super) shown_ended: bool,
    /// The object is gone.
    pub(super) gone: bool,
    pub(super) deletion_cost: Option<i32>,
    /// `FailedScheduling` was reported.
    pub(super) unschedulable: Option<String>,
    pub(super) containers: [Container; 3],
    pub(super) envoy: Envoy,
    pub(super) fsm: Fsm,
    /// Requests that the application works on.
    pub(super) working: Vec<ExchangeId>,
    /// The application was told that the pod drains.
    pub(super) closing: bool,
    /// The readiness probe was made to fail by a command.
    pub(super) readiness_broken: bool,
    /// What the agent check answers.
    pub(super) agent_drain: bool,
    /// The endpoint slice holds it.
    pub(super) in_slice: bool,
}

/// What happens in a pod.
#[derive(Debug)]
pub(super) enum Event {
    /// The kubelet's part.
    Kubelet(PodId, kubelet::Event),
    /// A request on its way through Envoy.
    Exchange(ExchangeId, exchange::Event),
    /// The FSM.
    Fsm(PodId, fsm::Event),
    /// Envoy's own affairs.
    Envoy(PodId, envoy::Event),
}

impl Pod {
    /// One container.
    pub(super) fn container(&self, role: Role) -> &Container {
        &self.containers[role as usize]
    }

    /// One container.
    pub(super) fn container_mut(&mut self, role: Role) -> &mut Container {
        &mut self.containers[role as usize]
    }

    /// The process of a container runs.
    pub(super) fn runs(&self, role: Role) -> bool {
        let c = self.container(role);
        c.started.is_some() && c.ended.is_none()
    }

    /// The kubelet's view: available for the given time.
    pub(super) fn available(&self, now: Instant, min_ready: Duration) -> bool {
        self.deletion.is_none() && self.ready.is_some_and(|since| now - since >= min_ready)
    }
}

impl Model {
    /// Hands an event to its part.
    pub(super) fn pod_event(&mut self, event: Event) {
        match event {
            Event::Kubelet(pod, e) => self.kubelet_event(pod, e),
            Event::Exchange(id, e) => self.exchange_event(id, e),
            Event::Fsm(pod, e) => self.fsm_event(pod, e),
            Event::Envoy(pod, e) => self.envoy_event(pod, e),
        }
    }

    /// The pod whose Envoy accepts connections on a node's port now.
    pub(super) fn listening_on(&self, node: usize) -> Option<PodId> {
        let listens = |p: &Pod| p.node == Some(node) && p.runs(Role::Sidecar) && p.envoy.listening;
        self.pods.iter().rposition(listens).map(PodId)
    }

    /// The name of a container.
    pub(super) fn container_name(&self, role: Role) -> &str {
        match role {
            Role::App => &self.spec.names.app,
            Role::Hc => &self.spec.names.hc,
            Role::Sidecar => &self.spec.names.sidecar,
        }
    }

    /// The role of a container by its name or its role's word.
    pub(super) fn role_of(&self, name: &str) -> Option<Role> {
        Role::ALL
            .into_iter()
            .find(|r| self.container_name(*r) == name || r.word() == name)
    }
}

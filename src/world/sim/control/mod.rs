//! The control plane: Deployment, ReplicaSets, scheduler, EndpointSlice, events, and the watches on them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::model::{Event as ModelEvent, Model};
use super::pod::{Container, Deletion, Phase, Pod, PodId, Role, kubelet};
use super::truth::Happened;
use crate::time::{Duration, Instant};
use crate::world::port::{PodIdentity, Watched};

pub(super) mod object;
pub(super) mod rollout;
pub(super) mod watch;

use watch::Watcher;

/// The control plane's state.
#[derive(Debug)]
pub(super) struct Control {
    /// Labels of the Deployment.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) replicas: u32,
    /// `metadata.generation`.
    pub(super) generation: u64,
    /// The present template; an index of `hashes`.
    pub(super) template: usize,
    /// `pod-template-hash` by template.
    pub(super) hashes: Vec<String>,
    /// `kubectl.kubernetes.io/restartedAt` by template.
    pub(super) restarted: Vec<Option<String>>,
    pub(super) uid: String,
    /// Nodes that are cordoned.
    pub(super) cordoned: Vec<bool>,
    /// `metadata.resourceVersion`.
    pub(super) version: u64,
    pub(super) watchers: Vec<Watcher>,
    /// Holder and end of the lease.
    pub(super) lease: Option<(String, Instant)>,
    pub(super) messages: Vec<Message>,
    reconciling: bool,
    scheduling: bool,
    slicing: bool,
}

/// A Kubernetes event.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) about: PodIdentity,
    pub(super) kind: &'static str,
    pub(super) container: Option<String>,
    pub(super) level: &'static str,
    pub(super) reason: &'static str,
    pub(super) text: String,
    pub(super) count: u32,
    pub(super) first: Instant,
    pub(super) last: Instant,
}

/// What the control plane does by itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// The controllers look at the Deployment.
    Reconcile,
    /// The scheduler looks at pending pods.
    Schedule,
    /// The EndpointSlice is written.
    Slice,
    /// Watches break.
    BreakWatches,
    /// Watches stand again.
    HealWatches,
}

impl Control {
    /// A Deployment with its first template.
    pub(super) fn new(
        replicas: u32,
        labels: BTreeMap<String, String>,
        hash: String,
        uid: String,
        nodes: Vec<bool>,
    ) -> Self {
        Self {
            labels,
            replicas,
            generation: 1,
            template: 0,
            hashes: vec![hash],
            restarted: vec![None],
            uid,
            cordoned: nodes,
            version: 700,
            watchers: Vec::new(),
            lease: None,
            messages: Vec::new(),
            reconciling: false,
            scheduling: false,
            slicing: false,
        }
    }
}

impl Model {
    /// Hands an event to its part.
    pub(super) fn control_event(&mut self, event: Event) {
        match event {
            Event::Reconcile => {
                self.control.reconciling = false;
                self.reconcile();
            }
            Event::Schedule => {
                self.control.scheduling = false;
                self.schedule_pods();
            }
            Event::Slice => {
                self.control.slicing = false;
                self.write_slice();
            }
            Event::BreakWatches => self.break_watches(),
            Event::HealWatches => self.heal_watches(),
        }
    }

    /// The controllers act 20 to 50 ms after a change.
    pub(super) fn reconcile_soon(&mut self) {
        if !std::mem::replace(&mut self.control.reconciling, true) {
            let wait = self.dice.spread(12_000, 25_000, 45_000);
            self.after(wait, ModelEvent::Control(Event::Reconcile));
        }
    }

    /// The controllers look again when a pod becomes available.
    pub(super) fn reconcile_after(&mut self, wait: Duration) {
        let wait = wait + self.dice.spread(20_000, 30_000, 50_000);
        self.after(wait, ModelEvent::Control(Event::Reconcile));
    }

    /// The scheduler acts a few milliseconds after a change.
    pub(super) fn schedule_pods_soon(&mut self) {
        if !std::mem::replace(&mut self.control.scheduling, true) {
            let wait = self.dice.spread(1_500, 3_000, 30_000);
            self.after(wait, ModelEvent::Control(Event::Schedule));
        }
    }

    /// The EndpointSlice follows a change.
    pub(super) fn slice_soon(&mut self) {
        if !std::mem::replace(&mut self.control.slicing, true) {
            let wait = self.dice.spread(3_000, 14_000, 40_000);
            self.after(wait, ModelEvent::Control(Event::Slice));
        }
    }

    fn write_slice(&mut self) {
        let now = self.now;
        let mut removed = Vec::new();
        for p in &mut self.pods {
            // An endpoint is removed only when its containers are gone; before that it is terminating.
            let belongs =
                !p.gone && !p.shown_ended && p.node.is_some() && p.containers.iter().all(|c| c.started.is_some());
            if p.in_slice && !belongs {
                removed.push(p.name.clone());
            }
            p.in_slice = belongs;
        }
        for pod in removed {
            self.truth.note(now, Happened::EndpointRemoved { pod });
        }
        let object = self.slice_object();
        self.notify(Watched::EndpointSlices, "MODIFIED", object);
    }

    /// A pod made by the present (or another) template.
    pub(super) fn create_pod(&mut self) -> PodId {
        let generation = self.control.template;
        let name = format!(
            "{}-{}-{}",
            self.spec.names.deployment,
            self.control.hashes[generation],
            self.dice.suffix(5)
        );
        let uid = self.dice.uuid();
        self.pods.push(Pod {
            name,
            uid,
            ip: Ipv4Addr::UNSPECIFIED,
            generation,
            created: self.now,
            node: None,
            phase: Phase::Pending,
            ready: None,
            deletion: None,
            shown_ended: false,
            gone: false,
            deletion_cost: None,
            unschedulable: None,
            containers: [Container::default(), Container::default(), Container::default()],
            envoy: super::pod::envoy::Envoy::default(),
            fsm: super::pod::fsm::Fsm::default(),
            working: Vec::new(),
            closing: false,
            readiness_broken: false,
            agent_drain: false,
            in_slice: false,
        });
        let pod = PodId(self.pods.len() - 1);
        let object = self.pod_object(pod);
        self.notify(Watched::Pods, "ADDED", object);
        self.schedule_pods_soon();
        pod
    }

    /// Binds pending pods to free nodes, in the order of their creation.
    fn schedule_pods(&mut self) {
        for index in 0..self.pods.len() {
            let p = &self.pods[index];
            if p.node.is_some() || p.gone || p.deletion.is_some() {
                continue;
            }
            match self.free_node() {
                Ok(node) => {
                    self.bind(PodId(index), node);
                    // With the first probe the pod is Ready 1.6 / 2.3 / 4.0 s after its creation.
                    let start = self.dice.spread(900_000, 1_700_000, 2_900_000);
                    self.kubelet_soon(PodId(index), start, kubelet::Event::Start);
                }
                Err(why) => {
                    if self.pods[index].unschedulable.replace(why.clone()).is_none() {
                        self.pod_event_message(PodId(index), None, "Warning", "FailedScheduling", why);
                        self.pod_changed(PodId(index));
                    }
                }
            }
        }
    }

    /// A node without a pod of ours on its host port, or the scheduler's words.
    fn free_node(&self) -> Result<usize, String> {
        let (mut cordoned, mut tainted, mut taken) = (0, 0, 0);
        for (index, node) in self.spec.nodes.iter().enumerate() {
            if self.control.cordoned[index] {
                cordoned += 1;
            } else if !node.taints.is_empty() {
                tainted += 1;
            } else if self
                .pods
                .iter()
                .any(|p| p.node == Some(index) && !p.gone && !p.phase.terminal())
            {
                taken += 1;
            } else {
                return Ok(index);
            }
        }
        let mut reasons = Vec::new();
        for (count, text) in [
            (taken, "node(s) didn't have free ports for the requested pod ports"),
            (tainted, "node(s) had untolerated taint(s)"),
            (cordoned, "node(s) were unschedulable"),
        ] {
            if count > 0 {
                reasons.push(format!("{count} {text}"));
            }
        }
        Err(format!(
            "0/{} nodes are available: {}.",
            self.spec.nodes.len(),
            reasons.join(", ")
        ))
    }

    fn bind(&mut self, pod: PodId, node: usize) {
        let last = 10 + pod.0 as u8 % 240;
        let p = &mut self.pods[pod.0];
        p.node = Some(node);
        p.ip = Ipv4Addr::new(10, 244, node as u8, last);
        p.unschedulable = None;
        let (name, node_name) = (p.name.clone(), self.spec.nodes[node].name.clone());
        let text = format!(
            "Successfully assigned {}/{name} to {node_name}",
            self.spec.names.namespace
        );
        self.pod_event_message(pod, None, "Normal", "Scheduled", text);
        self.pod_changed(pod);
    }

    /// The API server accepts a deletion.
    pub(super) fn terminate_pod(&mut self, pod: PodId, grace: Duration) {
        let now = self.now;
        let p = &mut self.pods[pod.0];
        if let Some(deletion) = &mut p.deletion {
            // A second deletion can only shorten the grace period.
            deletion.grace = deletion.grace.min(now - deletion.asked + grace);
            return;
        }
        p.deletion = Some(Deletion { asked: now, grace });
        let (name, uid) = (p.name.clone(), p.uid.clone());
        self.truth.note(now, Happened::PodTerminating { pod: name, uid });
        self.pod_changed(pod);
        self.slice_soon();
        self.reconcile_soon();
        self.kubelet_ends(pod, grace);
        if grace <= Duration::ZERO {
            self.remove_pod(pod);
        }
    }

    /// The object goes: one last MODIFIED with a grace of zero, then DELETED.
    pub(super) fn remove_pod(&mut self, pod: PodId) {
        if self.pods[pod.0].gone {
            return;
        }
        if let Some(deletion) = &mut self.pods[pod.0].deletion {
            deletion.asked = self.now;
            deletion.grace = Duration::ZERO;
        }
        self.pod_changed(pod);
        let object = self.pod_object(pod);
        self.notify(Watched::Pods, "DELETED", object);
        let p = &mut self.pods[pod.0];
        p.gone = true;
        let name = p.name.clone();
        self.truth.note(self.now, Happened::PodGone { pod: name });
        for role in Role::ALL {
            if self.pods[pod.0].runs(role) {
                self.end_followers(pod, role, crate::world::port::LogEnd::PodGone);
            }
        }
        self.slice_soon();
        self.reconcile_soon();
        self.schedule_pods_soon();
    }

    /// A pod's object has changed.
    pub(super) fn pod_changed(&mut self, pod: PodId) {
        let object = self.pod_object(pod);
        self.notify(Watched::Pods, "MODIFIED", object);
        self.deployment_changed();
    }

    /// The Deployment's status follows its pods; it is sent when it differs.
    pub(super) fn deployment_changed(&mut self) {
        if self.control.watchers.iter().any(|w| w.what == Watched::Deployment) {
            let object = self.deployment_object();
            self.notify_if_changed(object);
        }
    }

    /// Finds a pod by name and uid.
    pub(super) fn find_pod(&self, identity: &PodIdentity) -> Option<PodId> {
        self.pods
            .iter()
            .position(|p| !p.gone && p.name == identity.name && p.uid == identity.uid)
            .map(PodId)
    }
}

impl Model {
    /// Binds and starts the pods that are there from the beginning.
    pub(super) fn place_ready_pods(&mut self) {
        for index in 0..self.pods.len() {
            let Ok(node) = self.free_node() else { continue };
            self.bind(PodId(index), node);
            let now = self.now;
            let p = &mut self.pods[index];
            p.phase = Phase::Running;
            p.ready = Some(now);
            p.in_slice = true;
            p.envoy.listening = true;
            for role in Role::ALL {
                let c = p.container_mut(role);
                c.started = Some(now);
                c.ready = true;
            }
            let probe = self.dice.micros(0, 2_000_000);
            self.kubelet_soon(PodId(index), probe, kubelet::Event::Probe);
        }
    }
}

//! Watches of the Kubernetes API with arrival stamps: pods, EndpointSlices, events, the Deployment.

use std::sync::Arc;

use super::{FileId, Place};
use crate::time::{Duration, Instant};

mod parse;
pub(crate) mod reader;

pub use parse::{ParsedEvent, parse_event};

/// One watch file, on gtrun's (or the old script's) clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    /// The file.
    pub file: FileId,
    /// In file order.
    pub events: Vec<WatchEvent>,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// Last moment at which the watch is known to have been in contact before this event: the arrival of an event
    /// before it, or, after a gap, of the last good one. `None` for the first and for what was listed at the start.
    /// Delivery takes time (up to 50 ms were measured): a change may be older than this by so much.
    pub last_contact: Option<Instant>,
    /// When it arrived; the change happened before, and may be seen before the answer to the call that caused it.
    pub arrival: Instant,
    /// Where.
    pub place: Place,
    /// What it says.
    pub what: WatchChange,
}

/// What a watch event says.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchChange {
    /// A pod was added, listed or changed.
    Pod(PodState),
    /// A pod is gone.
    PodDeleted(PodState),
    /// An EndpointSlice.
    Endpoints(Vec<EndpointState>),
    /// A Kubernetes event; stamps of whole seconds, aggregated, rate limited: absence proves nothing.
    Event(KubernetesEvent),
    /// A Deployment.
    Deployment(DeploymentState),
    /// The watch broke (ERROR 410, a silent end): what happened since the last contact is not known.
    Gap(String),
}

/// A pod as the API shows it. Container states are stale while it terminates.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PodState {
    /// Name.
    pub name: String,
    /// Uid; a pod is (name, uid).
    pub uid: String,
    /// Node.
    pub node: Option<String>,
    /// Pod's IP.
    pub ip: Option<String>,
    /// Phase.
    pub phase: Option<String>,
    /// Ready condition.
    pub ready: Option<bool>,
    /// `deletionTimestamp`: request time **plus grace**, cut to the second.
    pub deletion: Option<Instant>,
    /// `deletionGracePeriodSeconds`.
    pub grace: Option<Duration>,
    /// Containers and init containers.
    pub containers: Vec<ContainerState>,
    /// `pod-template-hash`.
    pub template_hash: Option<String>,
    /// Owner's name (ReplicaSet).
    pub owner: Option<String>,
}

/// A container as the API shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContainerState {
    /// Name.
    pub name: String,
    /// It is running.
    pub running: bool,
    /// Exit code when terminated.
    pub exit_code: Option<i32>,
    /// `finishedAt`, whole seconds.
    pub finished: Option<Instant>,
    /// Restarts.
    pub restarts: u32,
    /// Ready.
    pub ready: bool,
}

/// One endpoint of a slice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EndpointState {
    /// Uid of its pod.
    pub pod_uid: Option<String>,
    /// Name of its pod.
    pub pod: Option<String>,
    /// `ready`.
    pub ready: Option<bool>,
    /// `serving`.
    pub serving: Option<bool>,
    /// `terminating`: the early signal of a drain.
    pub terminating: Option<bool>,
}

/// A Kubernetes event.
#[derive(Debug, Clone, PartialEq)]
pub struct KubernetesEvent {
    /// `Killing`, `FailedPreStopHook`, `FailedScheduling`.
    pub reason: Arc<str>,
    /// Message.
    pub message: Arc<str>,
    /// Name of what it is about.
    pub about: Arc<str>,
    /// Uid of what it is about.
    pub about_uid: Option<Arc<str>>,
    /// Count.
    pub count: u32,
    /// `eventTime` or `lastTimestamp`.
    pub at: Option<Instant>,
}

/// A Deployment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeploymentState {
    /// Name.
    pub name: String,
    /// `metadata.labels.mode` or the environment's mode label.
    pub labels: Vec<(String, String)>,
    /// `spec.replicas`.
    pub replicas: Option<u32>,
    /// `status.updatedReplicas`.
    pub updated: Option<u32>,
    /// `status.readyReplicas`.
    pub ready: Option<u32>,
    /// `status.availableReplicas`.
    pub available: Option<u32>,
    /// `observedGeneration` has caught up with `generation`.
    pub observed: bool,
}

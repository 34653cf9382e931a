//! What really happened, beside the evidence: instants on the true clock, and how every attempt of every request ended.
//!
//! `truth.json` in the run folder is for people and for `selfcheck`; nothing that judges opens it.

use serde::Serialize;

use crate::evidence::client::Outcome;
use crate::time::Instant;

/// The record.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TruthLog {
    /// What happened, in order of time.
    pub events: Vec<TruthEvent>,
    /// Every request of gtrun itself, in order of their start.
    pub requests: Vec<TruthRequest>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TruthEvent {
    /// When, on the true clock.
    pub at: Instant,
    /// What.
    #[serde(flatten)]
    pub what: Happened,
}

/// The kinds of things that happen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happened {
    /// The API server accepted the deletion or eviction of a pod.
    PodTerminating {
        /// Pod.
        pod: String,
        /// Uid.
        uid: String,
    },
    /// A pod's object is gone.
    PodGone {
        /// Pod.
        pod: String,
    },
    /// A pod is ready, or not any more.
    PodReady {
        /// Pod.
        pod: String,
        /// Which.
        ready: bool,
    },
    /// A pod's endpoint left the slice.
    EndpointRemoved {
        /// Pod.
        pod: String,
    },
    /// An FSM transition.
    Transition {
        /// Pod.
        pod: String,
        /// State left.
        from: String,
        /// State entered.
        to: String,
    },
    /// The health page's answer changes.
    Health {
        /// Pod.
        pod: String,
        /// Status from now on.
        status: u16,
    },
    /// Envoy was told to drain its listeners.
    DrainListeners {
        /// Pod.
        pod: String,
    },
    /// Envoy's listener closed.
    ListenerClosed {
        /// Pod.
        pod: String,
    },
    /// The requests in flight on a pod's Envoy, health checks not counted.
    Active {
        /// Pod.
        pod: String,
        /// Of the ingress listener.
        downstream: u32,
        /// Of the application's cluster.
        upstream: u32,
    },
    /// SIGTERM.
    Sigterm {
        /// Pod.
        pod: String,
        /// Container.
        container: String,
    },
    /// A container ended.
    ContainerExit {
        /// Pod.
        pod: String,
        /// Container.
        container: String,
        /// Exit code.
        code: i32,
    },
    /// A server's state on the load balancer: `down`, `up`, `nolb`, `maint`, `drain`, `ready`.
    Server {
        /// Server.
        server: String,
        /// State entered.
        state: String,
        /// Generation of the HAProxy process, from 0.
        process: usize,
    },
    /// HAProxy was reloaded.
    Reload,
}

/// One request of gtrun.
#[derive(Debug, Clone, Serialize)]
pub struct TruthRequest {
    /// Method.
    pub method: String,
    /// Path.
    pub path: String,
    /// Client's port; together with `started` it names the request in the evidence.
    pub local_port: u16,
    /// Begun.
    pub started: Instant,
    /// Over for the client.
    pub ended: Option<Instant>,
    /// How it ended for the client.
    pub outcome: Option<Outcome>,
    /// Status that the client saw.
    pub status: Option<u16>,
    /// Attempts that the load balancer made, in order; none: no server.
    pub attempts: Vec<TruthAttempt>,
}

/// One attempt of the load balancer.
#[derive(Debug, Clone, Serialize)]
pub struct TruthAttempt {
    /// Server.
    pub server: String,
    /// Pod behind it, where a connection was made.
    pub pod: Option<String>,
    /// Its uid.
    pub uid: Option<String>,
    /// The load balancer's port towards it.
    pub lb_port: Option<u16>,
    /// In flight at the pod's Envoy from.
    pub from: Option<Instant>,
    /// Until.
    pub until: Option<Instant>,
    /// How it ended.
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It is going on.
    Open,
    /// The response was whole.
    Whole,
    /// The load balancer cut it because it marked the server down.
    CutByDown,
    /// The load balancer cut it because the server was put into maintenance.
    CutByMaint,
    /// The pod's side closed it: its process ended.
    PodClosed,
    /// Nothing listened.
    Refused,
    /// `timeout server`.
    ServerTimeout,
    /// The client went away before the response.
    ClientGone,
}

impl TruthLog {
    /// Notes what happened.
    pub(super) fn note(&mut self, at: Instant, what: Happened) {
        self.events.push(TruthEvent { at, what });
    }
}

//! What happened in a run, with everybody who saw it.

mod build;

use crate::evidence::haproxy_log::ServerChange;
use crate::evidence::run_folder::CallOutcome;
use crate::timeline::Timeline;
use crate::timeline::clocks::Sighting;
use build::Builder;
use std::sync::Arc;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What happened.
    pub what: What,
    /// The server that it is about, where it is about one.
    pub server: Option<Arc<str>>,
    /// The pod that it is about, where it is about one.
    pub pod: Option<String>,
    /// Who saw it, each on its own clock; never empty.
    pub sightings: Vec<Sighting>,
    /// Details by name, for `timeline.jsonl` and event fields.
    pub details: Vec<(&'static str, serde_json::Value)>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A call of gtrun: a step, from sent to acknowledged.
    Step {
        /// Step id.
        id: String,
        /// Verb.
        verb: String,
        /// Outcome.
        outcome: CallOutcome,
    },
    /// The call that told a pod to stop.
    Delete,
    /// An FSM transition.
    Transition {
        /// State left.
        from: String,
        /// State entered.
        to: String,
    },
    /// Envoy was told to drain its listeners.
    DrainListeners,
    /// The in-flight count settled at zero.
    ActiveZero,
    /// The first zero after the drain began.
    FirstActiveZero,
    /// A gauge sample that differs from the one before.
    ActiveCount,
    /// The health page first answered with a failure.
    HealthFail,
    /// A change of a server's state.
    Lb(ServerChange),
    /// A reload of the load balancer.
    LbReload,
    /// A reset on a connection of a request whose response was not complete.
    Rst {
        /// Step id of the request.
        request: Option<String>,
    },
    /// The load balancer ended a request's connection before the response was whole.
    Cut {
        /// Step id of the request.
        request: String,
    },
    /// A request or load was sent.
    Started {
        /// Step id.
        id: String,
    },
    /// A request or load was over.
    Ended {
        /// Step id.
        id: String,
        /// The response was whole; `None` when nobody says.
        whole: Option<bool>,
    },
    /// HTTP/2 GOAWAY came in.
    Goaway {
        /// Step id.
        id: String,
    },
    /// SIGTERM in a container.
    Sigterm {
        /// `hc`, `sidecar`, `app`, or the container's name.
        container: String,
    },
    /// A container ended.
    ContainerExit {
        /// `hc`, `sidecar`, `app`, or the container's name.
        container: String,
    },
    /// A pod has a deletion timestamp.
    PodTerminating,
    /// A pod is gone from the API.
    PodGone,
    /// A pod became Ready.
    PodReady,
    /// A pod is no longer Ready.
    NotReady,
    /// A pod left the EndpointSlice.
    EndpointRemoved,
    /// A rollout began.
    RolloutStarted,
    /// A rollout is over.
    RolloutFinished,
    /// A `mark` step.
    Mark {
        /// Its name.
        name: String,
    },
}

impl What {
    /// Name on disk; those of the old harness are kept.
    pub fn name_on_disk(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Delete => "pod_delete",
            Self::Transition { .. } => "hc_state",
            Self::DrainListeners => "envoy_drain_listeners",
            Self::ActiveZero => "active_zero",
            Self::FirstActiveZero => "first_active_zero",
            Self::ActiveCount => "envoy_active_count",
            Self::HealthFail => "health_fail",
            Self::Lb(ServerChange::Down | ServerChange::DownByTracking) => "haproxy_backend_down",
            Self::Lb(_) => "haproxy_state",
            Self::LbReload => "haproxy_reload",
            Self::Rst { .. } => "tcp_rst",
            Self::Cut { .. } => "request_cut",
            Self::Started { .. } => "request_started",
            Self::Ended { .. } => "request_ended",
            Self::Goaway { .. } => "http2_goaway",
            Self::Sigterm { .. } => "sigterm",
            Self::ContainerExit { .. } => "container_exit",
            Self::PodTerminating => "pod_terminating",
            Self::PodGone => "pod_gone",
            Self::PodReady => "pod_ready",
            Self::NotReady => "not_ready",
            Self::EndpointRemoved => "endpoint_removed",
            Self::RolloutStarted => "rollout_started",
            Self::RolloutFinished => "rollout_finished",
            Self::Mark { .. } => "mark",
        }
    }
}

/// All events of a run.
pub fn all(timeline: &Timeline<'_>) -> Vec<Event> {
    let mut b = Builder::new(timeline);
    b.calls();
    b.run_log();
    b.fsm();
    b.envoy();
    b.gauges();
    b.servers();
    b.targets();
    b.requests();
    b.watches();
    b.events
}

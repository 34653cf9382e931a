//! What is seen while a run goes on: facts and signals from the same parsers that read the files afterwards, for
//! `wait_for`, `until`, `when` and `expect_in_flight`. Nothing here is evidence and nothing is judged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::language::Id;
use crate::language::expression::LbChange;
use crate::language::vocabulary::{Health, LbStatus};
use crate::time::Instant;

mod condition;
mod gauge;
mod happened;
pub(crate) mod watch;

pub(crate) use condition::{Known, Results, Value, holds};
pub(crate) use gauge::Gauges;
pub(crate) use happened::change_of;

/// Something that was seen to have happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    /// When it was seen, on gtrun's clock.
    pub(crate) at: Instant,
    pub(crate) what: Seen,
}

/// The kinds of things that are seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    /// A step was sent.
    Sent(Id),
    /// A step is over, in whatever way; for a request: its response was whole.
    Over { id: Id, whole: Option<bool> },
    /// A GOAWAY on a request's connection.
    Goaway(Id),
    /// The target was told to stop.
    Delete,
    /// A `mark` step.
    Mark(Id),
    /// An FSM transition in a pod.
    Transition { pod: String, from: String, to: String },
    /// Envoy was told to drain.
    DrainListeners { pod: String },
    /// The health page fails.
    HealthFail { pod: Option<String> },
    /// SIGTERM in a container.
    Sigterm { pod: String, container: Id },
    /// A container's end.
    ContainerExit { pod: String, container: Id },
    /// A line of a log that a probe follows.
    Line { probe: Id, text: String },
    /// A change of a server's state.
    Lb { server: String, change: LbChange },
    /// The load balancer was reloaded.
    LbReload,
    /// A pod has a deletion timestamp.
    Terminating { uid: String },
    /// A pod is gone.
    Gone { uid: String },
    /// A pod became ready, or is not ready any more.
    Ready { uid: String, ready: bool },
    /// A pod's endpoint was there and is not any more.
    EndpointRemoved { uid: String },
    /// A rollout has begun.
    RolloutStarted,
    /// A rollout is over.
    RolloutFinished,
}

/// The last value of a sampled signal, and when it was seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// By pod.
    pub(crate) gauges: std::collections::BTreeMap<String, Gauges>,
    /// By server: state and current sessions.
    pub(crate) servers: std::collections::BTreeMap<String, (LbStatus, u64)>,
    /// Ready pods of the workload, by uid.
    pub(crate) ready: Option<std::collections::BTreeSet<String>>,
    /// What the health page of the target answers.
    pub(crate) health: Option<Health>,
}

/// What is seen; clones see the same.
#[derive(Clone, Default)]
pub(crate) struct Live {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Inner {
    facts: Vec<Fact>,
    signals: Signals,
    /// The beginning of the first step that acts.
    disturbed: Option<Instant>,
}

impl Live {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was seen.
    pub(crate) fn saw(&self, at: Instant, what: Seen) {
        self.inner().facts.push(Fact { at, what });
        self.changed.notify_waiters();
    }

    /// A signal has a new value.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Signals)) {
        change(&mut self.inner().signals);
        self.changed.notify_waiters();
    }

    /// The disturbance begins now, unless it has begun.
    pub(crate) fn disturbed(&self, at: Instant) {
        self.inner().disturbed.get_or_insert(at);
    }

    /// Looks at everything at once.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[Fact], &Signals, Option<Instant>) -> T) -> T {
        let inner = self.inner();
        look(&inner.facts, &inner.signals, inner.disturbed)
    }

    /// Waits until `is` says so; it is asked again after every change.
    pub(crate) async fn until<T>(&self, mut is: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before looking, so that a change in between is not missed.
            changed.as_mut().enable();
            if let Some(found) = is() {
                return found;
            }
            changed.await;
        }
    }
}

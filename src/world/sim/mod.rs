//! The simulator: a model of kubelet, workload, Envoy, HAProxy, network and clocks, in virtual time.
//!
//! ```text
//! spec      what the world is made of          build     from an environment's `world`
//! model     state, queue, clockwork            dice      the seed's chances
//! pod/      kubelet, Envoy, app, FSM, logs     control/  Deployment, scheduler, slice, watches
//! haproxy/  checks, sessions, log, statistics  network   TCP connections; capture  pcap bytes
//! client    requests                           truth     what really happened
//! ports/    the world's ports over the model
//! ```
//!
//! Deterministic: single-threaded, seeded, without a runtime. [`Sim::block_on`] polls a future until it can do nothing
//! more and then makes the next event of the model happen, so virtual time passes exactly as fast as it is needed and
//! the same seed gives the same bytes.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::world::port::{World, WorldKind};

mod build;
mod capture;
mod client;
mod clocks;
mod control;
mod dice;
mod haproxy;
mod model;
mod network;
mod pod;
mod ports;
mod queue;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod truth;

pub use build::world_of;
use model::Model;
use spec::WorldSpec;
use truth::TruthLog;

/// A simulated world; clones share it.
#[derive(Clone)]
pub struct Sim(Arc<Mutex<Model>>);

/// Nothing can happen any more, and the future is not ready: it waits for something outside of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing can happen any more in the simulated world, and the run still waits")]
pub struct Stuck;

/// Remembers that the future wants to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Sim {
    /// A world that has been up for ten seconds.
    pub fn new(spec: WorldSpec, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Model::new(spec, seed))))
    }

    /// The model. A panic while it was locked left nothing half done that could be worse than the panic itself.
    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ports over it.
    pub fn world(&self) -> World {
        let title = {
            let m = self.model();
            format!(
                "a simulated world, {} x {}, HAProxy {}",
                m.spec.replicas,
                m.spec.mode.word(),
                m.spec.load_balancer.version.word()
            )
        };
        World {
            kind: WorldKind::Sim,
            title,
            clock: Arc::new(self.clone()),
            cluster: Arc::new(self.clone()),
            load_balancer: Arc::new(self.clone()),
            hosts: Arc::new(self.clone()),
            http: Arc::new(self.clone()),
            truth: Some(Arc::new(self.clone())),
        }
    }

    /// What really happened so far.
    pub fn truth(&self) -> TruthLog {
        let m = self.model();
        let mut log = m.truth.clone();
        log.requests = m.truth_requests();
        log
    }

    /// Runs a future in virtual time: whenever it can do nothing more, the next event of the model happens.
    ///
    /// # Errors
    /// [`Stuck`] when the model has nothing left to happen and the future is not ready.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Stuck> {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            while flag.0.swap(false, Ordering::Acquire) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return Ok(output);
                }
            }
            if !self.advance() {
                return Err(Stuck);
            }
        }
    }

    /// The next event, then the callbacks that it asked for, outside of the lock.
    fn advance(&self) -> bool {
        let (more, told) = {
            let mut m = self.model();
            (m.step(), std::mem::take(&mut m.outbox))
        };
        for t in told {
            (t.watcher)(t.stage);
        }
        more
    }
}

//! What goes on beside the steps: probes, background requests, loads. All of it is one future with the steps, so that
//! nothing of a run outlives it, and no runtime is needed.

use std::future::Future;
use std::pin::pin;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;

/// Starts tasks; clones start them in the same place.
#[derive(Clone)]
pub(crate) struct Tasks(mpsc::UnboundedSender<BoxFuture<'static, ()>>);

/// Where they are carried out.
pub(crate) struct Carrier(mpsc::UnboundedReceiver<BoxFuture<'static, ()>>);

/// A pair that belongs together.
pub(crate) fn tasks() -> (Tasks, Carrier) {
    let (to, from) = mpsc::unbounded_channel();
    (Tasks(to), Carrier(from))
}

impl Tasks {
    /// Starts a task. After the carrier's end it is dropped at once.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let _ = self.0.send(task.boxed());
    }
}

impl Carrier {
    /// Carries tasks until `main` is ready; those that are not over by then are dropped with the carrier.
    pub(crate) async fn carry<T>(
        &mut self,
        set: &mut FuturesUnordered<BoxFuture<'static, ()>>,
        main: impl Future<Output = T>,
    ) -> T {
        let mut main = pin!(main);
        loop {
            tokio::select! {
                biased;
                Some(task) = self.0.recv() => set.push(task),
                Some(()) = set.next(), if !set.is_empty() => {}
                out = &mut main => return out,
            }
        }
    }
}

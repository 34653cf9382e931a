//! The controllers and the scheduler: each looks at what is stored and takes one step towards what is wanted.

mod deployment;
mod disruption;
mod endpoints;
mod garbage;
mod replicaset;
mod scheduler;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use disruption::eviction_refusal;

use super::events::Recorder;
use super::store::Store;
use super::timing::{self, Wait};

/// Looks once, then after every change and whenever the last look asked to be repeated.
async fn repeat(store: &Store, reaction: &Wait, mut look: impl FnMut() -> Option<Duration>) {
    let mut changes = store.subscribe();
    loop {
        changes.mark_unchanged();
        let again = look();
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(again.unwrap_or_default()), if again.is_some() => {}
        }
        reaction.pass().await;
    }
}

/// Runs all of them for as long as the lab is up.
pub(crate) async fn run(store: Arc<Store>, recorder: Arc<Recorder>) {
    let (store, recorder) = (store.as_ref(), recorder.as_ref());
    tokio::join!(
        repeat(store, &timing::CONTROLLER, || deployment::look(store, recorder)),
        repeat(store, &timing::CONTROLLER, || replicaset::look(store, recorder)),
        repeat(store, &timing::CONTROLLER, || garbage::look(store)),
        repeat(store, &timing::CONTROLLER, || disruption::look(store)),
        repeat(store, &timing::ENDPOINTS, || endpoints::look(store)),
        repeat(store, &timing::SCHEDULER, || scheduler::look(store, recorder)),
    );
}

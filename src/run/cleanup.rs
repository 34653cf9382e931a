//! Undoes what a run changed, the last change first: at the end of the run, or later from its journal.

use std::future::Future;

use super::context::Context;
use super::journal::{OpenChange, Undo};
use crate::evidence::run_folder::Cleanup;
use crate::time::Duration;
use crate::world::port::{ErrorKind, World, WorldError};

/// Attempts for each change; a connection may be broken for a while.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Undoes everything that is open. `failed` is what already went wrong in `finally`.
pub(crate) async fn undo(ctx: &Context, failed: Vec<String>) -> Option<Cleanup> {
    let open: Vec<OpenChange> = ctx.journal.to_undo();
    let something = open.iter().any(|c| c.undo != Undo::Nothing) || !failed.is_empty();
    let mut failures = failed;
    for change in open {
        if change.undo == Undo::Nothing {
            continue;
        }
        let result = undo_one(&ctx.world, &change.undo, |d| ctx.sleep(d)).await;
        let failure = result.err().map(|e| e.to_string());
        ctx.journal.undone(ctx.now(), &change, failure.as_deref());
        match failure {
            None => ctx.say(&format!("undone: {}", change.what)),
            Some(why) => {
                ctx.say(&format!("could not undo: {}: {why}", change.what));
                failures.push(format!("{}: {why}", change.what));
            }
        }
    }
    match (something, failures.is_empty()) {
        (false, _) => None,
        (true, true) => Some(Cleanup::Done),
        (true, false) => Some(Cleanup::Failed(failures.join("; "))),
    }
}

/// Undoes one change. Something that is not there any more needs no undoing.
///
/// # Errors
/// The last of three attempts' error; a refusal is not repeated.
pub async fn undo_one<F: Future<Output = ()>>(
    world: &World,
    undo: &Undo,
    sleep: impl Fn(Duration) -> F,
) -> Result<(), WorldError> {
    let mut attempt = 1;
    loop {
        let error = match once(world, undo).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match error.kind {
            ErrorKind::NotFound => return Ok(()),
            ErrorKind::Refused { .. } | ErrorKind::Unsupported => return Err(error),
            ErrorKind::Unreachable | ErrorKind::Interrupted | ErrorKind::Failed if attempt < ATTEMPTS => {
                attempt += 1;
                sleep(PAUSE).await;
            }
            ErrorKind::Unreachable | ErrorKind::Interrupted | ErrorKind::Failed => return Err(error),
        }
    }
}

async fn once(world: &World, undo: &Undo) -> Result<(), WorldError> {
    let cluster = &world.cluster;
    match undo {
        Undo::Scale { replicas } => cluster.scale(*replicas).await.map(|_| ()),
        Undo::Labels { labels } => cluster.label(labels).await.map(|_| ()),
        Undo::Uncordon { node } => cluster.cordon(node, false).await.map(|_| ()),
        Undo::DeletionCost { cost, .. } => match undo.pod() {
            Some(pod) => cluster.set_deletion_cost(&pod, *cost).await.map(|_| ()),
            None => Ok(()),
        },
        Undo::Lease { holder } => cluster.release_lease(holder).await,
        Undo::Nothing => Ok(()),
    }
}

//! `parallel`: step lists side by side; one that fails stops the others.

use futures::stream::{FuturesUnordered, StreamExt};

use super::{End, all};
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::Parallel;
use crate::run::context::Context;

pub(super) async fn run(ctx: &Context, verb: &Parallel) -> End {
    let mut branches: FuturesUnordered<_> = verb
        .branches
        .iter()
        .map(|(name, steps)| async move { (name, all(ctx, steps).await) })
        .collect();
    while let Some((name, result)) = branches.next().await {
        match result {
            Ok(()) => {}
            // Dropping the others ends them where they are; their records say interrupted.
            Err(Some(stopped)) => return End::new(CallOutcome::Error, format!("{name}: {}", stopped.message)),
            Err(None) => return End::new(CallOutcome::Interrupted, format!("{name}: a claim failed")),
        }
    }
    End::ok(format!("{} lists are through", verb.branches.len()))
}

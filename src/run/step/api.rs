//! What the verbs that change the cluster have in common: the journal, and waiting for the end.

use std::future::Future;

use super::End;
use crate::run::context::Context;
use crate::run::journal::Undo;
use crate::time::Duration;
use crate::world::port::{ApiAnswer, ErrorKind, WorldError};

/// Looks at the cluster this often while it waits.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Makes a change: written down before, its outcome after. A change whose answer was lost stays to be undone.
pub(super) async fn change(
    ctx: &Context,
    what: &str,
    undo: Undo,
    call: impl Future<Output = Result<ApiAnswer, WorldError>>,
) -> Result<ApiAnswer, WorldError> {
    let number = ctx.journal.about(ctx.now(), what, undo);
    let answer = call.await;
    match &answer {
        Ok(_) => ctx.journal.done(ctx.now(), number),
        Err(error) => match error.kind {
            ErrorKind::Interrupted | ErrorKind::Failed => ctx.journal.done(ctx.now(), number),
            ErrorKind::Refused { .. } | ErrorKind::NotFound | ErrorKind::Unreachable | ErrorKind::Unsupported => {
                ctx.journal.not_done(ctx.now(), number);
            }
        },
    }
    answer
}

/// How long a call took, for a person.
pub(super) fn took(ctx: &Context, sent: crate::time::Instant) -> String {
    format!("{:.0} ms", (ctx.now() - sent).as_secs_f64() * 1e3)
}

/// Waits until a pod is gone.
pub(super) async fn gone(ctx: &Context, pod: &crate::world::port::PodIdentity, end: End) -> End {
    loop {
        match ctx.world.cluster.pods().await {
            Ok(pods) if pods.iter().all(|p| p.identity != *pod) => return end,
            // The API may be away for a while; the step's time limits the waiting.
            Ok(_) | Err(_) => ctx.sleep(LOOK_AGAIN).await,
        }
    }
}

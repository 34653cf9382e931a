//! `delete_pod`: deletes the target, or the pod that a selector finds.

use super::{End, api, no_target};
use crate::language::plan::DeletePod;
use crate::run::context::Context;
use crate::run::journal::Undo;
use crate::run::target::Target;
use crate::world::port::{ErrorKind, WorldError};

pub(super) async fn run(ctx: &Context, verb: &DeletePod) -> End {
    let pod = match find(ctx, verb).await {
        Ok(pod) => pod,
        Err(end) => return end,
    };
    let sent = ctx.now();
    let what = describe("delete pod", &pod, verb);
    let call = ctx.world.cluster.delete_pod(&pod.pod, verb.grace);
    let answer = api::change(ctx, &what, Undo::Nothing, call).await;
    let end = End::answered(answer, format!("{what}: accepted in {}", api::took(ctx, sent))).on(pod.clone());
    if verb.wait && end.outcome == crate::evidence::run_folder::CallOutcome::Ok {
        return api::gone(ctx, &pod.pod, end).await;
    }
    end
}

/// `delete pod NAME --grace-period=210`, as the tool that people know would be called.
pub(super) fn describe(doing: &str, pod: &Target, verb: &DeletePod) -> String {
    let grace = verb
        .grace
        .map(|g| format!(" --grace-period={}", g.as_nanos() / 1_000_000_000));
    format!("{doing} {}{}", pod.pod.name, grace.unwrap_or_default())
}

/// The pod that is meant. A selector must mean exactly one.
pub(super) async fn find(ctx: &Context, verb: &DeletePod) -> Result<Target, End> {
    let Some(selector) = &verb.pod else {
        return ctx.target().ok_or_else(no_target);
    };
    let selector = ctx.fill(selector)?;
    let found = ctx
        .world
        .cluster
        .pods_by_label(&selector)
        .await
        .map_err(|e| End::failed(&e))?;
    let mut live = found.iter().filter(|p| !p.terminating());
    match (live.next(), live.next()) {
        (Some(pod), None) => Ok(Target::of(pod, &ctx.plan.environment)),
        (None, _) => {
            let message = format!("no pod has the labels {selector}");
            Err(End::failed(&WorldError::new(
                ErrorKind::NotFound,
                "find the pod",
                message,
            )))
        }
        (Some(_), Some(_)) => {
            let message = format!("several pods have the labels {selector}; say one that only one has");
            Err(End::failed(&WorldError::new(
                ErrorKind::Failed,
                "find the pod",
                message,
            )))
        }
    }
}

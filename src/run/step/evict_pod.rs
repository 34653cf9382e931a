//! `evict_pod`: the eviction API; a PodDisruptionBudget may refuse with 429.

use super::{End, api, delete_pod};
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::DeletePod;
use crate::run::context::Context;
use crate::run::journal::Undo;

pub(super) async fn run(ctx: &Context, verb: &DeletePod) -> End {
    let pod = match delete_pod::find(ctx, verb).await {
        Ok(pod) => pod,
        Err(end) => return end,
    };
    let sent = ctx.now();
    let what = delete_pod::describe("evict pod", &pod, verb);
    let call = ctx.world.cluster.evict_pod(&pod.pod, verb.grace);
    let answer = api::change(ctx, &what, Undo::Nothing, call).await;
    let end = End::answered(answer, format!("{what}: accepted in {}", api::took(ctx, sent))).on(pod.clone());
    if verb.wait && end.outcome == CallOutcome::Ok {
        return api::gone(ctx, &pod.pod, end).await;
    }
    end
}

//! `drain_node`: cordons the target's node and evicts the workload's pods on it; uncordoned at the end.

use super::{End, api, no_target};
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::DrainNode;
use crate::run::context::Context;
use crate::run::journal::Undo;

pub(super) async fn run(ctx: &Context, verb: &DrainNode) -> End {
    let Some(target) = ctx.target() else { return no_target() };
    let Some(node) = target.node.clone() else {
        return no_target();
    };
    let undo = Undo::Uncordon { node: node.clone() };
    let call = ctx.world.cluster.cordon(&node, true);
    if let Err(error) = api::change(ctx, &format!("cordon {node}"), undo, call).await {
        return End::failed(&error);
    }
    let pods = match ctx.world.cluster.pods().await {
        Ok(pods) => pods,
        Err(error) => return End::failed(&error),
    };
    let here: Vec<_> = pods
        .into_iter()
        .filter(|p| p.node.as_deref() == Some(&node) && !p.terminating())
        .collect();
    let mut end = End::ok(format!("drain node {node}: {} pods evicted", here.len()));
    for pod in &here {
        let call = ctx.world.cluster.evict_pod(&pod.identity, verb.grace);
        let what = format!("evict pod {}", pod.identity.name);
        match api::change(ctx, &what, Undo::Nothing, call).await {
            Ok(answer) => end.status = Some(i64::from(answer.status)),
            Err(error) => return End::failed(&error).on(target),
        }
    }
    if verb.wait && end.outcome == CallOutcome::Ok {
        for pod in &here {
            end = api::gone(ctx, &pod.identity, end).await;
        }
    }
    end.on(target)
}

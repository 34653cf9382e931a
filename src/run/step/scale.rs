//! `scale`: sets the number of replicas; the target goes first when the scenario says so.

use super::{End, api, no_target};
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::{Scale, Victim};
use crate::run::context::Context;
use crate::run::journal::Undo;

/// The lowest cost there is goes first.
const FIRST_TO_GO: i32 = i32::MIN + 1;

pub(super) async fn run(ctx: &Context, verb: &Scale) -> End {
    let deployment = match ctx.world.cluster.deployment().await {
        Ok(deployment) => deployment,
        Err(error) => return End::failed(&error),
    };
    let mut hit = None;
    if verb.victim == Victim::Target {
        let Some(target) = ctx.target() else { return no_target() };
        let undo = Undo::DeletionCost {
            pod: target.pod.name.clone(),
            uid: target.pod.uid.clone(),
            cost: None,
        };
        let what = format!("lower the deletion cost of {}", target.pod.name);
        let call = ctx.world.cluster.set_deletion_cost(&target.pod, Some(FIRST_TO_GO));
        if let Err(error) = api::change(ctx, &what, undo, call).await {
            return End::failed(&error);
        }
        hit = Some(target);
    }
    let sent = ctx.now();
    let what = format!(
        "scale {} from {} to {}",
        deployment.name, deployment.replicas, verb.replicas
    );
    let undo = Undo::Scale {
        replicas: deployment.replicas,
    };
    let answer = api::change(ctx, &what, undo, ctx.world.cluster.scale(verb.replicas)).await;
    let mut end = End::answered(answer, format!("{what}: accepted in {}", api::took(ctx, sent)));
    end.pod = hit;
    if verb.wait && end.outcome == CallOutcome::Ok {
        settled(ctx, verb.replicas).await;
    }
    end
}

/// As many pods are ready as wanted, and the others gone.
async fn settled(ctx: &Context, replicas: u32) {
    loop {
        let (deployment, pods) = futures::join!(ctx.world.cluster.deployment(), ctx.world.cluster.pods());
        if let (Ok(deployment), Ok(pods)) = (deployment, pods)
            && deployment.status.ready == replicas
            && pods.len() == replicas as usize
        {
            return;
        }
        ctx.sleep(api::LOOK_AGAIN).await;
    }
}

//! `rollout_restart`: what `kubectl rollout restart` does. It is finished when every pod is new and available, the old
//! ones are gone and the load balancer agrees; `rollout status` alone is a few seconds early.

use std::collections::BTreeSet;

use super::{End, api};
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::RolloutRestart;
use crate::language::vocabulary::LbStatus;
use crate::run::context::Context;
use crate::run::journal::Undo;
use crate::run::live::Seen;
use crate::run::target::server_of;
use crate::world::facts::PodFacts;

pub(super) async fn run(ctx: &Context, verb: &RolloutRestart) -> End {
    let old: BTreeSet<String> = match ctx.world.cluster.pods().await {
        Ok(pods) => pods.into_iter().map(|p| p.identity.uid).collect(),
        Err(error) => return End::failed(&error),
    };
    let sent = ctx.now();
    let call = ctx.world.cluster.restart_rollout(sent);
    let answer = api::change(ctx, "rollout restart", Undo::Nothing, call).await;
    let end = End::answered(answer, format!("rollout restart: accepted in {}", api::took(ctx, sent)));
    if end.outcome != CallOutcome::Ok {
        return end;
    }
    ctx.say("rollout restart");
    ctx.live.saw(sent, Seen::RolloutStarted);
    if verb.wait {
        finished(ctx, &old).await;
        return End {
            said: format!("rollout restart: finished after {}", ctx.now() - sent),
            ..end
        };
    }
    let later = ctx.clone();
    ctx.tasks.spawn(async move { finished(&later, &old).await });
    end
}

/// Waits until the rollout is over, and says so.
async fn finished(ctx: &Context, old: &BTreeSet<String>) {
    loop {
        ctx.sleep(api::LOOK_AGAIN).await;
        let (deployment, pods) = futures::join!(ctx.world.cluster.deployment(), ctx.world.cluster.pods());
        let (Ok(deployment), Ok(pods)) = (deployment, pods) else {
            continue;
        };
        let status = deployment.status;
        let wanted = deployment.replicas;
        let new = status.observed && status.updated == wanted && status.available == wanted && status.total == wanted;
        let gone = pods.iter().all(|p| !old.contains(&p.identity.uid));
        if new && gone && load_balancer_agrees(ctx, &pods) {
            ctx.say("rollout finished: new pods available, old ones gone, the load balancer agrees");
            ctx.live.saw(ctx.now(), Seen::RolloutFinished);
            return;
        }
    }
}

/// The server in front of every pod is UP. Without statistics the API's word has to do.
fn load_balancer_agrees(ctx: &Context, pods: &[PodFacts]) -> bool {
    let servers: Vec<String> = pods
        .iter()
        .filter_map(|p| server_of(p.node.as_deref()?, &ctx.plan.environment))
        .collect();
    ctx.live.look(|_, signals, _| {
        let up = |s: &String| {
            signals
                .servers
                .get(s)
                .is_some_and(|(status, _)| *status == LbStatus::Up)
        };
        signals.servers.is_empty() || servers.iter().all(up)
    })
}

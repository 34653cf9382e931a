//! `replicas`: in the specification, in the status and ready, and no other pod still terminating.

use super::{Misses, failed};
use crate::evidence::run_folder::{StopKind, Stopped};
use crate::run::context::Context;
use crate::run::journal::Undo;
use crate::time::Duration;
use crate::world::facts::{DeploymentFacts, PodFacts};
use crate::world::port::ErrorKind;

/// A pod may take this long to start, and an old one to end beyond its grace period.
const SETTLE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What does not hold of `replicas`.
pub(super) fn compare(wanted: Option<u32>, deployment: &DeploymentFacts, pods: &[PodFacts], misses: &mut Misses) {
    let Some(wanted) = wanted else { return };
    let status = deployment.status;
    for (what, found) in [
        ("replicas (spec)", deployment.replicas),
        ("replicas (status)", status.total),
        ("replicas (ready)", status.ready),
    ] {
        misses.compare(what, Some(&wanted), Some(&found));
    }
    for pod in pods.iter().filter(|p| p.terminating()) {
        misses.add(format!(
            "pod {} is still terminating; wait until it is gone",
            pod.identity.name
        ));
    }
}

/// Sets the number when it differs, and waits until it is so.
pub(super) async fn ensure(
    ctx: &Context,
    deployment: &DeploymentFacts,
    pods: Vec<PodFacts>,
) -> Result<Vec<PodFacts>, Option<Stopped>> {
    let Some(wanted) = ctx.plan.preconditions.replicas else {
        return Ok(pods);
    };
    let mut misses = Misses(Vec::new());
    compare(Some(wanted), deployment, &pods, &mut misses);
    if misses.0.is_empty() {
        return Ok(pods);
    }
    if deployment.replicas != wanted {
        let what = format!(
            "scale {}/{} from {} to {wanted}",
            deployment.namespace, deployment.name, deployment.replicas
        );
        let change = ctx.journal.about(
            ctx.now(),
            &what,
            Undo::Scale {
                replicas: deployment.replicas,
            },
        );
        ctx.say(&what);
        match ctx.world.cluster.scale(wanted).await {
            Ok(_) => ctx.journal.done(ctx.now(), change),
            Err(error) => {
                match error.kind {
                    // It may have been done: the undo stays.
                    ErrorKind::Interrupted | ErrorKind::Failed => ctx.journal.done(ctx.now(), change),
                    ErrorKind::Refused { .. }
                    | ErrorKind::NotFound
                    | ErrorKind::Unreachable
                    | ErrorKind::Unsupported => ctx.journal.not_done(ctx.now(), change),
                }
                return Err(failed(&error));
            }
        }
    }
    let grace = pods.iter().map(|p| p.spec.grace).max().unwrap_or_default();
    let limit = grace + SETTLE;
    let settled = async {
        loop {
            ctx.sleep(LOOK_AGAIN).await;
            let (deployment, pods) = futures::join!(ctx.world.cluster.deployment(), ctx.world.cluster.pods());
            let (Ok(deployment), Ok(pods)) = (deployment, pods) else {
                continue;
            };
            let mut misses = Misses(Vec::new());
            compare(Some(wanted), &deployment, &pods, &mut misses);
            if misses.0.is_empty() {
                return pods;
            }
        }
    };
    match ctx.within(limit, settled).await {
        Some(pods) => Ok(pods),
        None => Err(Some(Stopped {
            kind: StopKind::Preflight,
            message: format!("preflight: the workload did not settle at {wanted} replicas within {limit}"),
        })),
    }
}

//! Before anything is touched: do the preconditions hold, and can the environment be measured?
//!
//! Everything that does not hold is said at once. What `ensure` names is set afterwards, written down before, and undone
//! at the end.

use futures::future::join_all;

use super::context::Context;
use super::journal::Undo;
use super::target::Target;
use crate::evidence::run_folder::{StopKind, Stopped};
use crate::language::plan::{Ensure, Verb};
use crate::time::Duration;
use crate::world::facts::{DeploymentFacts, PodFacts};
use crate::world::port::{ErrorKind, WorldError};

mod load_balancer;
mod pod;
mod replicas;
mod rollout;

/// A lease lasts a little longer than the run may.
const LEASE_SLACK: Duration = Duration::from_secs(120);

/// What does not hold, for a person: what was claimed, what is there, and what to do.
pub(super) struct Misses(Vec<String>);

impl Misses {
    /// Something does not hold.
    pub(super) fn add(&mut self, text: impl Into<String>) {
        self.0.push(text.into());
    }

    /// A claim and what is there; nothing is claimed by `None`.
    pub(super) fn compare<T: PartialEq + std::fmt::Display>(
        &mut self,
        what: &str,
        wanted: Option<&T>,
        found: Option<&T>,
    ) {
        match (wanted, found) {
            (None, _) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            (Some(wanted), Some(found)) => self.add(format!("`{what}` is {found}, not {wanted}")),
            (Some(wanted), None) => self.add(format!("`{what}` should be {wanted} and cannot be read")),
        }
    }
}

/// A world that cannot be asked is a preflight that fails.
pub(super) fn failed(error: &WorldError) -> Option<Stopped> {
    Some(Stopped {
        kind: StopKind::Preflight,
        message: error.to_string(),
    })
}

/// Checks everything, sets what `ensure` names, and finds the target.
pub(super) async fn check(ctx: &Context) -> Result<(), Option<Stopped>> {
    let cluster = &ctx.world.cluster;
    let (deployment, pods, nodes, budgets, autoscalers) = futures::join!(
        cluster.deployment(),
        cluster.pods(),
        cluster.nodes(),
        cluster.budgets(),
        cluster.autoscalers()
    );
    let deployment = deployment.map_err(|e| failed(&e))?;
    let pods = pods.map_err(|e| failed(&e))?;
    let mut misses = Misses(Vec::new());
    let wanted = &ctx.plan.preconditions;
    mode(ctx, &deployment, &pods, &mut misses);
    pod::compare(ctx, &deployment, budgets, autoscalers, &mut misses);
    rollout::compare(wanted, &deployment, &mut misses);
    if let Ok(nodes) = &nodes {
        rollout::can_progress(ctx, &deployment, &pods, nodes, &mut misses);
    }
    let ensured = ctx.plan.ensure.contains(&Ensure::Replicas);
    if !ensured {
        replicas::compare(wanted.replicas, &deployment, &pods, &mut misses);
    }
    load_balancer::compare(ctx, &pods, &mut misses).await;
    clocks(ctx, &mut misses).await;
    refuse(misses)?;
    lease(ctx).await?;
    let pods = if ensured {
        replicas::ensure(ctx, &deployment, pods).await?
    } else {
        pods
    };
    let mut misses = Misses(Vec::new());
    load_balancer::serving(ctx, &pods, &mut misses).await;
    refuse(misses)?;
    find_target(ctx, &pods)
}

fn refuse(misses: Misses) -> Result<(), Option<Stopped>> {
    if misses.0.is_empty() {
        return Ok(());
    }
    let message = format!("preflight: {}", misses.0.join("; "));
    Err(Some(Stopped {
        kind: StopKind::Preflight,
        message,
    }))
}

/// The mode label of the Deployment, and that its pods are those of its present template.
fn mode(ctx: &Context, deployment: &DeploymentFacts, pods: &[PodFacts], misses: &mut Misses) {
    let key = &ctx.plan.environment.workload.mode_label;
    misses.compare(
        &format!("mode (label {key})"),
        ctx.plan.preconditions.mode.as_ref(),
        deployment.labels.get(key),
    );
    if let Some(hash) = &deployment.template_hash {
        let old = pods
            .iter()
            .filter(|p| !p.terminating() && p.template_hash.as_ref().is_some_and(|h| h != hash));
        for pod in old {
            misses.add(format!(
                "pod {} was made by an older template than the Deployment's: a rollout is going on; wait for it",
                pod.identity.name
            ));
        }
    }
    if deployment.paused {
        misses.add("the Deployment is paused; resume it");
    }
    if let Some(why) = &deployment.stalled {
        misses.add(format!("the Deployment's rollout has stalled: {why}"));
    }
}

/// The hosts' clocks can be read as exactly as the environment demands.
async fn clocks(ctx: &Context, misses: &mut Misses) {
    let bound = ctx.plan.environment.clocks.max_error;
    let hosts = ctx.world.hosts.list();
    let reads = join_all(hosts.iter().map(|h| ctx.world.hosts.exchange_clocks(&h.name))).await;
    for (host, result) in hosts.iter().zip(reads) {
        match result {
            Ok(exchanges) => {
                exchanges.iter().for_each(|e| ctx.recorder.record("clocks.jsonl", e));
                let error = exchanges.iter().map(|e| (e.received - e.sent).half()).min();
                if let Some(error) = error.filter(|e| *e > bound) {
                    misses.add(format!(
                        "the clock of {} is known to {error} only, and `clocks.max_error` is {bound}; \
                         use a quicker connection or raise the bound",
                        host.name
                    ));
                }
            }
            Err(error) => ctx.say(&format!("the clock of {} cannot be read: {error}", host.name)),
        }
    }
}

/// Two runs that act on one workload would spoil each other.
async fn lease(ctx: &Context) -> Result<(), Option<Stopped>> {
    let acts = ctx.plan.all_steps().iter().any(|s| s.verb.acts()) || !ctx.plan.ensure.is_empty();
    if !acts {
        return Ok(());
    }
    let holder = format!("gtrun-{}-{}", ctx.plan.name, ctx.run_id());
    let change = ctx
        .journal
        .about(ctx.now(), "take the lease", Undo::Lease { holder: holder.clone() });
    let lasts = ctx.plan.timeout + LEASE_SLACK;
    match ctx.world.cluster.take_lease(&holder, lasts).await {
        Ok(_) => {
            ctx.journal.done(ctx.now(), change);
            Ok(())
        }
        Err(error) => {
            ctx.journal.not_done(ctx.now(), change);
            match error.kind {
                ErrorKind::Refused { status: 409, .. } => Err(failed(&error)),
                // Without the right to leases the run goes on: it protects against a mistake, not against an enemy.
                ErrorKind::Refused { .. }
                | ErrorKind::NotFound
                | ErrorKind::Unreachable
                | ErrorKind::Interrupted
                | ErrorKind::Unsupported
                | ErrorKind::Failed => {
                    ctx.say(&format!("no lease: {error}"));
                    Ok(())
                }
            }
        }
    }
}

/// With one pod it is the target. With more it is the pod that serves the first request with `expect_in_flight`, else the
/// first by name.
fn find_target(ctx: &Context, pods: &[PodFacts]) -> Result<(), Option<Stopped>> {
    let live: Vec<&PodFacts> = pods.iter().filter(|p| !p.terminating() && p.ready).collect();
    let targets: Vec<Target> = live.iter().map(|p| Target::of(p, &ctx.plan.environment)).collect();
    let Some(first) = targets.first().cloned() else {
        let message = "no pod of the workload is ready; scale it up or say `ensure: [replicas]`".to_owned();
        return Err(Some(Stopped {
            kind: StopKind::Preflight,
            message,
        }));
    };
    let shown_later = ctx.plan.all_steps().iter().any(|s| match &s.verb {
        Verb::Request(r) => r.expect_in_flight,
        Verb::Load(_)
        | Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Wait(_)
        | Verb::WaitFor(_)
        | Verb::Poll(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => false,
    });
    if targets.len() == 1 || !shown_later {
        ctx.set_target(first);
    }
    ctx.pods.send_replace(targets);
    Ok(())
}

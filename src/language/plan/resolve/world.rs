//! The world that `sim` and `lab` build: defaults, then the scenario's preconditions, then the environment's `world`, then a control.

use super::precondition::anti_affinity;
use crate::language::environment::{WorldFile, default_world};
use crate::language::plan::{
    ClockWorld, EnvironmentKind, ExecEffect, NodeWorld, Preconditions, Prestop, TrafficWorld, World,
};
use crate::language::value::{AsWritten, Count, Flag, Offset, Opt, Plain, PositiveCount, Ratio};

/// `None` in a cluster, which is as it is.
pub(crate) fn world(
    kind: EnvironmentKind,
    preconditions: &Preconditions,
    file: Option<&WorldFile>,
    control: Option<&WorldFile>,
) -> Option<World> {
    if kind == EnvironmentKind::Cluster {
        return None;
    }
    let mut world = default_world();
    fit(&mut world, preconditions);
    file.into_iter()
        .chain(control)
        .for_each(|file| lay_over(&mut world, file));
    Some(world)
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// What the preconditions claim is built so.
fn fit(world: &mut World, facts: &Preconditions) {
    let Preconditions {
        mode,
        replicas,
        pod,
        load_balancer,
        rollout,
    } = facts.clone();
    set(&mut world.mode, mode);
    set(&mut world.replicas, replicas);
    set(&mut world.pod.grace, pod.grace);
    world.pod.prestop.extend(pod.prestop);
    set(&mut world.pod.sidecar, pod.sidecar);
    world.pod.env.extend(pod.env);
    set(&mut world.pod.termination_drain, pod.termination_drain);
    world.pod.pdb_min_available = pod.pdb_min_available.or(world.pod.pdb_min_available);
    world.pod.drain_max = pod.drain_max.or(world.pod.drain_max);
    let lb = &mut world.load_balancer;
    set(&mut lb.inter, load_balancer.inter);
    lb.fastinter = load_balancer.fastinter.or(lb.fastinter);
    lb.downinter = load_balancer.downinter.or(lb.downinter);
    set(&mut lb.fall, load_balancer.fall);
    set(&mut lb.rise, load_balancer.rise);
    set(&mut lb.on_marked_down, load_balancer.on_marked_down);
    set(&mut lb.disable_on_404, load_balancer.disable_on_404);
    set(&mut lb.agent_check, load_balancer.agent_check);
    set(&mut lb.redispatch, load_balancer.redispatch);
    set(
        &mut lb.retry_on,
        Some(load_balancer.retry_on).filter(|words| !words.is_empty()),
    );
    set(&mut lb.timeout_server, load_balancer.timeout_server);
    set(&mut world.rollout.min_ready, rollout.min_ready);
    set(&mut world.rollout.max_surge, rollout.max_surge);
    set(&mut world.rollout.max_unavailable, rollout.max_unavailable);
    set(&mut world.rollout.anti_affinity, rollout.anti_affinity);
}

fn plain<T: Clone>(file: &Opt<Plain<T>>) -> Option<T> {
    file.as_ref().map(|plain| plain.value.clone())
}

/// What a file says wins.
fn lay_over(world: &mut World, file: &WorldFile) {
    let WorldFile {
        mode,
        replicas,
        pod,
        nodes,
        load_balancer,
        rollout,
        network,
        clocks,
        traffic,
        exec,
    } = file;
    set(&mut world.mode, mode.as_ref().map(|mode| mode.value.clone()));
    set(&mut world.replicas, plain(replicas).map(|Count(n)| n));
    if let Some(file) = pod.as_ref() {
        let pod = &mut world.pod;
        set(&mut pod.grace, plain(&file.grace));
        pod.prestop.extend(file.prestop.iter().map(|(id, hook)| {
            (
                id.value.0.clone(),
                Prestop {
                    sleep: hook.sleep.value,
                },
            )
        }));
        set(&mut pod.sidecar, file.sidecar.0);
        for (id, variables) in &file.env {
            let values = variables
                .iter()
                .map(|(name, value)| (name.clone(), value.value.0.clone()));
            pod.env.entry(id.value.0.clone()).or_default().extend(values);
        }
        set(&mut pod.termination_drain, plain(&file.termination_drain));
        pod.pdb_min_available = plain(&file.pdb_min_available)
            .map(|Count(n)| n)
            .or(pod.pdb_min_available);
        set(&mut pod.hpa, file.hpa.0);
        set(&mut pod.lb_wait, plain(&file.lb_wait));
        pod.drain_max = plain(&file.drain_max).or(pod.drain_max);
        set(&mut pod.drain_listeners, file.drain_listeners.0);
        set(&mut pod.drain_time, plain(&file.drain_time));
    }
    if !nodes.is_empty() {
        let node = |file: &crate::language::environment::NodeFile| NodeWorld {
            cordoned: plain(&file.cordoned).is_some_and(|Flag(cordoned)| cordoned),
            taints: file.taints.clone(),
        };
        world.nodes = nodes
            .iter()
            .map(|(name, file)| (name.value.clone(), node(file)))
            .collect();
    }
    if let Some(file) = load_balancer.as_ref() {
        let lb = &mut world.load_balancer;
        set(&mut lb.version, plain(&file.version).map(|AsWritten(text)| text));
        set(&mut lb.inter, plain(&file.inter));
        lb.fastinter = plain(&file.fastinter).or(lb.fastinter);
        lb.downinter = plain(&file.downinter).or(lb.downinter);
        lb.phase = plain(&file.phase).or(lb.phase);
        set(&mut lb.fall, plain(&file.fall).map(|PositiveCount(n)| n));
        set(&mut lb.rise, plain(&file.rise).map(|PositiveCount(n)| n));
        set(&mut lb.on_marked_down, file.on_marked_down.0);
        set(&mut lb.disable_on_404, plain(&file.disable_on_404).map(|Flag(b)| b));
        set(&mut lb.agent_check, plain(&file.agent_check).map(|Flag(b)| b));
        set(&mut lb.redispatch, plain(&file.redispatch).map(|Flag(b)| b));
        let words: Vec<String> = file.retry_on.iter().map(|word| word.0.clone()).collect();
        set(&mut lb.retry_on, Some(words).filter(|words| !words.is_empty()));
        set(&mut lb.timeout_server, plain(&file.timeout_server));
        set(&mut lb.log, file.log.0);
    }
    if let Some(file) = rollout.as_ref() {
        set(&mut world.rollout.min_ready, plain(&file.min_ready));
        set(&mut world.rollout.max_surge, plain(&file.max_surge));
        set(&mut world.rollout.max_unavailable, plain(&file.max_unavailable));
        set(
            &mut world.rollout.anti_affinity,
            file.anti_affinity.as_ref().map(|text| anti_affinity(&text.value)),
        );
    }
    if let Some(file) = network.as_ref() {
        set(&mut world.network.rtt, plain(&file.rtt));
    }
    for (host, file) in clocks {
        let offset = plain(&file.offset).map(|Offset(offset)| offset).unwrap_or_default();
        let drift = plain(&file.drift).map(|Ratio(drift)| drift).unwrap_or_default();
        world.clocks.insert(host.value.clone(), ClockWorld { offset, drift });
    }
    set(
        &mut world.traffic,
        traffic.as_ref().map(|file| TrafficWorld {
            rate: file.rate.value.0,
        }),
    );
    for file in exec.iter().flatten() {
        let argv: Vec<String> = file.argv.iter().map(|part| part.value.0.clone()).collect();
        world.exec.retain(|known| known.argv != argv);
        let effect = file.effect.0.unwrap_or_default();
        world.exec.push(ExecEffect {
            argv,
            effect,
            stdout: file.stdout.0.clone().unwrap_or_default(),
            exit: file.exit.0.unwrap_or_default(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_fits_the_preconditions() {
        let facts = Preconditions {
            mode: Some("current".into()),
            replicas: Some(2),
            ..Preconditions::default()
        };
        let world = world(EnvironmentKind::Sim, &facts, None, None).expect("sim has a world");
        assert_eq!((world.mode.as_str(), world.replicas), ("current", 2));
        assert_eq!(super::world(EnvironmentKind::Cluster, &facts, None, None), None);
    }
}

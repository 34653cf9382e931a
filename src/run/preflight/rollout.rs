//! The Deployment's strategy against what is claimed, and whether a rollout can progress at all.

use std::collections::BTreeSet;

use super::Misses;
use crate::language::plan::{AntiAffinity, CountOrPercent, Preconditions, Verb};
use crate::run::context::Context;
use crate::world::facts::{DeploymentFacts, NodeFacts, PodFacts, Strategy};

/// Compares the strategy with `preconditions.rollout`.
pub(super) fn compare(wanted: &Preconditions, deployment: &DeploymentFacts, misses: &mut Misses) {
    let wanted = &wanted.rollout;
    misses.compare(
        "rollout.min_ready",
        wanted.min_ready.as_ref(),
        Some(&deployment.min_ready),
    );
    let (surge, unavailable) = match deployment.strategy {
        Strategy::Recreate => (None, None),
        Strategy::Rolling {
            max_surge,
            max_unavailable,
        } => (Some(max_surge), Some(max_unavailable)),
    };
    let pods = |given: CountOrPercent, up: bool| match given {
        CountOrPercent::Count(n) => n,
        CountOrPercent::Percent(p) => {
            let hundredths = u64::from(deployment.replicas) * u64::from(p);
            let n = if up { hundredths.div_ceil(100) } else { hundredths / 100 };
            u32::try_from(n).unwrap_or(u32::MAX)
        }
    };
    misses.compare(
        "rollout.max_surge",
        wanted.max_surge.map(|g| pods(g, true)).as_ref(),
        surge.as_ref(),
    );
    let given = wanted.max_unavailable.map(|g| pods(g, false));
    misses.compare("rollout.max_unavailable", given.as_ref(), unavailable.as_ref());
    let keys = &deployment.template.anti_affinity;
    match &wanted.anti_affinity {
        None => {}
        Some(AntiAffinity::None) if keys.is_empty() => {}
        Some(AntiAffinity::None) => {
            misses.add(format!(
                "`rollout.anti_affinity` is required over {}, not none",
                keys.join(", ")
            ));
        }
        Some(AntiAffinity::Hostname) => has_key(keys, "kubernetes.io/hostname", misses),
        Some(AntiAffinity::Key(key)) => has_key(keys, key, misses),
    }
}

fn has_key(keys: &[String], key: &str, misses: &mut Misses) {
    if !keys.iter().any(|k| k == key) {
        misses.add(format!(
            "`rollout.anti_affinity` over {key} is not required by the template"
        ));
    }
}

/// A rollout that needs a free node for its first new pod, and has none, never progresses: refused before the load starts.
pub(super) fn can_progress(
    ctx: &Context,
    deployment: &DeploymentFacts,
    pods: &[PodFacts],
    nodes: &[NodeFacts],
    misses: &mut Misses,
) {
    let rolls = ctx.plan.all_steps().iter().any(|s| match s.verb {
        Verb::RolloutRestart(_) => true,
        Verb::Request(_)
        | Verb::Load(_)
        | Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
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
    let Strategy::Rolling {
        max_surge,
        max_unavailable,
    } = deployment.strategy
    else {
        return;
    };
    if !rolls {
        return;
    }
    let template = &deployment.template;
    let host_ports = template.containers.iter().any(|c| !c.host_ports.is_empty());
    let exclusive: Vec<String> = if host_ports {
        vec!["kubernetes.io/hostname".to_owned()]
    } else {
        template.anti_affinity.clone()
    };
    if max_unavailable == 0 && max_surge > 0 {
        for key in exclusive {
            if free_domains(&key, deployment, pods, nodes) == 0 {
                let why = if host_ports {
                    "a hostPort"
                } else {
                    "its required anti-affinity"
                };
                misses.add(format!(
                    "the rollout would never progress: {why} allows one pod a {key}, `maxUnavailable` is 0, and no \
                     schedulable node without a pod of the workload is free; add a node, or set maxUnavailable: 1 and \
                     maxSurge: 0"
                ));
                break;
            }
        }
    }
    warn_of_min_ready(ctx, deployment);
}

/// Domains with a schedulable node and without a pod of the workload.
fn free_domains(key: &str, deployment: &DeploymentFacts, pods: &[PodFacts], nodes: &[NodeFacts]) -> usize {
    let domain = |n: &NodeFacts| {
        let own = (key == "kubernetes.io/hostname").then(|| n.name.clone());
        n.labels.get(key).cloned().or(own)
    };
    let taken: BTreeSet<String> = nodes
        .iter()
        .filter(|n| pods.iter().any(|p| p.node.as_deref() == Some(n.name.as_str())))
        .filter_map(domain)
        .collect();
    let wanted = &deployment.template.node_selector;
    let usable = nodes.iter().filter(|n| {
        n.ready
            && !n.cordoned
            && n.taints.is_empty()
            && wanted
                .iter()
                .all(|(k, v)| n.labels.get(k).is_some_and(|have| have == v))
    });
    usable
        .filter_map(domain)
        .filter(|d| !taken.contains(d))
        .collect::<BTreeSet<_>>()
        .len()
}

/// Without `minReadySeconds` the next old pod is deleted before the load balancer knows the new one.
fn warn_of_min_ready(ctx: &Context, deployment: &DeploymentFacts) {
    let facts = &ctx.plan.environment.load_balancer.facts;
    let world = ctx
        .plan
        .environment
        .world
        .as_ref()
        .map(|w| (w.load_balancer.inter, w.load_balancer.rise));
    let (inter, rise) = match (facts.inter, facts.rise, world) {
        (_, _, Some((inter, rise))) => (inter, rise),
        (Some(inter), Some(rise), None) => (inter, rise),
        _ => return,
    };
    let needed = inter.times(i64::from(rise) + 1);
    if deployment.min_ready < needed {
        ctx.say(&format!(
            "warning: minReadySeconds is {}, and the load balancer may need {needed} to see a new pod: for a while there may \
             be no server at all",
            deployment.min_ready
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, cordoned: bool, taint: bool) -> NodeFacts {
        let taints = if taint {
            json!([{"key": "k", "value": "v", "effect": "NoSchedule"}])
        } else {
            json!([])
        };
        let object = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"unschedulable": cordoned, "taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        NodeFacts::from_object(&object).expect("a node")
    }

    #[test]
    fn a_cordoned_a_tainted_and_a_taken_node_are_not_free() {
        let deployment = DeploymentFacts::from_object(json!({"metadata": {"name": "d"}})).expect("named");
        let pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "a"}});
        let pods = [PodFacts::from_object(pod).expect("a pod")];
        let nodes = [node("a", false, false), node("b", true, false), node("c", false, true)];
        let key = "kubernetes.io/hostname";
        assert_eq!(free_domains(key, &deployment, &pods, &nodes), 0);
        let more = [&nodes[..], &[node("d", false, false)]].concat();
        assert_eq!(free_domains(key, &deployment, &pods, &more), 1);
    }
}

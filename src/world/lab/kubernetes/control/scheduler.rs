//! Binds pods to nodes: cordons, taints, host ports and required anti-affinity decide.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::events::{Recorder, Source};
use super::super::object::{is_terminating, list, name, namespace, now, number, text, uid};
use super::super::resource::Kind;
use super::super::selector::Selector;
use super::super::store::{Object, Store};

pub(super) fn look(store: &Store, recorder: &Recorder) -> Option<Duration> {
    let (_, pods) = store.list(Kind::Pod, None);
    for pod in pods
        .iter()
        .filter(|p| text(p, "/spec/nodeName").is_empty() && !is_terminating(p))
    {
        // Bound pods count at once for the next one.
        let (_, pods) = store.list(Kind::Pod, None);
        let (_, nodes) = store.list(Kind::Node, None);
        match choose(pod, &pods, &nodes) {
            Ok(node) => bind(store, recorder, pod, &node),
            Err(why) => refuse(store, recorder, pod, &why),
        }
    }
    None
}

/// Whether a pod still holds what it holds: a node's ports are free again when all its containers have ended, which is
/// before the object is gone.
fn holds(pod: &Value) -> bool {
    !["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

/// The node for a pod, or the sentence of the `FailedScheduling` event.
fn choose(pod: &Value, pods: &[Object], nodes: &[Object]) -> Result<String, String> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut fits: Vec<(usize, &str)> = Vec::new();
    for node in nodes {
        let on_node: Vec<&Object> = pods
            .iter()
            .filter(|p| text(p, "/spec/nodeName") == name(node) && holds(p))
            .collect();
        match obstacle(pod, node, &on_node, pods, nodes) {
            Some(reason) => *reasons.entry(reason).or_default() += 1,
            None => fits.push((on_node.len(), name(node))),
        }
    }
    if let Some((_, node)) = fits.iter().min_by_key(|(load, _)| *load) {
        return Ok((*node).to_owned());
    }
    let total = nodes.len();
    let listed: Vec<String> = reasons
        .into_iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    Err(format!(
        "0/{total} nodes are available: {}. preemption: 0/{total} nodes are available: {total} Preemption is not helpful \
         for scheduling.",
        listed.join(", ")
    ))
}

fn obstacle(pod: &Value, node: &Value, on_node: &[&Object], pods: &[Object], nodes: &[Object]) -> Option<String> {
    if node["spec"]["unschedulable"] == true {
        return Some("node(s) were unschedulable".into());
    }
    for taint in list(node, "/spec/taints")
        .iter()
        .filter(|t| t["effect"] != "PreferNoSchedule")
    {
        if !tolerates(pod, taint) {
            let (key, value) = (text(taint, "/key"), text(taint, "/value"));
            return Some(format!("node(s) had untolerated taint {{{key}: {value}}}"));
        }
    }
    let wanted = host_ports(pod);
    if on_node
        .iter()
        .flat_map(|p| host_ports(p))
        .any(|port| wanted.contains(&port))
    {
        return Some("node(s) didn't have free ports for the requested pod ports".into());
    }
    let rules = list(
        pod,
        "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    );
    for rule in rules {
        let key = text(rule, "/topologyKey");
        let here = node["metadata"]["labels"][key].as_str();
        let selector = Selector::of(&rule["labelSelector"]);
        let same_place = |other: &Object| {
            let node = nodes.iter().find(|n| name(n) == text(other, "/spec/nodeName"));
            node.and_then(|n| n["metadata"]["labels"][key].as_str())
                .is_some_and(|there| Some(there) == here)
        };
        let meets = |p: &&Object| namespace(p) == namespace(pod) && selector.matches(p) && holds(p) && same_place(p);
        if pods.iter().any(|p| meets(&p)) {
            return Some("node(s) didn't match pod anti-affinity rules".into());
        }
    }
    None
}

fn tolerates(pod: &Value, taint: &Value) -> bool {
    list(pod, "/spec/tolerations").iter().any(|t| {
        let key = t["key"].is_null() || t["key"] == taint["key"];
        let effect = t["effect"].is_null() || t["effect"] == taint["effect"];
        key && effect && (text(t, "/operator") == "Exists" || text(t, "/value") == text(taint, "/value"))
    })
}

fn host_ports(pod: &Value) -> Vec<i64> {
    list(pod, "/spec/containers")
        .iter()
        .chain(list(pod, "/spec/initContainers"))
        .flat_map(|c| list(c, "/ports"))
        .filter_map(|p| number(p, "/hostPort"))
        .collect()
}

fn bind(store: &Store, recorder: &Recorder, pod: &Object, node: &str) {
    let bound = store.update(Kind::Pod, namespace(pod), name(pod), |stored| {
        if uid(stored) == uid(pod) && text(stored, "/spec/nodeName").is_empty() {
            stored["spec"]["nodeName"] = node.into();
            set_scheduled(stored, json!({"status": "True"}));
        }
        Ok(())
    });
    if let Ok(bound) = bound {
        let message = format!("Successfully assigned {}/{} to {node}", namespace(&bound), name(&bound));
        recorder.normal(&bound, &Source::Scheduler, "Scheduled", message);
    }
}

fn refuse(store: &Store, recorder: &Recorder, pod: &Object, why: &str) {
    let known = list(pod, "/status/conditions")
        .iter()
        .any(|c| c["type"] == "PodScheduled" && c["message"] == why);
    if known {
        return;
    }
    let _ = store.update(Kind::Pod, namespace(pod), name(pod), |stored| {
        set_scheduled(
            stored,
            json!({"status": "False", "reason": "Unschedulable", "message": why}),
        );
        Ok(())
    });
    recorder.warning(pod, &Source::Scheduler, "FailedScheduling", why);
}

fn set_scheduled(pod: &mut Value, says: Value) {
    let mut condition = json!({
        "type": "PodScheduled", "observedGeneration": pod["metadata"]["generation"], "lastProbeTime": null,
        "lastTransitionTime": now(),
    });
    for (key, value) in says.as_object().into_iter().flatten() {
        condition[key] = value.clone();
    }
    pod["status"]["conditions"] = json!([condition]);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn node(name: &str) -> Object {
        Arc::new(json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {}}))
    }

    fn pod(node: &str, phase: &str) -> Object {
        Arc::new(json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "a"}},
            "spec": {"nodeName": node, "containers": [{"ports": [{"hostPort": 8080}]}]}, "status": {"phase": phase},
        }))
    }

    #[test]
    fn a_port_is_free_again_when_the_pod_has_ended_and_not_before() {
        let nodes = [node("w1")];
        let refused = choose(&pod("", ""), &[pod("w1", "Running")], &nodes).expect_err("taken");
        assert!(
            refused
                .starts_with("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.")
        );
        assert_eq!(choose(&pod("", ""), &[pod("w1", "Succeeded")], &nodes), Ok("w1".into()));
    }

    #[test]
    fn the_other_node_is_taken_at_once() {
        assert_eq!(
            choose(&pod("", ""), &[pod("w1", "Running")], &[node("w1"), node("w2")]),
            Ok("w2".into())
        );
    }

    #[test]
    fn each_obstacle_has_its_words() {
        let cordoned = Arc::new(json!({"metadata": {"name": "w1"}, "spec": {"unschedulable": true}}));
        let tainted = Arc::new(
            json!({"metadata": {"name": "w2"}, "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}),
        );
        let refused = choose(&pod("", ""), &[], &[cordoned, tainted]).expect_err("nowhere");
        assert!(
            refused.starts_with(
                "0/2 nodes are available: 1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable."
            ),
            "{refused}"
        );
    }

    #[test]
    fn required_anti_affinity_keeps_pods_apart() {
        let mut one = Value::clone(&pod("", ""));
        one["spec"]["containers"] = json!([]);
        one["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}]}});
        let refused = choose(&one, &[pod("w1", "Running")], &[node("w1")]).expect_err("together");
        assert!(refused.contains("didn't match pod anti-affinity rules"), "{refused}");
    }
}

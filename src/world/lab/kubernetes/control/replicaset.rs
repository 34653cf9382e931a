//! ReplicaSets: as many pods as wanted. A terminating pod counts no more, so its replacement comes at once.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::super::events::{Recorder, Source};
use super::super::object::{
    condition, controller, is_terminating, is_true, list, name, namespace, number, owner_reference, text, uid,
};
use super::super::pod_deletion::delete_pod;
use super::super::resource::Kind;
use super::super::store::{Object, Store};

const SOURCE: Source = Source::Controller("replicaset-controller");
/// Pods with a lower cost go first when a ReplicaSet shrinks.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Whether a pod still counts.
pub(super) fn is_active(pod: &Value) -> bool {
    !is_terminating(pod) && !["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

/// How long a Ready pod still has to stay Ready until it counts as available; none when it is not Ready.
pub(super) fn until_available(pod: &Value, min_ready: i64) -> Option<Duration> {
    if !is_true(pod, "Ready") {
        return None;
    }
    let since = condition(pod, "Ready").map_or("", |c| text(c, "/lastTransitionTime"));
    let since = DateTime::parse_from_rfc3339(since).ok()?.with_timezone(&Utc);
    let left = since + chrono::TimeDelta::seconds(min_ready) - Utc::now();
    Some(if min_ready == 0 {
        Duration::ZERO
    } else {
        left.to_std().unwrap_or_default()
    })
}

pub(super) fn look(store: &Store, recorder: &Recorder) -> Option<Duration> {
    let (_, sets) = store.list(Kind::ReplicaSet, None);
    sets.iter()
        .filter(|s| !is_terminating(s))
        .filter_map(|set| look_at(store, recorder, set))
        .min()
}

fn look_at(store: &Store, recorder: &Recorder, set: &Object) -> Option<Duration> {
    let (_, pods) = store.list(Kind::Pod, Some(namespace(set)));
    let own: Vec<&Object> = pods
        .iter()
        .filter(|p| controller(p) == Some(("ReplicaSet", uid(set))) && is_active(p))
        .collect();
    let wanted = number(set, "/spec/replicas").unwrap_or(1).max(0);
    let have = i64::try_from(own.len()).unwrap_or(i64::MAX);
    for _ in have..wanted {
        create(store, recorder, set);
    }
    if have > wanted {
        let mut order = own.clone();
        order.sort_by_key(|p| victim_order(p));
        for pod in order
            .into_iter()
            .take(usize::try_from(have - wanted).unwrap_or_default())
        {
            if delete_pod(store, pod, None).is_ok() {
                recorder.normal(set, &SOURCE, "SuccessfulDelete", format!("Deleted pod: {}", name(pod)));
            }
        }
    }
    post(store, set)
}

/// Unbound before bound, not Ready before Ready, low cost before high, young before old.
fn victim_order(pod: &Value) -> (bool, bool, i64, std::cmp::Reverse<String>) {
    let cost = pod["metadata"]["annotations"][DELETION_COST]
        .as_str()
        .and_then(|c| c.parse().ok())
        .unwrap_or(0);
    let created = text(pod, "/metadata/creationTimestamp").to_owned();
    (
        !text(pod, "/spec/nodeName").is_empty(),
        is_true(pod, "Ready"),
        cost,
        std::cmp::Reverse(created),
    )
}

fn create(store: &Store, recorder: &Recorder, set: &Object) {
    let template = &set["spec"]["template"];
    let mut metadata = json!({
        "generateName": format!("{}-", name(set)), "namespace": namespace(set), "labels": template["metadata"]["labels"],
        "ownerReferences": [owner_reference(set)],
    });
    if let Some(annotations) = template["metadata"].get("annotations") {
        metadata["annotations"] = annotations.clone();
    }
    let pod = json!({"metadata": metadata, "spec": super::super::defaults::pod_spec(&template["spec"]), "status": {
        "phase": "Pending", "qosClass": "BestEffort",
    }});
    match store.create(Kind::Pod, pod) {
        Ok(pod) => recorder.normal(set, &SOURCE, "SuccessfulCreate", format!("Created pod: {}", name(&pod))),
        Err(why) => recorder.warning(set, &SOURCE, "FailedCreate", format!("Error creating: {}", why.message)),
    }
}

/// Counts the pods as they are now.
fn post(store: &Store, set: &Object) -> Option<Duration> {
    let (_, pods) = store.list(Kind::Pod, Some(namespace(set)));
    let own: Vec<&Object> = pods
        .iter()
        .filter(|p| controller(p) == Some(("ReplicaSet", uid(set))) && is_active(p))
        .collect();
    let min_ready = number(set, "/spec/minReadySeconds").unwrap_or(0);
    let waits: Vec<Duration> = own.iter().filter_map(|p| until_available(p, min_ready)).collect();
    let available = waits.iter().filter(|w| w.is_zero()).count();
    let _ = store.update(Kind::ReplicaSet, namespace(set), name(set), |stored| {
        let mut status = json!({"replicas": own.len()});
        for (key, count) in [
            ("fullyLabeledReplicas", own.len()),
            ("readyReplicas", waits.len()),
            ("availableReplicas", available),
        ] {
            if count > 0 {
                status[key] = count.into();
            }
        }
        status["observedGeneration"] = stored["metadata"]["generation"].clone();
        stored["status"] = status;
        Ok(())
    });
    waits.into_iter().filter(|w| !w.is_zero()).min()
}

/// The pods that a workload's selector finds and that still count.
pub(super) fn active_pods(store: &Store, within: &str, selector: &super::super::selector::Selector) -> Vec<Object> {
    let (_, pods) = store.list(Kind::Pod, Some(within));
    pods.into_iter()
        .filter(|p| selector.matches(p) && is_active(p))
        .collect()
}

/// The containers of a pod spec that have a port of this name.
pub(super) fn named_port(spec: &Value, port: &str) -> Option<i64> {
    list(spec, "/containers")
        .iter()
        .chain(list(spec, "/initContainers"))
        .flat_map(|c| list(c, "/ports"))
        .find(|p| text(p, "/name") == port)
        .and_then(|p| number(p, "/containerPort"))
}

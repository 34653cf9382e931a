//! Deployments: a ReplicaSet for each template, rolled from the old to the new one within `maxSurge` and
//! `maxUnavailable`.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::events::{Recorder, Source};
use super::super::object::{
    condition, controller, is_terminating, map_at, name, namespace, now, number, owner_reference, template_hash, text,
    uid,
};
use super::super::resource::Kind;
use super::super::store::{Object, Store};

const SOURCE: Source = Source::Controller("deployment-controller");
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn look(store: &Store, recorder: &Recorder) -> Option<Duration> {
    let (_, deployments) = store.list(Kind::Deployment, None);
    for deployment in deployments.iter().filter(|d| !is_terminating(d)) {
        look_at(store, recorder, deployment);
    }
    None
}

fn own_sets(store: &Store, deployment: &Value) -> Vec<Object> {
    let (_, sets) = store.list(Kind::ReplicaSet, Some(namespace(deployment)));
    sets.into_iter()
        .filter(|s| controller(s) == Some(("Deployment", uid(deployment))))
        .collect()
}

/// The template without the label that the ReplicaSet adds to it.
fn plain_template(set: &Value) -> Value {
    let mut template = set["spec"]["template"].clone();
    map_at(&mut template, &["metadata", "labels"]).remove(HASH);
    template
}

fn replicas(object: &Value) -> i64 {
    number(object, "/spec/replicas").unwrap_or(1)
}

fn available(object: &Value) -> i64 {
    number(object, "/status/availableReplicas").unwrap_or(0)
}

/// A number or a percentage of the replicas wanted.
fn amount(value: &Value, of: i64, round_up: bool) -> i64 {
    match value {
        Value::Number(n) => n.as_i64().unwrap_or(0),
        Value::String(s) => {
            let percent: i64 = s.trim_end_matches('%').parse().unwrap_or(0);
            if round_up {
                (percent * of + 99) / 100
            } else {
                percent * of / 100
            }
        }
        _ => 0,
    }
}

/// `maxSurge` and `maxUnavailable` in pods; both zero would never get anywhere.
fn bounds(deployment: &Value) -> (i64, i64) {
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let wanted = replicas(deployment);
    if deployment["spec"]["strategy"]["type"] == "Recreate" {
        return (0, wanted);
    }
    let surge = amount(rolling.get("maxSurge").unwrap_or(&json!("25%")), wanted, true);
    let unavailable = amount(rolling.get("maxUnavailable").unwrap_or(&json!("25%")), wanted, false);
    if surge == 0 && unavailable == 0 {
        (0, 1)
    } else {
        (surge, unavailable.min(wanted))
    }
}

fn look_at(store: &Store, recorder: &Recorder, deployment: &Object) {
    let sets = own_sets(store, deployment);
    let wanted_template = &deployment["spec"]["template"];
    let (new, old): (Vec<Object>, Vec<Object>) = sets.into_iter().partition(|s| plain_template(s) == *wanted_template);
    let wanted = replicas(deployment);
    let (surge, unavailable) = bounds(deployment);
    let recreate = deployment["spec"]["strategy"]["type"] == "Recreate";
    let old_total: i64 = old.iter().map(|s| replicas(s)).sum();
    let Some(new) = new.into_iter().next() else {
        let first = if recreate {
            0
        } else {
            (wanted + surge - old_total).clamp(0, wanted)
        };
        create_set(
            store,
            recorder,
            deployment,
            &old,
            if old.is_empty() { wanted } else { first },
        );
        return;
    };
    let target = if old_total == 0 {
        wanted
    } else if recreate {
        0
    } else {
        // Up to the surge, never down while a rollout runs unless the Deployment itself has shrunk.
        let room = wanted + surge - old_total;
        replicas(&new).max(room.min(wanted)).min(wanted)
    };
    scale(store, recorder, deployment, &new, target);
    let new_count = replicas(&new);
    let unhealthy_new = new_count - available(&new);
    let min_available = wanted - unavailable;
    let mut can_go = new_count + old_total - min_available - unhealthy_new;
    // Pods of old sets that do not work go first: they protect nothing.
    for set in &old {
        let gone = (replicas(set) - available(set)).min(can_go).max(0);
        if gone > 0 {
            scale(store, recorder, deployment, set, replicas(set) - gone);
            can_go -= gone;
        }
    }
    let total_available: i64 = available(&new) + old.iter().map(|s| available(s)).sum::<i64>();
    let mut spare = (total_available - min_available).min(can_go).max(0);
    for set in &old {
        let gone = available(set).min(replicas(set)).min(spare);
        if gone > 0 {
            scale(store, recorder, deployment, set, replicas(set) - gone);
            spare -= gone;
        }
    }
    post(store, deployment);
}

fn create_set(store: &Store, recorder: &Recorder, deployment: &Object, old: &[Object], count: i64) {
    let mut template = deployment["spec"]["template"].clone();
    let hash = template_hash(&template);
    map_at(&mut template, &["metadata", "labels"]).insert(HASH.into(), hash.clone().into());
    let mut selector = deployment["spec"]["selector"].clone();
    map_at(&mut selector, &["matchLabels"]).insert(HASH.into(), hash.clone().into());
    let revision = 1 + old
        .iter()
        .filter_map(|s| s["metadata"]["annotations"][REVISION].as_str()?.parse::<u64>().ok())
        .max()
        .unwrap_or(0);
    let wanted = replicas(deployment);
    let mut spec = json!({"replicas": count, "selector": selector, "template": template});
    if let Some(min_ready) = deployment["spec"].get("minReadySeconds") {
        spec["minReadySeconds"] = min_ready.clone();
    }
    let set = json!({
        "metadata": {
            "name": format!("{}-{hash}", name(deployment)), "namespace": namespace(deployment),
            "labels": template["metadata"]["labels"],
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": wanted.to_string(),
                "deployment.kubernetes.io/max-replicas": (wanted + bounds(deployment).0).to_string(),
                REVISION: revision.to_string(),
            },
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec, "status": {"replicas": 0},
    });
    let Ok(set) = store.create(Kind::ReplicaSet, set) else {
        return;
    };
    let _ = store.update(Kind::Deployment, namespace(deployment), name(deployment), |d| {
        map_at(d, &["metadata", "annotations"]).insert(REVISION.into(), revision.to_string().into());
        set_condition(
            d,
            "Progressing",
            "True",
            "NewReplicaSetCreated",
            &format!("Created new replica set \"{}\"", name(&set)),
        );
        Ok(())
    });
    recorder.normal(
        deployment,
        &SOURCE,
        "ScalingReplicaSet",
        format!("Scaled up replica set {} from 0 to {count}", name(&set)),
    );
}

fn scale(store: &Store, recorder: &Recorder, deployment: &Object, set: &Object, to: i64) {
    let from = replicas(set);
    let wanted = replicas(deployment).to_string();
    let most = (replicas(deployment) + bounds(deployment).0).to_string();
    let min_ready = deployment["spec"].get("minReadySeconds").cloned();
    let _ = store.update(Kind::ReplicaSet, namespace(set), name(set), |s| {
        s["spec"]["replicas"] = to.into();
        match &min_ready {
            Some(seconds) => s["spec"]["minReadySeconds"] = seconds.clone(),
            None => {
                map_at(s, &["spec"]).remove("minReadySeconds");
            }
        }
        let annotations = map_at(s, &["metadata", "annotations"]);
        annotations.insert("deployment.kubernetes.io/desired-replicas".into(), wanted.into());
        annotations.insert("deployment.kubernetes.io/max-replicas".into(), most.into());
        Ok(())
    });
    if from != to {
        let way = if to > from { "up" } else { "down" };
        recorder.normal(
            deployment,
            &SOURCE,
            "ScalingReplicaSet",
            format!("Scaled {way} replica set {} from {from} to {to}", name(set)),
        );
    }
}

/// Sets a condition; its times move only with what it says.
fn set_condition(object: &mut Value, kind: &str, status: &str, reason: &str, message: &str) {
    let before = condition(object, kind).cloned();
    let says = |c: &Value, key: &str, value: &str| c[key] == value;
    if before
        .as_ref()
        .is_some_and(|c| says(c, "status", status) && says(c, "reason", reason) && says(c, "message", message))
    {
        return;
    }
    let since = match &before {
        Some(c) if says(c, "status", status) => c["lastTransitionTime"].clone(),
        _ => now().into(),
    };
    let condition = json!({
        "type": kind, "status": status, "lastUpdateTime": now(), "lastTransitionTime": since, "reason": reason,
        "message": message,
    });
    let status = map_at(object, &["status"]);
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        match conditions.iter_mut().find(|c| c["type"] == kind) {
            Some(old) => *old = condition,
            None => conditions.push(condition),
        }
    }
}

fn post(store: &Store, deployment: &Object) {
    let sets = own_sets(store, deployment);
    let (_, unavailable) = bounds(deployment);
    let _ = store.update(Kind::Deployment, namespace(deployment), name(deployment), |d| {
        let new = sets.iter().find(|s| plain_template(s) == d["spec"]["template"]);
        let sum = |pointer: &str| sets.iter().filter_map(|s| number(s, pointer)).sum::<i64>();
        let total = sum("/status/replicas");
        let available = sum("/status/availableReplicas");
        let updated = new.and_then(|s| number(s, "/status/replicas")).unwrap_or(0);
        let wanted = replicas(d);
        let mut counts = json!({"observedGeneration": d["metadata"]["generation"]});
        for (key, count) in [
            ("replicas", total),
            ("updatedReplicas", updated),
            ("readyReplicas", sum("/status/readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", (wanted.max(total) - available).max(0)),
        ] {
            if count > 0 {
                counts[key] = count.into();
            }
        }
        if let Some(conditions) = d["status"].get("conditions") {
            counts["conditions"] = conditions.clone();
        }
        let progress_before = (
            number(d, "/status/updatedReplicas"),
            number(d, "/status/availableReplicas"),
        );
        d["status"] = counts;
        if available >= wanted - unavailable {
            set_condition(
                d,
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            );
        } else {
            let message = "Deployment does not have minimum availability.";
            set_condition(d, "Available", "False", "MinimumReplicasUnavailable", message);
        }
        if let Some(new) = new {
            let set = name(new).to_owned();
            let done = updated == wanted && total == wanted && available == wanted;
            let progressing = condition(d, "Progressing").map(|c| text(c, "/reason").to_owned());
            if done {
                let message = format!("ReplicaSet \"{set}\" has successfully progressed.");
                set_condition(d, "Progressing", "True", "NewReplicaSetAvailable", &message);
            } else if progressing.as_deref() != Some("NewReplicaSetAvailable") && progress_before != (None, None) {
                let message = format!("ReplicaSet \"{set}\" is progressing.");
                set_condition(d, "Progressing", "True", "ReplicaSetUpdated", &message);
            }
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn deployment(wanted: i64, surge: i64, unavailable: i64) -> Value {
        json!({
            "metadata": {"name": "d", "namespace": "n"},
            "spec": {
                "replicas": wanted, "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
            },
        })
    }

    /// All pods that a set wants are there and available.
    fn settle(store: &Store) {
        for set in store.list(Kind::ReplicaSet, None).1 {
            store
                .update(Kind::ReplicaSet, "n", name(&set), |s| {
                    let count = replicas(s);
                    s["status"] = json!({"replicas": count, "readyReplicas": count, "availableReplicas": count});
                    Ok(())
                })
                .expect("set");
        }
    }

    fn counts(store: &Store) -> Vec<i64> {
        let (_, mut sets) = store.list(Kind::ReplicaSet, None);
        sets.sort_by_key(|s| s["metadata"]["annotations"][REVISION].as_str().map(str::to_owned));
        sets.iter().map(|s| replicas(s)).collect()
    }

    fn rollout(wanted: i64, surge: i64, unavailable: i64) -> Vec<Vec<i64>> {
        let store = Arc::new(Store::new());
        let recorder = Recorder::new(Arc::clone(&store));
        store
            .create(Kind::Deployment, deployment(wanted, surge, unavailable))
            .expect("created");
        look(&store, &recorder);
        settle(&store);
        look(&store, &recorder);
        let restart = |d: &mut Value| {
            map_at(d, &["spec", "template", "metadata", "annotations"]).insert("restartedAt".into(), "now".into());
            Ok(())
        };
        store.update(Kind::Deployment, "n", "d", restart).expect("restarted");
        let mut seen = vec![counts(&store)];
        for _ in 0..12 {
            look(&store, &recorder);
            if seen.last() != Some(&counts(&store)) {
                seen.push(counts(&store));
            }
            settle(&store);
        }
        let status = store.get(Kind::Deployment, "n", "d").expect("there");
        if seen.last() == Some(&vec![0, wanted]) {
            assert_eq!(
                condition(&status, "Progressing").map(|c| text(c, "/reason")),
                Some("NewReplicaSetAvailable")
            );
        }
        seen
    }

    #[test]
    fn one_down_then_one_up() {
        assert_eq!(
            rollout(2, 0, 1),
            [vec![2], vec![2, 0], vec![1, 0], vec![1, 1], vec![0, 1], vec![0, 2]]
        );
    }

    #[test]
    fn one_up_then_one_down() {
        assert_eq!(rollout(1, 1, 0), [vec![1], vec![1, 1], vec![0, 1]]);
    }

    #[test]
    fn nothing_goes_before_the_new_pod_is_available() {
        let store = Arc::new(Store::new());
        let recorder = Recorder::new(Arc::clone(&store));
        store.create(Kind::Deployment, deployment(1, 1, 0)).expect("created");
        look(&store, &recorder);
        settle(&store);
        store
            .update(Kind::Deployment, "n", "d", |d| {
                map_at(d, &["spec", "template", "metadata", "annotations"]).insert("a".into(), "b".into());
                Ok(())
            })
            .expect("restarted");
        for _ in 0..5 {
            look(&store, &recorder);
        }
        assert_eq!(counts(&store), [1, 1], "the new pod never came, the old one stays");
    }

    #[test]
    fn percentages_round_as_the_api_says() {
        assert_eq!(amount(&json!("25%"), 3, true), 1);
        assert_eq!(amount(&json!("25%"), 3, false), 0);
        assert_eq!(bounds(&deployment(1, 0, 0)), (0, 1));
    }
}

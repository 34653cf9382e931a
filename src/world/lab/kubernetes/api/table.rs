//! Objects as rows, the way the server prints them for `kubectl get`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::super::object::{condition, is_terminating, list, name, number, text};
use super::super::resource::Kind;
use super::super::selector::selector_text;

/// Name and priority of a column; those of priority 1 are shown with `-o wide`.
type Column = (&'static str, u8);

/// Whether a client asks for rows.
pub(crate) fn wanted(accept: &str) -> bool {
    accept.split(',').next().is_some_and(|first| first.contains("as=Table"))
}

/// A table of objects; the columns are described only when asked for (in a watch, with the first event).
pub(crate) fn table(kind: Kind, objects: &[&Value], revision: Option<u64>, describe: bool) -> Value {
    let now = Utc::now();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut metadata = object["metadata"].clone();
            if let Some(map) = metadata.as_object_mut() {
                map.remove("managedFields");
            }
            json!({
                "cells": cells(kind, object, now),
                "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata},
            })
        })
        .collect();
    let definitions: Vec<Value> = columns(kind)
        .iter()
        .map(|(name, priority)| {
            let format = if *name == "Name" { "name" } else { "" };
            json!({"name": name, "type": "string", "format": format, "description": name, "priority": priority})
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": revision.map_or(String::new(), |r| r.to_string())},
        "columnDefinitions": if describe { definitions.into() } else { Value::Null },
        "rows": rows,
    })
}

fn columns(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Pod => &[
            ("Name", 0),
            ("Ready", 0),
            ("Status", 0),
            ("Restarts", 0),
            ("Age", 0),
            ("IP", 1),
            ("Node", 1),
            ("Nominated Node", 1),
            ("Readiness Gates", 1),
        ],
        Kind::Deployment => &[
            ("Name", 0),
            ("Ready", 0),
            ("Up-to-date", 0),
            ("Available", 0),
            ("Age", 0),
            ("Containers", 1),
            ("Images", 1),
            ("Selector", 1),
        ],
        Kind::ReplicaSet => &[
            ("Name", 0),
            ("Desired", 0),
            ("Current", 0),
            ("Ready", 0),
            ("Age", 0),
            ("Containers", 1),
            ("Images", 1),
            ("Selector", 1),
        ],
        Kind::Node => &[
            ("Name", 0),
            ("Status", 0),
            ("Roles", 0),
            ("Age", 0),
            ("Version", 0),
            ("Internal-IP", 1),
            ("External-IP", 1),
            ("OS-Image", 1),
            ("Kernel-Version", 1),
            ("Container-Runtime", 1),
        ],
        Kind::Event => &[
            ("Last Seen", 0),
            ("Type", 0),
            ("Reason", 0),
            ("Object", 0),
            ("Message", 0),
            ("Name", 1),
        ],
        Kind::Namespace => &[("Name", 0), ("Status", 0), ("Age", 0)],
        Kind::Service => &[
            ("Name", 0),
            ("Type", 0),
            ("Cluster-IP", 0),
            ("External-IP", 0),
            ("Port(s)", 0),
            ("Age", 0),
            ("Selector", 1),
        ],
        Kind::Endpoints => &[("Name", 0), ("Endpoints", 0), ("Age", 0)],
        Kind::EndpointSlice => &[
            ("Name", 0),
            ("AddressType", 0),
            ("Ports", 0),
            ("Endpoints", 0),
            ("Age", 0),
        ],
        Kind::Lease => &[("Name", 0), ("Holder", 0), ("Age", 0)],
        Kind::HorizontalPodAutoscaler => &[
            ("Name", 0),
            ("Reference", 0),
            ("Targets", 0),
            ("MinPods", 0),
            ("MaxPods", 0),
            ("Replicas", 0),
            ("Age", 0),
        ],
        Kind::PodDisruptionBudget => &[
            ("Name", 0),
            ("Min Available", 0),
            ("Max Unavailable", 0),
            ("Allowed Disruptions", 0),
            ("Age", 0),
        ],
        Kind::ConfigMap => &[("Name", 0), ("Data", 0), ("Age", 0)],
        Kind::ServiceAccount | Kind::DaemonSet | Kind::StatefulSet => &[("Name", 0), ("Age", 0)],
    }
}

const NONE: &str = "<none>";

fn or_none(text: &str) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

fn cells(kind: Kind, o: &Value, now: DateTime<Utc>) -> Vec<Value> {
    let own_name = Value::from(name(o));
    let age = Value::from(age(text(o, "/metadata/creationTimestamp"), now));
    let count = |pointer: &str| Value::from(number(o, pointer).unwrap_or(0));
    let plain = |pointer: &str| or_none(text(o, pointer));
    match kind {
        Kind::Pod => {
            let statuses = list(o, "/status/containerStatuses");
            let sidecars = || {
                list(o, "/spec/initContainers")
                    .iter()
                    .zip(list(o, "/status/initContainerStatuses"))
                    .filter(|(spec, _)| spec["restartPolicy"] == "Always")
            };
            let ready = statuses.iter().filter(|s| s["ready"] == true).count()
                + sidecars().filter(|(_, s)| s["ready"] == true).count();
            let total = list(o, "/spec/containers").len()
                + list(o, "/spec/initContainers")
                    .iter()
                    .filter(|c| c["restartPolicy"] == "Always")
                    .count();
            vec![
                own_name,
                format!("{ready}/{total}").into(),
                pod_status(o).into(),
                restarts(o, now).into(),
                age,
                plain("/status/podIP"),
                plain("/spec/nodeName"),
                plain("/status/nominatedNodeName"),
                NONE.into(),
            ]
        }
        Kind::Deployment => {
            let ready = format!(
                "{}/{}",
                number(o, "/status/readyReplicas").unwrap_or(0),
                number(o, "/spec/replicas").unwrap_or(1)
            );
            let mut row = vec![
                own_name,
                ready.into(),
                count("/status/updatedReplicas"),
                count("/status/availableReplicas"),
                age,
            ];
            row.extend(template_cells(o));
            row
        }
        Kind::ReplicaSet => {
            let mut row = vec![
                own_name,
                count("/spec/replicas"),
                count("/status/replicas"),
                count("/status/readyReplicas"),
                age,
            ];
            row.extend(template_cells(o));
            row
        }
        Kind::Node => {
            let ready = if condition(o, "Ready").is_some_and(|c| c["status"] == "True") {
                "Ready"
            } else {
                "NotReady"
            };
            let status = if o["spec"]["unschedulable"] == true {
                format!("{ready},SchedulingDisabled")
            } else {
                ready.into()
            };
            let address = list(o, "/status/addresses")
                .iter()
                .find(|a| a["type"] == "InternalIP")
                .map_or("", |a| text(a, "/address"));
            let info = |key: &str| plain(&format!("/status/nodeInfo/{key}"));
            vec![
                own_name,
                status.into(),
                NONE.into(),
                age,
                info("kubeletVersion"),
                or_none(address),
                NONE.into(),
                info("osImage"),
                info("kernelVersion"),
                info("containerRuntimeVersion"),
            ]
        }
        Kind::Event => {
            let last = ["/lastTimestamp", "/eventTime"]
                .map(|p| text(o, p))
                .into_iter()
                .find(|t| !t.is_empty());
            let about = format!(
                "{}/{}",
                text(o, "/involvedObject/kind").to_lowercase(),
                text(o, "/involvedObject/name")
            );
            vec![
                self::age(last.unwrap_or_default(), now).into(),
                plain("/type"),
                plain("/reason"),
                about.into(),
                plain("/message"),
                own_name,
            ]
        }
        Kind::Namespace => vec![own_name, plain("/status/phase"), age],
        Kind::Service => {
            let ports: Vec<String> = list(o, "/spec/ports")
                .iter()
                .map(|p| format!("{}/{}", p["port"], text(p, "/protocol")))
                .collect();
            let selector = selector_text(&json!({"matchLabels": o["spec"]["selector"]}));
            vec![
                own_name,
                plain("/spec/type"),
                plain("/spec/clusterIP"),
                NONE.into(),
                ports.join(",").into(),
                age,
                or_none(&selector),
            ]
        }
        Kind::Endpoints => {
            let addresses: Vec<String> = list(o, "/subsets")
                .iter()
                .flat_map(|s| {
                    list(s, "/addresses")
                        .iter()
                        .map(move |a| format!("{}:{}", text(a, "/ip"), s["ports"][0]["port"]))
                })
                .collect();
            vec![own_name, or_none(&addresses.join(",")), age]
        }
        Kind::EndpointSlice => {
            let ports: Vec<String> = list(o, "/ports").iter().map(|p| p["port"].to_string()).collect();
            let addresses: Vec<&str> = list(o, "/endpoints").iter().map(|e| text(e, "/addresses/0")).collect();
            vec![
                own_name,
                plain("/addressType"),
                or_none(&ports.join(",")),
                or_none(&addresses.join(",")),
                age,
            ]
        }
        Kind::Lease => vec![own_name, plain("/spec/holderIdentity"), age],
        Kind::HorizontalPodAutoscaler => {
            let of = format!(
                "{}/{}",
                text(o, "/spec/scaleTargetRef/kind"),
                text(o, "/spec/scaleTargetRef/name")
            );
            vec![
                own_name,
                of.into(),
                "<unknown>".into(),
                count("/spec/minReplicas"),
                count("/spec/maxReplicas"),
                count("/status/currentReplicas"),
                age,
            ]
        }
        Kind::PodDisruptionBudget => {
            let word = |key: &str| match &o["spec"][key] {
                Value::Null => "N/A".into(),
                Value::String(s) => s.as_str().into(),
                other => Value::from(other.to_string()),
            };
            vec![
                own_name,
                word("minAvailable"),
                word("maxUnavailable"),
                count("/status/disruptionsAllowed"),
                age,
            ]
        }
        Kind::ConfigMap => vec![
            own_name,
            o["data"].as_object().map_or(0, serde_json::Map::len).into(),
            age,
        ],
        Kind::ServiceAccount | Kind::DaemonSet | Kind::StatefulSet => vec![own_name, age],
    }
}

fn template_cells(o: &Value) -> [Value; 3] {
    let containers = list(o, "/spec/template/spec/containers");
    let join = |key: &str| containers.iter().map(|c| text(c, key)).collect::<Vec<_>>().join(",");
    [
        join("/name").into(),
        join("/image").into(),
        selector_text(&o["spec"]["selector"]).into(),
    ]
}

/// What stands under STATUS: the reason of a container that waits or has ended, else the phase.
fn pod_status(pod: &Value) -> String {
    let phase = text(pod, "/status/phase");
    let mut reason = phase.to_owned();
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        let state = &status["state"];
        let shown = [text(state, "/waiting/reason"), text(state, "/terminated/reason")];
        if let Some(shown) = shown.into_iter().find(|r| !r.is_empty()) {
            reason = shown.to_owned();
        }
    }
    if is_terminating(pod) && !["Succeeded", "Failed"].contains(&phase) {
        "Terminating".into()
    } else {
        reason
    }
}

fn restarts(pod: &Value, now: DateTime<Utc>) -> String {
    let statuses = list(pod, "/status/containerStatuses");
    let count: i64 = statuses.iter().filter_map(|s| number(s, "/restartCount")).sum();
    let last = statuses
        .iter()
        .map(|s| text(s, "/lastState/terminated/finishedAt"))
        .max()
        .unwrap_or_default();
    if count == 0 || last.is_empty() {
        count.to_string()
    } else {
        format!("{count} ({} ago)", age(last, now))
    }
}

/// The time since a stamp, as short as kubectl writes it.
fn age(since: &str, now: DateTime<Utc>) -> String {
    let Ok(since) = DateTime::parse_from_rfc3339(since) else {
        return "<unknown>".into();
    };
    let s = (now - since.with_timezone(&Utc)).num_seconds().max(0);
    match s {
        0..120 => format!("{s}s"),
        120..600 if s % 60 == 0 => format!("{}m", s / 60),
        120..600 => format!("{}m{}s", s / 60, s % 60),
        600..10_800 => format!("{}m", s / 60),
        10_800..28_800 => format!("{}h{}m", s / 3600, s % 3600 / 60),
        28_800..172_800 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::resource::RESOURCES;
    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        for resource in &RESOURCES {
            let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-11-29T00:00:00Z"}});
            assert_eq!(
                cells(resource.kind, &object, Utc::now()).len(),
                columns(resource.kind).len(),
                "{}",
                resource.name
            );
        }
    }

    #[test]
    fn a_pod_that_is_deleted_is_terminating_until_it_has_ended() {
        let mut pod =
            json!({"metadata": {"deletionTimestamp": "2026-11-29T00:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!(pod_status(&pod), "Terminating");
        pod["status"] =
            json!({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}]});
        assert_eq!(pod_status(&pod), "Completed");
    }

    #[test]
    fn ages_are_short() {
        let now = "2026-11-29T12:00:00Z".parse().expect("stamp");
        for (since, wanted) in [
            ("2026-11-29T11:59:55Z", "5s"),
            ("2026-11-29T11:57:00Z", "3m"),
            ("2026-11-29T11:56:55Z", "3m5s"),
            ("2026-11-29T11:00:00Z", "60m"),
            ("2026-11-29T07:30:00Z", "4h30m"),
            ("2026-11-20T12:00:00Z", "9d"),
        ] {
            assert_eq!(age(since, now), wanted, "{since}");
        }
    }
}

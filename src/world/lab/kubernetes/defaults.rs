//! Fields that an API server fills in when a client leaves them out.

use serde_json::{Map, Value, json};

use super::resource::Kind;

/// Sets what is missing.
fn default(map: &mut Map<String, Value>, key: &str, value: Value) {
    map.entry(key).or_insert(value);
}

/// The spec of a pod made from a template.
pub(crate) fn pod_spec(template: &Value) -> Value {
    let mut spec = template.clone();
    if let Some(map) = spec.as_object_mut() {
        default(map, "restartPolicy", json!("Always"));
        default(map, "terminationGracePeriodSeconds", json!(30));
        default(map, "dnsPolicy", json!("ClusterFirst"));
        default(map, "serviceAccountName", json!("default"));
        default(map, "serviceAccount", json!("default"));
        default(map, "securityContext", json!({}));
        default(map, "schedulerName", json!("default-scheduler"));
        default(
            map,
            "tolerations",
            ["not-ready", "unreachable"]
                .map(|k| {
                    json!({
                        "key": format!("node.kubernetes.io/{k}"), "operator": "Exists", "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    })
                })
                .to_vec()
                .into(),
        );
        default(map, "priority", json!(0));
        default(map, "enableServiceLinks", json!(true));
        default(map, "preemptionPolicy", json!("PreemptLowerPriority"));
    }
    spec
}

/// Completes an object that a client creates.
pub(crate) fn complete(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Pod => {
            object["spec"] = pod_spec(&object["spec"]);
            object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
        }
        Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet => {
            let metadata_labels = object["spec"]["template"]["metadata"]["labels"].clone();
            if let Some(spec) = object["spec"].as_object_mut() {
                default(spec, "replicas", json!(1));
                default(spec, "selector", json!({"matchLabels": metadata_labels}));
                if kind == Kind::Deployment {
                    let rolling = json!({
                        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                    });
                    default(spec, "strategy", rolling);
                    default(spec, "revisionHistoryLimit", json!(10));
                    default(spec, "progressDeadlineSeconds", json!(600));
                }
            }
        }
        Kind::Namespace => object["status"] = json!({"phase": "Active"}),
        Kind::ConfigMap
        | Kind::Endpoints
        | Kind::Event
        | Kind::Node
        | Kind::Service
        | Kind::ServiceAccount
        | Kind::DaemonSet
        | Kind::HorizontalPodAutoscaler
        | Kind::Lease
        | Kind::EndpointSlice
        | Kind::PodDisruptionBudget => {}
    }
}

//! EndpointSlices of Services. A terminating pod stays in the slice, not ready and marked, until its containers are gone.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::object::{is_terminating, is_true, list, name, namespace, now, suffix, text, uid};
use super::super::resource::Kind;
use super::super::selector::Selector;
use super::super::store::{Object, Store};
use super::replicaset::named_port;

const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The endpoints of a service as they are now.
fn service_endpoints(store: &Store, service: &Value) -> Vec<Value> {
    let selector = &service["spec"]["selector"];
    if !selector.is_object() {
        return Vec::new();
    }
    let selector = Selector::of(&json!({"matchLabels": selector}));
    let (_, pods) = store.list(Kind::Pod, Some(namespace(service)));
    pods.iter()
        .filter(|p| selector.matches(p) && !text(p, "/status/podIP").is_empty())
        .filter(|p| !["Succeeded", "Failed"].contains(&text(p, "/status/phase")))
        .map(|pod| {
            let (serving, terminating) = (is_true(pod, "Ready"), is_terminating(pod));
            json!({
                "addresses": [text(pod, "/status/podIP")],
                "conditions": {"ready": serving && !terminating, "serving": serving, "terminating": terminating},
                "targetRef": {"kind": "Pod", "namespace": namespace(pod), "name": name(pod), "uid": uid(pod)},
                "nodeName": text(pod, "/spec/nodeName"),
            })
        })
        .collect()
}

fn ports(store: &Store, service: &Value) -> Value {
    list(service, "/spec/ports")
        .iter()
        .map(|port| {
            let target = &port["targetPort"];
            let number = target.as_i64().or_else(|| {
                let (_, pods) = store.list(Kind::Pod, Some(namespace(service)));
                pods.iter().find_map(|p| named_port(&p["spec"], target.as_str()?))
            });
            json!({"name": text(port, "/name"), "port": number.or_else(|| port["port"].as_i64()), "protocol": "TCP"})
        })
        .collect()
}

pub(super) fn look(store: &Store) -> Option<Duration> {
    let (_, services) = store.list(Kind::Service, None);
    for service in services.iter().filter(|s| s["spec"]["selector"].is_object()) {
        look_at(store, service);
    }
    None
}

fn look_at(store: &Store, service: &Object) {
    let (endpoints, ports) = (Value::from(service_endpoints(store, service)), ports(store, service));
    let (_, slices) = store.list(Kind::EndpointSlice, Some(namespace(service)));
    match slices
        .iter()
        .find(|s| s["metadata"]["labels"][SERVICE_LABEL] == name(service))
    {
        None => {
            let slice = json!({
                "metadata": {
                    "name": format!("{}-{}", name(service), suffix(5)), "generateName": format!("{}-", name(service)),
                    "namespace": namespace(service),
                    "labels": {
                        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                        SERVICE_LABEL: name(service),
                    },
                    "ownerReferences": [super::super::object::owner_reference(service)],
                },
                "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
            });
            let _ = store.create(Kind::EndpointSlice, slice);
        }
        Some(slice) => {
            let _ = store.update(Kind::EndpointSlice, namespace(slice), name(slice), |s| {
                let changed = s["endpoints"] != endpoints || s["ports"] != ports;
                let grown = number_of(&endpoints) >= number_of(&s["endpoints"]);
                s["endpoints"] = endpoints;
                s["ports"] = ports;
                if changed && grown {
                    s["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"] = now().into();
                }
                Ok(())
            });
        }
    }
    legacy(store, service);
}

fn number_of(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

/// The older Endpoints object: it drops a pod as soon as it is terminating or not ready.
fn legacy(store: &Store, service: &Object) {
    let all = service_endpoints(store, service);
    let ready: Vec<Value> = all
        .iter()
        .filter(|e| e["conditions"]["ready"] == true)
        .map(|e| json!({"ip": e["addresses"][0], "nodeName": e["nodeName"], "targetRef": e["targetRef"]}))
        .collect();
    let subsets = if ready.is_empty() {
        json!([])
    } else {
        json!([{"addresses": ready, "ports": ports(store, service)}])
    };
    let (within, own) = (namespace(service), name(service));
    if store.get(Kind::Endpoints, within, own).is_none() {
        let _ = store.create(
            Kind::Endpoints,
            json!({"metadata": {"name": own, "namespace": within}, "subsets": subsets}),
        );
    } else {
        let _ = store.update(Kind::Endpoints, within, own, |e| {
            e["subsets"] = subsets;
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminating_pod_stays_until_its_containers_have_ended() {
        let store = Store::new();
        let service = json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
        let service = store.create(Kind::Service, service).expect("service");
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "a"}}, "spec": {"nodeName": "w1"},
            "status": {"podIP": "198.18.0.11", "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        store.create(Kind::Pod, pod).expect("pod");
        let seen = |store: &Store| {
            look(store);
            let (_, slices) = store.list(Kind::EndpointSlice, Some("n"));
            list(&slices[0], "/endpoints")
                .iter()
                .map(|e| e["conditions"].to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(seen(&store), [r#"{"ready":true,"serving":true,"terminating":false}"#]);
        let change = |f: fn(&mut Value)| {
            store
                .update(Kind::Pod, "n", "p", |p| {
                    f(p);
                    Ok(())
                })
                .expect("changed");
        };
        change(|p| p["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z".into());
        assert_eq!(seen(&store), [r#"{"ready":false,"serving":true,"terminating":true}"#]);
        change(|p| p["status"]["phase"] = "Succeeded".into());
        assert_eq!(seen(&store), [""; 0]);
        assert_eq!(
            store.get(Kind::Endpoints, "n", "s").expect("legacy")["subsets"],
            json!([])
        );
        drop(service);
    }
}

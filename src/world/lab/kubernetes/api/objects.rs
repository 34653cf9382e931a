//! Reading and changing objects.

use serde_json::{Value, json};

use super::super::control::eviction_refusal;
use super::super::defaults::complete;
use super::super::object::{is_terminating, map_at, name, namespace, now, number, text, uid};
use super::super::pod_deletion::delete_pod;
use super::super::resource::{Kind, Resource, qualified};
use super::super::selector::selector_text;
use super::super::status::Status;
use super::super::store::{Object, Store};
use super::patch::PatchKind;
use super::protobuf::{decode, is_protobuf};
use super::request::{Query, Target};
use super::typed::{Unknown, conform};

/// Whether the client only wants to know what would happen.
pub(super) fn is_dry(query: &Query) -> bool {
    query.get("dryRun").is_some_and(|d| d == "All")
}

/// What the client wants done with fields that nobody knows.
fn unknown(query: &Query) -> Unknown {
    if query.get("fieldValidation") == Some("Strict") {
        Unknown::Refused
    } else {
        Unknown::Dropped
    }
}

/// A body as JSON, whichever way it was sent.
///
/// # Errors
/// 400, or 415 for protocol buffers of a kind that is only read as JSON.
pub(super) fn read_json(body: &[u8]) -> Result<Value, Status> {
    if is_protobuf(body) {
        return decode(body);
    }
    serde_json::from_slice(body).map_err(|e| Status::bad_request(e.to_string()))
}

/// Adds an object.
///
/// # Errors
/// 400, 409, 422.
pub(super) fn create(store: &Store, target: Target<'_>, query: &Query, body: &[u8]) -> Result<Value, Status> {
    let mut object = read_json(body)?;
    let resource = target.resource;
    let wanted = object["kind"].as_str().unwrap_or(resource.name);
    if wanted != resource.name {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized: {wanted} is no {}",
            resource.name
        )));
    }
    if let Some(within) = target.namespace {
        let sent = namespace(&object);
        if !sent.is_empty() && sent != within {
            return Err(Status::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the request ({sent}, {within})"
            )));
        }
        map_at(&mut object, &["metadata"]).insert("namespace".into(), within.into());
    }
    map_at(&mut object, &["metadata"]).remove("resourceVersion");
    complete(resource.kind, &mut object);
    conform(resource, &mut object, unknown(query))?;
    if is_dry(query) {
        return Ok(object);
    }
    store.create(resource.kind, object).map(|o| Value::clone(&o))
}

/// Fields of the metadata that no client changes.
const FIXED: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
];

/// Puts back what a client may not change through this path: identity always, the status through the object itself,
/// everything but the status through `/status`.
fn keep_fixed(resource: &Resource, before: &Value, after: &mut Value, subresource: &str) {
    for key in FIXED {
        match before["metadata"].get(key) {
            Some(value) => {
                map_at(after, &["metadata"]).insert(key.into(), value.clone());
            }
            None => {
                map_at(after, &["metadata"]).remove(key);
            }
        }
    }
    let has_status = resource.subresource("status").is_some();
    if subresource == "status" {
        if let Some(spec) = before.get("spec") {
            after["spec"] = spec.clone();
        }
    } else if has_status {
        match before.get("status") {
            Some(status) => after["status"] = status.clone(),
            None => {
                map_at(after, &[]).remove("status");
            }
        }
    }
    if resource.kind == Kind::Node && subresource.is_empty() {
        sync_unschedulable_taint(after);
    }
}

/// A cordoned node has a taint that says so (the node controller sets it).
fn sync_unschedulable_taint(node: &mut Value) {
    let taint = super::super::manifest::unschedulable_taint();
    let cordoned = node["spec"]["unschedulable"] == true;
    let spec = map_at(node, &["spec"]);
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if let Some(list) = taints.as_array_mut() {
        let has = list.iter().any(|t| t["key"] == taint["key"]);
        if cordoned && !has {
            list.push(taint);
        } else if !cordoned {
            list.retain(|t| t["key"] != taint["key"]);
        }
        if list.is_empty() {
            spec.remove("taints");
        }
    }
}

/// Changes an object with a patch.
///
/// # Errors
/// 400, 404, 409, 415, 422.
pub(super) fn patch(
    store: &Store,
    target: Target<'_>,
    query: &Query,
    kind: PatchKind,
    body: &[u8],
) -> Result<Value, Status> {
    let patch = read_json(body)?;
    change(store, target, query, |object| kind.apply(object, &patch))
}

/// Replaces an object.
///
/// # Errors
/// 400, 404, 409, 422.
pub(super) fn replace(store: &Store, target: Target<'_>, query: &Query, body: &[u8]) -> Result<Value, Status> {
    let new = read_json(body)?;
    change(store, target, query, |object| {
        let revision = object["metadata"]["resourceVersion"].clone();
        *object = new;
        if object["metadata"]["resourceVersion"].is_null() {
            map_at(object, &["metadata"]).insert("resourceVersion".into(), revision);
        }
        Ok(())
    })
}

fn change(
    store: &Store,
    target: Target<'_>,
    query: &Query,
    edit: impl FnOnce(&mut Value) -> Result<(), Status>,
) -> Result<Value, Status> {
    let (resource, within, own) = (
        target.resource,
        target.namespace.unwrap_or_default(),
        target.name.unwrap_or_default(),
    );
    if target.subresource == "scale" {
        return change_scale(store, target, query, edit);
    }
    let edit = |object: &mut Value| {
        let before = object.clone();
        edit(object)?;
        if object["metadata"]["name"].as_str().is_some_and(|n| n != own) {
            return Err(Status::bad_request(
                "the name of the object does not match the name on the URL",
            ));
        }
        keep_fixed(resource, &before, object, target.subresource);
        conform(resource, object, unknown(query))
    };
    if is_dry(query) {
        let mut object = Value::clone(&*store.need(resource.kind, within, own)?);
        edit(&mut object)?;
        return Ok(object);
    }
    store.update(resource.kind, within, own, edit).map(|o| Value::clone(&o))
}

/// The `Scale` of a workload.
pub(super) fn scale(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": number(object, "/spec/replicas").unwrap_or(0)},
        "status": {
            "replicas": number(object, "/status/replicas").unwrap_or(0),
            "selector": selector_text(&object["spec"]["selector"]),
        },
    })
}

fn change_scale(
    store: &Store,
    target: Target<'_>,
    query: &Query,
    edit: impl FnOnce(&mut Value) -> Result<(), Status>,
) -> Result<Value, Status> {
    let (resource, within, own) = (
        target.resource,
        target.namespace.unwrap_or_default(),
        target.name.unwrap_or_default(),
    );
    let set = |object: &mut Value| {
        let mut wanted = scale(object);
        edit(&mut wanted)?;
        let count = number(&wanted, "/spec/replicas").unwrap_or(0);
        if count < 0 {
            let why = format!("Invalid value: {count}: must be greater than or equal to 0");
            let mut status = Status::invalid(resource, own, "spec.replicas", &why);
            let kind = qualified("Scale", "autoscaling");
            status.message = format!("{kind} \"{own}\" is invalid: spec.replicas: {why}");
            return Err(status);
        }
        let version = &wanted["metadata"]["resourceVersion"];
        if version.as_str().is_some_and(|v| !v.is_empty()) {
            object["metadata"]["resourceVersion"] = version.clone();
        }
        object["spec"]["replicas"] = count.into();
        Ok(())
    };
    if is_dry(query) {
        let mut object = Value::clone(&*store.need(resource.kind, within, own)?);
        set(&mut object)?;
        return Ok(scale(&object));
    }
    store.update(resource.kind, within, own, set).map(|o| scale(&o))
}

/// Options of a deletion: the body's, or those of the query.
fn delete_options(query: &Query, body: &[u8]) -> Result<Value, Status> {
    let mut options = if body.is_empty() { json!({}) } else { read_json(body)? };
    if options["gracePeriodSeconds"].is_null()
        && let Some(grace) = query.get("gracePeriodSeconds")
    {
        let grace: i64 = grace
            .parse()
            .map_err(|_| Status::bad_request("gracePeriodSeconds is no number"))?;
        options["gracePeriodSeconds"] = grace.into();
    }
    if options["dryRun"].is_null() && is_dry(query) {
        options["dryRun"] = json!(["All"]);
    }
    Ok(options)
}

fn check_preconditions(resource: &Resource, object: &Value, options: &Value) -> Result<(), Status> {
    for (key, what, found) in [
        ("uid", "UID", uid(object)),
        (
            "resourceVersion",
            "ResourceVersion",
            text(object, "/metadata/resourceVersion"),
        ),
    ] {
        if let Some(wanted) = options["preconditions"][key].as_str()
            && wanted != found
        {
            return Err(Status::precondition(resource, name(object), what, wanted, found));
        }
    }
    Ok(())
}

/// Deletes an object: pods with their grace period, everything else at once.
///
/// # Errors
/// 400, 404, 409.
pub(super) fn delete(store: &Store, target: Target<'_>, query: &Query, body: &[u8]) -> Result<Value, Status> {
    let options = delete_options(query, body)?;
    let object = store.need(
        target.resource.kind,
        target.namespace.unwrap_or_default(),
        target.name.unwrap_or_default(),
    )?;
    check_preconditions(target.resource, &object, &options)?;
    delete_object(store, target.resource, &object, &options)
}

fn delete_object(store: &Store, resource: &Resource, object: &Object, options: &Value) -> Result<Value, Status> {
    let dry = !options["dryRun"].is_null();
    if resource.kind == Kind::Pod {
        if dry {
            return Ok(Value::clone(object));
        }
        return delete_pod(store, object, options["gracePeriodSeconds"].as_i64()).map(|o| Value::clone(&o));
    }
    if !dry {
        store.remove(resource.kind, namespace(object), name(object))?;
    }
    let mut details = json!({"name": name(object)});
    if !resource.group.is_empty() {
        details["group"] = resource.group.into();
    }
    details["kind"] = resource.plural.into();
    details["uid"] = uid(object).into();
    Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}))
}

/// Deletes every object of a list.
///
/// # Errors
/// 400.
pub(super) fn delete_all(
    store: &Store,
    resource: &Resource,
    objects: &[Object],
    query: &Query,
    body: &[u8],
) -> Result<(), Status> {
    let options = delete_options(query, body)?;
    for object in objects {
        match delete_object(store, resource, object, &options) {
            Err(gone) if gone.code == 404 => {}
            other => {
                other?;
            }
        }
    }
    Ok(())
}

/// Evicts a pod if no disruption budget forbids it.
///
/// # Errors
/// 400, 404, 409, 429.
pub(super) fn evict(store: &Store, target: Target<'_>, query: &Query, body: &[u8]) -> Result<Value, Status> {
    let eviction = read_json(body)?;
    let options = &eviction["deleteOptions"];
    let own = target.name.unwrap_or_default();
    let pod = store.need(Kind::Pod, target.namespace.unwrap_or_default(), own)?;
    check_preconditions(target.resource, &pod, options)?;
    let counts = !is_terminating(&pod) && !["Succeeded", "Failed"].contains(&text(&pod, "/status/phase"));
    if counts && let Some(refusal) = eviction_refusal(store, &pod) {
        return Err(refusal);
    }
    if !is_dry(query) && options["dryRun"].is_null() {
        if counts {
            store.update(Kind::Pod, namespace(&pod), own, |p| {
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now(),
                });
                let conditions = map_at(p, &["status"]).entry("conditions").or_insert_with(|| json!([]));
                if let Some(list) = conditions.as_array_mut() {
                    list.retain(|c| c["type"] != "DisruptionTarget");
                    list.push(condition);
                }
                Ok(())
            })?;
        }
        delete_pod(store, &pod, options["gracePeriodSeconds"].as_i64())?;
    }
    Ok(Status::success(201))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(store: &Store) -> Target<'static> {
        let object = json!({
            "metadata": {"name": "d", "namespace": "n"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"spec": {"containers": []}}},
            "status": {"replicas": 1},
        });
        store.create(Kind::Deployment, object).expect("created");
        Target {
            resource: Kind::Deployment.resource(),
            namespace: Some("n"),
            name: Some("d"),
            subresource: "",
        }
    }

    #[test]
    fn a_patch_changes_no_status_and_no_identity() {
        let store = Store::new();
        let target = deployment(&store);
        let body = br#"{"metadata": {"uid": "x", "labels": {"mode": "current"}}, "status": {"replicas": 9}}"#;
        let after = patch(&store, target, &Query::default(), PatchKind::Merge, body).expect("patched");
        assert_eq!(after["metadata"]["labels"]["mode"], "current");
        assert_ne!(after["metadata"]["uid"], "x");
        assert_eq!(after["status"]["replicas"], 1);
    }

    #[test]
    fn what_cannot_be_is_refused_in_the_words_of_the_server() {
        let store = Store::new();
        let target = deployment(&store);
        let refused =
            |body: &[u8]| patch(&store, target, &Query::default(), PatchKind::Merge, body).expect_err("refused");
        let negative = refused(br#"{"spec": {"replicas": -1}}"#);
        assert_eq!(
            negative.message,
            "Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
        assert_eq!(refused(br#"{"spec": {"replicas": "two"}}"#).code, 422);
        assert_eq!(refused(b"{not").code, 400);
        assert_eq!(refused(br#"{"metadata": {"resourceVersion": "1"}}"#).reason, "Conflict");
    }

    #[test]
    fn scale_shows_and_sets_the_replicas() {
        let store = Store::new();
        let target = Target {
            subresource: "scale",
            ..deployment(&store)
        };
        let body = br#"{"spec": {"replicas": 3}}"#;
        let after = patch(&store, target, &Query::default(), PatchKind::Merge, body).expect("scaled");
        assert_eq!(
            (&after["kind"], &after["spec"]["replicas"]),
            (&"Scale".into(), &3.into())
        );
        assert_eq!(after["status"]["selector"], "app=a");
        assert_eq!(
            store.get(Kind::Deployment, "n", "d").expect("there")["spec"]["replicas"],
            3
        );
    }

    #[test]
    fn a_deletion_with_the_uid_of_another_pod_is_refused() {
        let store = Store::new();
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "w"}});
        let uid_now = uid(&store.create(Kind::Pod, pod).expect("created")).to_owned();
        let target = Target {
            resource: Kind::Pod.resource(),
            namespace: Some("n"),
            name: Some("p"),
            subresource: "",
        };
        let error =
            delete(&store, target, &Query::default(), br#"{"preconditions": {"uid": "0"}}"#).expect_err("other");
        assert_eq!(
            error.message,
            format!(
                "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (0) does not match the UID in record ({uid_now}). The object might have been deleted and then recreated"
            )
        );
        let deleted = delete(&store, target, &Query::default(), br#"{"gracePeriodSeconds": 210}"#).expect("deleted");
        assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 210);
        assert_eq!(deleted["metadata"]["generation"], 2);
        assert!(store.get(Kind::Pod, "n", "p").is_some(), "it is still terminating");
    }
}

//! What an object of a kind can have: types of fields, and which fields there are at all.

use k8s_openapi::api::{apps, autoscaling, coordination, core, discovery, policy};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::object::{name, number};
use super::super::resource::{Kind, Resource};
use super::super::status::Status;

/// What becomes of fields that the kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// They are left out.
    Dropped,
    /// `fieldValidation=Strict`: the object is refused.
    Refused,
}

/// Drops or refuses unknown fields, and refuses fields of the wrong type and numbers that cannot be.
///
/// # Errors
/// 422.
pub(super) fn conform(resource: &Resource, object: &mut Value, unknown: Unknown) -> Result<(), Status> {
    let known = round_trip(resource.kind, object).map_err(|why| Status::bad_patch(object, &why))?;
    let mut fields = Vec::new();
    let mut kept = object.clone();
    drop_unknown(&mut kept, &known, String::new(), &mut fields);
    if unknown == Unknown::Refused
        && let Some(first) = fields.first()
    {
        return Err(Status::bad_patch(
            object,
            &format!("strict decoding error: unknown field \"{first}\""),
        ));
    }
    *object = kept;
    if matches!(resource.kind, Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet)
        && let Some(count) = number(object, "/spec/replicas").filter(|n| *n < 0)
    {
        let why = format!("Invalid value: {count}: must be greater than or equal to 0");
        return Err(Status::invalid(resource, name(object), "spec.replicas", &why));
    }
    Ok(())
}

/// The object with the fields that its kind has.
fn round_trip(kind: Kind, object: &Value) -> Result<Value, String> {
    fn through<T: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, String> {
        let typed: T = serde_json::from_value(object.clone()).map_err(|e| e.to_string())?;
        serde_json::to_value(typed).map_err(|e| e.to_string())
    }
    match kind {
        Kind::ConfigMap => through::<core::v1::ConfigMap>(object),
        Kind::Endpoints => through::<core::v1::Endpoints>(object),
        Kind::Event => through::<core::v1::Event>(object),
        Kind::Namespace => through::<core::v1::Namespace>(object),
        Kind::Node => through::<core::v1::Node>(object),
        Kind::Pod => through::<core::v1::Pod>(object),
        Kind::Service => through::<core::v1::Service>(object),
        Kind::ServiceAccount => through::<core::v1::ServiceAccount>(object),
        Kind::DaemonSet => through::<apps::v1::DaemonSet>(object),
        Kind::Deployment => through::<apps::v1::Deployment>(object),
        Kind::ReplicaSet => through::<apps::v1::ReplicaSet>(object),
        Kind::StatefulSet => through::<apps::v1::StatefulSet>(object),
        Kind::HorizontalPodAutoscaler => through::<autoscaling::v2::HorizontalPodAutoscaler>(object),
        Kind::Lease => through::<coordination::v1::Lease>(object),
        Kind::EndpointSlice => through::<discovery::v1::EndpointSlice>(object),
        Kind::PodDisruptionBudget => through::<policy::v1::PodDisruptionBudget>(object),
    }
}

/// A field that the round trip has lost is unknown; one that was null or empty may be lost without that.
fn drop_unknown(object: &mut Value, known: &Value, path: String, found: &mut Vec<String>) {
    match object {
        Value::Object(map) => {
            let empty = |v: &Value| match v {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(map) => map.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            };
            let below = |key: &str| {
                if path.is_empty() {
                    key.to_owned()
                } else {
                    format!("{path}.{key}")
                }
            };
            map.retain(|key, value| {
                let keep = known.get(key).is_some() || empty(value);
                if !keep {
                    found.push(below(key));
                }
                keep
            });
            for (key, value) in map {
                if let Some(known) = known.get(key) {
                    drop_unknown(value, known, below(key), found);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(known) = known.get(at) {
                    drop_unknown(item, known, format!("{path}[{at}]"), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::manifest;
    use super::*;
    use crate::world::lab::world::LabWorld;

    #[test]
    fn the_labs_own_objects_have_no_field_that_their_kind_lacks() {
        let world = LabWorld::default();
        let mut deployment = manifest::deployment(&world, std::path::Path::new("/e.yaml"));
        let before = deployment.clone();
        conform(Kind::Deployment.resource(), &mut deployment, Unknown::Refused).expect("known");
        assert_eq!(deployment, before);
        let mut service = manifest::service();
        conform(Kind::Service.resource(), &mut service, Unknown::Refused).expect("known");
    }

    #[test]
    fn unknown_fields_are_dropped_or_refused() {
        let object = json!({"metadata": {"name": "d"}, "spec": {
            "nope": 1, "replicas": 1, "selector": {}, "template": {"spec": {"containers": [{"name": "a", "imagee": "b"}]}}}});
        let mut dropped = object.clone();
        conform(Kind::Deployment.resource(), &mut dropped, Unknown::Dropped).expect("dropped");
        assert_eq!(dropped["spec"].get("nope"), None);
        assert_eq!(
            dropped["spec"]["template"]["spec"]["containers"][0],
            json!({"name": "a"})
        );
        let error = conform(Kind::Deployment.resource(), &mut object.clone(), Unknown::Refused).expect_err("refused");
        assert!(
            error
                .message
                .ends_with("strict decoding error: unknown field \"spec.nope\""),
            "{}",
            error.message
        );
    }
}

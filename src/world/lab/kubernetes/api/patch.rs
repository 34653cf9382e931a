//! The kinds of patches: JSON patch, merge patch, strategic merge patch, and apply (taken as a strategic merge).

use serde_json::{Map, Value};

use super::super::status::Status;

/// How a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Merge patch in which lists of named things are merged by name.
    Strategic,
}

impl PatchKind {
    /// The kind that a content type names.
    ///
    /// # Errors
    /// 415 for any other.
    pub(crate) fn of(content_type: &str) -> Result<Self, Status> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" | "application/apply-patch+yaml" => Ok(Self::Strategic),
            _ => Err(Status::unsupported_media_type()),
        }
    }

    /// Changes an object.
    ///
    /// # Errors
    /// The patch is no patch, or does not fit the object.
    pub(crate) fn apply(self, object: &mut Value, patch: &Value) -> Result<(), Status> {
        match self {
            Self::Json => {
                let patch: json_patch::Patch =
                    serde_json::from_value(patch.clone()).map_err(|e| Status::bad_request(e.to_string()))?;
                json_patch::patch(object, &patch).map_err(|_| Status::rejected_patch())
            }
            Self::Merge => {
                json_patch::merge(object, patch);
                Ok(())
            }
            Self::Strategic => {
                strategic(object, patch, "");
                Ok(())
            }
        }
    }
}

/// By which key the items of a list are merged, where they are merged at all.
fn merge_key(list: &str) -> Option<&'static str> {
    match list {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" | "ephemeralContainers" => {
            Some("name")
        }
        "volumeMounts" => Some("mountPath"),
        "ports" => Some("containerPort"),
        "conditions" => Some("type"),
        "ownerReferences" => Some("uid"),
        "hostAliases" => Some("ip"),
        _ => None,
    }
}

fn strategic(target: &mut Value, patch: &Value, name: &str) {
    match patch {
        Value::Object(patch) => {
            if patch.get("$patch").is_some_and(|p| p == "replace") {
                let mut new = patch.clone();
                new.remove("$patch");
                *target = Value::Object(new);
                return;
            }
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let Some(map) = target.as_object_mut() else { return };
            for (key, value) in patch {
                if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
                    if let (Some(Value::Array(items)), Some(gone)) = (map.get_mut(list), value.as_array()) {
                        items.retain(|i| !gone.contains(i));
                    }
                } else if key.starts_with('$') {
                    // Orders of lists: they do not matter here.
                } else if value.is_null() {
                    map.remove(key);
                } else {
                    strategic(map.entry(key.clone()).or_insert(Value::Null), value, key);
                }
            }
        }
        Value::Array(items) => match (merge_key(name), target.as_array_mut()) {
            (Some(key), Some(list)) if items.iter().all(|i| i.get(key).is_some()) => merge_list(list, items, key),
            _ => *target = Value::Array(items.iter().map(without_directives).collect()),
        },
        plain => *target = plain.clone(),
    }
}

fn merge_list(list: &mut Vec<Value>, items: &[Value], key: &str) {
    for item in items {
        let place = list.iter().position(|old| old.get(key) == item.get(key));
        let delete = item.get("$patch").is_some_and(|p| p == "delete");
        match (place, delete) {
            (Some(at), true) => {
                list.remove(at);
            }
            (Some(at), false) => strategic(&mut list[at], item, ""),
            (None, true) => {}
            (None, false) => list.push(without_directives(item)),
        }
    }
}

fn without_directives(value: &Value) -> Value {
    let mut new = Value::Null;
    match value {
        Value::Object(_) => strategic(&mut new, value, ""),
        other => new = other.clone(),
    }
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn named_things_are_merged_by_name() {
        let mut object = json!({"spec": {"containers": [
            {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}});
        let patch = json!({"spec": {"containers": [
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "b", "$patch": "delete"},
            {"name": "c", "image": "3"}]}});
        PatchKind::Strategic.apply(&mut object, &patch).expect("fits");
        assert_eq!(
            object,
            json!({"spec": {"containers": [
            {"name": "a", "image": "2", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
            {"name": "c", "image": "3"}]}})
        );
    }

    #[test]
    fn a_null_removes_in_both_merges() {
        for kind in [PatchKind::Merge, PatchKind::Strategic] {
            let mut object = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
            kind.apply(&mut object, &json!({"metadata": {"labels": {"a": null, "c": "3"}}}))
                .expect("fits");
            assert_eq!(object, json!({"metadata": {"labels": {"b": "2", "c": "3"}}}));
        }
    }

    #[test]
    fn unnamed_lists_are_replaced() {
        let mut object = json!({"spec": {"taints": [{"key": "a"}]}});
        PatchKind::Strategic
            .apply(&mut object, &json!({"spec": {"taints": [{"key": "b"}]}}))
            .expect("fits");
        assert_eq!(object, json!({"spec": {"taints": [{"key": "b"}]}}));
    }

    #[test]
    fn a_json_patch_to_nowhere_is_rejected() {
        let patch = json!([{"op": "replace", "path": "/spec/nope/x", "value": 1}]);
        let error = PatchKind::Json
            .apply(&mut json!({"spec": {}}), &patch)
            .expect_err("nowhere");
        assert_eq!(
            (error.code, error.message.as_str()),
            (422, "the server rejected our request due to an error in our request")
        );
        assert_eq!(PatchKind::of("text/plain").expect_err("no patch").code, 415);
    }
}

//! Reading and making objects as they travel: JSON values with `metadata`, `spec` and `status`.

use chrono::{DateTime, SecondsFormat, Utc};
use rand::Rng;
use serde_json::{Map, Value, json};

/// A text at a JSON pointer; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A number at a JSON pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// A list at a JSON pointer; empty when absent.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`; empty for objects of the cluster.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Whether a deletion has begun.
pub(crate) fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The owner that controls the object: its kind and uid.
pub(crate) fn controller(object: &Value) -> Option<(&str, &str)> {
    let owner = list(object, "/metadata/ownerReferences")
        .iter()
        .find(|o| o["controller"] == true)?;
    Some((owner["kind"].as_str()?, owner["uid"].as_str()?))
}

/// A reference to the owner that controls an object.
pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A condition of the status by its type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|c| c["type"] == kind)
}

/// Whether a condition is `True`.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|c| c["status"] == "True")
}

/// The object at a pointer of keys, made if missing.
pub(crate) fn map_at<'a>(object: &'a mut Value, keys: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = object;
    for key in keys {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[*key];
    }
    if !at.is_object() {
        *at = json!({});
    }
    match at {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// Now, as most stamps of the API have it: whole seconds.
pub(crate) fn now() -> String {
    stamp(Utc::now())
}

/// Whole seconds, cut.
pub(crate) fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Microseconds, as the few `MicroTime` fields have it.
pub(crate) fn micro_stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A random version 4 UUID.
pub(crate) fn new_uid() -> String {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Letters that Kubernetes generates names from: none that form words, none that look alike.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The random end of a generated name.
pub(crate) fn suffix(length: usize) -> String {
    let mut random = rand::rng();
    (0..length)
        .map(|_| char::from(SAFE[random.random_range(0..SAFE.len())]))
        .collect()
}

/// The hash that names a ReplicaSet after its pod template: the same template gives the same name.
pub(crate) fn template_hash(template: &Value) -> String {
    use sha2::{Digest, Sha256};
    // Keys in order, so that a template that was patched back is the same one.
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Value::Object(entries.into_iter().collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    let digest = Sha256::digest(sorted(template).to_string());
    digest
        .iter()
        .take(10)
        .map(|b| char::from(SAFE[usize::from(*b) % SAFE.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_template_does_not_depend_on_the_order_of_its_keys() {
        let a = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"containers": []}});
        let b = json!({"spec": {"containers": []}, "metadata": {"labels": {"b": "2", "a": "1"}}});
        assert_eq!(template_hash(&a), template_hash(&b));
        assert_ne!(template_hash(&a), template_hash(&json!({"spec": {"containers": []}})));
    }

    #[test]
    fn a_uid_has_the_shape_of_a_uuid() {
        let uid = new_uid();
        let lengths: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(uid.as_bytes()[14], b'4');
    }
}

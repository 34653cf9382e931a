//! The few bodies that typed clients send as protocol buffers although JSON is offered: kubectl does since 1.32.
//!
//! A body is `k8s\0`, then `runtime.Unknown`: 1 = TypeMeta (1 = apiVersion, 2 = kind), 2 = the object's own bytes. Field
//! numbers are those of the `generated.proto` files of Kubernetes.

use serde_json::{Map, Value, json};

use super::super::object::map_at;
use super::super::status::Status;

/// How such a body begins.
const MAGIC: &[u8] = b"k8s\0";

/// What a field holds.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Whether a body is one.
pub(super) fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// The object of a body as JSON.
///
/// # Errors
/// 400 for what is cut or no message; 415 for a kind that only JSON is read of.
pub(super) fn decode(body: &[u8]) -> Result<Value, Status> {
    let unknown = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (mut kind, mut version, mut raw): (String, String, &[u8]) = Default::default();
    for (number, field) in fields(unknown)? {
        match (number, field) {
            (1, Field::Bytes(meta)) => {
                for (number, field) in fields(meta)? {
                    match (number, field) {
                        (1, Field::Bytes(text)) => version = string(text),
                        (2, Field::Bytes(text)) => kind = string(text),
                        _ => {}
                    }
                }
            }
            (2, Field::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = match kind.as_str() {
        "DeleteOptions" => delete_options(raw)?,
        "Eviction" => eviction(raw)?,
        "SelfSubjectAccessReview" => access_review(raw)?,
        "SelfSubjectReview" => json!({}),
        _ => return Err(Status::unsupported_media_type()),
    };
    object["kind"] = kind.into();
    object["apiVersion"] = version.into();
    Ok(object)
}

fn broken() -> Status {
    Status::bad_request("the body is no protocol buffer of this API")
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, Status> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| broken())?;
                let (field, rest) = bytes.split_at_checked(length).ok_or_else(broken)?;
                bytes = rest;
                Field::Bytes(field)
            }
            wide @ (1 | 5) => {
                bytes = bytes
                    .split_at_checked(if wide == 1 { 8 } else { 4 })
                    .ok_or_else(broken)?
                    .1;
                continue;
            }
            _ => return Err(broken()),
        };
        found.push((tag >> 3, field));
    }
    Ok(found)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Status> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(broken)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(broken())
}

/// The string fields of a message by their numbers; an empty string is a field that was not set.
fn strings(bytes: &[u8], names: &[(u64, &str)]) -> Result<Value, Status> {
    let mut object = Map::new();
    for (number, field) in fields(bytes)? {
        if let (Some((_, name)), Field::Bytes(text)) = (names.iter().find(|(n, _)| *n == number), field)
            && !text.is_empty()
        {
            object.insert((*name).to_owned(), string(text).into());
        }
    }
    Ok(object.into())
}

fn delete_options(bytes: &[u8]) -> Result<Value, Status> {
    let mut options = json!({});
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Field::Number(grace)) => options["gracePeriodSeconds"] = grace.into(),
            (2, Field::Bytes(bytes)) => {
                options["preconditions"] = strings(bytes, &[(1, "uid"), (2, "resourceVersion")])?
            }
            (4, Field::Bytes(policy)) => options["propagationPolicy"] = string(policy).into(),
            (5, Field::Bytes(stage)) => options["dryRun"] = json!([string(stage)]),
            _ => {}
        }
    }
    Ok(options)
}

fn eviction(bytes: &[u8]) -> Result<Value, Status> {
    let mut eviction = json!({});
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Field::Bytes(metadata)) => eviction["metadata"] = strings(metadata, &[(1, "name"), (3, "namespace")])?,
            (2, Field::Bytes(options)) => eviction["deleteOptions"] = delete_options(options)?,
            _ => {}
        }
    }
    Ok(eviction)
}

fn access_review(bytes: &[u8]) -> Result<Value, Status> {
    let attributes = [
        (1, "namespace"),
        (2, "verb"),
        (3, "group"),
        (4, "version"),
        (5, "resource"),
        (6, "subresource"),
        (7, "name"),
    ];
    let mut review = json!({"spec": {}});
    for (number, field) in fields(bytes)? {
        let (2, Field::Bytes(spec)) = (number, field) else {
            continue;
        };
        for (number, field) in fields(spec)? {
            match (number, field) {
                (1, Field::Bytes(resource)) => {
                    map_at(&mut review, &["spec"]).insert("resourceAttributes".into(), strings(resource, &attributes)?);
                }
                (2, Field::Bytes(other)) => {
                    let other = strings(other, &[(1, "path"), (2, "verb")])?;
                    map_at(&mut review, &["spec"]).insert("nonResourceAttributes".into(), other);
                }
                _ => {}
            }
        }
    }
    Ok(review)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("short");
        [&[number << 3 | 2, length], content].concat()
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [message(1, b"v1"), message(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), message(1, &meta), message(2, raw)].concat()
    }

    #[test]
    fn an_eviction_with_a_grace_period() {
        let options = [vec![1 << 3, 0xd2, 0x01], message(2, &message(1, b"u"))].concat();
        let raw = [message(1, &message(1, b"p")), message(2, &options)].concat();
        let eviction = decode(&body("Eviction", &raw)).expect("decoded");
        assert_eq!(
            eviction,
            json!({
                "metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 210, "preconditions": {"uid": "u"}},
                "kind": "Eviction", "apiVersion": "v1",
            })
        );
    }

    #[test]
    fn a_review_of_rights() {
        let attributes = [message(2, b"delete"), message(5, b"pods"), message(6, b"")].concat();
        let review = decode(&body("SelfSubjectAccessReview", &message(2, &message(1, &attributes)))).expect("decoded");
        assert_eq!(
            review["spec"]["resourceAttributes"],
            json!({"verb": "delete", "resource": "pods"})
        );
        assert_eq!(decode(&body("Pod", b"")).expect_err("JSON only").code, 415);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = decode(&[MAGIC, &bytes].concat());
            let _ = decode(&body("Eviction", &bytes[..bytes.len().min(60)]));
        }
    }
}

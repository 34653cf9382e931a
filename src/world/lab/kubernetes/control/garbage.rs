//! Removes what belonged to an owner that is gone, and finishes deletions that wait for nothing else.

use std::collections::HashSet;
use std::time::Duration;

use super::super::object::{is_terminating, list, name, namespace, text, uid};
use super::super::pod_deletion::delete_pod;
use super::super::resource::{Kind, RESOURCES};
use super::super::store::Store;

pub(super) fn look(store: &Store) -> Option<Duration> {
    let objects: Vec<_> = RESOURCES
        .iter()
        .flat_map(|r| store.list(r.kind, None).1.into_iter().map(|o| (r.kind, o)))
        .collect();
    let alive: HashSet<&str> = objects.iter().map(|(_, o)| uid(o)).collect();
    for (kind, object) in &objects {
        let owners = list(object, "/metadata/ownerReferences");
        if owners.is_empty() || owners.iter().any(|o| alive.contains(text(o, "/uid"))) || is_terminating(object) {
            continue;
        }
        if *kind == Kind::Pod {
            let _ = delete_pod(store, object, None);
        } else {
            let _ = store.remove(*kind, namespace(object), name(object));
        }
    }
    None
}

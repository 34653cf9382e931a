//! The objects, their history, and who is told of changes: what etcd and the watch cache are to a real API server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::object::{name, namespace, new_uid, now, suffix};
use super::resource::Kind;
use super::status::Status;

/// How many changes are kept for watches that resume; older ones are answered with 410.
const HISTORY: usize = 4096;
/// The first version; a real one has counted for a while before anybody looks, too.
const FIRST_REVISION: u64 = 300;

/// An object as it was at one version; shared by everybody who reads it.
pub(crate) type Object = Arc<Value>;

/// What happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    /// The version that the change made.
    pub(crate) revision: u64,
    /// Of which kind.
    pub(crate) kind: Kind,
    /// The object after it; a deleted one as it was, with the version of its deletion.
    pub(crate) object: Object,
    /// The object before it; none when it was created.
    pub(crate) before: Option<Object>,
    /// Whether the object is gone.
    pub(crate) deleted: bool,
}

type Key = (Kind, String, String);

struct Content {
    revision: u64,
    objects: BTreeMap<Key, Object>,
    history: VecDeque<Change>,
    /// Changes up to this version are forgotten.
    compacted: u64,
}

/// The objects of a lab.
pub(crate) struct Store {
    content: Mutex<Content>,
    latest: watch::Sender<u64>,
}

impl Store {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self {
            content: Mutex::new(Content {
                revision: FIRST_REVISION,
                objects: BTreeMap::new(),
                history: VecDeque::new(),
                compacted: FIRST_REVISION,
            }),
            latest: watch::Sender::new(FIRST_REVISION),
        }
    }

    /// A panic elsewhere leaves the content whole: every change is made in one step at the end.
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of every new version.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// The latest version, and all objects of a kind in a namespace (all namespaces if none is named).
    pub(crate) fn list(&self, kind: Kind, within: Option<&str>) -> (u64, Vec<Object>) {
        let content = self.content();
        let objects = content
            .objects
            .range((kind, String::new(), String::new())..)
            .take_while(|((k, _, _), _)| *k == kind)
            .filter(|((_, ns, _), _)| within.is_none_or(|w| w == ns))
            .map(|(_, o)| Arc::clone(o))
            .collect();
        (content.revision, objects)
    }

    /// One object.
    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Object> {
        self.content()
            .objects
            .get(&(kind, namespace.to_owned(), name.to_owned()))
            .cloned()
    }

    /// One object, or 404.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn need(&self, kind: Kind, namespace: &str, name: &str) -> Result<Object, Status> {
        self.get(kind, namespace, name)
            .ok_or_else(|| Status::not_found(kind.resource(), name))
    }

    /// Adds an object: name generated if asked for, uid, version and creation time given.
    ///
    /// # Errors
    /// 409 if there is one of this name, 422 without a name.
    pub(crate) fn create(&self, kind: Kind, mut object: Value) -> Result<Object, Status> {
        let resource = kind.resource();
        if name(&object).is_empty() {
            let prefix = object["metadata"]["generateName"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if prefix.is_empty() {
                return Err(Status::invalid(
                    resource,
                    "",
                    "metadata.name",
                    "Required value: name or generateName is required",
                ));
            }
            object["metadata"]["name"] = format!("{prefix}{}", suffix(5)).into();
        }
        let key = (kind, namespace(&object).to_owned(), name(&object).to_owned());
        let mut content = self.content();
        if content.objects.contains_key(&key) {
            return Err(Status::already_exists(resource, &key.2));
        }
        // What it is comes first, as a real server writes it.
        let mut ordered = json!({"kind": resource.name, "apiVersion": resource.api_version()});
        for (key, value) in object
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(k, _)| *k != "kind" && *k != "apiVersion")
        {
            ordered[key] = value.clone();
        }
        object = ordered;
        let metadata = &mut object["metadata"];
        metadata["uid"] = new_uid().into();
        metadata["creationTimestamp"] = now().into();
        if matches!(
            kind,
            Kind::Pod
                | Kind::Deployment
                | Kind::ReplicaSet
                | Kind::DaemonSet
                | Kind::StatefulSet
                | Kind::PodDisruptionBudget
                | Kind::EndpointSlice
        ) {
            metadata["generation"] = json!(1);
        }
        Ok(self.put(&mut content, key, object, None))
    }

    /// Changes an object in one step; an unchanged one keeps its version and nobody is told. A change of the spec raises
    /// `metadata.generation` where the kind has one.
    ///
    /// # Errors
    /// 404, what `change` says, or 409 when `change` sets another `resourceVersion` than the object's.
    pub(crate) fn update(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value) -> Result<(), Status>,
    ) -> Result<Object, Status> {
        let key = (kind, namespace.to_owned(), name.to_owned());
        let mut content = self.content();
        let before = content
            .objects
            .get(&key)
            .cloned()
            .ok_or_else(|| Status::not_found(kind.resource(), name))?;
        let mut object = Value::clone(&before);
        change(&mut object)?;
        let version = &object["metadata"]["resourceVersion"];
        if !version.is_null() && *version != before["metadata"]["resourceVersion"] {
            return Err(Status::conflict(kind.resource(), name));
        }
        object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if object == *before {
            return Ok(before);
        }
        let generation = before["metadata"]["generation"].as_i64();
        if let Some(generation) = generation
            && kind != Kind::Pod
            && (object["spec"] != before["spec"] || object["endpoints"] != before["endpoints"])
        {
            object["metadata"]["generation"] = (generation + 1).into();
        }
        Ok(self.put(&mut content, key, object, Some(before)))
    }

    /// Removes an object at once; the one returned has the version of its deletion.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn remove(&self, kind: Kind, namespace: &str, name: &str) -> Result<Object, Status> {
        let key = (kind, namespace.to_owned(), name.to_owned());
        let mut content = self.content();
        let before = content
            .objects
            .remove(&key)
            .ok_or_else(|| Status::not_found(kind.resource(), name))?;
        content.revision += 1;
        let mut object = Value::clone(&before);
        object["metadata"]["resourceVersion"] = content.revision.to_string().into();
        let object = Arc::new(object);
        let revision = content.revision;
        self.remember(
            &mut content,
            Change {
                revision,
                kind,
                object: Arc::clone(&object),
                before: Some(before),
                deleted: true,
            },
        );
        Ok(object)
    }

    fn put(&self, content: &mut Content, key: Key, mut object: Value, before: Option<Object>) -> Object {
        content.revision += 1;
        let revision = content.revision;
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let object = Arc::new(object);
        content.objects.insert(key.clone(), Arc::clone(&object));
        self.remember(
            content,
            Change {
                revision,
                kind: key.0,
                object: Arc::clone(&object),
                before,
                deleted: false,
            },
        );
        object
    }

    fn remember(&self, content: &mut Content, change: Change) {
        let revision = change.revision;
        content.history.push_back(change);
        if content.history.len() > HISTORY
            && let Some(forgotten) = content.history.pop_front()
        {
            content.compacted = forgotten.revision;
        }
        self.latest.send_replace(revision);
    }

    /// The changes of a kind after a version, and the version up to which they go.
    ///
    /// # Errors
    /// 410 with the words of a real server when they are no longer kept.
    pub(crate) fn changes_since(&self, kind: Kind, revision: u64) -> Result<(u64, Vec<Change>), Status> {
        let content = self.content();
        if revision < content.compacted {
            return Err(Status::expired(format!(
                "too old resource version: {revision} ({})",
                content.compacted + 1
            )));
        }
        let changes = content
            .history
            .iter()
            .filter(|c| c.revision > revision && c.kind == kind)
            .cloned()
            .collect();
        Ok((content.revision, changes))
    }

    /// Forgets the history, as a compaction does: watches that resume from before get 410.
    pub(crate) fn compact(&self) {
        let mut content = self.content();
        content.history.clear();
        content.compacted = content.revision;
    }

    /// The latest version.
    #[cfg(test)]
    pub(crate) fn revision(&self) -> u64 {
        self.content().revision
    }

    /// The oldest version from which changes are still known.
    pub(crate) fn oldest(&self) -> u64 {
        self.content().compacted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"x": 1}})
    }

    #[test]
    fn each_change_is_a_version_and_a_message() {
        let store = Store::new();
        let start = store.revision();
        store.create(Kind::Pod, pod("a")).expect("created");
        store
            .update(Kind::Pod, "n", "a", |p| {
                p["spec"]["x"] = 2.into();
                Ok(())
            })
            .expect("updated");
        store.update(Kind::Pod, "n", "a", |_| Ok(())).expect("nothing changed");
        store.remove(Kind::Pod, "n", "a").expect("removed");
        let (latest, changes) = store.changes_since(Kind::Pod, start).expect("kept");
        let seen: Vec<_> = changes
            .iter()
            .map(|c| (c.revision - start, c.before.is_some(), c.deleted))
            .collect();
        assert_eq!(seen, [(1, false, false), (2, true, false), (3, true, true)]);
        assert_eq!(latest, start + 3);
        assert_eq!(store.changes_since(Kind::Node, start).expect("kept").1, []);
    }

    #[test]
    fn a_stale_version_is_a_conflict() {
        let store = Store::new();
        store.create(Kind::Pod, pod("a")).expect("created");
        let error = store
            .update(Kind::Pod, "n", "a", |p| {
                p["metadata"]["resourceVersion"] = "1".into();
                Ok(())
            })
            .expect_err("stale");
        assert_eq!((error.code, error.reason), (409, "Conflict"));
    }

    #[test]
    fn only_a_new_spec_is_a_new_generation() {
        let store = Store::new();
        store.create(Kind::Deployment, pod("d")).expect("created");
        let generation = |o: &Object| o["metadata"]["generation"].as_i64();
        let o = store
            .update(Kind::Deployment, "n", "d", |d| {
                d["status"] = json!({"replicas": 1});
                Ok(())
            })
            .expect("status");
        assert_eq!(generation(&o), Some(1));
        let o = store
            .update(Kind::Deployment, "n", "d", |d| {
                d["spec"]["x"] = 3.into();
                Ok(())
            })
            .expect("spec");
        assert_eq!(generation(&o), Some(2));
    }

    #[test]
    fn what_was_forgotten_is_expired() {
        let store = Store::new();
        let start = store.revision();
        store.create(Kind::Pod, pod("a")).expect("created");
        store.compact();
        let error = store.changes_since(Kind::Pod, start).expect_err("forgotten");
        assert_eq!(
            (error.code, error.message.as_str()),
            (410, "too old resource version: 300 (302)")
        );
        assert_eq!(store.changes_since(Kind::Pod, store.revision()).expect("kept").1, []);
    }

    #[test]
    fn names_are_generated_when_asked_for() {
        let store = Store::new();
        let o = store
            .create(Kind::Pod, json!({"metadata": {"generateName": "p-", "namespace": "n"}}))
            .expect("created");
        assert!(name(&o).starts_with("p-") && name(&o).len() == 7);
        assert_eq!(
            store
                .create(Kind::Pod, json!({"metadata": {}}))
                .expect_err("no name")
                .code,
            422
        );
    }
}

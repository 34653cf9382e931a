//! Watches: the changes of a kind as a stream of lines, from a version on, with bookmarks and 410.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::super::resource::Resource;
use super::super::selector::Selector;
use super::super::status::Status;
use super::super::store::{Change, Object, Store};
use super::table;

/// How often a quiet watch is told how far it has got.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// The longest watch when the client names no limit.
const LONGEST: Duration = Duration::from_secs(2400);

/// What a watch was asked for.
pub(super) struct Watch {
    pub(super) resource: &'static Resource,
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
    /// `resourceVersion`; none, empty and `0` mean "what is there, then what comes".
    pub(super) from: Option<u64>,
    /// `sendInitialEvents`: what is there, then a bookmark that says so.
    pub(super) initial_events: bool,
    pub(super) bookmarks: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) as_table: bool,
}

impl Watch {
    fn concerns(&self, object: &Value) -> bool {
        let within = self
            .namespace
            .as_deref()
            .is_none_or(|n| object["metadata"]["namespace"] == n);
        within && self.selector.matches(object)
    }

    /// How a change looks to this watch: an object that begins or ceases to match is added or deleted.
    fn event(&self, change: &Change) -> Option<(&'static str, Object)> {
        let now = !change.deleted && self.concerns(&change.object);
        let before = change.before.as_ref().is_some_and(|o| self.concerns(o));
        match (before, now) {
            (false, true) => Some(("ADDED", Arc::clone(&change.object))),
            (true, true) => Some(("MODIFIED", Arc::clone(&change.object))),
            (true, false) => Some(("DELETED", Arc::clone(&change.object))),
            (false, false) => None,
        }
    }

    fn line(&self, kind: &str, object: &Value, first: &mut bool) -> Bytes {
        let object = if self.as_table {
            let revision = object["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|r| r.parse().ok());
            table::table(self.resource.kind, &[object], revision, std::mem::take(first))
        } else {
            object.clone()
        };
        line(kind, &object)
    }

    fn bookmark(&self, revision: u64, initial: bool) -> Bytes {
        let mut object = json!({
            "kind": self.resource.name, "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null},
        });
        if initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if self.as_table {
            object = json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision.to_string()},
                "columnDefinitions": null, "rows": [],
            });
        }
        line("BOOKMARK", &object)
    }

    /// The lines of the watch until its time is over, until its version is no longer kept, or until `stop`.
    pub(super) fn stream(
        self,
        store: Arc<Store>,
        mut stop: tokio::sync::watch::Receiver<bool>,
    ) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
        let (sender, receiver) = tokio::sync::mpsc::channel(64);
        tokio::spawn(async move {
            tokio::select! {
                () = self.send(&store, &sender) => {}
                _ = stop.wait_for(|s| *s) => {}
                () = sender.closed() => {}
            }
        });
        futures::StreamExt::map(tokio_stream::wrappers::ReceiverStream::new(receiver), Ok)
    }

    async fn send(&self, store: &Store, to: &tokio::sync::mpsc::Sender<Bytes>) {
        let mut latest = store.subscribe();
        let mut first = true;
        let end = Instant::now() + self.timeout.unwrap_or(LONGEST);
        let mut seen = match self.from {
            Some(from) if !self.initial_events => from,
            _ => {
                let (revision, objects) = store.list(self.resource.kind, self.namespace.as_deref());
                for object in objects.iter().filter(|o| self.concerns(o)) {
                    if to.send(self.line("ADDED", object, &mut first)).await.is_err() {
                        return;
                    }
                }
                if self.initial_events && self.bookmarks && to.send(self.bookmark(revision, true)).await.is_err() {
                    return;
                }
                revision
            }
        };
        let mut next_bookmark = Instant::now() + BOOKMARKS;
        loop {
            latest.mark_unchanged();
            // A version from the future: nothing is said until it has come.
            let changes = match store.changes_since(self.resource.kind, seen) {
                Ok((revision, changes)) => {
                    let news = changes.into_iter().filter(|c| c.revision > seen).collect::<Vec<_>>();
                    seen = seen.max(revision);
                    news
                }
                Err(expired) => {
                    let _ = to.send(line("ERROR", &expired.to_json())).await;
                    return;
                }
            };
            for (kind, object) in changes.iter().filter_map(|c| self.event(c)) {
                if to.send(self.line(kind, &object, &mut first)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = latest.changed() => if changed.is_err() { return },
                () = sleep_until(next_bookmark), if self.bookmarks => {
                    next_bookmark = Instant::now() + BOOKMARKS;
                    if to.send(self.bookmark(seen, false)).await.is_err() {
                        return;
                    }
                }
                () = sleep_until(end) => {
                    if self.bookmarks {
                        let _ = to.send(self.bookmark(seen, false)).await;
                    }
                    return;
                }
            }
        }
    }
}

/// The version in a query.
///
/// # Errors
/// 400 for what is no number.
pub(super) fn version(text: Option<&str>) -> Result<Option<u64>, Status> {
    match text {
        None | Some("" | "0") => Ok(None),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|_| Status::bad_request(format!("invalid resource version \"{text}\""))),
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(json!({"type": kind, "object": object}).to_string() + "\n")
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::super::super::resource::Kind;
    use super::*;

    fn watch(from: Option<u64>, labels: &str) -> Watch {
        Watch {
            resource: Kind::Pod.resource(),
            namespace: Some("n".into()),
            selector: Selector::parse(labels, "").expect("selector"),
            from,
            initial_events: false,
            bookmarks: true,
            timeout: Some(Duration::from_secs(1)),
            as_table: false,
        }
    }

    fn pod(name: &str, label: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "n", "labels": {"app": label}}})
    }

    async fn lines(watch: Watch, store: &Arc<Store>) -> Vec<(String, String)> {
        let stop = tokio::sync::watch::Sender::new(false);
        let stream = watch.stream(Arc::clone(store), stop.subscribe());
        let all: Vec<Bytes> = stream.map(|l| l.expect("infallible")).collect().await;
        drop(stop);
        all.iter()
            .map(|l| serde_json::from_slice::<Value>(l).expect("JSON"))
            .map(|e| {
                let what = [&e["object"]["metadata"]["name"], &e["object"]["message"]];
                let what = what.into_iter().find_map(Value::as_str).unwrap_or_default();
                (e["type"].as_str().unwrap_or_default().to_owned(), what.to_owned())
            })
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn from_a_version_on_only_what_came_after() {
        let store = Arc::new(Store::new());
        store.create(Kind::Pod, pod("a", "x")).expect("created");
        let from = store.revision();
        store.create(Kind::Pod, pod("b", "x")).expect("created");
        store.remove(Kind::Pod, "n", "a").expect("removed");
        let seen = lines(watch(Some(from), ""), &store).await;
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(seen, [pair("ADDED", "b"), pair("DELETED", "a"), pair("BOOKMARK", "")]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_no_longer_matches_is_deleted_for_the_watch() {
        let store = Arc::new(Store::new());
        store.create(Kind::Pod, pod("a", "x")).expect("created");
        let from = store.revision();
        let relabel = |label: &'static str| {
            move |p: &mut Value| {
                p["metadata"]["labels"]["app"] = label.into();
                Ok(())
            }
        };
        store.update(Kind::Pod, "n", "a", relabel("y")).expect("relabelled");
        store.update(Kind::Pod, "n", "a", relabel("x")).expect("relabelled");
        let seen = lines(watch(Some(from), "app=x"), &store).await;
        let kinds: Vec<_> = seen.iter().map(|(k, _)| k.as_str()).collect();
        assert_eq!(kinds, ["DELETED", "ADDED", "BOOKMARK"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_is_no_longer_kept_is_one_error_and_the_end() {
        let store = Arc::new(Store::new());
        store.create(Kind::Pod, pod("a", "x")).expect("created");
        store.compact();
        let seen = lines(watch(Some(5), ""), &store).await;
        assert_eq!(
            seen,
            [("ERROR".to_owned(), "too old resource version: 5 (302)".to_owned())]
        );
    }
}

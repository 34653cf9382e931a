//! `Event` objects, counted and limited as the real recorder does: an event that did not come proves nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use chrono::Utc;
use serde_json::{Value, json};

use super::object::{micro_stamp, name, namespace, now, uid};
use super::resource::Kind;
use super::store::Store;

/// Events about one object before the recorder falls silent, and the time until it may speak once more.
const BURST: f64 = 25.0;
const REFILL_SECONDS: f64 = 300.0;

/// Who reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The kubelet of a node.
    Kubelet(String),
    /// A controller by its name.
    Controller(&'static str),
    /// The scheduler, which uses the newer form of events.
    Scheduler,
}

/// Writes events.
pub(crate) struct Recorder {
    store: Arc<Store>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// By object, reason, message and container: the event's name, to count it up.
    names: HashMap<(String, &'static str, String, String), String>,
    /// By source and object: how many it may still write, and when that was counted.
    budget: HashMap<(String, String), (f64, Instant)>,
}

impl Recorder {
    /// One that writes into a store.
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            seen: Mutex::default(),
        }
    }

    /// Says something ordinary about an object.
    pub(crate) fn normal(&self, about: &Value, source: &Source, reason: &'static str, message: impl Into<String>) {
        self.write(about, "", source, "Normal", reason, message.into());
    }

    /// Says that something is wrong with an object.
    pub(crate) fn warning(&self, about: &Value, source: &Source, reason: &'static str, message: impl Into<String>) {
        self.write(about, "", source, "Warning", reason, message.into());
    }

    /// Says something about a container of a pod.
    pub(crate) fn container(
        &self,
        pod: &Value,
        container: &str,
        source: &Source,
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.write(pod, container, source, kind, reason, message.into());
    }

    fn write(
        &self,
        about: &Value,
        container: &str,
        source: &Source,
        kind: &str,
        reason: &'static str,
        message: String,
    ) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let who = match source {
            Source::Kubelet(node) => node.clone(),
            Source::Controller(name) => (*name).to_owned(),
            Source::Scheduler => "scheduler".to_owned(),
        };
        let (left, since) = seen
            .budget
            .entry((who, uid(about).to_owned()))
            .or_insert_with(|| (BURST, Instant::now()));
        *left = (*left + since.elapsed().as_secs_f64() / REFILL_SECONDS).min(BURST);
        *since = Instant::now();
        if *left < 1.0 {
            return;
        }
        *left -= 1.0;
        let within = if namespace(about).is_empty() {
            "default"
        } else {
            namespace(about)
        };
        let key = (uid(about).to_owned(), reason, message.clone(), container.to_owned());
        if let Some(event) = seen.names.get(&key) {
            let counted = self.store.update(Kind::Event, within, event, |e| {
                e["count"] = (e["count"].as_i64().unwrap_or(0) + 1).into();
                e["lastTimestamp"] = now().into();
                Ok(())
            });
            if counted.is_ok() {
                return;
            }
        }
        let stamp = Utc::now();
        let event_name = format!(
            "{}.{:016x}",
            name(about),
            stamp.timestamp_nanos_opt().unwrap_or_default()
        );
        let mut involved = json!({
            "kind": about["kind"], "namespace": namespace(about), "name": name(about), "uid": uid(about),
            "apiVersion": about["apiVersion"], "resourceVersion": about["metadata"]["resourceVersion"],
        });
        if !container.is_empty() {
            involved["fieldPath"] = format!("spec.containers{{{container}}}").into();
        }
        let (from, component, instance) = match source {
            Source::Kubelet(node) => (json!({"component": "kubelet", "host": node}), "kubelet", node.clone()),
            Source::Controller(name) => (json!({"component": name}), *name, String::new()),
            Source::Scheduler => (json!({}), "default-scheduler", "default-scheduler-lab".to_owned()),
        };
        let mut event = json!({
            "metadata": {"name": event_name, "namespace": within},
            "involvedObject": involved, "reason": reason, "message": message, "source": from,
            "firstTimestamp": now(), "lastTimestamp": now(), "count": 1, "type": kind, "eventTime": null,
            "reportingComponent": component, "reportingInstance": instance,
        });
        if *source == Source::Scheduler {
            event["firstTimestamp"] = Value::Null;
            event["lastTimestamp"] = Value::Null;
            event["eventTime"] = micro_stamp(stamp).into();
            event["action"] = if reason == "Scheduled" { "Binding" } else { "Scheduling" }.into();
            if let Some(map) = event.as_object_mut() {
                map.remove("count");
            }
        }
        if self.store.create(Kind::Event, event).is_ok() {
            seen.names.insert(key, event_name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_is_counted_until_the_recorder_falls_silent() {
        let store = Arc::new(Store::new());
        let pod = store
            .create(Kind::Pod, json!({"metadata": {"name": "p", "namespace": "n"}}))
            .expect("pod");
        let recorder = Recorder::new(Arc::clone(&store));
        for _ in 0..40 {
            recorder.container(&pod, "hc", &Source::Kubelet("w".into()), "Warning", "Unhealthy", "no");
        }
        let (_, events) = store.list(Kind::Event, Some("n"));
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["count"], 25);
        assert_eq!(events[0]["involvedObject"]["fieldPath"], "spec.containers{hc}");
    }
}

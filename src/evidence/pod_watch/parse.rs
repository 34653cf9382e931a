//! One line of a watch: `{"arrival": ..., "type": ..., "object": {...}}`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{ContainerState, DeploymentState, EndpointState, KubernetesEvent, PodState, WatchChange};
use crate::evidence::reading::excerpt;
use crate::evidence::stamp;
use crate::time::{Duration, Instant};

/// One line, read by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedEvent {
    /// When it arrived.
    pub arrival: Instant,
    /// The `type` as written: `ADDED`, `MODIFIED`, `DELETED`, `LISTED`, `CONTACT`, `BOOKMARK`, `ERROR`, `GAP`.
    pub kind: String,
    /// What it says; `None` for contact without news, and for an object of no interest.
    pub change: Option<WatchChange>,
    /// `creationTimestamp` of the object.
    pub created: Option<Instant>,
}

/// Reads one line of a watch file.
///
/// The error says what is wrong with the line.
pub fn parse_event(line: &[u8]) -> Result<ParsedEvent, String> {
    let raw: Raw<'_> = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    let stamp = raw.arrival.or(raw.seen).ok_or("neither `arrival` nor `seen`")?;
    let arrival = instant(&stamp).ok_or_else(|| format!("`{stamp}` is no stamp"))?;
    let kind = raw.kind.unwrap_or_default();
    let mut created = None;
    let change = match kind.as_ref() {
        "GAP" => Some(WatchChange::Gap(
            raw.reason.map_or_else(String::new, |r| excerpt(r.as_bytes(), 300)),
        )),
        "ERROR" => Some(WatchChange::Gap(match &raw.object {
            Some(o) => format!(
                "{} {}: {}",
                o.code.unwrap_or(0),
                o.reason.as_deref().unwrap_or("error"),
                excerpt(o.message.as_deref().unwrap_or_default().as_bytes(), 300)
            ),
            None => "error".to_owned(),
        })),
        "CONTACT" | "BOOKMARK" => None,
        _ => raw.object.and_then(|o| {
            created = o.metadata.created.as_deref().and_then(instant);
            object(o, kind == "DELETED")
        }),
    };
    Ok(ParsedEvent {
        arrival,
        kind: kind.into_owned(),
        change,
        created,
    })
}

fn instant(text: &str) -> Option<Instant> {
    stamp::iso_whole(text.as_bytes()).map(|s| s.at)
}

fn object(o: Object<'_>, deleted: bool) -> Option<WatchChange> {
    match o.kind.as_deref() {
        Some("Pod") => {
            let pod = pod(o);
            Some(if deleted {
                WatchChange::PodDeleted(pod)
            } else {
                WatchChange::Pod(pod)
            })
        }
        Some("EndpointSlice") => Some(WatchChange::Endpoints(if deleted {
            Vec::new()
        } else {
            o.endpoints.into_iter().flatten().map(endpoint).collect()
        })),
        Some("Event") if !deleted => Some(WatchChange::Event(event(o))),
        Some("Deployment") if !deleted => Some(WatchChange::Deployment(deployment(o))),
        Some(_) | None => None,
    }
}

fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

fn pod(o: Object<'_>) -> PodState {
    let status = o.status.and_then(|s| s.0).map_or_else(Status::default, |s| *s);
    let ready = status
        .conditions
        .iter()
        .flatten()
        .find(|c| c.kind.as_deref() == Some("Ready"))
        .and_then(|c| match c.status.as_deref() {
            Some("True") => Some(true),
            Some("False") => Some(false),
            Some(_) | None => None,
        });
    let template_hash = o
        .metadata
        .labels
        .as_ref()
        .and_then(|l| l.get("pod-template-hash"))
        .map(|v| v.to_string());
    PodState {
        name: owned(o.metadata.name).unwrap_or_default(),
        uid: owned(o.metadata.uid).unwrap_or_default(),
        node: o.spec.and_then(|s| owned(s.node_name)),
        ip: owned(status.pod_ip),
        phase: owned(status.phase),
        ready,
        deletion: o.metadata.deletion.as_deref().and_then(instant),
        grace: o.metadata.grace.map(Duration::from_secs),
        containers: status
            .init_container_statuses
            .into_iter()
            .flatten()
            .chain(status.container_statuses.into_iter().flatten())
            .map(container)
            .collect(),
        template_hash,
        owner: o
            .metadata
            .owners
            .into_iter()
            .flatten()
            .next()
            .and_then(|r| owned(r.name)),
    }
}

fn container(c: ContainerStatus<'_>) -> ContainerState {
    let state = c.state.unwrap_or_default();
    ContainerState {
        name: owned(c.name).unwrap_or_default(),
        running: state.running.is_some(),
        exit_code: state.terminated.as_ref().and_then(|t| t.exit_code),
        finished: state.terminated.and_then(|t| t.finished).as_deref().and_then(instant),
        restarts: c.restarts.unwrap_or(0),
        ready: c.ready.unwrap_or(false),
    }
}

fn endpoint(e: Endpoint<'_>) -> EndpointState {
    let target = e.target.unwrap_or_default();
    let conditions = e.conditions.unwrap_or_default();
    EndpointState {
        pod_uid: owned(target.uid),
        pod: owned(target.name),
        ready: conditions.ready,
        serving: conditions.serving,
        terminating: conditions.terminating,
    }
}

fn event(o: Object<'_>) -> KubernetesEvent {
    let about = o.involved.or(o.regarding).unwrap_or_default();
    let series = o.series.unwrap_or_default();
    KubernetesEvent {
        reason: Arc::from(o.reason.unwrap_or_default()),
        message: Arc::from(excerpt(o.message.or(o.note).unwrap_or_default().as_bytes(), 500)),
        about: Arc::from(about.name.unwrap_or_default()),
        about_uid: about.uid.map(Arc::from),
        count: series.count.or(o.count).unwrap_or(1),
        at: [series.last, o.event_time, o.last_timestamp, o.first_timestamp]
            .into_iter()
            .flatten()
            .find_map(|t| instant(&t)),
    }
}

fn deployment(o: Object<'_>) -> DeploymentState {
    let status = o.status.and_then(|s| s.0).map_or_else(Status::default, |s| *s);
    DeploymentState {
        name: owned(o.metadata.name).unwrap_or_default(),
        labels: o
            .metadata
            .labels
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
            .collect(),
        replicas: o.spec.and_then(|s| s.replicas),
        updated: status.updated,
        ready: status.ready,
        available: status.available,
        observed: match (status.observed, o.metadata.generation) {
            (Some(seen), Some(now)) => seen >= now,
            _ => false,
        },
    }
}

/// A JSON string, borrowed where it has no escapes.
type Text<'a> = Cow<'a, str>;

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    arrival: Option<Text<'a>>,
    #[serde(borrow)]
    seen: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    object: Option<Object<'a>>,
}

/// The fields that are used of the kinds that are watched; all optional, since lists leave `kind` out and
/// writers differ.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
    #[serde(borrow)]
    status: Option<StatusOrText<'a>>,
    #[serde(borrow)]
    endpoints: Option<Vec<Endpoint<'a>>>,
    code: Option<i64>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    note: Option<Text<'a>>,
    #[serde(borrow, rename = "involvedObject")]
    involved: Option<Reference<'a>>,
    #[serde(borrow)]
    regarding: Option<Reference<'a>>,
    count: Option<u32>,
    #[serde(borrow)]
    series: Option<Series<'a>>,
    #[serde(borrow)]
    event_time: Option<Text<'a>>,
    #[serde(borrow)]
    first_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    last_timestamp: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    labels: Option<BTreeMap<Text<'a>, Text<'a>>>,
    generation: Option<i64>,
    #[serde(borrow, rename = "creationTimestamp")]
    created: Option<Text<'a>>,
    #[serde(borrow, rename = "deletionTimestamp")]
    deletion: Option<Text<'a>>,
    #[serde(rename = "deletionGracePeriodSeconds")]
    grace: Option<i64>,
    #[serde(borrow, rename = "ownerReferences")]
    owners: Option<Vec<Reference<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    node_name: Option<Text<'a>>,
    replicas: Option<u32>,
}

/// `status` is an object, but the text `Failure` in a Status.
#[derive(Default)]
struct StatusOrText<'a>(Option<Box<Status<'a>>>);

impl<'de: 'a, 'a> Deserialize<'de> for StatusOrText<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Either<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> serde::de::Visitor<'de> for Either<'a> {
            type Value = StatusOrText<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a status")
            }
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(StatusOrText(None))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(StatusOrText(None))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Status::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(|s| StatusOrText(Some(Box::new(s))))
            }
        }
        d.deserialize_any(Either(std::marker::PhantomData))
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    phase: Option<Text<'a>>,
    #[serde(borrow, rename = "podIP")]
    pod_ip: Option<Text<'a>>,
    #[serde(borrow)]
    conditions: Option<Vec<Condition<'a>>>,
    #[serde(borrow)]
    container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(borrow)]
    init_container_statuses: Option<Vec<ContainerStatus<'a>>>,
    #[serde(rename = "observedGeneration")]
    observed: Option<i64>,
    #[serde(rename = "updatedReplicas")]
    updated: Option<u32>,
    #[serde(rename = "readyReplicas")]
    ready: Option<u32>,
    #[serde(rename = "availableReplicas")]
    available: Option<u32>,
}

#[derive(Deserialize)]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ContainerStatus<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    ready: Option<bool>,
    #[serde(rename = "restartCount")]
    restarts: Option<u32>,
    #[serde(borrow)]
    state: Option<State<'a>>,
}

#[derive(Deserialize, Default)]
struct State<'a> {
    running: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    terminated: Option<Terminated<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated<'a> {
    exit_code: Option<i32>,
    #[serde(borrow, rename = "finishedAt")]
    finished: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Endpoint<'a> {
    conditions: Option<EndpointConditions>,
    #[serde(borrow, rename = "targetRef")]
    target: Option<Reference<'a>>,
}

#[derive(Deserialize, Default)]
struct EndpointConditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Deserialize, Default)]
struct Reference<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
struct Series<'a> {
    count: Option<u32>,
    #[serde(borrow, rename = "lastObservedTime")]
    last: Option<Text<'a>>,
}

use std::collections::BTreeMap;

use super::{Lane, Level, Mark, Span, Tone, capped};
use crate::report::{Document, TimelineRecord};
use crate::time::Bracket;
use crate::verdict::DownInterval;

/// Which lanes an event can belong to, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Steps,
    Pod,
    Fsm,
    Health,
    InFlight,
    Envoy,
    LoadBalancer,
    Packets,
    Other,
}

impl Group {
    /// The lane's name, and the field that tells its lanes apart.
    const fn naming(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Steps => ("steps", &[]),
            Self::Pod => ("pod", &["server", "pod"]),
            Self::Fsm => ("FSM", &["server", "pod", "node"]),
            Self::Health => ("health page", &["server", "pod", "node"]),
            Self::InFlight => ("in flight", &["server", "pod", "node"]),
            Self::Envoy => ("Envoy", &["server", "pod", "node"]),
            Self::LoadBalancer => ("server", &["svname", "server"]),
            Self::Packets => ("packets", &["host"]),
            Self::Other => ("other events", &[]),
        }
    }

    /// `None` for those that are drawn as requests and loads. An event of a later version is another event.
    fn of(event: &str) -> Option<Self> {
        Some(match event {
            "request_started" | "request_ended" | "load_started" | "load_ended" => return None,
            "pod_delete" | "step" | "mark" => Self::Steps,
            "hc_state" => Self::Fsm,
            "health_fail" => Self::Health,
            "envoy_active_count" => Self::InFlight,
            "envoy_drain_listeners" | "active_zero" | "first_active_zero" => Self::Envoy,
            "haproxy_backend_down" | "haproxy_backend_up" | "haproxy_state" | "haproxy_reload" => Self::LoadBalancer,
            "tcp_rst" | "request_cut" => Self::Packets,
            "sigterm" | "container_exit" | "pod_terminating" | "pod_gone" | "pod_ready" | "not_ready"
            | "endpoint_removed" | "rollout_started" | "rollout_finished" => Self::Pod,
            _ => Self::Other,
        })
    }
}

/// Lanes of everything on the timeline but requests and loads.
pub(super) fn of(document: &Document) -> Vec<Lane> {
    let mut rows: BTreeMap<(Group, String), (Lane, Vec<Change>)> = BTreeMap::new();
    for record in &document.events {
        let Some(group) = Group::of(&record.event) else {
            continue;
        };
        if record.event == "request_cut" && of_a_request(document, record) {
            continue;
        }
        let name = record.any_text(group.naming().1).unwrap_or_default();
        let (lane, changes) = rows.entry((group, name)).or_default();
        if group == Group::InFlight {
            let value = record
                .number("downstream")
                .into_iter()
                .chain(record.number("upstream"))
                .reduce(f64::max);
            lane.levels.extend(value.map(|value| Level {
                at: record.bracket(),
                value,
            }));
        } else if let Some(change) = Change::of(record) {
            changes.push(change);
        } else if let Some(step) = step(record) {
            lane.spans.push(step);
        } else {
            lane.marks.push(mark(record));
        }
    }
    // An event that names no pod is about the only one there is.
    let keys: Vec<(Group, String)> = rows.keys().cloned().collect();
    for (group, name) in &keys {
        let only = keys.iter().filter(|(other, _)| other == group).count() == 2 && !name.is_empty();
        if only && let Some((lane, changes)) = rows.remove(&(*group, String::new())) {
            let (own, own_changes) = rows.entry((*group, name.clone())).or_default();
            own.marks.extend(lane.marks);
            own.levels.extend(lane.levels);
            own_changes.extend(changes);
            own.levels.sort_by_key(|level| level.at.lo.or(level.at.hi));
            own_changes.sort_by_key(|change| change.at.lo.or(change.at.hi));
        }
    }
    let groups: Vec<Group> = rows.keys().map(|(group, _)| *group).collect();
    let finished = rows.into_iter().map(|((group, name), (mut lane, changes))| {
        // One pod needs no name; a server and a host always have one.
        let alone = groups.iter().filter(|other| **other == group).count() == 1;
        let named = !alone || matches!(group, Group::LoadBalancer | Group::Packets);
        let word = group.naming().0;
        lane.title = if named && !name.is_empty() {
            format!("{word} {name}")
        } else {
            word.to_owned()
        };
        lane.spans.extend(lasting(&changes));
        if group == Group::LoadBalancer && lane.spans.is_empty() {
            lane.spans = down_times(document, &name);
        }
        capped(lane)
    });
    finished
        .filter(|lane| !(lane.spans.is_empty() && lane.marks.is_empty() && lane.levels.is_empty()))
        .collect()
}

/// It is drawn with its request.
fn of_a_request(document: &Document, record: &TimelineRecord) -> bool {
    let id = record.text("id");
    document
        .report
        .requests
        .iter()
        .any(|request| Some(&request.id) == id.as_ref())
}

/// A step lasts from its call to the answer: both are gtrun's own, so its ends are no brackets.
fn step(record: &TimelineRecord) -> Option<Span> {
    let (from, until) = (record.lo?, record.hi?);
    let id = record.text("id").filter(|_| record.event == "step")?;
    let verb = record.text("verb").unwrap_or_default();
    let at = |t| Bracket {
        lo: Some(t),
        hi: Some(t),
    };
    let label = format!("{id} {verb}").trim_end().to_owned();
    Some(Span {
        from: at(from),
        until: at(until),
        label,
        tone: Tone::Plain,
        note: String::new(),
    })
}

/// An event after which something is in another state: the FSM, a server on the load balancer.
struct Change {
    at: Bracket,
    /// The state before, where the record tells it.
    from: Option<String>,
    to: String,
    source: String,
}

impl Change {
    fn of(record: &TimelineRecord) -> Option<Self> {
        let to = match record.event.as_str() {
            "hc_state" => record.text("to")?,
            "haproxy_backend_down" => "DOWN".to_owned(),
            "haproxy_backend_up" => "UP".to_owned(),
            "haproxy_state" => record.any_text(&["to", "status", "state"])?,
            _ => return None,
        };
        let source = record.source.clone().unwrap_or_default();
        Some(Self {
            at: record.bracket(),
            from: record.text("from"),
            to,
            source,
        })
    }

    /// Two sources tell of the same change: a log its instant, a poll a bracket around it.
    fn same_as(&self, other: &Self) -> bool {
        let class = |state: &str| {
            if state.starts_with("DOWN") {
                "DOWN".to_owned()
            } else {
                state.to_owned()
            }
        };
        class(&self.to) == class(&other.to) && self.at.intersect(other.at).is_some()
    }
}

/// What lasts from one change to the next; the last state goes on.
fn lasting(changes: &[Change]) -> Vec<Span> {
    let mut told: Vec<(&Change, Bracket)> = Vec::new();
    for change in changes {
        match told.last_mut() {
            Some((last, at)) if last.same_as(change) => *at = at.intersect(change.at).unwrap_or(*at),
            _ => told.push((change, change.at)),
        }
    }
    let mut spans = Vec::new();
    if let Some((first, at)) = told.first()
        && let Some(from) = &first.from
    {
        spans.push(state(from, Bracket::OPEN, *at, &first.source));
    }
    for (i, (change, at)) in told.iter().enumerate() {
        let until = told.get(i + 1).map_or(Bracket::OPEN, |(_, at)| *at);
        spans.push(state(&change.to, *at, until, &change.source));
    }
    spans
}

fn state(name: &str, from: Bracket, until: Bracket, source: &str) -> Span {
    let tone = match name {
        "OPEN" | "UP" => Tone::Good,
        "DRAINING" | "NOLB" | "DRAIN" => Tone::Accent,
        _ if name.starts_with("DOWN") => Tone::Bad,
        _ if name.starts_with("UP") || name == "going_down" || name == "coming_up" => Tone::Unsure,
        _ => Tone::Plain,
    };
    Span {
        from,
        until,
        label: name.to_owned(),
        tone,
        note: source.to_owned(),
    }
}

fn mark(record: &TimelineRecord) -> Mark {
    let event = record.event.as_str();
    let tone = match event {
        "tcp_rst" | "request_cut" | "health_fail" | "container_exit" => Tone::Bad,
        "pod_ready" => Tone::Good,
        "pod_delete" | "active_zero" => Tone::Accent,
        _ => Tone::Plain,
    };
    let label = match (record.text("from"), record.text("to")) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (None, Some(to)) => to,
        _ => record
            .any_text(&["status", "state", "step", "name"])
            .unwrap_or_else(|| event.to_owned()),
    };
    let mut note = format!("{event} {}", record.details());
    if let Some(source) = &record.source {
        note = format!("{} ({source})", note.trim());
    }
    Mark {
        at: record.bracket(),
        label,
        tone,
        note: note.trim().to_owned(),
    }
}

/// DOWN intervals of the lane's server as the verdict tells them, where the timeline has none.
fn down_times(document: &Document, name: &str) -> Vec<Span> {
    let of_lane = |server: &str| server == name || server.rsplit_once('/').is_some_and(|(_, server)| server == name);
    let all = document.report.loads.iter().map(|load| &load.down_intervals);
    let own = all
        .map(|down| down.iter().filter(|d| of_lane(&d.server)).collect::<Vec<_>>())
        .find(|own| !own.is_empty());
    let span = |down: &DownInterval| {
        let note = down.killed.map(|n| format!("{n} in flight killed")).unwrap_or_default();
        Span {
            from: down.from,
            until: down.until,
            label: "DOWN".to_owned(),
            tone: Tone::Bad,
            note,
        }
    };
    own.into_iter().flatten().map(span).collect()
}

//! What is drawn, before it is known where: lanes of bracketed events and spans, and the few events that decided.

mod event_lanes;

use super::wording::{answer, fate_word};
use super::{Document, TimelineRecord};
use crate::time::{Bracket, Instant};
use crate::verdict::{Fate, RequestFinding};

/// How an item is to be felt; colours are the renderer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tone {
    Good,
    Bad,
    Unsure,
    Plain,
    Accent,
}

/// A request, a state, or something else that lasts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) from: Bracket,
    pub(super) until: Bracket,
    pub(super) label: String,
    pub(super) tone: Tone,
    /// Everything that is known, for a tooltip.
    pub(super) note: String,
}

/// Something that happened at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) at: Bracket,
    pub(super) label: String,
    pub(super) tone: Tone,
    pub(super) note: String,
}

/// A value that was polled: it became this somewhere in the bracket.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    pub(super) at: Bracket,
    pub(super) value: f64,
}

/// One row of the picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Lane {
    pub(super) title: String,
    pub(super) spans: Vec<Span>,
    pub(super) marks: Vec<Mark>,
    pub(super) levels: Vec<Level>,
    /// Marks that were left out because nobody could tell them apart.
    pub(super) left_out: usize,
}

/// An event that an assertion used, or that answers the tool's question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decisive {
    pub(super) event: String,
    pub(super) at: Bracket,
    pub(super) source: String,
}

/// From `active_zero` to `lb_down`, or the other way round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gap {
    pub(super) active_zero: Bracket,
    pub(super) lb_down: Bracket,
}

/// The whole picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    /// Seconds are counted from here.
    pub(super) origin: Instant,
    /// The first and the last known moment.
    pub(super) window: (Instant, Instant),
    pub(super) decisive: Vec<Decisive>,
    /// What the tool measures, where both ends were seen.
    pub(super) gap: Option<Gap>,
    pub(super) requests: Vec<Lane>,
    pub(super) lanes: Vec<Lane>,
}

/// More marks in a lane than this are one grey bar to the eye.
const MARKS_PER_LANE: usize = 400;

/// More servers than this are a table's matter.
const TARGETS: usize = 4;

/// More requests than this are a table's matter.
const REQUEST_LANES: usize = 12;

impl Scene {
    /// `None` when nothing has a time.
    pub(super) fn of(document: &Document) -> Option<Self> {
        let origin = document.origin()?;
        let decisive = decisive(document);
        let requests: Vec<Lane> = request_lanes(document);
        let lanes: Vec<Lane> = load_lanes(document)
            .into_iter()
            .chain(event_lanes::of(document))
            .collect();
        let mut moments: Vec<Instant> = decisive.iter().flat_map(|d| [d.at.lo, d.at.hi]).flatten().collect();
        for lane in requests.iter().chain(&lanes) {
            moments.extend(
                lane.spans
                    .iter()
                    .flat_map(|s| [s.from.lo, s.from.hi, s.until.lo, s.until.hi])
                    .flatten(),
            );
            moments.extend(lane.marks.iter().flat_map(|m| [m.at.lo, m.at.hi]).flatten());
            moments.extend(lane.levels.iter().flat_map(|l| [l.at.lo, l.at.hi]).flatten());
        }
        let window = (*moments.iter().min()?, *moments.iter().max()?);
        let at = |name: &str| decisive.iter().find(|d| d.event == name).map(|d| d.at);
        let gap = at("active_zero")
            .zip(at("lb_down"))
            .map(|(active_zero, lb_down)| Gap { active_zero, lb_down });
        Some(Self {
            origin,
            window,
            decisive,
            gap,
            requests,
            lanes,
        })
    }
}

/// The events that the assertions used, each once, in the order of time; without assertions the timeline's own.
fn decisive(document: &Document) -> Vec<Decisive> {
    let mut found: Vec<Decisive> = Vec::new();
    let mut add = |event: &str, at: Bracket, source: &str| {
        let known = found.iter().any(|d| d.event == event && d.at == at);
        if !known && at != Bracket::OPEN {
            found.push(Decisive {
                event: event.to_owned(),
                at,
                source: source.to_owned(),
            });
        }
    };
    for event in document.report.assertions.iter().flat_map(|finding| &finding.events) {
        add(&event.event, event.at, &event.source);
    }
    // The tool's own question, whatever the assertions are about.
    let used = found.clone();
    for own in own_question(document) {
        // The delete may already be there under its step's id.
        let known = used
            .iter()
            .any(|d| d.event == own.event || (own.event == "delete" && d.at == own.at));
        if !known && own.at != Bracket::OPEN {
            found.push(own);
        }
    }
    found.sort_by_key(|d| (d.at.lo.or(d.at.hi), d.at.hi));
    found
}

/// The delete, and for each server whose pod was told to stop its `active_zero` and its `lb_down` after that.
fn own_question(document: &Document) -> Vec<Decisive> {
    let named = |record: &TimelineRecord, event: String| Decisive {
        event,
        at: record.bracket(),
        source: record.source.clone().unwrap_or_default(),
    };
    let delete = document.events.iter().find(|r| r.event == "pod_delete");
    let since = delete.and_then(|r| r.bracket().lo);
    let mut found: Vec<Decisive> = delete
        .map(|record| named(record, "delete".to_owned()))
        .into_iter()
        .collect();
    let servers = &document.report.order.by_server;
    for server in servers.keys().take(TARGETS) {
        for (on_disk, name) in [("active_zero", "active_zero"), ("haproxy_backend_down", "lb_down")] {
            let of_target = |r: &&TimelineRecord| {
                let at = r.bracket();
                let early = since.zip(at.hi.or(at.lo)).is_some_and(|(since, at)| at < since);
                r.event == on_disk && !early && r.any_text(&["server", "svname"]).as_ref() == Some(server)
            };
            if let Some(record) = document.events.iter().find(of_target) {
                let event = if servers.len() > 1 {
                    format!("{name} {server}")
                } else {
                    name.to_owned()
                };
                found.push(named(record, event));
            }
        }
    }
    found
}

/// A lane for each request: one span an attempt.
fn request_lanes(document: &Document) -> Vec<Lane> {
    let mut requests: Vec<&RequestFinding> = document.report.requests.iter().collect();
    // What went wrong first, when not all can be shown.
    requests.sort_by_key(|request| match request.fate {
        Fate::Broken | Fate::Lost => 0,
        Fate::Inconclusive | Fate::Rescued => 1,
        Fate::Protected => 2,
        Fate::NotInFlight => 3,
    });
    let left_out = requests.len().saturating_sub(REQUEST_LANES);
    requests.truncate(REQUEST_LANES);
    let mut lanes: Vec<Lane> = requests
        .into_iter()
        .map(|request| request_lane(document, request))
        .collect();
    if let Some(last) = lanes.last_mut() {
        last.left_out = left_out;
    }
    lanes
}

fn request_lane(document: &Document, request: &RequestFinding) -> Lane {
    let tone = fate_tone(request.fate);
    let label = format!("{}, {}", fate_word(request.fate), answer(request));
    let attempts = request
        .attempts
        .iter()
        .filter(|a| a.started != Bracket::OPEN || a.ended != Bracket::OPEN);
    let mut spans: Vec<Span> = attempts
        .map(|attempt| {
            let known = [
                attempt.server.as_ref().map(|s| format!("on {s}")),
                attempt.termination.as_ref().map(|t| format!("termination state {t}")),
                attempt.envoy_flags.as_ref().map(|f| format!("Envoy {f}")),
            ];
            let note = known.into_iter().flatten().collect::<Vec<_>>().join(", ");
            Span {
                from: attempt.started,
                until: attempt.ended,
                label: label.clone(),
                tone,
                note,
            }
        })
        .collect();
    if spans.is_empty() {
        let of_request = |event: &str| {
            let is_it = |r: &&TimelineRecord| {
                r.event == event && r.any_text(&["id", "request"]).as_deref() == Some(&request.id)
            };
            document.events.iter().find(is_it).map(TimelineRecord::bracket)
        };
        let (from, until) = (of_request("request_started"), of_request("request_ended"));
        if from.is_some() || until.is_some() {
            let (from, until) = (from.unwrap_or(Bracket::OPEN), until.unwrap_or(Bracket::OPEN));
            spans.push(Span {
                from,
                until,
                label,
                tone,
                note: String::new(),
            });
        }
    }
    let cut = document
        .events
        .iter()
        .filter(|r| r.event == "request_cut" && r.text("id").as_ref() == Some(&request.id));
    let marks = cut.map(|record| Mark {
        at: record.bracket(),
        label: "cut".to_owned(),
        tone: Tone::Bad,
        note: format!("cut by the load balancer ({})", record.source.as_deref().unwrap_or("")),
    });
    Lane {
        title: request.id.clone(),
        spans,
        marks: marks.collect(),
        ..Lane::default()
    }
}

pub(super) const fn fate_tone(fate: Fate) -> Tone {
    match fate {
        Fate::Protected | Fate::Rescued => Tone::Good,
        Fate::Broken | Fate::Lost => Tone::Bad,
        Fate::NotInFlight => Tone::Plain,
        Fate::Inconclusive => Tone::Unsure,
    }
}

/// A lane for each load: its losses.
fn load_lanes(document: &Document) -> Vec<Lane> {
    let lane = |load: &crate::verdict::LoadFinding| {
        let marks = load.lost.iter().map(|lost| {
            let known = [
                Some(format!(
                    "line {}: {}",
                    lost.line,
                    super::wording::client_words(lost.outcome)
                )),
                lost.status.map(|s| s.to_string()),
                Some(super::wording::cause_words(lost.cause).to_owned()),
                lost.server.as_ref().map(|s| format!("on {s}")),
                lost.termination.as_ref().map(|t| format!("termination state {t}")),
            ];
            let note = known.into_iter().flatten().collect::<Vec<_>>().join(", ");
            Mark {
                at: lost.ended,
                label: "lost".to_owned(),
                tone: Tone::Bad,
                note,
            }
        });
        let whole = |event: &str| {
            let is_it =
                |r: &&TimelineRecord| r.event == event && r.any_text(&["id", "load"]).as_deref() == Some(&load.id);
            document
                .events
                .iter()
                .find(is_it)
                .map_or(Bracket::OPEN, TimelineRecord::bracket)
        };
        let (from, until) = (whole("load_started"), whole("load_ended"));
        let label = format!("{} sent, {} disrupted", load.requests, load.disrupted);
        let span = Span {
            from,
            until,
            label,
            tone: Tone::Plain,
            note: String::new(),
        };
        let spans = if from == Bracket::OPEN || until == Bracket::OPEN {
            Vec::new()
        } else {
            vec![span]
        };
        capped(Lane {
            title: format!("load {}", load.id),
            spans,
            marks: marks.collect(),
            ..Lane::default()
        })
    };
    document
        .report
        .loads
        .iter()
        .map(lane)
        .filter(|lane| !lane.marks.is_empty() || !lane.spans.is_empty())
        .collect()
}

/// Keeps the first marks, and counts the rest.
fn capped(mut lane: Lane) -> Lane {
    lane.left_out += lane.marks.len().saturating_sub(MARKS_PER_LANE);
    lane.marks.truncate(MARKS_PER_LANE);
    lane
}

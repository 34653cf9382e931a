//! The lines of `timeline.jsonl`: one event a line, sorted by time, on the reference clock.

use serde_json::{Map, Value};

use super::Timeline;
use super::clocks::Sighting;
use super::event::Event;
use crate::time::{Bracket, Duration, Instant};

/// Every event as a JSON object, in time order; `ts`, `event` and the details first, as the old harness had them.
pub fn all(timeline: &Timeline<'_>, events: &[Event]) -> Vec<Map<String, Value>> {
    let mut lines: Vec<(Option<Instant>, usize, Map<String, Value>)> = events
        .iter()
        .enumerate()
        .map(|(i, e)| (shown(timeline, &e.sightings).0, i, line(timeline, e)))
        .collect();
    lines.sort_by_key(|(t, i, _)| (t.is_none(), *t, *i));
    lines.into_iter().map(|(_, _, line)| line).collect()
}

/// When an event happened on the reference clock: a middle to show, the bracket, and the sources.
type Shown = (Option<Instant>, Bracket, Vec<String>);

fn shown(timeline: &Timeline<'_>, sightings: &[Sighting]) -> Shown {
    let at = bracket(timeline, sightings);
    let middle = at.midpoint().or(at.hi).or(at.lo);
    let mut sources: Vec<String> = sightings.iter().map(|s| timeline.source(s)).collect();
    sources.dedup();
    (middle, at, sources)
}

/// What all sightings of an event together say on the reference clock: those that are tied to it intersected, else
/// the narrowest one.
pub fn bracket(timeline: &Timeline<'_>, sightings: &[Sighting]) -> Bracket {
    let Some(reference) = timeline.clocks.reference(timeline.evidence) else {
        return sightings.first().map(|s| s.at).unwrap_or_default();
    };
    let mut all: Option<Bracket> = None;
    let mut narrowest = Bracket::OPEN;
    for s in sightings {
        let at = timeline.clocks.convert(s, reference);
        let width = |b: Bracket| b.width().map_or(i64::MAX, Duration::as_nanos);
        if width(at) < width(narrowest) || narrowest == Bracket::OPEN {
            narrowest = at;
        }
        let t = s.at.hi.or(s.at.lo);
        if t.is_some_and(|t| timeline.clocks.offset(s.clock, reference, t).tied) {
            // Sources that contradict each other are shown with the narrowest; the verdict says so.
            all = Some(all.map_or(at, |a| a.intersect(at).unwrap_or(a)));
        }
    }
    all.unwrap_or(narrowest)
}

fn line(timeline: &Timeline<'_>, event: &Event) -> Map<String, Value> {
    let (middle, at, sources) = shown(timeline, &event.sightings);
    let mut line = Map::new();
    let text = |t: Option<Instant>| t.map_or(Value::Null, |t| Value::from(t.to_rfc3339()));
    line.insert("ts".to_owned(), text(middle));
    line.insert("event".to_owned(), event.what.name_on_disk().into());
    for (key, value) in &event.details {
        line.insert((*key).to_owned(), value.clone());
    }
    line.insert("lo".to_owned(), text(at.lo));
    line.insert("hi".to_owned(), text(at.hi));
    line.insert("source".to_owned(), sources.join(", ").into());
    if let Some(server) = &event.server {
        line.entry("server").or_insert_with(|| server.to_string().into());
    }
    line
}

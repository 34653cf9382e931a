//! Trace events (the JSON format that Perfetto and Chrome's viewer read): a thread a lane.
//!
//! A bracket is a slice from `lo` to `hi` in the lanes of the events that decided; elsewhere an instant at its middle,
//! with both ends in its arguments.

use serde_json::{Value, json};

use super::Document;
use super::scene::{Lane, Scene};
use super::wording::{SIMULATED, run_word};
use crate::time::{Bracket, Instant};

/// The file. Microseconds from the first known moment.
pub(super) fn render(document: &Document) -> String {
    let report = &document.report;
    let mark = if report.simulated {
        format!("{SIMULATED} ")
    } else {
        String::new()
    };
    let mut events = vec![
        json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": format!("{mark}{}", document.title())}}),
    ];
    let scene = Scene::of(document);
    if let Some(scene) = &scene {
        let trace = Trace {
            start: scene.window.0,
            end: scene.window.1,
        };
        let mut thread = 0;
        for decisive in &scene.decisive {
            thread += 1;
            events.push(named(thread, &decisive.event));
            let args = json!({"lo": decisive.at.lo, "hi": decisive.at.hi, "source": decisive.source});
            events.push(trace.slice(thread, &decisive.event, decisive.at.lo, decisive.at.hi, &args));
        }
        for lane in scene.requests.iter().chain(&scene.lanes) {
            thread += 1;
            events.push(named(thread, &lane.title));
            events.extend(trace.lane(thread, lane));
        }
    }
    let other = json!({
        "scenario": document.title(),
        "verdict": run_word(report.verdict),
        "simulated": report.simulated,
        "start": scene.map(|scene| scene.window.0),
    });
    let file = json!({"displayTimeUnit": "ms", "otherData": other, "traceEvents": events});
    format!("{file}\n")
}

fn named(thread: u64, name: &str) -> Value {
    json!({"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": {"name": name}})
}

struct Trace {
    start: Instant,
    end: Instant,
}

impl Trace {
    fn us(&self, at: Instant) -> f64 {
        (at - self.start).as_nanos() as f64 / 1e3
    }

    fn slice(&self, thread: u64, name: &str, from: Option<Instant>, until: Option<Instant>, args: &Value) -> Value {
        let (from, until) = (from.unwrap_or(self.start), until.unwrap_or(self.end));
        let (ts, dur) = (self.us(from), self.us(until) - self.us(from));
        json!({"ph": "X", "pid": 1, "tid": thread, "name": name, "ts": ts, "dur": dur, "args": args})
    }

    fn lane(&self, thread: u64, lane: &Lane) -> Vec<Value> {
        let mut events = Vec::new();
        for span in &lane.spans {
            let args = json!({"from": ends(span.from), "until": ends(span.until), "note": span.note});
            events.push(self.slice(thread, &span.label, middle(span.from), middle(span.until), &args));
        }
        for mark in &lane.marks {
            if let Some(at) = middle(mark.at) {
                let args = json!({"at": ends(mark.at), "note": mark.note});
                let ts = self.us(at);
                events.push(
                    json!({"ph": "i", "s": "t", "pid": 1, "tid": thread, "name": mark.label, "ts": ts, "args": args}),
                );
            }
        }
        for level in &lane.levels {
            if let Some(at) = middle(level.at) {
                let ts = self.us(at);
                events.push(json!({"ph": "C", "pid": 1, "name": lane.title, "ts": ts, "args": {"value": level.value}}));
            }
        }
        events
    }
}

fn middle(at: Bracket) -> Option<Instant> {
    at.midpoint().or(at.hi).or(at.lo)
}

fn ends(at: Bracket) -> Value {
    json!([at.lo, at.hi])
}

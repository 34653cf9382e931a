//! Values of an assertion: a number or a time with bounds, a text, a word, or not known.

use std::cmp::Ordering;

use super::Scope;
use super::occurrence::{self, Watched};
use crate::evidence::run_folder::CallOutcome;
use crate::language::expression::{CompareOp, Operand, OperandKind};
use crate::language::vocabulary::{EventField, RunField, ServerChoice, StepField, TargetField};
use crate::time::{Duration, Gap};
use crate::timeline::gap::gap_between;
use crate::verdict::attempt::Shown;
use crate::verdict::{EventUsed, Outcome, RequestFinding, load, order};

/// A value, as far as the evidence gives it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number between two bounds, in the unit of its type; seconds for a duration.
    Number {
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// A text or a word.
    Text(String),
    /// True or false.
    Bool(bool),
    /// There is none, and it is known that there is none: a request without a status.
    None(String),
    /// Not known, and why.
    Unknown(String),
}

impl Value {
    /// An exact number.
    pub fn exact(n: f64) -> Self {
        Self::Number { min: n, max: n }
    }

    fn duration(d: Duration) -> Self {
        Self::exact(d.as_secs_f64())
    }

    fn bounded(gap: Gap, why_open: &str) -> Self {
        match (gap.min, gap.max) {
            (None, None) => Self::Unknown(why_open.to_owned()),
            (min, max) => Self::Number {
                min: min.map_or(f64::NEG_INFINITY, Duration::as_secs_f64),
                max: max.map_or(f64::INFINITY, Duration::as_secs_f64),
            },
        }
    }
}

/// A value, the events it rests on, and the budget of its error.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// The value.
    pub value: Value,
    /// The events used.
    pub events: Vec<EventUsed>,
    /// The error by source.
    pub budget: Vec<String>,
    /// It is a length of time.
    pub is_time: bool,
}

impl From<Value> for Evaluated {
    fn from(value: Value) -> Self {
        Self {
            value,
            events: Vec::new(),
            budget: Vec::new(),
            is_time: false,
        }
    }
}

/// Evaluates an operand.
pub fn evaluate(scope: &Scope<'_>, operand: &Operand) -> Evaluated {
    let unknown = |why: &str| Evaluated::from(Value::Unknown(why.to_owned()));
    match &operand.kind {
        OperandKind::Number(n) | OperandKind::Percent(n) | OperandKind::Rate(n) => Value::exact(*n).into(),
        OperandKind::Duration(d) => Value::duration(*d).into(),
        OperandKind::Text(t) => Value::Text(t.clone()).into(),
        OperandKind::Bool(b) => Value::Bool(*b).into(),
        OperandKind::Word(w) => Value::Text(w.as_str().to_owned()).into(),
        OperandKind::Count(event, window) => count(scope, event, window),
        OperandKind::Gap(x, y) => gap(scope, x, y),
        OperandKind::Status(id) => request(scope, id.as_str(), |r| match (r.status, r.outcome) {
            (Some(s), _) => Value::exact(f64::from(s)),
            (None, Some(o)) => Value::None(format!("it has no status: {}", word(&o))),
            (None, None) => Value::Unknown("its client left no record".to_owned()),
        }),
        OperandKind::Outcome(id) => request(scope, id.as_str(), |r| match r.outcome {
            Some(o) => Value::Text(word(&o)),
            None => Value::Unknown("its client left no record".to_owned()),
        }),
        OperandKind::DurationOf(id) => Evaluated {
            is_time: true,
            ..request(scope, id.as_str(), |r| match r.duration_s {
                Some(s) => Value::exact(s),
                None => Value::Unknown("its client left no record of its time".to_owned()),
            })
        },
        OperandKind::Bytes(id) => request(scope, id.as_str(), |r| match r.bytes {
            Some(n) => Value::exact(n as f64),
            None => Value::Unknown("its client left no record of the bytes".to_owned()),
        }),
        OperandKind::Fate(id) => request(scope, id.as_str(), |r| Value::Text(word(&r.fate))),
        OperandKind::Cause(id) => request(scope, id.as_str(), |r| match (r.cause, &r.reason) {
            (Some(c), _) => Value::Text(word(&c)),
            (None, Some(why)) => Value::Unknown(why.clone()),
            (None, None) => Value::None(format!("its fate is {} and has no cause", word(&r.fate))),
        }),
        OperandKind::Requests(id) => of_load(scope, id.as_str(), |l| Value::exact(l.requests as f64)),
        OperandKind::Disrupted(id) => of_load(scope, id.as_str(), |l| Value::exact(l.disrupted as f64)),
        OperandKind::DisruptionRate(id) => of_load(scope, id.as_str(), |l| match l.rate {
            Some(r) => Value::exact(r * 100.0),
            None => Value::Unknown("no request was sent".to_owned()),
        }),
        OperandKind::Latency(id, p) => latency(scope, id.as_str(), *p),
        OperandKind::DownTime(choice) => down_time(scope, *choice),
        OperandKind::Signal(s) => unknown(&format!(
            "`{s}` has a value at a moment; use always({s} ..., from=..., until=...)"
        )),
        OperandKind::EventField(event, field) => event_field(scope, event, *field),
        OperandKind::StepResult(id, field) => step_result(scope, id.as_str(), *field).into(),
        OperandKind::Reply(_) => unknown("a reply is known only while it is polled"),
        OperandKind::Target(field) => target(scope, *field).into(),
        OperandKind::Run(RunField::Id | RunField::Dir) => unknown("the run's own name is known only while it runs"),
        OperandKind::Env(name, value) => match value {
            Some(v) => Value::Text(v.clone()).into(),
            None => unknown(&format!("env.{name} is a secret and is not kept in the run folder")),
        },
        OperandKind::Add(a, b) => combine(scope, a, b, |x, y| (x.0 + y.0, x.1 + y.1)),
        OperandKind::Sub(a, b) => combine(scope, a, b, |x, y| (x.0 - y.1, x.1 - y.0)),
        OperandKind::Neg(a) => {
            let a = evaluate(scope, a);
            let value = match a.value {
                Value::Number { min, max } => Value::Number { min: -max, max: -min },
                other => other,
            };
            Evaluated { value, ..a }
        }
    }
}

type Pair = (f64, f64);

fn combine(scope: &Scope<'_>, a: &Operand, b: &Operand, f: impl Fn(Pair, Pair) -> Pair) -> Evaluated {
    let (a, b) = (evaluate(scope, a), evaluate(scope, b));
    let value = match (&a.value, &b.value) {
        (Value::Number { min: a0, max: a1 }, Value::Number { min: b0, max: b1 }) => {
            let (min, max) = f((*a0, *a1), (*b0, *b1));
            Value::Number { min, max }
        }
        (Value::Unknown(why), _) | (_, Value::Unknown(why)) | (Value::None(why), _) | (_, Value::None(why)) => {
            Value::Unknown(why.clone())
        }
        _ => Value::Unknown("only numbers and times can be added".to_owned()),
    };
    Evaluated {
        value,
        events: a.events.into_iter().chain(b.events).collect(),
        budget: a.budget.into_iter().chain(b.budget).collect(),
        is_time: a.is_time || b.is_time,
    }
}

fn request(scope: &Scope<'_>, id: &str, f: impl Fn(&RequestFinding) -> Value) -> Evaluated {
    match scope.account.requests.iter().find(|r| r.id == id) {
        Some(r) => f(r).into(),
        None => Value::Unknown(format!("request {id} was never sent, or left no record")).into(),
    }
}

fn of_load(scope: &Scope<'_>, id: &str, f: impl Fn(&crate::verdict::LoadFinding) -> Value) -> Evaluated {
    match scope.account.loads.iter().find(|l| l.id == id) {
        Some(l) if l.requests == 0 => Value::Unknown(format!("load {id} sent no request")).into(),
        Some(l) => match &l.reason {
            Some(why) => Value::Unknown(why.clone()).into(),
            None => f(l).into(),
        },
        None => Value::Unknown(format!("load {id} was never started, or left no record")).into(),
    }
}

/// From the intended start: a generator that waits for its server must not hide the server's delay.
fn latency(scope: &Scope<'_>, id: &str, percent: f64) -> Evaluated {
    let Some(l) = scope.timeline.evidence.loads.iter().find(|l| l.id == id) else {
        return Value::Unknown(format!("load {id} left no record")).into();
    };
    let mut took: Vec<f64> = l
        .requests
        .iter()
        .filter_map(|r| {
            let begin = r.intended.hi.or(r.started.hi)?;
            Some(
                r.ended
                    .hi
                    .map_or_else(|| r.total.unwrap_or_default(), |end| end - begin)
                    .as_secs_f64(),
            )
        })
        .collect();
    if took.is_empty() {
        return Value::Unknown(format!("load {id} has no request with a time")).into();
    }
    took.sort_by(f64::total_cmp);
    Evaluated {
        is_time: true,
        ..Value::exact(load::percentile(&took, percent)).into()
    }
}

fn down_time(scope: &Scope<'_>, choice: Option<ServerChoice>) -> Evaluated {
    let is_target = |name: &str| {
        let server = name.rsplit('/').next().unwrap_or(name);
        scope.timeline.targets.iter().any(|t| &*t.server == server)
    };
    let meant = |name: &str| match choice {
        None => is_target(name),
        Some(ServerChoice::Any) => true,
        Some(ServerChoice::Others) => !is_target(name),
    };
    let any = crate::language::expression::Event::Lb(crate::language::expression::LbChange::Down, choice);
    if let Watched::No(why) = occurrence::watched(scope, &any) {
        return Value::Unknown(why).into();
    }
    let (mut min, mut max) = (0.0, 0.0);
    for d in load::down_intervals(scope.timeline).iter().filter(|d| meant(&d.server)) {
        let least = d
            .until
            .lo
            .zip(d.from.hi)
            .map_or(0.0, |(b, a)| (b - a).as_secs_f64().max(0.0));
        let most = d
            .until
            .hi
            .zip(d.from.lo)
            .map_or(f64::INFINITY, |(b, a)| (b - a).as_secs_f64());
        min += least;
        max += most;
    }
    Evaluated {
        is_time: true,
        ..Value::Number { min, max }.into()
    }
}

fn count(
    scope: &Scope<'_>,
    event: &crate::language::expression::EventRef,
    window: &crate::language::expression::Window,
) -> Evaluated {
    let all = occurrence::all(scope, &event.event);
    let (mut sure, mut possible) = (0u32, 0u32);
    for o in &all {
        match occurrence::inside(scope, o, window) {
            Some(Shown::Yes) => {
                sure += 1;
                possible += 1;
            }
            Some(Shown::Unknown) => possible += 1,
            Some(Shown::No) => {}
            None => return Value::Unknown("an event that bounds the window was not seen".to_owned()).into(),
        }
    }
    let events = all.iter().map(|o| occurrence::used(scope, event, Some(o))).collect();
    let max = match occurrence::watched(scope, &event.event) {
        Watched::Yes => f64::from(possible),
        Watched::No(_) => f64::INFINITY,
    };
    Evaluated {
        events,
        ..Value::Number {
            min: f64::from(sure),
            max,
        }
        .into()
    }
}

fn gap(
    scope: &Scope<'_>,
    x: &crate::language::expression::EventRef,
    y: &crate::language::expression::EventRef,
) -> Evaluated {
    let (a, b) = (occurrence::first(scope, x), occurrence::first(scope, y));
    let events = vec![
        occurrence::used(scope, x, a.as_ref()),
        occurrence::used(scope, y, b.as_ref()),
    ];
    let (Some(a), Some(b)) = (a, b) else {
        let missing = if events[0].source.is_empty() {
            &x.event
        } else {
            &y.event
        };
        let value = Value::Unknown(format!("{missing} was not seen"));
        return Evaluated {
            events,
            is_time: true,
            ..value.into()
        };
    };
    let value = match gap_between(&scope.timeline.clocks, &a.sightings, &b.sightings) {
        Some(gap) => Value::bounded(gap, "nothing bounds the time between the two"),
        None => Value::Unknown("the sources contradict each other about the time between the two".to_owned()),
    };
    Evaluated {
        value,
        budget: budget(scope, &[(x, &a), (y, &b)]),
        events,
        is_time: true,
    }
}

/// What each event's own bracket and the two clocks contribute.
pub fn budget(
    scope: &Scope<'_>,
    events: &[(&crate::language::expression::EventRef, &occurrence::Occurrence<'_>)],
) -> Vec<String> {
    let mut parts = Vec::new();
    for (name, o) in events {
        let narrowest = o
            .sightings
            .iter()
            .filter_map(|s| Some((s.at.width()?, s)))
            .min_by_key(|(w, _)| *w);
        if let Some((width, s)) = narrowest {
            parts.push(format!(
                "{} by {} {}",
                name.event,
                scope.timeline.source(s),
                milliseconds(width)
            ));
        }
    }
    if let [(_, a), (_, b)] = events {
        let clocks = a.sightings.iter().flat_map(|x| b.sightings.iter().map(move |y| (x, y)));
        let best = clocks
            .filter_map(|(x, y)| scope.timeline.clocks.gap(x, y).clock_error)
            .min();
        if let Some(error) = best.filter(|e| *e > Duration::ZERO) {
            parts.push(format!("clocks {}", milliseconds(error)));
        }
    }
    parts
}

fn milliseconds(d: Duration) -> String {
    let ms = d.as_nanos() as f64 / 1e6;
    if ms >= 10.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{ms:.1} ms")
    }
}

fn event_field(scope: &Scope<'_>, event: &crate::language::expression::EventRef, field: EventField) -> Evaluated {
    let Some(o) = occurrence::first(scope, event) else {
        return Value::Unknown(format!("{} was not seen", event.event)).into();
    };
    let events = vec![occurrence::used(scope, event, Some(&o))];
    // The first occurrence may be told by several sources; the one that knows the field gives it.
    let told = occurrence::all(scope, &event.event);
    let found = o
        .event
        .into_iter()
        .chain(told.iter().filter_map(|t| t.event))
        .find_map(|e| {
            e.details
                .iter()
                .find(|(k, _)| *k == field.as_str())
                .map(|(_, v)| v.clone())
        });
    let value = match found {
        Some(serde_json::Value::Number(n)) => Value::exact(n.as_f64().unwrap_or(f64::NAN)),
        Some(serde_json::Value::String(s)) => Value::Text(s),
        Some(serde_json::Value::Bool(b)) => Value::Bool(b),
        _ => Value::Unknown(format!("no source gave {}.{field}", event.event)),
    };
    Evaluated { events, ..value.into() }
}

fn step_result(scope: &Scope<'_>, id: &str, field: StepField) -> Value {
    if let Some(r) = scope.account.requests.iter().find(|r| r.id == id) {
        return match field {
            StepField::Status => r.status.map_or(Value::None("it has no status".to_owned()), |s| {
                Value::exact(f64::from(s))
            }),
            StepField::Outcome => r
                .outcome
                .map_or(Value::Unknown("its client left no record".to_owned()), |o| {
                    Value::Text(word(&o))
                }),
            StepField::Duration => r
                .duration_s
                .map_or(Value::Unknown("no duration".to_owned()), Value::exact),
            StepField::Bytes => r
                .bytes
                .map_or(Value::Unknown("no bytes".to_owned()), |n| Value::exact(n as f64)),
            StepField::LocalPort => r
                .attempts
                .iter()
                .find_map(|a| a.client_port)
                .map_or(Value::Unknown("no port".to_owned()), |p| Value::exact(f64::from(p))),
            StepField::Exit | StepField::Stdout | StepField::Body => {
                Value::Unknown(format!("a request has no {field}"))
            }
        };
    }
    let Some(call) = scope.timeline.evidence.own_calls.iter().find(|c| c.step == id) else {
        return Value::Unknown(format!("step {id} never ran"));
    };
    let result = call.results.get(field.as_str());
    match field {
        StepField::Status => call
            .status
            .map_or(Value::Unknown(format!("step {id} has no status")), |s| {
                Value::exact(s as f64)
            }),
        StepField::Outcome => Value::Text(
            match call.outcome {
                CallOutcome::Ok => "ok",
                CallOutcome::Refused => "refused",
                CallOutcome::Error | CallOutcome::TimedOut | CallOutcome::Interrupted => "error",
                CallOutcome::Skipped => return Value::Unknown(format!("step {id} was skipped")),
            }
            .to_owned(),
        ),
        StepField::Duration => match call.received {
            Some(received) => Value::duration(received - call.sent),
            None => Value::Unknown(format!("step {id} was not over when the run ended")),
        },
        StepField::Exit | StepField::Stdout | StepField::Body | StepField::Bytes | StepField::LocalPort => match result
        {
            Some(serde_json::Value::Number(n)) => Value::exact(n.as_f64().unwrap_or(f64::NAN)),
            Some(serde_json::Value::String(s)) => Value::Text(s.clone()),
            _ => Value::Unknown(format!("step {id} left no {field}")),
        },
    }
}

fn target(scope: &Scope<'_>, field: TargetField) -> Value {
    let acting = scope.timeline.evidence.own_calls.iter().find(|c| c.pod.is_some());
    let found = acting.and_then(|c| match field {
        TargetField::Pod => c.pod.clone(),
        TargetField::Uid => c.uid.clone(),
        TargetField::Node | TargetField::Ip => c
            .results
            .get(field.as_str())
            .and_then(|v| v.as_str().map(str::to_owned)),
    });
    found.map_or_else(
        || Value::Unknown(format!("target.{field} is not in the run's record")),
        Value::Text,
    )
}

/// Compares two values, three-valued; the distance to the other answer where both are numbers.
pub fn compare(a: &Value, op: CompareOp, b: &Value) -> (Outcome, Option<(f64, f64)>) {
    let decided = |holds: bool| if holds { Outcome::Pass } else { Outcome::Fail };
    match (a, b) {
        (Value::Number { min: a0, max: a1 }, Value::Number { min: b0, max: b1 }) => {
            let (outcome, distance) = compare_bounds((*a0, *a1), op, (*b0, *b1));
            let error = ((a1 - a0) + (b1 - b0)) / 2.0;
            (outcome, distance.filter(|d| d.is_finite()).map(|d| (d, error)))
        }
        (Value::Text(a), Value::Text(b)) => (by_ordering(a.cmp(b), op, decided), None),
        (Value::Bool(a), Value::Bool(b)) => (by_ordering(a.cmp(b), op, decided), None),
        // A thing that certainly has no value is equal to none.
        (Value::None(_), Value::Number { .. } | Value::Text(_))
        | (Value::Number { .. } | Value::Text(_), Value::None(_)) => (decided(op == CompareOp::Ne), None),
        _ => (Outcome::Inconclusive, None),
    }
}

fn by_ordering(o: Ordering, op: CompareOp, decided: impl Fn(bool) -> Outcome) -> Outcome {
    decided(match op {
        CompareOp::Eq => o.is_eq(),
        CompareOp::Ne => o.is_ne(),
        CompareOp::Lt => o.is_lt(),
        CompareOp::Le => o.is_le(),
        CompareOp::Gt => o.is_gt(),
        CompareOp::Ge => o.is_ge(),
    })
}

fn compare_bounds(a: Pair, op: CompareOp, b: Pair) -> (Outcome, Option<f64>) {
    let three = |always: bool, never: bool| match (always, never) {
        (true, _) => Outcome::Pass,
        (_, true) => Outcome::Fail,
        _ => Outcome::Inconclusive,
    };
    let exact = a.0 == a.1 && b.0 == b.1;
    match op {
        CompareOp::Eq => (three(exact && a.0 == b.0, a.1 < b.0 || b.1 < a.0), None),
        CompareOp::Ne => (three(a.1 < b.0 || b.1 < a.0, exact && a.0 == b.0), None),
        CompareOp::Lt => (three(a.1 < b.0, a.0 >= b.1), Some(b.0 - a.1)),
        CompareOp::Le => (three(a.1 <= b.0, a.0 > b.1), Some(b.0 - a.1)),
        CompareOp::Gt => (three(a.0 > b.1, a.1 <= b.0), Some(a.0 - b.1)),
        CompareOp::Ge => (three(a.0 >= b.1, a.1 < b.0), Some(a.0 - b.1)),
    }
}

fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A value for a sentence.
pub fn text(e: &Evaluated) -> String {
    match &e.value {
        Value::Number { min, max } if e.is_time => {
            let s = |v: f64| {
                if v.is_finite() {
                    order::seconds(Duration::from_secs_f64(v))
                        .trim_start_matches('+')
                        .to_owned()
                } else {
                    "?".to_owned()
                }
            };
            if min == max {
                s(*min)
            } else {
                format!("{} to {}", s(*min), s(*max))
            }
        }
        Value::Number { min, max } if min == max => trim_number(*min),
        Value::Number { min, max } => format!("{} to {}", trim_number(*min), trim_number(*max)),
        Value::Text(t) => t.clone(),
        Value::Bool(b) => b.to_string(),
        Value::None(why) | Value::Unknown(why) => why.clone(),
    }
}

fn trim_number(n: f64) -> String {
    if !n.is_finite() {
        return "?".to_owned();
    }
    let text = format!("{n:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn op() -> impl Strategy<Value = CompareOp> {
        prop_oneof![
            Just(CompareOp::Eq),
            Just(CompareOp::Ne),
            Just(CompareOp::Lt),
            Just(CompareOp::Le),
            Just(CompareOp::Gt),
            Just(CompareOp::Ge),
        ]
    }

    proptest! {
        /// Whatever the true values inside the bounds are, a decided comparison says what they say.
        #[test]
        fn a_decided_comparison_is_true_of_all_values(
            a0 in -9i32..9, aw in 0i32..5, b0 in -9i32..9, bw in 0i32..5, op in op(), ax in 0i32..5, bx in 0i32..5,
        ) {
            let f = f64::from;
            let (a, b) = (f(a0 + ax.min(aw)), f(b0 + bx.min(bw)));
            let truth = by_ordering(a.total_cmp(&b), op, |h| if h { Outcome::Pass } else { Outcome::Fail });
            let bounds = |lo: i32, w: i32| Value::Number { min: f(lo), max: f(lo + w) };
            let (outcome, _) = compare(&bounds(a0, aw), op, &bounds(b0, bw));
            prop_assert!(outcome == Outcome::Inconclusive || outcome == truth);
        }
    }
}

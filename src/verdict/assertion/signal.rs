//! Sampled signals: `always(active >= 1, from=delete, until=lb_down)`.

use super::Scope;
use super::judgement::Judgement;
use super::occurrence;
use super::value::{self, Value};
use crate::evidence::FileId;
use crate::evidence::envoy_stats::Reading;
use crate::evidence::haproxy_csv::StatusClass;
use crate::language::expression::{Condition, ConditionKind, Operand, OperandKind, Window};
use crate::language::vocabulary::Signal;
use crate::time::Bracket;
use crate::timeline::clocks::Sighting;
use crate::timeline::gap::gap_between;
use crate::timeline::zero::GaugeNames;
use crate::timeline::{sampling, server};
use crate::verdict::Outcome;

/// One sample of one signal.
struct Sample {
    at: Sighting,
    value: Value,
}

/// The condition holds at every sample inside the window, and samples lie on both sides of it.
pub fn always(scope: &Scope<'_>, condition: &Condition, window: &Window) -> Judgement {
    let mut signals = Vec::new();
    named(condition, &mut signals);
    let Some(signal) = signals.first().copied() else {
        return super::condition::evaluate(scope, condition);
    };
    if signals.iter().any(|s| *s != signal) {
        return each_alone(scope, condition, window);
    }
    let samples = samples(scope, signal);
    if samples.is_empty() {
        return Judgement::inconclusive(format!("no sample of {signal}; give the probe that reads it"));
    }
    let edge = |bound: &Option<crate::language::expression::EventRef>| match bound {
        Some(e) => occurrence::first(scope, e)
            .map(|o| Some(o.sightings))
            .ok_or_else(|| e.event.to_string()),
        None => Ok(None),
    };
    let (from, until) = match (edge(&window.from), edge(&window.until)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(missing), _) | (_, Err(missing)) => {
            return Judgement::inconclusive(format!("the window is not known: {missing} was not seen"));
        }
    };
    let clocks = &scope.timeline.clocks;
    let after = |s: &Sighting| match &from {
        Some(f) => gap_between(clocks, f, std::slice::from_ref(s))
            .map_or((false, false), |g| (g.surely_positive(), g.surely_negative())),
        None => (true, false),
    };
    let before = |s: &Sighting| match &until {
        Some(u) => gap_between(clocks, std::slice::from_ref(s), u)
            .map_or((false, false), |g| (g.surely_positive(), g.surely_negative())),
        None => (true, false),
    };
    let (mut inside, mut unknown, mut covered_before, mut covered_after) = (0, 0, from.is_none(), until.is_none());
    for sample in &samples {
        let ((a_yes, a_no), (b_yes, b_no)) = (after(&sample.at), before(&sample.at));
        covered_before |= a_no || a_yes;
        covered_after |= b_no;
        if a_no || b_no {
            continue;
        }
        let sure = a_yes && b_yes;
        match at_sample(scope, condition, &sample.value) {
            Outcome::Fail if sure => {
                return Judgement::new(
                    Outcome::Fail,
                    format!("{signal} is {} at {}", shown(&sample.value), sample.at.at),
                );
            }
            Outcome::Pass => inside += usize::from(sure),
            Outcome::Fail | Outcome::Inconclusive => unknown += 1,
        }
    }
    if inside == 0 {
        return Judgement::inconclusive(format!(
            "no sample of {signal} lies surely inside the window; sample it more often"
        ));
    }
    if unknown > 0 {
        return Judgement::inconclusive(format!(
            "{unknown} sample(s) of {signal} at the window's edges or without a value do not decide"
        ));
    }
    if !(covered_before && covered_after) {
        return Judgement::inconclusive(format!("the samples of {signal} do not reach over the whole window"));
    }
    Judgement::new(
        Outcome::Pass,
        format!("it holds at all {inside} samples of {signal} inside the window"),
    )
}

/// Conditions over several signals: each conjunct on its own; anything else cannot be decided from samples that
/// were not taken together.
fn each_alone(scope: &Scope<'_>, condition: &Condition, window: &Window) -> Judgement {
    match &condition.kind {
        ConditionKind::And(a, b) => always(scope, a, window).and(always(scope, b, window)),
        _ => Judgement::inconclusive(
            "signals of different sources are not sampled together; use `and` of conditions on one signal each",
        ),
    }
}

fn named(condition: &Condition, found: &mut Vec<Signal>) {
    let operand = |o: &Operand, found: &mut Vec<Signal>| signals_of(o, found);
    match &condition.kind {
        ConditionKind::Or(a, b) | ConditionKind::And(a, b) => {
            named(a, found);
            named(b, found);
        }
        ConditionKind::Not(a) | ConditionKind::Always(a, _) => named(a, found),
        ConditionKind::Compare(a, _, b) => {
            operand(a, found);
            operand(b, found);
        }
        ConditionKind::In(a, b, c) => {
            operand(a, found);
            operand(b, found);
            operand(c, found);
        }
        ConditionKind::Holds(a) => operand(a, found),
        ConditionKind::Before(..)
        | ConditionKind::Exists(..)
        | ConditionKind::Never(..)
        | ConditionKind::Complete(_) => {}
    }
}

fn signals_of(operand: &Operand, found: &mut Vec<Signal>) {
    match &operand.kind {
        OperandKind::Signal(s) => found.push(*s),
        OperandKind::Add(a, b) | OperandKind::Sub(a, b) => {
            signals_of(a, found);
            signals_of(b, found);
        }
        OperandKind::Neg(a) => signals_of(a, found),
        _ => {}
    }
}

/// The condition with the signal's value of one sample in place of the signal.
fn at_sample(scope: &Scope<'_>, condition: &Condition, signal: &Value) -> Outcome {
    let value = |o: &Operand| match &o.kind {
        OperandKind::Signal(_) => signal.clone(),
        _ => value::evaluate(scope, o).value,
    };
    match &condition.kind {
        ConditionKind::Or(a, b) => at_sample(scope, a, signal).min(at_sample(scope, b, signal)),
        ConditionKind::And(a, b) => at_sample(scope, a, signal).max(at_sample(scope, b, signal)),
        ConditionKind::Not(a) => match at_sample(scope, a, signal) {
            Outcome::Pass => Outcome::Fail,
            Outcome::Fail => Outcome::Pass,
            Outcome::Inconclusive => Outcome::Inconclusive,
        },
        ConditionKind::Compare(a, op, b) => value::compare(&value(a), *op, &value(b)).0,
        ConditionKind::In(v, lo, hi) => {
            use crate::language::expression::CompareOp::{Ge, Le};
            value::compare(&value(v), Ge, &value(lo))
                .0
                .max(value::compare(&value(v), Le, &value(hi)).0)
        }
        ConditionKind::Holds(_)
        | ConditionKind::Before(..)
        | ConditionKind::Exists(..)
        | ConditionKind::Never(..)
        | ConditionKind::Always(..)
        | ConditionKind::Complete(_) => super::condition::evaluate(scope, condition).outcome,
    }
}

fn shown(value: &Value) -> String {
    value::text(&value::Evaluated {
        value: value.clone(),
        events: Vec::new(),
        budget: Vec::new(),
        is_time: false,
    })
}

fn samples(scope: &Scope<'_>, signal: Signal) -> Vec<Sample> {
    match signal {
        Signal::Active | Signal::Downstream | Signal::Upstream => gauges(scope, signal),
        Signal::LbStatus => states(scope),
        Signal::ReadyReplicas => ready(scope),
        Signal::Health => health(scope),
    }
}

fn gauges(scope: &Scope<'_>, signal: Signal) -> Vec<Sample> {
    let timeline = scope.timeline;
    let mut found = Vec::new();
    for target in &timeline.targets {
        for pod in timeline.site.pods_of(&target.server) {
            for series in pod.stats.iter().map(|i| &timeline.evidence.envoy_stats[*i]) {
                let names = GaugeNames::learn(timeline, &series.samples);
                for (sample, at) in series.samples.iter().zip(sampling::gauge_brackets(series)) {
                    let Some(at) = timeline.clocks.sight(series.file, sample.place.line, at) else {
                        continue;
                    };
                    let value = match &sample.reading {
                        Reading::Unknown(why) => Value::Unknown(why.clone()),
                        Reading::Values(values) => {
                            let (down, up) = names.counts(values);
                            let n = match signal {
                                Signal::Downstream => down,
                                Signal::Upstream => up,
                                _ => down.max(up),
                            };
                            n.map_or_else(
                                || Value::Unknown("the gauge is absent, which is not zero".to_owned()),
                                |n| Value::exact(n as f64),
                            )
                        }
                    };
                    found.push(Sample { at, value });
                }
            }
        }
    }
    found
}

fn states(scope: &Scope<'_>) -> Vec<Sample> {
    let timeline = scope.timeline;
    let mut found = Vec::new();
    for target in &timeline.targets {
        for point in server::stat_points(timeline.evidence, &timeline.site, &target.server) {
            let Some(at) = timeline.clocks.sight(point.file, point.line, point.at) else {
                continue;
            };
            let value = match point.row {
                None => Value::Unknown("the poll failed".to_owned()),
                Some(row) => match lb_word(row.status.class) {
                    Some(word) => Value::Text(word.to_owned()),
                    None => Value::Unknown(format!("`{}` is no state of a server", row.status.text)),
                },
            };
            found.push(Sample { at, value });
        }
    }
    found
}

fn lb_word(class: StatusClass) -> Option<&'static str> {
    Some(match class {
        StatusClass::Up => "up",
        StatusClass::GoingDown => "going_down",
        StatusClass::Down => "down",
        StatusClass::ComingUp => "coming_up",
        StatusClass::Drain => "drain",
        StatusClass::Nolb => "nolb",
        StatusClass::Maint => "maint",
        StatusClass::NoCheck => "no_check",
        StatusClass::Unknown => "unknown",
        StatusClass::NotAServer => return None,
    })
}

/// Ready pods at every event of the pod watch: a value holds from one event to the next.
fn ready(scope: &Scope<'_>) -> Vec<Sample> {
    use crate::evidence::pod_watch::WatchChange;
    let timeline = scope.timeline;
    let mut found = Vec::new();
    for watch in timeline
        .evidence
        .watches
        .iter()
        .filter(|w| timeline.clocks.belongs(w.file))
    {
        let mut pods = std::collections::BTreeMap::new();
        for event in &watch.events {
            match &event.what {
                WatchChange::Pod(p) => pods.insert(p.uid.clone(), p.ready == Some(true)),
                WatchChange::PodDeleted(p) => pods.remove(&p.uid),
                WatchChange::Endpoints(_)
                | WatchChange::Event(_)
                | WatchChange::Deployment(_)
                | WatchChange::Gap(_) => continue,
            };
            let at = Bracket {
                lo: event.last_contact,
                hi: Some(event.arrival),
            };
            let n = pods.values().filter(|r| **r).count();
            found.extend(
                timeline
                    .clocks
                    .sight(watch.file, event.place.line, at)
                    .map(|at| Sample {
                        at,
                        value: Value::exact(n as f64),
                    }),
            );
        }
    }
    found
}

/// Answers of the health page as the `health` probe saw them.
fn health(scope: &Scope<'_>) -> Vec<Sample> {
    let _: Option<FileId> = scope.timeline.evidence.files.first().map(|_| FileId(0));
    Vec::new()
}

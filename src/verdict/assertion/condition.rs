//! Conditions: order, occurrence, windows, comparisons.

use super::Scope;
use super::judgement::Judgement;
use super::occurrence::{self, Watched};
use super::signal;
use super::value::{self, Value};
use crate::language::expression::{CompareOp, Condition, ConditionKind, Event, EventRef, LbChange, Operand, Window};
use crate::time::{Duration, Gap};
use crate::timeline::gap::gap_between;
use crate::verdict::attempt::Shown;
use crate::verdict::order::{self, TargetOrder};
use crate::verdict::{EventUsed, Outcome};

/// Evaluates a condition.
pub fn evaluate(scope: &Scope<'_>, condition: &Condition) -> Judgement {
    match &condition.kind {
        ConditionKind::Or(a, b) => evaluate(scope, a).or(evaluate(scope, b)),
        ConditionKind::And(a, b) => evaluate(scope, a).and(evaluate(scope, b)),
        ConditionKind::Not(a) => evaluate(scope, a).not(),
        ConditionKind::Before(x, y) => before(scope, x, y),
        ConditionKind::Exists(x, window) => exists(scope, x, window),
        ConditionKind::Never(x, window) => never(scope, x, window),
        ConditionKind::Always(inner, window) => signal::always(scope, inner, window),
        ConditionKind::Complete(probe) => super::complete::of(scope, probe.as_str()),
        ConditionKind::Compare(a, op, b) => compare(scope, a, *op, b),
        ConditionKind::In(v, lo, hi) => within(scope, v, lo, hi),
        ConditionKind::Holds(operand) => holds(scope, operand),
    }
}

/// `active_zero` and `lb_down` of the target are judged once, by facts first; all other orders by brackets.
fn before(scope: &Scope<'_>, x: &EventRef, y: &EventRef) -> Judgement {
    let down = |e: &Event| matches!(e, Event::Lb(LbChange::Down, None));
    let (a, b) = (occurrence::first(scope, x), occurrence::first(scope, y));
    let events = [
        occurrence::used(scope, x, a.as_ref()),
        occurrence::used(scope, y, b.as_ref()),
    ];
    if x.event == Event::ActiveZero && down(&y.event) {
        return order_of_the_two(scope, false).using(events);
    }
    if down(&x.event) && y.event == Event::ActiveZero {
        return order_of_the_two(scope, true).using(events);
    }
    let judgement = match (&a, &b) {
        (Some(a), Some(b)) => match gap_between(&scope.timeline.clocks, &a.sightings, &b.sightings) {
            None => Judgement::inconclusive("the sources contradict each other about the time between the two"),
            Some(gap) => {
                let mut j = by_gap(x, y, gap);
                j.budget = value::budget(scope, &[(x, a), (y, b)]);
                j
            }
        },
        (Some(_), None) => match occurrence::watched(scope, &y.event) {
            Watched::Yes => Judgement::new(
                Outcome::Pass,
                format!(
                    "{} was seen; {} did not happen, and what shows it was watching until the end",
                    x.event, y.event
                ),
            ),
            Watched::No(why) => Judgement::inconclusive(format!("{} was not seen: {why}", y.event)),
        },
        (None, Some(_)) => Judgement::inconclusive(format!("{} was not seen", x.event)),
        (None, None) => Judgement::inconclusive(format!("neither {} nor {} was seen", x.event, y.event)),
    };
    judgement.using(events)
}

fn order_of_the_two(scope: &Scope<'_>, mirrored: bool) -> Judgement {
    let orders = &scope.account.by_target;
    let worst = Outcome::of_all(orders.iter().map(|(_, o)| o.outcome));
    let Some(order) = worst.and_then(|w| orders.iter().map(|(_, o)| o).find(|o| o.outcome == w)) else {
        return Judgement::inconclusive("no server is known whose pod was told to stop");
    };
    let mut j = Judgement::new(order.outcome, order.explanation.clone());
    j.reason.clone_from(&order.reason);
    j.margin = margin(order);
    if let Some(error) = order.gap.clock_error.filter(|_| !order.by_fact) {
        j.budget.push(format!("clocks {:.1} ms", error.as_secs_f64() * 1e3));
    }
    if mirrored {
        j.margin = j.margin.map(|(m, e)| (-m, e));
        j = j.not();
    }
    j
}

/// A direct fact has no margin.
fn margin(order: &TargetOrder) -> Option<(Duration, Duration)> {
    if order.by_fact { None } else { margin_of(order.gap) }
}

/// `lo(Y) - hi(X)` and half the width of what the evidence allows.
fn margin_of(gap: Gap) -> Option<(Duration, Duration)> {
    Some((gap.min?, gap.width()?.half()))
}

fn by_gap(x: &EventRef, y: &EventRef, gap: Gap) -> Judgement {
    let text = match (gap.min, gap.max) {
        (Some(min), Some(max)) => {
            format!(
                "{} to {}: {} to {}",
                x.event,
                y.event,
                order::seconds(min),
                order::seconds(max)
            )
        }
        (Some(min), None) => format!("{} to {}: at least {}", x.event, y.event, order::seconds(min)),
        (None, Some(max)) => format!("{} to {}: at most {}", x.event, y.event, order::seconds(max)),
        (None, None) => format!("{} to {}: nothing bounds it", x.event, y.event),
    };
    let outcome = if gap.surely_positive() {
        Outcome::Pass
    } else if gap.surely_negative() {
        Outcome::Fail
    } else {
        Outcome::Inconclusive
    };
    let mut j = Judgement::new(outcome, text);
    j.margin = margin_of(gap);
    if outcome == Outcome::Inconclusive {
        let advice = if gap.tied {
            "sample its source more often"
        } else {
            "measure the clocks of the two sources"
        };
        j.reason = Some(format!("the brackets overlap; {advice}"));
    }
    j
}

fn exists(scope: &Scope<'_>, x: &EventRef, window: &Window) -> Judgement {
    let all = occurrence::all(scope, &x.event);
    let mut maybe = false;
    for o in &all {
        match occurrence::inside(scope, o, window) {
            None => return unknown_window(scope, window),
            Some(Shown::Yes) => {
                let at = occurrence::used(scope, x, Some(o));
                return Judgement::new(Outcome::Pass, format!("{} was seen by {}", x.event, at.source)).using([at]);
            }
            Some(Shown::Unknown) => maybe = true,
            Some(Shown::No) => {}
        }
    }
    if maybe {
        return Judgement::inconclusive(format!(
            "{} was seen, but it is not decided whether inside the window",
            x.event
        ))
        .using(all.iter().map(|o| occurrence::used(scope, x, Some(o))));
    }
    match occurrence::watched(scope, &x.event) {
        Watched::Yes => Judgement::new(
            Outcome::Fail,
            format!("{} did not happen, and what shows it was watching", x.event),
        ),
        Watched::No(why) => Judgement::inconclusive(format!("{} was not seen: {why}", x.event)),
    }
    .using([occurrence::used(scope, x, None)])
}

fn never(scope: &Scope<'_>, x: &EventRef, window: &Window) -> Judgement {
    // The window must exist, else nothing was asked.
    for bound in [&window.from, &window.until].into_iter().flatten() {
        if occurrence::first(scope, bound).is_none() {
            return unknown_window(scope, window);
        }
    }
    exists(scope, x, window).not()
}

fn unknown_window(scope: &Scope<'_>, window: &Window) -> Judgement {
    let missing = [&window.from, &window.until]
        .into_iter()
        .flatten()
        .find(|e| occurrence::first(scope, e).is_none())
        .map_or_else(String::new, |e| e.event.to_string());
    Judgement::inconclusive(format!("the window is not known: {missing} was not seen"))
}

fn compare(scope: &Scope<'_>, a: &Operand, op: CompareOp, b: &Operand) -> Judgement {
    let (x, y) = (value::evaluate(scope, a), value::evaluate(scope, b));
    let (outcome, distance) = value::compare(&x.value, op, &y.value);
    finish(
        scope,
        outcome,
        distance,
        &[&x, &y],
        format!("actual {}, claimed {op} {}", value::text(&x), value::text(&y)),
    )
}

fn within(scope: &Scope<'_>, v: &Operand, lo: &Operand, hi: &Operand) -> Judgement {
    let (x, a, b) = (
        value::evaluate(scope, v),
        value::evaluate(scope, lo),
        value::evaluate(scope, hi),
    );
    let (above, d1) = value::compare(&x.value, CompareOp::Ge, &a.value);
    let (below, d2) = value::compare(&x.value, CompareOp::Le, &b.value);
    let distance = match (d1, d2) {
        (Some(p), Some(q)) => Some(if p.0 <= q.0 { p } else { q }),
        (p, q) => p.or(q),
    };
    let text = format!(
        "actual {}, claimed in {}..{}",
        value::text(&x),
        value::text(&a),
        value::text(&b)
    );
    finish(scope, above.max(below), distance, &[&x, &a, &b], text)
}

fn finish(
    _scope: &Scope<'_>,
    outcome: Outcome,
    distance: Option<(f64, f64)>,
    parts: &[&value::Evaluated],
    text: String,
) -> Judgement {
    let mut j = Judgement::new(outcome, text);
    if parts.iter().any(|p| p.is_time) {
        j.margin = distance.map(|(d, e)| (Duration::from_secs_f64(d), Duration::from_secs_f64(e)));
    }
    j.budget = parts.iter().flat_map(|p| p.budget.clone()).collect();
    j.events = parts.iter().flat_map(|p| p.events.clone()).collect::<Vec<EventUsed>>();
    if outcome == Outcome::Inconclusive {
        let why = parts.iter().find_map(|p| match &p.value {
            Value::Unknown(why) | Value::None(why) => Some(why.clone()),
            Value::Number { .. } | Value::Text(_) | Value::Bool(_) => None,
        });
        let why = why.unwrap_or_else(|| {
            "the bounds of the value reach over the claimed one; sample its source more often".to_owned()
        });
        j.explanation = why.clone();
        j.reason = Some(why);
    }
    j
}

fn holds(scope: &Scope<'_>, operand: &Operand) -> Judgement {
    match value::evaluate(scope, operand).value {
        Value::Bool(true) => Judgement::new(Outcome::Pass, "it is true"),
        Value::Bool(false) => Judgement::new(Outcome::Fail, "it is false"),
        Value::Unknown(why) | Value::None(why) => Judgement::inconclusive(why),
        Value::Number { .. } | Value::Text(_) => Judgement::inconclusive("it is neither true nor false"),
    }
}

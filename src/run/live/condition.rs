//! Conditions on what is seen: three-valued, `None` is "cannot be said now".

use indexmap::IndexMap;

use super::happened::{occurrences, zero};
use super::{Fact, Signals};
use crate::language::Id;
use crate::language::expression::{CompareOp, Condition, ConditionKind, Event, EventRef, Operand, OperandKind, Window};
use crate::language::vocabulary::{RunField, ServerChoice, Signal, StepField, TargetField, Word};
use crate::run::target::Target;
use crate::time::{Duration, Instant};

/// A value that a step left behind, or the last reply of a poll.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A number.
    Number(f64),
    /// A duration.
    Duration(Duration),
    /// A text.
    Text(String),
    /// A word of a closed set.
    Word(Word),
    /// true or false.
    Bool(bool),
}

/// Results of a step by field.
pub(crate) type Results = IndexMap<StepField, Value>;

/// What a condition may ask for besides the facts.
pub(crate) struct Known<'a> {
    /// The target, once it is known.
    pub(crate) target: Option<&'a Target>,
    /// The state before the drain.
    pub(crate) first_state: Option<&'a str>,
    /// Results of steps.
    pub(crate) steps: &'a IndexMap<Id, Results>,
    /// The last reply, in a poll's `until`.
    pub(crate) reply: Option<&'a Results>,
    /// The run.
    pub(crate) run: &'a IndexMap<RunField, String>,
}

/// Whether a condition holds; `None`: it cannot be said (yet).
pub(crate) fn holds(
    condition: &Condition,
    facts: &[Fact],
    signals: &Signals,
    disturbed: Option<Instant>,
    known: &Known<'_>,
) -> Option<bool> {
    View {
        facts,
        signals,
        disturbed,
        known,
    }
    .condition(condition)
}

struct View<'a> {
    facts: &'a [Fact],
    signals: &'a Signals,
    disturbed: Option<Instant>,
    known: &'a Known<'a>,
}

impl View<'_> {
    fn condition(&self, condition: &Condition) -> Option<bool> {
        match &condition.kind {
            ConditionKind::Or(a, b) => match (self.condition(a), self.condition(b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            ConditionKind::And(a, b) => match (self.condition(a), self.condition(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            ConditionKind::Not(a) => self.condition(a).map(|b| !b),
            ConditionKind::Exists(event, window) => Some(!self.seen(event, window).is_empty()),
            ConditionKind::Never(event, window) => Some(self.seen(event, window).is_empty()),
            ConditionKind::Before(a, b) => {
                let first = |e: &EventRef| self.seen(e, &Window::default()).first().copied();
                Some(first(a)? < first(b)?)
            }
            // What holds over a window, and whether a source lost nothing, is for the evidence as a whole.
            ConditionKind::Always(..) | ConditionKind::Complete(_) => None,
            ConditionKind::Compare(a, op, b) => compare(&self.operand(a)?, *op, &self.operand(b)?),
            ConditionKind::In(value, from, to) => {
                let (value, from, to) = (self.operand(value)?, self.operand(from)?, self.operand(to)?);
                let above = compare(&value, CompareOp::Ge, &from)?;
                Some(above && compare(&value, CompareOp::Le, &to)?)
            }
            ConditionKind::Holds(operand) => match self.operand(operand)? {
                Value::Bool(b) => Some(b),
                Value::Number(_) | Value::Duration(_) | Value::Text(_) | Value::Word(_) => None,
            },
        }
    }

    /// Occurrences in a window. `active_zero` counts from what the last sample says.
    fn seen(&self, event: &EventRef, window: &Window) -> Vec<Instant> {
        let moments = match event.event {
            Event::ActiveZero | Event::FirstActiveZero => {
                let now = self.facts.last().map(|f| f.at);
                let is = zero(self.facts, self.signals, self.disturbed, self.known);
                now.filter(|_| is).into_iter().collect()
            }
            _ => occurrences(&event.event, self.facts, self.disturbed, self.known),
        };
        let edge = |e: &Option<EventRef>| {
            e.as_ref().map(|e| {
                occurrences(&e.event, self.facts, self.disturbed, self.known)
                    .first()
                    .copied()
            })
        };
        match (edge(&window.from), edge(&window.until)) {
            // A window that has not begun holds nothing.
            (Some(None), _) => Vec::new(),
            (from, until) => moments
                .into_iter()
                .filter(|at| from.flatten().is_none_or(|f| *at > f) && until.flatten().is_none_or(|u| *at <= u))
                .collect(),
        }
    }

    fn operand(&self, operand: &Operand) -> Option<Value> {
        match &operand.kind {
            OperandKind::Number(n) | OperandKind::Percent(n) | OperandKind::Rate(n) => Some(Value::Number(*n)),
            OperandKind::Duration(d) => Some(Value::Duration(*d)),
            OperandKind::Text(text) => Some(Value::Text(text.clone())),
            OperandKind::Bool(b) => Some(Value::Bool(*b)),
            OperandKind::Word(word) => Some(Value::Word(*word)),
            OperandKind::Env(_, value) => value.clone().map(Value::Text),
            OperandKind::Count(event, window) => Some(Value::Number(self.seen(event, window).len() as f64)),
            OperandKind::Gap(a, b) => {
                let first = |e: &EventRef| self.seen(e, &Window::default()).first().copied();
                Some(Value::Duration(first(b)? - first(a)?))
            }
            OperandKind::Status(id) => self.step(id, StepField::Status),
            OperandKind::Outcome(id) => self.step(id, StepField::Outcome),
            OperandKind::DurationOf(id) => self.step(id, StepField::Duration),
            OperandKind::Bytes(id) => self.step(id, StepField::Bytes),
            OperandKind::StepResult(id, field) => self.step(id, *field),
            OperandKind::Reply(field) => self.known.reply?.get(field).cloned(),
            OperandKind::Target(field) => {
                let target = self.known.target?;
                Some(Value::Text(match field {
                    TargetField::Pod => target.pod.name.clone(),
                    TargetField::Uid => target.pod.uid.clone(),
                    TargetField::Node => target.node.clone()?,
                    TargetField::Ip => target.ip.clone()?,
                }))
            }
            OperandKind::Run(field) => self.known.run.get(field).cloned().map(Value::Text),
            OperandKind::Signal(signal) => self.signal(*signal),
            OperandKind::Add(a, b) => arithmetic(&self.operand(a)?, &self.operand(b)?, 1.0),
            OperandKind::Sub(a, b) => arithmetic(&self.operand(a)?, &self.operand(b)?, -1.0),
            OperandKind::Neg(a) => match self.operand(a)? {
                Value::Number(n) => Some(Value::Number(-n)),
                Value::Duration(d) => Some(Value::Duration(-d)),
                Value::Text(_) | Value::Word(_) | Value::Bool(_) => None,
            },
            // Judgements, numbers of loads and details of events come from the evidence as a whole.
            OperandKind::Fate(_)
            | OperandKind::Cause(_)
            | OperandKind::Requests(_)
            | OperandKind::Disrupted(_)
            | OperandKind::DisruptionRate(_)
            | OperandKind::Latency(..)
            | OperandKind::DownTime(None | Some(ServerChoice::Any | ServerChoice::Others))
            | OperandKind::EventField(..) => None,
        }
    }

    fn step(&self, id: &Id, field: StepField) -> Option<Value> {
        self.known.steps.get(id)?.get(&field).cloned()
    }

    fn signal(&self, signal: Signal) -> Option<Value> {
        let gauges = || self.signals.gauges.get(&self.known.target?.pod.name);
        let number = |n: u64| Some(Value::Number(n as f64));
        match signal {
            Signal::Active => number(gauges()?.active()?),
            Signal::Downstream => number(gauges()?.downstream()?),
            Signal::Upstream => number(gauges()?.upstream()?),
            Signal::ReadyReplicas => number(self.signals.ready.as_ref()?.len() as u64),
            Signal::LbStatus => {
                let server = self.known.target?.server.as_ref()?;
                Some(Value::Word(Word::LbStatus(self.signals.servers.get(server)?.0)))
            }
            Signal::Health => Some(Value::Word(Word::Health(self.signals.health?))),
        }
    }
}

fn arithmetic(a: &Value, b: &Value, sign: f64) -> Option<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(Value::Number(a + sign * b)),
        (Value::Duration(a), Value::Duration(b)) => Some(Value::Duration(if sign > 0.0 { *a + *b } else { *a - *b })),
        _ => None,
    }
}

/// `None` when the two are of different kinds.
fn compare(a: &Value, op: CompareOp, b: &Value) -> Option<bool> {
    let order = match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.partial_cmp(b)?,
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Word(a), Value::Word(b)) => {
            let equal = a == b;
            return match op {
                CompareOp::Eq => Some(equal),
                CompareOp::Ne => Some(!equal),
                CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => None,
            };
        }
        _ => return None,
    };
    Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
    })
}

use std::fmt;

use super::{CompareOp, EventRef, TextSpan};
use crate::language::Id;
use crate::language::vocabulary::{EventField, RunField, ServerChoice, Signal, StepField, TargetField, Word, WordSet};
use crate::time::Duration;

/// Something that holds, does not hold, or cannot be decided: a resolved expression.
///
/// Short forms are written out: `X_before(Y)`, `before(X, Y)` and `after(Y, X)` are one [`ConditionKind::Before`], `within` is
/// a gap in a range, `protected(R)` and `broken(R)` are comparisons of a fate, a bare event in `wait_for` is
/// [`ConditionKind::Exists`].
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Where it stands in the expression's text.
    pub at: TextSpan,
    /// What it is.
    pub kind: ConditionKind,
}

/// What a condition is.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionKind {
    /// Kleene's or.
    Or(Box<Condition>, Box<Condition>),
    /// Kleene's and.
    And(Box<Condition>, Box<Condition>),
    /// Kleene's not.
    Not(Box<Condition>),
    /// The first event happened before the second.
    Before(EventRef, EventRef),
    /// The event happened in the window.
    Exists(EventRef, Window),
    /// The event did not happen in the window, and what would have shown it was watching.
    Never(EventRef, Window),
    /// A condition over signals holds in the whole window.
    Always(Box<Condition>, Window),
    /// The probe was live before the first step and lost nothing.
    Complete(Id),
    /// A comparison; both sides have the same type.
    Compare(Operand, CompareOp, Operand),
    /// The value lies between the ends, both included.
    In(Operand, Operand, Operand),
    /// A value of type bool on its own: `vars.fast`.
    Holds(Operand),
}

/// A part of the run. An open side is the run's begin or end; an event stands for its first occurrence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// After this event.
    pub from: Option<EventRef>,
    /// Until this event.
    pub until: Option<EventRef>,
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// Where it stands in the expression's text.
    pub at: TextSpan,
    /// Its type.
    pub ty: Type,
    /// What it is.
    pub kind: OperandKind,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// A number without a unit: status, count, bytes, exit code.
    Number,
    /// A length of time.
    Duration,
    /// A share.
    Percent,
    /// So many per second.
    Rate,
    /// A text.
    Text,
    /// true or false.
    Bool,
    /// A word of a closed set.
    Word(WordSet),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "a number",
            Self::Duration => "a duration",
            Self::Percent => "a percentage",
            Self::Rate => "a rate",
            Self::Text => "a text",
            Self::Bool => "true or false",
            Self::Word(WordSet::LbStatus) => "a state of a server",
            Self::Word(WordSet::Health) => "an answer of the health page",
            Self::Word(WordSet::Outcome) => "an outcome of a request",
            Self::Word(WordSet::StepOutcome) => "an outcome of a call",
            Self::Word(WordSet::Fate) => "a fate",
            Self::Word(WordSet::Cause) => "a cause",
            Self::Word(WordSet::Party) => "a sender of a packet",
        })
    }
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum OperandKind {
    /// A number.
    Number(f64),
    /// A duration.
    Duration(Duration),
    /// A percentage as written: 0.1 for `0.1%`.
    Percent(f64),
    /// A rate per second.
    Rate(f64),
    /// A text.
    Text(String),
    /// true or false.
    Bool(bool),
    /// A word of a closed set.
    Word(Word),
    /// `count(X)` in a window.
    Count(EventRef, Window),
    /// `gap(X, Y)`: from the first to the second, negative when the second came first.
    Gap(EventRef, EventRef),
    /// `status(R)`.
    Status(Id),
    /// `outcome(R)`.
    Outcome(Id),
    /// `duration(R)`.
    DurationOf(Id),
    /// `bytes(R)`.
    Bytes(Id),
    /// `fate(R)`.
    Fate(Id),
    /// `cause(R)`.
    Cause(Id),
    /// `requests(L)`.
    Requests(Id),
    /// `disrupted(L)`.
    Disrupted(Id),
    /// `disruption_rate(L)`.
    DisruptionRate(Id),
    /// `latency(L, p%)`, the percentile as written: 99 for `99%`.
    Latency(Id, f64),
    /// `down_time(any)`; without a choice the target's server.
    DownTime(Option<ServerChoice>),
    /// A sampled signal, at the moment of asking or inside `always`.
    Signal(Signal),
    /// A detail of an event's first occurrence.
    EventField(EventRef, EventField),
    /// `steps.evict.status`.
    StepResult(Id, StepField),
    /// A detail of the last reply, in a poll's `until`.
    Reply(StepField),
    /// `target.node`.
    Target(TargetField),
    /// `run.id`.
    Run(RunField),
    /// `env.NAME`: a secret; `None` when read back from a run folder, where it is not kept.
    Env(String, Option<String>),
    /// `a + b`.
    Add(Box<Operand>, Box<Operand>),
    /// `a - b`.
    Sub(Box<Operand>, Box<Operand>),
    /// `-a`.
    Neg(Box<Operand>),
}

impl Condition {
    /// Every event that it names, those that bound windows included.
    pub fn events(&self) -> Vec<&EventRef> {
        let mut found = Vec::new();
        self.collect_events(&mut found);
        found
    }

    fn collect_events<'a>(&'a self, found: &mut Vec<&'a EventRef>) {
        match &self.kind {
            ConditionKind::Or(a, b) | ConditionKind::And(a, b) => {
                a.collect_events(found);
                b.collect_events(found);
            }
            ConditionKind::Not(a) => a.collect_events(found),
            ConditionKind::Before(x, y) => found.extend([x, y]),
            ConditionKind::Exists(x, window) | ConditionKind::Never(x, window) => {
                found.push(x);
                found.extend(window.from.iter().chain(&window.until));
            }
            ConditionKind::Always(inner, window) => {
                inner.collect_events(found);
                found.extend(window.from.iter().chain(&window.until));
            }
            ConditionKind::Complete(_) => {}
            ConditionKind::Compare(a, _, b) => {
                a.collect_events(found);
                b.collect_events(found);
            }
            ConditionKind::In(v, low, high) => {
                v.collect_events(found);
                low.collect_events(found);
                high.collect_events(found);
            }
            ConditionKind::Holds(v) => v.collect_events(found),
        }
    }
}

impl Operand {
    fn collect_events<'a>(&'a self, found: &mut Vec<&'a EventRef>) {
        match &self.kind {
            OperandKind::Count(x, window) => {
                found.push(x);
                found.extend(window.from.iter().chain(&window.until));
            }
            OperandKind::Gap(x, y) => found.extend([x, y]),
            OperandKind::EventField(x, _) => found.push(x),
            OperandKind::Add(a, b) | OperandKind::Sub(a, b) => {
                a.collect_events(found);
                b.collect_events(found);
            }
            OperandKind::Neg(a) => a.collect_events(found),
            OperandKind::Number(_)
            | OperandKind::Duration(_)
            | OperandKind::Percent(_)
            | OperandKind::Rate(_)
            | OperandKind::Text(_)
            | OperandKind::Bool(_)
            | OperandKind::Word(_)
            | OperandKind::Status(_)
            | OperandKind::Outcome(_)
            | OperandKind::DurationOf(_)
            | OperandKind::Bytes(_)
            | OperandKind::Fate(_)
            | OperandKind::Cause(_)
            | OperandKind::Requests(_)
            | OperandKind::Disrupted(_)
            | OperandKind::DisruptionRate(_)
            | OperandKind::Latency(..)
            | OperandKind::DownTime(_)
            | OperandKind::Signal(_)
            | OperandKind::StepResult(..)
            | OperandKind::Reply(_)
            | OperandKind::Target(_)
            | OperandKind::Run(_)
            | OperandKind::Env(..) => {}
        }
    }
}

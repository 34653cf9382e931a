//! The expression language of assertions, `when`, `until` and `wait_for`: one grammar, four places.
//!
//! ```text
//! text -> tokens -> syntax tree (knows no names) -> condition (typed, every name resolved)
//! ```

mod condition;
mod event;
mod finding;
mod parse;
mod resolve;
mod scope;
mod show;
mod syntax;
mod token;

pub use condition::{Condition, ConditionKind, Operand, OperandKind, Type, Window};
pub use event::{Event, EventRef, LbChange, Pattern, Side};
pub use finding::Finding;
pub use parse::parse;
pub(crate) use resolve::results;
pub use scope::{ProbeShape, Scope, StepShape};
pub use syntax::{Argument, CompareOp, Expr, ExprKind, Name, Per, TextSpan, WordAt};

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::diagnostic::Span;
use crate::language::{Id, Variable};

/// An expression: the author's text, where it stands, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// As the author wrote it, variables included.
    pub text: String,
    /// The scalar in the scenario file that holds it.
    pub span: Span,
    /// Which kind of place that is.
    pub place: Place,
    /// What its names meant, so that the text can be read again without the scenario.
    pub names: UsedNames,
    /// What it means.
    pub condition: Condition,
}

/// Where an expression stands: that decides what it may speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Judged after the run: events, requests, loads.
    Assertion,
    /// Asked when its step begins: results of earlier steps, events so far, signals now.
    When,
    /// Asked again and again: events, signals.
    WaitFor,
    /// Ends a load: events, signals.
    Until,
    /// Asked of each reply of a poll.
    PollUntil,
}

impl Expression {
    /// Reads an expression and resolves its names.
    ///
    /// # Errors
    /// Everything that is wrong with it, at places inside its text.
    pub fn read(text: &str, span: Span, place: Place, scope: &Scope) -> Result<Self, Vec<Finding>> {
        let expr = parse(text).map_err(|finding| vec![finding])?;
        let (condition, names) = resolve::resolve(&expr, scope, place)?;
        Ok(Self {
            text: text.to_owned(),
            span,
            place,
            names,
            condition,
        })
    }
}

/// What the names in an expression meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsedNames {
    /// Variables, with the values of this run.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub vars: IndexMap<Id, Variable>,
    /// Steps whose results it names, with their kind.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub steps: IndexMap<Id, StepShape>,
    /// Aliases of FSM states, with the state's own name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub states: IndexMap<String, String>,
}

/// An expression in `plan.json`: its text, and what is needed to read it again.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
    span: Span,
    place: Place,
    #[serde(default)]
    names: UsedNames,
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self {
            text,
            span,
            place,
            names,
            condition: _,
        } = self;
        Written {
            text: text.clone(),
            span: *span,
            place: *place,
            names: names.clone(),
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let Written {
            text,
            span,
            place,
            names,
        } = Written::deserialize(d)?;
        let scope = Scope::believing(names);
        Self::read(&text, span, place, &scope).map_err(|findings| {
            let reason = findings.first().map_or("", |finding| finding.message.as_str());
            serde::de::Error::custom(format!("`{text}`: {reason}"))
        })
    }
}

#[cfg(test)]
mod tests;

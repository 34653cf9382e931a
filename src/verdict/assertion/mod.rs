//! Assertions: three-valued, with margins and reasons.

pub mod complete;
pub mod condition;
pub mod judgement;
pub mod occurrence;
pub mod signal;
pub mod value;

use super::{Account, Finding, FindingKind};
use crate::language::plan::{Assertion, Plan};
use crate::time::Duration;
use crate::timeline::Timeline;
use crate::timeline::event::Event;

/// What an assertion may speak of.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The run on one time axis.
    pub timeline: &'a Timeline<'a>,
    /// Its events.
    pub events: &'a [Event],
    /// Fates, orders and loads.
    pub account: &'a Account,
    /// What was claimed.
    pub plan: &'a Plan,
}

impl<'a> Scope<'a> {
    /// Puts them together.
    pub fn new(timeline: &'a Timeline<'a>, events: &'a [Event], account: &'a Account, plan: &'a Plan) -> Self {
        Self {
            timeline,
            events,
            account,
            plan,
        }
    }
}

/// Evaluates one assertion.
pub fn evaluate(scope: &Scope<'_>, assertion: &Assertion) -> Finding {
    let j = condition::evaluate(scope, &assertion.expression.condition);
    let span = assertion.expression.span;
    Finding {
        assert: assertion.text().to_owned(),
        name: assertion.name.clone(),
        because: assertion.because.clone(),
        kind: FindingKind::Assertion,
        verdict: j.outcome,
        margin_s: j.margin.map(|(m, _)| rounded(m)),
        margin_error_s: j.margin.map(|(_, e)| rounded(e)),
        error_budget: j.budget,
        explanation: j.explanation,
        reason: j.reason,
        events: j.events,
        span: Some((span.start, span.end)),
    }
}

/// Seconds with microseconds: finer is not measured.
fn rounded(d: Duration) -> f64 {
    (d.as_secs_f64() * 1e6).round() / 1e6
}

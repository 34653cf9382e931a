//! Assertions: three-valued, with margins and reasons.

use super::{Account, Finding, FindingKind, Outcome};
use crate::language::plan::{Assertion, Plan};
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
    let _ = scope;
    Finding {
        assert: assertion.text().to_owned(),
        name: assertion.name.clone(),
        because: assertion.because.clone(),
        kind: FindingKind::Assertion,
        verdict: Outcome::Inconclusive,
        margin_s: None,
        margin_error_s: None,
        error_budget: Vec::new(),
        explanation: String::new(),
        reason: None,
        events: Vec::new(),
        span: None,
    }
}

//! Is a file right? One file per kind of rule; all findings of a file at once.

pub(crate) mod expression;
mod produced;
mod request;
pub(crate) mod shape;
mod stake;
mod timing;
mod vacuous;
mod walk;

use crate::diagnostic::Diagnostic;
use crate::language::plan::Plan;

/// Checks beyond shape and names, on a plan in which nothing is wrong.
pub(crate) fn plan(plan: &Plan) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    produced::check(plan, &mut out);
    request::check(plan, &mut out);
    stake::check(plan, &mut out);
    timing::check(plan, &mut out);
    vacuous::check(plan, &mut out);
    out
}

//! Assertions that nothing a run shows could change.

use super::walk::place;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::expression::{CompareOp, Condition, ConditionKind, Operand, OperandKind};
use crate::language::plan::Plan;

pub(super) fn check(plan: &Plan, out: &mut Vec<Diagnostic>) {
    for assertion in &plan.assertions {
        let condition = &assertion.expression.condition;
        let Some(holds) = known(condition) else { continue };
        let message = if holds {
            "this assertion holds whatever a run shows"
        } else {
            "this assertion cannot hold, whatever a run shows"
        };
        let span = place(plan, &assertion.expression, condition.at);
        let help = if holds {
            "an assertion that cannot fail proves nothing"
        } else {
            "the run could only fail"
        };
        out.push(Diagnostic::warning(Code::Vacuous, message).at(span, "").help(help));
    }
}

/// The value of a condition that no evidence can change.
fn known(condition: &Condition) -> Option<bool> {
    match &condition.kind {
        ConditionKind::Or(a, b) => match (known(a), known(b)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        ConditionKind::And(a, b) => match (known(a), known(b)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        ConditionKind::Not(a) => known(a).map(|value| !value),
        ConditionKind::Compare(a, op, b) => compare(a, *op, b).or_else(|| compare(b, op.mirrored(), a)),
        ConditionKind::In(value, low, high) => {
            let (above, below) = (compare(value, CompareOp::Ge, low), compare(value, CompareOp::Le, high));
            match (above, below) {
                (Some(true), Some(true)) => Some(true),
                (Some(false), _) | (_, Some(false)) => Some(false),
                _ => None,
            }
        }
        ConditionKind::Holds(operand) => match operand.kind {
            OperandKind::Bool(value) => Some(value),
            _ => None,
        },
        ConditionKind::Before(..)
        | ConditionKind::Exists(..)
        | ConditionKind::Never(..)
        | ConditionKind::Always(..)
        | ConditionKind::Complete(_) => None,
    }
}

/// The smallest and largest value that something can have, in the unit of its type.
fn range(operand: &Operand) -> Option<(f64, f64)> {
    if let Some(value) = operand.constant() {
        return Some((value, value));
    }
    match operand.kind {
        OperandKind::Count(..)
        | OperandKind::Bytes(_)
        | OperandKind::Requests(_)
        | OperandKind::Disrupted(_)
        | OperandKind::DurationOf(_)
        | OperandKind::Latency(..)
        | OperandKind::DownTime(_) => Some((0.0, f64::INFINITY)),
        OperandKind::DisruptionRate(_) => Some((0.0, 100.0)),
        OperandKind::Status(_) => Some((100.0, 599.0)),
        _ => None,
    }
}

fn compare(a: &Operand, op: CompareOp, b: &Operand) -> Option<bool> {
    if a.kind == b.kind {
        return Some(op.holds(std::cmp::Ordering::Equal));
    }
    if is_word(a) && is_word(b) {
        return match op {
            CompareOp::Eq => Some(false),
            CompareOp::Ne => Some(true),
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => None,
        };
    }
    let ((a_low, a_high), (b_low, b_high)) = (range(a)?, range(b)?);
    match op {
        CompareOp::Ge if a_low >= b_high => Some(true),
        CompareOp::Ge if a_high < b_low => Some(false),
        CompareOp::Gt if a_low > b_high => Some(true),
        CompareOp::Gt if a_high <= b_low => Some(false),
        CompareOp::Le if a_high <= b_low => Some(true),
        CompareOp::Le if a_low > b_high => Some(false),
        CompareOp::Lt if a_high < b_low => Some(true),
        CompareOp::Lt if a_low >= b_high => Some(false),
        CompareOp::Eq if a_high < b_low || a_low > b_high => Some(false),
        CompareOp::Ne if a_high < b_low || a_low > b_high => Some(true),
        _ => None,
    }
}

fn is_word(operand: &Operand) -> bool {
    matches!(
        operand.kind,
        OperandKind::Word(_) | OperandKind::Text(_) | OperandKind::Bool(_)
    )
}

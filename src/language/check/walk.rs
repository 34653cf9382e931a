//! Through the parts of a plan: every expression, every event in it, every operand.

use crate::diagnostic::Span;
use crate::language::check::expression::Located;
use crate::language::expression::{
    Condition, ConditionKind, EventRef, Expression, Operand, OperandKind, TextSpan, Window,
};
use crate::language::plan::{LoadEnd, Plan, Verb};

/// Every expression of a plan: conditions of steps first, then the assertions.
pub(super) fn expressions(plan: &Plan) -> Vec<&Expression> {
    let mut out = Vec::new();
    for step in plan.all_steps() {
        out.extend(&step.when);
        match &step.verb {
            Verb::WaitFor(wait) => out.push(&wait.condition),
            Verb::Poll(poll) => out.extend(&poll.until),
            Verb::Load(load) => match &load.end {
                LoadEnd::Until(until) => out.push(until),
                LoadEnd::Duration(_) | LoadEnd::Steps => {}
            },
            Verb::Request(_)
            | Verb::DeletePod(_)
            | Verb::EvictPod(_)
            | Verb::Scale(_)
            | Verb::RolloutRestart(_)
            | Verb::DrainNode(_)
            | Verb::Label(_)
            | Verb::Wait(_)
            | Verb::Exec(_)
            | Verb::Ssh(_)
            | Verb::Snapshot(_)
            | Verb::Mark(_)
            | Verb::Parallel(_) => {}
        }
    }
    out.extend(plan.assertions.iter().map(|assertion| &assertion.expression));
    out
}

/// Every condition inside a condition, itself first.
pub(super) fn conditions<'a>(condition: &'a Condition, out: &mut Vec<&'a Condition>) {
    out.push(condition);
    match &condition.kind {
        ConditionKind::Or(a, b) | ConditionKind::And(a, b) => {
            conditions(a, out);
            conditions(b, out);
        }
        ConditionKind::Not(a) | ConditionKind::Always(a, _) => conditions(a, out),
        ConditionKind::Before(..)
        | ConditionKind::Exists(..)
        | ConditionKind::Never(..)
        | ConditionKind::Complete(_)
        | ConditionKind::Compare(..)
        | ConditionKind::In(..)
        | ConditionKind::Holds(_) => {}
    }
}

/// Every operand inside a condition.
pub(super) fn operands(condition: &Condition) -> Vec<&Operand> {
    fn inside<'a>(operand: &'a Operand, out: &mut Vec<&'a Operand>) {
        out.push(operand);
        if let OperandKind::Add(a, b) | OperandKind::Sub(a, b) = &operand.kind {
            inside(a, out);
            inside(b, out);
        }
        if let OperandKind::Neg(a) = &operand.kind {
            inside(a, out);
        }
    }
    let mut all = Vec::new();
    conditions(condition, &mut all);
    let mut out = Vec::new();
    for condition in all {
        match &condition.kind {
            ConditionKind::Compare(a, _, b) => [a, b].into_iter().for_each(|operand| inside(operand, &mut out)),
            ConditionKind::In(a, b, c) => [a, b, c].into_iter().for_each(|operand| inside(operand, &mut out)),
            ConditionKind::Holds(a) => inside(a, &mut out),
            ConditionKind::Or(..)
            | ConditionKind::And(..)
            | ConditionKind::Not(_)
            | ConditionKind::Before(..)
            | ConditionKind::Exists(..)
            | ConditionKind::Never(..)
            | ConditionKind::Always(..)
            | ConditionKind::Complete(_) => {}
        }
    }
    out
}

/// Every event that a condition names.
pub(super) fn events(condition: &Condition) -> Vec<&EventRef> {
    fn window<'a>(window: &'a Window, out: &mut Vec<&'a EventRef>) {
        out.extend(window.from.iter().chain(&window.until));
    }
    let mut all = Vec::new();
    conditions(condition, &mut all);
    let mut out = Vec::new();
    for condition in all {
        match &condition.kind {
            ConditionKind::Before(a, b) => out.extend([a, b]),
            ConditionKind::Exists(event, inside) | ConditionKind::Never(event, inside) => {
                out.push(event);
                window(inside, &mut out);
            }
            ConditionKind::Always(_, inside) => window(inside, &mut out),
            ConditionKind::Or(..)
            | ConditionKind::And(..)
            | ConditionKind::Not(_)
            | ConditionKind::Complete(_)
            | ConditionKind::Compare(..)
            | ConditionKind::In(..)
            | ConditionKind::Holds(_) => {}
        }
    }
    for operand in operands(condition) {
        match &operand.kind {
            OperandKind::Count(event, inside) => {
                out.push(event);
                window(inside, &mut out);
            }
            OperandKind::Gap(a, b) => out.extend([a, b]),
            OperandKind::EventField(event, _) => out.push(event),
            _ => {}
        }
    }
    out
}

/// The place in the scenario of a place in an expression.
pub(super) fn place(plan: &Plan, expression: &Expression, at: TextSpan) -> Span {
    Located {
        text: &expression.text,
        span: expression.span,
        sources: &plan.sources,
    }
    .place(at)
}

//! Is anything at stake: is there a disturbance, a request that it could hit, and no doubt about the pod that it hits?

use super::walk::{events, operands, place};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::expression::{ConditionKind, Event, Expression, OperandKind};
use crate::language::plan::{Plan, Verb};

pub(super) fn check(plan: &Plan, out: &mut Vec<Diagnostic>) {
    let steps = plan.all_steps();
    let acts = steps.iter().any(|step| step.verb.acts());
    let sends = steps
        .iter()
        .any(|step| matches!(step.verb, Verb::Request(_) | Verb::Load(_)));
    if !acts
        && let Some(assertion) = plan
            .assertions
            .iter()
            .find(|assertion| speaks_of_a_disturbance(&assertion.expression))
    {
        let span = place(plan, &assertion.expression, assertion.expression.condition.at);
        let message = "no step disturbs the workload: nothing is at stake for this assertion";
        let diagnostic = Diagnostic::warning(Code::NoDisturbance, message).at(span, "");
        out.push(
            diagnostic.help(
                "a step that acts is delete_pod, evict_pod, scale, rollout_restart, drain_node, label, exec or ssh",
            ),
        );
    }
    if plan.expected_failure
        && !sends
        && let Some(first) = plan.steps.first()
    {
        let message = "the scenario exists to show a loss (`expected_failure: true`), and no step sends a request that could be lost";
        out.push(
            Diagnostic::warning(Code::NoDisturbance, message)
                .at(first.span, "")
                .help("add a `request` or a `load`"),
        );
    }
    unsure_target(plan, out);
}

/// Judgements and orders around the end of a pod.
fn speaks_of_a_disturbance(expression: &Expression) -> bool {
    let judged = operands(&expression.condition).iter().any(|operand| {
        matches!(
            operand.kind,
            OperandKind::Fate(_) | OperandKind::Cause(_) | OperandKind::Gap(..)
        )
    });
    let ordered = matches!(expression.condition.kind, ConditionKind::Before(..));
    let about = |event: &Event| match event {
        Event::ActiveZero
        | Event::FirstActiveZero
        | Event::Drain
        | Event::Transition(..)
        | Event::Lb(..)
        | Event::PodGone
        | Event::Sigterm(_)
        | Event::ContainerExit(_) => true,
        Event::Step(_)
        | Event::Delete
        | Event::DrainListeners
        | Event::HealthFail
        | Event::LbReload
        | Event::Rst(_)
        | Event::Cut(_)
        | Event::Started(_)
        | Event::Ended(_)
        | Event::Finished(_)
        | Event::Failed(_)
        | Event::Goaway(_)
        | Event::PodTerminating
        | Event::PodReady
        | Event::NotReady
        | Event::EndpointRemoved
        | Event::RolloutStarted
        | Event::RolloutFinished
        | Event::Log(..)
        | Event::Mark(_) => false,
    };
    judged || ordered && events(&expression.condition).iter().any(|event| about(&event.event))
}

/// With several replicas, a request that nobody has seen in flight at the target may be on another pod.
fn unsure_target(plan: &Plan, out: &mut Vec<Diagnostic>) {
    let several = plan.preconditions.replicas.is_some_and(|replicas| replicas > 1);
    let steps = plan.all_steps();
    let kills = steps
        .iter()
        .any(|step| matches!(&step.verb, Verb::DeletePod(delete) | Verb::EvictPod(delete) if delete.pod.is_none()));
    let seen = steps
        .iter()
        .any(|step| matches!(&step.verb, Verb::Request(request) if request.expect_in_flight));
    if !several || !kills || seen {
        return;
    }
    for step in steps {
        if let Verb::Request(request) = &step.verb
            && request.background
        {
            let message =
                "with more than one replica this request may be on another pod than the one that is told to stop";
            let diagnostic = Diagnostic::warning(Code::Discouraged, message).at(step.span, "");
            out.push(diagnostic.help("`expect_in_flight: true` makes the pod that serves it the target"));
        }
    }
}

//! Requests in the background: is their end awaited, and are they still there when the disturbance begins?

use super::walk::events;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::Id;
use crate::language::expression::{Event, Expression};
use crate::language::plan::predict::work;
use crate::language::plan::{LoadEnd, Plan, Step, Verb};
use crate::time::Duration;

pub(super) fn check(plan: &Plan, out: &mut Vec<Diagnostic>) {
    list(plan, &plan.steps, out);
    for step in plan.all_steps() {
        if let Verb::Request(request) = &step.verb
            && request.expect_in_flight
            && !request.background
        {
            let message = "`expect_in_flight` holds the next step back until the request is in flight, and without `background: true` the next step begins when it is over";
            out.push(
                Diagnostic::warning(Code::Discouraged, message)
                    .at(step.span, "")
                    .help("add `background: true`"),
            );
        }
    }
}

fn list(plan: &Plan, steps: &[Step], out: &mut Vec<Diagnostic>) {
    for (index, step) in steps.iter().enumerate() {
        let after = &steps[index + 1..];
        match &step.verb {
            Verb::Request(request) if request.background => {
                if !awaited(
                    plan,
                    step.id.as_ref(),
                    after,
                    Some(request.stop_after.unwrap_or(request.timeout)),
                ) {
                    out.push(never_awaited(step, "request"));
                }
                ends_too_early(step, work(&request.path), after, out);
            }
            Verb::Load(load) => match load.end {
                LoadEnd::Duration(duration) if !awaited(plan, step.id.as_ref(), after, Some(duration)) => {
                    out.push(never_awaited(step, "load"))
                }
                LoadEnd::Duration(_) | LoadEnd::Until(_) | LoadEnd::Steps => {}
            },
            Verb::Parallel(parallel) => parallel.branches.values().for_each(|branch| list(plan, branch, out)),
            Verb::Request(_)
            | Verb::DeletePod(_)
            | Verb::EvictPod(_)
            | Verb::Scale(_)
            | Verb::RolloutRestart(_)
            | Verb::DrainNode(_)
            | Verb::Label(_)
            | Verb::Wait(_)
            | Verb::WaitFor(_)
            | Verb::Poll(_)
            | Verb::Exec(_)
            | Verb::Ssh(_)
            | Verb::Snapshot(_)
            | Verb::Mark(_) => {}
        }
    }
}

fn never_awaited(step: &Step, what: &str) -> Diagnostic {
    let message = format!("nobody waits for the end of this {what}: the end of the last step cuts it off");
    let help = match &step.id {
        Some(id) => format!("add `- wait_for: ended({id})`"),
        None => format!(
            "give it an id, as `id: long`, and add `- wait_for: ended(long)` behind the steps that disturb it; or leave the {what} in the foreground"
        ),
    };
    Diagnostic::warning(Code::NeverAwaited, message)
        .at(step.span, "")
        .help(help)
}

/// True when a later step waits for its end, or for something that comes after it, or when the fixed times that follow outlast it.
fn awaited(plan: &Plan, id: Option<&Id>, after: &[Step], limit: Option<Duration>) -> bool {
    let waits_for = |expression: &Expression| {
        events(&expression.condition).iter().any(|event| match &event.event {
            Event::Ended(other) | Event::Finished(other) | Event::Failed(other) => Some(other) == id,
            Event::PodGone | Event::RolloutFinished | Event::ContainerExit(_) => true,
            _ => false,
        })
    };
    // A request inside a branch of `parallel` may be awaited by any later step of the plan.
    let waits = plan.all_steps().into_iter().filter_map(|step| match &step.verb {
        Verb::WaitFor(wait) => Some(&wait.condition),
        _ => None,
    });
    let waited = after.iter().map(fixed).fold(Duration::ZERO, |sum, wait| sum + wait);
    let ends_inside = after.iter().any(|step| match &step.verb {
        Verb::DeletePod(delete) | Verb::EvictPod(delete) => delete.wait,
        Verb::RolloutRestart(restart) => restart.wait,
        _ => false,
    });
    waits.into_iter().any(waits_for) || limit.is_some_and(|limit| waited >= limit) || ends_inside && limit.is_none()
}

/// The time that a step takes at least.
pub(super) fn fixed(step: &Step) -> Duration {
    match &step.verb {
        Verb::Wait(wait) if step.when.is_none() => wait.duration,
        _ => Duration::ZERO,
    }
}

/// A request that is over before the first step that disturbs the pod.
fn ends_too_early(step: &Step, work: Option<Duration>, after: &[Step], out: &mut Vec<Diagnostic>) {
    let Some(work) = work else { return };
    let mut waited = Duration::ZERO;
    for next in after {
        if next.verb.acts() {
            if waited >= work {
                let message = format!(
                    "this request takes {work} and is over before the disturbance begins, {waited} later at the earliest"
                );
                let diagnostic =
                    Diagnostic::warning(Code::EndsTooEarly, message).at(step.span, format!("over after {work}"));
                out.push(
                    diagnostic
                        .at(next.span, "the disturbance")
                        .help("make the request longer, or the wait shorter"),
                );
            }
            return;
        }
        waited = waited + fixed(next);
    }
}

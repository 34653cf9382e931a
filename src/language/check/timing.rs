//! Times that cannot fit: a limit that is shorter than what it must outlast.

use super::request::fixed;
use super::walk::events;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::language::expression::{Event, LbChange};
use crate::language::plan::predict::work;
use crate::language::plan::{Plan, Step, Verb};
use crate::time::Duration;

pub(super) fn check(plan: &Plan, out: &mut Vec<Diagnostic>) {
    run(plan, out);
    detection(plan, out);
    for step in plan.all_steps() {
        if let Verb::Request(request) = &step.verb
            && let Some(work) = work(&request.path)
        {
            let limits = [
                (Some(request.timeout), "the client gives up after"),
                (server_timeout(plan), "the load balancer's `timeout server` is"),
            ];
            for (limit, what) in limits {
                if let Some(limit) =
                    limit.filter(|limit| *limit <= work && request.stop_after.is_none_or(|stop| stop > *limit))
                {
                    out.push(cannot_fit(
                        step.span,
                        format!("this request takes {work}, and {what} {limit}"),
                        "a 504 or a client's own time-out is no loss of the drain",
                    ));
                }
            }
        }
    }
    // A scenario that exists to show a loss may want what cannot fit.
    if !plan.expected_failure {
        grace(plan, out);
    }
}

fn cannot_fit(span: Span, message: String, help: &str) -> Diagnostic {
    Diagnostic::warning(Code::CannotFit, message).at(span, "").help(help)
}

/// What is known of the load balancer's `timeout server`.
fn server_timeout(plan: &Plan) -> Option<Duration> {
    let world = plan
        .environment
        .world
        .as_ref()
        .map(|world| world.load_balancer.timeout_server);
    plan.preconditions
        .load_balancer
        .timeout_server
        .or(plan.environment.load_balancer.facts.timeout_server)
        .or(world)
}

/// The run's limit against the fixed times of its steps.
fn run(plan: &Plan, out: &mut Vec<Diagnostic>) {
    fn total(steps: &[Step]) -> Duration {
        steps.iter().fold(Duration::ZERO, |sum, step| {
            sum + match &step.verb {
                Verb::Parallel(parallel) => parallel
                    .branches
                    .values()
                    .map(|branch| total(branch))
                    .max()
                    .unwrap_or_default(),
                _ => fixed(step),
            }
        })
    }
    let needed = total(&plan.steps);
    if needed >= plan.timeout
        && let Some(first) = plan.steps.first()
    {
        let message = format!(
            "the steps wait for {needed} in all, and the run's limit is {}",
            plan.timeout
        );
        out.push(cannot_fit(
            first.span,
            message,
            "raise `timeout:` at the top of the file",
        ));
    }
}

/// `wait_for: lb_down` right behind the disturbance, with less time than the checks need.
fn detection(plan: &Plan, out: &mut Vec<Diagnostic>) {
    let facts = &plan.preconditions.load_balancer;
    let world = plan.environment.world.as_ref().map(|world| &world.load_balancer);
    let declared = &plan.environment.load_balancer.facts;
    let inter = facts.inter.or(declared.inter).or(world.map(|lb| lb.inter));
    let fast = facts
        .fastinter
        .or(declared.fastinter)
        .or(world.and_then(|lb| lb.fastinter))
        .or(inter);
    let fall = facts.fall.or(declared.fall).or(world.map(|lb| lb.fall));
    let (Some(step_time), Some(fall)) = (fast, fall) else {
        return;
    };
    let window = step_time.times(i64::from(fall.saturating_sub(1)));
    for pair in plan.steps.windows(2) {
        let [before, step] = pair else { continue };
        let Verb::WaitFor(wait) = &step.verb else { continue };
        let down = events(&wait.condition.condition)
            .iter()
            .any(|event| event.event == Event::Lb(LbChange::Down, None));
        if let Some(limit) = step
            .timeout
            .filter(|limit| down && before.verb.acts() && *limit < window)
        {
            let message = format!(
                "the load balancer needs at least {window} to notice ({fall} failed checks), and this waits {limit}"
            );
            out.push(cannot_fit(
                step.span,
                message,
                "it may take up to `inter` and the time of a check longer",
            ));
        }
    }
}

/// The grace period against preStop hooks and against the work that is still to be done.
fn grace(plan: &Plan, out: &mut Vec<Diagnostic>) {
    let world = plan.environment.world.as_ref();
    let own = plan.preconditions.pod.grace.or(world.map(|world| world.pod.grace));
    let hook = plan.preconditions.pod.prestop.iter().max_by_key(|(_, hook)| hook.sleep);
    for (index, step) in plan.steps.iter().enumerate() {
        let (Verb::DeletePod(delete) | Verb::EvictPod(delete)) = &step.verb else {
            continue;
        };
        let Some(grace) = delete.grace.or(own).filter(|_| delete.pod.is_none()) else {
            continue;
        };
        if let Some((container, hook)) = hook.filter(|(_, hook)| hook.sleep >= grace) {
            let message = format!(
                "the pod is killed after {grace}, while the preStop of `{container}` still sleeps ({})",
                hook.sleep
            );
            out.push(cannot_fit(
                step.span,
                message,
                "the grace period covers preStop and what comes after it",
            ));
        }
        if let Some(left) = work_left(&plan.steps[..index]).filter(|left| *left > grace) {
            let message =
                format!("{left} of work are left when the pod is told to stop, and it is killed after {grace}");
            out.push(cannot_fit(
                step.span,
                message,
                "a longer grace period lets the drain end; `expected_failure: true` says that the loss is wanted",
            ));
        }
    }
}

/// The longest work that is still going on behind these steps.
fn work_left(steps: &[Step]) -> Option<Duration> {
    let mut waited = Duration::ZERO;
    let mut longest = None;
    for step in steps.iter().rev() {
        waited = waited + fixed(step);
        if let Verb::Request(request) = &step.verb
            && request.background
            && let Some(work) = work(&request.path)
        {
            let limit = work.min(request.timeout).min(request.stop_after.unwrap_or(work));
            longest = longest.max(Some(limit - waited));
        }
    }
    longest.filter(|left| *left > Duration::ZERO)
}

//! Can some probe or step of the scenario show each event and signal that it names?

use super::walk::{events, expressions, operands, place};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::expression::{Event, Expression, OperandKind, TextSpan};
use crate::language::plan::{Plan, Protocol, Verb};
use crate::language::vocabulary::Signal;

pub(super) fn check(plan: &Plan, out: &mut Vec<Diagnostic>) {
    for expression in expressions(plan) {
        for event in events(&expression.condition) {
            if let Some(missing) = event_source(plan, &event.event) {
                out.push(report(
                    plan,
                    expression,
                    event.at,
                    &format!("nothing in this scenario can show `{}`", event.event),
                    &missing,
                ));
            }
        }
        for operand in operands(&expression.condition) {
            let missing = match &operand.kind {
                OperandKind::Signal(signal) => signal_source(plan, *signal)
                    .map(|missing| (format!("nothing in this scenario samples `{signal}`"), missing)),
                OperandKind::DownTime(_) => needs(plan, &["haproxy_stat", "haproxy_log"])
                    .map(|missing| ("nothing in this scenario can show `down_time`".to_owned(), missing)),
                _ => None,
            };
            if let Some((message, missing)) = missing {
                out.push(report(plan, expression, operand.at, &message, &missing));
            }
        }
    }
}

fn report(plan: &Plan, expression: &Expression, at: TextSpan, message: &str, missing: &str) -> Diagnostic {
    Diagnostic::error(Code::NoSource, message)
        .at(place(plan, expression, at), "")
        .help(missing)
}

/// What is missing for an event; `None` when something can show it.
fn event_source(plan: &Plan, event: &Event) -> Option<String> {
    let step = |what: &str, is: &dyn Fn(&Verb) -> bool| {
        let there = plan.all_steps().iter().any(|step| is(&step.verb));
        (!there).then(|| format!("it needs a step `{what}`"))
    };
    match event {
        // Their ids were looked up: the step is there.
        Event::Step(_)
        | Event::Started(_)
        | Event::Ended(_)
        | Event::Finished(_)
        | Event::Failed(_)
        | Event::Mark(_)
        | Event::Log(..) => None,
        Event::Delete => step("delete_pod` or `evict_pod", &|verb| match verb {
            Verb::DeletePod(delete) | Verb::EvictPod(delete) => delete.pod.is_none(),
            Verb::DrainNode(_) => true,
            _ => false,
        }),
        Event::RolloutStarted | Event::RolloutFinished => step("rollout_restart", &|verb| {
            matches!(
                verb,
                Verb::RolloutRestart(_) | Verb::Exec(_) | Verb::Ssh(_) | Verb::Label(_)
            )
        })
        .or_else(|| needs(plan, &["pod_watch"])),
        Event::Goaway(id) => {
            let h2 = plan
                .step(id.as_str())
                .is_some_and(|step| matches!(&step.verb, Verb::Request(request) if request.protocol == Protocol::H2));
            (!h2).then(|| format!("GOAWAY exists in HTTP/2 only: give `{id}` `protocol: h2`"))
        }
        Event::Drain | Event::Transition(..) | Event::DrainListeners => needs(plan, &["container_log"]),
        Event::ActiveZero | Event::FirstActiveZero => needs(plan, &["envoy_active"]),
        Event::HealthFail => needs(plan, &["container_log", "haproxy_log", "health"]),
        Event::Lb(..) | Event::LbReload => needs(plan, &["haproxy_stat", "haproxy_log"]),
        Event::Rst(_) => needs(plan, &["rst_capture"]),
        Event::Cut(_) => needs(plan, &["rst_capture", "haproxy_log"]),
        Event::Sigterm(_) => needs(plan, &["container_log", "pod_watch"]),
        Event::ContainerExit(_)
        | Event::PodTerminating
        | Event::PodGone
        | Event::PodReady
        | Event::NotReady
        | Event::EndpointRemoved => needs(plan, &["pod_watch"]),
    }
}

fn signal_source(plan: &Plan, signal: Signal) -> Option<String> {
    match signal {
        Signal::Active | Signal::Downstream | Signal::Upstream => needs(plan, &["envoy_active"]),
        Signal::ReadyReplicas => needs(plan, &["pod_watch"]),
        Signal::LbStatus => needs(plan, &["haproxy_stat"]),
        Signal::Health => needs(plan, &["health"]),
    }
}

/// What is missing when no probe is of one of these kinds.
fn needs(plan: &Plan, kinds: &[&str]) -> Option<String> {
    let there = plan.probes.iter().any(|probe| kinds.contains(&probe.kind.name()));
    let list = kinds
        .iter()
        .map(|kind| format!("`{kind}`"))
        .collect::<Vec<_>>()
        .join(" or ");
    (!there).then(|| {
        format!(
            "it needs a probe of kind {list}, which environment `{}` cannot do by itself",
            plan.environment.name
        )
    })
}

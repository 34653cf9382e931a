//! Facts of the pod template against what is claimed, and traps that would spoil the measurement.

use super::Misses;
use crate::language::plan::{HpaPresence, SidecarKind};
use crate::run::context::Context;
use crate::time::Duration;
use crate::world::facts::{AutoscalerFacts, BudgetFacts, Container, DeploymentFacts, PreStop};
use crate::world::port::WorldError;

/// Compares the template with `preconditions.pod`.
pub(super) fn compare(
    ctx: &Context,
    deployment: &DeploymentFacts,
    budgets: Result<Vec<BudgetFacts>, WorldError>,
    autoscalers: Result<Vec<AutoscalerFacts>, WorldError>,
    misses: &mut Misses,
) {
    let wanted = &ctx.plan.preconditions.pod;
    let template = &deployment.template;
    let container = |key: &str| -> Option<&Container> {
        let name = ctx
            .plan
            .environment
            .workload
            .containers
            .get(key)
            .map_or(key, String::as_str);
        template.containers.iter().find(|c| c.name == name)
    };
    misses.compare("pod.grace", wanted.grace.as_ref(), Some(&template.grace));
    for (key, prestop) in &wanted.prestop {
        let found = container(key.as_str()).and_then(|c| match &c.prestop {
            Some(PreStop::Sleep(d)) => Some(*d),
            Some(PreStop::Exec(argv)) => sleep_of(argv),
            Some(PreStop::HttpGet(_)) | None => None,
        });
        misses.compare(
            &format!("pod.prestop.{key}.sleep"),
            Some(&prestop.sleep),
            found.as_ref(),
        );
    }
    if let Some(kind) = wanted.sidecar {
        let native = container("sidecar").map(|c| c.native_sidecar);
        let word = |native: bool| if native { "native" } else { "container" };
        let kind = match kind {
            SidecarKind::Native => true,
            SidecarKind::Container => false,
        };
        misses.compare("pod.sidecar", Some(&word(kind)), native.map(word).as_ref());
    }
    for (key, vars) in &wanted.env {
        for (name, value) in vars {
            let found = container(key.as_str())
                .and_then(|c| c.env.get(name))
                .and_then(Option::as_ref);
            misses.compare(&format!("pod.env.{key}.{name}"), Some(value), found);
        }
    }
    let drain = template
        .annotations
        .get("proxy.istio.io/config")
        .and_then(|text| termination_drain(text));
    misses.compare(
        "pod.termination_drain",
        wanted.termination_drain.as_ref(),
        drain.as_ref(),
    );
    if let Some(least) = wanted.pdb_min_available {
        let found = match &budgets {
            Ok(budgets) => budgets.iter().find_map(|b| b.min_available.clone()),
            Err(_) => None,
        };
        misses.compare("pod.pdb_min_available", Some(&least.to_string()), found.as_ref());
    }
    let drain_max = ["hc", "app"].iter().find_map(|key| {
        let value = container(key)?.env.get("DRAIN_MAX")?.as_ref()?;
        value.parse::<Duration>().ok()
    });
    misses.compare("pod.drain_max", wanted.drain_max.as_ref(), drain_max.as_ref());
    if wanted.hpa == HpaPresence::Absent
        && let Ok(found) = &autoscalers
        && let Some(autoscaler) = found.first()
    {
        misses.add(format!(
            "the HorizontalPodAutoscaler {} would change the replicas during the run; remove it or say `hpa: allowed`",
            autoscaler.name
        ));
    }
    warn_of_immediate_sigterm(ctx, deployment);
}

/// A container in the request's path without a preStop gets SIGTERM 0.04 s after the delete.
fn warn_of_immediate_sigterm(ctx: &Context, deployment: &DeploymentFacts) {
    let names: Vec<&str> = ["app", "sidecar"]
        .iter()
        .filter_map(|key| ctx.plan.environment.workload.containers.get(*key).map(String::as_str))
        .collect();
    for c in &deployment.template.containers {
        if c.prestop.is_none() && !c.native_sidecar && names.contains(&c.name.as_str()) {
            ctx.say(&format!(
                "warning: container {} has no preStop and is no native sidecar: it gets SIGTERM at once when its pod is deleted",
                c.name
            ));
        }
    }
}

/// `["sleep", "15"]`, `["sh", "-c", "sleep 15"]`.
fn sleep_of(argv: &[String]) -> Option<Duration> {
    let words: Vec<&str> = argv.iter().flat_map(|a| a.split_whitespace()).collect();
    let at = words.iter().position(|w| *w == "sleep" || w.ends_with("/sleep"))?;
    let number = words.get(at + 1)?;
    match number.parse::<i64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => number.parse().ok(),
    }
}

/// `terminationDrainDuration: 5s` in YAML or JSON.
fn termination_drain(config: &str) -> Option<Duration> {
    let after = config.split("terminationDrainDuration").nth(1)?;
    let value = after.trim_start_matches(['"', ':', ' ', '\'']);
    let end = value
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .unwrap_or(value.len());
    value[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_and_drain_durations_are_read_in_their_spellings() {
        let argv = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for words in [&["sleep", "15"][..], &["/bin/sh", "-c", "sleep 15"], &["sleep", "15s"]] {
            assert_eq!(sleep_of(&argv(words)), Some(Duration::from_secs(15)), "{words:?}");
        }
        assert_eq!(sleep_of(&argv(&["drain.sh"])), None);
        for text in [
            "terminationDrainDuration: 5s\n",
            "{\"terminationDrainDuration\":\"5s\"}",
        ] {
            assert_eq!(termination_drain(text), Some(Duration::from_secs(5)), "{text}");
        }
    }
}

//! PodDisruptionBudgets: how many pods may be evicted now.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::object::{is_true, name, namespace, number};
use super::super::resource::Kind;
use super::super::selector::Selector;
use super::super::status::Status;
use super::super::store::{Object, Store};
use super::replicaset::active_pods;

/// How a budget stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowance {
    /// Pods that the selector finds.
    expected: i64,
    /// Of these, Ready and not terminating.
    healthy: i64,
    /// How many must stay healthy.
    desired: i64,
}

impl Allowance {
    /// How many may go now.
    fn disruptions(self) -> i64 {
        if self.expected == 0 {
            0
        } else {
            (self.healthy - self.desired).max(0)
        }
    }
}

/// Counts for a budget.
fn allowance(store: &Store, budget: &Value) -> Allowance {
    let pods = active_pods(store, namespace(budget), &Selector::of(&budget["spec"]["selector"]));
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let expected = count(pods.len());
    let healthy = count(pods.iter().filter(|p| is_true(p, "Ready")).count());
    let part = |value: &Value| match value.as_str().and_then(|s| s.strip_suffix('%')?.parse::<i64>().ok()) {
        Some(percent) => (percent * expected + 99) / 100,
        None => value.as_i64().unwrap_or(0),
    };
    let desired = match budget["spec"].get("maxUnavailable") {
        Some(most) => (expected - part(most)).max(0),
        None => part(&budget["spec"]["minAvailable"]),
    };
    Allowance {
        expected,
        healthy,
        desired,
    }
}

/// Why a pod may not be evicted now, if a budget forbids it.
pub(crate) fn eviction_refusal(store: &Store, pod: &Object) -> Option<Status> {
    // A pod that is not Ready protects nobody.
    if !is_true(pod, "Ready") {
        return None;
    }
    let (_, budgets) = store.list(Kind::PodDisruptionBudget, Some(namespace(pod)));
    budgets
        .iter()
        .filter(|b| Selector::of(&b["spec"]["selector"]).matches(pod))
        .find_map(|budget| {
            let now = allowance(store, budget);
            (now.disruptions() < 1).then(|| Status::budget(name(budget), now.desired, now.healthy))
        })
}

pub(super) fn look(store: &Store) -> Option<Duration> {
    let (_, budgets) = store.list(Kind::PodDisruptionBudget, None);
    for budget in &budgets {
        let now = allowance(store, budget);
        let _ = store.update(Kind::PodDisruptionBudget, namespace(budget), name(budget), |b| {
            b["status"] = json!({
                "currentHealthy": now.healthy, "desiredHealthy": now.desired, "disruptionsAllowed": now.disruptions(),
                "expectedPods": now.expected, "observedGeneration": number(b, "/metadata/generation").unwrap_or(1),
            });
            Ok(())
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_the_pod_it_needs() {
        let store = Store::new();
        let budget = json!({"metadata": {"name": "b", "namespace": "n"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
        store.create(Kind::PodDisruptionBudget, budget).expect("budget");
        let pod = |name: &str| {
            json!({
                "metadata": {"name": name, "namespace": "n", "labels": {"app": "a"}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            })
        };
        let first = store.create(Kind::Pod, pod("p1")).expect("pod");
        let refusal = eviction_refusal(&store, &first).expect("refused");
        assert_eq!((refusal.code, refusal.reason), (429, "TooManyRequests"));
        assert_eq!(
            refusal.details["causes"][0]["message"],
            "The disruption budget b needs 1 healthy pods and has 1 currently"
        );
        store.create(Kind::Pod, pod("p2")).expect("pod");
        assert_eq!(eviction_refusal(&store, &first), None);
    }
}

//! What changes the cluster. Each call is sent once.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::Kubernetes;
use super::call::{Call, MERGE_PATCH, STRATEGIC_PATCH, send};
use crate::time::{Duration, Instant};
use crate::world::port::{ApiAnswer, ErrorKind, PodIdentity, WorldError};

/// What `kubectl rollout restart` sets.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Which pod a ReplicaSet gives up first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

impl Kubernetes {
    pub(super) async fn delete(&self, pod: &PodIdentity, grace: Option<Duration>) -> Result<ApiAnswer, WorldError> {
        let doing = format!("delete pod {}", pod.name);
        let options = delete_options(&doing, pod, grace)?;
        let call = Call::new(Method::DELETE, self.pod_path(&pod.name)).body("application/json", &options);
        send(&self.client, &doing, &call).await
    }

    pub(super) async fn evict(&self, pod: &PodIdentity, grace: Option<Duration>) -> Result<ApiAnswer, WorldError> {
        let doing = format!("evict pod {}", pod.name);
        // kube's own call writes `delete_options`, which the API ignores: the precondition would be lost.
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": pod.name, "namespace": self.namespace },
            "deleteOptions": delete_options(&doing, pod, grace)?,
        });
        let path = format!("{}/eviction", self.pod_path(&pod.name));
        let call = Call::new(Method::POST, path).body("application/json", &eviction);
        send(&self.client, &doing, &call).await
    }

    pub(super) async fn set_replicas(&self, replicas: u32) -> Result<ApiAnswer, WorldError> {
        let doing = format!("scale deployment {} to {replicas}", self.deployment);
        let path = format!("{}/scale", self.deployment_path());
        self.patch(&doing, path, MERGE_PATCH, &json!({ "spec": { "replicas": replicas } }))
            .await
    }

    pub(super) async fn set_cost(&self, pod: &PodIdentity, cost: Option<i32>) -> Result<ApiAnswer, WorldError> {
        let doing = format!("set the deletion cost of pod {}", pod.name);
        let cost = cost.map(|cost| cost.to_string());
        // A patch knows no precondition. The uid in it cannot be changed: another pod of this name would be refused.
        self.confirm(&doing, pod).await?;
        let patch = json!({ "metadata": { "uid": pod.uid, "annotations": { DELETION_COST: cost } } });
        self.patch(&doing, self.pod_path(&pod.name), MERGE_PATCH, &patch).await
    }

    pub(super) async fn restart(&self, at: Instant) -> Result<ApiAnswer, WorldError> {
        let doing = format!("restart the rollout of deployment {}", self.deployment);
        let at = at.to_utc().format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = json!({ "spec": { "template": { "metadata": { "annotations": { RESTARTED_AT: at } } } } });
        self.patch(&doing, self.deployment_path(), STRATEGIC_PATCH, &patch)
            .await
    }

    pub(super) async fn set_labels(&self, labels: &BTreeMap<String, Option<String>>) -> Result<ApiAnswer, WorldError> {
        let doing = format!("label deployment {}", self.deployment);
        let patch = json!({ "metadata": { "labels": labels } });
        self.patch(&doing, self.deployment_path(), MERGE_PATCH, &patch).await
    }

    pub(super) async fn set_unschedulable(&self, node: &str, unschedulable: bool) -> Result<ApiAnswer, WorldError> {
        let word = if unschedulable { "cordon" } else { "uncordon" };
        // As kubectl does it: a node that may be used again has no such field.
        let value = if unschedulable { json!(true) } else { Value::Null };
        let patch = json!({ "spec": { "unschedulable": value } });
        self.patch(
            &format!("{word} node {node}"),
            format!("/api/v1/nodes/{node}"),
            STRATEGIC_PATCH,
            &patch,
        )
        .await
    }

    async fn patch(
        &self,
        doing: &str,
        path: String,
        content_type: &'static str,
        patch: &Value,
    ) -> Result<ApiAnswer, WorldError> {
        let call = Call::new(Method::PATCH, path)
            .query("fieldManager", "gtrun")
            .body(content_type, patch);
        send(&self.client, doing, &call).await
    }
}

/// With a precondition on the uid; a grace period has whole seconds.
fn delete_options(doing: &str, pod: &PodIdentity, grace: Option<Duration>) -> Result<Value, WorldError> {
    let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": pod.uid } });
    if let Some(grace) = grace {
        if grace < Duration::ZERO || grace.as_nanos() % 1_000_000_000 != 0 {
            let error = WorldError::new(ErrorKind::Failed, doing, format!("a grace period of {grace}"));
            return Err(error.with_help("the API takes whole seconds"));
        }
        options["gracePeriodSeconds"] = json!(grace.as_nanos() / 1_000_000_000);
    }
    Ok(options)
}

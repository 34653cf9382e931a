//! What the API tells about the workload, read as facts.

use futures::future::try_join;
use serde_json::Value;

use super::Kubernetes;
use super::call::{Call, list, read};
use crate::world::facts::{AutoscalerFacts, BudgetFacts, DeploymentFacts, NodeFacts, PodFacts, selects};
use crate::world::port::{ErrorKind, PodIdentity, WorldError};

/// The annotation that a Deployment and the ReplicaSet of its present template share.
const REVISION: &str = "deployment.kubernetes.io/revision";

impl Kubernetes {
    pub(super) async fn read_deployment(&self) -> Result<DeploymentFacts, WorldError> {
        let doing = format!("read deployment {}/{}", self.namespace, self.deployment);
        let object = read(&self.client, &doing, &Call::get(self.deployment_path()))
            .await
            .map_err(|error| match error.kind {
                ErrorKind::NotFound => error.with_help("correct `workload:` (namespace, deployment) or `context:`"),
                ErrorKind::Refused { .. }
                | ErrorKind::Unreachable
                | ErrorKind::Interrupted
                | ErrorKind::Unsupported
                | ErrorKind::Failed => error,
            })?;
        let facts = DeploymentFacts::from_object(object);
        let mut facts = facts.ok_or_else(|| WorldError::new(ErrorKind::Failed, &doing, "the answer has no name"))?;
        let doing = format!("read the ReplicaSets of {}", self.deployment);
        let path = format!("/apis/apps/v1/namespaces/{}/replicasets", self.namespace);
        let selector = facts.selector_text();
        let (sets, _) = list(&self.client, &doing, &path, &[("labelSelector", &selector)]).await?;
        facts.template_hash = template_hash(&facts, &sets);
        Ok(facts)
    }

    pub(super) async fn read_pods(&self, selector: &str) -> Result<Vec<PodFacts>, WorldError> {
        let doing = format!("read the pods with {selector}");
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let (items, _) = list(&self.client, &doing, &path, &[("labelSelector", selector)]).await?;
        let mut pods: Vec<_> = items.into_iter().filter_map(PodFacts::from_object).collect();
        pods.sort_by(|a, b| a.identity.cmp(&b.identity));
        Ok(pods)
    }

    /// Selector of the Deployment, read once: it cannot be changed.
    pub(super) async fn selector(&self) -> Result<String, WorldError> {
        let read = async { Ok(self.read_deployment().await?.selector_text()) };
        self.selector.get_or_try_init(|| read).await.cloned()
    }

    pub(super) async fn read_nodes(&self) -> Result<Vec<NodeFacts>, WorldError> {
        let (items, _) = list(&self.client, "read the nodes", "/api/v1/nodes", &[]).await?;
        Ok(items.iter().filter_map(NodeFacts::from_object).collect())
    }

    pub(super) async fn read_budgets(&self) -> Result<Vec<BudgetFacts>, WorldError> {
        let doing = "read the PodDisruptionBudgets";
        let path = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", self.namespace);
        let deployment = self.read_deployment();
        let (deployment, (items, _)) = try_join(deployment, list(&self.client, doing, &path, &[])).await?;
        let labels = &deployment.template.labels;
        // An empty selector matches all pods, none at all matches nothing (policy/v1).
        let matching = items
            .iter()
            .filter(|budget| budget["spec"]["selector"].is_object() && selects(&budget["spec"]["selector"], labels));
        Ok(matching.filter_map(BudgetFacts::from_object).collect())
    }

    pub(super) async fn read_autoscalers(&self) -> Result<Vec<AutoscalerFacts>, WorldError> {
        let doing = "read the HorizontalPodAutoscalers";
        let path = format!(
            "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
            self.namespace
        );
        let (items, _) = list(&self.client, doing, &path, &[]).await?;
        let ours = items.iter().filter(|scaler| {
            let target = &scaler["spec"]["scaleTargetRef"];
            target["kind"] == "Deployment" && target["name"] == self.deployment.as_str()
        });
        Ok(ours.filter_map(AutoscalerFacts::from_object).collect())
    }

    /// An error unless the pod of that name is that very pod.
    pub(super) async fn confirm(&self, doing: &str, pod: &PodIdentity) -> Result<Value, WorldError> {
        let object = read(&self.client, doing, &Call::get(self.pod_path(&pod.name))).await?;
        match object["metadata"]["uid"].as_str() {
            Some(uid) if uid == pod.uid => Ok(object),
            Some(_) | None => {
                let message = format!("pod {} is gone; another one has its name", pod.name);
                Err(WorldError::new(ErrorKind::NotFound, doing, message))
            }
        }
    }
}

/// Hash of the present template: that of the Deployment's own ReplicaSet with the same revision.
fn template_hash(deployment: &DeploymentFacts, sets: &[Value]) -> Option<String> {
    let revision = deployment.object["metadata"]["annotations"][REVISION].as_str()?;
    let ours = sets.iter().find(|set| {
        let meta = &set["metadata"];
        let owners = meta["ownerReferences"].as_array();
        let owned = owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == deployment.uid.as_str()));
        owned && meta["annotations"][REVISION] == revision
    })?;
    ours["metadata"]["labels"]["pod-template-hash"]
        .as_str()
        .map(str::to_owned)
}

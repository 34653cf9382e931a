//! What this identity may do, asked before it is done.

use http::Method;
use serde_json::json;

use super::Kubernetes;
use super::call::{Call, read};
use crate::world::port::{ErrorKind, WorldError};

/// API groups of the resources that gtrun uses, and whether they are of the whole cluster.
const RESOURCES: [(&str, &str, bool); 9] = [
    ("pods", "", false),
    ("events", "", false),
    ("nodes", "", true),
    ("deployments", "apps", false),
    ("replicasets", "apps", false),
    ("endpointslices", "discovery.k8s.io", false),
    ("poddisruptionbudgets", "policy", false),
    ("horizontalpodautoscalers", "autoscaling", false),
    ("leases", "coordination.k8s.io", false),
];

impl Kubernetes {
    /// `resource`: `pods`, `pods/eviction`.
    pub(super) async fn ask_access(&self, verb: &str, resource: &str) -> Result<bool, WorldError> {
        let doing = format!("ask whether {verb} {resource} is allowed");
        let (base, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let Some((_, group, everywhere)) = RESOURCES.iter().find(|(name, ..)| *name == base) else {
            return Err(WorldError::new(
                ErrorKind::Unsupported,
                doing,
                "gtrun does not know this resource",
            ));
        };
        // A right may be for one name only: the Deployment's, and the lease's. To create has no name.
        let name = match base {
            "deployments" => self.deployment.clone(),
            "leases" if verb != "create" => self.lease_name(),
            _ => String::new(),
        };
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": base,
                "subresource": subresource,
                "namespace": if *everywhere { "" } else { &self.namespace },
                "name": name,
            } },
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let call = Call::new(Method::POST, path).body("application/json", &review);
        let answer = read(&self.client, &doing, &call).await?;
        answer["status"]["allowed"]
            .as_bool()
            .ok_or_else(|| WorldError::new(ErrorKind::Failed, doing, "the answer does not say"))
    }
}

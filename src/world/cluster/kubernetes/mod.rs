//! A Kubernetes cluster by its API, bound to one namespace and one Deployment.
//!
//! Objects stay the JSON that came; `facts` understands it. A pod is name and uid everywhere: the API knows it by name,
//! so the uid goes with a change as a precondition, and is compared before a pod is read from.

mod access;
mod call;
mod change;
mod connect;
mod envoy;
mod exec;
mod forward;
mod health;
mod lease;
mod lines;
mod log;
mod objects;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::stream::BoxStream;
use tokio::sync::OnceCell;

use crate::language::plan;
use crate::time::{Duration, Instant};
use crate::world::facts::{AutoscalerFacts, BudgetFacts, DeploymentFacts, NodeFacts, PodFacts};
use crate::world::port::{
    ApiAnswer, Clock, Cluster, CommandOutput, LogItem, Pending, PodIdentity, Sampler, WatchItem, Watched, WorldError,
};

/// The cluster of an environment.
#[derive(Clone)]
pub struct Kubernetes {
    client: kube::Client,
    clock: Arc<dyn Clock>,
    namespace: String,
    deployment: String,
    /// Envoy's admin port on the pod's loopback.
    envoy_admin: u16,
    /// The pod's port that requests and checks come to.
    port: u16,
    /// Path of its health page.
    health_path: String,
    /// Name of the container that Envoy runs in.
    sidecar: String,
    selector: Arc<OnceCell<String>>,
}

impl Kubernetes {
    /// Reads the kubeconfig (`None`: `KUBECONFIG`, else `~/.kube/config`); nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `Unsupported` when there is no such context, or it cannot be used.
    pub async fn connect(
        environment: &plan::Environment,
        kubeconfig: Option<&Path>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WorldError> {
        let workload = &environment.workload;
        Ok(Self {
            client: connect::client(kubeconfig, environment.context.as_deref()).await?,
            clock,
            namespace: workload.namespace.clone(),
            deployment: workload.deployment.clone(),
            envoy_admin: workload.envoy_admin,
            port: workload.port,
            health_path: workload.health_path.clone(),
            sidecar: workload
                .containers
                .iter()
                .find(|(key, _)| key.as_str() == "sidecar")
                .map_or("istio-proxy", |(_, name)| name)
                .to_owned(),
            selector: Arc::default(),
        })
    }

    fn deployment_path(&self) -> String {
        format!(
            "/apis/apps/v1/namespaces/{}/deployments/{}",
            self.namespace, self.deployment
        )
    }

    fn pod_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/pods/{name}", self.namespace)
    }
}

impl Cluster for Kubernetes {
    fn deployment(&self) -> Pending<'_, DeploymentFacts> {
        self.read_deployment().boxed()
    }

    fn pods(&self) -> Pending<'_, Vec<PodFacts>> {
        async move { self.read_pods(&self.selector().await?).await }.boxed()
    }

    fn pods_by_label<'a>(&'a self, selector: &'a str) -> Pending<'a, Vec<PodFacts>> {
        self.read_pods(selector).boxed()
    }

    fn nodes(&self) -> Pending<'_, Vec<NodeFacts>> {
        self.read_nodes().boxed()
    }

    fn budgets(&self) -> Pending<'_, Vec<BudgetFacts>> {
        self.read_budgets().boxed()
    }

    fn autoscalers(&self) -> Pending<'_, Vec<AutoscalerFacts>> {
        self.read_autoscalers().boxed()
    }

    fn may<'a>(&'a self, verb: &'a str, resource: &'a str) -> Pending<'a, bool> {
        self.ask_access(verb, resource).boxed()
    }

    fn watch(&self, what: Watched) -> Pending<'_, BoxStream<'static, WatchItem>> {
        self.start_watch(what).boxed()
    }

    fn delete_pod<'a>(&'a self, pod: &'a PodIdentity, grace: Option<Duration>) -> Pending<'a, ApiAnswer> {
        self.delete(pod, grace).boxed()
    }

    fn evict_pod<'a>(&'a self, pod: &'a PodIdentity, grace: Option<Duration>) -> Pending<'a, ApiAnswer> {
        self.evict(pod, grace).boxed()
    }

    fn scale(&self, replicas: u32) -> Pending<'_, ApiAnswer> {
        self.set_replicas(replicas).boxed()
    }

    fn set_deletion_cost<'a>(&'a self, pod: &'a PodIdentity, cost: Option<i32>) -> Pending<'a, ApiAnswer> {
        self.set_cost(pod, cost).boxed()
    }

    fn restart_rollout(&self, at: Instant) -> Pending<'_, ApiAnswer> {
        self.restart(at).boxed()
    }

    fn label<'a>(&'a self, labels: &'a BTreeMap<String, Option<String>>) -> Pending<'a, ApiAnswer> {
        self.set_labels(labels).boxed()
    }

    fn cordon<'a>(&'a self, node: &'a str, unschedulable: bool) -> Pending<'a, ApiAnswer> {
        self.set_unschedulable(node, unschedulable).boxed()
    }

    fn take_lease<'a>(&'a self, holder: &'a str, lasts: Duration) -> Pending<'a, ApiAnswer> {
        self.take(holder, lasts).boxed()
    }

    fn release_lease<'a>(&'a self, holder: &'a str) -> Pending<'a, ()> {
        self.release(holder).boxed()
    }

    fn exec<'a>(&'a self, pod: &'a PodIdentity, container: &'a str, argv: &'a [String]) -> Pending<'a, CommandOutput> {
        self.run_command(pod, container, argv).boxed()
    }

    fn follow_log<'a>(
        &'a self,
        pod: &'a PodIdentity,
        container: &'a str,
        since: Option<Instant>,
    ) -> Pending<'a, BoxStream<'static, LogItem>> {
        self.start_log(pod, container, since).boxed()
    }

    fn envoy_stats<'a>(&'a self, pod: &'a PodIdentity, filter: &'a str) -> Pending<'a, Box<dyn Sampler>> {
        self.open_envoy(pod, filter).boxed()
    }

    fn health_page<'a>(&'a self, pod: &'a PodIdentity) -> Pending<'a, Box<dyn Sampler>> {
        self.open_health(pod).boxed()
    }
}

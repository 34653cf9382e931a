//! A Kubernetes of two or more nodes in one process: the API server, the controllers, the scheduler and the kubelets.
//!
//! It answers as a real API server does (1.34) as far as scenarios, `kube` and `kubectl` need it, and it keeps the pace
//! of a real cluster ([`timing`]). The pods are real processes.

pub(crate) mod api;
mod control;
mod defaults;
mod events;
pub(crate) mod kubelet;
pub(crate) mod manifest;
mod object;
mod pod_deletion;
mod resource;
mod selector;
mod status;
pub(crate) mod store;
mod timing;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::network::Host;
use super::state::StateDir;
use super::world::LabWorld;
use api::{Api, User};
use events::Recorder;
use kubelet::Kubelets;
pub(crate) use manifest::taint;
use object::is_true;
use resource::Kind;
use store::Store;

/// The parts of the cluster.
pub(crate) struct Cluster {
    /// The objects.
    pub(crate) store: Arc<Store>,
    /// What runs the pods.
    pub(crate) kubelets: Arc<Kubelets>,
    recorder: Arc<Recorder>,
}

impl Cluster {
    /// One with these nodes and nothing on them.
    pub(crate) fn new(state: StateDir, nodes: &[Host]) -> Self {
        let store = Arc::new(Store::new());
        let recorder = Arc::new(Recorder::new(Arc::clone(&store)));
        let kubelets = Arc::new(Kubelets::new(Arc::clone(&store), Arc::clone(&recorder), state, nodes));
        Self {
            store,
            kubelets,
            recorder,
        }
    }

    /// Its API server.
    pub(crate) fn api(&self, users: Vec<User>) -> Arc<Api> {
        Arc::new(Api {
            store: Arc::clone(&self.store),
            kubelets: Arc::clone(&self.kubelets),
            users,
        })
    }

    /// Creates the objects that the world asks for.
    ///
    /// # Errors
    /// The first refusal, as a sentence.
    pub(crate) fn populate(&self, world: &LabWorld, nodes: &[Host], envoy_configuration: &Path) -> Result<(), String> {
        let create = |kind: Kind, object: Value| self.store.create(kind, object).map(|_| ()).map_err(|s| s.message);
        for namespace in manifest::namespaces() {
            create(Kind::Namespace, namespace)?;
        }
        for host in nodes {
            let node = world.nodes.get(&host.name).cloned().unwrap_or_default();
            create(Kind::Node, manifest::node(host, &node))?;
        }
        create(Kind::Service, manifest::service())?;
        if let Some(budget) = manifest::disruption_budget(world) {
            create(Kind::PodDisruptionBudget, budget)?;
        }
        if let Some(autoscaler) = manifest::autoscaler(world) {
            create(Kind::HorizontalPodAutoscaler, autoscaler)?;
        }
        create(Kind::Deployment, manifest::deployment(world, envoy_configuration))
    }

    /// Runs controllers, scheduler and kubelets for as long as the lab is up.
    pub(crate) async fn run(&self) {
        tokio::join!(
            control::run(Arc::clone(&self.store), Arc::clone(&self.recorder)),
            Arc::clone(&self.kubelets).run(),
        );
    }

    /// How many pods of the workload are Ready, and how many have no node to go to.
    pub(crate) fn count_pods(&self) -> (usize, usize) {
        let (_, pods) = self.store.list(Kind::Pod, Some(manifest::NAMESPACE));
        let stuck = |p: &&store::Object| object::condition(p, "PodScheduled").is_some_and(|c| c["status"] == "False");
        (
            pods.iter().filter(|p| is_true(p, "Ready")).count(),
            pods.iter().filter(stuck).count(),
        )
    }

    /// The nodes whose pods are Ready.
    pub(crate) fn ready_nodes(&self) -> Vec<String> {
        let (_, pods) = self.store.list(Kind::Pod, Some(manifest::NAMESPACE));
        pods.iter()
            .filter(|p| is_true(p, "Ready") && !object::is_terminating(p))
            .map(|p| object::text(p, "/spec/nodeName").to_owned())
            .collect()
    }
}

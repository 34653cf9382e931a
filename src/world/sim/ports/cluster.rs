//! The cluster's port: the Kubernetes API over the model.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::super::Sim;
use super::super::model::Model;
use super::super::pod::envoy::StatFilter;
use super::super::pod::{PodId, Role};
use super::Spread;
use super::sampler::{Question, SimSampler};
use crate::time::{Duration, Instant};
use crate::world::facts::{AutoscalerFacts, BudgetFacts, DeploymentFacts, NodeFacts, PodFacts};
use crate::world::port::{
    ApiAnswer, Cluster, CommandOutput, ErrorKind, LogItem, Pending, PodIdentity, Sampler, WatchItem, Watched,
    WorldError,
};

/// To the API server, and from there to its decision.
const THERE: Spread = (1_000, 3_000, 14_000);
/// Back: the whole call takes 4 / 14 / 44 ms.
const BACK: Spread = (2_500, 10_000, 30_000);
/// Reads are quicker.
const READ: Spread = (800, 2_000, 9_000);

fn refused(status: u16, reason: &str, doing: String, message: &str) -> WorldError {
    let kind = ErrorKind::Refused {
        status,
        reason: reason.to_owned(),
    };
    WorldError::new(kind, doing, message)
}

fn missing_pod(doing: &str, pod: &PodIdentity) -> WorldError {
    WorldError::new(ErrorKind::NotFound, doing, format!("pods \"{}\" not found", pod.name))
}

impl Model {
    /// The pod, or why a change of it is refused: gone, or another pod of the same name.
    fn pod_to_change(&self, pod: &PodIdentity, doing: &str) -> Result<PodId, WorldError> {
        if let Some(id) = self.find_pod(pod) {
            return Ok(id);
        }
        let doing = format!("{doing} {}", pod.name);
        if self.pods.iter().any(|p| !p.gone && p.name == pod.name) {
            let message = "the UID in the precondition does not match the UID in record: another pod has this name now";
            return Err(refused(409, "Conflict", doing, message));
        }
        Err(missing_pod(&doing, pod))
    }

    /// `status.disruptionsAllowed` of the budget.
    fn disruptions_allowed(&self, least: u32) -> u32 {
        let healthy = self
            .pods
            .iter()
            .filter(|p| !p.gone && p.deletion.is_none() && p.ready.is_some())
            .count();
        u32::try_from(healthy).unwrap_or(u32::MAX).saturating_sub(least)
    }

    fn delete_as_asked(
        &mut self,
        pod: &PodIdentity,
        grace: Option<Duration>,
        doing: &str,
    ) -> Result<Value, WorldError> {
        let id = self.pod_to_change(pod, doing)?;
        let grace = grace.unwrap_or(self.spec.pod.grace);
        self.terminate_pod(id, grace);
        Ok(self.pod_object(id))
    }
}

/// An answer with an object.
fn answer(status: u16, object: Value) -> ApiAnswer {
    ApiAnswer { status, object }
}

impl Cluster for Sim {
    fn deployment(&self) -> Pending<'_, DeploymentFacts> {
        async move {
            let read = self.call(READ, READ, |m| {
                let hash = m.control.hashes[m.control.template].clone();
                (m.deployment_object(), hash)
            });
            let (object, hash) = read.await;
            let facts = DeploymentFacts::from_object(object);
            let nameless = || WorldError::new(ErrorKind::Failed, "read the Deployment", "it has no name");
            Ok(DeploymentFacts {
                template_hash: Some(hash),
                ..facts.ok_or_else(nameless)?
            })
        }
        .boxed()
    }

    fn pods(&self) -> Pending<'_, Vec<PodFacts>> {
        async move {
            let objects = self.call(READ, READ, |m| {
                let present: Vec<PodId> = (0..m.pods.len()).map(PodId).filter(|p| !m.pods[p.0].gone).collect();
                present.into_iter().map(|p| m.pod_object(p)).collect::<Vec<_>>()
            });
            let mut pods: Vec<PodFacts> = objects.await.into_iter().filter_map(PodFacts::from_object).collect();
            pods.sort_by(|a, b| a.identity.cmp(&b.identity));
            Ok(pods)
        }
        .boxed()
    }

    fn pods_by_label<'a>(&'a self, selector: &'a str) -> Pending<'a, Vec<PodFacts>> {
        async move {
            let wanted: Vec<_> = selector
                .split(',')
                .filter_map(|part| part.trim().split_once('='))
                .collect();
            let mut pods = self.pods().await?;
            pods.retain(|p| {
                wanted
                    .iter()
                    .all(|(k, v)| p.labels.get(*k).is_some_and(|have| have == v))
            });
            Ok(pods)
        }
        .boxed()
    }

    fn nodes(&self) -> Pending<'_, Vec<NodeFacts>> {
        async move {
            let objects = self.call(READ, READ, |m| {
                (0..m.spec.nodes.len()).map(|n| m.node_object(n)).collect::<Vec<_>>()
            });
            Ok(objects.await.iter().filter_map(NodeFacts::from_object).collect())
        }
        .boxed()
    }

    fn budgets(&self) -> Pending<'_, Vec<BudgetFacts>> {
        async move {
            let budgets = self.call(READ, READ, |m| {
                let budget = m.spec.pod.pdb_min_available.map(|least| BudgetFacts {
                    name: format!("{}-pdb", m.spec.names.deployment),
                    min_available: Some(least.to_string()),
                    max_unavailable: None,
                    disruptions_allowed: m.disruptions_allowed(least),
                });
                budget.into_iter().collect()
            });
            Ok(budgets.await)
        }
        .boxed()
    }

    fn autoscalers(&self) -> Pending<'_, Vec<AutoscalerFacts>> {
        async move {
            let found = self.call(READ, READ, |m| {
                let name = m.spec.names.deployment.clone();
                let autoscaler = m
                    .spec
                    .pod
                    .autoscaler
                    .then_some(AutoscalerFacts { name, min: 1, max: 4 });
                autoscaler.into_iter().collect()
            });
            Ok(found.await)
        }
        .boxed()
    }

    fn may<'a>(&'a self, _verb: &'a str, _resource: &'a str) -> Pending<'a, bool> {
        async move { Ok(self.call(READ, READ, |_| true).await) }.boxed()
    }

    fn watch(&self, what: Watched) -> Pending<'_, BoxStream<'static, WatchItem>> {
        async move {
            let (to, items) = mpsc::unbounded_channel();
            self.call(READ, READ, move |m| m.watch(what, to)).await;
            Ok(UnboundedReceiverStream::new(items).boxed())
        }
        .boxed()
    }

    fn delete_pod<'a>(&'a self, pod: &'a PodIdentity, grace: Option<Duration>) -> Pending<'a, ApiAnswer> {
        async move {
            let pod = pod.clone();
            let object = self.call(THERE, BACK, move |m| m.delete_as_asked(&pod, grace, "delete pod"));
            Ok(answer(200, object.await?))
        }
        .boxed()
    }

    fn evict_pod<'a>(&'a self, pod: &'a PodIdentity, grace: Option<Duration>) -> Pending<'a, ApiAnswer> {
        async move {
            let pod = pod.clone();
            let object = self.call(THERE, BACK, move |m| {
                if let Some(least) = m.spec.pod.pdb_min_available
                    && m.disruptions_allowed(least) == 0
                {
                    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
                    return Err(refused(
                        429,
                        "TooManyRequests",
                        format!("evict pod {}", pod.name),
                        message,
                    ));
                }
                m.delete_as_asked(&pod, grace, "evict pod")
            });
            Ok(answer(201, object.await?))
        }
        .boxed()
    }

    fn scale(&self, replicas: u32) -> Pending<'_, ApiAnswer> {
        async move {
            let object = self.call(THERE, BACK, move |m| {
                if m.control.replicas != replicas {
                    m.control.replicas = replicas;
                    m.control.generation += 1;
                    m.reconcile_soon();
                }
                m.deployment_object()
            });
            Ok(answer(200, object.await))
        }
        .boxed()
    }

    fn set_deletion_cost<'a>(&'a self, pod: &'a PodIdentity, cost: Option<i32>) -> Pending<'a, ApiAnswer> {
        async move {
            let pod = pod.clone();
            let object = self.call(THERE, BACK, move |m| {
                let id = m.pod_to_change(&pod, "annotate pod")?;
                m.pods[id.0].deletion_cost = cost;
                m.pod_changed(id);
                Ok::<_, WorldError>(m.pod_object(id))
            });
            Ok(answer(200, object.await?))
        }
        .boxed()
    }

    fn restart_rollout(&self, at: Instant) -> Pending<'_, ApiAnswer> {
        async move {
            let object = self.call(THERE, BACK, move |m| {
                let hash = m.dice.suffix(10);
                m.control.hashes.push(hash);
                m.control.restarted.push(Some(at.to_rfc3339()));
                m.control.template = m.control.hashes.len() - 1;
                m.control.generation += 1;
                m.reconcile_soon();
                m.deployment_object()
            });
            Ok(answer(200, object.await))
        }
        .boxed()
    }

    fn label<'a>(&'a self, labels: &'a BTreeMap<String, Option<String>>) -> Pending<'a, ApiAnswer> {
        async move {
            let labels = labels.clone();
            let object = self.call(THERE, BACK, move |m| {
                for (key, value) in labels {
                    match value {
                        Some(value) => m.control.labels.insert(key, value),
                        None => m.control.labels.remove(&key),
                    };
                }
                m.deployment_object()
            });
            Ok(answer(200, object.await))
        }
        .boxed()
    }

    fn cordon<'a>(&'a self, node: &'a str, unschedulable: bool) -> Pending<'a, ApiAnswer> {
        async move {
            let name = node.to_owned();
            let object = self.call(THERE, BACK, move |m| {
                let index = m.spec.nodes.iter().position(|n| n.name == name)?;
                m.control.cordoned[index] = unschedulable;
                m.schedule_pods_soon();
                Some(m.node_object(index))
            });
            let missing = || {
                WorldError::new(
                    ErrorKind::NotFound,
                    "cordon a node",
                    format!("nodes \"{node}\" not found"),
                )
            };
            Ok(answer(200, object.await.ok_or_else(missing)?))
        }
        .boxed()
    }

    fn take_lease<'a>(&'a self, holder: &'a str, lasts: Duration) -> Pending<'a, ApiAnswer> {
        async move {
            let holder = holder.to_owned();
            let taken = self.call(THERE, BACK, move |m| {
                let now = m.now;
                match &m.control.lease {
                    Some((other, until)) if *other != holder && *until > now => Err(other.clone()),
                    _ => {
                        m.control.lease = Some((holder, now + lasts));
                        Ok(())
                    }
                }
            });
            match taken.await {
                Ok(()) => Ok(answer(200, Value::Null)),
                Err(other) => {
                    let message = format!("another run has the workload: {other}");
                    Err(refused(409, "Conflict", "take the lease".to_owned(), &message))
                }
            }
        }
        .boxed()
    }

    fn release_lease<'a>(&'a self, holder: &'a str) -> Pending<'a, ()> {
        async move {
            let holder = holder.to_owned();
            let released = self.call(THERE, BACK, move |m| {
                if m.control.lease.as_ref().is_some_and(|(who, _)| *who == holder) {
                    m.control.lease = None;
                }
            });
            released.await;
            Ok(())
        }
        .boxed()
    }

    fn exec<'a>(&'a self, pod: &'a PodIdentity, container: &'a str, argv: &'a [String]) -> Pending<'a, CommandOutput> {
        async move {
            let (pod, container, argv) = (pod.clone(), container.to_owned(), argv.to_vec());
            let output = self.call((40_000, 70_000, 110_000), (40_000, 70_000, 110_000), move |m| {
                let doing = "run a command in a container";
                let id = m.find_pod(&pod).ok_or_else(|| missing_pod(doing, &pod))?;
                if m.role_of(&container).is_none_or(|r| !m.pods[id.0].runs(r)) {
                    let message = format!("container not found (\"{container}\")");
                    return Err(WorldError::new(ErrorKind::NotFound, doing, message));
                }
                Ok(m.command(&argv, Some(id)))
            });
            output.await
        }
        .boxed()
    }

    fn follow_log<'a>(
        &'a self,
        pod: &'a PodIdentity,
        container: &'a str,
        since: Option<Instant>,
    ) -> Pending<'a, BoxStream<'static, LogItem>> {
        async move {
            let (pod, container) = (pod.clone(), container.to_owned());
            let (to, items) = mpsc::unbounded_channel();
            let followed = self.call(READ, READ, move |m| {
                let doing = format!("follow the log of {}/{container}", pod.name);
                let id = m.find_pod(&pod).ok_or_else(|| missing_pod(&doing, &pod))?;
                let role: Option<Role> = m.role_of(&container);
                let message = format!("container {container} is not valid for pod {}", pod.name);
                let role = role.ok_or_else(|| WorldError::new(ErrorKind::NotFound, doing, message))?;
                m.follow(id, role, since, to);
                Ok::<_, WorldError>(())
            });
            followed.await?;
            Ok(UnboundedReceiverStream::new(items).boxed())
        }
        .boxed()
    }

    fn health_page<'a>(&'a self, pod: &'a PodIdentity) -> Pending<'a, Box<dyn Sampler>> {
        async move {
            let pod = pod.clone();
            let question = self.call((4_000, 15_000, 60_000), (1_000, 3_000, 9_000), move |m| {
                let id = m
                    .find_pod(&pod)
                    .ok_or_else(|| missing_pod("ask the health page", &pod))?;
                Ok::<_, WorldError>(Question::Health(id))
            });
            let question = question.await?;
            let sampler = SimSampler {
                sim: self.clone(),
                question,
                latency: (900, 2_400, 9_000),
            };
            Ok(Box::new(sampler) as Box<dyn Sampler>)
        }
        .boxed()
    }

    fn envoy_stats<'a>(&'a self, pod: &'a PodIdentity, filter: &'a str) -> Pending<'a, Box<dyn Sampler>> {
        async move {
            let (pod, filter) = (pod.clone(), filter.to_owned());
            let question = self.call((4_000, 15_000, 60_000), (1_000, 3_000, 9_000), move |m| {
                let doing = "open a port-forward to Envoy's admin";
                if m.spec.observation.no_gauges {
                    return Err(refused(
                        403,
                        "Forbidden",
                        doing.to_owned(),
                        "pods/portforward is forbidden",
                    ));
                }
                let id = m.find_pod(&pod).ok_or_else(|| missing_pod(doing, &pod))?;
                let filter = StatFilter::new(&filter, m.spec.observation.xds_stream);
                Ok(Question::Stats {
                    pod: id,
                    filter,
                    answered: false,
                })
            });
            let question = question.await?;
            let sampler = SimSampler {
                sim: self.clone(),
                question,
                latency: (900, 2_400, 9_000),
            };
            Ok(Box::new(sampler) as Box<dyn Sampler>)
        }
        .boxed()
    }
}

//! What a cluster tells about the workload: objects of the Kubernetes API reduced to what preflight and steps need.
//!
//! Every type is made from the API's own JSON, so that a real cluster, the lab and the simulator are read by the same
//! code. A field that is missing takes the API's default; one that makes no sense counts as missing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::port::PodIdentity;
use crate::time::{Duration, Instant};

/// A Deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct DeploymentFacts {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `spec.selector.matchLabels`.
    pub selector: BTreeMap<String, String>,
    /// `spec.replicas`.
    pub replicas: u32,
    /// `spec.paused`.
    pub paused: bool,
    /// The status.
    pub status: ReplicaCounts,
    /// `spec.strategy`.
    pub strategy: Strategy,
    /// `spec.minReadySeconds`.
    pub min_ready: Duration,
    /// Reason and message of a `Progressing=False` condition: the rollout has stalled.
    pub stalled: Option<String>,
    /// `spec.template`.
    pub template: PodTemplate,
    /// `pod-template-hash` of the ReplicaSet that holds the present template (its `revision` annotation is the
    /// Deployment's). Set by the adapter, which reads the ReplicaSets.
    pub template_hash: Option<String>,
    /// The object as it came.
    pub object: Value,
}

/// `status` of a Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplicaCounts {
    /// `replicas`; terminating pods are not counted.
    pub total: u32,
    /// `updatedReplicas`.
    pub updated: u32,
    /// `readyReplicas`.
    pub ready: u32,
    /// `availableReplicas`.
    pub available: u32,
    /// `observedGeneration` has caught up with `metadata.generation`.
    pub observed: bool,
}

/// `spec.strategy`, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// Old pods first, then new ones.
    Recreate,
    /// Rolling.
    Rolling {
        /// `maxSurge` in pods, percentages resolved (rounded up).
        max_surge: u32,
        /// `maxUnavailable` in pods, percentages resolved (rounded down).
        max_unavailable: u32,
    },
}

/// What a pod is made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PodTemplate {
    /// `terminationGracePeriodSeconds`.
    pub grace: Duration,
    /// Containers, native sidecars (init containers with `restartPolicy: Always`) included, other init containers not.
    pub containers: Vec<Container>,
    /// Topology keys of required anti-affinity against its own labels: `kubernetes.io/hostname`.
    pub anti_affinity: Vec<String>,
    /// Labels of the template.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the template.
    pub annotations: BTreeMap<String, String>,
    /// `nodeSelector`.
    pub node_selector: BTreeMap<String, String>,
}

/// A container of a template or a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Container {
    /// Name.
    pub name: String,
    /// An init container with `restartPolicy: Always`.
    pub native_sidecar: bool,
    /// `lifecycle.preStop`.
    pub prestop: Option<PreStop>,
    /// `env`; `None` where the value comes from elsewhere.
    pub env: BTreeMap<String, Option<String>>,
    /// `hostPort`s.
    pub host_ports: Vec<u16>,
}

/// A preStop hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreStop {
    /// `exec`.
    Exec(Vec<String>),
    /// `httpGet`, as `port/path`.
    HttpGet(String),
    /// `sleep`.
    Sleep(Duration),
}

/// A pod.
#[derive(Debug, Clone, PartialEq)]
pub struct PodFacts {
    /// Name and uid.
    pub identity: PodIdentity,
    /// Node; none while it is not scheduled.
    pub node: Option<String>,
    /// Pod's IP.
    pub ip: Option<String>,
    /// `status.phase`.
    pub phase: String,
    /// Ready condition.
    pub ready: bool,
    /// `metadata.deletionTimestamp` is set: request time **plus grace**, whole seconds.
    pub deletion: Option<Instant>,
    /// `pod-template-hash`.
    pub template_hash: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// `controller.kubernetes.io/pod-deletion-cost`, as written.
    pub deletion_cost: Option<String>,
    /// Sum of restarts of its containers.
    pub restarts: u32,
    /// What it was made from.
    pub spec: PodTemplate,
    /// The object as it came.
    pub object: Value,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// Taints of effect `NoSchedule` or `NoExecute`, as `key=value:effect`.
    pub taints: Vec<String>,
    /// Ready condition.
    pub ready: bool,
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetFacts {
    /// Name.
    pub name: String,
    /// `minAvailable` as written.
    pub min_available: Option<String>,
    /// `maxUnavailable` as written.
    pub max_unavailable: Option<String>,
    /// `status.disruptionsAllowed`.
    pub disruptions_allowed: u32,
}

/// A HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoscalerFacts {
    /// Name.
    pub name: String,
    /// `minReplicas`, 1 when not set.
    pub min: u32,
    /// `maxReplicas`.
    pub max: u32,
}

impl DeploymentFacts {
    /// From the API's object; `None` when it has no name. `template_hash` stays empty.
    pub fn from_object(object: Value) -> Option<Self> {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let replicas = count(&spec["replicas"]).unwrap_or(1);
        let generation = meta["generation"].as_i64().unwrap_or(0);
        let stalled = status["conditions"].as_array().into_iter().flatten().find_map(|c| {
            (c["type"] == "Progressing" && c["status"] == "False")
                .then(|| format!("{}: {}", text(&c["reason"]), text(&c["message"])))
        });
        Some(Self {
            namespace: text(&meta["namespace"]),
            name: meta["name"].as_str()?.to_owned(),
            uid: text(&meta["uid"]),
            labels: map(&meta["labels"]),
            selector: map(&spec["selector"]["matchLabels"]),
            replicas,
            paused: spec["paused"].as_bool().unwrap_or(false),
            status: ReplicaCounts {
                total: count(&status["replicas"]).unwrap_or(0),
                updated: count(&status["updatedReplicas"]).unwrap_or(0),
                ready: count(&status["readyReplicas"]).unwrap_or(0),
                available: count(&status["availableReplicas"]).unwrap_or(0),
                observed: status["observedGeneration"].as_i64().unwrap_or(0) >= generation,
            },
            strategy: strategy(&spec["strategy"], replicas),
            min_ready: seconds(&spec["minReadySeconds"]).unwrap_or(Duration::ZERO),
            stalled,
            template: PodTemplate::from_parts(&spec["template"]["metadata"], &spec["template"]["spec"]),
            template_hash: None,
            object,
        })
    }

    /// The selector as the API takes it: `app=x,tier=y`.
    pub fn selector_text(&self) -> String {
        let parts: Vec<_> = self.selector.iter().map(|(k, v)| format!("{k}={v}")).collect();
        parts.join(",")
    }
}

impl PodTemplate {
    fn from_parts(meta: &Value, spec: &Value) -> Self {
        let plain = array(&spec["containers"]).map(|c| Container::from_object(c, false));
        let sidecars = array(&spec["initContainers"])
            .filter(|c| c["restartPolicy"] == "Always")
            .map(|c| Container::from_object(c, true));
        let required = &spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let labels = map(&meta["labels"]);
        let anti_affinity = array(required)
            .filter(|term| selects(&term["labelSelector"], &labels))
            .map(|term| text(&term["topologyKey"]))
            .collect();
        Self {
            grace: seconds(&spec["terminationGracePeriodSeconds"]).unwrap_or(Duration::from_secs(30)),
            containers: plain.chain(sidecars).collect(),
            anti_affinity,
            labels,
            annotations: map(&meta["annotations"]),
            node_selector: map(&spec["nodeSelector"]),
        }
    }
}

impl Container {
    fn from_object(c: &Value, native_sidecar: bool) -> Self {
        let hook = &c["lifecycle"]["preStop"];
        let prestop = if let Some(argv) = hook["exec"]["command"].as_array() {
            Some(PreStop::Exec(argv.iter().map(text).collect()))
        } else if hook["httpGet"].is_object() {
            let port = &hook["httpGet"]["port"];
            let port = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
            Some(PreStop::HttpGet(format!("{port}{}", text(&hook["httpGet"]["path"]))))
        } else {
            seconds(&hook["sleep"]["seconds"]).map(PreStop::Sleep)
        };
        Self {
            name: text(&c["name"]),
            native_sidecar,
            prestop,
            env: array(&c["env"])
                .map(|e| {
                    let from_elsewhere = e["valueFrom"].is_object();
                    (text(&e["name"]), (!from_elsewhere).then(|| text(&e["value"])))
                })
                .collect(),
            host_ports: array(&c["ports"])
                .filter_map(|p| u16::try_from(p["hostPort"].as_u64()?).ok())
                .filter(|p| *p != 0)
                .collect(),
        }
    }
}

impl PodFacts {
    /// From the API's object; `None` when it has no name or no uid.
    pub fn from_object(object: Value) -> Option<Self> {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let labels = map(&meta["labels"]);
        let ready = array(&status["conditions"]).any(|c| c["type"] == "Ready" && c["status"] == "True");
        let restarts = array(&status["containerStatuses"])
            .chain(array(&status["initContainerStatuses"]))
            .filter_map(|c| count(&c["restartCount"]))
            .fold(0u32, u32::saturating_add);
        Some(Self {
            identity: PodIdentity {
                name: meta["name"].as_str()?.to_owned(),
                uid: meta["uid"].as_str()?.to_owned(),
            },
            node: spec["nodeName"].as_str().map(str::to_owned),
            ip: status["podIP"].as_str().map(str::to_owned),
            phase: text(&status["phase"]),
            ready,
            deletion: meta["deletionTimestamp"].as_str().and_then(|t| Instant::parse(t).ok()),
            template_hash: labels.get("pod-template-hash").cloned(),
            deletion_cost: meta["annotations"]["controller.kubernetes.io/pod-deletion-cost"]
                .as_str()
                .map(str::to_owned),
            labels,
            restarts,
            spec: PodTemplate::from_parts(meta, spec),
            object,
        })
    }

    /// It was told to stop.
    pub fn terminating(&self) -> bool {
        self.deletion.is_some()
    }
}

impl NodeFacts {
    /// From the API's object; `None` when it has no name.
    pub fn from_object(object: &Value) -> Option<Self> {
        Some(Self {
            name: object["metadata"]["name"].as_str()?.to_owned(),
            labels: map(&object["metadata"]["labels"]),
            cordoned: object["spec"]["unschedulable"].as_bool().unwrap_or(false),
            taints: array(&object["spec"]["taints"])
                .filter(|t| t["effect"] == "NoSchedule" || t["effect"] == "NoExecute")
                .map(|t| format!("{}={}:{}", text(&t["key"]), text(&t["value"]), text(&t["effect"])))
                .collect(),
            ready: array(&object["status"]["conditions"]).any(|c| c["type"] == "Ready" && c["status"] == "True"),
        })
    }
}

impl BudgetFacts {
    /// From the API's object; `None` when it has no name.
    pub fn from_object(object: &Value) -> Option<Self> {
        let written = |v: &Value| match v {
            Value::String(s) => Some(s.clone()),
            Value::Number(n) => Some(n.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        Some(Self {
            name: object["metadata"]["name"].as_str()?.to_owned(),
            min_available: written(&object["spec"]["minAvailable"]),
            max_unavailable: written(&object["spec"]["maxUnavailable"]),
            disruptions_allowed: count(&object["status"]["disruptionsAllowed"]).unwrap_or(0),
        })
    }
}

impl AutoscalerFacts {
    /// From the API's object; `None` when it has no name.
    pub fn from_object(object: &Value) -> Option<Self> {
        Some(Self {
            name: object["metadata"]["name"].as_str()?.to_owned(),
            min: count(&object["spec"]["minReplicas"]).unwrap_or(1),
            max: count(&object["spec"]["maxReplicas"]).unwrap_or(0),
        })
    }
}

fn text(v: &Value) -> String {
    v.as_str().unwrap_or_default().to_owned()
}

fn count(v: &Value) -> Option<u32> {
    u32::try_from(v.as_u64()?).ok()
}

fn seconds(v: &Value) -> Option<Duration> {
    v.as_i64().map(Duration::from_secs)
}

fn array(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

fn map(v: &Value) -> BTreeMap<String, String> {
    v.as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), text(v)))
        .collect()
}

/// Whether a label selector matches these labels; an empty selector matches all.
pub(super) fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let equal = map(&selector["matchLabels"])
        .iter()
        .all(|(k, v)| labels.get(k) == Some(v));
    let expressions = array(&selector["matchExpressions"]).all(|e| {
        let value = labels.get(&text(&e["key"]));
        let listed = value.is_some_and(|v| array(&e["values"]).any(|x| x.as_str() == Some(v)));
        match e["operator"].as_str().unwrap_or_default() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    });
    equal && expressions
}

/// `spec.strategy` with the API's defaults (25 % each); surge is rounded up, unavailable down.
fn strategy(v: &Value, replicas: u32) -> Strategy {
    if v["type"] == "Recreate" {
        return Strategy::Recreate;
    }
    let pods = |v: &Value, up: bool| {
        let percent = match v.as_str() {
            Some(t) => t.strip_suffix('%').and_then(|p| p.parse::<u32>().ok()).unwrap_or(25),
            None => match count(v) {
                Some(n) => return n,
                None => 25,
            },
        };
        let hundredths = u64::from(replicas) * u64::from(percent);
        let pods = if up { hundredths.div_ceil(100) } else { hundredths / 100 };
        u32::try_from(pods).unwrap_or(u32::MAX)
    };
    let rolling = &v["rollingUpdate"];
    let (max_surge, max_unavailable) = (
        pods(&rolling["maxSurge"], true),
        pods(&rolling["maxUnavailable"], false),
    );
    // Both zero would never progress: the controller then takes one pod away (its own fallback).
    let max_unavailable = if max_surge == 0 && max_unavailable == 0 {
        1
    } else {
        max_unavailable
    };
    Strategy::Rolling {
        max_surge,
        max_unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_those_of_the_api() {
        let d =
            DeploymentFacts::from_object(json!({"metadata": {"name": "x"}, "spec": {"replicas": 2}})).expect("named");
        assert_eq!(
            d.strategy,
            Strategy::Rolling {
                max_surge: 1,
                max_unavailable: 0
            }
        );
        assert_eq!(d.template.grace, Duration::from_secs(30));
        assert_eq!(d.min_ready, Duration::ZERO);
    }

    #[test]
    fn a_native_sidecar_is_an_init_container_that_restarts_always() {
        let pod = PodFacts::from_object(json!({
            "metadata": {"name": "p", "uid": "u", "deletionTimestamp": "2026-11-29T17:00:44Z"},
            "spec": {
                "initContainers": [{"name": "setup"}, {"name": "istio-proxy", "restartPolicy": "Always"}],
                "containers": [{"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": 15}}}}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .expect("pod");
        let names: Vec<_> = pod
            .spec
            .containers
            .iter()
            .map(|c| (c.name.as_str(), c.native_sidecar))
            .collect();
        assert_eq!(names, [("app", false), ("istio-proxy", true)]);
        assert_eq!(
            pod.spec.containers[0].prestop,
            Some(PreStop::Sleep(Duration::from_secs(15)))
        );
        assert!(pod.terminating() && pod.ready);
    }

    #[test]
    fn anti_affinity_counts_only_against_its_own_labels() {
        let term = |app: &str| json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"});
        let template = |app: &str| {
            json!({"metadata": {"name": "x"}, "spec": {"template": {
                "metadata": {"labels": {"app": "mine"}},
                "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(app)]}}},
            }}})
        };
        let keys = |app| {
            DeploymentFacts::from_object(template(app))
                .expect("named")
                .template
                .anti_affinity
        };
        assert_eq!(keys("mine"), ["zone"]);
        assert!(keys("other").is_empty());
    }
}

//! The objects of the Kubernetes API, as JSON, with the stale states that a terminating pod shows.

use serde_json::{Map, Value, json};

use super::super::clocks::stamp;
use super::super::model::Model;
use super::super::pod::{Pod, PodId, Role};
use super::super::spec::Hook;
use super::Message;
use crate::time::Instant;

/// Whole seconds, as most of the API's stamps.
fn seconds(at: Instant) -> String {
    stamp(at, 0, "Z")
}

impl Model {
    fn next_version(&mut self) -> String {
        self.control.version += 1;
        self.control.version.to_string()
    }

    /// A Pod.
    pub(in crate::world::sim) fn pod_object(&mut self, pod: PodId) -> Value {
        let version = self.next_version();
        let p = &self.pods[pod.0];
        let names = &self.spec.names;
        let hash = &self.control.hashes[p.generation];
        let mut meta = json!({
            "name": p.name,
            "namespace": names.namespace,
            "uid": p.uid,
            "resourceVersion": version,
            "creationTimestamp": seconds(p.created),
            "labels": {"app": names.deployment, "pod-template-hash": hash},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
                "name": format!("{}-{hash}", names.deployment)}],
        });
        if let Some(cost) = p.deletion_cost {
            meta["annotations"] = json!({"controller.kubernetes.io/pod-deletion-cost": cost.to_string()});
        }
        if let Some(deletion) = p.deletion {
            // Request time plus grace, cut to the second.
            let floor = deletion.asked.as_nanos().div_euclid(1_000_000_000) * 1_000_000_000;
            meta["deletionTimestamp"] = json!(seconds(Instant::from_nanos(floor) + deletion.grace));
            meta["deletionGracePeriodSeconds"] = json!(deletion.grace.as_nanos() / 1_000_000_000);
        }
        let mut spec = self.template_spec(p.generation);
        if let Some(node) = p.node {
            spec["nodeName"] = json!(self.spec.nodes[node].name);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": self.pod_status(p)})
    }

    fn pod_status(&self, p: &Pod) -> Value {
        let condition = |kind: &str, is: bool, since: Instant| json!({"type": kind, "status": if is { "True" } else { "False" }, "lastTransitionTime": seconds(since)});
        let mut status = json!({"phase": p.phase.word(), "qosClass": "BestEffort"});
        let mut conditions = Vec::new();
        if let Some(why) = &p.unschedulable {
            conditions.push(
                json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": why, "lastTransitionTime": seconds(p.created)}),
            );
        }
        if let Some(node) = p.node {
            status["hostIP"] = json!(self.net.hosts[super::super::network::FIRST_WORKER + node].ip);
            conditions.push(condition("PodScheduled", true, p.created));
        }
        if let Some(started) = p.containers.iter().filter_map(|c| c.started).min() {
            status["podIP"] = json!(p.ip);
            status["startTime"] = json!(seconds(p.created));
            let since = p.ready.unwrap_or(started);
            conditions.push(condition("Initialized", true, p.created));
            conditions.push(condition("Ready", p.ready.is_some(), since));
            conditions.push(condition("ContainersReady", p.ready.is_some(), since));
        }
        status["conditions"] = Value::Array(conditions);
        let (mut plain, mut init) = (Vec::new(), Vec::new());
        for role in Role::ALL {
            let c = p.container(role);
            let Some(started) = c.started else { continue };
            // Until the kubelet reports the end of all of them, a dead container is still `running`.
            let state = match c.ended.filter(|_| p.shown_ended) {
                Some((at, code)) => json!({"terminated": {"exitCode": code, "finishedAt": seconds(at),
                    "startedAt": seconds(started), "reason": if code == 0 { "Completed" } else { "Error" }}}),
                None => json!({"running": {"startedAt": seconds(started)}}),
            };
            let shown = json!({"name": self.container_name(role), "ready": c.ready, "restartCount": 0,
                "started": !p.shown_ended, "state": state, "lastState": {}});
            if role == Role::Sidecar && self.spec.pod.native_sidecar {
                init.push(shown);
            } else {
                plain.push(shown);
            }
        }
        if !plain.is_empty() {
            status["containerStatuses"] = Value::Array(plain);
        }
        if !init.is_empty() {
            status["initContainerStatuses"] = Value::Array(init);
        }
        status
    }

    /// `spec` of a template's pods.
    fn template_spec(&self, generation: usize) -> Value {
        let names = &self.spec.names;
        let pod = &self.spec.pod;
        let wait = |who: &str| json!({"exec": {"command": ["wait-for-close", who]}});
        let hook = |hook: Hook, role: Role| match hook {
            Hook::Fsm if role == Role::Hc => Some(json!({"exec": {"command": ["drain"]}})),
            Hook::Fsm => Some(wait(self.container_name(role))),
            Hook::Sleep(d) => Some(json!({"sleep": {"seconds": d.as_nanos() / 1_000_000_000}})),
            Hook::None => None,
        };
        let container = |role: Role, declared: Hook| {
            let mut env: Vec<Value> = Vec::new();
            if role == Role::Hc {
                env.push(json!({"name": "MODE", "value": self.spec.mode.word()}));
                if let Some(max) = pod.drain_max {
                    env.push(json!({"name": "DRAIN_MAX", "value": max.to_string()}));
                }
            }
            for (name, value) in pod.env.get(role.word()).into_iter().flatten() {
                env.push(json!({"name": name, "value": value}));
            }
            let mut c = json!({"name": self.container_name(role), "image": "sim/workload:1", "env": env});
            if let Some(hook) = hook(declared, role) {
                c["lifecycle"] = json!({"preStop": hook});
            }
            if role == Role::Sidecar {
                c["ports"] = json!([{"name": "http", "containerPort": 8080, "hostPort": 8080, "protocol": "TCP"}]);
                if pod.native_sidecar {
                    c["restartPolicy"] = json!("Always");
                }
            }
            c
        };
        let app = container(Role::App, pod.app_hook);
        let hc = container(Role::Hc, pod.hc_hook);
        let sidecar = container(Role::Sidecar, pod.sidecar_hook);
        let mut spec = json!({
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": pod.grace.as_nanos() / 1_000_000_000,
        });
        if pod.native_sidecar {
            spec["initContainers"] = json!([sidecar]);
            spec["containers"] = json!([app, hc]);
        } else {
            spec["containers"] = json!([app, hc, sidecar]);
        }
        if let Some(key) = &self.spec.rollout.anti_affinity {
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": names.deployment}}, "topologyKey": key}]}});
        }
        let _ = generation;
        spec
    }

    /// The Deployment.
    pub(in crate::world::sim) fn deployment_object(&mut self) -> Value {
        let version = self.next_version();
        let names = &self.spec.names;
        let template = self.control.template;
        let mut annotations = Map::new();
        if let super::super::spec::SidecarEnd::After(d) = self.spec.pod.sidecar_end {
            let config = json!({"terminationDrainDuration": d.to_string()}).to_string();
            annotations.insert("proxy.istio.io/config".to_owned(), json!(config));
        }
        if let Some(at) = &self.control.restarted[template] {
            annotations.insert("kubectl.kubernetes.io/restartedAt".to_owned(), json!(at));
        }
        let counted = |p: &&Pod| !p.gone && p.deletion.is_none() && !p.phase.terminal();
        let live: Vec<&Pod> = self.pods.iter().filter(counted).collect();
        let ready = live.iter().filter(|p| p.ready.is_some()).count();
        let min_ready = self.spec.rollout.min_ready;
        let available = live.iter().filter(|p| p.available(self.now, min_ready)).count();
        let updated = live.iter().filter(|p| p.generation == template).count();
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": names.deployment, "namespace": names.namespace, "uid": self.control.uid,
                "generation": self.control.generation, "resourceVersion": version,
                "labels": self.control.labels,
            },
            "spec": {
                "replicas": self.control.replicas,
                "minReadySeconds": self.spec.rollout.min_ready.as_nanos() / 1_000_000_000,
                "selector": {"matchLabels": {"app": names.deployment}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {
                    "maxSurge": self.spec.rollout.max_surge, "maxUnavailable": self.spec.rollout.max_unavailable}},
                "template": {
                    "metadata": {"labels": {"app": names.deployment}, "annotations": annotations},
                    "spec": self.template_spec(template),
                },
            },
            "status": {
                "observedGeneration": self.control.generation, "replicas": live.len(), "updatedReplicas": updated,
                "readyReplicas": ready, "availableReplicas": available,
                "unavailableReplicas": (self.control.replicas as usize).saturating_sub(available),
            },
        })
    }

    /// The EndpointSlice.
    pub(in crate::world::sim) fn slice_object(&mut self) -> Value {
        let version = self.next_version();
        let endpoints: Vec<Value> = self
            .pods
            .iter()
            .filter(|p| p.in_slice)
            .map(|p| {
                let terminating = p.deletion.is_some();
                let serving = p.ready.is_some();
                json!({
                    "addresses": [p.ip],
                    "conditions": {"ready": serving && !terminating, "serving": serving, "terminating": terminating},
                    "nodeName": p.node.map(|n| self.spec.nodes[n].name.as_str()),
                    "targetRef": {"kind": "Pod", "name": p.name, "namespace": self.spec.names.namespace, "uid": p.uid},
                })
            })
            .collect();
        let names = &self.spec.names;
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": format!("{}-87vlb", names.deployment), "namespace": names.namespace,
                "resourceVersion": version, "labels": {"kubernetes.io/service-name": names.deployment}},
            "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        })
    }

    /// An Event.
    pub(super) fn message_object(&mut self, m: &Message) -> Value {
        let version = self.next_version();
        let namespace = &self.spec.names.namespace;
        let mut about = json!({"apiVersion": "v1", "kind": m.kind, "name": m.about.name, "namespace": namespace,
            "uid": m.about.uid});
        if let Some(container) = &m.container {
            about["fieldPath"] = json!(format!("spec.containers{{{container}}}"));
        }
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": m.name, "namespace": namespace, "resourceVersion": version,
                "creationTimestamp": seconds(m.first)},
            "involvedObject": about, "type": m.level, "reason": m.reason, "message": m.text, "count": m.count,
            "firstTimestamp": seconds(m.first), "lastTimestamp": seconds(m.last), "eventTime": null,
            "source": {"component": "kubelet"},
        })
    }

    /// A Node.
    pub(in crate::world::sim) fn node_object(&self, index: usize) -> Value {
        let node = &self.spec.nodes[index];
        let taints: Vec<Value> = node
            .taints
            .iter()
            .map(|t| {
                let (pair, effect) = t.rsplit_once(':').unwrap_or((t, "NoSchedule"));
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                json!({"key": key, "value": value, "effect": effect})
            })
            .collect();
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node.name, "labels": {"kubernetes.io/hostname": node.name}},
            "spec": {"unschedulable": self.control.cordoned[index], "taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    }
}

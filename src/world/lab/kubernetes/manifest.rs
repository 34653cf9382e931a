//! The objects that a lab begins with: its nodes, and the workload as a Deployment with everything around it.

use serde_json::{Value, json};

use super::object::now;
use crate::time::Duration;
use crate::world::lab::network::Host;
use crate::world::lab::workload::{APP_PORT, ENVOY_READY_PORT, HC_PORT, INGRESS_PORT, envoy};
use crate::world::lab::world::{DrainListeners, Hpa, LabWorld, NodeWorld, Prestop, Sidecar};

/// The workload's namespace.
pub(crate) const NAMESPACE: &str = "service-a";
/// Its Deployment, its Service, and the value of its pods' `app` label.
pub(crate) const DEPLOYMENT: &str = "service-a-igw";
/// The label of the Deployment that names the mode.
pub(crate) const MODE_LABEL: &str = "mode";
/// The names of the containers.
pub(crate) const CONTAINERS: [(&str, &str); 3] = [("app", "app"), ("hc", "hc"), ("sidecar", "istio-proxy")];
/// What nodes say that they run.
pub(crate) const KUBELET_VERSION: &str = "v1.34.9";

/// The namespaces of a fresh cluster and the workload's.
pub(crate) fn namespaces() -> Vec<Value> {
    ["default", "kube-node-lease", "kube-public", "kube-system", NAMESPACE]
        .map(|name| {
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            })
        })
        .to_vec()
}

/// A taint as `kubectl taint` writes it: `key=value:Effect` or `key:Effect`.
///
/// # Errors
/// A sentence about what is wrong with it.
pub(crate) fn taint(text: &str) -> Result<Value, String> {
    let wrong = || format!("`{text}` is no taint; write for example `key=value:NoSchedule`");
    let (what, effect) = text.rsplit_once(':').ok_or_else(wrong)?;
    if what.is_empty() || !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(wrong());
    }
    let (key, value) = what.split_once('=').unwrap_or((what, ""));
    Ok(if value.is_empty() {
        json!({"key": key, "effect": effect})
    } else {
        json!({"key": key, "value": value, "effect": effect})
    })
}

/// The taint of a cordoned node.
pub(crate) fn unschedulable_taint() -> Value {
    json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": now()})
}

/// A node.
pub(crate) fn node(host: &Host, world: &NodeWorld) -> Value {
    let name = &host.name;
    let mut taints: Vec<Value> = world.taints.iter().filter_map(|t| taint(t).ok()).collect();
    let mut spec = json!({"podCIDR": format!("{}/32", host.address)});
    if world.cordoned {
        spec["unschedulable"] = true.into();
        taints.push(unschedulable_taint());
    }
    if !taints.is_empty() {
        spec["taints"] = taints.into();
    }
    let since = now();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "lastHeartbeatTime": since, "lastTransitionTime": since,
            "reason": reason, "message": message,
        })
    };
    let amounts = json!({"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "20Gi"});
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            },
        },
        "spec": spec,
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "addresses": [
                {"type": "InternalIP", "address": host.address.to_string()}, {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "lab", "osImage": "gtrun lab",
                "containerRuntimeVersion": "gtrun://lab", "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

/// A container's preStop hook as the world asks for it.
fn prestop(world: &LabWorld, key: &str, name: &str) -> Option<Value> {
    let default = if key == "hc" { Prestop::Drain } else { Prestop::Hold };
    let hook = |words: &[&str]| {
        let command: Vec<&str> = ["gtrun", "lab", "hook", "--who", name]
            .iter()
            .chain(words)
            .copied()
            .collect();
        json!({"preStop": {"exec": {"command": command}}})
    };
    match world.pod.prestop.get(key).copied().unwrap_or(default) {
        Prestop::Drain => Some(hook(&["--drain"])),
        Prestop::Hold => Some(hook(&[])),
        Prestop::Sleep(d) => Some(json!({"preStop": {"sleep": {"seconds": whole_seconds(d)}}})),
        Prestop::None => None,
    }
}

fn whole_seconds(d: Duration) -> i64 {
    d.as_nanos() / 1_000_000_000
}

/// A container with what all of them have. Probes go to loopback, where the programs listen, as those of pods in the
/// host's network do.
fn container(
    world: &LabWorld,
    key: &str,
    command: &[String],
    ports: Value,
    probe: Value,
    own_env: &[(&str, String)],
) -> Value {
    let name = CONTAINERS.iter().find(|(k, _)| *k == key).map_or(key, |(_, name)| name);
    let mut env: Vec<Value> = own_env.iter().map(|(k, v)| json!({"name": k, "value": v})).collect();
    env.extend(
        world
            .pod
            .env
            .get(key)
            .into_iter()
            .flatten()
            .map(|(k, v)| json!({"name": k, "value": v})),
    );
    let mut container = json!({
        "name": name, "image": "gtrun.lab/workload:1", "command": command, "ports": ports, "resources": {},
        "readinessProbe": probe,
    });
    if !env.is_empty() {
        container["env"] = env.into();
    }
    if let Some(hook) = prestop(world, key, name) {
        container["lifecycle"] = hook;
    }
    container["terminationMessagePath"] = "/dev/termination-log".into();
    container["terminationMessagePolicy"] = "File".into();
    container["imagePullPolicy"] = "Never".into();
    container
}

fn port(name: &str, number: u16) -> Value {
    json!({"name": name, "hostPort": number, "containerPort": number, "protocol": "TCP"})
}

fn probe(path: &str, port: u16, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": port, "host": "127.0.0.1", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 2, "successThreshold": 1, "failureThreshold": failures,
    })
}

/// The pod template. Pods use their node's network, so a port is taken for as long as its pod lives, and the next pod
/// of that node waits for it.
pub(crate) fn pod_template(world: &LabWorld, envoy_configuration: &std::path::Path) -> Value {
    let pod = &world.pod;
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let app = container(
        world,
        "app",
        &words(&["gtrun", "lab", "app"]),
        json!([port("app", APP_PORT)]),
        probe("/ready", APP_PORT, 3),
        &[],
    );
    let drain_listeners = match pod.drain_listeners {
        DrainListeners::AtClosing => "at_closing",
        DrainListeners::AtDraining => "at_draining",
        DrainListeners::Never => "never",
    };
    let mut settings = vec![
        ("MODE", world.mode.as_str().to_owned()),
        ("LB_WAIT", pod.lb_wait.to_string()),
        ("DRAIN_LISTENERS", drain_listeners.to_owned()),
    ];
    settings.extend(pod.drain_max.map(|max| ("DRAIN_MAX", max.to_string())));
    let hc = container(
        world,
        "hc",
        &words(&["gtrun", "lab", "hc"]),
        json!([port("hc", HC_PORT)]),
        probe("/health_check.html", HC_PORT, 1),
        &settings,
    );
    let mut sidecar = container(
        world,
        "sidecar",
        &envoy::command(envoy_configuration, pod.drain_time),
        json!([port("http", INGRESS_PORT)]),
        probe("/healthz/ready", ENVOY_READY_PORT, 3),
        &[],
    );
    let mut spec = json!({});
    match pod.sidecar {
        Sidecar::Container => spec["containers"] = json!([app, hc, sidecar]),
        Sidecar::Native => {
            sidecar["restartPolicy"] = "Always".into();
            spec["initContainers"] = json!([sidecar]);
            spec["containers"] = json!([app, hc]);
        }
    }
    spec["restartPolicy"] = "Always".into();
    spec["terminationGracePeriodSeconds"] = whole_seconds(pod.grace).into();
    spec["dnsPolicy"] = "ClusterFirst".into();
    spec["hostNetwork"] = true.into();
    spec["securityContext"] = json!({});
    spec["schedulerName"] = "default-scheduler".into();
    let topology = match world.rollout.anti_affinity.as_str() {
        "none" => None,
        "hostname" => Some("kubernetes.io/hostname"),
        key => Some(key),
    };
    if let Some(key) = topology {
        spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": DEPLOYMENT}}, "topologyKey": key},
        ]}});
    }
    let mut metadata = json!({"labels": {"app": DEPLOYMENT}});
    if let Some(drain) = pod.termination_drain {
        let config = format!("terminationDrainDuration: {}s\n", whole_seconds(drain));
        metadata["annotations"] = json!({"proxy.istio.io/config": config});
    }
    json!({"metadata": metadata, "spec": spec})
}

/// The Deployment.
pub(crate) fn deployment(world: &LabWorld, envoy_configuration: &std::path::Path) -> Value {
    let rollout = &world.rollout;
    let mut spec = json!({
        "replicas": world.replicas,
        "selector": {"matchLabels": {"app": DEPLOYMENT}},
        "template": pod_template(world, envoy_configuration),
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": rollout.max_unavailable, "maxSurge": rollout.max_surge},
        },
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
    });
    if rollout.min_ready > Duration::ZERO {
        spec["minReadySeconds"] = whole_seconds(rollout.min_ready).into();
    }
    json!({
        "metadata": {
            "name": DEPLOYMENT, "namespace": NAMESPACE,
            "labels": {"app": DEPLOYMENT, MODE_LABEL: world.mode.as_str()},
        },
        "spec": spec,
    })
}

/// The Service in front of the pods.
pub(crate) fn service() -> Value {
    json!({
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE, "labels": {"app": DEPLOYMENT}},
        "spec": {
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": INGRESS_PORT}],
            "selector": {"app": DEPLOYMENT}, "clusterIP": "None", "clusterIPs": ["None"], "type": "ClusterIP",
            "sessionAffinity": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    })
}

/// The disruption budget, if the world has one.
pub(crate) fn disruption_budget(world: &LabWorld) -> Option<Value> {
    let min_available = world.pod.pdb_min_available?;
    Some(json!({
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": DEPLOYMENT}}},
        "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    }))
}

/// The autoscaler, if the world has one.
pub(crate) fn autoscaler(world: &LabWorld) -> Option<Value> {
    (world.pod.hpa == Hpa::Present).then(|| {
        json!({
            "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": DEPLOYMENT, "apiVersion": "apps/v1"},
                "minReplicas": 1, "maxReplicas": 3,
                "metrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
                }}],
            },
            "status": {"currentReplicas": world.replicas, "desiredReplicas": world.replicas, "currentMetrics": null},
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_in_the_path_has_a_hook_by_default() {
        let template = pod_template(&LabWorld::default(), std::path::Path::new("/e.yaml"));
        let containers = template["spec"]["containers"].as_array().expect("containers");
        assert_eq!(containers.len(), 3);
        for container in containers {
            assert_eq!(
                container["lifecycle"]["preStop"]["exec"]["command"][0], "gtrun",
                "{container}"
            );
        }
    }

    #[test]
    fn a_native_sidecar_is_an_init_container() {
        let mut world = LabWorld::default();
        world.pod.sidecar = Sidecar::Native;
        world.pod.prestop.insert("sidecar".into(), Prestop::None);
        let spec = &pod_template(&world, std::path::Path::new("/e.yaml"))["spec"];
        assert_eq!(spec["initContainers"][0]["restartPolicy"], "Always");
        assert!(spec["initContainers"][0]["lifecycle"].is_null());
        assert_eq!(spec["containers"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn taints_are_read_as_kubectl_writes_them() {
        assert_eq!(
            taint("a=b:NoSchedule"),
            Ok(json!({"key": "a", "value": "b", "effect": "NoSchedule"}))
        );
        assert_eq!(taint("a:NoExecute"), Ok(json!({"key": "a", "effect": "NoExecute"})));
        taint("a:Never").expect_err("no effect");
        taint("a").expect_err("no effect");
    }
}

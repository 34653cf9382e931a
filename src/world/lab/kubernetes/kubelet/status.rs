//! The status of a pod as a kubelet posts it.

use serde_json::{Value, json};

use super::super::object::{condition, list, name, now, stamp};
use super::container::{Container, Run};
use chrono::{DateTime, Utc};

/// What the kubelet knows of one container of a pod.
#[derive(Clone)]
pub(super) struct Seen<'a> {
    /// The container in the pod's spec.
    pub(super) spec: &'a Value,
    /// Its present run; none before the first.
    pub(super) run: Option<&'a Container>,
    /// The run before it.
    pub(super) last: Option<&'a Container>,
    /// How often it was started anew.
    pub(super) restarts: u32,
    /// What its probe says.
    pub(super) ready: bool,
}

/// How far the pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Containers run, or wait to be started anew.
    Running,
    /// It was told to stop: containers that have ended are shown as they were before. A kubelet does not look at them
    /// again until all have ended.
    Stopping,
    /// All containers have ended.
    Over,
}

/// Writes the status of `pod` (the object as it is stored).
pub(super) fn write(
    pod: &mut Value,
    stage: Stage,
    address: &str,
    began: DateTime<Utc>,
    main: &[Seen<'_>],
    init: &[Seen<'_>],
) {
    let generation = pod["metadata"]["generation"].clone();
    let phase = match stage {
        Stage::Running | Stage::Stopping => "Running",
        Stage::Over
            if main
                .iter()
                .all(|c| matches!(c.run.map(Container::run), Some(Run::Ended { code: 0, .. }))) =>
        {
            "Succeeded"
        }
        Stage::Over => "Failed",
    };
    let unready: Vec<&str> = init
        .iter()
        .chain(main)
        .filter(|c| !c.ready)
        .filter_map(|c| c.spec["name"].as_str())
        .collect();
    let ended_reason = if phase == "Succeeded" {
        "PodCompleted"
    } else {
        "PodFailed"
    };
    let before = pod["status"].clone();
    let make = |kind: &str, status: bool, reason: Option<&str>, message: Option<String>| {
        let status = if status { "True" } else { "False" };
        let old = list(&before, "/conditions").iter().find(|c| c["type"] == kind);
        let since = match old {
            Some(old) if old["status"] == status => old["lastTransitionTime"].clone(),
            _ => now().into(),
        };
        let mut condition = json!({
            "type": kind, "observedGeneration": generation, "status": status, "lastProbeTime": null,
            "lastTransitionTime": since,
        });
        if let Some(reason) = reason {
            condition["reason"] = reason.into();
        }
        if let Some(message) = message {
            condition["message"] = message.into();
        }
        condition
    };
    let over = stage == Stage::Over;
    let ready = |kind: &str| match (over, unready.is_empty()) {
        (true, _) => make(kind, false, Some(ended_reason), None),
        (false, true) => make(kind, true, None, None),
        (false, false) => {
            let message = format!("containers with unready status: [{}]", unready.join(" "));
            make(kind, false, Some("ContainersNotReady"), Some(message))
        }
    };
    let mut conditions = vec![
        make("PodReadyToStartContainers", !over, None, None),
        make(
            "Initialized",
            true,
            (phase == "Succeeded").then_some("PodCompleted"),
            None,
        ),
        ready("Ready"),
        ready("ContainersReady"),
    ];
    let mut scheduled = condition(pod, "PodScheduled")
        .cloned()
        .unwrap_or_else(|| make("PodScheduled", true, None, None));
    scheduled["observedGeneration"] = generation.clone();
    conditions.push(scheduled);
    // Written by others, kept by the kubelet.
    conditions.extend(condition(pod, "DisruptionTarget").cloned());
    let mut statuses: Vec<Value> = main.iter().map(|c| container(c, stage)).collect();
    statuses.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let mut status = json!({
        "observedGeneration": generation, "phase": phase, "conditions": conditions,
        "hostIP": address, "hostIPs": [{"ip": address}], "podIP": address, "podIPs": [{"ip": address}],
        "startTime": stamp(began),
    });
    if !init.is_empty() {
        status["initContainerStatuses"] = init.iter().map(|c| container(c, stage)).collect();
    }
    status["containerStatuses"] = statuses.into();
    status["qosClass"] = "BestEffort".into();
    pod["status"] = status;
}

fn container(seen: &Seen<'_>, stage: Stage) -> Value {
    let running = |run: &Container| json!({"running": {"startedAt": stamp(run.started)}});
    let terminated = |run: &Container, code: i32, at: DateTime<Utc>| {
        json!({"terminated": {
            "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
            "startedAt": stamp(run.started), "finishedAt": stamp(at),
            "containerID": format!("containerd://{}", run.id),
        }})
    };
    let shown_ended = |run: &Container| match (run.run(), stage) {
        (Run::Ended { code, at }, Stage::Running | Stage::Over) => Some(terminated(run, code, at)),
        (Run::Ended { .. }, Stage::Stopping) | (Run::Running, _) => None,
    };
    let (state, started) = match seen.run {
        None => (json!({"waiting": {"reason": "ContainerCreating"}}), false),
        Some(run) => match shown_ended(run) {
            Some(state) => (state, false),
            None => (running(run), true),
        },
    };
    let last = match seen.last.map(|run| (run, run.run())) {
        Some((run, Run::Ended { code, at })) => terminated(run, code, at),
        Some((_, Run::Running)) | None => json!({}),
    };
    json!({
        "name": seen.spec["name"], "state": state, "lastState": last, "ready": seen.ready && started,
        "restartCount": seen.restarts, "image": seen.spec["image"], "imageID": seen.spec["image"],
        "containerID": seen.run.map_or_else(String::new, |r| format!("containerd://{}", r.id)), "started": started,
        "resources": {},
    })
}

/// A name for messages: `NAMESPACE/NAME`.
pub(super) fn full_name(pod: &Value) -> String {
    format!("{}/{}", super::super::object::namespace(pod), name(pod))
}

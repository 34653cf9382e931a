//! kubectl against the lab's API.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{eventually, lab, text};

#[test]
fn what_operators_type_works() {
    let Some(lab) = lab(&["pod.lb_wait=1s", "pod.grace=30s"]) else {
        return;
    };
    let ok = |arguments: &[&str]| lab.kubectl_ok(arguments);
    let pod = lab.pods().remove(0);
    let table = ok(&["get", "pods", "-o", "wide"]);
    assert!(
        table
            .lines()
            .next()
            .is_some_and(|h| h.starts_with("NAME") && h.contains("READINESS GATES")),
        "{table}"
    );
    assert!(table.contains("3/3     Running   0"), "{table}");
    for kind in [
        "deploy",
        "rs",
        "nodes",
        "endpointslices",
        "events",
        "svc",
        "leases",
        "hpa",
        "pdb",
        "ns",
        "all",
        "cm",
        "ep",
    ] {
        ok(&["get", kind, "-A"]);
    }
    let yaml = ok(&["get", "deploy", "service-a-igw", "-o", "yaml"]);
    assert!(
        yaml.contains("kind: Deployment") && yaml.contains("mode: improved"),
        "{yaml}"
    );
    let described = ok(&["describe", "pod", &pod]);
    assert!(
        described.contains("Started container istio-proxy") && described.contains("Ready:          True"),
        "{described}"
    );
    ok(&["describe", "deploy", "service-a-igw"]);
    ok(&["describe", "node", "worker1"]);
    let said = ok(&[
        "exec",
        &pod,
        "-c",
        "istio-proxy",
        "--",
        "curl",
        "-s",
        "localhost:15000/stats?filter=rq_active",
    ]);
    assert!(
        said.contains("http.inbound_0.0.0.0_8080.downstream_rq_active: 0"),
        "{said}"
    );
    let failed = lab.kubectl(&[
        "exec",
        &pod,
        "-c",
        "hc",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 7",
    ]);
    assert_eq!(
        (failed.status.code(), text(&failed.stdout).as_str()),
        (Some(7), "out\n")
    );
    assert!(text(&failed.stderr).starts_with("err\n"), "{}", text(&failed.stderr));
    assert_eq!(ok(&["auth", "can-i", "delete", "pods"]), "yes\n");
    let viewer = lab.kubectl(&["--context", &lab.facts().context_viewer, "delete", "pod", &pod]);
    assert!(
        text(&viewer.stderr).contains("cannot delete resource \"pods\""),
        "{}",
        text(&viewer.stderr)
    );
    ok(&["label", "deploy", "service-a-igw", "mode=current", "--overwrite"]);
    assert_eq!(
        ok(&[
            "get",
            "deploy",
            "service-a-igw",
            "-o",
            "jsonpath={.metadata.labels.mode}"
        ]),
        "current"
    );
    lab.down();
}

#[test]
fn scale_and_rollout_run_their_course() {
    let Some(lab) = lab(&["replicas=2", "pod.lb_wait=1s", "pod.grace=30s", "rollout.min_ready=2s"]) else {
        return;
    };
    let ok = |arguments: &[&str]| lab.kubectl_ok(arguments);
    let before = lab.pods();
    ok(&["rollout", "restart", "deploy", "service-a-igw"]);
    let told = ok(&["rollout", "status", "deploy", "service-a-igw", "--timeout=90s"]);
    assert!(told.ends_with("successfully rolled out\n"), "{told}");
    let after: Vec<_> = lab.pods().into_iter().filter(|p| !before.contains(p)).collect();
    assert_eq!(after.len(), 2, "{after:?}");
    ok(&[
        "annotate",
        "pod",
        &after[1],
        "controller.kubernetes.io/pod-deletion-cost=-100",
    ]);
    ok(&["scale", "deploy", "service-a-igw", "--replicas=1"]);
    eventually("the cheap pod goes", Duration::from_secs(20), || {
        lab.pods() == after[..1]
    });
    lab.down();
}

#[test]
fn a_node_is_drained_and_the_budget_is_kept() {
    let Some(lab) = lab(&["pod.lb_wait=1s", "pod.grace=30s", "pod.pdb_min_available=1"]) else {
        return;
    };
    let pod = lab.pods().remove(0);
    let refused = lab.kubectl(&["drain", "worker1", "--timeout=3s"]);
    assert!(
        text(&refused.stderr).contains("Cannot evict pod as it would violate the pod's disruption budget."),
        "{}",
        text(&refused.stderr)
    );
    lab.kubectl_ok(&["delete", "pdb", "service-a-igw"]);
    let drained = lab.kubectl_ok(&["drain", "worker1", "--grace-period=20", "--timeout=60s"]);
    assert!(drained.contains(&format!("pod/{pod} evicted")), "{drained}");
    assert!(
        lab.kubectl_ok(&["get", "node", "worker1"])
            .contains("Ready,SchedulingDisabled")
    );
    let node = lab.kubectl_ok(&["get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"]);
    assert_eq!(node, "worker2");
    lab.kubectl_ok(&["uncordon", "worker1"]);
    assert_eq!(
        lab.kubectl_ok(&["get", "node", "worker1", "-o", "jsonpath={.spec}"]),
        "{\"podCIDR\":\"198.18.X/32\"}".replace("198.18.X", &lab.facts().hosts["worker1"].address)
    );
    lab.down();
}

#[test]
fn a_watch_tells_the_life_of_a_pod() {
    let Some(lab) = lab(&["pod.lb_wait=1s"]) else { return };
    let pod = lab.pods().remove(0);
    let mut watch = lab
        .kubectl_command(&["get", "pods", "-w", "--output-watch-events", "-o", "wide"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl");
    std::thread::sleep(Duration::from_millis(700));
    lab.kubectl_ok(&["delete", "pod", &pod, "--grace-period=210", "--wait=true"]);
    std::thread::sleep(Duration::from_millis(1500));
    watch.kill().expect("kill");
    let told = text(&watch.wait_with_output().expect("kubectl").stdout);
    let own: Vec<_> = told
        .lines()
        .filter(|l| l.contains(&pod))
        .map(|l| l.split_ascii_whitespace().collect::<Vec<_>>())
        .map(|w| format!("{} {} {}", w[0], w[2], w[3]))
        .collect();
    assert_eq!(own.first().map(String::as_str), Some("ADDED 3/3 Running"), "{told}");
    assert!(own.contains(&"MODIFIED 3/3 Terminating".to_owned()), "{own:?}");
    assert_eq!(
        &own[own.len() - 2..],
        ["MODIFIED 0/3 Completed", "DELETED 0/3 Completed"],
        "{told}"
    );
    lab.down();
}

#[test]
fn a_rollout_that_cannot_progress_says_why() {
    let Some(lab) = lab(&["replicas=2", "rollout.max_surge=1", "rollout.max_unavailable=0"]) else {
        return;
    };
    lab.kubectl_ok(&["rollout", "restart", "deploy", "service-a-igw"]);
    let wanted = "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports";
    eventually("the scheduler says why", Duration::from_secs(5), || {
        lab.kubectl_ok(&["get", "events", "--field-selector", "reason=FailedScheduling"])
            .contains(wanted)
    });
    let status = lab.kubectl(&["rollout", "status", "deploy", "service-a-igw", "--timeout=2s"]);
    assert_eq!(status.status.code(), Some(1), "{}", text(&status.stdout));
    lab.down();
}

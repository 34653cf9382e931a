//! The pace of the lab's Kubernetes, against the figures measured on a real one (`world/lab/kubernetes/timing.rs`).

use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, ListParams, WatchEvent, WatchParams};
use tokio::sync::mpsc;

use crate::support::{TestLab, eventually, lab};

/// Something that was seen, and when.
#[derive(Debug)]
enum Seen {
    Pod(&'static str, Box<Pod>),
    Slice(Box<EndpointSlice>),
}

fn watch_into(api: Api<Pod>, version: String, to: mpsc::UnboundedSender<(Instant, Seen)>) {
    tokio::spawn(async move {
        let mut events = api
            .watch(&WatchParams::default(), &version)
            .await
            .expect("watch")
            .boxed();
        while let Some(Ok(event)) = events.next().await {
            let seen = match event {
                WatchEvent::Added(p) => Seen::Pod("ADDED", Box::new(p)),
                WatchEvent::Modified(p) => Seen::Pod("MODIFIED", Box::new(p)),
                WatchEvent::Deleted(p) => Seen::Pod("DELETED", Box::new(p)),
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
            };
            let _ = to.send((Instant::now(), seen));
        }
    });
}

fn watch_slices(api: Api<EndpointSlice>, to: mpsc::UnboundedSender<(Instant, Seen)>) {
    tokio::spawn(async move {
        let mut events = api.watch(&WatchParams::default(), "0").await.expect("watch").boxed();
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Added(s) | WatchEvent::Modified(s) = event {
                let _ = to.send((Instant::now(), Seen::Slice(Box::new(s))));
            }
        }
    });
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// Fails unless a number of seconds is in a range, widened by what a busy machine adds.
#[track_caller]
fn in_range(what: &str, seconds: f64, low: f64, high: f64) {
    eprintln!("{what}: {seconds:.3} s (measured on a real cluster: {low} to {high})");
    let slack = 0.060 + high * 0.25;
    assert!(
        seconds > low * 0.6 && seconds < high + slack,
        "{what}: {seconds:.3} s is outside {low}..{high}"
    );
}

async fn one_deletion(lab: &TestLab) {
    let client = lab.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "service-a");
    let list = pods.list(&ListParams::default()).await.expect("list");
    let pod = list.items[0].clone();
    let (name, uid) = (pod.metadata.name.clone().expect("name"), pod.metadata.uid.clone());
    let node = pod.spec.as_ref().and_then(|s| s.node_name.clone()).expect("node");
    let address = pod.status.as_ref().and_then(|s| s.pod_ip.clone()).expect("address");
    let (tell, mut heard) = mpsc::unbounded_channel();
    watch_into(
        pods.clone(),
        list.metadata.resource_version.expect("version"),
        tell.clone(),
    );
    watch_slices(Api::namespaced(client, "service-a"), tell);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (start, wall) = (Instant::now(), chrono::Utc::now());
    pods.delete(&name, &DeleteParams::default().grace_period(60))
        .await
        .expect("delete");
    let answered = start.elapsed().as_secs_f64();
    let mut seen = Vec::new();
    loop {
        let (at, what) = tokio::time::timeout(Duration::from_secs(30), heard.recv())
            .await
            .expect("in time")
            .expect("open");
        let over = matches!(&what, Seen::Pod("DELETED", p) if p.metadata.uid == uid);
        seen.push((at.saturating_duration_since(start).as_secs_f64(), what));
        if over {
            break;
        }
    }
    let first = |which: &dyn Fn(&Seen) -> bool| seen.iter().find(|(_, s)| which(s)).map(|(at, _)| *at);
    let own = |p: &Pod| p.metadata.uid == uid;
    let endpoint = |s: &EndpointSlice| {
        s.endpoints
            .iter()
            .flatten()
            .find(|e| e.addresses.contains(&address))
            .map(|e| e.conditions.clone().unwrap_or_default())
    };
    in_range("answer", answered, 0.0, 0.044);
    let terminating =
        first(&|s| matches!(s, Seen::Pod("MODIFIED", p) if own(p) && p.metadata.deletion_timestamp.is_some()));
    in_range("watch says terminating", terminating.expect("terminating"), 0.0, 0.052);
    let marked = first(
        &|s| matches!(s, Seen::Slice(s) if endpoint(s).is_some_and(|c| c.terminating == Some(true) && c.serving == Some(true) && c.ready == Some(false))),
    );
    in_range("endpoint is terminating", marked.expect("marked"), 0.021, 0.066);
    let added = first(&|s| matches!(s, Seen::Pod("ADDED", p) if !own(p)));
    in_range("replacement is added", added.expect("added"), 0.01, 0.1);
    let ready = first(&|s| matches!(s, Seen::Pod(_, p) if !own(p) && is_ready(p)));
    in_range("replacement is Ready", ready.expect("ready"), 1.6, 4.0);
    // hc's log, by its own stamps: the machine has one clock.
    let state = lab.lab().directory().join("pods").join(uid.clone().expect("uid"));
    let log = std::fs::read_to_string(state.join("hc/0.log")).expect("log");
    let after = |what: &str| {
        let line = log
            .lines()
            .find(|l| l.contains(what))
            .unwrap_or_else(|| panic!("{what} in {log}"));
        let stamp = line.split_ascii_whitespace().nth(3).expect("stamp");
        let at = chrono::DateTime::parse_from_rfc3339(stamp).expect("stamp").to_utc();
        (at - wall).num_microseconds().expect("short") as f64 / 1e6
    };
    in_range("preStop of hc", after("event=prestop who=hc"), 0.038, 0.147);
    in_range("preStop of app", after("event=hold who=app"), 0.038, 0.147);
    let sigterm = after("event=sigterm");
    in_range("CLOSED to SIGTERM", sigterm - after("to=CLOSED"), 0.015, 0.033);
    let ended = first(
        &|s| matches!(s, Seen::Pod(_, p) if own(p) && p.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Succeeded")),
    );
    in_range(
        "SIGTERM to all containers terminated",
        ended.expect("ended") - sigterm,
        0.158,
        0.439,
    );
    let dropped = seen
        .iter()
        .rev()
        .find(|(_, s)| matches!(s, Seen::Slice(s) if endpoint(s).is_none()))
        .map(|(at, _)| *at);
    in_range(
        "SIGTERM to the endpoint's removal",
        dropped.expect("removed") - sigterm,
        0.161,
        0.454,
    );
    in_range("SIGTERM to DELETED", seen.last().expect("some").0 - sigterm, 0.47, 1.17);
    // While it was terminating its containers were shown as running, whatever they were.
    for (at, what) in &seen {
        if let Seen::Pod("MODIFIED", p) = what
            && own(p)
            && *at < ended.expect("ended")
        {
            let statuses = p.status.iter().flat_map(|s| s.container_statuses.iter().flatten());
            assert!(
                statuses
                    .clone()
                    .all(|c| c.state.as_ref().is_some_and(|s| s.running.is_some())),
                "at {at}"
            );
        }
    }
    // The replacement on the other node.
    let other = if node == "worker1" { "worker2" } else { "worker1" };
    let line = format!("Server istio-http-backend/{other} is UP");
    eventually("the replacement is UP", Duration::from_secs(10), || {
        lab.haproxy_log().contains(&line)
    });
    let log = lab.haproxy_log();
    let line = log.lines().rev().find(|l| l.contains(&line)).expect("UP").to_owned();
    let at = chrono::DateTime::parse_from_rfc3339(line.split_once(' ').expect("stamp").0)
        .expect("stamp")
        .to_utc();
    in_range(
        "replacement is UP at the load balancer",
        (at - wall).num_microseconds().expect("short") as f64 / 1e6,
        3.4,
        6.5,
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_keeps_the_pace_of_a_real_cluster() {
    let started = tokio::task::spawn_blocking(|| lab(&["pod.lb_wait=5s"]))
        .await
        .expect("started");
    let Some(lab) = started else { return };
    one_deletion(&lab).await;
    tokio::task::spawn_blocking(move || lab.down()).await.expect("down");
}

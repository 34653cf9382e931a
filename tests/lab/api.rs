//! kube against the lab's API: what the adapters of a cluster rely on.

use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{
    Api, AttachParams, DeleteParams, EvictParams, ListParams, LogParams, Patch, PatchParams, PostParams, Preconditions,
    WatchEvent, WatchParams,
};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{TestLab, lab};

async fn started(settings: &'static [&'static str]) -> Option<TestLab> {
    tokio::task::spawn_blocking(move || lab(settings))
        .await
        .expect("started")
}

async fn ended(lab: TestLab) {
    tokio::task::spawn_blocking(move || lab.down()).await.expect("down");
}

async fn pods(lab: &TestLab) -> Api<Pod> {
    Api::namespaced(lab.client().await, "service-a")
}

async fn only_pod(api: &Api<Pod>) -> String {
    let list = api
        .list(&ListParams::default().labels("app=service-a-igw"))
        .await
        .expect("list");
    list.items[0].metadata.name.clone().expect("name")
}

fn code(error: &kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("{other:?}"),
    }
}

fn exit_code(status: &Status) -> Option<&str> {
    let causes = status.details.as_ref()?.causes.as_ref()?;
    causes
        .iter()
        .find(|c| c.reason.as_deref() == Some("ExitCode"))?
        .message
        .as_deref()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exec_tells_what_came_of_a_command() {
    let Some(lab) = started(&[]).await else { return };
    let api = pods(&lab).await;
    let pod = only_pod(&api).await;
    let run = async |command: &[&str]| {
        let parameters = AttachParams::default().container("hc").max_stdout_buf_size(8 << 20);
        let mut process = api
            .exec(&pod, command.iter().copied(), &parameters)
            .await
            .expect("exec");
        let status = process.take_status().expect("status");
        let (mut out, mut err) = (Vec::new(), String::new());
        let (mut stdout, mut stderr) = (process.stdout().expect("stdout"), process.stderr().expect("stderr"));
        let (a, b) = tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_string(&mut err));
        a.and(b).expect("streams");
        (out, err, status.await.expect("status"))
    };
    let (out, err, status) = run(&["sh", "-c", "printf 'a\\000\\377'; echo no >&2; exit 7"]).await;
    assert_eq!((out.as_slice(), err.as_str()), (b"a\x00\xff".as_slice(), "no\n"));
    assert_eq!(
        (status.reason.as_deref(), exit_code(&status)),
        (Some("NonZeroExitCode"), Some("7"))
    );
    let (out, _, status) = run(&["head", "-c", "3000000", "/dev/zero"]).await;
    assert_eq!((out.len(), status.status.as_deref()), (3_000_000, Some("Success")));
    let (_, _, status) = run(&["sh", "-c", "kill -9 $$"]).await;
    assert_eq!(exit_code(&status), Some("137"));
    let (_, _, status) = run(&["no-such-program"]).await;
    assert_eq!(status.reason.as_deref(), Some("InternalError"));
    assert!(
        status
            .message
            .as_deref()
            .is_some_and(|m| m.contains("executable file not found in $PATH")),
        "{status:?}"
    );
    // stdin reaches the command, and its end too.
    let parameters = AttachParams::default().container("hc").stdin(true).stderr(false);
    let mut process = api.exec(&pod, ["cat"], &parameters).await.expect("exec");
    let mut stdin = process.stdin().expect("stdin");
    stdin.write_all(b"abc\n").await.expect("write");
    stdin.shutdown().await.expect("shutdown");
    drop(stdin);
    let mut said = [0; 4];
    process
        .stdout()
        .expect("stdout")
        .read_exact(&mut said)
        .await
        .expect("read");
    assert_eq!(&said, b"abc\n");
    let error = api
        .exec(&pod, ["true"], &AttachParams::default().container("nope"))
        .await
        .err()
        .expect("no container");
    assert!(format!("{error:?}").contains("400"), "{error:?}");
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_port_serves_until_the_proxy_ends() {
    let Some(lab) = started(&["mode=current", "pod.lb_wait=2s"]).await else {
        return;
    };
    let api = pods(&lab).await;
    let pod = only_pod(&api).await;
    let mut forwarder = api.portforward(&pod, &[15000]).await.expect("port-forward");
    let mut stream = forwarder.take_stream(15000).expect("stream");
    let mut ask = async || {
        let begun = Instant::now();
        stream.write_all(b"GET /ready HTTP/1.1\r\nhost: a\r\n\r\n").await?;
        let mut piece = [0; 4096];
        let size = stream.read(&mut piece).await?;
        Ok::<_, std::io::Error>((size > 0, begun.elapsed()))
    };
    for _ in 0..20 {
        assert!(ask().await.expect("answer").0);
    }
    api.delete(&pod, &DeleteParams::default().grace_period(60))
        .await
        .expect("delete");
    let deleted = Instant::now();
    // One connection, kept: it answers through the whole termination.
    let (last_good, hung) = loop {
        match ask().await {
            Ok((true, took)) => {
                assert!(took < Duration::from_millis(300), "{took:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok((false, took)) => break (deleted.elapsed() - took, took),
            Err(error) => panic!("a plain close and no error: {error}"),
        }
    };
    // DRAINING, then CLOSING at once (nothing is in flight), then two seconds.
    assert!((1.9..3.2).contains(&last_good.as_secs_f64()), "{last_good:?}");
    assert!(
        (0.85..1.3).contains(&hung.as_secs_f64()),
        "the request in flight hangs for a second: {hung:?}"
    );
    // The replacement is already there; the deleted pod is gone at the end.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = api.portforward(&pod, &[15000]).await.err().expect("gone");
    assert!(format!("{error:?}").contains("404"), "{error:?}");
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_nobody_serves_is_an_error_on_its_channel() {
    let Some(lab) = started(&[]).await else { return };
    let api = pods(&lab).await;
    let pod = only_pod(&api).await;
    let mut forwarder = api.portforward(&pod, &[1]).await.expect("port-forward");
    let error = forwarder.take_error(1).expect("error channel");
    let said = tokio::time::timeout(Duration::from_secs(3), error)
        .await
        .expect("in time")
        .unwrap_or_default();
    assert!(said.contains("connection refused"), "{said}");
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_to_its_end() {
    let Some(lab) = started(&["pod.lb_wait=1s"]).await else {
        return;
    };
    let api = pods(&lab).await;
    let pod = only_pod(&api).await;
    let parameters = LogParams {
        container: Some("hc".into()),
        follow: true,
        timestamps: true,
        ..LogParams::default()
    };
    let lines = api.log_stream(&pod, &parameters).await.expect("log").lines();
    let follower = tokio::spawn(lines.try_collect::<Vec<_>>());
    api.delete(&pod, &DeleteParams::default().grace_period(60))
        .await
        .expect("delete");
    let lines = tokio::time::timeout(Duration::from_secs(20), follower)
        .await
        .expect("ends")
        .expect("task")
        .expect("whole");
    assert!(lines[0].ends_with("event=start state=OPEN mode=improved"), "{lines:?}");
    assert!(lines.last().is_some_and(|l| l.ends_with("event=sigterm")), "{lines:?}");
    for line in &lines {
        let (runtime, rest) = line.split_once(' ').expect("runtime stamp");
        assert_eq!(runtime.len(), "2026-11-29T16:28:27.453947225Z".len(), "{line}");
        let stamp = |s: &str| chrono::DateTime::parse_from_rfc3339(s).expect("stamp");
        let late = stamp(runtime) - stamp(rest.split_once(' ').expect("own stamp").0);
        assert!((-1..200).contains(&late.num_milliseconds()), "{line}");
    }
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(code(&api.logs(&pod, &parameters).await.expect_err("gone")).0, 404);
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_survives_the_api_server_and_learns_of_gaps() {
    let Some(lab) = started(&["pod.lb_wait=1s"]).await else {
        return;
    };
    let api = pods(&lab).await;
    let version = api
        .list(&ListParams::default())
        .await
        .expect("list")
        .metadata
        .resource_version
        .expect("version");
    let mut plain = api
        .watch(&WatchParams::default(), &version)
        .await
        .expect("watch")
        .boxed();
    let mut resuming = watcher(api.clone(), watcher::Config::default())
        .default_backoff()
        .boxed();
    let pod = only_pod(&api).await;
    let until = async |events: &mut futures::stream::BoxStream<'_, _>, what: fn(&watcher::Event<Pod>) -> bool| loop {
        match tokio::time::timeout(Duration::from_secs(20), events.next())
            .await
            .expect("in time")
            .expect("open")
        {
            Ok(event) if what(&event) => break,
            Ok(_) | Err(_) => {}
        }
    };
    until(&mut resuming, |e| matches!(e, watcher::Event::InitDone)).await;
    lab.lab().api_down().expect("down");
    // The stream ends; whether with an error or without a word is up to the connection.
    let last = tokio::time::timeout(Duration::from_secs(5), plain.next())
        .await
        .expect("ends");
    assert!(
        !matches!(
            last,
            Some(Ok(WatchEvent::Added(_)
                | WatchEvent::Modified(_)
                | WatchEvent::Deleted(_)))
        ),
        "{last:?}"
    );
    assert!(api.get(&pod).await.is_err(), "nobody listens");
    lab.lab().api_up().expect("up");
    api.get(&pod).await.expect("it answers again, with the same objects");
    api.delete(&pod, &DeleteParams::default().grace_period(60))
        .await
        .expect("delete");
    until(
        &mut resuming,
        |e| matches!(e, watcher::Event::Apply(p) if p.metadata.deletion_timestamp.is_some()),
    )
    .await;
    // A version that is no longer kept: 410, and a list begins anew.
    lab.lab().compact().expect("compacted");
    let mut old = api
        .watch(&WatchParams::default(), &version)
        .await
        .expect("watch")
        .boxed();
    match old.next().await {
        Some(Ok(WatchEvent::Error(status))) => {
            assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
            assert!(
                status
                    .message
                    .starts_with(&format!("too old resource version: {version} (")),
                "{}",
                status.message
            );
        }
        other => panic!("{other:?}"),
    }
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_keep_their_preconditions_and_budgets() {
    let Some(lab) = started(&["pod.pdb_min_available=1", "pod.lb_wait=1s"]).await else {
        return;
    };
    let api = pods(&lab).await;
    let pod = only_pod(&api).await;
    let other = Preconditions {
        uid: Some("00000000-0000-0000-0000-000000000000".into()),
        resource_version: None,
    };
    let wrong = DeleteParams {
        preconditions: Some(other),
        ..DeleteParams::default()
    };
    assert_eq!(
        code(&api.delete(&pod, &wrong).await.expect_err("another uid")),
        (409, "Conflict".into())
    );
    let refused = api.evict(&pod, &EvictParams::default()).await.expect_err("the budget");
    assert_eq!(code(&refused), (429, "TooManyRequests".into()));
    assert_eq!(
        code(&api.get("nope").await.expect_err("none")),
        (404, "NotFound".into())
    );
    let first = api
        .delete(&pod, &DeleteParams::default().grace_period(20))
        .await
        .expect("delete")
        .left()
        .expect("pod");
    assert_eq!(first.metadata.deletion_grace_period_seconds, Some(20));
    let longer = api
        .delete(&pod, &DeleteParams::default().grace_period(300))
        .await
        .expect("again")
        .left()
        .expect("pod");
    assert_eq!(
        longer.metadata.deletion_timestamp, first.metadata.deletion_timestamp,
        "never longer"
    );
    api.delete(&pod, &DeleteParams::default().grace_period(0))
        .await
        .expect("by force");
    assert_eq!(code(&api.get(&pod).await.expect_err("gone at once")).0, 404);
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scale_restart_leases_and_rights() {
    let Some(lab) = started(&["pod.lb_wait=1s"]).await else {
        return;
    };
    let client = lab.client().await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "service-a");
    let scale = deployments.get_scale("service-a-igw").await.expect("scale");
    assert_eq!(scale.spec.and_then(|s| s.replicas), Some(1));
    let patch = Patch::Merge(serde_json::json!({"spec": {"replicas": 2}}));
    deployments
        .patch_scale("service-a-igw", &PatchParams::default(), &patch)
        .await
        .expect("scaled");
    let stale = serde_json::json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}});
    let conflict = deployments
        .patch("service-a-igw", &PatchParams::default(), &Patch::Merge(stale))
        .await;
    assert_eq!(code(&conflict.expect_err("stale")), (409, "Conflict".into()));
    let before = deployments
        .get("service-a-igw")
        .await
        .expect("deployment")
        .metadata
        .generation;
    deployments.restart("service-a-igw").await.expect("restarted");
    let after = deployments
        .get("service-a-igw")
        .await
        .expect("deployment")
        .metadata
        .generation;
    assert_eq!(after, before.map(|g| g + 1));
    let leases: Api<Lease> = Api::namespaced(client.clone(), "service-a");
    let lease = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "gtrun"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 60},
    }));
    let lease: Lease = lease.expect("lease");
    leases.create(&PostParams::default(), &lease).await.expect("created");
    assert_eq!(
        code(&leases.create(&PostParams::default(), &lease).await.expect_err("there")),
        (409, "AlreadyExists".into())
    );
    leases.delete("gtrun", &DeleteParams::default()).await.expect("deleted");
    let may = async |client: kube::Client, verb: &str, resource: &str| {
        let attributes = ResourceAttributes {
            verb: Some(verb.into()),
            resource: Some(resource.into()),
            namespace: Some("service-a".into()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..Default::default()
            },
            ..Default::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(client);
        api.create(&PostParams::default(), &review)
            .await
            .expect("review")
            .status
            .is_some_and(|s| s.allowed)
    };
    assert!(may(client, "delete", "pods").await);
    let viewer = lab.client_of(&lab.facts().context_viewer.clone()).await;
    assert!(!may(viewer.clone(), "delete", "pods").await);
    assert!(may(viewer.clone(), "watch", "pods").await);
    let forbidden = Api::<Pod>::namespaced(viewer, "service-a")
        .delete("x", &DeleteParams::default())
        .await;
    assert_eq!(code(&forbidden.expect_err("no right")), (403, "Forbidden".into()));
    ended(lab).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_is_killed_is_started_anew() {
    let Some(lab) = started(&["pod.lb_wait=1s"]).await else {
        return;
    };
    let api = pods(&lab).await;
    let pod = only_pod(&api).await;
    let parameters = AttachParams::default().container("istio-proxy").stderr(false);
    let command = [
        "sh",
        "-c",
        "kill -9 $(ip netns pids NS | xargs -n1 sh -c 'grep -lx envoy /proc/$0/comm 2>/dev/null' | cut -d/ -f3)",
    ];
    let namespace = lab.facts().hosts["worker1"].namespace.clone();
    let command: Vec<String> = command.iter().map(|w| w.replace("NS", &namespace)).collect();
    let mut process = api.exec(&pod, command, &parameters).await.expect("exec");
    let status = process.take_status().expect("status");
    let _ = tokio::time::timeout(Duration::from_secs(5), status).await;
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let now = api.get(&pod).await.expect("pod");
        let statuses = now.status.and_then(|s| s.container_statuses).unwrap_or_default();
        let proxy = statuses.iter().find(|s| s.name == "istio-proxy").expect("status");
        if proxy.restart_count == 1 && proxy.ready {
            let last = proxy
                .last_state
                .as_ref()
                .and_then(|s| s.terminated.as_ref())
                .expect("last state");
            assert_eq!(last.exit_code, 137);
            break;
        }
        assert!(Instant::now() < until, "{proxy:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let previous = LogParams {
        container: Some("istio-proxy".into()),
        previous: true,
        ..LogParams::default()
    };
    assert!(
        api.logs(&pod, &previous)
            .await
            .expect("previous log")
            .contains("starting main dispatch loop")
    );
    ended(lab).await;
}

//! The adapters against the lab: a Kubernetes API over TLS with kubelets behind it, Envoy, HAProxy, sshd and tcpdump,
//! each a process of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use gtrun::evidence::client::Outcome;
use gtrun::language::plan;
use gtrun::time;
use gtrun::world::cluster::{Options, connect, ssh::SshOptions};
use gtrun::world::facts::PodFacts;
use gtrun::world::lab::{Lab, LabError, LabName, LabOptions, LabWorld, Lifetime};
use gtrun::world::port::{
    ErrorKind, HttpRequest, HttpResult, LogEnd, LogItem, PodIdentity, Sampler, WatchItem, Watched, World,
};

use crate::http::request;

/// A lab, and its world by the adapters of a cluster.
struct Rig {
    lab: Option<Lab>,
    root: std::path::PathBuf,
    world: World,
}

impl Rig {
    async fn start(settings: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("c{}-{count}", std::process::id());
        let root = std::env::temp_dir().join(format!("gtrun-test-{name}"));
        let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
        let world = LabWorld::with_settings(serde_json::json!({}), &settings).expect("settings");
        let options = LabOptions {
            root: root.clone(),
            program: Some(env!("CARGO_BIN_EXE_gtrun").into()),
            lifetime: Lifetime::Attached,
            ..LabOptions::new(LabName::new(&name).expect("name"), world)
        };
        let lab = match tokio::task::spawn_blocking(move || Lab::up(&options))
            .await
            .expect("up")
        {
            Ok(lab) => lab,
            Err(missing @ LabError::Missing(_)) => {
                crate::part::missing(&missing.to_string());
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let facts = lab.facts();
        let mut base = crate::environment();
        base.kind = plan::EnvironmentKind::Lab;
        let options = Options {
            kubeconfig: Some(facts.kubeconfig.clone()),
            ssh: SshOptions {
                config_files: Some(vec![facts.ssh_config.clone()]),
                ..SshOptions::default()
            },
        };
        let world = connect(&facts.environment(&base), &options).await.expect("world");
        Some(Self {
            lab: Some(lab),
            root,
            world,
        })
    }

    fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("up")
    }

    async fn pod(&self) -> PodFacts {
        let pods = self.world.cluster.pods().await.expect("pods");
        pods.into_iter()
            .find(|pod| pod.ready && !pod.terminating())
            .expect("a ready pod")
    }

    /// A request that takes so long, in the background.
    fn sleep(&self, seconds: u32) -> tokio::task::JoinHandle<HttpResult> {
        let request = HttpRequest {
            timeout: time::Duration::from_secs(60),
            ..request(&format!("/sleep?seconds={seconds}"))
        };
        tokio::spawn(self.world.http.send(Arc::new(request), None))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(lab) = self.lab.take() {
            lab.down().expect("down");
        }
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// Collects a stream in the background.
fn collect<T: Send + 'static>(mut stream: BoxStream<'static, T>) -> (Arc<Mutex<Vec<T>>>, tokio::task::JoinHandle<()>) {
    let items = Arc::<Mutex<Vec<T>>>::default();
    let kept = Arc::clone(&items);
    let task = tokio::spawn(async move {
        while let Some(item) = stream.next().await {
            kept.lock().expect("lock").push(item);
        }
    });
    (items, task)
}

async fn until(what: &str, seconds: u64, condition: impl FnMut() -> bool) {
    assert!(
        crate::part::within(seconds, condition).await,
        "not within {seconds} s: {what}"
    );
}

async fn until_reply(sampler: &mut Box<dyn Sampler>, reply: &str) {
    for _ in 0..200 {
        if sampler.sample().await.reply.as_deref() == Ok(reply) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never {reply}");
}

fn lines(items: &[LogItem]) -> Vec<String> {
    let text = |item: &LogItem| match item {
        LogItem::Line { text, .. } => Some(String::from_utf8_lossy(text).into_owned()),
        LogItem::Gap { .. } | LogItem::End { .. } => None,
    };
    items.iter().filter_map(text).collect()
}

fn active(stats: &str) -> bool {
    stats
        .lines()
        .any(|line| line.starts_with("http.inbound") && line.ends_with("downstream_rq_active: 1"))
}

const GAUGES: &str = "rq_active";

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_killed_under_a_request_and_every_source_tells() {
    let Some(rig) = Rig::start(&["mode=current", "replicas=1"]).await else {
        return;
    };
    let World {
        cluster,
        load_balancer,
        hosts,
        clock,
        ..
    } = rig.world.clone();
    let pod = rig.pod().await;
    let deployment = cluster.deployment().await.expect("deployment");
    assert_eq!((deployment.replicas, deployment.status.ready), (1, 1));
    assert!(deployment.template_hash.is_some() && deployment.template_hash == pod.template_hash);

    // Everything is there before the first step.
    let (watch, _watching) = collect(cluster.watch(Watched::Pods).await.expect("watch"));
    let mut logs = Vec::new();
    for container in ["app", "hc", "istio-proxy"] {
        logs.push(collect(
            cluster.follow_log(&pod.identity, container, None).await.expect("log"),
        ));
    }
    let (lb_log, _following) = collect(load_balancer.follow_log().await.expect("haproxy.log"));
    let mut gauges = cluster.envoy_stats(&pod.identity, GAUGES).await.expect("gauges");
    let mut page = cluster.health_page(&pod.identity).await.expect("health page");
    assert_eq!(page.sample().await.reply.as_deref(), Ok("200"));
    let mut stats = load_balancer.stats().await.expect("statistics");
    let config = load_balancer.configuration().await.expect("configuration");
    assert!(config.contains("on-marked-down shutdown-sessions"), "{config}");
    for host in ["lb", "worker1", "worker2"] {
        let exchanges = hosts.exchange_clocks(host).await.expect("clock");
        let best = exchanges.iter().map(|e| e.received - e.sent).min().expect("exchanges");
        eprintln!("clock of {host} over the jump host: best round trip {best}");
    }
    let limit = time::Duration::from_secs(120);
    let capture = hosts
        .start_capture("lb", "gtrun-test-lab", limit)
        .await
        .expect("capture");

    let long = rig.sleep(30);
    let mut idle = true;
    for _ in 0..100 {
        let sample = gauges.sample().await;
        idle = !active(&sample.reply.expect("gauges"));
        if !idle {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!idle, "the request never showed");
    let csv = stats.sample().await.reply.expect("statistics");
    let node = pod.node.clone().expect("node");
    assert!(csv.contains(&format!("istio-http-backend,{node},")), "{csv}");

    let deleted = clock.now();
    let answer = cluster
        .delete_pod(&pod.identity, Some(time::Duration::from_secs(60)))
        .await
        .expect("delete");
    assert_eq!(answer.status, 200);
    until_reply(&mut page, "503").await;
    let result = long.await.expect("the request");
    assert_eq!(
        (result.outcome, result.status),
        (Outcome::HttpError, Some(502)),
        "{result:?}"
    );
    let took = result.ended - deleted;
    assert!(
        took > time::Duration::from_secs(2) && took < time::Duration::from_millis(4800),
        "{took}"
    );

    // The log says DOWN, and what became of the request on its very port.
    until("the load balancer's lines", 5, || {
        let lines = lines(&lb_log.lock().expect("lock"));
        let down = lines.iter().any(|line| line.contains(&format!("{node} is DOWN")));
        let port = result.local_port.expect("port").to_string();
        down && lines.iter().any(|line| line.contains(&port) && line.contains(" DH-- "))
    })
    .await;

    // Gauges answer until Envoy goes, and never take longer than they may.
    let mut lost = 0;
    let begun = std::time::Instant::now();
    while lost < 3 && begun.elapsed() < Duration::from_secs(60) {
        let asked = std::time::Instant::now();
        let sample = gauges.sample().await;
        assert!(asked.elapsed() < Duration::from_millis(600), "{:?}", asked.elapsed());
        lost += u32::from(sample.reply.is_err());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(lost, 3, "Envoy did not go");

    // Each log was read to its end.
    for (items, task) in logs {
        tokio::time::timeout(Duration::from_secs(30), task)
            .await
            .expect("the log does not end")
            .expect("task");
        let items = items.lock().expect("lock");
        assert!(
            matches!(
                items.last(),
                Some(LogItem::End {
                    why: LogEnd::ContainerEnded,
                    ..
                })
            ),
            "{:?}",
            items.last()
        );
        assert!(
            !items.iter().any(|item| matches!(item, LogItem::Gap { .. })),
            "{items:?}"
        );
        let last = lines(&items).pop().expect("a line");
        assert!(
            last.contains("sigterm") || last.contains("exiting") || last.contains("SIGTERM"),
            "{last}"
        );
    }

    // The watch: the very pod terminating, then gone; another one in its place.
    until("the pod's end", 30, || {
        watch.lock().expect("lock").iter().any(|item| {
            matches!(item, WatchItem::Event { kind, object, .. }
                if kind == "DELETED" && object["metadata"]["uid"] == pod.identity.uid.as_str())
        })
    })
    .await;
    let others = watch.lock().expect("lock").iter().any(|item| {
        matches!(item, WatchItem::Event { kind, object, .. }
            if kind == "ADDED" && object["metadata"]["uid"] != pod.identity.uid.as_str())
    });
    assert!(others, "no replacement");
    assert!(
        !watch
            .lock()
            .expect("lock")
            .iter()
            .any(|item| matches!(item, WatchItem::Gap { .. }))
    );

    // Gone: nothing of it can be read any more.
    let gone = cluster
        .exec(&pod.identity, "app", &["true".to_owned()])
        .await
        .expect_err("gone");
    assert_eq!(gone.kind, ErrorKind::NotFound, "{gone}");
    let gone = cluster
        .follow_log(&pod.identity, "app", None)
        .await
        .err()
        .expect("gone");
    assert_eq!(gone.kind, ErrorKind::NotFound, "{gone}");

    let end = capture.finish().await;
    assert_eq!(end.fault, None, "{}", end.words);
    assert!(end.rest.len() > 1000, "{} bytes", end.rest.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_goes_away_is_a_gap_and_nothing_more() {
    let Some(rig) = Rig::start(&["mode=improved", "replicas=1"]).await else {
        return;
    };
    let cluster = Arc::clone(&rig.world.cluster);
    let pod = rig.pod().await;
    let (watch, _watching) = collect(cluster.watch(Watched::Pods).await.expect("watch"));
    let (log, _following) = collect(
        cluster
            .follow_log(&pod.identity, "istio-proxy", None)
            .await
            .expect("log"),
    );
    let mut gauges = cluster.envoy_stats(&pod.identity, GAUGES).await.expect("gauges");
    let gaps = || {
        watch
            .lock()
            .expect("lock")
            .iter()
            .filter(|item| matches!(item, WatchItem::Gap { .. }))
            .count()
    };
    let contacts = || {
        watch
            .lock()
            .expect("lock")
            .iter()
            .filter(|item| matches!(item, WatchItem::Contact { .. }))
            .count()
    };

    // Lines with a number each, before, during and after.
    let number = async |n: u32| {
        let result = rig
            .world
            .http
            .send(Arc::new(request(&format!("/?number={n}"))), None)
            .await;
        assert_eq!(result.outcome, Outcome::Ok, "{result:?}");
    };
    number(1).await;
    rig.lab().api_down().expect("down");
    until("a gap in the watch", 10, || gaps() >= 1).await;
    number(2).await;
    let lost = gauges.sample().await;
    assert!(lost.reply.is_err(), "{lost:?}");
    let unreachable = cluster.pods().await.expect_err("nobody listens");
    assert_eq!(unreachable.kind, ErrorKind::Unreachable, "{unreachable}");
    rig.lab().api_up().expect("up");
    until("contact", 20, || contacts() >= 2).await;
    number(3).await;

    let numbers = || {
        let all = lines(&log.lock().expect("lock"));
        let of = |n: u32| {
            all.iter()
                .filter(|line| line.contains(&format!("number={n} ")) || line.contains(&format!("number={n}\"")))
                .count()
        };
        [of(1), of(2), of(3)]
    };
    until("every line", 20, || numbers().iter().all(|n| *n >= 1)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(numbers(), [1, 1, 1], "doubled");
    assert!(
        !log.lock()
            .expect("lock")
            .iter()
            .any(|item| matches!(item, LogItem::Gap { .. })),
        "nothing was lost"
    );
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while gauges.sample().await.reply.is_err() {
        assert!(std::time::Instant::now() < until, "no gauges again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_changes_and_rights_are_what_the_api_says() {
    let Some(rig) = Rig::start(&["mode=improved", "replicas=2", "pod.pdb_min_available=2"]).await else {
        return;
    };
    let cluster = Arc::clone(&rig.world.cluster);
    let pod = rig.pod().await;
    let argv = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let output = cluster
        .exec(
            &pod.identity,
            "app",
            &argv(&["sh", "-c", "echo out; echo err >&2; exit 7"]),
        )
        .await
        .expect("exec");
    assert_eq!(
        (output.exit, output.stdout.as_slice(), output.stderr.as_slice()),
        (7, &b"out\n"[..], &b"err\n"[..])
    );
    let big = cluster
        .exec(&pod.identity, "app", &argv(&["head", "-c", "5000000", "/dev/zero"]))
        .await
        .expect("exec");
    assert_eq!((big.exit, big.stdout.len()), (0, 5_000_000));
    let missing = cluster
        .exec(&pod.identity, "app", &argv(&["/no/such"]))
        .await
        .expect_err("no program");
    assert_eq!(missing.kind, ErrorKind::Failed, "{missing}");
    let unknown = cluster
        .exec(&pod.identity, "nope", &argv(&["true"]))
        .await
        .expect_err("no container");
    assert_eq!(unknown.status(), Some(400), "{unknown}");

    let budgets = cluster.budgets().await.expect("budgets");
    assert_eq!(budgets.len(), 1, "{budgets:?}");
    assert_eq!(budgets[0].disruptions_allowed, 0);
    let refused = cluster
        .evict_pod(&pod.identity, None)
        .await
        .expect_err("the budget forbids it");
    assert_eq!((refused.status(), refused.refused()), (Some(429), true), "{refused}");
    let other = PodIdentity {
        uid: "00000000-0000-0000-0000-000000000000".to_owned(),
        ..pod.identity.clone()
    };
    let conflict = cluster.delete_pod(&other, None).await.expect_err("another uid");
    assert_eq!(conflict.status(), Some(409), "{conflict}");
    assert!(cluster.pods().await.expect("pods").iter().all(|pod| !pod.terminating()));

    cluster
        .set_deletion_cost(&pod.identity, Some(-100))
        .await
        .expect("cost");
    assert_eq!(
        rig.world
            .cluster
            .pods()
            .await
            .expect("pods")
            .iter()
            .filter_map(|p| p.deletion_cost.clone())
            .collect::<Vec<_>>(),
        ["-100"]
    );
    cluster.set_deletion_cost(&pod.identity, None).await.expect("no cost");
    let wrong = cluster
        .set_deletion_cost(&other, Some(1))
        .await
        .expect_err("another uid");
    assert_eq!(wrong.kind, ErrorKind::NotFound, "{wrong}");

    let label = |value: Option<&str>| [("test".to_owned(), value.map(str::to_owned))].into_iter().collect();
    cluster.label(&label(Some("x"))).await.expect("label");
    assert_eq!(
        cluster
            .deployment()
            .await
            .expect("deployment")
            .labels
            .get("test")
            .map(String::as_str),
        Some("x")
    );
    cluster.label(&label(None)).await.expect("label");
    assert_eq!(cluster.deployment().await.expect("deployment").labels.get("test"), None);

    let node = pod.node.clone().expect("node");
    for cordoned in [true, false] {
        cluster.cordon(&node, cordoned).await.expect("cordon");
        let nodes = cluster.nodes().await.expect("nodes");
        assert_eq!(
            nodes.iter().find(|n| n.name == node).map(|n| n.cordoned),
            Some(cordoned)
        );
    }
    cluster.scale(1).await.expect("scale");
    assert_eq!(cluster.deployment().await.expect("deployment").replicas, 1);
    assert!(cluster.autoscalers().await.expect("autoscalers").is_empty());

    for (verb, resource) in [
        ("delete", "pods"),
        ("create", "pods/eviction"),
        ("patch", "deployments/scale"),
        ("list", "nodes"),
    ] {
        assert!(cluster.may(verb, resource).await.expect("answer"), "{verb} {resource}");
    }
    let minute = time::Duration::from_secs(60);
    cluster.take_lease("run-a", minute).await.expect("lease");
    cluster.take_lease("run-a", minute).await.expect("renewed");
    assert_eq!(
        cluster.take_lease("run-b", minute).await.expect_err("held").status(),
        Some(409)
    );
    cluster.release_lease("run-a").await.expect("release");
    cluster.take_lease("run-b", minute).await.expect("free again");
    cluster.release_lease("run-b").await.expect("release");
}

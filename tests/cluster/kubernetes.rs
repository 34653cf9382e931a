//! The Kubernetes adapter against an API server that answers with what a real one (1.34) was recorded to answer.

mod log;
mod session;
mod standin;
mod watch;

use std::collections::BTreeMap;

use gtrun::time::{Duration, Instant};
use gtrun::world::cluster::kubernetes::Kubernetes;
use gtrun::world::port::{Cluster, ErrorKind, PodIdentity};
use serde_json::{Value, json};
use standin::{Asked, Reaction, StandIn, json, text};

pub(crate) const POD: &str = "demo-7959f846d4-drpwp";
pub(crate) const UID: &str = "c2abc129-e56f-46d2-9763-1323321d795a";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/demo";

pub(crate) fn pod() -> PodIdentity {
    PodIdentity {
        name: POD.to_owned(),
        uid: UID.to_owned(),
    }
}

pub(crate) fn pod_path() -> String {
    format!("/api/v1/namespaces/default/pods/{POD}")
}

fn recorded(text: &str) -> Value {
    serde_json::from_str(text).expect("a recording")
}

pub(crate) fn deployment() -> Value {
    recorded(include_str!("../lab/recorded/deployment.json"))
}

pub(crate) fn pods() -> Value {
    recorded(include_str!("../lab/recorded/pod-list.json"))
}

/// The recorded pod of the list, as an object of its own.
pub(crate) fn the_pod() -> Value {
    pods()["items"][0].clone()
}

/// What every cluster here has: the Deployment, its ReplicaSets, its pods.
pub(crate) fn standard(asked: &Asked) -> Reaction {
    let pod = pod_path();
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", DEPLOYMENT) => json(200, &deployment()),
        ("GET", "/apis/apps/v1/namespaces/default/replicasets") => {
            json(200, &recorded(include_str!("../lab/recorded/replicaset-list.json")))
        }
        ("GET", "/api/v1/namespaces/default/pods") => json(200, &pods()),
        ("GET", path) if path == pod => json(200, &the_pod()),
        _ => Reaction::Recorded(include_str!("recorded/status-404-missing-pod.txt")),
    }
}

#[tokio::test]
async fn the_workload_is_read_as_facts() {
    let api = StandIn::start(standard).await;
    let cluster = api.connect().await;
    let deployment = cluster.deployment().await.expect("deployment");
    assert_eq!(
        (deployment.name.as_str(), deployment.selector_text().as_str()),
        ("demo", "app=demo")
    );
    assert_eq!(deployment.template_hash.as_deref(), Some("7959f846d4"));
    let pods = cluster.pods().await.expect("pods");
    assert_eq!(pods.iter().map(|p| p.identity.clone()).collect::<Vec<_>>(), [pod()]);
    assert_eq!(
        pods[0].object["kind"], "Pod",
        "items of a list have no kind of their own"
    );
    let asked = api.asked();
    assert!(
        asked.iter().any(|a| a.query.contains("labelSelector=app%3Ddemo")),
        "{asked:?}"
    );
    let missing = cluster.nodes().await.expect_err("not there");
    assert_eq!(missing.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let api = StandIn::start(|asked| {
        let (from, next) = match asked.query.split("continue=").nth(1) {
            None => (0, "page2"),
            Some(_) => (500, ""),
        };
        let items: Vec<_> = (from..from + 500)
            .map(|n| json!({ "metadata": { "name": format!("n{n:04}") } }))
            .collect();
        json(
            200,
            &json!({ "kind": "NodeList", "apiVersion": "v1", "metadata": { "continue": next }, "items": items }),
        )
    })
    .await;
    assert_eq!(api.connect().await.nodes().await.expect("nodes").len(), 1000);
}

/// A change as it was sent: method, path, query, body.
async fn sent(change: impl AsyncFnOnce(&Kubernetes)) -> Asked {
    let api = StandIn::start(|asked| match asked.path.ends_with("/eviction") {
        true => Reaction::Recorded(include_str!("recorded/eviction-response.txt")),
        false => Reaction::Recorded(include_str!("recorded/scale-patch-response.txt")),
    })
    .await;
    change(&api.connect().await).await;
    let mut asked = api.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked.remove(0)
}

#[tokio::test]
async fn every_change_is_one_call_with_its_preconditions() {
    let grace = Some(Duration::from_secs(210));
    let asked = sent(async |c| assert_eq!(c.delete_pod(&pod(), grace).await.expect("delete").status, 200)).await;
    assert!(asked.is("DELETE", &pod_path()), "{asked:?}");
    assert_eq!(
        (&asked.body["gracePeriodSeconds"], &asked.body["preconditions"]["uid"]),
        (&json!(210), &json!(UID))
    );

    let asked = sent(async |c| {
        c.delete_pod(&pod(), None).await.expect("delete");
    })
    .await;
    assert_eq!(asked.body.get("gracePeriodSeconds"), None, "the pod's own grace");

    let asked = sent(async |c| assert_eq!(c.evict_pod(&pod(), grace).await.expect("evict").status, 201)).await;
    assert!(asked.is("POST", &format!("{}/eviction", pod_path())), "{asked:?}");
    let options = &asked.body["deleteOptions"];
    assert_eq!(
        (&options["gracePeriodSeconds"], &options["preconditions"]["uid"]),
        (&json!(210), &json!(UID))
    );
    assert_eq!(asked.body["apiVersion"], "policy/v1");

    let asked = sent(async |c| {
        let answer = c.scale(2).await.expect("scale");
        assert_eq!((answer.status, &answer.object["kind"]), (200, &json!("Scale")));
    })
    .await;
    assert!(asked.is("PATCH", &format!("{DEPLOYMENT}/scale")), "{asked:?}");
    assert_eq!(asked.body, json!({ "spec": { "replicas": 2 } }));

    let at = Instant::parse("2026-11-29T16:13:10.608Z").expect("instant");
    let asked = sent(async |c| {
        c.restart_rollout(at).await.expect("restart");
    })
    .await;
    assert!(asked.is("PATCH", DEPLOYMENT));
    let annotations = &asked.body["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["kubectl.kubernetes.io/restartedAt"], "2026-11-29T16:13:10Z");

    let labels = BTreeMap::from([
        ("mode".to_owned(), Some("current".to_owned())),
        ("old".to_owned(), None),
    ]);
    let asked = sent(async |c| {
        c.label(&labels).await.expect("label");
    })
    .await;
    assert_eq!(
        asked.body,
        json!({ "metadata": { "labels": { "mode": "current", "old": null } } })
    );

    for (cordon, value) in [(true, json!(true)), (false, Value::Null)] {
        let asked = sent(async |c| {
            c.cordon("worker1", cordon).await.expect("cordon");
        })
        .await;
        assert!(asked.is("PATCH", "/api/v1/nodes/worker1"));
        assert_eq!(asked.body, json!({ "spec": { "unschedulable": value } }));
    }

    let api = StandIn::start(|asked| match asked.method.as_str() {
        "PATCH" => json(200, &the_pod()),
        _ => standard(asked),
    })
    .await;
    api.connect()
        .await
        .set_deletion_cost(&pod(), Some(-100))
        .await
        .expect("cost");
    let asked = api.asked().remove(1);
    let cost = json!({ "controller.kubernetes.io/pod-deletion-cost": "-100" });
    assert_eq!(asked.body, json!({ "metadata": { "uid": UID, "annotations": cost } }));
}

#[tokio::test]
async fn a_grace_period_in_parts_of_a_second_is_not_sent() {
    let api = StandIn::start(standard).await;
    let error = api
        .connect()
        .await
        .delete_pod(&pod(), Some(Duration::from_millis(1500)))
        .await
        .expect_err("1.5 s");
    assert!(error.to_string().contains("whole seconds"), "{error}");
    assert!(api.asked().is_empty());
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_not_sent_again() {
    let api = StandIn::start(|_| Reaction::Close).await;
    let error = api.connect().await.delete_pod(&pod(), None).await.expect_err("lost");
    assert_eq!(error.kind, ErrorKind::Interrupted, "{error}");
    assert_eq!(api.asked().len(), 1);
    // What only reads is asked once more.
    let api = StandIn::start(|_| Reaction::Close).await;
    let error = api.connect().await.pods_by_label("app=demo").await.expect_err("lost");
    assert_eq!((error.kind, api.asked().len()), (ErrorKind::Interrupted, 2));
}

#[tokio::test]
async fn refusals_keep_the_words_of_the_api_and_say_what_to_do() {
    for (recording, kind, words) in [
        (
            include_str!("recorded/status-403-forbidden-delete.txt"),
            ErrorKind::Refused {
                status: 403,
                reason: "Forbidden".to_owned(),
            },
            ["cannot delete resource \"pods\"", "rbac.yaml"],
        ),
        (
            include_str!("recorded/status-401-unauthorized.txt"),
            ErrorKind::Refused {
                status: 401,
                reason: "Unauthorized".to_owned(),
            },
            ["Unauthorized", "kubectl get pods"],
        ),
        (
            include_str!("recorded/status-409-delete-uid-precondition.txt"),
            ErrorKind::Refused {
                status: 409,
                reason: "Conflict".to_owned(),
            },
            ["does not match the UID in record", "delete pod"],
        ),
        (
            include_str!("recorded/status-404-missing-pod.txt"),
            ErrorKind::NotFound,
            ["not found", "delete pod"],
        ),
    ] {
        let api = StandIn::start(move |_| Reaction::Recorded(recording)).await;
        let error = api.connect().await.delete_pod(&pod(), None).await.expect_err("refused");
        assert_eq!(error.kind, kind, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{error}");
        }
    }
    // A budget that forbids an eviction.
    let api = StandIn::start(|_| {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        json(
            429,
            &json!({ "kind": "Status", "message": message, "reason": "TooManyRequests", "code": 429 }),
        )
    })
    .await;
    let error = api.connect().await.evict_pod(&pod(), None).await.expect_err("budget");
    assert_eq!((error.status(), error.refused()), (Some(429), true));
    // Somebody in between that is no API server.
    let api = StandIn::start(|_| text(503, "upstream connect error")).await;
    let error = api.connect().await.delete_pod(&pod(), None).await.expect_err("a proxy");
    assert_eq!(error.kind, ErrorKind::Interrupted, "{error}");
    assert!(
        error.to_string().contains("HTTP 503: upstream connect error"),
        "{error}"
    );
}

#[tokio::test]
async fn nobody_there_and_no_such_context_are_told_apart() {
    let api = StandIn::start(standard).await;
    let config = api.folder().join("config");
    let nobody = std::fs::read_to_string(&config).expect("config");
    let server = nobody
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("server")
        .to_owned();
    std::fs::write(&config, nobody.replace(&server, "127.0.0.1:1")).expect("write");
    let error = api.connect().await.deployment().await.expect_err("nobody listens");
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("Connection refused"), "{error}");

    let mut environment = crate::environment();
    environment.context = Some("elsewhere".to_owned());
    let clock = std::sync::Arc::new(gtrun::world::cluster::SystemClock::start());
    let error = Kubernetes::connect(&environment, Some(&config), clock)
        .await
        .err()
        .expect("no such context");
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("elsewhere"), "{error}");
}

#[tokio::test]
async fn access_is_asked_for_the_very_names() {
    let api = StandIn::start(|asked| {
        let allowed = asked.body["spec"]["resourceAttributes"]["verb"] != "delete";
        json(
            201,
            &json!({ "kind": "SelfSubjectAccessReview", "status": { "allowed": allowed } }),
        )
    })
    .await;
    let cluster = api.connect().await;
    assert!(cluster.may("create", "pods/eviction").await.expect("answer"));
    assert!(!cluster.may("delete", "pods").await.expect("answer"));
    assert!(cluster.may("patch", "deployments/scale").await.expect("answer"));
    assert!(cluster.may("patch", "nodes").await.expect("answer"));
    let attributes: Vec<_> = api
        .asked()
        .iter()
        .map(|a| a.body["spec"]["resourceAttributes"].clone())
        .collect();
    assert_eq!(
        attributes[0],
        json!({ "verb": "create", "group": "", "resource": "pods", "subresource": "eviction", "namespace": "default", "name": "" })
    );
    assert_eq!(
        (&attributes[2]["group"], &attributes[2]["name"]),
        (&json!("apps"), &json!("demo"))
    );
    assert_eq!(attributes[3]["namespace"], "");
    let error = cluster.may("get", "secrets").await.expect_err("unknown");
    assert_eq!(error.kind, ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_lease_is_taken_renewed_refused_and_given_back() {
    use std::sync::{Arc, Mutex};
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let stored = Arc::<Mutex<Option<Value>>>::default();
    let lease = Arc::clone(&stored);
    let api = StandIn::start(move |asked| {
        let mut lease = lease.lock().expect("lock");
        match asked.method.as_str() {
            "GET" => match &*lease {
                Some(lease) => json(200, lease),
                None => Reaction::Recorded(include_str!("recorded/status-404-missing-pod.txt")),
            },
            "POST" | "PUT" => {
                assert_eq!(
                    asked.path,
                    if asked.method == "POST" {
                        LEASES.to_owned()
                    } else {
                        format!("{LEASES}/gtrun-demo")
                    }
                );
                let mut object = asked.body.clone();
                object["metadata"]["resourceVersion"] = json!("7");
                object["metadata"]["uid"] = json!("lease-uid");
                *lease = Some(object.clone());
                json(200, &object)
            }
            "DELETE" => {
                assert_eq!(
                    asked.body["preconditions"],
                    json!({ "uid": "lease-uid", "resourceVersion": "7" })
                );
                *lease = None;
                json(200, &json!({ "kind": "Status", "status": "Success" }))
            }
            _ => Reaction::Close,
        }
    })
    .await;
    let cluster = api.connect().await;
    let minute = Duration::from_secs(60);
    cluster.take_lease("run-a", minute).await.expect("free");
    cluster.take_lease("run-a", minute).await.expect("renewed");
    let held = cluster.take_lease("run-b", minute).await.expect_err("held");
    assert_eq!(held.status(), Some(409));
    assert!(held.to_string().contains("run-a has it until"), "{held}");
    // Not the holder: nothing happens.
    cluster.release_lease("run-b").await.expect("not held");
    assert!(stored.lock().expect("lock").is_some());
    // Expired.
    if let Some(lease) = &mut *stored.lock().expect("lock") {
        lease["spec"]["renewTime"] = json!("2020-01-01T00:00:00.000000Z");
    }
    cluster.take_lease("run-b", minute).await.expect("expired");
    cluster.release_lease("run-b").await.expect("given back");
    assert!(stored.lock().expect("lock").is_none());
    cluster.release_lease("run-b").await.expect("not there");
}

//! The lab's answers against those recorded from a real API server (Kubernetes 1.34): codes, words, shapes, sequences.
//!
//! `recorded/` holds the recordings, without managed fields and with long descriptions cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use futures::StreamExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{TestLab, lab, text};

fn recorded(name: &str) -> Value {
    serde_json::from_str(&recorded_text(name)).expect(name)
}

fn recorded_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/lab/recorded")
        .join(name);
    std::fs::read_to_string(path).expect(name)
}

fn kubeconfig(lab: &TestLab) -> Value {
    serde_json::from_slice(&std::fs::read(&lab.facts().kubeconfig).expect("kubeconfig")).expect("JSON")
}

fn token(lab: &TestLab, role: &str) -> String {
    let config = kubeconfig(lab);
    let users = config["users"].as_array().expect("users").clone();
    let user = users
        .iter()
        .find(|u| u["name"] == format!("gtrun-lab-{role}"))
        .expect("user");
    user["user"]["token"].as_str().expect("token").to_owned()
}

/// An answer.
#[derive(Debug)]
struct Answer {
    code: u16,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// One request.
struct Ask<'a> {
    lab: &'a TestLab,
    role: &'a str,
}

impl Ask<'_> {
    fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        let mut command = Command::new("curl");
        // An agent that gets compact JSON, as programs do.
        command.args(["-skS", "-i", "--max-time", "5", "-A", "test", "-X", method]);
        if !self.role.is_empty() {
            command.args(["-H", &format!("Authorization: Bearer {}", token(self.lab, self.role))]);
        }
        if !content_type.is_empty() {
            command.args(["-H", &format!("Content-Type: {content_type}"), "-d", body]);
        }
        command.arg(format!("{}{path}", self.lab.facts().api_url));
        let mut output = command.output().expect("curl");
        // A connection that could not be made is tried again; an answer never is.
        for _ in 0..3 {
            if !output.stdout.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(300));
            output = command.output().expect("curl");
        }
        let said = text(&output.stdout).replace('\r', "");
        let (head, body) = said.split_once("\n\n").unwrap_or_else(|| {
            panic!(
                "{method} {path}: curl {}: {said}{}",
                output.status,
                text(&output.stderr)
            )
        });
        let mut lines = head.lines();
        let code = lines
            .next()
            .and_then(|l| l.split(' ').nth(1))
            .expect("status")
            .parse()
            .expect("number");
        let headers = lines
            .filter_map(|l| l.split_once(": "))
            .map(|(k, v)| (k.to_lowercase(), v.to_owned()))
            .collect();
        // Of a stream, the first line.
        let first = body.lines().next().unwrap_or_default();
        let body = serde_json::from_str(body)
            .or_else(|_| serde_json::from_str(first))
            .unwrap_or(Value::Null);
        Answer { code, headers, body }
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }
}

/// Everything that differs between two labs in what a refusal says.
fn neutral(body: &Value, names: &[(&str, &str)]) -> String {
    let mut said = body.to_string();
    for (from, to) in names {
        said = said.replace(from, to);
    }
    said
}

#[test]
fn refusals_have_the_words_of_a_real_server() {
    let Some(lab) = lab(&[]) else { return };
    let refusals = recorded("refusals.json");
    let pod = lab.pods().remove(0);
    let uid = lab.kubectl_ok(&["get", "pod", &pod, "-o", "jsonpath={.metadata.uid}"]);
    let admin = Ask {
        lab: &lab,
        role: "admin",
    };
    let nobody = Ask {
        lab: &lab,
        role: "nobody",
    };
    let pods = "/api/v1/namespaces/service-a/pods";
    let own = format!("{pods}/{pod}");
    let deployment = "/apis/apps/v1/namespaces/service-a/deployments/service-a-igw";
    let merge = "application/merge-patch+json";
    let cases = [
        (
            "status-404-missing-pod",
            admin.get(&format!("{pods}/demo-7959f846d4-drpwp")),
        ),
        ("status-401-unauthorized", Ask { lab: &lab, role: "" }.get(pods)),
        ("status-403-forbidden-list", nobody.get(pods)),
        ("watch-forbidden", nobody.get(&format!("{pods}?watch=true"))),
        ("status-403-forbidden-delete", nobody.send("DELETE", &own, "", "")),
        ("status-400-log-without-container", admin.get(&format!("{own}/log"))),
        (
            "status-400-log-unknown-container",
            admin.get(&format!("{own}/log?container=nope")),
        ),
        (
            "status-400-log-previous-missing",
            admin.get(&format!("{own}/log?container=app&previous=true")),
        ),
        (
            "status-409-delete-uid-precondition",
            admin.send(
                "DELETE",
                &own,
                "application/json",
                r#"{"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}"#,
            ),
        ),
        (
            "status-409-conflict-patch",
            admin.send("PATCH", deployment, merge, r#"{"metadata": {"resourceVersion": "1"}}"#),
        ),
        (
            "status-415-bad-patch-content-type",
            admin.send("PATCH", deployment, "text/plain", "{}"),
        ),
        (
            "status-422-bad-patch-negative-replicas",
            admin.send("PATCH", deployment, merge, r#"{"spec": {"replicas": -1}}"#),
        ),
        (
            "status-400-bad-patch-wrong-type",
            admin.send("PATCH", deployment, merge, r#"{"spec": {"replicas": "two"}}"#),
        ),
        (
            "status-422-unknown-field-strict",
            admin.send(
                "PATCH",
                &format!("{deployment}?fieldValidation=Strict"),
                merge,
                r#"{"spec": {"nope": 1}}"#,
            ),
        ),
        (
            "status-422-bad-json-patch-path",
            admin.send(
                "PATCH",
                deployment,
                "application/json-patch+json",
                r#"[{"op": "replace", "path": "/spec/nope/x", "value": 1}]"#,
            ),
        ),
        (
            "status-400-bad-patch-not-json",
            admin.send("PATCH", deployment, merge, "{nope"),
        ),
        ("list-400-bad-continue", admin.get(&format!("{pods}?continue=nope!"))),
        (
            "list-410-expired",
            admin.get(&format!("{pods}?resourceVersion=5&resourceVersionMatch=Exact")),
        ),
        (
            "watch-410-expired",
            admin.get(&format!("{pods}?watch=true&resourceVersion=5")),
        ),
    ];
    let names = [
        (pod.as_str(), "demo-7959f846d4-k6zkx"),
        (uid.as_str(), "38545f88-b869-4846-9705-f007fef18f56"),
        ("service-a-igw", "demo"),
        ("service-a", "default"),
        ("gtrun-lab-nobody", "rig-nobody"),
        ("[app hc istio-proxy]", "[web ticker]"),
        ("\\\"app\\\"", "\\\"web\\\""),
    ];
    // Words of another JSON reader, and counters: what kind of refusal it is must be the same.
    let loose = [
        "status-400-bad-patch-not-json",
        "list-400-bad-continue",
        "watch-410-expired",
        "status-400-bad-patch-wrong-type",
    ];
    let mut checked = 0;
    for (name, answer) in &cases {
        let wanted = &refusals[name];
        assert!(!wanted.is_null(), "{name} is not recorded");
        assert_eq!(answer.code, wanted["code"], "{name}: {answer:?}");
        for (key, value) in wanted["headers"].as_object().expect("headers") {
            assert_eq!(
                answer.headers.get(key).map(String::as_str),
                value.as_str(),
                "{name}: {key}"
            );
        }
        assert!(answer.headers.contains_key("audit-id"), "{name}");
        let mut body = answer.body.clone();
        if *name == "status-422-unknown-field-strict" {
            // The whole object is quoted in the message.
            shorten(&mut body);
        }
        if loose.contains(name) {
            let (ours, theirs) = if *name == "watch-410-expired" {
                (&body["object"], &wanted["body"]["object"])
            } else {
                (&body, &wanted["body"])
            };
            assert_eq!(
                (&ours["code"], &ours["reason"], &ours["status"]),
                (&theirs["code"], &theirs["reason"], &theirs["status"]),
                "{name}"
            );
            assert_eq!(shape(ours), shape(theirs), "{name}");
        } else {
            assert_eq!(neutral(&body, &names), wanted["body"].to_string(), "{name}");
        }
        checked += 1;
    }
    assert_eq!(
        checked,
        refusals.as_object().expect("map").len() - 1,
        "every recorded refusal is asked for"
    );
    let eviction = r#"{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {}}"#;
    let evicted = admin.send("POST", &format!("{own}/eviction"), "application/json", eviction);
    assert_eq!(
        (evicted.code, &evicted.body),
        (201, &refusals["eviction-response"]["body"])
    );
    lab.down();
}

fn shorten(body: &mut Value) {
    let cut = |message: &str| {
        let (before, rest) = message.split_once("\"{").expect("object");
        let (_, after) = rest.rsplit_once("}\": ").expect("object");
        format!("{before}\"{{OBJECT}}\": {after}")
    };
    body["message"] = cut(body["message"].as_str().expect("message")).into();
    let cause = &mut body["details"]["causes"][0]["message"];
    *cause = cut(cause.as_str().expect("message")).into();
}

/// Where a value has what: every path with the type that stands there.
fn shape(value: &Value) -> BTreeMap<String, &'static str> {
    fn walk(value: &Value, path: &str, into: &mut BTreeMap<String, &'static str>) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(items) => {
                items.iter().for_each(|i| walk(i, &format!("{path}[]"), into));
                "array"
            }
            Value::Object(map) => {
                map.iter().for_each(|(k, v)| walk(v, &format!("{path}/{k}"), into));
                "object"
            }
        };
        into.insert(path.to_owned(), kind);
    }
    let mut paths = BTreeMap::new();
    walk(value, "", &mut paths);
    paths
}

/// Fails unless everything recorded is there with its type, but for what a lab's pods have not.
#[track_caller]
fn has_the_shape(what: &str, ours: &Value, recorded: &Value, lacks: &[&str]) {
    let ours = shape(ours);
    let missing: Vec<_> = shape(recorded)
        .into_iter()
        .filter(|(path, _)| !lacks.iter().any(|l| path.contains(l)))
        .filter(|(path, kind)| ours.get(path) != Some(kind))
        .map(|(path, kind)| format!("{path}: {kind}, here {:?}", ours.get(&path)))
        .collect();
    assert!(missing.is_empty(), "{what}:\n{}", missing.join("\n"));
}

/// No service account is mounted into the lab's pods; images have no names of files.
const NO_VOLUMES: [&str; 2] = ["/volumes", "/volumeMounts"];
/// Labels and annotations of the recorded workload itself.
const OWN_NAMES: [&str; 2] = ["/labels/", "/matchLabels/app"];

#[test]
fn objects_have_the_shape_of_real_ones() {
    let Some(lab) = lab(&["pod.lb_wait=2s"]) else { return };
    let admin = Ask {
        lab: &lab,
        role: "admin",
    };
    let pods = "/api/v1/namespaces/service-a/pods";
    let pod = lab.pods().remove(0);
    let lacks: Vec<&str> = NO_VOLUMES.into_iter().chain(OWN_NAMES).collect();
    has_the_shape(
        "a running pod",
        &admin.get(&format!("{pods}/{pod}")).body,
        &recorded("pod-running.json"),
        &lacks,
    );
    let listed = admin.get(pods).body;
    has_the_shape("a list of pods", &listed, &recorded("pod-list.json"), &lacks);
    assert!(
        listed["items"][0].get("kind").is_none(),
        "items of a list do not repeat their kind"
    );
    let deployment = admin
        .get("/apis/apps/v1/namespaces/service-a/deployments/service-a-igw")
        .body;
    has_the_shape(
        "a deployment",
        &deployment,
        &recorded("deployment.json"),
        &["/labels/app", "rollingUpdate/max"],
    );
    let scale = admin
        .get("/apis/apps/v1/namespaces/service-a/deployments/service-a-igw/scale")
        .body;
    assert_eq!(shape(&scale), shape(&recorded("scale.json")));
    let sets = admin.get("/apis/apps/v1/namespaces/service-a/replicasets").body;
    has_the_shape(
        "replica sets",
        &sets,
        &recorded("replicaset-list.json"),
        &["/labels/app", "matchLabels/app"],
    );

    let mut table = Command::new("curl");
    table.args([
        "-sk",
        "-H",
        "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    ]);
    table.args(["-H", &format!("Authorization: Bearer {}", token(&lab, "admin"))]);
    let output = table
        .arg(format!("{}{pods}", lab.facts().api_url))
        .output()
        .expect("curl");
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let real = recorded("pod-list-as-table.json");
    has_the_shape("a table", &table, &real, &lacks);
    let titles = |t: &Value| {
        t["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|c| (c["name"].clone(), c["priority"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(titles(&table), titles(&real));
    assert_eq!(
        table["rows"][0]["cells"].as_array().map(Vec::len),
        real["rows"][0]["cells"].as_array().map(Vec::len)
    );

    let deleted = admin.send(
        "DELETE",
        &format!("{pods}/{pod}"),
        "application/json",
        r#"{"gracePeriodSeconds": 210}"#,
    );
    assert_eq!(deleted.code, 200);
    has_the_shape(
        "the answer to a deletion",
        &deleted.body,
        &recorded("pod-terminating.json"),
        &lacks,
    );
    assert_eq!(deleted.body["metadata"]["generation"], 2);
    std::thread::sleep(Duration::from_secs(1));
    let terminating = admin.get(&format!("{pods}/{pod}")).body;
    has_the_shape(
        "a terminating pod",
        &terminating,
        &recorded("pod-terminating.json"),
        &lacks,
    );
    assert_eq!(terminating["status"]["observedGeneration"], 2);
    let events = admin.get("/api/v1/namespaces/service-a/events").body;
    let reasons = |list: &Value, component: &str| {
        let events = list["items"].as_array().expect("items").clone();
        let event = events
            .into_iter()
            .find(|e| e["reportingComponent"] == component)
            .expect(component);
        let mut event = event;
        for key in ["kind", "apiVersion"] {
            event.as_object_mut().expect("object").remove(key);
        }
        event
    };
    for component in ["kubelet", "default-scheduler"] {
        has_the_shape(
            component,
            &reasons(&events, component),
            &reasons(&recorded("events.json"), component),
            &["involvedObject/fieldPath"],
        );
    }
    lab.down();
}

#[test]
fn a_deletion_is_watched_as_on_a_real_server() {
    let Some(lab) = lab(&["pod.lb_wait=1s"]) else { return };
    let pod = lab.pods().remove(0);
    let mut command = Command::new("curl");
    let path =
        format!("/api/v1/namespaces/service-a/pods?watch=true&timeoutSeconds=8&fieldSelector=metadata.name%3D{pod}");
    let version = lab.kubectl_ok(&["get", "pods", "-o", "json"]);
    let version: Value = serde_json::from_str(&version).expect("JSON");
    let version = version["items"][0]["metadata"]["resourceVersion"]
        .as_str()
        .expect("version")
        .to_owned();
    command.args(["-skN", "-H", &format!("Authorization: Bearer {}", token(&lab, "admin"))]);
    command.arg(format!("{}{path}&resourceVersion={version}", lab.facts().api_url));
    let watch = command.stdout(std::process::Stdio::piped()).spawn().expect("curl");
    lab.kubectl_ok(&["delete", "pod", &pod, "--grace-period=210", "--wait=false"]);
    let said = text(&watch.wait_with_output().expect("curl").stdout);
    let parse = |t: &str| {
        t.lines()
            .map(|l| serde_json::from_str::<Value>(l).expect("JSON"))
            .collect::<Vec<_>>()
    };
    let (ours, real) = (parse(&said), parse(&recorded_text("watch-pod-deletion.jsonl")));
    // What changes from one event to the next; readiness of ours also flips, as the health page does.
    let story = |events: &[Value]| {
        let mut steps: Vec<Value> = events
            .iter()
            .map(|e| {
                let o = &e["object"];
                let condition = |kind: &str| {
                    let all = o["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    let c = all.iter().find(|c| c["type"] == kind).cloned().unwrap_or_default();
                    json!([c["status"], c["reason"], c["observedGeneration"]])
                };
                json!({
                    "type": e["type"], "grace": o["metadata"]["deletionGracePeriodSeconds"], "phase": o["status"]["phase"],
                    "initialized": condition("Initialized"), "network": condition("PodReadyToStartContainers"),
                    "states": o["status"]["containerStatuses"].as_array().map(|a| a.iter().map(|c| c["state"].as_object().and_then(|s| s.keys().next().cloned())).collect::<std::collections::BTreeSet<_>>()),
                })
            })
            .collect();
        steps.dedup();
        steps
    };
    assert_eq!(story(&ours), story(&real), "{said}");
    for (ours, real) in [(ours.first(), real.first()), (ours.last(), real.last())] {
        let (ours, real) = (ours.expect("event"), real.expect("event"));
        let lacks: Vec<&str> = NO_VOLUMES.into_iter().chain(OWN_NAMES).collect();
        has_the_shape("an event", ours, real, &lacks);
    }
    lab.down();
}

/// Opens an exec with these offers; returns the protocol that was agreed on and every frame.
async fn exec(lab: &TestLab, pod: &str, offers: Option<&str>, query: &str) -> Result<(String, Vec<Message>), Error> {
    let config = kubeconfig(lab);
    let cluster = &config["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority-data"].as_str().expect("authority");
    let authority = base64::engine::general_purpose::STANDARD
        .decode(authority)
        .expect("base64");
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        roots.add(certificate.expect("certificate")).expect("certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = lab.facts().api_url.trim_start_matches("https://").to_owned();
    let stream = tokio::net::TcpStream::connect(&address).await.expect("connect");
    let name = ServerName::try_from("127.0.0.1").expect("name");
    let stream = tokio_rustls::TlsConnector::from(Arc::new(tls))
        .connect(name, stream)
        .await
        .expect("TLS");
    let uri = format!(
        "wss://{address}/api/v1/namespaces/service-a/pods/{pod}/exec?container=app&stdout=true&stderr=true{query}"
    );
    let mut request = uri.into_client_request()?;
    let headers = request.headers_mut();
    headers.insert(
        "Authorization",
        format!("Bearer {}", token(lab, "admin")).parse().expect("header"),
    );
    if let Some(offers) = offers {
        headers.insert("Sec-WebSocket-Protocol", offers.parse().expect("header"));
    }
    let (mut socket, answer) = tokio_tungstenite::client_async(request, stream).await?;
    let agreed = answer
        .headers()
        .get("sec-websocket-protocol")
        .map(|v| v.to_str().expect("text").to_owned());
    let mut frames = Vec::new();
    while let Some(Ok(frame)) = socket.next().await {
        frames.push(frame);
    }
    Ok((agreed.unwrap_or_default(), frames))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exec_speaks_every_protocol_of_a_real_server() {
    let started = tokio::task::spawn_blocking(|| lab(&[])).await.expect("started");
    let Some(lab) = started else { return };
    let pod = lab.pods().remove(0);
    let failing = "&command=sh&command=-c&command=echo+out%3B+echo+err+%3E%262%3B+exit+7";
    let v5 = r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#;
    let old = "command terminated with non-zero exit code: error executing command [sh -c echo out; echo err >&2; exit 7], exit code 7";
    for (offers, agreed, last) in [
        (Some("v5.channel.k8s.io"), "v5.channel.k8s.io", v5),
        (Some("v4.channel.k8s.io,v5.channel.k8s.io"), "v5.channel.k8s.io", v5),
        (Some("v4.channel.k8s.io"), "v4.channel.k8s.io", ""),
        (Some("channel.k8s.io"), "channel.k8s.io", old),
        (Some("base64.channel.k8s.io"), "base64.channel.k8s.io", old),
    ] {
        let (spoken, frames) = exec(&lab, &pod, offers, failing).await.expect("exec");
        assert_eq!(spoken, agreed);
        let data: Vec<(u8, Vec<u8>)> = frames
            .iter()
            .filter_map(|f| match f {
                Message::Binary(b) => Some((b[0], b[1..].to_vec())),
                Message::Text(t) => {
                    let decoded = base64::engine::general_purpose::STANDARD
                        .decode(&t.as_bytes()[1..])
                        .expect("base64");
                    Some((t.as_bytes()[0] - b'0', decoded))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            data.first(),
            Some(&(1, Vec::new())),
            "the first frame is an empty one of stdout"
        );
        let mut middle = data[1..3].to_vec();
        middle.sort();
        assert_eq!(middle, [(1, b"out\n".to_vec()), (2, b"err\n".to_vec())]);
        assert_eq!((data.len(), data[3].0), (4, 3));
        if !last.is_empty() {
            assert_eq!(text(&data[3].1), last, "{agreed}");
        }
        let Some(Message::Close(Some(close))) = frames.last() else {
            panic!("{frames:?}")
        };
        assert_eq!((u16::from(close.code), close.reason.as_str()), (1000, ""));
    }
    match exec(&lab, &pod, Some("v3.channel.k8s.io"), failing).await {
        Err(Error::Http(refusal)) => {
            assert_eq!(refusal.status().as_u16(), 403);
            assert!(
                refusal.body().as_ref().is_none_or(Vec::is_empty),
                "no Status in a refusal of protocols"
            );
        }
        other => panic!("{other:?}"),
    }
    let (_, frames) = exec(&lab, &pod, Some("v5.channel.k8s.io"), "").await.expect("exec");
    assert!(
        frames.iter().any(|f| f.to_string().contains("args must not be empty")),
        "{frames:?}"
    );
    let plain = Ask {
        lab: &lab,
        role: "admin",
    }
    .get(&format!(
        "/api/v1/namespaces/service-a/pods/{pod}/exec?container=app&command=true"
    ));
    assert_eq!(
        (plain.code, &plain.body["message"]),
        (400, &"Upgrade request required".into())
    );
    tokio::task::spawn_blocking(move || lab.down()).await.expect("down");
}

//! Exec and port-forward over WebSocket, frame by frame as a real kubelet sends them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::{FutureExt, SinkExt, StreamExt};
use gtrun::world::port::{Cluster, ErrorKind, Sampler};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::standin::{Asked, Reaction, Socket, StandIn, text};
use super::{pod, pod_path, standard};

fn frame(channel: u8, bytes: &[u8]) -> Message {
    Message::binary([&[channel], bytes].concat())
}

/// An exec that sends these frames and closes.
fn exec(frames: Vec<Message>) -> Reaction {
    Reaction::Socket(Box::new(|mut socket: Socket| {
        async move {
            // The first frame is always an empty one of standard output.
            let _ = socket.send(frame(1, b"")).await;
            for frame in frames {
                let _ = socket.send(frame).await;
            }
            let _ = socket.close(None).await;
            while let Some(Ok(_)) = socket.next().await {}
        }
        .boxed()
    }))
}

fn on(subresource: &str, answers: Vec<Reaction>) -> impl Fn(&Asked) -> Reaction + Send + Sync + use<> {
    let (path, answers) = (format!("{}/{subresource}", pod_path()), Mutex::new(answers.into_iter()));
    move |asked| match asked.path == path {
        true => answers.lock().expect("lock").next().unwrap_or(Reaction::Close),
        false => standard(asked),
    }
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const SUCCESS: &[u8] = br#"{"metadata":{},"status":"Success"}"#;
const EXIT_7: &[u8] = br#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#;
const NO_CONTAINER: &[u8] = br#"{"metadata":{},"status":"Failure","message":"unable to upgrade connection: container not found (\"ticker\")","reason":"InternalError","code":500}"#;

#[tokio::test]
async fn both_streams_and_the_exit_code_come_whole() {
    let megabytes = vec![b'x'; 3_000_000];
    let mut frames: Vec<_> = megabytes.chunks(32 * 1024).map(|chunk| frame(1, chunk)).collect();
    frames.push(frame(2, b"err\n"));
    frames.push(frame(3, EXIT_7));
    let server = StandIn::start(on("exec", vec![exec(frames), exec(vec![frame(3, SUCCESS)])])).await;
    let cluster = server.connect().await;
    let output = cluster
        .exec(&pod(), "ticker", &argv(&["sh", "-c", "echo $HOME"]))
        .await
        .expect("exec");
    assert_eq!(
        (output.exit, output.stdout.len(), output.stderr.as_slice()),
        (7, 3_000_000, &b"err\n"[..])
    );
    let output = cluster.exec(&pod(), "ticker", &argv(&["true"])).await.expect("exec");
    assert_eq!((output.exit, output.stdout.len()), (0, 0));
    let asked = server
        .asked()
        .into_iter()
        .find(|asked| asked.path.ends_with("/exec"))
        .expect("exec");
    assert!(
        asked.query.contains("command=sh&command=-c&command=echo+%24HOME"),
        "{}",
        asked.query
    );
    assert!(asked.query.contains("container=ticker"), "{}", asked.query);
}

#[tokio::test]
async fn a_dead_container_is_not_found_after_a_second_look() {
    let dead = || exec(vec![frame(3, NO_CONTAINER)]);
    let server = StandIn::start(on("exec", vec![dead(), dead()])).await;
    let error = server
        .connect()
        .await
        .exec(&pod(), "ticker", &argv(&["true"]))
        .await
        .expect_err("dead");
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    assert_eq!(
        server
            .asked()
            .iter()
            .filter(|asked| asked.path.ends_with("/exec"))
            .count(),
        2
    );
    // Noise: the second look finds it alive.
    let server = StandIn::start(on("exec", vec![dead(), exec(vec![frame(3, SUCCESS)])])).await;
    assert_eq!(
        server
            .connect()
            .await
            .exec(&pod(), "ticker", &argv(&["true"]))
            .await
            .expect("alive")
            .exit,
        0
    );
}

#[tokio::test]
async fn a_session_that_breaks_is_an_interruption_and_not_run_again() {
    let server = StandIn::start(on("exec", vec![exec(vec![frame(1, b"part")])])).await;
    let error = server
        .connect()
        .await
        .exec(&pod(), "ticker", &argv(&["true"]))
        .await
        .expect_err("broken");
    assert_eq!(error.kind, ErrorKind::Interrupted, "{error}");
    assert_eq!(
        server
            .asked()
            .iter()
            .filter(|asked| asked.path.ends_with("/exec"))
            .count(),
        1
    );
}

/// What the pod's Envoy does with the requests that come through a port-forward.
#[derive(Clone, Copy)]
enum Envoy {
    /// Answers each with the gauges.
    Answers,
    /// Answers so many, then is silent: it has gone, and the kubelet has not noticed.
    Hangs(u32),
    /// Answers with this.
    Says(&'static str),
    /// Nobody listens on the port.
    Refuses,
}

const GAUGES: &str = "http.inbound_0.0.0.0_8080.downstream_rq_active: 1\n";

fn forward(envoy: Envoy) -> Reaction {
    Reaction::Socket(Box::new(move |mut socket: Socket| {
        async move {
            // Each channel begins with the port: 15000.
            for channel in [0, 1] {
                let _ = socket.send(frame(channel, &[0x98, 0x3a])).await;
            }
            if matches!(envoy, Envoy::Refuses) {
                let words = "error forwarding port 15000 to pod 2cf7, uid : failed to execute portforward in network namespace: \
                             failed to connect to localhost:15000 inside namespace: connection refused";
                let _ = socket.send(frame(1, words.as_bytes())).await;
                let _ = socket.close(None).await;
                return;
            }
            let (mut asked, mut served) = (Vec::new(), 0);
            while let Some(Ok(message)) = socket.next().await {
                let Message::Binary(bytes) = message else { continue };
                asked.extend_from_slice(&bytes[1..]);
                if !asked.ends_with(b"\r\n\r\n") {
                    continue;
                }
                let head = String::from_utf8(std::mem::take(&mut asked)).expect("ASCII");
                assert!(head.starts_with("GET /stats?filter=rq_active%24 HTTP/1.1\r\n"), "{head}");
                let body = match envoy {
                    Envoy::Answers => GAUGES,
                    Envoy::Hangs(after) if served >= after => continue,
                    Envoy::Hangs(_) => GAUGES,
                    Envoy::Says(body) => body,
                    Envoy::Refuses => "",
                };
                served += 1;
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                // In pieces, as they come.
                for piece in answer.as_bytes().chunks(17) {
                    let _ = socket.send(frame(0, piece)).await;
                }
            }
        }
        .boxed()
    }))
}

async fn sampler(server: &StandIn) -> Box<dyn Sampler> {
    server
        .connect()
        .await
        .envoy_stats(&pod(), "rq_active$")
        .await
        .expect("gauges")
}

fn forwards(server: &StandIn) -> usize {
    server
        .asked()
        .iter()
        .filter(|asked| asked.path.ends_with("/portforward"))
        .count()
}

#[tokio::test]
async fn gauges_come_over_one_kept_connection() {
    let server = StandIn::start(on("portforward", vec![forward(Envoy::Answers)])).await;
    let mut gauges = sampler(&server).await;
    let mut last = None;
    for _ in 0..200 {
        let sample = gauges.sample().await;
        assert_eq!(sample.reply.as_deref(), Ok(GAUGES));
        assert!(last.is_none_or(|last| last <= sample.sent) && sample.sent < sample.received);
        last = Some(sample.received);
    }
    assert_eq!(forwards(&server), 1);
}

#[tokio::test]
async fn a_sample_that_hangs_ends_in_time_and_the_next_has_a_new_connection() {
    // One answer is for the first question at the start.
    let answers = vec![forward(Envoy::Hangs(2)), forward(Envoy::Answers)];
    let server = StandIn::start(on("portforward", answers)).await;
    let mut gauges = sampler(&server).await;
    assert!(gauges.sample().await.reply.is_ok());
    let begun = Instant::now();
    let hung = gauges.sample().await;
    assert_eq!(hung.reply, Err("timeout".to_owned()));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert!(hung.received - hung.sent >= gtrun::time::Duration::from_millis(200));
    assert!(gauges.sample().await.reply.is_ok());
    assert_eq!(forwards(&server), 2);
}

#[tokio::test]
async fn a_port_that_nobody_serves_any_more_is_unknown_and_not_asked_without_end() {
    let mut answers = vec![forward(Envoy::Hangs(1))];
    answers.extend((0..100).map(|_| forward(Envoy::Refuses)));
    let server = StandIn::start(on("portforward", answers)).await;
    let mut gauges = sampler(&server).await;
    let until = Instant::now() + Duration::from_secs(3);
    let mut reasons = Vec::new();
    while Instant::now() < until {
        let asked = Instant::now();
        let sample = gauges.sample().await;
        assert!(asked.elapsed() < Duration::from_millis(600), "{:?}", asked.elapsed());
        reasons.push(sample.reply.expect_err("nobody serves it"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        reasons.iter().any(|why| why.contains("connection refused")),
        "{reasons:?}"
    );
    assert!(forwards(&server) < 20, "{} attempts in 3 s", forwards(&server));
}

#[tokio::test]
async fn an_answer_without_gauges_is_unknown_and_keeps_the_connection() {
    let server = StandIn::start(on("portforward", vec![forward(Envoy::Says(""))])).await;
    let mut gauges = sampler(&server).await;
    for _ in 0..3 {
        assert_eq!(gauges.sample().await.reply, Err("empty reply".to_owned()));
    }
    assert_eq!(forwards(&server), 1);
}

#[tokio::test]
async fn where_port_forward_is_forbidden_exec_does_it() {
    let forbidden = include_str!("../recorded/status-403-forbidden-delete.txt");
    let execs = std::sync::Arc::new(AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&execs);
    let server = StandIn::start(move |asked| {
        if asked.path.ends_with("/portforward") {
            return Reaction::Recorded(forbidden);
        }
        if asked.path.ends_with("/exec") {
            counted.fetch_add(1, Ordering::Relaxed);
            assert!(
                asked
                    .query
                    .contains("127.0.0.1%3A15000%2Fstats%3Ffilter%3Drq_active%2524"),
                "{}",
                asked.query
            );
            return exec(vec![frame(1, GAUGES.as_bytes()), frame(3, SUCCESS)]);
        }
        standard(asked)
    })
    .await;
    let mut gauges = sampler(&server).await;
    assert_eq!(gauges.sample().await.reply.as_deref(), Ok(GAUGES));
    assert_eq!(execs.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_way_that_does_not_exist_names_both_reasons() {
    let server = StandIn::start(|asked| match asked.path.rsplit('/').next() {
        Some("portforward") => forward(Envoy::Refuses),
        Some("exec") => exec(vec![frame(3, EXIT_7)]),
        _ => standard(asked),
    })
    .await;
    let error = server
        .connect()
        .await
        .envoy_stats(&pod(), "rq_active$")
        .await
        .err()
        .expect("no way");
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert!(error.to_string().contains("envoy_admin"), "{error}");
    assert!(error.to_string().contains("by exec"), "{error}");

    // A completed pod: an answer that is no Status, before the upgrade.
    let server = StandIn::start(|asked| match asked.path.rsplit('/').next() {
        Some("portforward") => text(500, "error dialing backend: pod is not running"),
        _ => standard(asked),
    })
    .await;
    let error = server
        .connect()
        .await
        .envoy_stats(&pod(), "x")
        .await
        .err()
        .expect("completed");
    assert!(error.to_string().contains("pod is not running"), "{error}");
}

#[test]
fn the_port_of_the_frames_is_the_one_of_the_environment() {
    assert_eq!(u16::from_le_bytes([0x98, 0x3a]), 15000);
    assert_eq!(crate::environment().workload.envoy_admin, 15000);
    assert_eq!(json!(crate::environment().workload.containers["sidecar"]), "ticker");
}

//! Logs: from now on, over breaks, to the end, and no further.

use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use gtrun::world::port::{Cluster, LogItem};
use serde_json::json;

use super::standin::{Asked, Piece, Reaction, StandIn, data, json, stream, text};
use super::{pod, pod_path, standard, the_pod};

/// One request after the other of each kind gets the next answer; the last one stays.
struct Script {
    /// `tailLines=1`, without follow.
    last: Vec<Reaction>,
    follows: Vec<Reaction>,
    pods: Vec<Reaction>,
}

fn api(script: Script) -> impl Fn(&Asked) -> Reaction + Send + Sync {
    let Script { last, follows, pods } = script;
    let (last, follows, pods) = (
        Mutex::new(last.into_iter()),
        Mutex::new(follows.into_iter()),
        Mutex::new(pods.into_iter()),
    );
    move |asked| {
        let gone = || Reaction::Recorded(include_str!("../recorded/status-404-missing-pod.txt"));
        if asked.path == format!("{}/log", pod_path()) {
            let list = if asked.follows() { &follows } else { &last };
            return list.lock().expect("lock").next().unwrap_or_else(gone);
        }
        if asked.path == pod_path() {
            return pods.lock().expect("lock").next().unwrap_or_else(gone);
        }
        standard(asked)
    }
}

fn here() -> Reaction {
    json(200, &the_pod())
}

/// The pod with its container ended.
fn dead() -> Reaction {
    let mut pod = the_pod();
    for status in pod["status"]["containerStatuses"].as_array_mut().expect("statuses") {
        status["state"] = json!({ "terminated": { "exitCode": 0 } });
    }
    json(200, &pod)
}

fn at(second: u32, words: &str) -> String {
    format!("2026-11-29T16:28:{second:02}.453947225Z {words}\n")
}

async fn follow(server: &StandIn) -> BoxStream<'static, LogItem> {
    server
        .connect()
        .await
        .follow_log(&pod(), "ticker", None)
        .await
        .expect("follow")
}

/// Everything that comes, in short.
async fn all(log: BoxStream<'static, LogItem>) -> Vec<String> {
    let short = log.map(|item| match item {
        LogItem::Line { runtime, text, .. } => {
            assert!(runtime.is_some_and(|stamp| stamp.len() == "2026-11-29T16:28:27.453947225Z".len()));
            String::from_utf8(text).expect("text")
        }
        LogItem::Gap { reason, .. } => format!("GAP {reason}"),
        LogItem::End { why, .. } => format!("END {why:?}"),
    });
    let all = tokio::time::timeout(Duration::from_secs(20), short.collect()).await;
    all.expect("the log does not end")
}

#[tokio::test]
async fn a_recorded_log_is_read_to_the_end_of_its_container() {
    let recording = include_str!("../recorded/log-follow-until-deleted.txt");
    let first = recording.lines().next().expect("a line");
    let (whole, end) = stream(vec![data(recording)]);
    drop(end);
    let script = Script {
        last: vec![text(200, &format!("{first}\n"))],
        follows: vec![whole],
        pods: vec![here()],
    };
    let server = StandIn::start(api(script)).await;
    let items = all(follow(&server).await).await;
    // The first line was there before.
    let expected: Vec<_> = recording
        .lines()
        .skip(1)
        .map(|line| line.split_once(' ').expect("a stamp").1)
        .collect();
    assert_eq!(items[..items.len() - 1], expected);
    assert_eq!(items.last().map(String::as_str), Some("END ContainerEnded"));
    let asked = server.asked().into_iter().find(Asked::follows).expect("a follow");
    for part in [
        "container=ticker",
        "timestamps=true",
        "sinceTime=2026-11-29T16%3A28%3A27Z",
    ] {
        assert!(asked.query.contains(part), "{}", asked.query);
    }
}

#[tokio::test]
async fn a_follow_stands_before_an_empty_log_has_a_line() {
    let (reaction, _open) = stream(Vec::new());
    let (later, sender) = stream(Vec::new());
    drop(reaction);
    let script = Script {
        last: vec![text(200, "")],
        follows: vec![later],
        pods: vec![here()],
    };
    let server = StandIn::start(api(script)).await;
    let log = follow(&server).await;
    sender.send(data(&at(1, "first"))).expect("open");
    drop(sender);
    assert_eq!(all(log).await, ["first", "END ContainerEnded"]);
}

#[tokio::test]
async fn a_broken_follow_goes_on_without_doubling_or_losing_a_line() {
    let (first, broken) = stream(vec![data(&at(1, "old")), data(&at(2, "a")), data(&at(2, "b"))]);
    let (second, end) = stream(vec![data(&(at(2, "a") + &at(2, "b") + &at(2, "c") + &at(3, "d")))]);
    drop(end);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first, Reaction::Close, second],
        pods: vec![here(), here(), here(), here()],
    };
    let server = StandIn::start(api(script)).await;
    let log = follow(&server).await;
    broken.send(Piece::Break).expect("open");
    // Three lines have one stamp: two were read, the third is new.
    assert_eq!(all(log).await, ["a", "b", "c", "d", "END ContainerEnded"]);
}

#[tokio::test]
async fn a_rotation_during_a_break_is_a_gap() {
    let (first, broken) = stream(vec![data(&at(1, "old")), data(&at(2, "a"))]);
    let (second, end) = stream(vec![data(&at(9, "z"))]);
    drop(end);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first, second],
        pods: vec![here(), here()],
    };
    let server = StandIn::start(api(script)).await;
    let log = follow(&server).await;
    broken.send(Piece::Break).expect("open");
    let items = all(log).await;
    assert_eq!((items[0].as_str(), items[2].as_str()), ("a", "z"), "{items:?}");
    assert!(
        items[1].starts_with("GAP the line read last was not found again"),
        "{items:?}"
    );
}

#[tokio::test]
async fn a_pod_that_goes_before_its_log_was_read_is_told_from_a_container_that_ended() {
    let (first, broken) = stream(vec![data(&at(1, "old")), data(&at(2, "a"))]);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first],
        pods: vec![here()],
    };
    let server = StandIn::start(api(script)).await;
    let log = follow(&server).await;
    broken.send(Piece::Break).expect("open");
    assert_eq!(all(log).await, ["a", "END PodGone"]);
}

#[tokio::test]
async fn the_end_of_a_container_is_known_though_the_api_calls_it_running() {
    // The pod is there and its status is stale: the log is given again and ends again.
    let again = || {
        let (reaction, end) = stream(vec![data(&at(2, "a"))]);
        drop(end);
        reaction
    };
    let (first, end) = stream(vec![data(&at(1, "old")), data(&at(2, "a"))]);
    drop(end);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first, again(), again()],
        pods: vec![here(), here(), here(), here()],
    };
    let server = StandIn::start(api(script)).await;
    assert_eq!(all(follow(&server).await).await, ["a", "END ContainerEnded"]);

    // The status says so itself.
    let (first, end) = stream(vec![data(&at(1, "old")), data(&at(2, "a"))]);
    drop(end);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first],
        pods: vec![here(), dead()],
    };
    let server = StandIn::start(api(script)).await;
    assert_eq!(all(follow(&server).await).await, ["a", "END ContainerEnded"]);
    assert_eq!(server.asked().iter().filter(|asked| asked.follows()).count(), 1);
}

#[tokio::test]
async fn a_clean_end_while_the_container_lives_is_no_end() {
    // Between API server and kubelet the connection broke: the answer ends as it should, in the midst of a line.
    let cut = at(3, "whole line");
    let (first, end) = stream(vec![
        data(&at(1, "old")),
        data(&at(2, "a")),
        data(&cut[..cut.len() - 6]),
    ]);
    drop(end);
    let (second, last) = stream(vec![data(&at(2, "a")), data(&cut)]);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first, second],
        pods: vec![here(), here()],
    };
    let server = StandIn::start(api(script)).await;
    let log = follow(&server).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    last.send(data(&at(4, "b"))).expect("open");
    drop(last);
    assert_eq!(all(log).await, ["a", "whole line", "b", "END ContainerEnded"]);
}

#[tokio::test]
async fn words_of_the_kubelet_are_no_lines() {
    let noise = "unable to retrieve container logs for containerd://2cf76d4eed3d";
    let (first, end) = stream(vec![data(&at(1, "old")), data(noise)]);
    drop(end);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first],
        pods: vec![here()],
    };
    let server = StandIn::start(api(script)).await;
    let items = all(follow(&server).await).await;
    assert_eq!(
        items,
        [
            format!("GAP the kubelet says: {noise}"),
            "END ContainerEnded".to_owned()
        ]
    );
}

#[tokio::test]
async fn another_pod_of_the_name_is_not_followed() {
    let mut other = the_pod();
    other["metadata"]["uid"] = json!("another");
    let script = Script {
        last: Vec::new(),
        follows: Vec::new(),
        pods: vec![json(200, &other)],
    };
    let server = StandIn::start(api(script)).await;
    let error = server
        .connect()
        .await
        .follow_log(&pod(), "ticker", None)
        .await
        .err()
        .expect("not that pod");
    assert!(error.to_string().contains("another one has its name"), "{error}");
    let script = Script {
        last: vec![Reaction::Recorded(include_str!(
            "../recorded/status-400-log-unknown-container.txt"
        ))],
        follows: Vec::new(),
        pods: vec![here()],
    };
    let server = StandIn::start(api(script)).await;
    let error = server
        .connect()
        .await
        .follow_log(&pod(), "nope", None)
        .await
        .err()
        .expect("no such container");
    assert_eq!(error.status(), Some(400), "{error}");
}

#[tokio::test]
async fn a_log_that_cannot_be_taken_up_again_waits_for_the_server() {
    let (first, broken) = stream(vec![data(&at(1, "old")), data(&at(2, "a"))]);
    let (second, end) = stream(vec![data(&at(2, "a")), data(&at(3, "b"))]);
    drop(end);
    let away = || text(503, "apiserver not ready");
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first, away(), second],
        pods: vec![here(), away(), away(), away(), away(), here(), here()],
    };
    let server = StandIn::start(api(script)).await;
    let log = follow(&server).await;
    broken.send(Piece::Break).expect("open");
    assert_eq!(all(log).await, ["a", "b", "END ContainerEnded"]);
}

/// What is kept of a line is a line: any bytes.
#[tokio::test]
async fn lines_are_bytes_and_may_be_empty() {
    let (first, end) = stream(vec![
        data(&at(1, "old")),
        data("2026-11-29T16:28:02.453947225Z \n"),
        data("2026-11-29T16:28:03.453947225Z  two\n"),
    ]);
    drop(end);
    let script = Script {
        last: vec![text(200, &at(1, "old"))],
        follows: vec![first],
        pods: vec![here()],
    };
    let server = StandIn::start(api(script)).await;
    assert_eq!(all(follow(&server).await).await, ["", " two", "END ContainerEnded"]);
}

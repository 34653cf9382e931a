//! Watches: what comes after a break, and what is said about it.

use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use gtrun::world::port::{Cluster, WatchItem, Watched};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::standin::{Asked, Piece, Reaction, StandIn, data, stream};
use super::{pods, standard};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Watches of pods, one after the other as they are opened; lists and the rest as usual.
fn api(watches: Vec<Reaction>) -> impl Fn(&Asked) -> Reaction + Send + Sync {
    let watches = Mutex::new(watches.into_iter());
    move |asked| {
        if asked.path == PODS && asked.follows() {
            return watches.lock().expect("lock").next().unwrap_or(Reaction::Close);
        }
        standard(asked)
    }
}

fn event(kind: &str, name: &str, version: &str) -> String {
    let object = json!({ "kind": "Pod", "metadata": { "name": name, "uid": name, "resourceVersion": version } });
    format!("{}\n", json!({ "type": kind, "object": object }))
}

async fn next(watch: &mut BoxStream<'static, WatchItem>) -> WatchItem {
    let item = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
    item.expect("nothing comes").expect("the watch has ended")
}

async fn change(watch: &mut BoxStream<'static, WatchItem>) -> (String, String) {
    match next(watch).await {
        WatchItem::Event { kind, object, .. } => (kind, object["metadata"]["name"].as_str().expect("name").to_owned()),
        other => panic!("{other:?}"),
    }
}

async fn gap(watch: &mut BoxStream<'static, WatchItem>) -> String {
    match next(watch).await {
        WatchItem::Gap { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

async fn contact(watch: &mut BoxStream<'static, WatchItem>) {
    let item = next(watch).await;
    assert!(matches!(item, WatchItem::Contact { .. }), "{item:?}");
}

fn held(pieces: Vec<Piece>) -> (Reaction, UnboundedSender<Piece>) {
    stream(pieces)
}

fn own(kind: &str) -> (String, String) {
    (kind.to_owned(), super::POD.to_owned())
}

#[tokio::test]
async fn the_recorded_end_of_a_pod_comes_as_it_was() {
    let recording = include_str!("../../lab/recorded/watch-pod-deletion.jsonl");
    let events: Vec<Value> = recording
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line"))
        .collect();
    let text: String = events.iter().map(|event| format!("{event}\n")).collect();
    // However the bytes are cut.
    let pieces = text
        .as_bytes()
        .chunks(777)
        .map(|chunk| data(std::str::from_utf8(chunk).expect("ASCII")))
        .collect();
    let (reaction, _open) = held(pieces);
    let server = StandIn::start(api(vec![reaction])).await;
    let mut watch = server.connect().await.watch(Watched::Pods).await.expect("watch");
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
    for event in events {
        match next(&mut watch).await {
            WatchItem::Event { kind, object, .. } => {
                assert_eq!((json!(kind), object), (event["type"].clone(), event["object"].clone()));
            }
            other => panic!("{other:?}"),
        }
    }
    let asked = server
        .asked()
        .into_iter()
        .find(|asked| asked.follows())
        .expect("a watch");
    for part in [
        "labelSelector=app%3Ddemo",
        "allowWatchBookmarks=true",
        "resourceVersion=",
    ] {
        assert!(asked.query.contains(part), "{}", asked.query);
    }
    let version = pods()["metadata"]["resourceVersion"]
        .as_str()
        .expect("version")
        .to_owned();
    assert!(
        asked.query.contains(&format!("resourceVersion={version}")),
        "{}",
        asked.query
    );
}

#[tokio::test]
async fn a_watch_that_ends_is_a_gap_and_goes_on_where_it_was() {
    let bookmark = event("BOOKMARK", "", "900");
    let (first, end) = held(vec![data(&event("MODIFIED", "a", "880")), data(&bookmark)]);
    let (second, broken) = held(vec![data(&event("MODIFIED", "b", "901"))]);
    let (third, _open) = held(vec![data(&event("DELETED", "c", "902"))]);
    let server = StandIn::start(api(vec![first, second, third])).await;
    let mut watch = server.connect().await.watch(Watched::Pods).await.expect("watch");
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
    assert_eq!(change(&mut watch).await, ("MODIFIED".to_owned(), "a".to_owned()));
    drop(end);
    assert!(gap(&mut watch).await.contains("ended the watch"));
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, ("MODIFIED".to_owned(), "b".to_owned()));
    broken.send(Piece::Break).expect("open");
    assert!(gap(&mut watch).await.contains("broke"));
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, ("DELETED".to_owned(), "c".to_owned()));
    let versions: Vec<_> = server
        .asked()
        .iter()
        .filter(|asked| asked.follows())
        .map(|asked| asked.query.split("resourceVersion=").nth(1).expect("version")[..3].to_owned())
        .collect();
    assert_eq!(versions[1..], ["900", "901"], "from the last thing that came");
    let lists = server
        .asked()
        .iter()
        .filter(|asked| asked.path == PODS && !asked.follows())
        .count();
    assert_eq!(lists, 1, "nothing was missed: no new list");
}

#[tokio::test]
async fn too_old_a_version_is_a_gap_and_a_new_list() {
    let expired = include_str!("../recorded/watch-410-expired.txt")
        .split_once("\n\n")
        .expect("a body")
        .1;
    let (first, _first) = held(vec![data(expired), data("\n")]);
    let (second, _second) = held(Vec::new());
    let server = StandIn::start(api(vec![first, second])).await;
    let mut watch = server.connect().await.watch(Watched::Pods).await.expect("watch");
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
    assert!(gap(&mut watch).await.contains("too old resource version"));
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
}

#[tokio::test]
async fn a_version_refused_when_the_watch_is_taken_up_is_a_new_list() {
    let (first, end) = held(Vec::new());
    let (last, _open) = held(Vec::new());
    let expired = Reaction::Recorded(include_str!("../recorded/list-410-expired.txt"));
    let server = StandIn::start(api(vec![first, expired, last])).await;
    let mut watch = server.connect().await.watch(Watched::Pods).await.expect("watch");
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
    drop(end);
    gap(&mut watch).await;
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_is_waited_for() {
    let (first, end) = held(Vec::new());
    let (last, _open) = held(vec![data(&event("MODIFIED", "a", "950"))]);
    let server = StandIn::start(api(vec![
        first,
        Reaction::Close,
        Reaction::Close,
        Reaction::Close,
        last,
    ]))
    .await;
    let mut watch = server.connect().await.watch(Watched::Pods).await.expect("watch");
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
    drop(end);
    gap(&mut watch).await;
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, ("MODIFIED".to_owned(), "a".to_owned()));
}

#[tokio::test]
async fn a_watch_that_the_api_refuses_ends_with_the_reason() {
    let forbidden = || Reaction::Recorded(include_str!("../recorded/status-403-forbidden-delete.txt"));
    let server = StandIn::start(api(vec![forbidden()])).await;
    let error = server
        .connect()
        .await
        .watch(Watched::Pods)
        .await
        .err()
        .expect("refused at once");
    assert_eq!(error.status(), Some(403));

    let (first, end) = held(Vec::new());
    let server = StandIn::start(api(vec![first, forbidden()])).await;
    let mut watch = server.connect().await.watch(Watched::Pods).await.expect("watch");
    contact(&mut watch).await;
    assert_eq!(change(&mut watch).await, own("ADDED"));
    drop(end);
    gap(&mut watch).await;
    assert!(gap(&mut watch).await.contains("forbidden"));
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_that_nobody_reads_is_closed() {
    let (first, open) = held(Vec::new());
    let server = StandIn::start(api(vec![first])).await;
    drop(server.connect().await.watch(Watched::Pods).await.expect("watch"));
    tokio::time::timeout(Duration::from_secs(5), open.closed())
        .await
        .expect("still open");
}

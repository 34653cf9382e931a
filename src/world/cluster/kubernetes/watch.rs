//! Watches: a list, then its changes; taken up again after every break, and every break is told.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::task::AbortOnDropHandle;

use super::Kubernetes;
use super::call::{Call, list, open};
use super::lines::{Lines, Next};
use crate::time::Instant;
use crate::world::cluster::error;
use crate::world::port::{Clock, ErrorKind, WatchItem, Watched, WorldError};

/// What is watched, as the API wants it.
struct Subject {
    /// For messages: `watch pods`.
    doing: String,
    path: String,
    selector: Option<(&'static str, String)>,
}

/// The server ends a watch after this time; longer than any run.
const LIFE: Duration = Duration::from_secs(3600);
/// A server that sends bookmarks sends one a minute: so long a silence is none of a living watch.
const SILENCE: Duration = Duration::from_secs(150);
/// Longest wait for a watch to be accepted.
const ACCEPT: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Kubernetes {
    pub(super) async fn start_watch(&self, what: Watched) -> Result<BoxStream<'static, WatchItem>, WorldError> {
        let namespace = &self.namespace;
        let subject = match what {
            Watched::Pods => Subject {
                doing: "watch pods".to_owned(),
                path: format!("/api/v1/namespaces/{namespace}/pods"),
                selector: Some(("labelSelector", self.selector().await?)),
            },
            Watched::EndpointSlices => Subject {
                doing: "watch EndpointSlices".to_owned(),
                path: format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
                selector: None,
            },
            Watched::Events => Subject {
                doing: "watch events".to_owned(),
                path: format!("/api/v1/namespaces/{namespace}/events"),
                selector: None,
            },
            Watched::Deployment => Subject {
                doing: format!("watch deployment {}", self.deployment),
                path: format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
                selector: Some(("fieldSelector", format!("metadata.name={}", self.deployment))),
            },
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut watcher = Watcher {
            client: self.client.clone(),
            clock: Arc::clone(&self.clock),
            subject,
            sender,
            version: String::new(),
            bookmarks: false,
        };
        let lines = watcher.list_and_open().await?;
        let task = AbortOnDropHandle::new(tokio::spawn(watcher.run(lines)));
        let items = UnboundedReceiverStream::new(receiver);
        // The task lives as long as somebody reads.
        Ok(items.map(move |item| (item, &task).0).boxed())
    }
}

struct Watcher {
    client: Client,
    clock: Arc<dyn Clock>,
    subject: Subject,
    sender: mpsc::UnboundedSender<WatchItem>,
    /// `resourceVersion` of the last thing that came: where a watch is taken up again.
    version: String,
    /// The server sends bookmarks.
    bookmarks: bool,
}

/// Why a watch came to its end.
enum Ended {
    /// It can be taken up where it was.
    Broken(String),
    /// The version is too old (410): only a new list tells what is.
    Expired(String),
    /// The API will not have it.
    Refused(String),
    /// Nobody reads any more.
    Unread,
}

impl Watcher {
    /// The present state, then a watch from there on.
    async fn list_and_open(&mut self) -> Result<Lines, WorldError> {
        let selectors: Vec<_> = self
            .subject
            .selector
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let (objects, version) = list(&self.client, &self.subject.doing, &self.subject.path, &selectors).await?;
        self.version = version;
        let lines = self.open().await?;
        let arrival = self.clock.now();
        self.say(WatchItem::Contact { arrival });
        for object in objects {
            let kind = "ADDED".to_owned();
            self.say(WatchItem::Event { arrival, kind, object });
        }
        Ok(lines)
    }

    /// A watch from the version on, accepted by the server.
    async fn open(&self) -> Result<Lines, WorldError> {
        let mut call = Call::get(&self.subject.path)
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("resourceVersion", &self.version)
            .query("timeoutSeconds", &LIFE.as_secs().to_string());
        if let Some((name, value)) = &self.subject.selector {
            call = call.query(name, value);
        }
        let response = tokio::time::timeout(ACCEPT, open(&self.client, &self.subject.doing, &call)).await;
        let response = response.unwrap_or_else(|_| Err(error::late(&self.subject.doing)))?;
        Ok(Lines::new(response.into_body(), Arc::clone(&self.clock)))
    }

    fn say(&self, item: WatchItem) -> bool {
        self.sender.send(item).is_ok()
    }

    fn gap(&self, reason: &str) -> bool {
        let (arrival, reason) = (self.clock.now(), reason.to_owned());
        self.say(WatchItem::Gap { arrival, reason })
    }

    async fn run(mut self, mut lines: Lines) {
        loop {
            let mut relist = false;
            let reason = match self.follow(&mut lines).await {
                Ended::Unread => return,
                Ended::Broken(reason) => reason,
                Ended::Expired(reason) => {
                    relist = true;
                    reason
                }
                Ended::Refused(reason) => {
                    self.gap(&reason);
                    return;
                }
            };
            drop(lines);
            if !self.gap(&reason) {
                return;
            }
            match self.again(relist).await {
                Some(next) => lines = next,
                None => return,
            }
        }
    }

    /// Hands on what comes until the watch ends.
    async fn follow(&mut self, lines: &mut Lines) -> Ended {
        loop {
            let next = if self.bookmarks {
                match tokio::time::timeout(SILENCE, lines.next()).await {
                    Ok(next) => next,
                    Err(_) => return Ended::Broken(format!("silence for {} s", SILENCE.as_secs())),
                }
            } else {
                tokio::select! {
                    next = lines.next() => next,
                    () = self.sender.closed() => return Ended::Unread,
                }
            };
            match next {
                Next::Line(_, line) if line.iter().all(u8::is_ascii_whitespace) => (),
                Next::Line(arrival, line) => {
                    if let Some(ended) = self.take(arrival, &line) {
                        return ended;
                    }
                }
                Next::End(_) => return Ended::Broken("the server ended the watch".to_owned()),
                Next::Broken(why) => return Ended::Broken(format!("the connection broke: {why}")),
            }
        }
    }

    fn take(&mut self, arrival: Instant, line: &[u8]) -> Option<Ended> {
        let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
            return Some(Ended::Broken("a line that is no event".to_owned()));
        };
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let object = event["object"].take();
        if kind == "ERROR" {
            let message = object["message"]
                .as_str()
                .unwrap_or("an error without a message")
                .to_owned();
            return Some(match object["code"].as_u64() {
                Some(410) => Ended::Expired(message),
                Some(401 | 403 | 404) => Ended::Refused(message),
                Some(_) | None => Ended::Broken(message),
            });
        }
        if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
            self.version = version.to_owned();
        }
        if kind == "BOOKMARK" {
            self.bookmarks = true;
            return self.sender.is_closed().then_some(Ended::Unread);
        }
        let said = self.say(WatchItem::Event { arrival, kind, object });
        (!said).then_some(Ended::Unread)
    }

    /// Takes the watch up again, however long that takes; `None` when it never can be.
    async fn again(&mut self, mut relist: bool) -> Option<Lines> {
        let mut pause = Duration::from_millis(50);
        loop {
            if self.sender.is_closed() {
                return None;
            }
            let opened = if relist {
                self.list_and_open().await
            } else {
                let opened = self.open().await;
                if opened.is_ok() {
                    let arrival = self.clock.now();
                    self.say(WatchItem::Contact { arrival });
                }
                opened
            };
            let error = match opened {
                Ok(lines) => return Some(lines),
                Err(error) => error,
            };
            match (error.status(), &error.kind) {
                // Too old a version is told in the answer's head or in its first event.
                (Some(410), _) => relist = true,
                (Some(429), _) => (),
                (_, ErrorKind::Refused { .. } | ErrorKind::NotFound | ErrorKind::Unsupported) => {
                    self.gap(&error.to_string());
                    return None;
                }
                (_, ErrorKind::Unreachable | ErrorKind::Interrupted | ErrorKind::Failed) => (),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

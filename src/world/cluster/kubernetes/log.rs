//! A container's log, followed with the runtime's stamps, without a doubled line and without a hidden hole.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::task::AbortOnDropHandle;

use super::Kubernetes;
use super::call::{Call, open};
use super::lines::{Lines, Next};
use crate::time::Instant;
use crate::world::cluster::error;
use crate::world::port::{ErrorKind, LogEnd, LogItem, PodIdentity, WorldError};

/// The server sends nothing, not even the answer's head, as long as the log has no line. A refusal comes at once, so
/// that silence for this time means that the follow stands.
const SILENT: Duration = Duration::from_secs(1);
/// Longest wait for an answer that must come.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a broken follow is tried to be taken up again.
const PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A follow that ends so soon never stood.
const AT_ONCE: Duration = Duration::from_secs(3);

impl Kubernetes {
    pub(super) async fn start_log(
        &self,
        pod: &PodIdentity,
        container: &str,
        since: Option<Instant>,
    ) -> Result<BoxStream<'static, LogItem>, WorldError> {
        let doing = format!("follow the log of {}/{container}", pod.name);
        let object = self.confirm(&doing, pod).await?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut follower = Follower {
            kubernetes: self.clone(),
            doing,
            pod: pod.clone(),
            container: container.to_owned(),
            instance: container_id(&object, container),
            seen: Seen::default(),
            since,
            unended: None,
            sender,
        };
        // Now is where the log ends at present: the lines up to there are skipped by their stamps, and as the last of them
        // is asked for again, the answer begins at once.
        if since.is_none() {
            follower.seen.last = follower.last_stamp().await?;
            follower.seen.count = u32::from(follower.seen.last.is_some());
        }
        let lines = follower.open().await?;
        let task = AbortOnDropHandle::new(tokio::spawn(follower.run(lines)));
        let items = UnboundedReceiverStream::new(receiver);
        // The task lives as long as somebody reads.
        Ok(items.map(move |item| (item, &task).0).boxed())
    }
}

struct Follower {
    kubernetes: Kubernetes,
    doing: String,
    pod: PodIdentity,
    container: String,
    /// Id of the container that is followed: after a restart there is another one.
    instance: Option<String>,
    seen: Seen,
    since: Option<Instant>,
    /// A last line without its line feed.
    unended: Option<(Vec<u8>, Skip)>,
    sender: mpsc::UnboundedSender<LogItem>,
}

/// What was handed on.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Stamp of the last line, as written.
    last: Option<String>,
    /// How many lines with that stamp.
    count: u32,
}

/// Passes over what was seen when a log is asked for again.
#[derive(Debug)]
struct Skip {
    until: Option<Instant>,
    /// Lines at that very moment that are still to be passed over.
    left: u32,
    /// The last line seen was among what came: nothing is missing in between.
    met: bool,
}

impl Skip {
    fn of(seen: &Seen) -> Self {
        Self {
            until: seen.last.as_deref().and_then(|stamp| Instant::parse(stamp).ok()),
            left: seen.count,
            met: false,
        }
    }

    /// Whether this line is new; and whether lines are missing before it.
    fn judge(&mut self, at: Instant) -> (bool, bool) {
        let Some(until) = self.until else { return (true, false) };
        if at < until {
            return (false, false);
        }
        if at == until && self.left > 0 {
            self.left -= 1;
            self.met = true;
            return (false, false);
        }
        self.until = None;
        (true, !self.met)
    }
}

/// How one follow ended.
struct End {
    /// As it should: the container's end, or a connection between API server and kubelet that broke.
    clean: bool,
    /// A line came that was new.
    news: bool,
    why: String,
}

/// A follow that stands: its head may still be to come.
enum Open {
    Lines(Lines),
    Silent(AbortOnDropHandle<Result<Lines, WorldError>>),
}

impl Follower {
    fn call(&self, follow: bool) -> Call {
        let path = format!("{}/log", self.kubernetes.pod_path(&self.pod.name));
        let call = Call::get(path)
            .query("container", &self.container)
            .query("timestamps", "true");
        if follow { call.query("follow", "true") } else { call }
    }

    /// Stamp of the log's last line; none of an empty log.
    async fn last_stamp(&self) -> Result<Option<String>, WorldError> {
        let read = async {
            let call = self.call(false).query("tailLines", "1");
            let response = open(&self.kubernetes.client, &self.doing, &call).await?;
            let body = response.into_body().collect().await;
            let body = body.map_err(|e| error::kubernetes(&self.doing, e))?.to_bytes();
            let line = body.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
            Ok(line.and_then(split).map(|(stamp, _)| stamp.to_owned()))
        };
        tokio::time::timeout(ANSWER, read)
            .await
            .unwrap_or_else(|_| Err(error::late(&self.doing)))
    }

    /// Opens a follow from the last line on. The server cuts the moment to the second; the rest is skipped here.
    async fn open(&self) -> Result<Open, WorldError> {
        let mut call = self.call(true);
        let last = self.seen.last.as_deref().and_then(|stamp| Instant::parse(stamp).ok());
        if let Some(from) = last.or(self.since) {
            call = call.query("sinceTime", &from.to_utc().format("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        let (client, doing, clock) = (
            self.kubernetes.client.clone(),
            self.doing.clone(),
            Arc::clone(&self.kubernetes.clock),
        );
        let opening = async move {
            let response = open(&client, &doing, &call).await?;
            Ok(Lines::new(response.into_body(), clock))
        };
        let mut opening = AbortOnDropHandle::new(tokio::spawn(opening));
        match tokio::time::timeout(SILENT, &mut opening).await {
            Ok(Ok(opened)) => opened.map(Open::Lines),
            Ok(Err(fault)) => Err(WorldError::new(ErrorKind::Failed, &self.doing, fault.to_string())),
            Err(_) => Ok(Open::Silent(opening)),
        }
    }

    fn say(&self, item: LogItem) -> bool {
        self.sender.send(item).is_ok()
    }

    fn gap(&self, reason: &str) {
        let (arrival, reason) = (self.kubernetes.clock.now(), reason.to_owned());
        self.say(LogItem::Gap { arrival, reason });
    }

    fn end(&mut self, why: LogEnd) {
        let arrival = self.kubernetes.clock.now();
        if let Some((rest, mut skip)) = self.unended.take() {
            self.line(arrival, &rest, &mut skip);
        }
        self.say(LogItem::End { arrival, why });
    }

    async fn run(mut self, mut open: Open) {
        let mut clean_before = false;
        loop {
            let begun = tokio::time::Instant::now();
            let end = self.follow(open).await;
            if self.sender.is_closed() {
                return;
            }
            // A dead container's log is given again and ends again at once; a living one's would stay open.
            let at_once = !end.news && begun.elapsed() < AT_ONCE;
            if end.clean && clean_before && at_once {
                return self.end(LogEnd::ContainerEnded);
            }
            clean_before = end.clean;
            open = match self.again(&end).await {
                Ok(open) => open,
                Err(Some(why)) => return self.end(why),
                Err(None) => return,
            };
        }
    }

    /// Takes the follow up again, unless it is known that there is nothing more to follow; `None`: nobody reads.
    async fn again(&mut self, end: &End) -> Result<Open, Option<LogEnd>> {
        let until = tokio::time::Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(50);
        loop {
            let ended = || {
                if end.clean {
                    LogEnd::ContainerEnded
                } else {
                    LogEnd::PodGone
                }
            };
            let error = match self.ended(end.clean).await {
                Ok(true) => return Err(Some(ended())),
                Ok(false) => match self.open().await {
                    Ok(open) => return Ok(open),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if error.kind == ErrorKind::NotFound {
                return Err(Some(ended()));
            }
            if tokio::time::Instant::now() + pause > until {
                return Err(Some(LogEnd::Lost(format!("{}; {error}", end.why))));
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => (),
                () = self.sender.closed() => return Err(None),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether the pod says that the container has ended. `NotFound` when the pod is gone.
    async fn ended(&self, clean: bool) -> Result<bool, WorldError> {
        let object = self.kubernetes.confirm(&self.doing, &self.pod).await?;
        // While a pod terminates the API calls dead containers running, but never a living one dead.
        let now = container_id(&object, &self.container);
        let another = self.instance.is_some() && now.is_some() && now != self.instance;
        // What a broken connection has left unread is still there to be read.
        Ok(clean && (terminated(&object, &self.container) || another))
    }

    /// Hands on what comes until the follow ends.
    async fn follow(&mut self, open: Open) -> End {
        let mut skip = Skip::of(&self.seen);
        self.unended = None;
        let mut news = false;
        let broken = |news, why: String| End {
            clean: false,
            news,
            why,
        };
        let mut lines = match open {
            Open::Lines(lines) => lines,
            Open::Silent(opening) => tokio::select! {
                opened = opening => match opened {
                    Ok(Ok(lines)) => lines,
                    Ok(Err(error)) => return broken(news, error.to_string()),
                    Err(fault) => return broken(news, fault.to_string()),
                },
                () = self.sender.closed() => return broken(news, String::new()),
            },
        };
        loop {
            let next = tokio::select! {
                next = lines.next() => next,
                () = self.sender.closed() => return broken(news, String::new()),
            };
            match next {
                Next::Line(arrival, line) => news |= self.line(arrival, &line, &mut skip),
                Next::End(rest) => {
                    // The end of its log, when that is what it is; else it comes again as a whole.
                    self.unended = (!rest.is_empty()).then_some((rest, skip));
                    let why = "the server ended the log".to_owned();
                    return End { clean: true, news, why };
                }
                Next::Broken(why) => return broken(news, why),
            }
        }
    }

    /// Hands on a line when it is new.
    fn line(&mut self, arrival: Instant, line: &[u8], skip: &mut Skip) -> bool {
        let Some((stamp, text)) = split(line) else {
            // Words of the kubelet (`failed to watch file`, `unable to retrieve container logs`): no line of the log.
            self.gap(&format!("the kubelet says: {}", String::from_utf8_lossy(line)));
            return false;
        };
        let Ok(at) = Instant::parse(stamp) else { return false };
        if self.seen.last.is_none() && self.since.is_some_and(|since| at < since) {
            return false;
        }
        let (new, missing) = skip.judge(at);
        if !new {
            return false;
        }
        if missing {
            self.gap("the line read last was not found again: the log was rotated, or its container was started anew");
        }
        if self.seen.last.as_deref() == Some(stamp) {
            self.seen.count += 1;
        } else {
            self.seen = Seen {
                last: Some(stamp.to_owned()),
                count: 1,
            };
        }
        self.say(LogItem::Line {
            arrival,
            runtime: Some(stamp.to_owned()),
            text: text.to_vec(),
        });
        true
    }
}

/// The runtime's stamp and the line after it.
fn split(line: &[u8]) -> Option<(&str, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let stamp = std::str::from_utf8(&line[..space]).ok()?;
    Instant::parse(stamp).ok()?;
    Some((stamp, line.get(space + 1..).unwrap_or_default()))
}

/// The container's status, of whatever kind of container.
fn status<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ]
    .iter()
    .filter_map(|list| pod["status"][list].as_array())
    .flatten()
    .find(|status| status["name"] == container)
}

fn container_id(pod: &Value, container: &str) -> Option<String> {
    let id = status(pod, container)?["containerID"].as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn terminated(pod: &Value, container: &str) -> bool {
    status(pod, container).is_some_and(|status| status["state"]["terminated"].is_object())
}

//! The ports: what `run` asks of a world, at the level of intent.
//!
//! Rules for every implementation:
//!
//! - **One clock.** Every [`Instant`] that leaves a port is on gtrun's own reference clock ([`Clock::now`]), unless
//!   its documentation names another (the runtime's stamp of a log line, a host's clock in a [`ClockExchange`]).
//! - **No hidden retry.** A call that changes something is sent once. Reads may be repeated when the answer was lost.
//! - **Cancel by dropping.** Dropping a future or a stream gives up the call; what runs remotely ends by itself.
//! - **No judgement.** An implementation hands on what was said, raw; readers in `evidence` understand it.
//! - **No panic** for anything that comes from outside.
//!
//! The traits are object safe: a future is boxed ([`Pending`]), streams are boxed too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::facts::{AutoscalerFacts, BudgetFacts, DeploymentFacts, NodeFacts, PodFacts};
use crate::evidence::client::Outcome;
use crate::evidence::clock_exchange::ClockExchange;
use crate::time::{Duration, Instant};

/// A call to a port that is going on.
pub type Pending<'a, T> = BoxFuture<'a, Result<T, WorldError>>;

/// A world: one implementation of each port. Cloning shares them.
#[derive(Clone)]
pub struct World {
    /// Which of the three environments.
    pub kind: WorldKind,
    /// One phrase for the first line of the output: `context homelab, service-a/service-a-igw`.
    pub title: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Kubernetes.
    pub cluster: Arc<dyn Cluster>,
    /// The load balancer in front.
    pub load_balancer: Arc<dyn LoadBalancer>,
    /// The hosts that can be logged in to.
    pub hosts: Arc<dyn Hosts>,
    /// The client's side of the entry point.
    pub http: Arc<dyn HttpClient>,
    /// What really happened, where the world knows it: only a simulator does.
    pub truth: Option<Arc<dyn Truth>>,
}

/// The three environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorldKind {
    /// A model; nothing is real.
    Sim,
    /// Real parts on one machine.
    Lab,
    /// Everything is real.
    Cluster,
}

impl WorldKind {
    /// The word in files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Lab => "lab",
            Self::Cluster => "cluster",
        }
    }

    /// True when nothing that is measured is real.
    pub fn simulated(self) -> bool {
        match self {
            Self::Sim => true,
            Self::Lab | Self::Cluster => false,
        }
    }
}

/// Why a call came to nothing.
///
/// The kinds tell what the caller may conclude; `doing` and `message` are for a person, `help` is what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct WorldError {
    /// What may be concluded.
    pub kind: ErrorKind,
    /// What was being done, as a phrase: `delete pod service-a-igw-7fb5`.
    pub doing: String,
    /// The other side's or the adapter's words.
    pub message: String,
    /// What to do about it, where that is known.
    pub help: Option<String>,
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.doing, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// What may be concluded from an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// The other side understood and said no: nothing was changed. HTTP status of the API (403 RBAC, 409 conflict or
    /// a failed uid precondition, 422 invalid, 429 a PodDisruptionBudget) and the API's `reason` word.
    Refused {
        /// HTTP status.
        status: u16,
        /// `Forbidden`, `Conflict`, `Invalid`, `TooManyRequests`, ...
        reason: String,
    },
    /// What it is about is not there (404): nothing was changed.
    NotFound,
    /// No connection could be made: nothing was sent, nothing was changed.
    Unreachable,
    /// The connection broke or the answer did not come in time: it may or may not have been carried out.
    Interrupted,
    /// This world cannot do it at all (no sudo, no tcpdump, no such host): asking again is useless.
    Unsupported,
    /// It was carried out and failed (a command that could not be started, an answer that makes no sense).
    Failed,
}

impl WorldError {
    /// An error without a remedy.
    pub fn new(kind: ErrorKind, doing: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            doing: doing.into(),
            message: message.into(),
            help: None,
        }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The other side's status, where it gave one: 404 for [`ErrorKind::NotFound`].
    pub fn status(&self) -> Option<u16> {
        match &self.kind {
            ErrorKind::Refused { status, .. } => Some(*status),
            ErrorKind::NotFound => Some(404),
            ErrorKind::Unreachable | ErrorKind::Interrupted | ErrorKind::Unsupported | ErrorKind::Failed => None,
        }
    }

    /// True when the other side said no: what `expect: refused` means.
    pub fn refused(&self) -> bool {
        match &self.kind {
            ErrorKind::Refused { .. } => true,
            ErrorKind::NotFound
            | ErrorKind::Unreachable
            | ErrorKind::Interrupted
            | ErrorKind::Unsupported
            | ErrorKind::Failed => false,
        }
    }
}

/// gtrun's reference clock.
pub trait Clock: Send + Sync {
    /// UTC, read once at the start and continued on the monotonic clock: never goes back, is not set by NTP.
    fn now(&self) -> Instant;

    /// Ready at that moment, not before and at most 0.2 ms after it when the machine is idle (a real implementation
    /// keeps a timer thread: the runtime's own timer has steps of 1 ms). A moment in the past is ready at once.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;
}

/// A pod: name and uid, never the name alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodIdentity {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// The Kubernetes side, bound to one namespace and one Deployment.
pub trait Cluster: Send + Sync {
    /// The Deployment as it is now, with the hash of its present template.
    fn deployment(&self) -> Pending<'_, DeploymentFacts>;

    /// Every pod that the Deployment's selector matches, terminating ones and those of old ReplicaSets included, in
    /// order of their names.
    fn pods(&self) -> Pending<'_, Vec<PodFacts>>;

    /// Pods of the namespace by a label selector (`app=x,tier=y`), in order of their names.
    fn pods_by_label<'a>(&'a self, selector: &'a str) -> Pending<'a, Vec<PodFacts>>;

    /// Every node.
    fn nodes(&self) -> Pending<'_, Vec<NodeFacts>>;

    /// PodDisruptionBudgets that match the Deployment's pods.
    fn budgets(&self) -> Pending<'_, Vec<BudgetFacts>>;

    /// HorizontalPodAutoscalers that act on the Deployment.
    fn autoscalers(&self) -> Pending<'_, Vec<AutoscalerFacts>>;

    /// Whether this identity may do that: `may("delete", "pods")`, `may("create", "pods/eviction")`.
    fn may<'a>(&'a self, verb: &'a str, resource: &'a str) -> Pending<'a, bool>;

    /// Follows one kind of object of the namespace; the future is ready once the watch is established.
    ///
    /// The stream begins with [`WatchItem::Contact`], then the present objects as `ADDED`. It resumes by itself: a
    /// break, a 410 or a silent end is one [`WatchItem::Gap`], then `Contact` when the watch stands again (objects
    /// that exist then come as `ADDED` or `MODIFIED`). It ends only when it is dropped or can never be resumed (a
    /// `Gap` with the reason is its last item).
    fn watch(&self, what: Watched) -> Pending<'_, BoxStream<'static, WatchItem>>;

    /// Deletes the pod with a precondition on its uid; does not wait for its end. `None`: the pod's own grace.
    fn delete_pod<'a>(&'a self, pod: &'a PodIdentity, grace: Option<Duration>) -> Pending<'a, ApiAnswer>;

    /// Evicts the pod (policy/v1) with a precondition on its uid; a budget that forbids it is `Refused` with 429.
    fn evict_pod<'a>(&'a self, pod: &'a PodIdentity, grace: Option<Duration>) -> Pending<'a, ApiAnswer>;

    /// Sets `spec.replicas` of the Deployment.
    fn scale(&self, replicas: u32) -> Pending<'_, ApiAnswer>;

    /// Sets (or with `None` removes) the pod's `controller.kubernetes.io/pod-deletion-cost`.
    fn set_deletion_cost<'a>(&'a self, pod: &'a PodIdentity, cost: Option<i32>) -> Pending<'a, ApiAnswer>;

    /// What `kubectl rollout restart` does: the annotation `kubectl.kubernetes.io/restartedAt` on the template.
    fn restart_rollout(&self, at: Instant) -> Pending<'_, ApiAnswer>;

    /// Sets (`Some`) or removes (`None`) labels of the Deployment itself, not of its template.
    fn label<'a>(&'a self, labels: &'a BTreeMap<String, Option<String>>) -> Pending<'a, ApiAnswer>;

    /// Cordons (`true`) or uncordons a node.
    fn cordon<'a>(&'a self, node: &'a str, unschedulable: bool) -> Pending<'a, ApiAnswer>;

    /// Takes the lease `gtrun-<deployment>` in the namespace, or renews it when `holder` has it already. `Refused`
    /// (409) names the holder when another run has it and it has not expired.
    fn take_lease<'a>(&'a self, holder: &'a str, lasts: Duration) -> Pending<'a, ApiAnswer>;

    /// Gives the lease back; not an error when it is not held.
    fn release_lease<'a>(&'a self, holder: &'a str) -> Pending<'a, ()>;

    /// Runs a command in a container, without a shell and without stdin, and waits for its end.
    ///
    /// A command that ran and failed is an `Ok` with its exit code. A container that is not there (dead, pod completed,
    /// pod gone) is `NotFound`.
    fn exec<'a>(&'a self, pod: &'a PodIdentity, container: &'a str, argv: &'a [String]) -> Pending<'a, CommandOutput>;

    /// Follows a container's log with runtime stamps; the future is ready when the server has accepted the request.
    ///
    /// `since` `None`: only lines from now on (`tail=0`). The stream resumes by itself after a broken connection, by
    /// runtime stamp, without doubling a line; when it cannot show that nothing is missing in between it says
    /// [`LogItem::Gap`]. Its last item is [`LogItem::End`].
    fn follow_log<'a>(
        &'a self,
        pod: &'a PodIdentity,
        container: &'a str,
        since: Option<Instant>,
    ) -> Pending<'a, BoxStream<'static, LogItem>>;

    /// Opens a kept connection to the pod's Envoy admin (`GET /stats?filter=<filter>` in text form); every
    /// [`Sampler::sample`] is one request on it. When the connection is lost, a new one is tried at the next sample.
    fn envoy_stats<'a>(&'a self, pod: &'a PodIdentity, filter: &'a str) -> Pending<'a, Box<dyn Sampler>>;

    /// Opens a kept connection to the pod's own health page, beside the load balancer; every [`Sampler::sample`] is one
    /// GET on it. The reply is the HTTP status in digits, whatever it is; no answer is a failed sample.
    ///
    /// The default is a world that has no way there.
    fn health_page<'a>(&'a self, pod: &'a PodIdentity) -> Pending<'a, Box<dyn Sampler>> {
        let error = WorldError::new(
            ErrorKind::Unsupported,
            format!("ask the health page of {}", pod.name),
            "this environment has no way to it beside the load balancer's own checks",
        );
        Box::pin(std::future::ready(Err(error)))
    }
}

/// What the API said to a change.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiAnswer {
    /// HTTP status: 200, 201, 202.
    pub status: u16,
    /// The object in the answer, as it came.
    pub object: serde_json::Value,
}

/// What can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    /// Pods of the namespace that the Deployment's selector matches.
    Pods,
    /// EndpointSlices of the namespace.
    EndpointSlices,
    /// Events of the namespace (`v1`).
    Events,
    /// The Deployment itself.
    Deployment,
}

/// One item of a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchItem {
    /// The watch stands; from now on changes arrive.
    Contact {
        /// When that was known.
        arrival: Instant,
    },
    /// A change.
    Event {
        /// When it arrived.
        arrival: Instant,
        /// `ADDED`, `MODIFIED`, `DELETED`.
        kind: String,
        /// The object as it came.
        object: serde_json::Value,
    },
    /// Changes may have been missed since the item before.
    Gap {
        /// When that was noticed.
        arrival: Instant,
        /// Why.
        reason: String,
    },
}

/// One item of a log that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogItem {
    /// A line.
    Line {
        /// When it arrived.
        arrival: Instant,
        /// The container runtime's stamp as it was written (nine digits), on the node's clock; none for other logs.
        runtime: Option<String>,
        /// The line without the runtime's stamp and without its line feed; any bytes.
        text: Vec<u8>,
    },
    /// Lines may be missing between the one before and the one after.
    Gap {
        /// When that was noticed.
        arrival: Instant,
        /// Why.
        reason: String,
    },
    /// Nothing comes any more.
    End {
        /// When that was noticed.
        arrival: Instant,
        /// Why.
        why: LogEnd,
    },
}

/// Why a log ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEnd {
    /// The container ended and its log was read to the end.
    ContainerEnded,
    /// The pod is gone and the log could not be read to the end.
    PodGone,
    /// The connection is lost and could not be made again; the container may live.
    Lost(String),
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// Exit code; 128 + n after signal n.
    pub exit: i32,
    /// Standard output, as it came.
    pub stdout: Vec<u8>,
    /// Standard error, as it came.
    pub stderr: Vec<u8>,
}

/// Something that can be asked again and again over one kept connection.
pub trait Sampler: Send {
    /// Asks once. Ends within 0.3 s whatever happens: a late answer is a failed sample, its connection is given up and
    /// the next call makes a new one. Pacing is the caller's.
    fn sample(&mut self) -> BoxFuture<'_, Sample>;
}

/// One question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Just before the question left.
    pub sent: Instant,
    /// When the answer was there whole, or was given up.
    pub received: Instant,
    /// The answer's text, or why there is none (`timeout`, `connection refused`, `HTTP 503`, `empty reply`).
    pub reply: Result<String, String>,
}

/// The load balancer. Only reads: nothing here ever changes it.
pub trait LoadBalancer: Send + Sync {
    /// Its configuration file, as it is on the host.
    fn configuration(&self) -> Pending<'_, String>;

    /// A kept session in which every [`Sampler::sample`] is one `show stat` (CSV with its `# ` header).
    fn stats(&self) -> Pending<'_, Box<dyn Sampler>>;

    /// Follows its log from now on, raw lines ([`LogItem::Line`] with `runtime: None`). From a journal the lines are
    /// the messages as the load balancer wrote them; where the journal holds no stamp of its own, journald's stamp is
    /// put in front in `iso` form.
    fn follow_log(&self) -> Pending<'_, BoxStream<'static, LogItem>>;
}

/// The hosts of the environment, by their name there.
pub trait Hosts: Send + Sync {
    /// All of them, in the order of the environment's file.
    fn list(&self) -> Vec<HostInfo>;

    /// Reads the host's clock several times in a row (at least 5) over one session.
    fn exchange_clocks<'a>(&'a self, host: &'a str) -> Pending<'a, Vec<ClockExchange>>;

    /// Runs a command without a shell; `sudo`: as root by `sudo -n`. A command that ran and failed is an `Ok`.
    fn run<'a>(&'a self, host: &'a str, argv: &'a [String], sudo: bool) -> Pending<'a, CommandOutput>;

    /// Starts a capture of TCP packets with SYN, FIN or RST on every interface; ready once tcpdump says that it is
    /// listening. `Unsupported` when the host cannot capture (no sudo, no tcpdump): the capture is then *skipped*.
    ///
    /// The remote process ends by itself: after `limit`, or when its session is lost. `marker` is a word that stands in
    /// its command line, so that a later cleanup finds it.
    fn start_capture<'a>(&'a self, host: &'a str, marker: &'a str, limit: Duration) -> Pending<'a, Box<dyn Capture>>;
}

/// A host of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInfo {
    /// Name in the environment: `lb`, `worker1`.
    pub name: String,
    /// Groups: `workers`.
    pub groups: Vec<String>,
    /// The node of the cluster that it is, where it is one.
    pub node: Option<String>,
}

/// A capture that is running.
pub trait Capture: Send {
    /// Some more bytes of the pcap file, as soon as they are there, so that they are on disk early. An implementation
    /// that pulls the file at the end never yields here. `None`: the capture has ended by itself.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>>;

    /// Stops it and fetches the rest of the file; checked against size and hash on the host.
    fn finish(self: Box<Self>) -> BoxFuture<'static, CaptureEnd>;
}

/// How a capture ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureEnd {
    /// What [`Capture::next`] has not given yet.
    pub rest: Vec<u8>,
    /// What tcpdump said (its standard error): "listening on", packets captured, dropped by kernel.
    pub words: String,
    /// Why the file is not whole, when it is not.
    pub fault: Option<String>,
}

/// The client's side: requests through the entry point. No hidden retry, no proxy from the environment.
pub trait HttpClient: Send + Sync {
    /// Sends one request and waits for its end, whatever it is: total, an error is an outcome.
    ///
    /// `watcher` is told of what happens on the way, synchronously and before the future goes on.
    fn send(&self, request: Arc<HttpRequest>, watcher: Option<HttpWatcher>) -> BoxFuture<'static, HttpResult>;
}

/// Is told of the stages of a request.
pub type HttpWatcher = Arc<dyn Fn(HttpStage) + Send + Sync>;

/// A stage of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpStage {
    /// There is a connection and the request is about to be written on it.
    Sending {
        /// When.
        at: Instant,
        /// Our port.
        local_port: u16,
        /// The other end.
        remote: String,
    },
    /// The status line was there.
    Answering {
        /// When.
        at: Instant,
        /// HTTP status.
        status: u16,
    },
}

/// One request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`.
    pub method: String,
    /// Path and query, as it goes out.
    pub path: String,
    /// Header fields beside `Host`, which the entry gives.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<String>,
    /// From the call until the end; afterwards the outcome is `timeout`.
    pub timeout: Duration,
    /// Which connection.
    pub connection: ConnectionUse,
    /// HTTP/1.1 or HTTP/2.
    pub protocol: Protocol,
    /// Bytes of the body read in a second: a slow reader. The socket's receive buffer is kept small then.
    pub read_rate: Option<f64>,
    /// Ends the response from our side after this time; it is then `ok`.
    pub stop_after: Option<Duration>,
    /// Ends it as `aborted` when cancelled.
    pub cancel: CancellationToken,
    /// Bytes of the body to keep in [`HttpResult::body`]; the rest is only counted.
    pub keep_body: usize,
}

/// Which connection a request goes over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ConnectionUse {
    /// A new one, closed afterwards.
    New,
    /// An idle one of the pool of that name, else a new one that is kept in it. A pool of h2 has one connection.
    Pool(String),
    /// The connection of that name, one request after the other (h2: side by side); opened again when it is closed.
    Named(String),
}

/// HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    H2,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpResult {
    /// Called: before connecting.
    pub started: Instant,
    /// Connected (after TLS); for a kept connection the same as `started`. None when there never was one.
    pub connected: Option<Instant>,
    /// The request was written.
    pub sent: Option<Instant>,
    /// First byte of the response.
    pub first_byte: Option<Instant>,
    /// Over.
    pub ended: Instant,
    /// HTTP status.
    pub status: Option<u16>,
    /// Header fields of the response.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body, at most `keep_body` bytes.
    pub body: Vec<u8>,
    /// Bytes of the body that arrived.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Our own port.
    pub local_port: Option<u16>,
    /// The other end, `203.0.113.211:443`.
    pub remote: Option<String>,
    /// Number of the connection, counted from 1 in this run.
    pub connection: Option<u32>,
    /// Which request on that connection, from 1.
    pub ordinal: Option<u32>,
    /// A GOAWAY came in on its connection while it was going on.
    pub goaway: Option<Instant>,
    /// The error's text.
    pub error: Option<String>,
}

/// The simulator's record of what really happened; nothing that judges ever reads it.
pub trait Truth: Send + Sync {
    /// `truth.json` as it stands now.
    fn to_json(&self) -> String;
}

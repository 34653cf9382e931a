use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::IdText;
use super::step::Expr;
use crate::language::one_of::one_of;
use crate::language::plan::{Connections, Method, Protocol, Victim};
use crate::language::value::{AsWritten, At, ByteRate, Count, Flag, Opt, Rate, Templated};
use crate::time::Duration;

/// One HTTP request through the entry point.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Path and query: `/sleep?seconds=60`.
    pub path: Templated<String>,
    /// Method. Default GET.
    #[serde(default)]
    pub method: Opt<Method>,
    /// Headers; numbers and booleans are passed on as they are written.
    #[serde(default)]
    pub headers: IndexMap<At<String>, Templated<AsWritten>>,
    /// Body.
    #[serde(default)]
    pub body: Opt<Templated<String>>,
    /// The client gives up after this. Default 60s.
    #[serde(default)]
    pub timeout: Opt<Templated<Duration>>,
    /// true: the next step starts at once. Default false: when the request is over.
    #[serde(default)]
    pub background: Opt<Templated<Flag>>,
    /// The connection it uses: new (default), reused (any kept one), or a name that several requests share.
    #[serde(default)]
    pub connection: Opt<At<ConnectionName>>,
    /// HTTP version: h1 (default) or h2.
    #[serde(default)]
    pub protocol: Opt<Protocol>,
    /// A slow reader: most bytes of the body per second, such as 1MB/s.
    #[serde(default)]
    pub read_rate: Opt<Templated<ByteRate>>,
    /// Our side ends the response after this; ended so, the outcome is ok. For streams.
    #[serde(default)]
    pub stop_after: Opt<Templated<Duration>>,
    /// true: the next step starts only when the request is seen in flight at the target; not so within 10 s is exit 1.
    #[serde(default)]
    pub expect_in_flight: Opt<Templated<Flag>>,
}

/// `new`, `reused`, or a shared name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ConnectionName(pub IdText);

impl JsonSchema for ConnectionName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Connection".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": crate::language::ID_PATTERN, "examples": ["new", "reused"] })
    }
}

/// Open-loop load in the background at a constant rate: requests start when they are due, whatever became of earlier ones.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Requests per second: 50/s.
    pub rate: Templated<Rate>,
    /// Path and query.
    pub path: Templated<String>,
    /// Method. Default GET.
    #[serde(default)]
    pub method: Opt<Method>,
    /// Headers; numbers and booleans are passed on as they are written.
    #[serde(default)]
    pub headers: IndexMap<At<String>, Templated<AsWritten>>,
    /// Body.
    #[serde(default)]
    pub body: Opt<Templated<String>>,
    /// A new connection for each request (default), or kept ones.
    #[serde(default)]
    pub connections: Opt<Connections>,
    /// HTTP version: h1 (default) or h2.
    #[serde(default)]
    pub protocol: Opt<Protocol>,
    /// It stops after this time. Without `duration` and `until` it stops when the steps end.
    #[serde(default)]
    pub duration: Opt<Templated<Duration>>,
    /// It stops when this expression holds.
    #[serde(default)]
    pub until: Opt<At<Expr>>,
    /// The client gives up a request after this. Default 60s.
    #[serde(default)]
    pub request_timeout: Opt<Templated<Duration>>,
}

/// Deletes or evicts a pod.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeletePod {
    /// Grace period of the call. Default: the pod's own terminationGracePeriodSeconds.
    #[serde(default)]
    pub grace: Opt<Templated<Duration>>,
    /// true: wait until the pod is gone. Default false.
    #[serde(default)]
    pub wait: Opt<Templated<Flag>>,
    /// A label selector for another pod than the target.
    #[serde(default)]
    pub pod: Opt<Templated<String>>,
}

/// Sets the number of replicas.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// To this number.
    pub replicas: Templated<Count>,
    /// Which pod must go when the number falls: any (default), or target, whose pod-deletion-cost is then set.
    #[serde(default)]
    pub victim: Opt<Victim>,
    /// true: wait until as many pods are ready and the others gone. Default false.
    #[serde(default)]
    pub wait: Opt<Templated<Flag>>,
}

/// Restarts the rollout.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutRestart {
    /// true: wait until the rollout is finished. Default false.
    #[serde(default)]
    pub wait: Opt<Templated<Flag>>,
}

/// Cordons the target's node and evicts what runs there.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainNode {
    /// Grace period of the evictions. Default: each pod's own.
    #[serde(default)]
    pub grace: Opt<Templated<Duration>>,
    /// true: wait until the pods are gone. Default false.
    #[serde(default)]
    pub wait: Opt<Templated<Flag>>,
}

one_of! {
    /// A read, once or until a condition on the reply holds.
    Poll,
    /// What a poll reads.
    PollKind, "a poll", "source";
    common {
        /// Time between reads. Default 1s.
        every: Templated<Duration>,
        /// Until this holds of the last reply, by the bare names status, body, outcome, exit, stdout. Without it: read once.
        until: At<Expr>,
    }
    kinds {
        /// GET of a path through the entry point.
        http => Http(PollHttp),
        /// A command in a container of the target.
        exec => Exec(Exec),
    }
}

/// GET of a path through the entry point.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollHttp {
    /// Path and query.
    pub path: Templated<String>,
}

/// A command in a container of the target.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// A key of the environment's `containers`: app, hc, sidecar.
    pub container: At<IdText>,
    /// Command and arguments as a list; there is no shell.
    #[schemars(length(min = 1))]
    pub argv: Vec<Templated<AsWritten>>,
    /// Keeps the output in this file of the run folder.
    #[serde(default)]
    pub save_as: Opt<At<FileName>>,
}

/// A command on a host.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// A key of the environment's `hosts`.
    pub host: Templated<String>,
    /// Command and arguments as a list; there is no shell.
    #[schemars(length(min = 1))]
    pub argv: Vec<Templated<AsWritten>>,
    /// true: with `sudo -n`. Default false.
    #[serde(default)]
    pub sudo: Opt<Templated<Flag>>,
    /// Keeps the output in this file of the run folder.
    #[serde(default)]
    pub save_as: Opt<At<FileName>>,
}

/// A file name in the run folder: no folders in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName(pub String);

const FILE_NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$";

impl<'de> Deserialize<'de> for FileName {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(Self)
    }
}

impl JsonSchema for FileName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FileName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": FILE_NAME, "examples": ["sysctl.txt"] })
    }
}

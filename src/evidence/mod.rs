//! What was seen: one reader per source, each giving observations on that source's own clock.
//!
//! From the files of a run folder to [`Evidence`]. Readers know formats, never opinions: a `DH--` stays a
//! termination state here, and only `verdict` says that work was cut. Nothing is corrected by a clock offset yet;
//! a bracket here accounts for the resolution and the rounding of stamps only. What could not be read is a
//! [`Note`] and the rest is used.

use std::net::SocketAddr;

use serde::Serialize;

use crate::time::Instant;

mod arrival;
pub mod capture;
pub mod client;
pub mod clock_exchange;
mod container_line;
pub mod envoy_log;
pub mod envoy_stats;
pub mod haproxy_config;
pub mod haproxy_csv;
pub mod haproxy_log;
pub mod hc_log;
mod json_object;
mod lines;
pub mod load;
mod pattern;
pub mod pod_watch;
mod reading;
pub mod run_folder;
pub mod run_log;
mod stamp;
mod thinning;

/// A file of the run folder; an index into [`Evidence::files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FileId(pub u32);

/// A line of a file, counted from 1; for a binary file the record, for a timeline CSV the physical line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// The line or record, from 1; 0 is the file as a whole.
    pub line: u32,
}

/// One file that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceFile {
    /// Name inside the run folder, for example `haproxy.log`.
    pub name: String,
    /// What kind of source it was read as.
    pub kind: SourceKind,
    /// Whose clock its stamps are on, as far as the file alone tells.
    pub clock: FileClock,
    /// Node, pod, host or request that the file's name carries: `worker1` of `envoy-worker1.log`.
    pub subject: Option<String>,
    /// Bytes on disk.
    pub size: u64,
}

/// The kinds of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// `requests.jsonl`, `curl[-id].out`.
    Client,
    /// `load-<id>.jsonl`, `client.tsv`, `hey.out` and other load tools' results.
    Load,
    /// `run.log`.
    RunLog,
    /// `hc[-node].log`.
    HcLog,
    /// `envoy[-node].log`.
    EnvoyLog,
    /// Another container's log, `app.log` or `<probe>.log`.
    ContainerLog,
    /// `envoy-active[-node].tsv`, port-forward samples.
    EnvoyStats,
    /// `haproxy-stat-before.csv`, `-after.csv`, `-timeline.csv`.
    HaproxyCsv,
    /// `haproxy.log`, `haproxy-syslog-*.log`.
    HaproxyLog,
    /// `haproxy.cfg`.
    HaproxyConfig,
    /// `rst-<host>.pcap` with `rst-<host>.err`.
    Capture,
    /// `pod-watch.jsonl`, `endpointslice-watch.jsonl`, `events-watch.jsonl`, `deployment-watch.jsonl`.
    Watch,
    /// `clocks.jsonl`.
    ClockExchange,
    /// `journal.jsonl`, `steps.jsonl`, `run.json`.
    Journal,
}

/// Which clock the stamps of a file are on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileClock {
    /// Stamps taken by gtrun itself, all on its one monotonic-continued UTC clock.
    Gtrun,
    /// The named host of the environment (`lb`, `worker1`), whose offset `clocks.jsonl` may hold.
    Host(String),
    /// Nothing is known: the file is a clock of its own.
    Own,
    /// Local time of an unknown zone; the stamps were read as if they were UTC. A clock of its own, off by an
    /// unknown multiple of 15 minutes.
    OwnUnknownZone,
    /// The file carries no stamps.
    None,
}

/// Something about the evidence that its reader must say: a missing column, a cut line, an ended follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where, when it has a place.
    pub place: Option<Place>,
    /// What kind of trouble.
    pub kind: NoteKind,
    /// One sentence for a person, with the remedy where there is one.
    pub text: String,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Part of the source could not be read or was lost: absence proves nothing any more.
    Incomplete,
    /// The whole source could not be used.
    Unreadable,
    /// A name outside the known sets (an FSM state, a server status): kept, never guessed.
    UnknownName,
    /// For information.
    Remark,
}

/// Everything that was read from a run folder.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// The files, in name order; [`FileId`] is the index.
    pub files: Vec<SourceFile>,
    /// Trouble that readers had.
    pub notes: Vec<Note>,
    /// `run.log`.
    pub run_log: Option<run_log::RunLog>,
    /// Single requests as their client saw them.
    pub clients: Vec<client::ClientRequest>,
    /// Loads as their generator saw them.
    pub loads: Vec<load::Load>,
    /// FSM logs, one a pod.
    pub hc_logs: Vec<hc_log::HcLog>,
    /// Logs of other containers: `app.log`, `<probe>.log`.
    pub container_logs: Vec<hc_log::HcLog>,
    /// Envoy logs, one a pod.
    pub envoy_logs: Vec<envoy_log::EnvoyLog>,
    /// Gauge series, one a pod and way of sampling.
    pub envoy_stats: Vec<envoy_stats::GaugeSeries>,
    /// Lines of container logs that a pattern of the plan matched.
    pub log_matches: Vec<LogMatch>,
    /// HAProxy's configuration.
    pub haproxy_config: Option<haproxy_config::HaproxyConfig>,
    /// HAProxy's logs; several files may tell of the same events (iso, rfc3164 and rfc5424 copies).
    pub haproxy_logs: Vec<haproxy_log::HaproxyLog>,
    /// HAProxy's statistics: the timeline, and single snapshots.
    pub haproxy_csv: Vec<haproxy_csv::StatSeries>,
    /// Packet captures, one a host.
    pub captures: Vec<capture::Capture>,
    /// Watches of the Kubernetes API.
    pub watches: Vec<pod_watch::Watch>,
    /// Offsets measured by gtrun.
    pub clock_exchanges: Vec<clock_exchange::ClockExchange>,
    /// What gtrun itself did to the cluster, from `journal.jsonl` and the step records of `run.jsonl`.
    pub own_calls: Vec<run_folder::OwnCall>,
    /// `run.json`, in a folder that gtrun made.
    pub run: Option<run_folder::RunRecord>,
}

impl Evidence {
    /// The file's record. A [`FileId`] always comes from the same evidence.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }
}

/// A line of a container's log that a pattern matched: raw lines are not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct LogMatch {
    /// Name of the probe: `app`, `hc`, `envoy`, or the file's stem.
    pub probe: String,
    /// The pattern, as the author wrote it.
    pub pattern: String,
    /// When, on the file's clock.
    pub at: crate::time::Bracket,
    /// Where.
    pub place: Place,
}

/// A moment with the side of the truth unknown: a stamp taken at some time during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sampled {
    /// When the sample was asked for, where known.
    pub sent: Option<Instant>,
    /// When the answer was there, where known.
    pub received: Option<Instant>,
    /// The stamp of an old file, whose side is unknown: the CSV timeline and `envoy-active.tsv`.
    pub stamp: Option<Instant>,
    /// Resolution of `stamp`: 1 s for `envoy-active.tsv`, 1 ms for the CSV timeline.
    pub resolution: crate::time::Duration,
}

/// One end of a TCP connection.
pub type Endpoint = SocketAddr;

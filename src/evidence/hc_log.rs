//! The health-check process's log: FSM transitions, its health page, its own polls, the drain call, SIGTERM.

use super::{FileId, Place};
use crate::time::{Bracket, Instant};

mod parse;
pub(crate) mod reader;

pub(crate) use parse::agent_connections;
pub use parse::{FsmNames, ParsedLine, parse_line};

/// One pod's FSM log, on its own clock.
#[derive(Debug, Clone, PartialEq)]
pub struct HcLog {
    /// The file.
    pub file: FileId,
    /// Node or pod from the file's name.
    pub subject: Option<String>,
    /// The lines, in file order.
    pub lines: Vec<HcLine>,
    /// Stamps of the last line that was read whole, and whether the follow ended before the container did.
    pub follow_ended_early: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct HcLine {
    /// The application's stamp; the runtime's where the application wrote none.
    pub at: Bracket,
    /// The runtime's stamp (kubelet, CRI), where the line carries one: another clock reading of the same node.
    pub runtime: Option<Instant>,
    /// When the line arrived at gtrun, where that was kept.
    pub arrival: Option<Instant>,
    /// Where.
    pub place: Place,
    /// What it says.
    pub what: HcEvent,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum HcEvent {
    /// `event=start state=OPEN mode=current`.
    Start {
        /// `current`, `improved`, `nolb`.
        mode: Option<String>,
    },
    /// `event=transition from=OPEN to=DRAINING`; aliases are already mapped, unknown names are kept as they are.
    Transition {
        /// State left.
        from: String,
        /// State entered.
        to: String,
    },
    /// `event=health from=200 to=503`: the page's answer changes.
    Health {
        /// Status before.
        from: Option<u16>,
        /// Status from now on.
        to: u16,
    },
    /// `event=poll downstream=1 upstream=1`: the workload's own view of the gauges.
    Poll {
        /// `downstream_rq_active`; `None` when the poll failed.
        downstream: Option<u64>,
        /// `upstream_rq_active`.
        upstream: Option<u64>,
    },
    /// `event=drain_listeners`: it told Envoy to drain.
    DrainListeners {
        /// Status of Envoy's answer.
        status: Option<u16>,
    },
    /// `event=drain_timeout`: `drain_max` has passed without a zero.
    DrainTimeout,
    /// `event=prestop`, `event=hold`.
    PreStop {
        /// Container whose hook it is.
        who: Option<String>,
    },
    /// `event=sigterm`.
    Sigterm,
    /// `event=exiting`: the process ends by itself.
    Exiting,
    /// Istio's agent: `active connections: 3`, newest line counts.
    AgentActive {
        /// Connections; negative (the agent could not read its gauge) is `None`.
        connections: Option<u64>,
    },
    /// Anything else with a stamp, kept as it is.
    Other(String),
}

//! Application lines of Envoy and of Istio's agent: tab-separated, JSON, or Envoy's own brackets.

use super::EnvoyEvent;
use crate::evidence::hc_log::agent_connections;
use crate::evidence::json_object::{Fields, Scalar};
use crate::evidence::stamp::{self, Stamp};

/// No message that means something is longer, the name of its source file included.
const LONGEST: usize = 240;

/// A line with its stamp.
pub(crate) struct ApplicationLine<'a> {
    pub(crate) stamp: Stamp,
    pub(crate) message: std::borrow::Cow<'a, [u8]>,
}

/// Reads a line that is no access line; `None` for a line without a stamp, which belongs to the one above it.
pub(crate) fn parse(line: &[u8]) -> Option<ApplicationLine<'_>> {
    // STAMP TAB level TAB [scope] TAB message [TAB key=value]
    if let Some((stamp, used)) = stamp::iso(line) {
        return Some(ApplicationLine {
            stamp,
            message: line[used..].trim_ascii_start().into(),
        });
    }
    // [2026-05-31 07:12:41.883][20206][warning][main] [source/server/server.cc:1028] message
    if let Some(rest) = line.strip_prefix(b"[")
        && let Some((stamp, used)) = stamp::iso(rest)
        && rest.get(used) == Some(&b']')
    {
        return Some(ApplicationLine {
            stamp,
            message: (&rest[used + 1..]).into(),
        });
    }
    None
}

/// Reads a line in JSON (`--log_as_json`).
pub(crate) fn json(fields: &Fields<'_>) -> Option<ApplicationLine<'static>> {
    let stamp = fields.first(&["time", "ts", "timestamp", "@timestamp"])?.stamp()?;
    let message = fields.first(&["msg", "message"]).and_then(Scalar::text)?;
    Some(ApplicationLine {
        stamp,
        message: message.into_owned().into_bytes().into(),
    })
}

/// What the message means; `None` for one of no interest. Wording changes between versions, case with it.
pub(crate) fn event(message: &[u8]) -> Option<EnvoyEvent> {
    // What matters is short; Envoy's lists of its extensions and its debug lines are not.
    if message.len() > LONGEST {
        return None;
    }
    let lower = message.to_ascii_lowercase();
    let says = |words: &[u8]| memchr::memmem::find(&lower, words).is_some();
    if says(b"envoy_sigterm") || says(b"received signal: terminated") {
        Some(EnvoyEvent::Sigterm)
    } else if says(b"starting main dispatch loop") {
        Some(EnvoyEvent::Started)
    } else if lower.trim_ascii_end().ends_with(b"exiting")
        || says(b"main dispatch loop exited")
        || says(b"agent has successfully terminated")
        || says(b"envoy aborted normally")
    {
        Some(EnvoyEvent::Exiting)
    } else if says(b"agent draining proxy") || says(b"graceful termination period is") {
        Some(EnvoyEvent::AgentDrain)
    } else if says(b"active connections") && !says(b"checking for") {
        agent_connections(&lower).map(EnvoyEvent::AgentActive)
    } else {
        None
    }
}

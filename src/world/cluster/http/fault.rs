//! Every failure of a request, mapped once to the closed set of outcomes.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use super::wire::Wire;
use crate::evidence::client::Outcome;
use crate::world::cluster::error::chain;

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) outcome: Outcome,
    /// For a person.
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            text: text.into(),
        }
    }

    /// No TCP connection.
    pub(super) fn connect(address: SocketAddr, error: &io::Error) -> Self {
        let outcome = match error.kind() {
            io::ErrorKind::TimedOut => Outcome::Timeout,
            // An unreachable network or host, no local port left: there is no connection either.
            _ => Outcome::Refused,
        };
        Self::new(outcome, format!("connect to {address}: {error}"))
    }

    /// The TLS handshake failed. A peer that closed or reset the connection in the midst of it said nothing about TLS.
    pub(super) fn tls(error: &io::Error) -> Self {
        let outcome = match error.kind() {
            io::ErrorKind::UnexpectedEof => Outcome::ClosedEarly,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                Outcome::Reset
            }
            io::ErrorKind::TimedOut => Outcome::Timeout,
            _ => Outcome::TlsError,
        };
        Self::new(outcome, format!("TLS handshake: {error}"))
    }

    /// No status arrived. What was seen on the wire decides; the library's error is for the text.
    pub(super) fn before_head(error: &hyper::Error, wire: &Wire) -> Self {
        let text = chain(error);
        if let Some(h2) = find::<h2::Error>(error)
            && !h2.is_io()
        {
            return Self::new(h2_outcome(h2), text);
        }
        let seen = wire.seen();
        let outcome = if error.is_parse() {
            // An answer that is no HTTP: we close, there was no status.
            Outcome::ClosedEarly
        } else if seen.broken.is_some() {
            Outcome::Reset
        } else if seen.closed {
            Outcome::ClosedEarly
        } else {
            match find::<io::Error>(error).map(io::Error::kind) {
                Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => Outcome::Reset,
                _ => Outcome::ClosedEarly,
            }
        };
        Self::new(outcome, text)
    }

    /// A status arrived, the body did not.
    pub(super) fn in_body(error: &hyper::Error, wire: &Wire) -> Self {
        let how = {
            let seen = wire.seen();
            if seen.broken.is_some() {
                "reset"
            } else if seen.closed {
                "closed"
            } else {
                "ended"
            }
        };
        Self::new(
            Outcome::Truncated,
            format!("{how} before the body was whole: {}", chain(error)),
        )
    }
}

/// A stream error, or a GOAWAY that leaves this request out.
fn h2_outcome(error: &h2::Error) -> Outcome {
    match error.reason() {
        Some(h2::Reason::REFUSED_STREAM) => Outcome::RefusedStream,
        // A graceful GOAWAY ends only requests that it leaves out: not processed, as with REFUSED_STREAM.
        Some(h2::Reason::NO_ERROR) if error.is_go_away() && error.is_remote() => Outcome::RefusedStream,
        _ => Outcome::Reset,
    }
}

/// The first cause of that type.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

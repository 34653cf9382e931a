//! Messages that tie clocks: what was sent on one clock was received later on another.
//!
//! Each kind has its own slack, by which the written order of its two stamps may be wrong. Figures are from
//! recorded runs of HAProxy 2.6 to 3.4 and Envoy 1.40; a message that might be another one ties nothing.

mod check;
mod client;
mod exchange;
mod gauge;
mod packet;
mod proxy;
mod reach;
mod statistics;

use crate::evidence::client::Outcome as ClientOutcome;
use crate::evidence::envoy_log::EnvoyRequest;
use crate::evidence::envoy_stats::Reading;
use crate::evidence::haproxy_csv::StatKind;
use crate::evidence::haproxy_log::{HaproxyEvent, HaproxyLine, HaproxyLog, HealthCheck, ServerChange};
use crate::evidence::hc_log::HcEvent;
use crate::evidence::run_log::RunLogLine;
use crate::evidence::{Evidence, FileId};
use crate::time::{Bracket, Duration, Instant};
use crate::timeline::clocks::{Clocks, Sighting};
use crate::timeline::request::{Requests, envoy_request, haproxy_request, load_request};
use crate::timeline::sampling;
use crate::timeline::site::{Site, SitePod};
use std::collections::{BTreeMap, BTreeSet};

pub use client::client_moments;
pub use gauge::{Count, own_polls};
pub use proxy::haproxy_end;
pub use reach::{request_sightings, span, zone_shift};

/// Stamps are written by threads that were scheduled a little after what they stamp.
pub(super) const SCHEDULING: Duration = Duration::from_millis(2);

/// HAProxy writes a request's line after the client has got the last byte: up to 5 ms were seen on busy machines.
pub(super) const LINE_AFTER_RESPONSE: Duration = Duration::from_millis(10);

/// HAProxy sends the FIN of a kill up to 4 ms before it logs DOWN; Envoy's line of it is cut to milliseconds.
pub(super) const KILL: Duration = Duration::from_millis(10);

/// Copies of one packet on two hosts: median 5 us, worst 2.7 ms on busy machines.
pub(super) const PACKET: Duration = Duration::from_millis(3);

/// Envoy's gauge moves with the request, its lines are cut to milliseconds; the workload's poll takes a few.
pub(super) const GAUGE: Duration = Duration::from_millis(10);

/// What kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// The client sent before HAProxy accepted.
    ClientToHaproxy,
    /// HAProxy was done before the client was.
    HaproxyToClient,
    /// HAProxy connected before Envoy began.
    HaproxyToEnvoy,
    /// Envoy was done before HAProxy was.
    EnvoyToHaproxy,
    /// HAProxy cut and Envoy noticed.
    Kill,
    /// A health check seen by both ends.
    HealthCheck,
    /// The health page's flip lies between the last good and the first bad answer.
    HealthFlip,
    /// A packet in two captures.
    Packet,
    /// A connection's packets around its request.
    Connection,
    /// A log line and its arrival.
    Arrival,
    /// A gauge that is busy only while requests run.
    BusyGauge,
    /// A server's statistics change with a request or a state in HAProxy's log.
    Statistics,
    /// The client and the proxies, matched by a path that no other request has.
    ClientByPath,
    /// What an order to the pod caused.
    Cause,
    /// A measured exchange.
    Exchange,
}

impl MessageKind {
    /// Ports or the run's own record name both sides: the two files are of one run. The others rest on order and
    /// shape, which another run's file may have too.
    pub fn is_sure(self) -> bool {
        match self {
            Self::ClientToHaproxy
            | Self::HaproxyToClient
            | Self::HaproxyToEnvoy
            | Self::EnvoyToHaproxy
            | Self::Kill
            | Self::Packet
            | Self::Arrival
            | Self::Exchange => true,
            // A port alone recurs between runs.
            Self::Connection
            | Self::ClientByPath
            | Self::HealthCheck
            | Self::HealthFlip
            | Self::BusyGauge
            | Self::Statistics
            | Self::Cause => false,
        }
    }
}

/// One message: `earlier` came before `later`, or at most `slack` after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// Sent.
    pub earlier: Sighting,
    /// Received.
    pub later: Sighting,
    /// By how much the stamps may be in the wrong order.
    pub slack: Duration,
    /// What it is.
    pub kind: MessageKind,
}

/// Collects messages; moments that are not known, or on one clock, make none.
pub(super) struct Collector {
    found: Vec<Message>,
}

impl Collector {
    pub(super) fn before(
        &mut self,
        kind: MessageKind,
        earlier: Option<Sighting>,
        later: Option<Sighting>,
        slack: Duration,
    ) {
        if let (Some(earlier), Some(later)) = (earlier, later)
            && earlier.clock != later.clock
        {
            self.found.push(Message {
                earlier,
                later,
                slack,
                kind,
            });
        }
    }
}

/// All messages of a run.
pub fn all(evidence: &Evidence, site: &Site, requests: &Requests, log: Option<usize>, clocks: &Clocks) -> Vec<Message> {
    let mut c = Collector { found: Vec::new() };
    exchange::exchanges(evidence, clocks, &mut c);
    proxy::haproxy_and_envoy(evidence, requests, clocks, &mut c);
    client::clients(evidence, requests, clocks, &mut c);
    check::health_checks(evidence, site, log, clocks, &mut c);
    check::health_flips(evidence, site, clocks, &mut c);
    packet::captures(evidence, site, requests, clocks, &mut c);
    exchange::arrivals(evidence, clocks, &mut c);
    gauge::gauges(evidence, site, clocks, &mut c);
    statistics::statistics(evidence, site, requests, log, clocks, &mut c);
    exchange::causes(evidence, site, clocks, &mut c);
    c.found
}

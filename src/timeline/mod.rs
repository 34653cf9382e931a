//! Clocks tied, sources merged: events with brackets on one time axis, and the intervals between them.
//!
//! From [`crate::evidence::Evidence`] to a [`Timeline`]. It has order and no opinion.

pub mod clocks;
pub mod connection;
pub mod event;
pub mod gap;
pub mod interval;
pub mod message;
pub mod record;
pub mod request;
pub mod sampling;
pub mod server;
pub mod site;
pub mod stop;
pub mod zero;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::evidence::Evidence;
use crate::evidence::haproxy_log::{HaproxyEvent, HaproxyLine, HaproxyLog};
use clocks::{Clocks, Sighting};
use request::Requests;
use server::Change;
use site::{Knowledge, Site};
use stop::Stop;
use zero::ActiveZero;

/// A run on one time axis.
#[derive(Debug)]
pub struct Timeline<'e> {
    /// What was read.
    pub evidence: &'e Evidence,
    /// What was known beforehand.
    pub known: Knowledge,
    /// Who is who.
    pub site: Site,
    /// Requests across their sources.
    pub requests: Requests,
    /// The clocks.
    pub clocks: Clocks,
    /// Index of HAProxy's log that is used; others are copies of it.
    pub haproxy_log: Option<usize>,
    /// Reloads of the load balancer.
    pub reloads: Vec<Sighting>,
    /// What happened to each server whose pod was told to stop.
    pub targets: Vec<Target>,
}

/// A server whose pod was told to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its name.
    pub server: Arc<str>,
    /// When it was told to stop.
    pub stop: Stop,
    /// Its DOWN after that.
    pub down: Option<Change>,
    /// When its in-flight count settled at zero.
    pub zero: ActiveZero,
}

impl<'e> Timeline<'e> {
    /// Puts the evidence of a run on one time axis.
    pub fn build(evidence: &'e Evidence, known: Knowledge) -> Self {
        let mut site = Site::survey(evidence, &known);
        let haproxy_log = primary_log(evidence);
        let requests = Requests::trace(evidence, &site, haproxy_log);
        let clocks = Clocks::tie(evidence, &site, &requests, haproxy_log, &known);
        let haproxy_log = haproxy_log.filter(|i| clocks.belongs(evidence.haproxy_logs[*i].file));
        site.pods
            .retain(|p| p.envoy.is_none_or(|e| clocks.belongs(evidence.envoy_logs[e].file)) || p.hc.is_some());
        let reloads = server::reloads(evidence, &site, haproxy_log, &clocks);
        let mut timeline = Self {
            evidence,
            known,
            site,
            requests,
            clocks,
            haproxy_log,
            reloads,
            targets: Vec::new(),
        };
        let servers: Vec<Arc<str>> = timeline
            .site
            .targets()
            .map(|i| Arc::clone(&timeline.site.servers[i].name))
            .collect();
        timeline.targets = servers.into_iter().map(|s| timeline.target(s)).collect();
        timeline
    }

    /// The file that a sighting is from; gtrun's own calls are from `steps.jsonl`.
    pub fn source(&self, sighting: &Sighting) -> String {
        if sighting.line == 0 && self.clocks.named("gtrun") == Some(sighting.clock) {
            return "steps.jsonl".to_owned();
        }
        self.evidence.file(sighting.file).name.clone()
    }

    fn target(&self, server: Arc<str>) -> Target {
        let stop = Stop::of(self.evidence, &self.site, &self.clocks, &server);
        let after: Vec<Sighting> = stop.known().copied().collect();
        let down = server::down_after(
            self.evidence,
            &self.site,
            self.haproxy_log,
            &self.clocks,
            &server,
            &after,
        );
        let zero = zero::of(self, &server);
        Target {
            server,
            stop,
            down,
            zero,
        }
    }
}

/// HAProxy's log: of copies the one that shares most connections with the client's and Envoy's records, then the one
/// with the finest stamps, then the longest.
fn primary_log(evidence: &Evidence) -> Option<usize> {
    let clients: BTreeSet<u16> = evidence
        .clients
        .iter()
        .filter_map(|c| c.local_port)
        .chain(
            evidence
                .loads
                .iter()
                .flat_map(|l| &l.requests)
                .filter_map(|r| r.local_port),
        )
        .collect();
    let proxies: BTreeSet<(u16, &str)> = evidence
        .envoy_logs
        .iter()
        .flat_map(|l| &l.requests)
        .filter_map(|r| Some((r.downstream?.port(), r.path.as_deref()?)))
        .collect();
    let shared = |log: &HaproxyLog| {
        let known = |l: &&HaproxyLine| match &l.what {
            HaproxyEvent::Request(r) => {
                let by_client = r.client.is_some_and(|c| clients.contains(&c.port()));
                let by_proxy = r
                    .backend_source
                    .zip(r.path.as_deref())
                    .is_some_and(|(s, p)| proxies.contains(&(s.port(), p)));
                by_client || by_proxy
            }
            HaproxyEvent::ServerState(_)
            | HaproxyEvent::HealthCheck(_)
            | HaproxyEvent::ProxyStopped(_)
            | HaproxyEvent::ProxyStarted(_)
            | HaproxyEvent::NoServer(_) => false,
        };
        log.lines.iter().filter(known).count()
    };
    let logs = (0..evidence.haproxy_logs.len()).filter(|i| !evidence.haproxy_logs[*i].lines.is_empty());
    logs.min_by_key(|i| {
        let log = &evidence.haproxy_logs[*i];
        (Reverse(shared(log)), log.resolution, Reverse(log.lines.len()), *i)
    })
}

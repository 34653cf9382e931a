//! When a pod was told to stop: the delete acknowledged, else the drain when no delete is recorded.

use super::clocks::{Clocks, Sighting};
use super::site::Site;
use crate::evidence::Evidence;
use crate::evidence::envoy_log::EnvoyEvent;
use crate::evidence::hc_log::HcEvent;
use crate::evidence::pod_watch::WatchChange;
use crate::evidence::run_log::RunLogLine;
use crate::time::{Bracket, Duration};

/// The old script logs the delete just before kubectl is started; kubectl had its answer 0.13 s later on a busy
/// machine.
const KUBECTL: Duration = Duration::from_millis(500);

/// When a server's pod was told to stop, as each source bounds it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stop {
    /// The order itself: sent to acknowledged.
    pub ordered: Vec<Sighting>,
    /// What came of it: the drain (the FSM left its first state), preStop hooks, SIGTERM.
    pub drain: Vec<Sighting>,
    /// Where the order was read.
    pub by: Option<&'static str>,
}

impl Stop {
    /// Every moment from which on, or up to which, the order is known; each is good for its own side.
    pub fn known(&self) -> impl Iterator<Item = &Sighting> {
        self.ordered.iter().chain(&self.drain)
    }

    /// Nothing tells when.
    pub fn is_unknown(&self) -> bool {
        self.ordered.is_empty() && self.drain.is_empty()
    }

    /// From the evidence, for one server.
    pub fn of(evidence: &Evidence, site: &Site, clocks: &Clocks, server: &str) -> Self {
        let mut stop = Self::default();
        for call in &evidence.own_calls {
            let hits = call.server.as_deref().is_none_or(|s| s == server);
            if hits && matches!(call.verb.as_str(), "delete_pod" | "evict_pod" | "drain_node" | "scale") {
                let at = Bracket {
                    lo: Some(call.sent - Duration::from_nanos(1)),
                    hi: call.received,
                };
                if let Some(clock) = clocks.named("gtrun") {
                    stop.ordered.push(Sighting {
                        clock,
                        at,
                        file: crate::evidence::FileId(0),
                        line: 0,
                    });
                    stop.by = Some("delete step");
                }
            }
        }
        let several = evidence
            .run_log
            .iter()
            .flat_map(|l| &l.entries)
            .filter(|e| matches!(e.what, RunLogLine::DeletePod { .. }))
            .count()
            > 1;
        for entry in evidence.run_log.iter().flat_map(|l| &l.entries) {
            if let RunLogLine::DeletePod { pod, .. } = &entry.what
                && (pod == server || (!several && site.server(pod).is_none()))
            {
                let at = Bracket {
                    lo: entry.at.lo,
                    hi: entry.at.hi.map(|t| t + KUBECTL),
                };
                stop.ordered
                    .extend(clocks.sight(entry.place.file, entry.place.line, at));
                stop.by = stop.by.or(Some("run.log"));
            }
        }
        for hc in site.pods_of(server).filter_map(|p| p.hc).map(|i| &evidence.hc_logs[i]) {
            let left = hc
                .lines
                .iter()
                .find(|l| matches!(&l.what, HcEvent::Transition { from, to } if is_first(from) && from != to));
            if let Some(line) = left
                && clocks.belongs(hc.file)
            {
                // The order came before the drain; without an order recorded the drain stands for it.
                let at = if stop.ordered.is_empty() {
                    line.at
                } else {
                    Bracket {
                        lo: None,
                        hi: line.at.hi,
                    }
                };
                stop.drain.extend(clocks.sight(hc.file, line.place.line, at));
                stop.by = stop.by.or(Some("drain in the FSM log"));
            }
        }
        stop.consequences(evidence, site, clocks, server);
        stop.read_watch(evidence, clocks);
        stop
    }

    /// preStop hooks and SIGTERM came after the order, in whatever log they stand.
    fn consequences(&mut self, evidence: &Evidence, site: &Site, clocks: &Clocks, server: &str) {
        if self.ordered.is_empty() {
            return;
        }
        let after = |at: Bracket| Bracket { lo: None, hi: at.hi };
        for pod in site.pods_of(server) {
            if let Some(hc) = pod.hc.map(|i| &evidence.hc_logs[i]).filter(|h| clocks.belongs(h.file)) {
                let first = hc
                    .lines
                    .iter()
                    .find(|l| matches!(l.what, HcEvent::PreStop { .. } | HcEvent::Sigterm));
                self.drain
                    .extend(first.and_then(|l| clocks.sight(hc.file, l.place.line, after(l.at))));
            }
            if let Some(envoy) = pod
                .envoy
                .map(|i| &evidence.envoy_logs[i])
                .filter(|e| clocks.belongs(e.file))
            {
                let first = envoy.lines.iter().find(|l| l.what == EnvoyEvent::Sigterm);
                self.drain
                    .extend(first.and_then(|l| clocks.sight(envoy.file, l.place.line, after(l.at))));
            }
        }
    }

    /// A deletion timestamp seen by the watch: the order came before it arrived.
    fn read_watch(&mut self, evidence: &Evidence, clocks: &Clocks) {
        let events = evidence
            .watches
            .iter()
            .flat_map(|w| w.events.iter().map(move |e| (w.file, e)));
        for (file, event) in events {
            if let WatchChange::Pod(pod) = &event.what
                && pod.deletion.is_some()
            {
                let at = Bracket {
                    lo: event.last_contact,
                    hi: Some(event.arrival),
                };
                self.ordered.extend(clocks.sight(file, event.place.line, at));
                self.by = self.by.or(Some("pod watch"));
                return;
            }
        }
    }
}

/// The FSM's first state, by its present and its known old name.
fn is_first(state: &str) -> bool {
    matches!(state, "OPEN" | "READY")
}

//! Walks the sources and collects what happened.

use super::{Event, What};
use crate::evidence::envoy_log::EnvoyEvent;
use crate::evidence::envoy_stats::Reading;
use crate::evidence::haproxy_csv::StatusClass;
use crate::evidence::haproxy_log::ServerChange;
use crate::evidence::hc_log::HcEvent;
use crate::evidence::pod_watch::WatchChange;
use crate::evidence::run_folder::CallOutcome;
use crate::evidence::run_log::RunLogLine;
use crate::time::{Bracket, Duration};
use crate::timeline::clocks::Sighting;
use crate::timeline::request::{envoy_request, haproxy_request};
use crate::timeline::server;
use crate::timeline::{Timeline, connection, message, sampling};
use std::sync::Arc;

/// Collects events while the sources are walked.
pub(super) struct Builder<'t, 'e> {
    timeline: &'t Timeline<'e>,
    pub(super) events: Vec<Event>,
}

impl<'t, 'e> Builder<'t, 'e> {
    /// Nothing is collected yet.
    pub(super) fn new(timeline: &'t Timeline<'e>) -> Self {
        Self {
            timeline,
            events: Vec::new(),
        }
    }

    fn add(&mut self, what: What, sightings: impl IntoIterator<Item = Sighting>) -> Option<&mut Event> {
        let sightings: Vec<Sighting> = sightings.into_iter().collect();
        if sightings.is_empty() {
            return None;
        }
        self.events.push(Event {
            what,
            server: None,
            pod: None,
            sightings,
            details: Vec::new(),
        });
        self.events.last_mut()
    }

    pub(super) fn calls(&mut self) {
        let Some(clock) = self.timeline.clocks.named("gtrun") else {
            return;
        };
        for call in &self.timeline.evidence.own_calls {
            let file = crate::evidence::FileId(0);
            let sent = call.sent - Duration::from_nanos(1);
            let s = Sighting {
                clock,
                at: Bracket {
                    lo: Some(sent),
                    hi: call.received,
                },
                file,
                line: 0,
            };
            let deletes = matches!(call.verb.as_str(), "delete_pod" | "evict_pod");
            if deletes
                && call.outcome == CallOutcome::Ok
                && let Some(e) = self.add(What::Delete, [s])
            {
                e.pod.clone_from(&call.pod);
                e.server = call.server.as_deref().map(Arc::from);
                e.details.push(("pod", call.pod.clone().into()));
            }
            if call.verb == "rollout_restart" {
                self.add(What::RolloutStarted, [s]);
            }
            if call.verb == "mark" {
                let name = call
                    .results
                    .get("name")
                    .and_then(|v| v.as_str())
                    .unwrap_or(&call.step)
                    .to_owned();
                self.add(What::Mark { name }, [s]);
            }
            let step = What::Step {
                id: call.step.clone(),
                verb: call.verb.clone(),
                outcome: call.outcome,
            };
            if let Some(e) = self.add(step, [s]) {
                e.details.push(("id", call.step.clone().into()));
                e.details.push(("verb", call.verb.clone().into()));
            }
        }
    }

    pub(super) fn run_log(&mut self) {
        let Some(log) = &self.timeline.evidence.run_log else {
            return;
        };
        for entry in &log.entries {
            let Some(s) = self.timeline.clocks.sight(entry.place.file, entry.place.line, entry.at) else {
                continue;
            };
            match &entry.what {
                RunLogLine::DeletePod { pod, .. } if self.timeline.evidence.own_calls.is_empty() => {
                    let server = self
                        .timeline
                        .site
                        .server(pod)
                        .map(|i| Arc::clone(&self.timeline.site.servers[i].name));
                    if let Some(e) = self.add(What::Delete, [s]) {
                        e.pod = Some(pod.clone());
                        e.server = server;
                        e.details.push(("pod", pod.clone().into()));
                    }
                }
                RunLogLine::RolloutRestart => {
                    self.add(What::RolloutStarted, [s]);
                }
                RunLogLine::RolloutFinished => {
                    self.add(What::RolloutFinished, [s]);
                }
                // The script saw it some time after it happened.
                RunLogLine::PodGone { pod } if self.timeline.evidence.watches.is_empty() => {
                    let late = Sighting {
                        at: Bracket { lo: None, hi: s.at.hi },
                        ..s
                    };
                    if let Some(e) = self.add(What::PodGone, [late]) {
                        e.pod.clone_from(pod);
                    }
                }
                RunLogLine::DeletePod { .. }
                | RunLogLine::PodGone { .. }
                | RunLogLine::RequestStarted { .. }
                | RunLogLine::RequestFinished { .. }
                | RunLogLine::HaproxyReload
                | RunLogLine::Sigterm { .. }
                | RunLogLine::Summary { .. }
                | RunLogLine::Other(_) => {}
            }
        }
    }

    pub(super) fn fsm(&mut self) {
        for pod in &self.timeline.site.pods {
            let Some(hc) = pod.hc.map(|i| &self.timeline.evidence.hc_logs[i]) else {
                continue;
            };
            if !self.timeline.clocks.belongs(hc.file) {
                continue;
            }
            let mut failed = false;
            for line in &hc.lines {
                let Some(s) = self.timeline.clocks.sight(hc.file, line.place.line, line.at) else {
                    continue;
                };
                let added = match &line.what {
                    HcEvent::Transition { from, to } => {
                        let details = [("from", from.clone().into()), ("to", to.clone().into())];
                        let what = What::Transition {
                            from: from.clone(),
                            to: to.clone(),
                        };
                        self.add(what, [s]).map(|e| with_details(e, details))
                    }
                    HcEvent::Health { to, .. } if *to >= 400 && !failed => {
                        failed = true;
                        let to = *to;
                        self.add(What::HealthFail, [s])
                            .map(|e| with_details(e, [("status", to.into())]))
                    }
                    HcEvent::DrainListeners { .. } => self.add(What::DrainListeners, [s]),
                    HcEvent::Sigterm => self.add(
                        What::Sigterm {
                            container: "hc".to_owned(),
                        },
                        [s],
                    ),
                    HcEvent::Health { .. }
                    | HcEvent::Start { .. }
                    | HcEvent::Poll { .. }
                    | HcEvent::DrainTimeout
                    | HcEvent::PreStop { .. }
                    | HcEvent::Exiting
                    | HcEvent::AgentActive { .. }
                    | HcEvent::Other(_) => None,
                };
                if let Some(e) = added {
                    e.server.clone_from(&pod.server);
                    e.pod.clone_from(&pod.name);
                }
            }
        }
    }

    pub(super) fn envoy(&mut self) {
        for pod in &self.timeline.site.pods {
            let Some(log) = pod.envoy.map(|i| &self.timeline.evidence.envoy_logs[i]) else {
                continue;
            };
            for line in &log.lines {
                let Some(s) = self.timeline.clocks.sight(log.file, line.place.line, line.at) else {
                    continue;
                };
                let container = "sidecar".to_owned();
                let added = match line.what {
                    EnvoyEvent::Sigterm => self.add(What::Sigterm { container }, [s]),
                    EnvoyEvent::Exiting => self.add(What::ContainerExit { container }, [s]),
                    EnvoyEvent::Started | EnvoyEvent::AgentDrain | EnvoyEvent::AgentActive(_) => None,
                };
                if let Some(e) = added {
                    e.server.clone_from(&pod.server);
                    e.pod.clone_from(&pod.name);
                }
            }
        }
    }

    /// Gauge samples that differ from the one before, the first included.
    pub(super) fn gauges(&mut self) {
        for pod in &self.timeline.site.pods {
            for series in pod.stats.iter().map(|i| &self.timeline.evidence.envoy_stats[*i]) {
                let names = crate::timeline::zero::GaugeNames::learn(self.timeline, &series.samples);
                let brackets = sampling::gauge_brackets(series);
                let mut before = None;
                for (sample, at) in series.samples.iter().zip(brackets) {
                    let Reading::Values(values) = &sample.reading else {
                        continue;
                    };
                    let now = names.counts(values);
                    if before == Some(now) {
                        continue;
                    }
                    before = Some(now);
                    let Some(s) = self.timeline.clocks.sight(series.file, sample.place.line, at) else {
                        continue;
                    };
                    if let Some(e) = self.add(What::ActiveCount, [s]) {
                        e.server.clone_from(&pod.server);
                        e.pod.clone_from(&pod.name);
                        e.details.push(("downstream", now.0.into()));
                        e.details.push(("upstream", now.1.into()));
                    }
                }
            }
        }
    }

    pub(super) fn servers(&mut self) {
        let timeline = self.timeline;
        for s in &timeline.site.servers {
            let logged = server::logged_changes(timeline.evidence, &timeline.site, timeline.haproxy_log, &s.name);
            let has_log = !logged.is_empty();
            for (_, line, state) in logged {
                let lo = line.at.lo.map(|t| t - server::DOWN_BEFORE_ITS_LINE);
                let sight = timeline
                    .clocks
                    .sight(line.place.file, line.place.line, Bracket { lo, hi: line.at.hi });
                if let Some(e) = self.add(What::Lb(state.to), sight) {
                    e.server = Some(Arc::clone(&s.name));
                    e.details.push(("svname", s.name.to_string().into()));
                    e.details.push(("status", status_after(state.to).into()));
                    if let Some(n) = state.sessions {
                        e.details.push(("sessions", n.into()));
                    }
                    if let Some(reason) = &state.reason {
                        e.details.push(("reason", reason.to_string().into()));
                    }
                }
            }
            if has_log {
                continue;
            }
            let points = server::stat_points(timeline.evidence, &timeline.site, &s.name);
            for (a, b) in server::pairs(&points) {
                let (Some(x), Some(y)) = (a.row, b.row) else { continue };
                let Some(to) = sampled_change(x.status.class, y.status.class) else {
                    continue;
                };
                let at = Bracket {
                    lo: a.at.lo,
                    hi: b.at.hi,
                };
                let sight = timeline.clocks.sight(b.file, b.line, at);
                let status = y.status.text.to_string();
                if let Some(e) = self.add(What::Lb(to), sight) {
                    e.server = Some(Arc::clone(&s.name));
                    e.details.push(("svname", s.name.to_string().into()));
                    e.details.push(("status", status.into()));
                }
            }
        }
        for s in timeline.reloads.clone() {
            self.add(What::LbReload, [s]);
        }
    }

    pub(super) fn targets(&mut self) {
        for target in &self.timeline.targets {
            // The target's DOWN was told by several sources: one event with all of them.
            if let Some(down) = &target.down {
                let twin = self.events.iter_mut().find(|e| {
                    matches!(e.what, What::Lb(ServerChange::Down))
                        && e.server.as_ref() == Some(&target.server)
                        && e.sightings
                            .iter()
                            .any(|s| down.sightings.iter().any(|d| d.file == s.file && d.line == s.line))
                });
                if let Some(e) = twin {
                    e.sightings.clone_from(&down.sightings);
                }
            }
            if target.zero.seen {
                let server = Arc::clone(&target.server);
                if let Some(e) = self.add(What::ActiveZero, target.zero.sightings.iter().copied()) {
                    e.server = Some(server);
                }
            }
            let server = Arc::clone(&target.server);
            if let Some(first) = crate::timeline::zero::first_after_drain(self.timeline, target)
                && let Some(e) = self.add(What::FirstActiveZero, [first])
            {
                e.server = Some(server);
            }
        }
    }

    pub(super) fn requests(&mut self) {
        let timeline = self.timeline;
        for request in &timeline.requests.single {
            let (mut sent, mut over) = message::client_moments(timeline.evidence, request, &timeline.clocks);
            let client = request.client.map(|i| &timeline.evidence.clients[i]);
            if sent.is_empty() || over.is_empty() {
                // The client's record has no times: HAProxy's line of its connection bounds them.
                for attempt in &request.attempts {
                    let Some((at, (line, h))) = attempt
                        .haproxy
                        .and_then(|at| Some((at, haproxy_request(timeline.evidence, at)?)))
                    else {
                        continue;
                    };
                    let file = timeline.evidence.haproxy_logs[at.0].file;
                    sent.extend(timeline.clocks.sight(file, line.place.line, h.accepted));
                    over.extend(
                        timeline
                            .clocks
                            .sight(file, line.place.line, message::haproxy_end(line.at, h)),
                    );
                }
            }
            let id = request.id.clone();
            if let Some(e) = self.add(What::Started { id: id.clone() }, sent) {
                e.details.push(("id", id.clone().into()));
                if let Some(path) = &request.path {
                    e.details.push(("path", path.clone().into()));
                }
            }
            let whole = client.and_then(|c| c.outcome.whole());
            if let Some(e) = self.add(What::Ended { id: id.clone(), whole }, over) {
                e.details.push(("id", id.clone().into()));
                if let Some(c) = client {
                    e.details.push(("status", c.status.into()));
                    e.details
                        .push(("outcome", serde_json::to_value(c.outcome).unwrap_or_default()));
                }
            }
            if let Some(c) = client
                && let Some(g) = c.goaway
            {
                let s = timeline.clocks.sight(c.place.file, c.place.line, g);
                self.add(What::Goaway { id: id.clone() }, s);
            }
            self.packets(&id, &request.attempts);
        }
        for (load, finding) in timeline.evidence.loads.iter().zip(&timeline.requests.load) {
            let _ = finding;
            let sight = |r: &crate::evidence::load::LoadRequest, at| timeline.clocks.sight(load.file, r.place.line, at);
            let first = load
                .requests
                .iter()
                .min_by_key(|r| r.started.lo)
                .and_then(|r| sight(r, r.started));
            let last = load
                .requests
                .iter()
                .max_by_key(|r| r.ended.hi)
                .and_then(|r| sight(r, r.ended));
            self.add(What::Started { id: load.id.clone() }, first);
            self.add(
                What::Ended {
                    id: load.id.clone(),
                    whole: Some(true),
                },
                last,
            );
        }
    }

    /// Resets and cuts on the connections of a request, while its response was not complete.
    fn packets(&mut self, id: &str, attempts: &[crate::timeline::request::Attempt]) {
        let timeline = self.timeline;
        for attempt in attempts {
            let port = attempt
                .envoy
                .and_then(|at| envoy_request(timeline.evidence, at)?.downstream)
                .or_else(|| {
                    attempt
                        .haproxy
                        .and_then(|at| haproxy_request(timeline.evidence, at)?.1.backend_source)
                })
                .map(|e| e.port());
            let mut cut = Vec::new();
            for c in port.map(|p| connection::of_port(timeline, p)).unwrap_or_default() {
                let whole_at = connection::response_whole_at(timeline, attempt);
                if let Some(rst) = c.first_reset()
                    && c.response_was_incomplete(timeline, rst, &whole_at)
                    && let Some(s) = timeline.clocks.sight(c.file, rst.place.line, rst.at)
                    && let Some(e) = self.add(
                        What::Rst {
                            request: Some(id.to_owned()),
                        },
                        [s],
                    )
                {
                    e.details.push(("host", c.host.clone().into()));
                    e.details.push(("sender", c.sender(rst).into()));
                }
                if let Some(close) = c.first_close()
                    && c.sender(close) == "lb"
                    && c.response_was_incomplete(timeline, close, &whole_at)
                {
                    cut.extend(timeline.clocks.sight(c.file, close.place.line, close.at));
                }
            }
            if let Some((at, (line, h))) = attempt
                .haproxy
                .and_then(|at| Some((at, haproxy_request(timeline.evidence, at)?)))
                && h.termination.cut_by_down()
            {
                let file = timeline.evidence.haproxy_logs[at.0].file;
                cut.extend(
                    timeline
                        .clocks
                        .sight(file, line.place.line, message::haproxy_end(line.at, h)),
                );
            }
            if let Some(e) = self.add(What::Cut { request: id.to_owned() }, cut) {
                e.details.push(("id", id.to_owned().into()));
            }
        }
    }

    pub(super) fn watches(&mut self) {
        let timeline = self.timeline;
        for watch in timeline
            .evidence
            .watches
            .iter()
            .filter(|w| timeline.clocks.belongs(w.file))
        {
            let mut terminating = std::collections::BTreeSet::new();
            let mut ready: std::collections::BTreeMap<String, bool> = std::collections::BTreeMap::new();
            let mut in_slice: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
            let mut ended = std::collections::BTreeSet::new();
            for event in &watch.events {
                let at = Bracket {
                    lo: event.last_contact,
                    hi: Some(event.arrival),
                };
                let Some(s) = timeline.clocks.sight(watch.file, event.place.line, at) else {
                    continue;
                };
                match &event.what {
                    WatchChange::Pod(pod) => {
                        let mut found = Vec::new();
                        if pod.deletion.is_some() && terminating.insert(pod.uid.clone()) {
                            found.push((What::PodTerminating, None));
                        }
                        let is_ready = pod.ready == Some(true);
                        let was = ready.insert(pod.uid.clone(), is_ready);
                        if is_ready && was != Some(true) {
                            found.push((What::PodReady, None));
                        } else if was == Some(true) && !is_ready {
                            found.push((What::NotReady, None));
                        }
                        for c in &pod.containers {
                            if let Some(code) = c.exit_code
                                && ended.insert((pod.uid.clone(), c.name.clone()))
                            {
                                found.push((
                                    What::ContainerExit {
                                        container: c.name.clone(),
                                    },
                                    Some(code),
                                ));
                            }
                        }
                        for (what, code) in found {
                            if let Some(e) = self.add(what, [s]) {
                                e.pod = Some(pod.name.clone());
                                e.details.push(("pod", pod.name.clone().into()));
                                if let Some(code) = code {
                                    e.details.push(("code", code.into()));
                                }
                            }
                        }
                    }
                    WatchChange::PodDeleted(pod) => {
                        if let Some(e) = self.add(What::PodGone, [s]) {
                            e.pod = Some(pod.name.clone());
                            e.details.push(("pod", pod.name.clone().into()));
                        }
                    }
                    WatchChange::Endpoints(endpoints) => {
                        let now: std::collections::BTreeMap<String, String> = endpoints
                            .iter()
                            .filter_map(|e| Some((e.pod_uid.clone()?, e.pod.clone().unwrap_or_default())))
                            .collect();
                        let gone: Vec<String> = in_slice
                            .iter()
                            .filter(|(uid, _)| !now.contains_key(*uid))
                            .map(|(_, name)| name.clone())
                            .collect();
                        for name in gone {
                            if let Some(e) = self.add(What::EndpointRemoved, [s]) {
                                e.pod = Some(name.clone());
                                e.details.push(("pod", name.into()));
                            }
                        }
                        in_slice = now;
                    }
                    WatchChange::Event(_) | WatchChange::Deployment(_) | WatchChange::Gap(_) => {}
                }
            }
        }
    }
}

/// The status that the statistics show after a logged change.
const fn status_after(change: ServerChange) -> &'static str {
    match change {
        ServerChange::Down | ServerChange::DownByTracking | ServerChange::LeavingMaint => "DOWN",
        ServerChange::Up | ServerChange::Running | ServerChange::LeavingDrain => "UP",
        ServerChange::Stopping => "NOLB",
        ServerChange::Maint => "MAINT",
        ServerChange::Drain => "DRAIN",
    }
}

/// The change between two sampled states, `None` when they are of one kind.
fn sampled_change(before: StatusClass, now: StatusClass) -> Option<ServerChange> {
    let kind = |c: StatusClass| match c {
        StatusClass::Up | StatusClass::GoingDown | StatusClass::NoCheck => Some(ServerChange::Up),
        StatusClass::Down | StatusClass::ComingUp => Some(ServerChange::Down),
        StatusClass::Drain => Some(ServerChange::Drain),
        StatusClass::Nolb => Some(ServerChange::Stopping),
        StatusClass::Maint => Some(ServerChange::Maint),
        StatusClass::NotAServer | StatusClass::Unknown => None,
    };
    let (before, now) = (kind(before)?, kind(now)?);
    (before != now).then_some(now)
}

/// The event with more details.
fn with_details(event: &mut Event, details: impl IntoIterator<Item = (&'static str, serde_json::Value)>) -> &mut Event {
    event.details.extend(details);
    event
}

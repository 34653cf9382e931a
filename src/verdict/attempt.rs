//! One attempt with its lines: which server it was on, and whether it was in flight there when the pod was told to
//! stop.

use std::sync::Arc;

use crate::evidence::envoy_log::EnvoyRequest;
use crate::evidence::haproxy_log::{HaproxyLine, HaproxyRequest};
use crate::time::{Bracket, Duration};
use crate::timeline::clocks::Sighting;
use crate::timeline::request::{Attempt, envoy_request, haproxy_request, load_request};
use crate::timeline::stop::Stop;
use crate::timeline::{Timeline, message};

/// What is shown, what is refuted, and what nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Shown.
    Yes,
    /// Refuted.
    No,
    /// Not known.
    Unknown,
}

/// An attempt as its sources tell it.
#[derive(Debug, Clone)]
pub struct AttemptView<'e> {
    /// Server.
    pub server: Option<Arc<str>>,
    /// HAProxy's line.
    pub haproxy: Option<(usize, &'e HaproxyLine, &'e HaproxyRequest)>,
    /// Envoy's line.
    pub envoy: Option<&'e EnvoyRequest>,
    /// When it began at the server.
    pub started: Vec<Sighting>,
    /// When it was over there.
    pub ended: Vec<Sighting>,
}

impl<'e> AttemptView<'e> {
    /// Looks an attempt up.
    pub fn of(timeline: &Timeline<'e>, attempt: &Attempt) -> Self {
        let evidence = timeline.evidence;
        let clocks = &timeline.clocks;
        let (mut started, mut ended) = (Vec::new(), Vec::new());
        let mut server = None;
        let mut haproxy = None;
        let h_at = attempt
            .haproxy
            .filter(|h| clocks.belongs(evidence.haproxy_logs[h.0].file));
        if let Some((at, (line, h))) = h_at.and_then(|at| Some((at, haproxy_request(evidence, at)?))) {
            let file = evidence.haproxy_logs[at.0].file;
            // After a retry the accept stamp is that of the first attempt, which was elsewhere.
            if h.retries == 0 && !h.redispatched {
                started.extend(clocks.sight(file, line.place.line, h.accepted));
            }
            ended.extend(clocks.sight(file, line.place.line, message::haproxy_end(line.at, h)));
            server.clone_from(&h.server);
            haproxy = Some((at.1, line, h));
        }
        let mut envoy = None;
        let e_at = attempt.envoy.filter(|e| clocks.belongs(evidence.envoy_logs[e.0].file));
        if let Some((at, e)) = e_at.and_then(|at| Some((at, envoy_request(evidence, at)?))) {
            let file = evidence.envoy_logs[at.0].file;
            started.extend(clocks.sight(file, e.place.line, e.started));
            ended.extend(clocks.sight(file, e.place.line, e.ended));
            if server.is_none() {
                server = timeline
                    .site
                    .pods
                    .iter()
                    .find(|p| p.envoy == Some(at.0))
                    .and_then(|p| p.server.clone());
            }
            envoy = Some(e);
        }
        if haproxy.is_none()
            && let Some((at, l)) = attempt.load.and_then(|at| Some((at, load_request(evidence, at)?)))
        {
            ended.extend(clocks.sight(evidence.loads[at.0].file, l.place.line, l.ended));
        }
        Self {
            server,
            haproxy,
            envoy,
            started,
            ended,
        }
    }

    /// Envoy says that its peer, the load balancer, went away.
    pub fn envoy_cut(&self) -> bool {
        self.envoy.is_some_and(cut_by_downstream)
    }

    /// It was in flight at the server when the server's pod was told to stop.
    pub fn in_flight_at(&self, timeline: &Timeline<'_>, stop: &Stop) -> Shown {
        in_flight(timeline, &self.started, &self.ended, stop, Duration::ZERO)
    }

    /// When it began, on the reference clock.
    pub fn started_on(&self, timeline: &Timeline<'_>) -> Bracket {
        shown_on_reference(timeline, &self.started)
    }

    /// When it was over, on the reference clock.
    pub fn ended_on(&self, timeline: &Timeline<'_>) -> Bracket {
        shown_on_reference(timeline, &self.ended)
    }
}

/// Flags `DC` or `DR`: the downstream, here the load balancer, closed or reset.
pub fn cut_by_downstream(e: &EnvoyRequest) -> bool {
    e.flags.iter().any(|f| matches!(&**f, "DC" | "DR"))
}

/// The narrowest of the sightings as the reference clock tells it.
pub fn shown_on_reference(timeline: &Timeline<'_>, sightings: &[Sighting]) -> Bracket {
    let Some(reference) = timeline.clocks.reference(timeline.evidence) else {
        return sightings.first().map(|s| s.at).unwrap_or_default();
    };
    let converted = sightings.iter().map(|s| timeline.clocks.convert(s, reference));
    converted
        .min_by_key(|b| b.width().map_or(i64::MAX, Duration::as_nanos))
        .unwrap_or_default()
}

/// Began before the order to stop, was over after it, each by at least `margin`.
pub fn in_flight(
    timeline: &Timeline<'_>,
    started: &[Sighting],
    ended: &[Sighting],
    stop: &Stop,
    margin: Duration,
) -> Shown {
    let clocks = &timeline.clocks;
    let gaps = |a: &[Sighting], b: &[Sighting]| -> Vec<crate::time::Gap> {
        a.iter().flat_map(|x| b.iter().map(move |y| clocks.gap(x, y))).collect()
    };
    let known: Vec<Sighting> = stop.known().copied().collect();
    let from_start = gaps(started, &known);
    let to_end = gaps(&known, ended);
    let at_least = |g: &crate::time::Gap| g.min.is_some_and(|m| m >= margin);
    let at_most = |g: &crate::time::Gap| g.max.is_some_and(|m| m <= -margin);
    if from_start.iter().any(at_most) || to_end.iter().any(at_most) {
        Shown::No
    } else if from_start.iter().any(at_least) && to_end.iter().any(at_least) {
        Shown::Yes
    } else {
        Shown::Unknown
    }
}

//! The cut of a connection as packets show it.

use super::attempt::AttemptView;
use crate::time::Duration;
use crate::timeline::clocks::Sighting;
use crate::timeline::gap::gap_between;
use crate::timeline::{Target, Timeline, connection};

/// The connection of an attempt was closed first by the load balancer, before any byte of the response, at DOWN.
///
/// Neither a FIN or RST of its 4-tuple alone nor an end inside the DOWN bracket alone is enough: a purge of an
/// idle connection resets it too, 5 s after a good response, but its relative ack is past the response.
pub fn cut(timeline: &Timeline<'_>, v: &AttemptView<'_>, target: &Target) -> Option<String> {
    let port = v
        .envoy
        .and_then(|e| e.downstream)
        .or_else(|| v.haproxy.and_then(|(_, _, h)| h.backend_source))
        .map(|e| e.port())?;
    let down = target.down.as_ref()?;
    connection::of_port(timeline, port).into_iter().find_map(|c| {
        let first = c.first_close()?;
        let closed = timeline.clocks.sight(c.file, first.place.line, first.at)?;
        let shown = c.sender(first) == "lb" && c.nothing_answered(first) && at_down(timeline, &closed, &down.sightings);
        shown.then(|| {
            format!(
                "{} packet {}: the load balancer closed its connection (port {port}) at DOWN, before any byte of the response",
                timeline.evidence.file(c.file).name, first.place.line
            )
        })
    })
}

/// The close lies on DOWN as closely as the sources can tell, which must be within 0.7 s: a bracket of one poll of
/// the statistics every 0.5 s.
fn at_down(timeline: &Timeline<'_>, closed: &Sighting, down: &[Sighting]) -> bool {
    let Some(gap) = gap_between(&timeline.clocks, std::slice::from_ref(closed), down) else {
        return false;
    };
    matches!((gap.min, gap.max), (Some(a), Some(b))
        if gap.tied && a <= Duration::ZERO && b >= Duration::from_millis(-10)
            && b - a <= Duration::from_millis(700))
}

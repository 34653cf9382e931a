//! Which facts an event of the language is.

use super::{Fact, Known, Seen, Signals};
use crate::language::Id;
use crate::language::expression::{Event, LbChange, Side};
use crate::language::vocabulary::ServerChoice;
use crate::time::Instant;

/// The moments at which an event was seen, in order; those before the disturbance are left out where the language says
/// so.
pub(super) fn occurrences(
    event: &Event,
    facts: &[Fact],
    disturbed: Option<Instant>,
    known: &Known<'_>,
) -> Vec<Instant> {
    let whole_run = match event {
        Event::Started(_)
        | Event::Ended(_)
        | Event::Finished(_)
        | Event::Failed(_)
        | Event::Mark(_)
        | Event::Step(_) => true,
        Event::Delete
        | Event::Drain
        | Event::Transition(..)
        | Event::DrainListeners
        | Event::ActiveZero
        | Event::FirstActiveZero
        | Event::HealthFail
        | Event::Lb(..)
        | Event::LbReload
        | Event::Rst(_)
        | Event::Cut(_)
        | Event::Goaway(_)
        | Event::Sigterm(_)
        | Event::ContainerExit(_)
        | Event::PodTerminating
        | Event::PodGone
        | Event::PodReady
        | Event::NotReady
        | Event::EndpointRemoved
        | Event::RolloutStarted
        | Event::RolloutFinished
        | Event::Log(..) => false,
    };
    let since = if whole_run { None } else { disturbed };
    facts
        .iter()
        .filter(|f| since.is_none_or(|since| f.at >= since) && is(event, &f.what, known))
        .map(|f| f.at)
        .collect()
}

/// Whether a fact is an occurrence of an event. Events that only the evidence as a whole shows are none of them.
fn is(event: &Event, seen: &Seen, known: &Known<'_>) -> bool {
    let of_target = |pod: &str| known.target.is_none_or(|t| t.pod.name == pod);
    let uid_of_target = |uid: &str| known.target.is_none_or(|t| t.pod.uid == uid);
    let same = |wanted: &Option<Id>, have: &Id| wanted.as_ref().is_none_or(|w| w == have);
    match (event, seen) {
        (Event::Step(id), Seen::Over { id: over, .. }) => id == over,
        (Event::Started(id), Seen::Sent(sent)) => id == sent,
        (Event::Ended(id), Seen::Over { id: over, .. }) => id == over,
        (Event::Finished(id), Seen::Over { id: over, whole }) => id == over && *whole == Some(true),
        (Event::Failed(id), Seen::Over { id: over, whole }) => id == over && *whole == Some(false),
        (Event::Goaway(id), Seen::Goaway(on)) => id == on,
        (Event::Delete, Seen::Delete) => true,
        (Event::Mark(name), Seen::Mark(have)) => name == have,
        (Event::Drain, Seen::Transition { pod, from, .. }) => {
            of_target(pod) && known.first_state.is_none_or(|first| first == from)
        }
        (Event::Transition(a, b), Seen::Transition { pod, from, to }) => {
            let matches = |side: &Side, state: &str| side.matches(state);
            of_target(pod) && matches(a, from) && matches(b, to)
        }
        (Event::DrainListeners, Seen::DrainListeners { pod }) => of_target(pod),
        (Event::HealthFail, Seen::HealthFail { pod }) => pod.as_deref().is_none_or(of_target),
        (Event::Sigterm(wanted), Seen::Sigterm { pod, container }) => of_target(pod) && same(wanted, container),
        (Event::ContainerExit(wanted), Seen::ContainerExit { pod, container }) => {
            of_target(pod) && same(wanted, container)
        }
        (Event::Log(probe, pattern), Seen::Line { probe: have, text }) => probe == have && pattern.is_match(text),
        (Event::Lb(change, choice), Seen::Lb { server, change: have }) => {
            change == have && concerns(*choice, server, known)
        }
        (Event::LbReload, Seen::LbReload) => true,
        (Event::PodTerminating, Seen::Terminating { uid }) => uid_of_target(uid),
        (Event::PodGone, Seen::Gone { uid }) => uid_of_target(uid),
        (Event::PodReady, Seen::Ready { ready, .. }) => *ready,
        (Event::NotReady, Seen::Ready { uid, ready }) => uid_of_target(uid) && !*ready,
        (Event::EndpointRemoved, Seen::EndpointRemoved { uid }) => uid_of_target(uid),
        (Event::RolloutStarted, Seen::RolloutStarted) => true,
        (Event::RolloutFinished, Seen::RolloutFinished) => true,
        // `active_zero` is a signal while a run goes on; resets and cuts are read from captures afterwards.
        _ => false,
    }
}

/// A choice of servers: the target's without one.
fn concerns(choice: Option<ServerChoice>, server: &str, known: &Known<'_>) -> bool {
    let target = known.target.and_then(|t| t.server.as_deref());
    match choice {
        Some(ServerChoice::Any) => true,
        Some(ServerChoice::Others) => target.is_some_and(|t| t != server),
        None => target.is_none_or(|t| t == server),
    }
}

/// `active_zero` while a run goes on: the target was busy, the drain has begun, and the last sample says zero.
pub(super) fn zero(facts: &[Fact], signals: &Signals, disturbed: Option<Instant>, known: &Known<'_>) -> bool {
    let drained = !occurrences(&Event::Drain, facts, disturbed, known).is_empty() || disturbed.is_some();
    let gauges = known.target.and_then(|t| signals.gauges.get(&t.pod.name));
    drained && gauges.is_some_and(|g| g.was_busy && g.active() == Some(0))
}

/// Every change of a server's state that a word of the log or a row of the statistics can mean.
pub(crate) const fn change_of(status: crate::language::vocabulary::LbStatus) -> Option<LbChange> {
    use crate::language::vocabulary::LbStatus;
    match status {
        LbStatus::Down | LbStatus::ComingUp => Some(LbChange::Down),
        LbStatus::Up | LbStatus::GoingDown => Some(LbChange::Up),
        LbStatus::Drain => Some(LbChange::Drain),
        LbStatus::Nolb => Some(LbChange::Nolb),
        LbStatus::Maint => Some(LbChange::Maint),
        LbStatus::NoCheck | LbStatus::Unknown => None,
    }
}

//! What is true in a world, worked out from its truth alone.

use crate::evidence::client::Outcome;
use crate::time::Instant;
use crate::verdict::Fate;
use crate::world::sim::truth::{AttemptEnd, Happened, TruthLog, TruthRequest};

/// What really happened to the target.
pub(super) struct Facts {
    /// Its name.
    pub(super) pod: String,
    /// The API server accepted its deletion.
    pub(super) deleted: Instant,
    /// Its server was marked DOWN (the line was logged).
    pub(super) down: Option<Instant>,
    /// The last fall to zero of what was in flight; `None` when work died with the pod, or none was in flight.
    pub(super) zero: Option<Instant>,
}

/// The facts; `None` when nothing was deleted.
pub(super) fn facts(truth: &TruthLog, server: &str) -> Option<Facts> {
    let (deleted, pod) = truth.events.iter().find_map(|e| match &e.what {
        Happened::PodTerminating { pod, .. } => Some((e.at, pod.clone())),
        _ => None,
    })?;
    let down = truth.events.iter().find_map(|e| match &e.what {
        Happened::Server { server: s, state, .. } if s == server && state == "down" && e.at > deleted => Some(e.at),
        _ => None,
    });
    let mut last = None;
    let mut busy_at_delete = false;
    for event in &truth.events {
        if let Happened::Active {
            pod: p,
            downstream,
            upstream,
        } = &event.what
            && *p == pod
        {
            let busy = *downstream > 0 || *upstream > 0;
            if event.at <= deleted {
                busy_at_delete = busy;
            }
            last = Some((event.at, busy));
        }
    }
    let zero = last
        .filter(|(at, busy)| !*busy && busy_at_delete && *at > deleted)
        .map(|(at, _)| at);
    Some(Facts {
        pod,
        deleted,
        down,
        zero,
    })
}

/// The fate of a request; `None` where the language leaves it open (an answer of Envoy in the application's place).
pub(super) fn fate(request: &TruthRequest, facts: &Facts) -> Option<Fate> {
    let at_stop = request.attempts.iter().find(|a| {
        let began = a.from.is_some_and(|from| from <= facts.deleted);
        let open = a.until.is_none_or(|until| until > facts.deleted);
        a.pod.as_deref() == Some(&facts.pod) && began && open
    });
    let whole = matches!(request.outcome, Some(Outcome::Ok));
    let Some(attempt) = at_stop else {
        // It had not begun, was over, or was elsewhere.
        return Some(Fate::NotInFlight);
    };
    match attempt.end {
        AttemptEnd::Whole if whole => Some(Fate::Protected),
        AttemptEnd::CutByDown | AttemptEnd::CutByMaint if whole => Some(Fate::Rescued),
        AttemptEnd::CutByDown | AttemptEnd::CutByMaint => Some(Fate::Broken),
        AttemptEnd::PodClosed | AttemptEnd::ServerTimeout | AttemptEnd::ClientGone | AttemptEnd::Refused => {
            Some(Fate::Lost)
        }
        AttemptEnd::Whole | AttemptEnd::Open => None,
    }
}

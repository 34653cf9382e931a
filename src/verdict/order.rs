//! The order of `active_zero` and `lb_down`, by server and over all of them.

use std::collections::BTreeMap;

use super::attempt::Shown;
use super::fact::{self, FactKind};
use super::{Fate, OrderFinding, Outcome, RequestFinding};
use crate::time::{Duration, Gap};
use crate::timeline::gap::gap_between;
use crate::timeline::{Target, Timeline};

/// One target's order and how it was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetOrder {
    /// `before(active_zero, lb_down)`.
    pub outcome: Outcome,
    /// How it was shown.
    pub explanation: String,
    /// Why it is inconclusive and what would settle it.
    pub reason: Option<String>,
    /// Bounds of the time from active_zero to lb_down, where both were seen.
    pub gap: Gap,
    /// A direct fact decided: there is no margin.
    pub by_fact: bool,
}

impl TargetOrder {
    fn inconclusive(reason: impl Into<String>, gap: Gap) -> Self {
        let reason = reason.into();
        Self {
            outcome: Outcome::Inconclusive,
            explanation: reason.clone(),
            reason: Some(reason),
            gap,
            by_fact: false,
        }
    }
}

/// Bounds of the time from a target's active_zero to its lb_down; unknown when either was not seen.
pub fn zero_to_down(timeline: &Timeline<'_>, target: &Target) -> Option<Gap> {
    let down = target.down.as_ref().map(|d| d.sightings.as_slice()).unwrap_or_default();
    if !target.zero.seen {
        return Some(Gap::UNKNOWN);
    }
    gap_between(&timeline.clocks, &target.zero.sightings, down)
}

/// One target's order.
pub fn of_target(timeline: &Timeline<'_>, target: &Target, requests: &[RequestFinding]) -> TargetOrder {
    // A request that the load balancer gave up, or that a client did, ends at the pod without being done.
    let given_up = requests
        .iter()
        .any(|r| matches!(r.fate, Fate::Broken | Fate::Lost) || matches!(r.status, Some(502..=504)));
    let fate_shows = timeline.targets.len() == 1
        && requests
            .iter()
            .any(|r| matches!(r.fate, Fate::Protected | Fate::Broken | Fate::Rescued | Fate::Lost));
    let gap = zero_to_down(timeline, target);
    let known_gap = gap.unwrap_or(Gap::UNKNOWN);
    let Some(down) = &target.down else {
        return TargetOrder::inconclusive(
            format!(
                "{} was not seen to go DOWN; give the `haproxy_log` source or poll `lb` until the pod is gone",
                target.server
            ),
            known_gap,
        );
    };
    match fact::at_stake(timeline, target) {
        Shown::Yes => {}
        // A fate of those was found only because the request was shown to be in flight.
        Shown::Unknown if fate_shows => {}
        Shown::No => {
            let why = format!(
                "nothing was at stake: no request was in flight on {} when it was told to stop",
                target.server
            );
            return TargetOrder::inconclusive(why, known_gap);
        }
        Shown::Unknown => {
            let why = format!(
                "it is not shown that a request was in flight on {} when it was told to stop; use `expect_in_flight: true`",
                target.server
            );
            return TargetOrder::inconclusive(why, known_gap);
        }
    }
    let facts = fact::facts(timeline, target, given_up);
    let says = |kind| facts.iter().find(|f| f.kind == kind);
    match (says(FactKind::CutWork), says(FactKind::QuietBefore)) {
        (Some(a), Some(b)) => TargetOrder::inconclusive(
            format!("two sources contradict each other: {}; but {}", a.sentence, b.sentence),
            known_gap,
        ),
        (Some(fact), None) => TargetOrder {
            outcome: Outcome::Fail,
            explanation: format!("lb_down cut work that was in flight ({})", fact.sentence),
            reason: None,
            gap: known_gap,
            by_fact: true,
        },
        (None, Some(fact)) => TargetOrder {
            outcome: Outcome::Pass,
            explanation: format!("work was over before lb_down ({})", fact.sentence),
            reason: None,
            gap: known_gap,
            by_fact: true,
        },
        (None, None) => by_brackets(timeline, target, down.sightings.is_empty(), gap),
    }
}

fn by_brackets(timeline: &Timeline<'_>, target: &Target, down_has_no_time: bool, gap: Option<Gap>) -> TargetOrder {
    let Some(gap) = gap else {
        return TargetOrder::inconclusive(
            "the sources contradict each other about the time between the two",
            Gap::UNKNOWN,
        );
    };
    if !target.zero.seen {
        let why = format!(
            "active_zero was not seen on {}: no source shows work in flight and then an explicit zero",
            target.server
        );
        return TargetOrder::inconclusive(why, gap);
    }
    if down_has_no_time {
        return TargetOrder::inconclusive("lb_down has no usable time: set the log's zone, or poll `lb`", gap);
    }
    let explanation = match (gap.min, gap.max) {
        (Some(min), Some(max)) => format!("active_zero to lb_down: {} to {}", seconds(min), seconds(max)),
        (Some(min), None) => format!("active_zero to lb_down: at least {}", seconds(min)),
        (None, Some(max)) => format!("active_zero to lb_down: at most {}", seconds(max)),
        (None, None) => "active_zero to lb_down: not bounded".to_owned(),
    };
    let (outcome, reason) = if gap.surely_positive() {
        (Outcome::Pass, None)
    } else if gap.surely_negative() {
        (Outcome::Fail, None)
    } else {
        (Outcome::Inconclusive, Some(what_would_settle(timeline, target, gap)))
    };
    TargetOrder {
        outcome,
        explanation,
        reason,
        gap,
        by_fact: false,
    }
}

/// The cheapest change that would have decided.
fn what_would_settle(timeline: &Timeline<'_>, target: &Target, gap: Gap) -> String {
    let down = target.down.as_ref();
    let mut advice = Vec::new();
    if timeline.haproxy_log.is_none() || down.is_some_and(|d| d.log_line.is_none()) {
        advice.push("give the `haproxy_log` source: its line is the exact instant of DOWN");
    }
    if !gap.tied {
        advice.push("measure the clocks, or keep Envoy's access log so that messages tie them");
    }
    if timeline.site.pods_of(&target.server).all(|p| p.envoy.is_none()) {
        advice.push("keep the sidecar's log: the end of its last line is active_zero");
    }
    if advice.is_empty() {
        advice.push("poll `active` every 50ms");
    }
    format!("the brackets of active_zero and lb_down overlap; {}", advice.join("; "))
}

/// Seconds with three digits and a sign: `+2.104 s`.
pub fn seconds(d: Duration) -> String {
    format!("{:+.3} s", d.as_secs_f64())
}

/// The order over all targets.
pub fn of_all(orders: &[(String, TargetOrder)]) -> OrderFinding {
    let by_server: BTreeMap<String, Outcome> = orders.iter().map(|(s, o)| (s.clone(), o.outcome)).collect();
    let Some(outcome) = Outcome::of_all(by_server.values().copied()) else {
        let why = "no server is known whose pod was told to stop";
        return OrderFinding {
            active_zero_before_lb_down: Outcome::Inconclusive,
            reason: Some(why.to_owned()),
            explanation: why.to_owned(),
            by_server,
        };
    };
    let deciding = orders.iter().find(|(_, o)| o.outcome == outcome).map(|(_, o)| o);
    OrderFinding {
        active_zero_before_lb_down: outcome,
        reason: deciding.and_then(|o| o.reason.clone()),
        explanation: deciding.map(|o| o.explanation.clone()).unwrap_or_default(),
        by_server,
    }
}

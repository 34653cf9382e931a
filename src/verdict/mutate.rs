//! What if something else had happened? Assertions that no mutation of the evidence can break prove nothing.

use super::assertion::{self, Scope};
use super::judge::knowledge;
use super::{Account, Cause, Fate, Outcome};
use crate::evidence::Evidence;
use crate::evidence::client::Outcome as ClientOutcome;
use crate::language::plan::Plan;
use crate::time::{Bracket, Duration};
use crate::timeline::Timeline;
use crate::timeline::event::{self, Event};

/// An assertion that held in every mutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// The expression.
    pub assert: String,
    /// How many mutations were tried.
    pub mutations: usize,
}

/// One other story: what was seen, and what it came to.
struct Story {
    events: Vec<Event>,
    account: Account,
    evidence: Option<Evidence>,
}

/// The assertions that pass, and pass in every mutation: each event removed, and moved far to either side; each
/// request broken, and made whole; each load disrupted; the order reversed; the captures lossy.
pub fn survivors(evidence: &Evidence, plan: &Plan, max_skew: Duration) -> Vec<Survivor> {
    let timeline = Timeline::build(evidence, knowledge(plan, Some(max_skew)));
    let events = event::all(&timeline);
    let account = Account::of(&timeline);
    let scope = Scope::new(&timeline, &events, &account, plan);
    let mut alive: Vec<_> = plan
        .assertions
        .iter()
        .filter(|a| assertion::evaluate(&scope, a).verdict == Outcome::Pass)
        .collect();
    let stories = stories(evidence, &events, &account);
    for story in &stories {
        let lossy = story
            .evidence
            .as_ref()
            .map(|e| Timeline::build(e, knowledge(plan, Some(max_skew))));
        alive.retain(|a| {
            let verdict = match &lossy {
                Some(t) => assertion::evaluate(&Scope::new(t, &story.events, &story.account, plan), a).verdict,
                None => assertion::evaluate(&Scope::new(&timeline, &story.events, &story.account, plan), a).verdict,
            };
            verdict == Outcome::Pass
        });
    }
    alive
        .into_iter()
        .map(|a| Survivor {
            assert: a.text().to_owned(),
            mutations: stories.len(),
        })
        .collect()
}

fn stories(evidence: &Evidence, events: &[Event], account: &Account) -> Vec<Story> {
    let far = Duration::from_secs(3600);
    let mut found = Vec::new();
    let mut tell = |events: Vec<Event>, account: Account| {
        found.push(Story {
            events,
            account,
            evidence: None,
        })
    };
    for (i, event) in events.iter().enumerate() {
        let without = events
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != i)
            .map(|(_, e)| e.clone())
            .collect();
        tell(without, account.clone());
        for by in [far, -far] {
            let mut moved = events.to_vec();
            for s in &mut moved[i].sightings {
                s.at = Bracket {
                    lo: s.at.lo.map(|t| t + by),
                    hi: s.at.hi.map(|t| t + by),
                };
            }
            tell(moved, account.clone());
        }
        let kind = std::mem::discriminant(&event.what);
        let without_kind = events
            .iter()
            .filter(|e| std::mem::discriminant(&e.what) != kind)
            .cloned()
            .collect();
        tell(without_kind, account.clone());
        let twice = events.iter().cloned().chain(std::iter::once(event.clone())).collect();
        tell(twice, account.clone());
    }
    for i in 0..account.requests.len() {
        for broken in [true, false] {
            let mut other = account.clone();
            let r = &mut other.requests[i];
            r.fate = if broken { Fate::Broken } else { Fate::Protected };
            r.cause = broken.then_some(Cause::LbDown);
            r.outcome = Some(if broken {
                ClientOutcome::ClosedEarly
            } else {
                ClientOutcome::Ok
            });
            r.status = if broken { None } else { Some(200) };
            r.bytes = if broken { Some(0) } else { r.bytes };
            r.duration_s = r.duration_s.map(|s| if broken { s * 10.0 } else { s / 10.0 });
            tell(events.to_vec(), other);
        }
    }
    for i in 0..account.loads.len() {
        for all in [true, false] {
            let mut other = account.clone();
            let l = &mut other.loads[i];
            l.disrupted = if all { l.requests } else { 0 };
            l.rate = Some(if all { 1.0 } else { 0.0 });
            tell(events.to_vec(), other.clone());
            other.loads[i].requests = u64::from(all);
            tell(events.to_vec(), other);
        }
    }
    let mut reversed = account.clone();
    for (_, order) in &mut reversed.by_target {
        order.outcome = match order.outcome {
            Outcome::Pass => Outcome::Fail,
            Outcome::Fail => Outcome::Pass,
            Outcome::Inconclusive => Outcome::Fail,
        };
    }
    tell(events.to_vec(), reversed);
    // Loads' times and captures' losses are read from the evidence itself.
    let mut lossy = evidence.clone();
    for capture in &mut lossy.captures {
        capture.losses.dropped_by_kernel = Some(1);
    }
    for load in &mut lossy.loads {
        for r in &mut load.requests {
            r.ended = Bracket {
                lo: r.ended.lo.map(|t| t + far),
                hi: r.ended.hi.map(|t| t + far),
            };
            r.total = r.total.map(|t| t + far);
        }
    }
    for s in &mut lossy.haproxy_csv {
        s.samples.clear();
    }
    for log in &mut lossy.haproxy_logs {
        log.lines.clear();
    }
    for s in &mut lossy.envoy_stats {
        s.samples.clear();
    }
    lossy.log_matches.clear();
    found.push(Story {
        events: events.to_vec(),
        account: account.clone(),
        evidence: Some(lossy),
    });
    found
}

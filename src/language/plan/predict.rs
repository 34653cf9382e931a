//! What will probably happen, from the timers that are known: the expected timeline of a run with ranges.
//!
//! The figures are those measured on Kubernetes 1.34 with HAProxy 2.6 and Envoy; they are no bounds. The prediction serves people
//! who read a plan before they let it loose; nothing is judged by it.

use indexmap::IndexMap;

use super::{OnMarkedDown, Plan, Step, Template, Verb};
use crate::language::Id;
use crate::language::expression::{Condition, ConditionKind, Event, LbChange, OperandKind};
use crate::time::Duration;

/// From the delete to the first preStop hook.
const TO_PRESTOP: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(150));
/// From the last preStop's end to SIGTERM of all containers, and from there to the pod's end.
const TO_GONE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(1700));
/// The workload's own look at its in-flight count.
const LOOK: Duration = Duration::from_secs(1);
/// The time of a check, and of a slow one.
const CHECK: Duration = Duration::from_millis(600);

/// A range of times from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// At the earliest.
    pub lo: Duration,
    /// At the latest.
    pub hi: Duration,
}

impl Range {
    const START: Self = Self {
        lo: Duration::ZERO,
        hi: Duration::ZERO,
    };

    fn plus(self, lo: Duration, hi: Duration) -> Self {
        Self {
            lo: self.lo + lo,
            hi: self.hi + hi,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            lo: self.lo.max(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    fn min(self, other: Self) -> Self {
        Self {
            lo: self.lo.min(other.lo),
            hi: self.hi.min(other.hi),
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.lo == self.hi {
            write!(f, "{}", self.lo)
        } else {
            write!(f, "{}..{}", self.lo, self.hi)
        }
    }
}

/// What is expected of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Events by how an author writes them, in the order of their times.
    pub events: Vec<(String, Range)>,
    /// How long the run takes.
    pub total: Range,
    /// The timers that it was made from.
    pub timers: String,
    /// Claims that the expected times contradict: the assertion's text, and why.
    pub contradictions: Vec<(String, String)>,
}

/// The timers that decide what the load balancer and the workload do.
struct Timers {
    mode: String,
    inter: Duration,
    fast: Duration,
    fall: u32,
    cuts: bool,
    lb_wait: Duration,
    drain_max: Option<Duration>,
    grace: Duration,
    prestop: Duration,
}

/// The expected timeline, when the timers are known.
pub fn predict(plan: &Plan) -> Option<Prediction> {
    let timers = timers(plan)?;
    let mut walk = Walk {
        timers: &timers,
        clock: Range::START,
        requests: IndexMap::new(),
        events: Vec::new(),
        stopped: false,
    };
    plan.steps.iter().for_each(|step| walk.step(step));
    let total = walk.clock;
    let Walk { mut events, .. } = walk;
    events.sort_by_key(|(_, range)| (range.lo, range.hi));
    let claims = plan.assertions.iter().filter_map(|assertion| {
        let why = contradiction(&assertion.expression.condition, &events)?;
        Some((assertion.text().to_owned(), why))
    });
    let contradictions = claims.collect();
    let events = events
        .into_iter()
        .map(|(event, range)| (event.to_string(), range))
        .collect();
    let Timers { mode, inter, fall, .. } = &timers;
    let timers = format!("mode {mode}, inter {inter}, fall {fall}, grace {}", timers.grace);
    Some(Prediction {
        events,
        total,
        timers,
        contradictions,
    })
}

fn timers(plan: &Plan) -> Option<Timers> {
    let world = plan.environment.world.as_ref();
    let (facts, declared) = (&plan.preconditions.load_balancer, &plan.environment.load_balancer.facts);
    let lb = world.map(|world| &world.load_balancer);
    let inter = facts.inter.or(declared.inter).or(lb.map(|lb| lb.inter))?;
    let pod = &plan.preconditions.pod;
    let marked = facts
        .on_marked_down
        .or(declared.on_marked_down)
        .or(lb.map(|lb| lb.on_marked_down));
    Some(Timers {
        mode: plan
            .preconditions
            .mode
            .clone()
            .or(world.map(|world| world.mode.clone()))?,
        inter,
        fast: facts
            .fastinter
            .or(declared.fastinter)
            .or(lb.and_then(|lb| lb.fastinter))
            .unwrap_or(inter),
        fall: facts.fall.or(declared.fall).or(lb.map(|lb| lb.fall))?,
        cuts: marked != Some(OnMarkedDown::None),
        lb_wait: world.map_or(Duration::from_secs(6), |world| world.pod.lb_wait),
        drain_max: pod.drain_max.or(world.and_then(|world| world.pod.drain_max)),
        grace: pod
            .grace
            .or(world.map(|world| world.pod.grace))
            .unwrap_or(Duration::from_secs(30)),
        prestop: pod.prestop.values().map(|hook| hook.sleep).max().unwrap_or_default(),
    })
}

struct Walk<'a> {
    timers: &'a Timers,
    clock: Range,
    /// When each request in the background is over, if nobody disturbs it.
    requests: IndexMap<Id, Range>,
    events: Vec<(Event, Range)>,
    /// The target was told to stop; only the first time counts.
    stopped: bool,
}

impl Walk<'_> {
    fn step(&mut self, step: &Step) {
        let at = self.clock;
        match &step.verb {
            Verb::Request(request) => {
                let work = work(&request.path).unwrap_or(Duration::ZERO);
                let limit = request.timeout.min(request.stop_after.unwrap_or(request.timeout));
                let over = at.plus(
                    work.min(limit),
                    if work > Duration::ZERO {
                        work.min(limit) + CHECK
                    } else {
                        limit
                    },
                );
                if let Some(id) = &step.id {
                    self.events.push((Event::Started(id.clone()), at));
                    self.requests.insert(id.clone(), over);
                }
                if !request.background {
                    self.finish(step.id.as_ref(), over);
                    self.clock = over;
                } else if request.expect_in_flight {
                    self.clock = at.plus(Duration::ZERO, LOOK);
                }
            }
            Verb::Wait(wait) if step.when.is_none() => self.clock = at.plus(wait.duration, wait.duration),
            Verb::DeletePod(delete) | Verb::EvictPod(delete) if delete.pod.is_none() && !self.stopped => {
                self.stop(step, delete.grace.unwrap_or(self.timers.grace));
                if delete.wait {
                    self.clock = self.when(&Event::PodGone).map_or(at, |gone| at.max(gone));
                }
            }
            Verb::WaitFor(wait) => {
                let limit = step.timeout.unwrap_or_default();
                self.clock = match self.awaited(&wait.condition.condition) {
                    Some(range) => at.max(range).min(at.plus(limit, limit)),
                    None => at.plus(Duration::ZERO, limit),
                };
            }
            Verb::Parallel(parallel) => {
                let mut end = at;
                for branch in parallel.branches.values() {
                    self.clock = at;
                    branch.iter().for_each(|step| self.step(step));
                    end = end.max(self.clock);
                }
                self.clock = end;
            }
            Verb::Load(_) | Verb::Mark(_) => {}
            Verb::Wait(_)
            | Verb::DeletePod(_)
            | Verb::EvictPod(_)
            | Verb::Scale(_)
            | Verb::RolloutRestart(_)
            | Verb::DrainNode(_)
            | Verb::Label(_)
            | Verb::Poll(_)
            | Verb::Exec(_)
            | Verb::Ssh(_)
            | Verb::Snapshot(_) => self.clock = at.plus(Duration::ZERO, step.timeout.unwrap_or_default()),
        }
    }

    fn when(&self, event: &Event) -> Option<Range> {
        self.events
            .iter()
            .find(|(known, _)| known == event)
            .map(|(_, range)| *range)
    }

    fn finish(&mut self, id: Option<&Id>, over: Range) {
        if let Some(id) = id {
            self.events.push((Event::Ended(id.clone()), over));
        }
    }

    /// When an awaited event happens; `None` for what is not predicted.
    fn awaited(&mut self, condition: &Condition) -> Option<Range> {
        let ConditionKind::Exists(event, _) = &condition.kind else {
            return None;
        };
        if let Event::Ended(id) = &event.event
            && self.when(&event.event).is_none()
        {
            let over = *self.requests.get(id)?;
            self.finish(Some(&id.clone()), over);
        }
        self.when(&event.event)
    }

    /// What follows when the target is told to stop.
    fn stop(&mut self, step: &Step, grace: Duration) {
        self.stopped = true;
        let told = self.clock;
        let Timers {
            mode,
            inter,
            fast,
            fall,
            cuts,
            lb_wait,
            drain_max,
            prestop,
            ..
        } = self.timers;
        self.events.push((Event::Delete, told));
        if let Some(id) = &step.id {
            self.events.push((Event::Step(id.clone()), told));
        }
        let drain = told.plus(TO_PRESTOP.0, TO_PRESTOP.1);
        let rest = i64::from(fall.saturating_sub(1));
        let detect = |flip: Range| flip.plus(fast.times(rest), *inter + fast.times(rest) + CHECK);
        let last = self.requests.values().copied().reduce(Range::max).unwrap_or(drain);
        let idle = drain.max(last);
        // How long the workload lets its requests run.
        let closing = match drain_max {
            Some(limit) => idle.min(drain.plus(*limit, *limit)),
            None => idle,
        };
        let (flip, down) = match mode.as_str() {
            "current" => (drain, detect(drain)),
            "nolb" => (drain, detect(closing.plus(*lb_wait, *lb_wait + LOOK))),
            _ => {
                let flip = closing.plus(Duration::ZERO, LOOK);
                (flip, detect(flip))
            }
        };
        self.events.push((Event::HealthFail, flip));
        self.events.push((Event::Lb(LbChange::Down, None), down));
        if mode != "current" {
            self.events.push((Event::Drain, drain));
        }
        let cut = *cuts && down.hi <= last.lo;
        for (id, over) in self.requests.clone() {
            let over = if cut && over.lo > down.hi {
                down.plus(Duration::ZERO, CHECK)
            } else {
                over
            };
            self.finish(
                Some(&id),
                over.min(Range {
                    lo: over.lo,
                    hi: over.hi.min(told.hi + grace + TO_GONE.1),
                }),
            );
        }
        if !cut {
            self.events.push((Event::ActiveZero, idle));
        }
        let hooks = drain.plus(*prestop, *prestop);
        let done = if mode == "current" {
            hooks
        } else {
            closing.plus(*lb_wait, *lb_wait + LOOK).max(hooks)
        };
        let killed = told.plus(grace, grace);
        let gone = done.min(killed).plus(TO_GONE.0, TO_GONE.1);
        if mode != "current" || *prestop > Duration::ZERO {
            self.events.push((Event::PodGone, gone));
        } else {
            // What the pod waits for in this mode is not known: its grace period at most.
            self.events.push((
                Event::PodGone,
                Range {
                    lo: drain.lo,
                    hi: killed.hi + TO_GONE.1,
                },
            ));
        }
    }
}

/// The time that a request takes by its path: the workload's `/sleep?seconds=N`.
pub(crate) fn work(path: &Template) -> Option<Duration> {
    let query = path.as_literal()?.strip_prefix("/sleep?")?;
    let seconds = query.split('&').find_map(|part| part.strip_prefix("seconds="))?;
    seconds
        .parse::<f64>()
        .ok()
        .filter(|s| s.is_finite() && *s >= 0.0)
        .map(Duration::from_secs_f64)
}

/// Why the expected times contradict a claim.
fn contradiction(condition: &Condition, events: &[(Event, Range)]) -> Option<String> {
    let when = |event: &Event| events.iter().find(|(known, _)| known == event).map(|(_, range)| *range);
    match &condition.kind {
        ConditionKind::And(a, b) => contradiction(a, events).or_else(|| contradiction(b, events)),
        ConditionKind::Before(first, second) => {
            let (a, b) = (when(&first.event)?, when(&second.event)?);
            (a.lo > b.hi).then(|| format!("`{}` is expected at {a}, `{}` at {b}", first.event, second.event))
        }
        ConditionKind::In(value, low, high) => {
            let OperandKind::Gap(from, to) = &value.kind else {
                return None;
            };
            let (a, b) = (when(&from.event)?, when(&to.event)?);
            let (least, most) = (b.lo - a.hi, b.hi - a.lo);
            let (low, high) = (low.constant()?, high.constant()?);
            let outside = least.as_secs_f64() > high || most.as_secs_f64() < low;
            outside.then(|| format!("from `{}` to `{}` {least} to {most} are expected", from.event, to.event))
        }
        ConditionKind::Or(..)
        | ConditionKind::Not(_)
        | ConditionKind::Exists(..)
        | ConditionKind::Never(..)
        | ConditionKind::Always(..)
        | ConditionKind::Complete(_)
        | ConditionKind::Compare(..)
        | ConditionKind::Holds(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{Disk, LoadOptions, load};
    use std::path::Path;

    fn prediction(name: &str) -> Prediction {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
        let loaded = load(&path, &LoadOptions::default(), &Disk).expect("the scenario is right");
        predict(&loaded.suite.runs[0].plan).expect("the timers of sim are known")
    }

    fn when(prediction: &Prediction, event: &str) -> (f64, f64) {
        let (_, range) = prediction
            .events
            .iter()
            .find(|(name, _)| name == event)
            .unwrap_or_else(|| panic!("{event} is predicted"));
        (range.lo.as_secs_f64(), range.hi.as_secs_f64())
    }

    /// What was measured lies in what is expected: DOWN 2.06 to 4.3 s after the delete at 5 s, the client cut with it.
    #[test]
    fn s1_is_cut_at_down() {
        let s1 = prediction("s1.yaml");
        let (lo, hi) = when(&s1, "lb_down");
        assert!(lo <= 7.06 && (9.3..12.0).contains(&hi), "{lo}..{hi}");
        assert!(when(&s1, "ended(long)").1 < 13.0);
        assert!(
            !s1.events.iter().any(|(name, _)| name == "active_zero"),
            "a kill is no zero"
        );
        assert_eq!(s1.contradictions, []);
    }

    /// active_zero at 60 s, DOWN 2.2 to 4.6 s after it, the pod gone some seconds later.
    #[test]
    fn s2_drains_before_down() {
        let s2 = prediction("s2.yaml");
        let (zero, down, gone) = (when(&s2, "active_zero"), when(&s2, "lb_down"), when(&s2, "pod_gone"));
        assert!(zero.0 <= 60.0 && zero.1 >= 60.1, "{zero:?}");
        assert!(down.0 <= 62.2 && down.1 >= 64.6, "{down:?}");
        assert!(gone.0 <= 66.6 && gone.1 >= 68.0, "{gone:?}");
        assert!(
            s2.total.lo.as_secs_f64() > 60.0 && s2.total.hi.as_secs_f64() < 80.0,
            "{}",
            s2.total
        );
        assert_eq!(s2.contradictions, []);
    }
}

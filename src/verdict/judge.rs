//! From the evidence of a run folder, and its plan where there is one, to everything that is written about it.

use serde_json::{Map, Value};

use super::assertion::{self, Scope};
use super::{Account, Fate, Finding, FindingKind, Outcome, Report, RunVerdict};
use crate::evidence::Evidence;
use crate::evidence::run_folder::{CallOutcome, Cleanup, Signal, StopKind};
use crate::language::plan::{Expect, OnTimeout, Plan, Verb};
use crate::timeline::interval::Intervals;
use crate::timeline::site::Knowledge;
use crate::timeline::{Timeline, event, record};

/// The results of a run folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// `verdict.json`.
    pub report: Report,
    /// `intervals.json`.
    pub intervals: Intervals,
    /// `timeline.jsonl`, a line each.
    pub timeline: Vec<Map<String, Value>>,
}

/// What the caller wants to have counted how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    /// `--inconclusive=pass`.
    pub inconclusive_passes: bool,
    /// `--allow-skip`.
    pub allow_skip: bool,
    /// `--require-real`: simulated evidence proves nothing.
    pub require_real: bool,
}

/// What is known beforehand, from a plan's environment.
pub fn knowledge(plan: &Plan, max_skew: Option<crate::time::Duration>) -> Knowledge {
    let lb = &plan.environment.load_balancer;
    Knowledge {
        proxy: Some(lb.backend.clone()),
        servers: lb
            .servers
            .iter()
            .map(|(node, server)| (node.clone(), server.clone()))
            .collect(),
        ingress: None,
        app_cluster: None,
        max_skew,
    }
}

/// Judges a run folder's evidence.
pub fn judge(
    evidence: &Evidence,
    plan: Option<&Plan>,
    max_skew: Option<crate::time::Duration>,
    policy: Policy,
) -> Judged {
    let known = match plan {
        Some(plan) => knowledge(plan, max_skew),
        None => Knowledge {
            max_skew,
            ..Knowledge::default()
        },
    };
    let timeline = Timeline::build(evidence, known);
    let events = event::all(&timeline);
    let account = Account::of(&timeline);
    let findings = plan
        .map(|plan| findings(&timeline, &events, &account, plan))
        .unwrap_or_default();
    let report = report(evidence, plan, account, findings, policy);
    Judged {
        intervals: Intervals::measure(&timeline, &events),
        timeline: record::all(&timeline, &events),
        report,
    }
}

fn findings(timeline: &Timeline<'_>, events: &[event::Event], account: &Account, plan: &Plan) -> Vec<Finding> {
    let scope = Scope::new(timeline, events, account, plan);
    let mut findings: Vec<Finding> = plan.assertions.iter().map(|a| assertion::evaluate(&scope, a)).collect();
    findings.extend(steps(timeline, plan));
    if plan.expected_failure {
        findings.push(expected_failure(account));
    }
    findings
}

/// Steps that are claims: a `wait_for` or `poll` that ran out of time, a refusal that did not come.
fn steps(timeline: &Timeline<'_>, plan: &Plan) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, step) in (1..).zip(plan.all_steps()) {
        let name = step
            .id
            .as_ref()
            .map_or_else(|| format!("step-{number}"), ToString::to_string);
        let Some(call) = timeline.evidence.own_calls.iter().find(|c| c.step == name) else {
            continue;
        };
        let claims = matches!(step.verb, Verb::WaitFor(_) | Verb::Poll(_));
        let refusal = step.expect == Expect::Refused && matches!(call.outcome, CallOutcome::Ok | CallOutcome::Error);
        let (verdict, explanation) = match call.outcome {
            CallOutcome::TimedOut if claims && step.on_timeout == OnTimeout::Fail => (
                Outcome::Fail,
                format!(
                    "{} did not come to pass within {}",
                    awaited(&step.verb),
                    step.timeout.unwrap_or_default()
                ),
            ),
            CallOutcome::Interrupted if claims => {
                (Outcome::Inconclusive, "the run ended while it was awaited".to_owned())
            }
            _ if refusal => (Outcome::Fail, "it was expected to be refused and was not".to_owned()),
            CallOutcome::Ok
            | CallOutcome::Refused
            | CallOutcome::Error
            | CallOutcome::TimedOut
            | CallOutcome::Skipped
            | CallOutcome::Interrupted => continue,
        };
        found.push(Finding {
            assert: format!("{name}: {} {}", step.verb.name(), awaited(&step.verb))
                .trim_end()
                .to_owned(),
            name: step.id.as_ref().map(ToString::to_string),
            because: None,
            kind: FindingKind::Step,
            verdict,
            margin_s: None,
            margin_error_s: None,
            error_budget: Vec::new(),
            reason: (verdict == Outcome::Inconclusive).then(|| explanation.clone()),
            explanation,
            events: Vec::new(),
            span: None,
        });
    }
    found
}

fn awaited(verb: &Verb) -> String {
    match verb {
        Verb::WaitFor(w) => w.condition.text.clone(),
        Verb::Poll(p) => p.until.as_ref().map(|u| u.text.clone()).unwrap_or_default(),
        _ => String::new(),
    }
}

/// The scenario exists to show a loss: at least one request must really have been disrupted.
fn expected_failure(account: &Account) -> Finding {
    let lost: Vec<&str> = account
        .requests
        .iter()
        .filter(|r| matches!(r.fate, Fate::Broken | Fate::Lost))
        .map(|r| r.id.as_str())
        .chain(account.loads.iter().filter(|l| l.disrupted > 0).map(|l| l.id.as_str()))
        .collect();
    let undecided = account.requests.iter().any(|r| r.fate == Fate::Inconclusive);
    let (verdict, explanation) = match (lost.first(), undecided) {
        (Some(first), _) => (Outcome::Pass, format!("{first} was disrupted: the loss is reproduced")),
        (None, true) => (
            Outcome::Inconclusive,
            "no request is shown to have been disrupted, and not every fate is known".to_owned(),
        ),
        (None, false) => (Outcome::Fail, "not reproduced: no request was disrupted".to_owned()),
    };
    Finding {
        assert: "expected_failure: true".to_owned(),
        name: None,
        because: None,
        kind: FindingKind::ExpectedFailure,
        verdict,
        margin_s: None,
        margin_error_s: None,
        error_budget: Vec::new(),
        reason: (verdict == Outcome::Inconclusive).then(|| explanation.clone()),
        explanation,
        events: Vec::new(),
        span: None,
    }
}

fn report(
    evidence: &Evidence,
    plan: Option<&Plan>,
    account: Account,
    assertions: Vec<Finding>,
    policy: Policy,
) -> Report {
    let run = evidence.run.as_ref();
    let mut warnings = account.warnings.clone();
    warnings.extend(evidence.notes.iter().map(|n| match n.place {
        Some(p) => format!("{} line {}: {}", evidence.file(p.file).name, p.line, n.text),
        None => n.text.clone(),
    }));
    if let Some(plan) = plan.filter(|p| !p.expected_failure) {
        warnings.extend(unmentioned(&account, plan));
    }
    let simulated = run.is_some_and(|r| r.simulated);
    let (verdict, summary) = match plan {
        None => (None, read_summary(evidence)),
        Some(_) => {
            let (verdict, summary) = run_verdict(evidence, &assertions);
            (Some(verdict), summary)
        }
    };
    let interrupted = run.and_then(|r| r.interrupted);
    let cleanup_failed = matches!(run.and_then(|r| r.cleanup.as_ref()), Some(Cleanup::Failed(_)));
    let mut exit = match (verdict, interrupted) {
        (_, Some(Signal::Int)) => 130,
        (_, Some(Signal::Term)) => 143,
        (None, None) => i32::from(!read_anything(evidence)),
        (Some(v), None) => exit_of(v, policy),
    };
    let mut summary = summary;
    if exit == 0 && cleanup_failed {
        exit = 1;
        summary.push_str("; but what was changed could not all be undone");
    }
    if exit == 0 && policy.require_real && simulated {
        exit = 1;
        summary.push_str("; but real evidence is required and this is a simulation");
    }
    Report {
        verdict,
        exit,
        scenario: plan.map(|p| p.name.clone()),
        environment: run.map(|r| r.environment.clone()),
        simulated,
        interrupted: interrupted.is_some(),
        summary,
        assertions,
        requests: account.requests,
        loads: account.loads,
        order: account.order,
        clocks: account.clocks,
        warnings,
        cleanup: run.and_then(|r| r.cleanup.as_ref()).map(|c| match c {
            Cleanup::Done => "done".to_owned(),
            Cleanup::Failed(why) => format!("failed: {why}"),
        }),
    }
}

fn exit_of(verdict: RunVerdict, policy: Policy) -> i32 {
    match verdict {
        RunVerdict::Pass => 0,
        RunVerdict::Invalid => 1,
        RunVerdict::Fail => 2,
        RunVerdict::Inconclusive => {
            if policy.inconclusive_passes {
                0
            } else {
                3
            }
        }
        RunVerdict::Skipped => i32::from(!policy.allow_skip),
    }
}

fn read_anything(evidence: &Evidence) -> bool {
    !(evidence.haproxy_logs.is_empty()
        && evidence.haproxy_csv.is_empty()
        && evidence.envoy_logs.is_empty()
        && evidence.envoy_stats.is_empty()
        && evidence.hc_logs.is_empty()
        && evidence.clients.is_empty()
        && evidence.loads.is_empty()
        && evidence.captures.is_empty()
        && evidence.watches.is_empty()
        && evidence.run_log.as_ref().is_none_or(|l| l.entries.is_empty()))
}

fn read_summary(evidence: &Evidence) -> String {
    if read_anything(evidence) {
        "the evidence was read; the folder has no scenario, so nothing is claimed".to_owned()
    } else {
        "no source of the folder could be read".to_owned()
    }
}

/// The verdict of a run with a scenario, and what happened in one sentence.
fn run_verdict(evidence: &Evidence, findings: &[Finding]) -> (RunVerdict, String) {
    if let Some(stopped) = evidence.run.as_ref().and_then(|r| r.stopped.as_ref()) {
        let verdict = match stopped.kind {
            StopKind::Skipped => RunVerdict::Skipped,
            StopKind::Preflight | StopKind::Step | StopKind::Timeout | StopKind::Restart => RunVerdict::Invalid,
        };
        return (verdict, stopped.message.clone());
    }
    let count = |o| findings.iter().filter(|f| f.verdict == o).count();
    let of = findings.len();
    // A run that was killed has claims that were never put to the test.
    let unfinished = evidence.run.as_ref().is_some_and(|r| r.ended.is_none());
    match Outcome::of_all(findings.iter().map(|f| f.verdict)) {
        None => (RunVerdict::Invalid, "nothing was claimed".to_owned()),
        Some(Outcome::Fail) => (
            RunVerdict::Fail,
            format!("{} of {of} claims failed", count(Outcome::Fail)),
        ),
        Some(_) if unfinished => (
            RunVerdict::Inconclusive,
            "the run did not come to its end; its evidence is kept".to_owned(),
        ),
        Some(Outcome::Inconclusive) => (
            RunVerdict::Inconclusive,
            format!(
                "the evidence cannot decide {} of {of} claims",
                count(Outcome::Inconclusive)
            ),
        ),
        Some(Outcome::Pass) => (RunVerdict::Pass, format!("all {of} claims hold")),
    }
}

/// Disrupted requests that no assertion speaks of.
fn unmentioned(account: &Account, plan: &Plan) -> Vec<String> {
    let spoken = |id: &str| plan.assertions.iter().any(|a| a.text().contains(id));
    let requests = account
        .requests
        .iter()
        .filter(|r| matches!(r.fate, Fate::Broken | Fate::Lost) && !spoken(&r.id))
        .map(|r| format!("request {} was disrupted, and no assertion mentions it", r.id));
    let loads = account
        .loads
        .iter()
        .filter(|l| l.disrupted > 0 && !spoken(&l.id))
        .map(|l| {
            format!(
                "load {}: {} request(s) were disrupted, and no assertion mentions it",
                l.id, l.disrupted
            )
        });
    requests.chain(loads).collect()
}

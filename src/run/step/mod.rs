//! Steps: one file a verb, and here what is the same for all: `when`, `timeout`, `expect`, `retry`, the record.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Map;

use super::context::Context;
use super::live::{Results, Seen, Value};
use super::target::Target;
use crate::evidence::run_folder::{CallOutcome, OwnCall, StopKind, Stopped};
use crate::language::plan::{Expect, OnTimeout, Step, TemplateError, Verb};
use crate::language::vocabulary::{StepField, StepOutcome, Word};
use crate::time::Duration;
use crate::world::port::{ApiAnswer, ErrorKind, WorldError};

mod api;
mod command;
mod delete_pod;
mod drain_node;
mod evict_pod;
mod exec;
mod label;
mod load;
mod mark;
mod parallel;
mod poll;
mod request;
mod rollout_restart;
mod scale;
mod snapshot;
mod ssh;
mod wait;
mod wait_for;

/// Name of the file.
const FILE: &str = "steps.jsonl";

/// How a verb ended.
pub(super) struct End {
    pub(super) outcome: CallOutcome,
    /// Of the API or of a command.
    pub(super) status: Option<i64>,
    /// The pod that was hit.
    pub(super) pod: Option<Target>,
    /// For expressions and templates.
    pub(super) results: Results,
    /// For a person.
    pub(super) said: String,
}

impl End {
    /// Done.
    pub(super) fn ok(said: impl Into<String>) -> Self {
        Self::new(CallOutcome::Ok, said)
    }

    /// Ended in this way.
    pub(super) fn new(outcome: CallOutcome, said: impl Into<String>) -> Self {
        Self {
            outcome,
            status: None,
            pod: None,
            results: Results::new(),
            said: said.into(),
        }
    }

    /// The other side said no, or it could not be done.
    pub(super) fn failed(error: &WorldError) -> Self {
        let outcome = if error.refused() {
            CallOutcome::Refused
        } else {
            CallOutcome::Error
        };
        Self {
            status: error.status().map(i64::from),
            ..Self::new(outcome, error.to_string())
        }
    }

    /// An answer of the API.
    pub(super) fn answered(answer: Result<ApiAnswer, WorldError>, said: impl Into<String>) -> Self {
        match answer {
            Ok(answer) => Self {
                status: Some(i64::from(answer.status)),
                ..Self::ok(said)
            },
            Err(error) => Self::failed(&error),
        }
    }

    /// With the pod that it hit.
    pub(super) fn on(self, pod: Target) -> Self {
        Self { pod: Some(pod), ..self }
    }
}

impl From<TemplateError> for End {
    fn from(error: TemplateError) -> Self {
        Self::new(CallOutcome::Error, error.to_string())
    }
}

/// Why a list of steps ended early.
pub(super) type Stop = Option<Stopped>;

/// Carries out a list of steps, one after the other. An error is the early end; `None` in it is a failed claim, which
/// stands in the results and is no fault of the run.
pub(super) fn all<'a>(ctx: &'a Context, steps: &'a [Step]) -> BoxFuture<'a, Result<(), Stop>> {
    async move {
        for step in steps {
            one(ctx, step).await?;
        }
        Ok(())
    }
    .boxed()
}

/// Carries out the steps of `finally`: all of them, whatever happens. What fails is told.
pub(super) async fn finally(ctx: &Context, steps: &[Step]) -> Vec<String> {
    let mut failed = Vec::new();
    for step in steps {
        let name = ctx.name(step);
        let carried = tokio::select! {
            biased;
            end = attempt(ctx, step) => Some(end),
            () = ctx.interrupts.second(), if is_wait(step) => None,
        };
        match carried {
            Some(end) if fits(step.expect, end.outcome) || end.outcome == CallOutcome::Skipped => {}
            Some(end) => failed.push(format!("finally {name}: {}", end.said)),
            None => ctx.say(&format!("{name}: skipped by a second signal")),
        }
    }
    failed
}

/// A step that only waits: a second signal skips it.
fn is_wait(step: &Step) -> bool {
    match step.verb {
        Verb::Wait(_) | Verb::WaitFor(_) | Verb::Poll(_) => true,
        Verb::Request(_)
        | Verb::Load(_)
        | Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => false,
    }
}

/// Whether an outcome is what `expect` says.
fn fits(expect: Expect, outcome: CallOutcome) -> bool {
    match expect {
        Expect::Any => true,
        Expect::Ok => outcome == CallOutcome::Ok,
        Expect::Refused => outcome == CallOutcome::Refused,
        Expect::Error => outcome == CallOutcome::Error,
    }
}

/// One step, and what its end means for those after it.
async fn one(ctx: &Context, step: &Step) -> Result<(), Stop> {
    let end = attempt(ctx, step).await;
    if end.outcome == CallOutcome::Skipped || fits(step.expect, end.outcome) {
        return Ok(());
    }
    let name = ctx.name(step);
    let claim = match step.verb {
        Verb::WaitFor(_) | Verb::Poll(_) => true,
        Verb::Request(_)
        | Verb::Load(_)
        | Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Wait(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => false,
    };
    match (end.outcome, step.expect) {
        (CallOutcome::TimedOut, _) if step.on_timeout == OnTimeout::Continue => Ok(()),
        // A failed claim: it stands in the results, and the steps after it would build on it.
        (CallOutcome::TimedOut, _) if claim => Err(None),
        (CallOutcome::Ok | CallOutcome::Error, Expect::Refused) => Err(None),
        (CallOutcome::Interrupted, _) => Err(None),
        _ => Err(Some(Stopped {
            kind: StopKind::Step,
            message: format!(
                "step {name} ({}) could not be carried out: {}",
                step.verb.name(),
                end.said
            ),
        })),
    }
}

/// Carries out a step as often as `retry` says, and writes down each call.
async fn attempt(ctx: &Context, step: &Step) -> End {
    let name = ctx.name(step);
    if let Some(when) = &step.when
        && ctx.holds(when, None) != Some(true)
    {
        let end = End::new(CallOutcome::Skipped, format!("skipped: `{}` does not hold", when.text));
        write(ctx, &name, step, ctx.now(), Some(&end));
        ctx.say(&format!("{name}: {}", end.said));
        return end;
    }
    let (times, every) = step.retry.map_or((1, Duration::ZERO), |r| (r.times.max(1), r.every));
    let mut tried = 0;
    loop {
        tried += 1;
        let sent = ctx.now();
        // Until it is over it counts as interrupted: the last record of a step wins.
        write(ctx, &name, step, sent, None);
        if step.verb.acts() {
            ctx.live.disturbed(sent);
        }
        if let Some(id) = &step.id {
            ctx.live.saw(sent, Seen::Sent(id.clone()));
        }
        let mut end = limited(ctx, step, &name).await;
        complete(ctx, step, sent, &mut end);
        write(ctx, &name, step, sent, Some(&end));
        ctx.say(&format!("{name}: {}", end.said));
        if fits(step.expect, end.outcome) || tried >= times {
            return end;
        }
        ctx.sleep(every).await;
    }
}

/// The verb within the step's time.
async fn limited(ctx: &Context, step: &Step, name: &str) -> End {
    let carried = verb(ctx, step, name);
    match step.timeout {
        None => carried.await,
        Some(limit) => match ctx.within(limit, carried).await {
            Some(end) => end,
            None => {
                let awaited = match &step.verb {
                    Verb::WaitFor(w) => format!("`{}` did not come to pass", w.condition.text),
                    Verb::Poll(p) => format!("`{}` did not come to pass", p.until.as_ref().map_or("", |u| &u.text)),
                    Verb::Request(_)
                    | Verb::Load(_)
                    | Verb::DeletePod(_)
                    | Verb::EvictPod(_)
                    | Verb::Scale(_)
                    | Verb::RolloutRestart(_)
                    | Verb::DrainNode(_)
                    | Verb::Label(_)
                    | Verb::Wait(_)
                    | Verb::Exec(_)
                    | Verb::Ssh(_)
                    | Verb::Snapshot(_)
                    | Verb::Mark(_)
                    | Verb::Parallel(_) => "it was not over".to_owned(),
                };
                End::new(CallOutcome::TimedOut, format!("{awaited} within {limit}"))
            }
        },
    }
}

/// One arm a verb: a new one does not compile until it has a file.
async fn verb(ctx: &Context, step: &Step, name: &str) -> End {
    match &step.verb {
        Verb::Request(v) => request::run(ctx, step, name, v).await,
        Verb::Load(v) => load::run(ctx, step, name, v).await,
        Verb::DeletePod(v) => delete_pod::run(ctx, v).await,
        Verb::EvictPod(v) => evict_pod::run(ctx, v).await,
        Verb::Scale(v) => scale::run(ctx, v).await,
        Verb::RolloutRestart(v) => rollout_restart::run(ctx, v).await,
        Verb::DrainNode(v) => drain_node::run(ctx, v).await,
        Verb::Label(v) => label::run(ctx, v).await,
        Verb::Wait(v) => wait::run(ctx, v).await,
        Verb::WaitFor(v) => wait_for::run(ctx, v).await,
        Verb::Poll(v) => poll::run(ctx, v).await,
        Verb::Exec(v) => exec::run(ctx, v).await,
        Verb::Ssh(v) => ssh::run(ctx, v).await,
        Verb::Snapshot(v) => snapshot::run(ctx, v).await,
        Verb::Mark(v) => mark::run(ctx, v).await,
        Verb::Parallel(v) => parallel::run(ctx, v).await,
    }
}

/// What every step leaves behind: outcome, status, how long it took.
fn complete(ctx: &Context, step: &Step, sent: crate::time::Instant, end: &mut End) {
    let now = ctx.now();
    let background = match &step.verb {
        // Their results and their end come later, from the request or the load itself.
        Verb::Request(r) => r.background,
        Verb::Load(_) => true,
        Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Wait(_)
        | Verb::WaitFor(_)
        | Verb::Poll(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => false,
    };
    if background {
        return;
    }
    if let Some(status) = end.status {
        end.results
            .entry(StepField::Status)
            .or_insert(Value::Number(status as f64));
    }
    let outcome = match end.outcome {
        CallOutcome::Ok => StepOutcome::Ok,
        CallOutcome::Refused => StepOutcome::Refused,
        CallOutcome::Error | CallOutcome::TimedOut | CallOutcome::Skipped | CallOutcome::Interrupted => {
            StepOutcome::Error
        }
    };
    end.results
        .entry(StepField::Outcome)
        .or_insert(Value::Word(Word::StepOutcome(outcome)));
    end.results
        .entry(StepField::Duration)
        .or_insert(Value::Duration(now - sent));
    ctx.keep(step.id.as_ref(), end.results.clone());
    if let Some(id) = &step.id {
        let foreground_request = matches!(step.verb, Verb::Request(_));
        if !foreground_request {
            ctx.live.saw(
                now,
                Seen::Over {
                    id: id.clone(),
                    whole: None,
                },
            );
        }
    }
    let told_to_stop = match step.verb {
        Verb::DeletePod(_) | Verb::EvictPod(_) => end.outcome == CallOutcome::Ok,
        Verb::Request(_)
        | Verb::Load(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Wait(_)
        | Verb::WaitFor(_)
        | Verb::Poll(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => false,
    };
    if told_to_stop && end.pod.as_ref().map(|p| &p.pod) == ctx.target().as_ref().map(|t| &t.pod) {
        ctx.live.saw(now, Seen::Delete);
    }
}

/// Writes the call down: when it is sent, and again when it is over.
fn write(ctx: &Context, name: &str, step: &Step, sent: crate::time::Instant, end: Option<&End>) {
    let mut results = Map::new();
    if let Some(end) = end {
        for (field, value) in &end.results {
            if matches!(field, StepField::Stdout | StepField::Body | StepField::Exit) {
                results.insert(field.as_str().to_owned(), json(value));
            }
        }
        results.insert("said".to_owned(), end.said.clone().into());
    }
    let pod = end.and_then(|e| e.pod.as_ref());
    let record = OwnCall {
        step: name.to_owned(),
        verb: step.verb.name().to_owned(),
        sent,
        received: end.map(|_| ctx.now()),
        outcome: end.map_or(CallOutcome::Interrupted, |e| e.outcome),
        status: end.and_then(|e| e.status),
        pod: pod.map(|p| p.pod.name.clone()),
        uid: pod.map(|p| p.pod.uid.clone()),
        server: pod.and_then(|p| p.server.clone()),
        results,
    };
    ctx.recorder.record(FILE, &record);
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 9e15 => (*n as i64).into(),
        Value::Number(n) => (*n).into(),
        Value::Duration(d) => d.to_string().into(),
        Value::Text(text) => text.clone().into(),
        Value::Word(word) => word.as_str().into(),
        Value::Bool(b) => (*b).into(),
    }
}

/// The error of a verb that needs the target before it is known.
pub(super) fn no_target() -> End {
    let message = "the target is not known yet; put a request with `expect_in_flight: true` before it";
    End::failed(&WorldError::new(ErrorKind::Failed, "find the target", message))
}

//! The course of a run: preflight, probes, steps, final samples, judgement, `finally`, undoing.

use std::sync::Arc;

use futures::stream::FuturesUnordered;
use indexmap::IndexMap;

use super::cleanup;
use super::context::Context;
use super::interrupt::Interrupts;
use super::preflight;
use super::probe::Probes;
use super::recorder::Recorder;
use super::step;
use super::tasks::tasks;
use crate::evidence::run_folder::{RunRecord, StopKind, Stopped};
use crate::language::plan::{Plan, ProbeKind, Verb};
use crate::language::vocabulary::RunField;
use crate::time::Duration;
use crate::world::port::World;

/// Time in which requests that are given up come to their end.
const GIVEN_UP: Duration = Duration::from_millis(20);
/// Name of the file with what gtrun says of the run.
const RUN_FILE: &str = "run.json";

/// What is to be carried out, and where to.
pub struct Order {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Where it is carried out.
    pub world: World,
    /// Where the evidence goes.
    pub recorder: Recorder,
    /// Signals.
    pub interrupts: Interrupts,
    /// The run's id: in marks of remote processes and in templates.
    pub id: String,
    /// The run's folder, for templates.
    pub folder: String,
}

/// Carries out a plan. The result is what was written; the record is also in `run.json`.
///
/// `judge` is called when the evidence is complete and nothing has been undone yet, so that a verdict exists even if the
/// rest is killed, and is called by the caller again afterwards: `finally` and the undoing add their own lines.
pub async fn execute(order: Order, mut judge: impl FnMut(&RunRecord)) -> RunRecord {
    let (to_tasks, mut carrier) = tasks();
    let started = order.world.clock.now();
    let run = IndexMap::from([(RunField::Id, order.id), (RunField::Dir, order.folder)]);
    order.recorder.hide(&order.plan.secrets);
    let ctx = Context::new(order.plan, order.world, order.recorder, to_tasks, order.interrupts, run);
    let mut record = RunRecord {
        environment: ctx.plan.environment.name.clone(),
        simulated: ctx.world.kind.simulated(),
        started,
        ended: None,
        interrupted: None,
        stopped: None,
        cleanup: None,
    };
    let mut set = FuturesUnordered::new();
    carrier.carry(&mut set, course(&ctx, &mut record, &mut judge)).await;
    record
}

async fn course(ctx: &Context, record: &mut RunRecord, judge: &mut impl FnMut(&RunRecord)) {
    let keep = |record: &RunRecord| ctx.recorder.replace_json(RUN_FILE, record);
    write_inputs(ctx);
    keep(record);
    introduce(ctx);
    let mut probes = Probes::default();
    let limit = ctx.plan.timeout;
    let until_steps_end = async {
        preflight::check(ctx).await?;
        probes.start(ctx).await?;
        step::all(ctx, &ctx.plan.steps).await
    };
    let stopped = tokio::select! {
        biased;
        signal = ctx.interrupts.first() => {
            record.interrupted = Some(signal);
            ctx.say("interrupted: the steps end, what is there is judged, what was changed is undone");
            None
        }
        end = until_steps_end => end.err().flatten(),
        () = ctx.sleep(limit) => Some(Stopped {
            kind: StopKind::Timeout,
            message: format!("the run took longer than its timeout of {limit}; raise `timeout:` in the scenario"),
        }),
    };
    record.stopped = stopped;
    end_traffic(ctx, record.interrupted.is_some()).await;
    probes.stop(ctx).await;
    if record.stopped.is_none() {
        record.stopped = probes.why_nothing_was_seen(ctx);
    }
    record.ended = Some(ctx.now());
    note_fault(ctx, record);
    if let Some(stopped) = &record.stopped {
        ctx.say(&format!("stopped: {}", stopped.message));
    }
    write_truth(ctx);
    keep(record);
    judge(record);
    // On every way out, also after a preflight that failed in the midst of `ensure`.
    let failed = step::finally(ctx, &ctx.plan.finally).await;
    record.cleanup = cleanup::undo(ctx, failed).await;
    record.ended = Some(ctx.now());
    note_fault(ctx, record);
    write_truth(ctx);
    keep(record);
}

/// Nothing new is sent. Requests of a load that are on their way are waited for, unless the run was interrupted.
async fn end_traffic(ctx: &Context, interrupted: bool) {
    ctx.stop_traffic.cancel();
    let mut loads = ctx.loads.subscribe();
    let over = async {
        // The sender lives as long as the context.
        let _ = loads.wait_for(|n| *n == 0).await;
    };
    if !interrupted {
        tokio::select! {
            biased;
            () = over => {}
            _ = ctx.interrupts.first() => {}
        }
    }
    ctx.abort_traffic.cancel();
    // Requests that are given up now write their records before the probes end.
    ctx.sleep(GIVEN_UP).await;
}

/// Evidence that could not be written makes the run void.
fn note_fault(ctx: &Context, record: &mut RunRecord) {
    if let Some(fault) = ctx.recorder.take_fault()
        && record.stopped.is_none()
    {
        record.stopped = Some(Stopped {
            kind: StopKind::Step,
            message: fault,
        });
    }
}

/// The files that say what was asked: as written and as resolved.
fn write_inputs(ctx: &Context) {
    let plan = &ctx.plan;
    ctx.recorder.replace_json("plan.json", plan.as_ref());
    let mut sources = plan.sources.iter();
    if let Some((_, scenario)) = sources.next() {
        ctx.recorder.replace("scenario.yaml", scenario.text.as_bytes());
    }
    let environment = &plan.environment;
    let file = environment
        .file
        .as_ref()
        .and_then(|f| plan.sources.iter().find(|(_, s)| s.name == *f));
    let text = match file {
        Some((_, source)) => source.text.clone(),
        None => format!("gtrun: 1\nkind: {}\nseed: {}\n", environment.kind, environment.seed),
    };
    ctx.recorder.replace("environment.yaml", text.as_bytes());
}

/// The first line says where this happens and whether it is real.
fn introduce(ctx: &Context) {
    let environment = &ctx.plan.environment;
    let real = if ctx.world.kind.simulated() {
        "SIMULATED, nothing is real"
    } else {
        "real"
    };
    ctx.say(&format!(
        "environment {} ({real}): {}",
        environment.name, ctx.world.title
    ));
    if let Some(summary) = &ctx.plan.summary {
        ctx.say(summary);
    }
}

fn write_truth(ctx: &Context) {
    if let Some(truth) = &ctx.world.truth {
        ctx.recorder.replace("truth.json", truth.to_json().as_bytes());
    }
}

/// The scenario asks for nothing but captures: when no host can capture it is skipped.
pub(crate) fn only_captures(plan: &Plan) -> bool {
    let named = plan.probes.iter().filter(|p| p.span.is_some());
    let mut kinds = named.map(|p| &p.kind).peekable();
    let all = kinds.peek().is_some() && kinds.all(|k| matches!(k, ProbeKind::RstCapture { .. }));
    let quiet = plan.all_steps().iter().all(|s| match s.verb {
        Verb::Wait(_) | Verb::WaitFor(_) | Verb::Mark(_) | Verb::Snapshot(_) => true,
        Verb::Request(_)
        | Verb::Load(_)
        | Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Poll(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Parallel(_) => false,
    });
    all && quiet
}

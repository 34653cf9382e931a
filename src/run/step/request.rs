//! `request`: one HTTP request through the entry point.

use std::sync::Arc;

use super::End;
use crate::evidence::client::{Outcome, RequestRecord};
use crate::evidence::run_folder::CallOutcome;
use crate::language::Id;
use crate::language::plan::{Connection, Protocol as PlanProtocol, Request, Step};
use crate::language::vocabulary::{self, StepField, Word};
use crate::run::context::Context;
use crate::run::live::{Results, Seen, Value};
use crate::run::target::Target;
use crate::time::Duration;
use crate::world::port::{ConnectionUse, HttpRequest, HttpResult, HttpStage, HttpWatcher, Protocol};

/// A request that should be in flight at the target must be seen there within this time.
const IN_FLIGHT_LIMIT: Duration = Duration::from_secs(10);
/// Requests with `connection: reused` share this pool.
const POOL: &str = "reused";
const FILE: &str = "requests.jsonl";

pub(super) async fn run(ctx: &Context, step: &Step, name: &str, verb: &Request) -> End {
    let request = match build(ctx, verb) {
        Ok(request) => request,
        Err(end) => return end,
    };
    let id = step.id.clone();
    let watcher = watcher(ctx, name, &request);
    let started = ctx.now();
    record(ctx, name, &request, started, None);
    let sent = ctx.world.http.send(Arc::clone(&request), Some(watcher));
    let shown = format!("{} {}", request.method, request.path);
    if !verb.background {
        let result = sent.await;
        return over(ctx, name, id.as_ref(), &request, result);
    }
    let (ctx2, name2, id2, request2) = (ctx.clone(), name.to_owned(), id.clone(), Arc::clone(&request));
    ctx.tasks.spawn(async move {
        let result = sent.await;
        let end = over(&ctx2, &name2, id2.as_ref(), &request2, result);
        ctx2.say(&format!("{name2}: {}", end.said));
    });
    if verb.expect_in_flight {
        return in_flight(ctx, name, id.as_ref(), &shown).await;
    }
    End::ok(format!("{shown} in the background"))
}

fn build(ctx: &Context, verb: &Request) -> Result<Arc<HttpRequest>, End> {
    let mut headers = Vec::new();
    for header in &verb.headers {
        headers.push((header.name.clone(), ctx.fill(&header.value)?));
    }
    Ok(Arc::new(HttpRequest {
        method: verb.method.as_str().to_owned(),
        path: ctx.fill(&verb.path)?,
        headers,
        body: verb.body.as_ref().map(|b| ctx.fill(b)).transpose()?,
        timeout: verb.timeout,
        connection: match &verb.connection {
            Connection::New => ConnectionUse::New,
            Connection::Reused => ConnectionUse::Pool(POOL.to_owned()),
            Connection::Named(name) => ConnectionUse::Named(name.to_string()),
        },
        protocol: match verb.protocol {
            PlanProtocol::H1 => Protocol::H1,
            PlanProtocol::H2 => Protocol::H2,
        },
        read_rate: verb.read_rate.map(|r| r as f64),
        stop_after: verb.stop_after,
        cancel: ctx.stop_traffic.child_token(),
        keep_body: 0,
    }))
}

/// Keeps the port as soon as there is one, so that a run that is killed has it.
fn watcher(ctx: &Context, name: &str, request: &Arc<HttpRequest>) -> HttpWatcher {
    let (ctx, name, request) = (ctx.clone(), name.to_owned(), Arc::clone(request));
    let started = ctx.now();
    Arc::new(move |stage| match stage {
        HttpStage::Sending { local_port, remote, .. } => {
            record(&ctx, &name, &request, started, Some((local_port, remote)));
        }
        HttpStage::Answering { .. } => {}
    })
}

/// The record of a request that is going on.
fn record(
    ctx: &Context,
    name: &str,
    request: &HttpRequest,
    started: crate::time::Instant,
    ends: Option<(u16, String)>,
) {
    let (local_port, remote) = ends.unzip();
    let record = RequestRecord {
        id: name.to_owned(),
        attempt: 1,
        method: Some(request.method.clone()),
        path: Some(request.path.clone()),
        started,
        first_byte: None,
        ended: None,
        status: None,
        outcome: None,
        local_port,
        remote,
        connection: None,
        ordinal: None,
        bytes: None,
        goaway: None,
        error: None,
    };
    ctx.recorder.record(FILE, &record);
}

/// The request is over: its record, its results, and what may wait for it.
fn over(ctx: &Context, name: &str, id: Option<&Id>, request: &HttpRequest, result: HttpResult) -> End {
    let kept = match request.connection {
        ConnectionUse::New => None,
        ConnectionUse::Pool(_) | ConnectionUse::Named(_) => result.connection.map(|c| c.to_string()),
    };
    let record = RequestRecord {
        id: name.to_owned(),
        attempt: 1,
        method: Some(request.method.clone()),
        path: Some(request.path.clone()),
        started: result.started,
        first_byte: result.first_byte,
        ended: Some(result.ended),
        status: result.status,
        outcome: Some(result.outcome),
        local_port: result.local_port,
        remote: result.remote.clone(),
        connection: kept,
        ordinal: result.ordinal,
        bytes: Some(result.bytes),
        goaway: result.goaway,
        error: result.error.clone(),
    };
    ctx.recorder.record(FILE, &record);
    let took = result.ended - result.started;
    let mut results = Results::new();
    if let Some(status) = result.status {
        results.insert(StepField::Status, Value::Number(f64::from(status)));
    }
    if let Some(word) = word(result.outcome) {
        results.insert(StepField::Outcome, Value::Word(Word::Outcome(word)));
    }
    results.insert(StepField::Duration, Value::Duration(took));
    results.insert(StepField::Bytes, Value::Number(result.bytes as f64));
    if let Some(port) = result.local_port {
        results.insert(StepField::LocalPort, Value::Number(f64::from(port)));
    }
    ctx.keep(id, results.clone());
    if let Some(id) = id {
        if let Some(at) = result.goaway {
            ctx.live.saw(at, Seen::Goaway(id.clone()));
        }
        ctx.live.saw(
            result.ended,
            Seen::Over {
                id: id.clone(),
                whole: result.outcome.whole(),
            },
        );
    }
    let status = result.status.map_or_else(|| "no status".to_owned(), |s| s.to_string());
    let outcome = serde_json::to_value(result.outcome).ok();
    let outcome = outcome
        .as_ref()
        .and_then(|o| o.as_str())
        .unwrap_or("unknown")
        .to_owned();
    let said = format!(
        "{} {}: {status}, {outcome}, {:.3} s",
        request.method,
        request.path,
        took.as_secs_f64()
    );
    // That it was sent is what the step claims; how it ended is for the assertions.
    End {
        status: result.status.map(i64::from),
        results,
        ..End::new(CallOutcome::Ok, said)
    }
}

/// An outcome as a word of the language.
pub(super) fn word(outcome: Outcome) -> Option<vocabulary::Outcome> {
    use crate::language::vocabulary::Outcome as Words;
    Some(match outcome {
        Outcome::Ok => Words::Ok,
        Outcome::HttpError => Words::HttpError,
        Outcome::Truncated => Words::Truncated,
        Outcome::Reset => Words::Reset,
        Outcome::ClosedEarly => Words::ClosedEarly,
        Outcome::Refused => Words::Refused,
        Outcome::RefusedStream => Words::RefusedStream,
        Outcome::Timeout => Words::Timeout,
        Outcome::TlsError => Words::TlsError,
        Outcome::DnsError => Words::DnsError,
        Outcome::Aborted => Words::Aborted,
        Outcome::Unknown => return None,
    })
}

/// Waits until the request is seen in flight at the target: in Envoy's gauges, or in the sessions of its server. Where the
/// target is not known yet, the pod that is busy is it.
async fn in_flight(ctx: &Context, name: &str, id: Option<&Id>, shown: &str) -> End {
    enum Sight {
        Busy(Option<Target>),
        Answered,
    }
    let answered = || {
        ctx.live.look(|facts, _, _| {
            facts
                .iter()
                .any(|f| matches!(&f.what, Seen::Over { id: over, .. } if Some(over) == id))
        })
    };
    let busy = || -> Option<Target> {
        let pods = match ctx.target() {
            Some(target) => vec![target],
            None => ctx.pods.borrow().clone(),
        };
        ctx.live.look(|_, signals, _| {
            pods.into_iter().find(|pod| {
                let gauge = signals.gauges.get(&pod.pod.name).and_then(|g| g.active());
                let sessions = pod
                    .server
                    .as_ref()
                    .and_then(|s| signals.servers.get(s))
                    .map(|(_, n)| *n);
                gauge.is_some_and(|n| n >= 1) || sessions.is_some_and(|n| n >= 1)
            })
        })
    };
    let seen = ctx.live.until(|| {
        if answered() {
            return Some(Sight::Answered);
        }
        busy().map(|pod| Sight::Busy(Some(pod)))
    });
    match ctx.within(IN_FLIGHT_LIMIT, seen).await {
        Some(Sight::Busy(pod)) => {
            if ctx.target().is_none()
                && let Some(pod) = pod
            {
                ctx.set_target(pod);
            }
            End::ok(format!("{shown} is in flight at the target"))
        }
        Some(Sight::Answered) => End::new(
            CallOutcome::Error,
            format!("{shown} was over before it was seen in flight at the target; {name} should take longer"),
        ),
        None => End::new(
            CallOutcome::Error,
            format!(
                "{shown} was not seen in flight at the target within {IN_FLIGHT_LIMIT}: neither Envoy's gauges nor the \
                 sessions of its server showed it"
            ),
        ),
    }
}

//! `poll`: a one-shot or repeated read of HTTP or of a command.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{End, exec};
use crate::evidence::client::Outcome as ClientOutcome;
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::{Poll, PollRead};
use crate::language::vocabulary::{StepField, Word};
use crate::run::context::Context;
use crate::run::live::{Results, Value};
use crate::time::Duration;
use crate::world::port::{ConnectionUse, HttpRequest, Protocol};

/// One read may take this long; the next one is another.
const READ_LIMIT: Duration = Duration::from_secs(10);
const KEPT_BODY: usize = 64 * 1024;

pub(super) async fn run(ctx: &Context, verb: &Poll) -> End {
    let mut reads = 0;
    loop {
        let started = ctx.now();
        let mut end = read(ctx, &verb.read).await;
        reads += 1;
        let Some(until) = &verb.until else { return end };
        if ctx.holds(until, Some(&end.results)) == Some(true) {
            end.outcome = CallOutcome::Ok;
            end.said = format!("`{}` after {reads} reads; {}", until.text, end.said);
            return end;
        }
        ctx.world.clock.sleep_until(started + verb.every).await;
    }
}

async fn read(ctx: &Context, read: &PollRead) -> End {
    match read {
        PollRead::Exec(command) => exec::run(ctx, command).await,
        PollRead::Http { path } => {
            let path = match ctx.fill(path) {
                Ok(path) => path,
                Err(error) => return error.into(),
            };
            http(ctx, path).await
        }
    }
}

async fn http(ctx: &Context, path: String) -> End {
    let shown = format!("GET {path}");
    let request = HttpRequest {
        method: "GET".to_owned(),
        path,
        headers: Vec::new(),
        body: None,
        timeout: READ_LIMIT,
        connection: ConnectionUse::New,
        protocol: Protocol::H1,
        read_rate: None,
        stop_after: None,
        cancel: CancellationToken::new(),
        keep_body: KEPT_BODY,
    };
    let reply = ctx.world.http.send(Arc::new(request), None).await;
    let mut results = Results::new();
    if let Some(status) = reply.status {
        results.insert(StepField::Status, Value::Number(f64::from(status)));
    }
    let body = String::from_utf8_lossy(&reply.body).trim_end().to_owned();
    results.insert(StepField::Body, Value::Text(body));
    results.insert(StepField::Bytes, Value::Number(reply.bytes as f64));
    results.insert(StepField::Duration, Value::Duration(reply.ended - reply.started));
    if let Some(word) = super::request::word(reply.outcome) {
        results.insert(StepField::Outcome, Value::Word(Word::Outcome(word)));
    }
    let answered = match reply.outcome {
        ClientOutcome::Ok | ClientOutcome::HttpError => CallOutcome::Ok,
        ClientOutcome::Truncated
        | ClientOutcome::Reset
        | ClientOutcome::ClosedEarly
        | ClientOutcome::Refused
        | ClientOutcome::RefusedStream
        | ClientOutcome::Timeout
        | ClientOutcome::TlsError
        | ClientOutcome::DnsError
        | ClientOutcome::Aborted
        | ClientOutcome::Unknown => CallOutcome::Error,
    };
    let said = match (reply.status, &reply.error) {
        (Some(status), _) => format!("{shown}: {status}"),
        (None, Some(error)) => format!("{shown}: {error}"),
        (None, None) => format!("{shown}: no answer"),
    };
    End {
        status: reply.status.map(i64::from),
        results,
        ..End::new(answered, said)
    }
}

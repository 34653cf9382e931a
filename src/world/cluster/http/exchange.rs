//! One request and its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::connect::{Attempt, Body, Sender};
use super::fault::Fault;
use super::pool::{Connections, Lent, Name};
use super::wire::Wire;
use crate::evidence::client::Outcome;
use crate::time::{Duration, Instant};
use crate::world::port::{Clock, HttpRequest, HttpResult, HttpStage, HttpWatcher, Protocol};

/// What is known of a request at any moment: whenever it is given up, this is its result.
pub(super) struct Record {
    started: Instant,
    connected: Option<Instant>,
    handed_over: Option<Instant>,
    head: Option<Instant>,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    bytes: u64,
    attempt: Attempt,
    connection: Option<(Name, u32, Arc<Wire>, Protocol)>,
}

impl Record {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            connected: None,
            handed_over: None,
            head: None,
            status: None,
            headers: Vec::new(),
            body: Vec::new(),
            bytes: 0,
            attempt: Attempt::default(),
            connection: None,
        }
    }

    /// The result, given how it ended.
    pub(super) fn end(self, ended: Instant, outcome: Outcome, error: Option<String>) -> HttpResult {
        let (mut sent, mut first_byte, mut goaway) = (self.handed_over, self.head, None);
        if let Some((_, _, wire, protocol)) = &self.connection {
            let seen = wire.seen();
            goaway = seen.goaway.filter(|at| *at >= self.started && *at <= ended);
            // On HTTP/1.1 the bytes on the wire are this request's own.
            if *protocol == Protocol::H1 && self.handed_over.is_some() {
                sent = seen.last_out;
                first_byte = seen.first_in.filter(|_| sent.is_some());
            }
        }
        let name = self.connection.as_ref().map(|(name, ..)| *name);
        HttpResult {
            started: self.started,
            connected: self.connected,
            sent,
            first_byte,
            ended,
            status: self.status,
            headers: self.headers,
            body: self.body,
            bytes: self.bytes,
            outcome,
            local_port: name.map(|name| name.local_port).or(self.attempt.local_port),
            remote: name
                .map(|name| name.remote)
                .or(self.attempt.remote)
                .map(|remote| remote.to_string()),
            connection: name.map(|name| name.id),
            ordinal: self.connection.as_ref().map(|(_, ordinal, ..)| *ordinal),
            goaway,
            error,
        }
    }
}

/// What an answer came to.
enum Sent {
    /// The head of the response.
    Answer(Response<Incoming>),
    /// The kept connection was found closed before anything was written: another one is taken. That is no retry.
    NotSent,
}

/// Sends the request and reads its answer to the end.
pub(super) async fn exchange(
    connections: &Connections,
    clock: &dyn Clock,
    request: &HttpRequest,
    watcher: Option<&HttpWatcher>,
    record: &mut Record,
) -> Result<Outcome, Fault> {
    let message = message(connections, request)?;
    let stop_at = request.stop_after.map(|after| record.started + after);
    let answered = tokio::select! {
        biased;
        answered = answer(connections, clock, request, &message, watcher, record) => answered?,
        () = sleep_until(clock, stop_at) => {
            // A stream that has not even begun when it was to be stopped is a failure, not a stop.
            let after = request.stop_after.unwrap_or_default();
            return Err(Fault::new(Outcome::Timeout, format!("no answer within `stop_after: {after}`")));
        }
    };
    let (lent, response) = answered;
    let whole = receive(response, &lent.wire, clock, request, watcher, record).await?;
    let failed = record.status.is_some_and(|status| status >= 400);
    if whole {
        connections.give_back(lent);
    }
    Ok(if failed { Outcome::HttpError } else { Outcome::Ok })
}

/// Ready at that moment; never when there is none.
async fn sleep_until(clock: &dyn Clock, at: Option<Instant>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Sends the request and waits for the head of its response.
async fn answer(
    connections: &Connections,
    clock: &dyn Clock,
    request: &HttpRequest,
    message: &Request<Body>,
    watcher: Option<&HttpWatcher>,
    record: &mut Record,
) -> Result<(Lent, Response<Incoming>), Fault> {
    loop {
        record.connection = None;
        let mut lent = connections.lend(request, &mut record.attempt).await?;
        record.connected = Some(if lent.fresh { clock.now() } else { record.started });
        record.connection = Some((lent.name, lent.ordinal, Arc::clone(&lent.wire), request.protocol));
        match send(&mut lent, message.clone(), clock, watcher, record).await? {
            Sent::NotSent => continue,
            Sent::Answer(response) => return Ok((lent, response)),
        }
    }
}

async fn send(
    lent: &mut Lent,
    message: Request<Body>,
    clock: &dyn Clock,
    watcher: Option<&HttpWatcher>,
    record: &mut Record,
) -> Result<Sent, Fault> {
    let (fresh, wire, name) = (lent.fresh, Arc::clone(&lent.wire), lent.name);
    let ready = match &mut lent.sender {
        Sender::H1(sender) => sender.ready().await,
        Sender::H2(sender) => sender.ready().await,
    };
    if let Err(error) = ready {
        return if fresh {
            Err(Fault::before_head(&error, &wire))
        } else {
            Ok(Sent::NotSent)
        };
    }
    wire.mark();
    let at = clock.now();
    record.handed_over = Some(at);
    if let Some(watcher) = watcher {
        watcher(HttpStage::Sending {
            at,
            local_port: name.local_port,
            remote: name.remote.to_string(),
        });
    }
    let (error, written) = match &mut lent.sender {
        Sender::H1(sender) => match sender.try_send_request(message).await {
            Ok(response) => return Ok(Sent::Answer(response)),
            Err(mut failed) => {
                let untouched = failed.take_message().is_some() && wire.seen().last_out.is_none();
                (failed.into_error(), !untouched)
            }
        },
        Sender::H2(sender) => match sender.try_send_request(message).await {
            Ok(response) => return Ok(Sent::Answer(response)),
            Err(mut failed) => {
                let untouched = failed.take_message().is_some();
                (failed.into_error(), !untouched)
            }
        },
    };
    if fresh || written {
        Err(Fault::before_head(&error, &wire))
    } else {
        record.handed_over = None;
        Ok(Sent::NotSent)
    }
}

/// Reads the body. False: ended from our side by `stop_after`.
async fn receive(
    response: Response<Incoming>,
    wire: &Wire,
    clock: &dyn Clock,
    request: &HttpRequest,
    watcher: Option<&HttpWatcher>,
    record: &mut Record,
) -> Result<bool, Fault> {
    let (head, mut body) = response.into_parts();
    let at = clock.now();
    record.head = Some(at);
    record.status = Some(head.status.as_u16());
    record.headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    if let Some(watcher) = watcher {
        watcher(HttpStage::Answering {
            at,
            status: head.status.as_u16(),
        });
    }
    let stop = sleep_until(clock, request.stop_after.map(|after| record.started + after));
    tokio::pin!(stop);
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut stop => return Ok(false),
        };
        let data = match frame {
            None => return Ok(true),
            Some(Err(error)) => return Err(Fault::in_body(&error, wire)),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                // Trailers.
                Err(_) => continue,
            },
        };
        record.bytes += data.len() as u64;
        let room = request.keep_body.saturating_sub(record.body.len());
        record.body.extend_from_slice(&data[..room.min(data.len())]);
        if let Some(rate) = request.read_rate.filter(|rate| *rate > 0.0) {
            let due = at + Duration::from_secs_f64(record.bytes as f64 / rate);
            tokio::select! {
                () = clock.sleep_until(due) => (),
                () = &mut stop => return Ok(false),
            }
        }
    }
}

/// The request as the library wants it.
fn message(connections: &Connections, request: &HttpRequest) -> Result<Request<Body>, Fault> {
    let bad = |what: String| Fault::new(Outcome::Aborted, format!("the request cannot be written: {what}"));
    let entry = connections.entry();
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad(format!("header name `{name}`")))?;
        let value = HeaderValue::from_str(value).map_err(|_| bad(format!("value of header `{name}`")))?;
        headers.append(field, value);
    }
    let agent = HeaderValue::from_static(concat!("gtrun/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(agent);
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    let uri = match request.protocol {
        Protocol::H1 => {
            let host =
                HeaderValue::from_str(&entry.authority).map_err(|_| bad(format!("host `{}`", entry.authority)))?;
            headers.entry(HOST).or_insert(host);
            request.path.clone()
        }
        Protocol::H2 => {
            // RFC 9113, section 8.2.2: fields of a connection have no place here, `Host` is `:authority`.
            let authority = match headers.remove(HOST) {
                Some(host) => host.to_str().map_err(|_| bad("header `Host`".to_owned()))?.to_owned(),
                None => entry.authority.clone(),
            };
            for field in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
                headers.remove(field);
            }
            let scheme = if entry.tls { "https" } else { "http" };
            format!("{scheme}://{authority}{}", request.path)
        }
    };
    if !request.path.starts_with('/') {
        return Err(bad(format!("path `{}` does not begin with `/`", request.path)));
    }
    let body = request.body.clone().map(Bytes::from).unwrap_or_default();
    let mut message = Request::builder()
        .method(request.method.as_str())
        .uri(uri)
        .body(Body::new(body))
        .map_err(|e| bad(e.to_string()))?;
    *message.headers_mut() = headers;
    Ok(message)
}

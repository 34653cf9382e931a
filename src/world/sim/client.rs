//! The clients: gtrun's own requests, and the other traffic of the world.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::haproxy::{self, SessionId};
use super::model::{Event as ModelEvent, Model, Told};
use super::network::{CLIENT, ConnId, LB, Side};
use super::truth::{TruthAttempt, TruthRequest};
use crate::evidence::client::Outcome;
use crate::time::{Duration, Instant};
use crate::world::port::{ConnectionUse, HttpRequest, HttpResult, HttpStage, HttpWatcher};

/// A request of a client; an index that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RequestId(pub(super) usize);

/// Address of the other clients.
const OTHERS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 200);

/// What a client gets from the load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The server's whole response.
    Whole {
        /// Status.
        status: u16,
    },
    /// A page of the load balancer itself; it closes the connection.
    ErrorPage {
        /// Status.
        status: u16,
    },
    /// Nothing: the connection is closed.
    Closed,
    /// The response had begun; the connection is closed in its midst.
    Cut,
}

/// What happens at a client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// The connection stands.
    Connected(RequestId),
    /// The response begins.
    Head(RequestId),
    /// The load balancer is through with the request.
    Answer(RequestId, Answer),
    /// The last byte was read.
    Read(RequestId, Outcome),
    /// The request's own time limit.
    Timeout(RequestId),
    /// The stream is ended from our side, as asked.
    Stop(RequestId),
    /// The next request of the other traffic.
    Traffic,
}

/// One request.
pub(super) struct Request {
    pub(super) method: Arc<str>,
    pub(super) path: Arc<str>,
    pub(super) body_bytes: u64,
    pub(super) read_rate: Option<f64>,
    keep_body: usize,
    stop_after: Option<Duration>,
    started: Instant,
    connected: Option<Instant>,
    sent: Option<Instant>,
    first_byte: Option<Instant>,
    status: Option<u16>,
    bytes: u64,
    conn: Option<usize>,
    ordinal: u32,
    session: Option<SessionId>,
    over: bool,
    /// Of gtrun itself.
    own: bool,
    reply: Option<oneshot::Sender<HttpResult>>,
    watcher: Option<HttpWatcher>,
    pub(super) attempts: Vec<TruthAttempt>,
    ended: Option<(Instant, Outcome)>,
}

/// A connection of a client to the entry.
#[derive(Debug)]
struct ClientConn {
    conn: ConnId,
    pool: Option<String>,
    used: u32,
    busy: u32,
    closed: bool,
}

/// Every client.
#[derive(Debug, Default)]
pub(super) struct Clients {
    conns: Vec<ClientConn>,
}

impl Model {
    pub(super) fn client_event(&mut self, event: Event) {
        match event {
            Event::Connected(id) => self.client_connected(id),
            Event::Head(id) => self.client_head(id),
            Event::Answer(id, answer) => self.client_answered(id, answer),
            Event::Read(id, outcome) => self.client_ends(id, outcome, None),
            Event::Timeout(id) => self.client_gives_up(id, Outcome::Timeout),
            Event::Stop(id) => self.client_gives_up(id, Outcome::Ok),
            Event::Traffic => self.other_client(),
        }
    }

    /// A request of gtrun.
    pub(super) fn send_request(
        &mut self,
        request: &HttpRequest,
        watcher: Option<HttpWatcher>,
        reply: oneshot::Sender<HttpResult>,
    ) -> RequestId {
        let pool = match &request.connection {
            ConnectionUse::New => None,
            ConnectionUse::Pool(name) => Some((name.clone(), 1)),
            // A connection by name takes one request after the other, HTTP/2 side by side.
            ConnectionUse::Named(name) => Some((name.clone(), u32::MAX)),
        };
        let id = self.new_request(Request {
            method: Arc::from(request.method.as_str()),
            path: Arc::from(request.path.as_str()),
            body_bytes: request.body.as_ref().map_or(0, |b| b.len() as u64),
            read_rate: request.read_rate,
            keep_body: request.keep_body,
            stop_after: request.stop_after,
            started: self.now,
            connected: None,
            sent: None,
            first_byte: None,
            status: None,
            bytes: 0,
            conn: None,
            ordinal: 0,
            session: None,
            over: false,
            own: true,
            reply: Some(reply),
            watcher,
            attempts: Vec::new(),
            ended: None,
        });
        self.after(request.timeout, ModelEvent::Client(Event::Timeout(id)));
        self.client_connects(id, pool);
        id
    }

    fn new_request(&mut self, request: Request) -> RequestId {
        self.requests.push(request);
        RequestId(self.requests.len() - 1)
    }

    fn client_connects(&mut self, id: RequestId, pool: Option<(String, u32)>) {
        let kept = pool.as_ref().and_then(|(name, most)| {
            let free = |c: &ClientConn| !c.closed && c.pool.as_ref() == Some(name) && c.busy < *most;
            self.clients.conns.iter().position(free)
        });
        let index = match kept {
            Some(index) => index,
            None => {
                let conn = self.net.connect(CLIENT, LB, 80, None, &mut self.dice);
                if !self.requests[id.0].own {
                    self.net.conns[conn.0].opener.ip = OTHERS;
                }
                self.net.syn(self.now, conn, true, &mut self.dice);
                let pool = pool.map(|(name, _)| name);
                self.clients.conns.push(ClientConn {
                    conn,
                    pool,
                    used: 0,
                    busy: 0,
                    closed: false,
                });
                self.clients.conns.len() - 1
            }
        };
        let c = &mut self.clients.conns[index];
        c.used += 1;
        c.busy += 1;
        let r = &mut self.requests[id.0];
        r.conn = Some(index);
        r.ordinal = c.used;
        let wait = if kept.is_some() {
            self.dice.micros(5, 20)
        } else {
            self.net.one_way + self.net.one_way + self.dice.spread(40, 110, 500)
        };
        self.after(wait, ModelEvent::Client(Event::Connected(id)));
    }

    fn client_connected(&mut self, id: RequestId) {
        let r = &mut self.requests[id.0];
        if r.over {
            return;
        }
        r.connected = Some(self.now);
        r.sent = Some(self.now);
        let Some(index) = r.conn else { return };
        let first = r.ordinal == 1;
        let conn = self.clients.conns[index].conn;
        let end = self.net.conns[conn.0].opener;
        let bytes = 90 + r.path.len() as u64 + r.body_bytes;
        let stop_after = r.stop_after;
        let remote = format!("{}:80", self.net.hosts[LB.0].ip);
        if let Some(watcher) = &r.watcher {
            let stage = HttpStage::Sending {
                at: self.now,
                local_port: end.port,
                remote,
            };
            self.outbox.push(Told {
                watcher: watcher.clone(),
                stage,
            });
        }
        self.net.data(conn, Side::Opener, bytes);
        let session = self.new_session(id, (end.ip, end.port), first);
        self.requests[id.0].session = Some(session);
        let there = self.net.one_way + self.dice.spread(20, 60, 300);
        self.after(there, ModelEvent::Haproxy(haproxy::Event::Request(session)));
        if let Some(stop) = stop_after {
            self.after(stop, ModelEvent::Client(Event::Stop(id)));
        }
    }

    fn client_head(&mut self, id: RequestId) {
        let now = self.now;
        let r = &mut self.requests[id.0];
        if r.over || r.first_byte.is_some() {
            return;
        }
        r.first_byte = Some(now);
        r.status = Some(200);
        self.tell_answering(id, 200);
    }

    fn tell_answering(&mut self, id: RequestId, status: u16) {
        if let Some(watcher) = &self.requests[id.0].watcher {
            let stage = HttpStage::Answering { at: self.now, status };
            self.outbox.push(Told {
                watcher: watcher.clone(),
                stage,
            });
        }
    }

    fn client_answered(&mut self, id: RequestId, answer: Answer) {
        if self.requests[id.0].over {
            return;
        }
        let now = self.now;
        let sent = self.response_bytes(id);
        let r = &mut self.requests[id.0];
        let (status, bytes, outcome) = match answer {
            Answer::Whole { status } => (
                Some(status),
                sent,
                if status < 400 { Outcome::Ok } else { Outcome::HttpError },
            ),
            Answer::ErrorPage { status } => (Some(status), if status == 504 { 92 } else { 107 }, Outcome::HttpError),
            Answer::Closed => (None, 0, Outcome::ClosedEarly),
            Answer::Cut => (r.status.or(Some(200)), sent, Outcome::Truncated),
        };
        r.status = status;
        r.bytes = bytes;
        if status.is_some() && r.first_byte.is_none() {
            r.first_byte = Some(now);
            self.tell_answering(id, status.unwrap_or(0));
        }
        let r = &self.requests[id.0];
        // A slow reader goes on with what is in its buffers.
        let read = match (r.read_rate, r.first_byte) {
            (Some(rate), Some(first)) => first + Duration::from_secs_f64(bytes as f64 / rate),
            _ => now,
        };
        if read > now {
            self.schedule(read, ModelEvent::Client(Event::Read(id, outcome)));
        } else {
            self.client_ends(id, outcome, None);
        }
    }

    /// Bytes of the body that the load balancer has passed on.
    fn response_bytes(&mut self, id: RequestId) -> u64 {
        let r = &self.requests[id.0];
        let Some(session) = r.session else { return 0 };
        self.session_body(session)
    }

    /// Gives up a request from our side.
    pub(super) fn client_gives_up(&mut self, id: RequestId, outcome: Outcome) {
        if self.requests[id.0].over {
            return;
        }
        if let Some(session) = self.requests[id.0].session {
            let there = self.net.one_way + self.dice.micros(20, 80);
            self.after(
                there,
                ModelEvent::Do(Box::new(move |m: &mut Self| m.session_client_gone(session))),
            );
        }
        self.requests[id.0].bytes = self.response_bytes(id);
        let error = match outcome {
            Outcome::Timeout => Some("the time limit of the request passed".to_owned()),
            _ => None,
        };
        self.client_ends(id, outcome, error);
    }

    fn client_ends(&mut self, id: RequestId, outcome: Outcome, error: Option<String>) {
        let now = self.now;
        let r = &mut self.requests[id.0];
        if std::mem::replace(&mut r.over, true) {
            return;
        }
        r.ended = Some((now, outcome));
        let mut local = None;
        let mut number = None;
        if let Some(index) = r.conn {
            let c = &mut self.clients.conns[index];
            c.busy = c.busy.saturating_sub(1);
            local = Some(self.net.conns[c.conn.0].opener.port);
            number = Some(index as u32 + 1);
            let whole = outcome.whole() == Some(true) && r.status.is_some_and(|s| !matches!(s, 502..=504));
            if c.pool.is_none() || !whole {
                c.closed = true;
                let conn = c.conn;
                let back = now + self.dice.micros(10, 60);
                self.net.fin(now, conn, Side::Opener, &mut self.dice);
                self.net
                    .fin(back + self.net.one_way, conn, Side::Acceptor, &mut self.dice);
            }
        }
        let body = self.body_text(id);
        let r = &mut self.requests[id.0];
        let Some(reply) = r.reply.take() else { return };
        let error = error.or_else(|| match outcome {
            Outcome::ClosedEarly => Some("connection closed before message completed".to_owned()),
            Outcome::Truncated => Some("end of file before message length reached".to_owned()),
            _ => None,
        });
        let result = HttpResult {
            started: r.started,
            connected: r.connected,
            sent: r.sent,
            first_byte: r.first_byte,
            ended: now,
            status: r.status,
            headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
            body,
            bytes: r.bytes,
            outcome,
            local_port: local,
            remote: Some(format!("{}:80", self.net.hosts[LB.0].ip)),
            connection: number,
            ordinal: Some(r.ordinal),
            goaway: None,
            error,
        };
        // Whoever asked may not wait any more.
        let _ = reply.send(result);
    }

    /// The beginning of the body, as far as it was asked for.
    fn body_text(&self, id: RequestId) -> Vec<u8> {
        let r = &self.requests[id.0];
        let title = match r.status {
            Some(502) => "502 Bad Gateway",
            Some(503) => "503 Service Unavailable",
            Some(504) => "504 Gateway Time-out",
            _ => "",
        };
        let text = match r.status {
            None => String::new(),
            Some(200) => format!("ok path={}\n", r.path),
            Some(502..=504) => format!("<html><body><h1>{title}</h1>\n</body></html>\n"),
            Some(status) => format!("{status}\n"),
        };
        let mut bytes = text.into_bytes();
        bytes.truncate(r.keep_body.min(r.bytes as usize));
        bytes
    }

    /// The truth about gtrun's requests.
    pub(super) fn truth_requests(&self) -> Vec<TruthRequest> {
        let own = self.requests.iter().filter(|r| r.own);
        own.map(|r| TruthRequest {
            method: r.method.to_string(),
            path: r.path.to_string(),
            local_port: r
                .conn
                .map_or(0, |c| self.net.conns[self.clients.conns[c].conn.0].opener.port),
            started: r.started,
            ended: r.ended.map(|(at, _)| at),
            outcome: r.ended.map(|(_, outcome)| outcome),
            status: r.status,
            attempts: r.attempts.clone(),
        })
        .collect()
    }

    /// One request of somebody else, and the time of the next.
    fn other_client(&mut self) {
        let path = *self.dice.pick(&["/", "/sleep?seconds=0.05", "/sleep?seconds=0.3"]);
        let id = self.new_request(Request {
            method: Arc::from("GET"),
            path: Arc::from(path),
            body_bytes: 0,
            read_rate: None,
            keep_body: 0,
            stop_after: None,
            started: self.now,
            connected: None,
            sent: None,
            first_byte: None,
            status: None,
            bytes: 0,
            conn: None,
            ordinal: 0,
            session: None,
            over: false,
            own: false,
            reply: None,
            watcher: None,
            attempts: Vec::new(),
            ended: None,
        });
        self.client_connects(id, None);
        self.next_other_client();
    }

    /// Other clients come at random.
    pub(super) fn next_other_client(&mut self) {
        if self.spec.traffic > 0.0 {
            let mean = 1.0 / self.spec.traffic;
            let wait = -mean * self.dice.fraction(1e-9, 1.0).ln();
            self.after(Duration::from_secs_f64(wait), ModelEvent::Client(Event::Traffic));
        }
    }
}

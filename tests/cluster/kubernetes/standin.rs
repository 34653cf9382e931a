//! A stand-in for the API server: answers as it is told, and keeps what it was asked.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use gtrun::language::plan;
use gtrun::world::cluster::SystemClock;
use gtrun::world::cluster::kubernetes::Kubernetes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_util::task::AbortOnDropHandle;

/// A WebSocket as the server has it.
pub(crate) type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// What comes in answer to a request.
pub(crate) enum Reaction {
    /// A whole answer.
    Answer {
        status: u16,
        content_type: &'static str,
        body: Vec<u8>,
    },
    /// A recorded answer: head and body, as `curl -i` shows them.
    Recorded(&'static str),
    /// An answer that comes bit by bit. Its end is a proper one unless it is [`Piece::Break`].
    Stream(mpsc::UnboundedReceiver<Piece>),
    /// The connection is closed without an answer.
    Close,
    /// 101, with v5 of the protocol, and then this.
    Socket(Box<dyn FnOnce(Socket) -> BoxFuture<'static, ()> + Send>),
}

/// A bit of a stream.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(String),
    Break,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: serde_json::Value,
}

impl Asked {
    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }

    pub(crate) fn follows(&self) -> bool {
        self.query.contains("follow=true") || self.query.contains("watch=true")
    }
}

pub(crate) fn json(status: u16, body: &serde_json::Value) -> Reaction {
    Reaction::Answer {
        status,
        content_type: "application/json",
        body: body.to_string().into_bytes(),
    }
}

pub(crate) fn text(status: u16, body: &str) -> Reaction {
    Reaction::Answer {
        status,
        content_type: "text/plain",
        body: body.as_bytes().to_vec(),
    }
}

/// A stream with these pieces, which ends when the sender is dropped.
pub(crate) fn stream(pieces: Vec<Piece>) -> (Reaction, mpsc::UnboundedSender<Piece>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    for piece in pieces {
        sender.send(piece).expect("open");
    }
    (Reaction::Stream(receiver), sender)
}

pub(crate) fn data(text: &str) -> Piece {
    Piece::Data(text.to_owned())
}

type Handler = dyn Fn(&Asked) -> Reaction + Send + Sync;

pub(crate) struct StandIn {
    folder: TempDir,
    asked: Arc<Mutex<Vec<Asked>>>,
    _task: AbortOnDropHandle<()>,
}

impl StandIn {
    pub(crate) async fn start(handler: impl Fn(&Asked) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let folder = TempDir::new().expect("folder");
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{ "name": "test", "cluster": { "server": format!("http://{address}") } }],
            "users": [{ "name": "test", "user": {} }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
        });
        std::fs::write(folder.path().join("config"), config.to_string()).expect("kubeconfig");
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (seen, handler): (_, Arc<Handler>) = (Arc::clone(&asked), Arc::new(handler));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                        react(request, seen, handler)
                    });
                    let connection =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    let _ = connection.with_upgrades().await;
                });
            }
        });
        Self {
            folder,
            asked,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) async fn connect(&self) -> Kubernetes {
        self.connect_with(&crate::environment()).await
    }

    pub(crate) async fn connect_with(&self, environment: &plan::Environment) -> Kubernetes {
        let config = self.folder.path().join("config");
        let clock = Arc::new(SystemClock::start());
        Kubernetes::connect(environment, Some(&config), clock)
            .await
            .expect("kubeconfig")
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("lock").clone()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

type Body = Pin<Box<dyn hyper::body::Body<Data = Bytes, Error = std::io::Error> + Send>>;

fn whole(status: u16, content_type: &str, body: Vec<u8>) -> Response<Body> {
    let body: Body = Box::pin(Full::from(body).map_err(|never: Infallible| match never {}));
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(body)
        .expect("answer")
}

async fn react(
    mut request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Asked>>>,
    handler: Arc<Handler>,
) -> Result<Response<Body>, std::io::Error> {
    let upgrade = hyper::upgrade::on(&mut request);
    let key = request.headers().get("sec-websocket-key").cloned();
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let asked = Asked {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    seen.lock().expect("lock").push(asked.clone());
    Ok(match handler(&asked) {
        Reaction::Answer {
            status,
            content_type,
            body,
        } => whole(status, content_type, body),
        Reaction::Recorded(text) => {
            let (head, body) = text.split_once("\n\n").expect("a head and a body");
            let status = head
                .split_whitespace()
                .nth(1)
                .and_then(|word| word.parse().ok())
                .expect("a status");
            whole(status, "application/json", body.as_bytes().to_vec())
        }
        Reaction::Close => return Err(std::io::Error::other("closed")),
        Reaction::Stream(pieces) => {
            let frames = UnboundedReceiverStream::new(pieces).map(|piece| match piece {
                Piece::Data(text) => Ok(Frame::data(Bytes::from(text))),
                Piece::Break => Err(std::io::Error::other("broken")),
            });
            let body: Body = Box::pin(StreamBody::new(frames));
            Response::builder().status(200).body(body).expect("answer")
        }
        Reaction::Socket(serve) => {
            let accept = derive_accept_key(key.expect("a WebSocket request").as_bytes());
            tokio::spawn(async move {
                let Ok(upgraded) = upgrade.await else { return };
                serve(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await).await;
            });
            let mut answer = whole(101, "text/plain", Vec::new());
            for (name, value) in [
                ("upgrade", "websocket"),
                ("connection", "Upgrade"),
                ("sec-websocket-accept", accept.as_str()),
                ("sec-websocket-protocol", "v5.channel.k8s.io"),
            ] {
                answer.headers_mut().insert(name, value.parse().expect("a value"));
            }
            answer
        }
    })
}

//! Servers that end their connections in every way a client can meet.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// What a server does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    Status503,
    ResetOnAccept,
    CloseOnAccept,
    /// Something that is no TLS, before it is asked.
    SpeaksFirst,
    ResetAfterRequest,
    CloseAfterRequest,
    HalfHeadThenClose,
    HalfHeadThenReset,
    ShortBodyThenClose,
    ShortChunksThenClose,
    ShortBodyThenReset,
    NotHttp,
    NoAnswer,
    SlowBody,
    /// Answers as long as it is asked; `/slow` after 100 ms.
    KeepAlive,
    /// Promises to keep the connection and closes it after the first answer.
    CloseWhenIdle,
    CloseOnSecond,
    ResetOnSecond,
    EndlessEvents,
    Megabyte,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    peers: Vec<SocketAddr>,
    requests: Vec<String>,
    accepted: Option<Instant>,
    last_write: Option<Duration>,
}

impl Server {
    pub(crate) async fn start(ending: Ending) -> Self {
        let socket = TcpSocket::new_v4().expect("socket");
        // What is written is soon with the client, not in a buffer here.
        socket.set_send_buffer_size(16 * 1024).expect("buffer");
        socket.bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let listener = socket.listen(64).expect("listen");
        let address = listener.local_addr().expect("address");
        let seen = Arc::<Mutex<Seen>>::default();
        let ours = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                {
                    let mut seen = ours.lock().expect("lock");
                    seen.peers.push(peer);
                    seen.accepted.get_or_insert_with(Instant::now);
                }
                tokio::spawn(serve(stream, ending, Arc::clone(&ours)));
            }
        });
        Self {
            address,
            seen,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().expect("lock").peers.len()
    }

    pub(crate) fn peer(&self, n: usize) -> SocketAddr {
        self.seen.lock().expect("lock").peers[n]
    }

    /// Heads of the requests as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().expect("lock").requests.clone()
    }

    /// From the first accept to the end of the last write.
    pub(crate) fn last_write(&self) -> Duration {
        self.seen.lock().expect("lock").last_write.expect("written")
    }
}

/// The head of the next request; `None` at the end of the connection.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(bytes).expect("ASCII"))
}

fn reset(stream: TcpStream) {
    stream.set_zero_linger().expect("linger");
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async fn serve(mut stream: TcpStream, ending: Ending, seen: Arc<Mutex<Seen>>) {
    match ending {
        Ending::ResetOnAccept => return reset(stream),
        Ending::CloseOnAccept => {
            let _ = stream.shutdown().await;
            // An unread request would turn the FIN into a RST.
            let _ = stream.read_to_end(&mut Vec::new()).await;
            return;
        }
        Ending::SpeaksFirst => {
            let _ = stream.write_all(b"220 ready\r\n").await;
        }
        _ => (),
    }
    let mut served = 0;
    while let Some(head) = head(&mut stream).await {
        served += 1;
        seen.lock().expect("lock").requests.push(head.clone());
        let pause = || tokio::time::sleep(Duration::from_millis(50));
        let answer: &[u8] = match ending {
            Ending::Whole => OK,
            Ending::Status503 => b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
            Ending::ResetOnAccept | Ending::CloseOnAccept | Ending::SpeaksFirst => return,
            Ending::ResetAfterRequest => return reset(stream),
            Ending::CloseAfterRequest => b"",
            Ending::HalfHeadThenClose | Ending::HalfHeadThenReset => b"HTTP/1.1 200 OK\r\ncontent-le",
            Ending::ShortBodyThenClose | Ending::ShortBodyThenReset | Ending::SlowBody => {
                b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789"
            }
            Ending::ShortChunksThenClose => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
            Ending::NotHttp => b"SSH-2.0-x\r\n\r\n",
            Ending::NoAnswer => {
                let _ = stream.read_u8().await;
                return;
            }
            Ending::KeepAlive => {
                if head.starts_with("GET /slow") {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                let _ = stream.write_all(OK).await;
                continue;
            }
            Ending::CloseWhenIdle => OK,
            Ending::CloseOnSecond | Ending::ResetOnSecond if served == 1 => {
                let _ = stream.write_all(OK).await;
                continue;
            }
            Ending::CloseOnSecond => b"",
            Ending::ResetOnSecond => return reset(stream),
            Ending::EndlessEvents => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let _ = stream.write_all(head).await;
                while stream.write_all(b"data: x\n\n").await.is_ok() {
                    pause().await;
                }
                return;
            }
            Ending::Megabyte => {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
                    .await;
                for _ in 0..100 {
                    let _ = stream.write_all(&[b'x'; 10_000]).await;
                }
                {
                    let mut seen = seen.lock().expect("lock");
                    seen.last_write = seen.accepted.map(|accepted| accepted.elapsed());
                }
                let _ = stream.shutdown().await;
                return;
            }
        };
        let _ = stream.write_all(answer).await;
        match ending {
            Ending::HalfHeadThenReset | Ending::ShortBodyThenReset => {
                pause().await;
                return reset(stream);
            }
            Ending::SlowBody => {
                let _ = stream.read_u8().await;
                return;
            }
            _ => {
                let _ = stream.shutdown().await;
                return;
            }
        }
    }
}

/// Answers over TLS with the name of the handshake and the `Host` that it saw.
pub(crate) struct Tls {
    pub(crate) address: SocketAddr,
    pub(crate) ca_pem: String,
    _task: AbortOnDropHandle<()>,
}

/// A certificate for that name, signed by itself, as a server's configuration.
pub(crate) fn certificate(name: &str, alpn: &[&[u8]]) -> (String, Arc<rustls::ServerConfig>) {
    gtrun::world::cluster::install_provider();
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("certificate");
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("key");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    (made.cert.pem(), Arc::new(config))
}

impl Tls {
    pub(crate) async fn start(name: &str) -> Self {
        let (ca_pem, config) = certificate(name, &[]);
        let acceptor = tokio_rustls::TlsAcceptor::from(config);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let sni = stream.get_ref().1.server_name().unwrap_or("none").to_owned();
                    echo(stream, &sni).await;
                });
            }
        });
        Self {
            address,
            ca_pem,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin, sni: &str) {
    let Some(head) = head(&mut stream).await else { return };
    let host = head.lines().find(|line| line.starts_with("host:")).unwrap_or("none");
    let body = format!("sni {sni}, {host}");
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

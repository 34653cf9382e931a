//! From an address to a connection that speaks HTTP, every step with its own kind of failure.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::entry::Entry;
use super::fault::Fault;
use super::wire::{Observed, Wire};
use crate::evidence::client::Outcome;
use crate::world::port::{Clock, Protocol};

/// A request's body as it is sent.
pub(super) type Body = Full<Bytes>;

/// What a request is written to.
pub(super) enum Sender {
    /// HTTP/1.1: one request at a time.
    H1(http1::SendRequest<Body>),
    /// HTTP/2: a handle that can be cloned.
    H2(http2::SendRequest<Body>),
}

/// An open connection.
pub(super) struct Opened {
    pub(super) sender: Sender,
    pub(super) wire: Arc<Wire>,
    pub(super) local_port: u16,
    pub(super) remote: SocketAddr,
    /// Drives the connection; dropping it closes the socket.
    pub(super) driver: AbortOnDropHandle<()>,
}

/// What is known of an attempt to connect while it goes on, for the record of one that fails.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) local_port: Option<u16>,
    pub(super) remote: Option<SocketAddr>,
}

/// A slow reader must not let the kernel read ahead for it.
const SLOW_RECEIVE_BUFFER: u32 = 16 * 1024;

/// Resolves, connects, shakes hands. The addresses of a name are tried in turn, as long as no connection stands:
/// nothing of the request has been sent until then.
pub(super) async fn open(
    entry: &Entry,
    tls: Option<&TlsConnector>,
    protocol: Protocol,
    slow: bool,
    clock: &Arc<dyn Clock>,
    attempt: &mut Attempt,
) -> Result<Opened, Fault> {
    let (host, port) = &entry.target;
    let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), *port))
        .await
        .map_err(|e| Fault::new(Outcome::DnsError, format!("resolve {host}: {e}")))?
        .collect();
    let mut last = Fault::new(Outcome::DnsError, format!("resolve {host}: no address"));
    for address in addresses {
        attempt.remote = Some(address);
        match tcp(address, slow, &mut attempt.local_port).await {
            Ok(stream) => return shake(entry, tls, protocol, slow, clock, attempt, stream).await,
            Err(error) => last = Fault::connect(address, &error),
        }
    }
    Err(last)
}

/// Connects; the local port is known as soon as the SYN is out, so that a refused attempt has one too.
async fn tcp(address: SocketAddr, slow: bool, port: &mut Option<u16>) -> io::Result<TcpStream> {
    *port = None;
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    if slow {
        socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER)?;
    }
    // The socket is consumed by connecting, and an error takes it away: a second handle tells its port.
    let handle = std::net::TcpStream::from(socket.as_fd().try_clone_to_owned()?);
    let mut connecting = pin!(socket.connect(address));
    let stream = std::future::poll_fn(|cx| {
        let poll = connecting.as_mut().poll(cx);
        if port.is_none() {
            *port = handle.local_addr().ok().map(|local| local.port()).filter(|p| *p != 0);
        }
        match poll {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => Poll::Pending,
        }
    })
    .await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn shake(
    entry: &Entry,
    tls: Option<&TlsConnector>,
    protocol: Protocol,
    slow: bool,
    clock: &Arc<dyn Clock>,
    attempt: &Attempt,
    stream: TcpStream,
) -> Result<Opened, Fault> {
    let address = |result: io::Result<SocketAddr>| result.map_err(|e| Fault::new(Outcome::Reset, e.to_string()));
    let local_port = address(stream.local_addr())?.port();
    let remote = match attempt.remote {
        Some(remote) => remote,
        None => address(stream.peer_addr())?,
    };
    let wire = Wire::new(Arc::clone(clock), protocol == Protocol::H2);
    let io: Pin<Box<dyn Stream>> = match tls {
        None => Box::pin(Observed::new(stream, Arc::clone(&wire))),
        Some(connector) => {
            let name = ServerName::try_from(entry.server_name.clone())
                .map_err(|e| Fault::new(Outcome::TlsError, format!("{}: {e}", entry.server_name)))?;
            let stream = connector.connect(name, stream).await.map_err(|e| Fault::tls(&e))?;
            if protocol == Protocol::H2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                return Err(Fault::new(
                    Outcome::TlsError,
                    "the server does not offer HTTP/2 (ALPN `h2`)",
                ));
            }
            Box::pin(Observed::new(stream, Arc::clone(&wire)))
        }
    };
    let io = TokioIo::new(io);
    let (sender, driver) = match protocol {
        Protocol::H1 => {
            let mut builder = http1::Builder::new();
            if slow {
                builder.max_buf_size(SLOW_RECEIVE_BUFFER as usize);
            }
            let (sender, connection) = builder.handshake(io).await.map_err(|e| Fault::before_head(&e, &wire))?;
            (Sender::H1(sender), tokio::spawn(async move { drop(connection.await) }))
        }
        Protocol::H2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(TokioTimer::new());
            if slow {
                builder.initial_stream_window_size(SLOW_RECEIVE_BUFFER);
                builder.initial_connection_window_size(SLOW_RECEIVE_BUFFER * 4);
            }
            let (sender, connection) = builder.handshake(io).await.map_err(|e| Fault::before_head(&e, &wire))?;
            (Sender::H2(sender), tokio::spawn(async move { drop(connection.await) }))
        }
    };
    Ok(Opened {
        sender,
        wire,
        local_port,
        remote,
        driver: AbortOnDropHandle::new(driver),
    })
}

trait Stream: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

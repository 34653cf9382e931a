//! Ports of a pod, each as one TCP connection over one WebSocket: channel 2i carries the bytes, 2i + 1 what went wrong.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::super::kubelet::PodProcesses;
use super::super::status::Status;
use super::super::timing::FORWARD_HANGS;
use super::channel::{Frame, Receiver, Sender};
use super::request::Query;
use crate::world::lab::namespace::Namespace;

/// Longest piece in one frame.
const PIECE: usize = 32 * 1024;

/// The ports of a query.
///
/// # Errors
/// 400: none, or what is no port.
pub(super) fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let ports: Vec<u16> = query
        .all("ports")
        .flat_map(|p| p.split(','))
        .map(|p| {
            p.trim()
                .parse()
                .map_err(|_| Status::bad_request(format!("unable to parse \"{p}\" as a port")))
        })
        .collect::<Result<_, _>>()?;
    if ports.is_empty() {
        Err(Status::bad_request("query parameter \"ports\" is required"))
    } else {
        Ok(ports)
    }
}

/// What comes from a connection into the pod.
enum FromPod {
    Bytes(u8, Vec<u8>),
    /// The pod's side is over.
    Ended,
}

/// Forwards until one side ends.
pub(super) async fn serve(
    processes: Arc<PodProcesses>,
    terminating: impl Fn() -> bool + Send,
    ports: Vec<u16>,
    mut sender: Sender,
    mut receiver: Receiver,
) {
    let (tell, mut heard) = mpsc::channel(4);
    let mut writers: Vec<Option<OwnedWriteHalf>> = Vec::new();
    for (index, port) in (0u8..).zip(&ports) {
        let (data, error) = (2 * index, 2 * index + 1);
        for channel in [data, error] {
            if sender.send(channel, &port.to_le_bytes()).await.is_err() {
                return;
            }
        }
        match connect(&processes.surroundings.namespace, *port) {
            Ok(stream) => {
                let (mut read, write) = stream.into_split();
                writers.push(Some(write));
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut piece = vec![0; PIECE];
                    while let Ok(size) = read.read(&mut piece).await {
                        if size == 0 || tell.send(FromPod::Bytes(data, piece[..size].to_vec())).await.is_err() {
                            break;
                        }
                    }
                    let _ = tell.send(FromPod::Ended).await;
                });
            }
            Err(why) => {
                writers.push(None);
                let message = format!(
                    "error forwarding port {port} to pod, uid : failed to execute portforward in network namespace: failed \
                     to connect to localhost:{port} inside namespace, IPv4: dial tcp4 127.0.0.1:{port}: connect: {why}"
                );
                if sender.send(error, message.as_bytes()).await.is_err() {
                    return;
                }
                let _ = tell.send(FromPod::Ended).await;
            }
        }
    }
    drop(tell);
    let mut open = ports.len();
    while open > 0 {
        tokio::select! {
            news = heard.recv() => match news {
                Some(FromPod::Bytes(channel, bytes)) => {
                    if sender.send(channel, &bytes).await.is_err() {
                        return;
                    }
                }
                Some(FromPod::Ended) => open -= 1,
                None => break,
            },
            frame = receiver.next() => match frame {
                None => return,
                Some(Frame::Data(channel, bytes)) if channel % 2 == 0 => {
                    if let Some(Some(writer)) = writers.get_mut(usize::from(channel / 2)) {
                        let _ = writer.write_all(&bytes).await;
                    }
                }
                Some(Frame::Data(..) | Frame::Closed(_)) => {}
            },
        }
    }
    // A pod that goes away under its connections leaves them hanging for a while; the end is a plain close.
    if terminating() || *processes.gone().borrow() {
        FORWARD_HANGS.pass().await;
    }
    sender.close().await;
}

/// A connection to loopback within one machine is made or refused at once.
fn connect(within: &Namespace, port: u16) -> Result<TcpStream, String> {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let dial = || {
        let stream = std::net::TcpStream::connect(to)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok::<_, std::io::Error>(stream)
    };
    let stream = within
        .enter(dial)
        .and_then(|dialled| dialled)
        .and_then(TcpStream::from_std);
    stream.map_err(|e| {
        if e.kind() == std::io::ErrorKind::ConnectionRefused {
            "connection refused".to_owned()
        } else {
            e.to_string()
        }
    })
}

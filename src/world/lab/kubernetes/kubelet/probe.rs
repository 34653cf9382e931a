//! Readiness probes: HTTP requests out of the node's own network, also while the pod is terminating.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::super::object::{number, text};
use super::super::timing::FIRST_PROBE;
use crate::world::lab::namespace::Namespace;

/// A container's readiness probe.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    url: String,
    to: SocketAddr,
    path: String,
    timeout: Duration,
    period: Duration,
    failures: i64,
    successes: i64,
}

impl Probe {
    /// Reads `readinessProbe` of a container; none when it has none or one that is no HTTP request.
    pub(crate) fn of(container: &Value, node: Ipv4Addr) -> Option<Self> {
        let probe = container.get("readinessProbe")?;
        let get = probe.get("httpGet")?;
        let port = u16::try_from(number(get, "/port")?).ok()?;
        let host = text(get, "/host").parse().unwrap_or(node);
        let path = text(get, "/path").to_owned();
        let seconds =
            |key: &str, default: i64| Duration::from_secs(number(probe, key).unwrap_or(default).max(1).unsigned_abs());
        Some(Self {
            url: format!("http://{host}:{port}{path}"),
            to: SocketAddr::from((host, port)),
            path,
            timeout: seconds("/timeoutSeconds", 1),
            period: seconds("/periodSeconds", 10),
            failures: number(probe, "/failureThreshold").unwrap_or(3),
            successes: number(probe, "/successThreshold").unwrap_or(1),
        })
    }

    /// Probes until dropped: sets `ready`, and tells `failed` what went wrong. The first probe comes when the kubelet has
    /// noticed the container's start, the others on a rhythm of their own.
    pub(crate) async fn watch(self, network: Namespace, ready: watch::Sender<bool>, failed: impl Fn(String)) {
        let mut rhythm = interval_at(Instant::now() + self.period, self.period);
        rhythm.set_missed_tick_behavior(MissedTickBehavior::Delay);
        FIRST_PROBE.pass().await;
        let (mut good, mut bad) = (0, 0);
        loop {
            match self.ask(&network).await {
                Ok(()) => (good, bad) = (good + 1, 0),
                Err(why) => {
                    (good, bad) = (0, bad + 1);
                    failed(format!("Readiness probe failed: {why}"));
                }
            }
            let now = if good >= self.successes {
                true
            } else if bad >= self.failures {
                false
            } else {
                *ready.borrow()
            };
            ready.send_if_modified(|r| std::mem::replace(r, now) != now);
            rhythm.tick().await;
        }
    }

    async fn ask(&self, network: &Namespace) -> Result<(), String> {
        let url = &self.url;
        let late =
            || format!("Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
        let connect = || {
            let stream = TcpStream::connect_timeout(&self.to, self.timeout)?;
            stream.set_nonblocking(true)?;
            Ok::<_, std::io::Error>(stream)
        };
        // A connection within one machine is made or refused at once.
        let stream = network
            .enter(connect)
            .and_then(|connected| connected)
            .and_then(tokio::net::TcpStream::from_std)
            .map_err(|e| {
                let words = if e.kind() == std::io::ErrorKind::ConnectionRefused {
                    "connect: connection refused".to_owned()
                } else {
                    e.to_string()
                };
                format!("Get \"{url}\": dial tcp {}: {words}", self.to)
            })?;
        let exchange = async {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|e| e.to_string())?;
            let connection = tokio::spawn(connection);
            let request = Request::builder()
                .uri(&self.path)
                .header("host", self.to.to_string())
                .header("user-agent", "kube-probe/1.34")
                .header("connection", "close")
                .body(Empty::<Bytes>::new())
                .map_err(|e| e.to_string())?;
            let status = sender
                .send_request(request)
                .await
                .map_err(|e| format!("Get \"{url}\": {e}"))?
                .status();
            connection.abort();
            if status.is_success() || status.is_redirection() {
                Ok(())
            } else {
                Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()))
            }
        };
        timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(late()))
    }
}

//! One HTTP connection to a port of a pod, through a port-forward over WebSocket.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::Portforwarder;
use tokio_util::task::AbortOnDropHandle;

use super::Kubernetes;
use crate::world::cluster::error;
use crate::world::port::{ErrorKind, PodIdentity, WorldError};

/// Longest wait for a port-forward to stand.
const OPEN: Duration = Duration::from_secs(10);
/// More than this is no answer that anybody asked for.
const MAX_REPLY: usize = 4 * 1024 * 1024;

/// A port-forward with one HTTP connection on it.
pub(super) struct Forward {
    sender: SendRequest<Empty<Bytes>>,
    /// What the kubelet says about the port, once it has something to say.
    fault: BoxFuture<'static, Option<String>>,
    _driver: AbortOnDropHandle<()>,
    _forwarder: Forwarder,
}

/// Ends the WebSocket with it.
struct Forwarder(Portforwarder);

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Forward {
    /// Connects to that port on the pod's loopback.
    pub(super) async fn open(
        kubernetes: &Kubernetes,
        doing: &str,
        pod: &PodIdentity,
        port: u16,
    ) -> Result<Self, WorldError> {
        let open = async {
            kubernetes.confirm(doing, pod).await?;
            let pods: Api<Pod> = Api::namespaced(kubernetes.client.clone(), &kubernetes.namespace);
            let forwarder = pods.portforward(&pod.name, &[port]).await;
            let mut forwarder = Forwarder(forwarder.map_err(|e| error::kubernetes(doing, e))?);
            let (Some(stream), Some(fault)) = (forwarder.0.take_stream(port), forwarder.0.take_error(port)) else {
                return Err(WorldError::new(ErrorKind::Failed, doing, "no stream for the port"));
            };
            let (sender, connection) = handshake(TokioIo::new(stream))
                .await
                .map_err(|e| WorldError::new(ErrorKind::Failed, doing, e.to_string()))?;
            let driver = tokio::spawn(async move { drop(connection.await) });
            Ok(Self {
                sender,
                fault: fault.boxed(),
                _driver: AbortOnDropHandle::new(driver),
                _forwarder: forwarder,
            })
        };
        tokio::time::timeout(OPEN, open)
            .await
            .unwrap_or_else(|_| Err(error::late(doing)))
    }

    /// One GET: the status, and the body when it is 200. After an error the connection is of no use.
    pub(super) async fn get(&mut self, path: &str) -> Result<(u16, Vec<u8>), String> {
        let asked = async {
            self.sender.ready().await.map_err(|e| e.to_string())?;
            let request = http::Request::get(path).header("host", "localhost").body(Empty::new());
            let request = request.map_err(|e| e.to_string())?;
            let response = self.sender.send_request(request).await.map_err(|e| e.to_string())?;
            let status = response.status().as_u16();
            let mut body = response.into_body();
            let mut text = Vec::new();
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame.map_err(|e| e.to_string())?.into_data() {
                    text.extend_from_slice(&data);
                }
                if text.len() > MAX_REPLY {
                    return Err("a reply without an end".to_owned());
                }
            }
            Ok((status, text))
        };
        match asked.await {
            Ok(reply) => Ok(reply),
            // The kubelet's own word, where it gave one, says more than a connection that closed.
            Err(why) => {
                let fault = tokio::time::timeout(Duration::from_millis(20), &mut self.fault).await;
                Err(fault.ok().flatten().map_or(why, |fault| fault.trim().to_owned()))
            }
        }
    }
}

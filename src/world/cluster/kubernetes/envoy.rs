//! Envoy's gauges: one kept HTTP connection through a port-forward; exec and curl where that is not allowed.

use std::sync::Arc;
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
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Kubernetes;
use super::call::encode;
use crate::world::cluster::error;
use crate::world::cluster::kept::{Kept, SAMPLE};
use crate::world::port::{Clock, ErrorKind, PodIdentity, Sample, Sampler, WorldError};

/// Limit of the first question, which decides whether this way works at all.
const FIRST: Duration = Duration::from_secs(10);
/// More than this is no answer of a filtered `/stats`.
const MAX_REPLY: usize = 4 * 1024 * 1024;

impl Kubernetes {
    pub(super) async fn open_envoy(&self, pod: &PodIdentity, filter: &str) -> Result<Box<dyn Sampler>, WorldError> {
        let path = format!("/stats?filter={}", encode(filter));
        match self.forward(pod, path.clone()).await {
            Ok(sampler) => Ok(sampler),
            // No right to, or nobody on the way passes it on: exec needs another right and another way.
            Err(error) if matches!(error.kind, ErrorKind::Refused { .. } | ErrorKind::Failed) => {
                self.exec(pod, &path).await.map_err(|second| {
                    let message = format!("{}; by exec: {}", error.message, second.message);
                    WorldError { message, ..error }
                })
            }
            Err(error) => Err(error),
        }
    }

    async fn forward(&self, pod: &PodIdentity, path: String) -> Result<Box<dyn Sampler>, WorldError> {
        let doing = format!("read Envoy's gauges of {}", pod.name);
        let mut forward = Forward::open(self, &doing, pod).await?;
        let first = tokio::time::timeout(FIRST, forward.ask(&path)).await;
        match first.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok(_) => (),
            // Envoy answers; that nothing matches is for the reader of the sample to say.
            Err(why) if why == EMPTY => (),
            Err(why) => {
                let error = WorldError::new(ErrorKind::Failed, &doing, why);
                return Err(error
                    .with_help("is `workload.envoy_admin` the admin port, on the pod's loopback? (15000 with Istio)"));
            }
        }
        let (kubernetes, pod) = (self.clone(), pod.clone());
        let kept = Kept::new(forward, move || {
            let (kubernetes, doing, pod) = (kubernetes.clone(), doing.clone(), pod.clone());
            async move {
                Forward::open(&kubernetes, &doing, &pod)
                    .await
                    .map_err(|error| error.message)
            }
            .boxed()
        });
        let clock = Arc::clone(&self.clock);
        Ok(Box::new(Gauges { clock, path, kept }))
    }

    async fn exec(&self, pod: &PodIdentity, path: &str) -> Result<Box<dyn Sampler>, WorldError> {
        let doing = format!("read Envoy's gauges of {} by exec", pod.name);
        let url = format!("http://127.0.0.1:{}{path}", self.envoy_admin);
        let request = path.trim_start_matches('/').to_owned();
        let ways: [&[&str]; 2] = [
            &["curl", "-sS", "--max-time", "1", &url],
            &["pilot-agent", "request", "GET", &request],
        ];
        let mut failure = None;
        for way in ways {
            let argv: Vec<String> = way.iter().map(|word| (*word).to_owned()).collect();
            match self.run_command(pod, &self.sidecar, &argv).await {
                Ok(output) if output.exit == 0 => {
                    return Ok(Box::new(Commands {
                        kubernetes: self.clone(),
                        pod: pod.clone(),
                        argv,
                    }));
                }
                Ok(output) => failure = Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(error) if error.kind == ErrorKind::Failed => failure = Some(error.message),
                Err(error) => return Err(error),
            }
        }
        Err(WorldError::new(ErrorKind::Failed, doing, failure.unwrap_or_default()))
    }
}

/// A port-forward with one HTTP connection on it.
struct Forward {
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
    async fn open(kubernetes: &Kubernetes, doing: &str, pod: &PodIdentity) -> Result<Self, WorldError> {
        let open = async {
            kubernetes.confirm(doing, pod).await?;
            let pods: Api<Pod> = Api::namespaced(kubernetes.client.clone(), &kubernetes.namespace);
            let port = kubernetes.envoy_admin;
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
        tokio::time::timeout(FIRST, open)
            .await
            .unwrap_or_else(|_| Err(error::late(doing)))
    }

    /// One question. After an error the connection is of no use, unless it is an answer of Envoy ([`answered`]).
    async fn ask(&mut self, path: &str) -> Result<String, String> {
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
            Ok((200, text)) if text.is_empty() => Err(EMPTY.to_owned()),
            Ok((200, text)) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok((status, _)) => Err(format!("HTTP {status}")),
            // The kubelet's own word, where it gave one, says more than a connection that closed.
            Err(why) => {
                let fault = tokio::time::timeout(Duration::from_millis(20), &mut self.fault).await;
                Err(fault.ok().flatten().map_or(why, |fault| fault.trim().to_owned()))
            }
        }
    }
}

/// Envoy answered, with nothing: the filter matches no gauge.
const EMPTY: &str = "empty reply";

/// Whether this failure is an answer, so that the connection is as good as before.
fn answered(why: &str) -> bool {
    why == EMPTY || why.starts_with("HTTP ")
}

struct Gauges {
    clock: Arc<dyn Clock>,
    path: String,
    kept: Kept<Forward>,
}

impl Sampler for Gauges {
    fn sample(&mut self) -> BoxFuture<'_, Sample> {
        async move {
            let deadline = Instant::now() + SAMPLE;
            let mut sent = self.clock.now();
            let mut reply = Err("timeout".to_owned());
            let mut lost = false;
            match self.kept.get(deadline).await {
                Err(why) => reply = Err(why),
                Ok(forward) => {
                    sent = self.clock.now();
                    match tokio::time::timeout_at(deadline, forward.ask(&self.path)).await {
                        Ok(answer) => {
                            lost = answer.as_ref().is_err_and(|why| !answered(why));
                            reply = answer;
                        }
                        // A late answer would be taken for that to the next question.
                        Err(_) => lost = true,
                    }
                }
            }
            let received = self.clock.now();
            match &reply {
                Err(why) if lost => self.kept.give_up(why),
                Ok(_) => self.kept.proved(),
                Err(_) => (),
            }
            Sample { sent, received, reply }
        }
        .boxed()
    }
}

/// A command a sample: 100 ms of CPU each, and no more than three in a second.
struct Commands {
    kubernetes: Kubernetes,
    pod: PodIdentity,
    argv: Vec<String>,
}

impl Sampler for Commands {
    fn sample(&mut self) -> BoxFuture<'_, Sample> {
        async move {
            let sent = self.kubernetes.clock.now();
            let command = self
                .kubernetes
                .run_command(&self.pod, &self.kubernetes.sidecar, &self.argv);
            let reply = match tokio::time::timeout(SAMPLE, command).await {
                Err(_) => Err("timeout".to_owned()),
                Ok(Err(error)) => Err(error.message),
                Ok(Ok(output)) if output.exit != 0 => Err(format!(
                    "exit {}: {}",
                    output.exit,
                    String::from_utf8_lossy(&output.stderr).trim()
                )),
                Ok(Ok(output)) if output.stdout.is_empty() => Err(EMPTY.to_owned()),
                Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            };
            let received = self.kubernetes.clock.now();
            Sample { sent, received, reply }
        }
        .boxed()
    }
}

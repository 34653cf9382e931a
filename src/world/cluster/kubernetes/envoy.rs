//! Envoy's gauges: one kept HTTP connection through a port-forward; exec and curl where that is not allowed.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::Kubernetes;
use super::call::encode;
use super::forward::Forward;
use crate::world::cluster::kept::{Kept, SAMPLE};
use crate::world::port::{Clock, ErrorKind, PodIdentity, Sample, Sampler, WorldError};

/// Limit of the first question, which decides whether this way works at all.
const FIRST: Duration = Duration::from_secs(10);

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
        let mut forward = Forward::open(self, &doing, pod, self.envoy_admin).await?;
        let first = tokio::time::timeout(FIRST, ask(&mut forward, &path)).await;
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
                Forward::open(&kubernetes, &doing, &pod, kubernetes.envoy_admin)
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

/// One question.
async fn ask(forward: &mut Forward, path: &str) -> Result<String, String> {
    match forward.get(path).await? {
        (200, text) if text.is_empty() => Err(EMPTY.to_owned()),
        (200, text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        (status, _) => Err(format!("HTTP {status}")),
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
                    match tokio::time::timeout_at(deadline, ask(forward, &self.path)).await {
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

//! The pod's own health page, beside the load balancer's checks.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::Kubernetes;
use super::forward::Forward;
use crate::world::cluster::kept::{Kept, SAMPLE};
use crate::world::port::{Clock, PodIdentity, Sample, Sampler, WorldError};

impl Kubernetes {
    pub(super) async fn open_health(&self, pod: &PodIdentity) -> Result<Box<dyn Sampler>, WorldError> {
        let doing = format!("ask the health page of {}", pod.name);
        let forward = Forward::open(self, &doing, pod, self.port).await?;
        let (kubernetes, pod) = (self.clone(), pod.clone());
        let kept = Kept::new(forward, move || {
            let (kubernetes, doing, pod) = (kubernetes.clone(), doing.clone(), pod.clone());
            async move {
                Forward::open(&kubernetes, &doing, &pod, kubernetes.port)
                    .await
                    .map_err(|error| error.message)
            }
            .boxed()
        });
        Ok(Box::new(Page {
            clock: Arc::clone(&self.clock),
            path: self.health_path.clone(),
            kept,
        }))
    }
}

struct Page {
    clock: Arc<dyn Clock>,
    path: String,
    kept: Kept<Forward>,
}

impl Sampler for Page {
    fn sample(&mut self) -> BoxFuture<'_, Sample> {
        async move {
            let deadline = Instant::now() + SAMPLE;
            let mut sent = self.clock.now();
            let reply = match self.kept.get(deadline).await {
                Err(why) => Err(why),
                Ok(forward) => {
                    sent = self.clock.now();
                    match tokio::time::timeout_at(deadline, forward.get(&self.path)).await {
                        Ok(Ok((status, _))) => {
                            self.kept.proved();
                            Ok(status.to_string())
                        }
                        Ok(Err(why)) => {
                            self.kept.give_up(&why);
                            Err(why)
                        }
                        // A late answer would be taken for that to the next question.
                        Err(_) => {
                            self.kept.give_up("timeout");
                            Err("timeout".to_owned())
                        }
                    }
                }
            };
            let received = self.clock.now();
            Sample { sent, received, reply }
        }
        .boxed()
    }
}

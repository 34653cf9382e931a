//! The load balancer's port.

use futures::FutureExt;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::super::Sim;
use super::super::haproxy::log::LogFollower;
use super::Spread;
use super::sampler::{Question, SimSampler};
use crate::world::port::{ErrorKind, LoadBalancer, LogItem, Pending, Sampler, WorldError};

/// A session over SSH takes a while to open.
const OPEN: Spread = (2_000, 20_000, 60_000);
const BACK: Spread = (500, 1_000, 4_000);

fn unsupported(doing: &str, message: &str) -> WorldError {
    WorldError::new(ErrorKind::Unsupported, doing, message)
}

impl LoadBalancer for Sim {
    fn configuration(&self) -> Pending<'_, String> {
        async move { Ok(self.call(OPEN, BACK, |m| m.haproxy_config()).await) }.boxed()
    }

    fn stats(&self) -> Pending<'_, Box<dyn Sampler>> {
        async move {
            if self.call(OPEN, BACK, |m| m.spec.observation.no_lb_stats).await {
                return Err(unsupported("open the statistics socket", "the socket cannot be read"));
            }
            let latency = (2_000, 5_000, 15_000);
            let sampler = SimSampler {
                sim: self.clone(),
                question: Question::ShowStat,
                latency,
            };
            Ok(Box::new(sampler) as Box<dyn Sampler>)
        }
        .boxed()
    }

    fn follow_log(&self) -> Pending<'_, BoxStream<'static, LogItem>> {
        async move {
            let (to, lines) = mpsc::unbounded_channel();
            let hidden = self.call(OPEN, BACK, move |m| {
                let hidden = m.spec.observation.no_lb_log;
                if !hidden {
                    let last_arrival = m.now;
                    m.lb.followers.push(LogFollower { to, last_arrival });
                }
                hidden
            });
            if hidden.await {
                return Err(unsupported(
                    "follow the load balancer's log",
                    "the load balancer writes none",
                ));
            }
            Ok(UnboundedReceiverStream::new(lines).boxed())
        }
        .boxed()
    }
}

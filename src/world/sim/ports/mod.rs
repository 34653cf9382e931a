//! The ports over the model. A call takes some time to get there, does its work in the model, and takes some time back.

use std::future::Future;

use tokio::sync::oneshot;

use super::Sim;
use super::model::{Action, Event, Model};
use crate::time::{Duration, Instant};

mod clock;
mod cluster;
mod hosts;
mod http;
mod load_balancer;
mod sampler;

/// Minimum, median and maximum of a latency, in microseconds.
type Spread = (i64, i64, i64);

impl Sim {
    /// Does something in the model after a drawn time; what it returns arrives after another.
    async fn call<T: Send + 'static>(
        &self,
        there: Spread,
        back: Spread,
        action: impl FnOnce(&mut Model) -> T + Send + 'static,
    ) -> T {
        let (to, answer) = oneshot::channel();
        {
            let mut m = self.model();
            let wait = m.dice.spread(there.0, there.1, there.2);
            let action: Action = Box::new(move |m: &mut Model| {
                let value = action(m);
                let wait = m.dice.spread(back.0, back.1, back.2);
                m.reply(m.now + wait, to, value);
            });
            m.after(wait, Event::Do(action));
        }
        received(answer).await
    }

    /// Ready at a moment of virtual time.
    fn at(&self, at: Instant) -> impl Future<Output = ()> + Send + use<> {
        let (to, answer) = oneshot::channel();
        self.model().reply(at, to, ());
        received(answer)
    }

    /// Ready after a time.
    fn after(&self, wait: Duration) -> impl Future<Output = ()> + Send + use<> {
        let now = self.model().now;
        self.at(now + wait)
    }
}

/// The value, when it comes. A model that is gone never answers.
async fn received<T>(answer: oneshot::Receiver<T>) -> T {
    match answer.await {
        Ok(value) => value,
        Err(_) => std::future::pending().await,
    }
}

impl Model {
    /// Hands over a value at a moment; nobody may be left who waits for it.
    fn reply<T: Send + 'static>(&mut self, at: Instant, to: oneshot::Sender<T>, value: T) {
        self.schedule(
            at,
            Event::Do(Box::new(move |_: &mut Self| {
                let _ = to.send(value);
            })),
        );
    }
}

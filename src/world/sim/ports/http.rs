//! The client's port.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use tokio::sync::oneshot;

use super::super::Sim;
use super::super::client::RequestId;
use super::received;
use crate::evidence::client::Outcome;
use crate::world::port::{HttpClient, HttpRequest, HttpResult, HttpWatcher};

/// Gives the request up when nobody waits for it any more.
struct GivesUp {
    sim: Sim,
    request: RequestId,
}

impl Drop for GivesUp {
    fn drop(&mut self) {
        // Nothing happens when it is over already.
        self.sim.model().client_gives_up(self.request, Outcome::Aborted);
    }
}

impl HttpClient for Sim {
    fn send(&self, request: Arc<HttpRequest>, watcher: Option<HttpWatcher>) -> BoxFuture<'static, HttpResult> {
        let sim = self.clone();
        async move {
            let (to, answer) = oneshot::channel();
            let id = sim.model().send_request(&request, watcher, to);
            let guard = GivesUp {
                sim: sim.clone(),
                request: id,
            };
            let answer = received(answer).boxed();
            let cancelled = request.cancel.cancelled().boxed();
            match select(answer, cancelled).await {
                Either::Left((result, _)) => result,
                Either::Right(((), answer)) => {
                    // The guard ends it; its result is there at once.
                    drop(guard);
                    answer.await
                }
            }
        }
        .boxed()
    }
}

//! Open-loop load: every request is sent at its intended time, whatever became of those before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use crate::evidence::load::LoadRecord;
use crate::time::{Duration, Instant};
use crate::world::port::{ConnectionUse, HttpRequest, HttpResult};

/// What a load does.
pub(super) struct Plan {
    /// Requests in a second.
    pub(super) rate: f64,
    /// Each of them.
    pub(super) request: Arc<HttpRequest>,
    /// Name of its file.
    pub(super) file: String,
}

/// What a load has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) sent: AtomicU64,
    pub(super) whole: AtomicU64,
}

/// The time of the n-th request: from the start, so that no error adds up.
pub(super) fn intended(start: Instant, rate: f64, n: u64) -> Instant {
    start + Duration::from_nanos((n as f64 * 1e9 / rate) as i64)
}

/// Sends until `stop`; the requests that are on their way then are waited for, until they are cancelled.
pub(super) async fn generate(ctx: Context, plan: Plan, stop: CancellationToken, tally: Arc<Tally>) {
    let start = ctx.now();
    let plan = Arc::new(plan);
    let mut going = futures::stream::FuturesUnordered::<BoxFuture<'static, ()>>::new();
    for n in 0u64.. {
        let at = intended(start, plan.rate, n);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return finish(going).await,
                Some(()) = futures::StreamExt::next(&mut going), if !going.is_empty() => {}
                () = ctx.world.clock.sleep_until(at) => break,
            }
        }
        tally.sent.fetch_add(1, Ordering::Relaxed);
        going.push(one(ctx.clone(), Arc::clone(&plan), at, Arc::clone(&tally)).boxed());
    }
}

async fn finish(mut going: futures::stream::FuturesUnordered<BoxFuture<'static, ()>>) {
    while futures::StreamExt::next(&mut going).await.is_some() {}
}

async fn one(ctx: Context, plan: Arc<Plan>, intended: Instant, tally: Arc<Tally>) {
    let result = ctx.world.http.send(Arc::clone(&plan.request), None).await;
    if result.outcome.whole() == Some(true) {
        tally.whole.fetch_add(1, Ordering::Relaxed);
    }
    ctx.recorder
        .record(&plan.file, &record(&plan.request, intended, result));
}

fn record(request: &HttpRequest, intended: Instant, result: HttpResult) -> LoadRecord {
    let kept = match request.connection {
        ConnectionUse::New => false,
        ConnectionUse::Pool(_) | ConnectionUse::Named(_) => true,
    };
    let server = result
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("x-served-by"));
    LoadRecord {
        intended,
        started: result.started,
        connected: result.connected.filter(|_| result.ordinal.is_none_or(|o| o == 1)),
        first_byte: result.first_byte,
        ended: Some(result.ended),
        status: result.status,
        outcome: result.outcome,
        connection: result.connection.filter(|_| kept),
        ordinal: result.ordinal.filter(|_| kept),
        local_port: result.local_port,
        bytes: Some(result.bytes),
        server: server.map(|(_, value)| value.clone()),
        error: result.error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intended_times_do_not_add_up_errors() {
        let start = Instant::from_nanos(0);
        assert_eq!(intended(start, 3.0, 3_000_000), start + Duration::from_secs(1_000_000));
        assert_eq!(intended(start, 8.0, 1), start + Duration::from_millis(125));
    }
}

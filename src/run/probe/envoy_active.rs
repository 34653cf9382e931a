//! Envoy's gauges of every pod that is followed, over a kept connection.

use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::super::target::Target;
use super::Running;
use super::haproxy_stat::after;
use crate::evidence::envoy_stats::parse_reply;
use crate::time::Duration;
use crate::world::port::{Sample, Sampler, WorldError};

/// Gauges, and the counters beside them: an unchanged counter shows that nothing flapped between two samples.
const FILTER: &str = "rq_(active|total)$";

pub(super) async fn start(ctx: &Context, every: Duration) -> Result<Running, WorldError> {
    let mut running = Running::new();
    for pod in ctx.pods.borrow().clone() {
        let sampler = ctx.world.cluster.envoy_stats(&pod.pod, FILTER).await?;
        let part = sample(ctx.clone(), pod, sampler, every, running.stop());
        running.part(ctx, part);
    }
    if ctx.follows_new_pods() {
        let part = newcomers(ctx.clone(), every, running.stop());
        running.part(ctx, part);
    }
    Ok(running)
}

/// Pods that come later are sampled as soon as they are known.
async fn newcomers(ctx: Context, every: Duration, stop: CancellationToken) {
    let mut pods = ctx.pods.subscribe();
    let mut known = pods.borrow_and_update().len();
    let mut inner = Running::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            changed = pods.changed() => if changed.is_err() { break },
        }
        let present = pods.borrow_and_update().clone();
        for pod in present.into_iter().skip(known) {
            known += 1;
            match ctx.world.cluster.envoy_stats(&pod.pod, FILTER).await {
                Ok(sampler) => {
                    let part = sample(ctx.clone(), pod, sampler, every, stop.clone());
                    inner.part(&ctx, part);
                }
                Err(error) => ctx.say(&format!("the gauges of {} are not sampled: {error}", pod.pod.name)),
            }
        }
    }
    for done in inner.done {
        let _ = done.await;
    }
}

async fn sample(ctx: Context, pod: Target, mut sampler: Box<dyn Sampler>, every: Duration, stop: CancellationToken) {
    let file = format!("envoy-active{}.tsv", ctx.suffix(&pod));
    let mut next = ctx.now();
    loop {
        let taken = sampler.sample().await;
        write(&ctx, &pod, &file, &taken);
        if stop.is_cancelled() {
            return;
        }
        next = after(next, every, ctx.now());
        tokio::select! {
            biased;
            // Once more, so that the state after the last step is seen.
            () = stop.cancelled() => {}
            () = ctx.world.clock.sleep_until(next) => {}
        }
    }
}

fn write(ctx: &Context, pod: &Target, file: &str, sample: &Sample) {
    let mut out = format!("{}\t{}\t", sample.sent, sample.received);
    let reading = match &sample.reply {
        Ok(text) => {
            out.push_str(text.trim_end());
            parse_reply(text)
        }
        Err(why) => {
            out.push_str("unknown: ");
            out.push_str(&why.replace('\n', " "));
            crate::evidence::envoy_stats::Reading::Unknown(why.clone())
        }
    };
    out.push('\n');
    ctx.recorder.append(file, out.as_bytes());
    ctx.live
        .update(|s| s.gauges.entry(pod.pod.name.clone()).or_default().read(&reading));
}

//! The target's own health page, asked every so often beside the load balancer.

use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::super::live::Seen;
use super::super::target::Target;
use super::Running;
use super::haproxy_stat::after;
use crate::language::vocabulary::Health;
use crate::time::Duration;
use crate::world::port::{Sample, Sampler, WorldError};

pub(super) async fn start(ctx: &Context, every: Duration) -> Result<Running, WorldError> {
    let mut running = Running::new();
    let pods = ctx.pods.borrow().clone();
    for pod in pods {
        let sampler = ctx.world.cluster.health_page(&pod.pod).await?;
        let part = sample(ctx.clone(), pod, sampler, every, running.stop());
        running.part(ctx, part);
    }
    Ok(running)
}

async fn sample(ctx: Context, pod: Target, mut sampler: Box<dyn Sampler>, every: Duration, stop: CancellationToken) {
    let file = format!("health{}.tsv", ctx.suffix(&pod));
    let mut next = ctx.now();
    let mut before = None;
    loop {
        let taken = sampler.sample().await;
        let health = write(&ctx, &file, &taken);
        if ctx.target().is_none_or(|t| t.pod == pod.pod) {
            ctx.live.update(|s| s.health = Some(health));
            if before == Some(Health::Ok) && health != Health::Ok {
                let pod = Some(pod.pod.name.clone());
                ctx.live.saw(taken.received, Seen::HealthFail { pod });
            }
            before = Some(health);
        }
        if stop.is_cancelled() {
            return;
        }
        next = after(next, every, ctx.now());
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = ctx.world.clock.sleep_until(next) => {}
        }
    }
}

/// `sent TAB received TAB status`.
fn write(ctx: &Context, file: &str, sample: &Sample) -> Health {
    let (text, health) = match &sample.reply {
        Ok(status) => {
            let health = match status.trim().parse::<u16>() {
                Ok(200..=399) => Health::Ok,
                Ok(404) => Health::NotFound,
                Ok(_) => Health::Failing,
                Err(_) => Health::Unreachable,
            };
            (status.trim().to_owned(), health)
        }
        Err(why) => (format!("unknown: {}", why.replace('\n', " ")), Health::Unreachable),
    };
    ctx.recorder
        .line(file, format!("{}\t{}\t{text}", sample.sent, sample.received).as_bytes());
    health
}

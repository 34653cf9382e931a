//! Captures of SYN, FIN and RST on several hosts.

use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::Running;
use crate::time::Duration;
use crate::world::port::{Capture, ErrorKind, WorldError};

pub(super) async fn start(ctx: &Context, hosts: &[String]) -> Result<Running, WorldError> {
    let marker = format!("gtrun-{}", ctx.plan.name);
    // A remote capture ends by itself even if nobody is left who stops it.
    let limit = ctx.plan.timeout + Duration::from_secs(60);
    let starts = hosts
        .iter()
        .map(|host| ctx.world.hosts.start_capture(host, &marker, limit));
    let mut running = Running::new();
    let mut refused = None;
    let mut captures = 0;
    for (host, result) in hosts.iter().zip(join_all(starts).await) {
        match result {
            Ok(capture) => {
                captures += 1;
                let part = carry(ctx.clone(), host.clone(), capture, running.stop());
                running.part(ctx, part);
            }
            Err(error) => {
                ctx.recorder
                    .replace(&format!("rst-{host}.SKIPPED"), format!("{error}\n").as_bytes());
                ctx.say(&format!("no capture on {host}: {error}"));
                refused = Some(error);
            }
        }
    }
    match refused {
        // Some hosts can and others cannot: the evidence says which.
        Some(error) if captures == 0 => Err(error),
        _ if captures == 0 => {
            let message = "no host to capture on; name one under `hosts:`";
            Err(WorldError::new(ErrorKind::Unsupported, "start captures", message))
        }
        _ => Ok(running),
    }
}

async fn carry(ctx: Context, host: String, mut capture: Box<dyn Capture>, stop: CancellationToken) {
    let file = format!("rst-{host}.pcap");
    loop {
        let more = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            more = capture.next() => more,
        };
        match more {
            Some(bytes) => ctx.recorder.append(&file, &bytes),
            None => break,
        }
    }
    if !stop.is_cancelled() {
        ctx.say(&format!("the capture on {host} ended by itself"));
    }
    let end = capture.finish().await;
    ctx.recorder.append(&file, &end.rest);
    ctx.recorder.replace(&format!("rst-{host}.err"), end.words.as_bytes());
    if let Some(fault) = end.fault {
        ctx.say(&format!("the capture on {host} is not whole: {fault}"));
        ctx.recorder
            .append(&format!("rst-{host}.err"), format!("gtrun: {fault}\n").as_bytes());
    }
}

//! Watches of the API: pods, EndpointSlices, events and the Deployment, each event with its arrival.

use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::super::live::watch::Watched as State;
use super::super::target::Target;
use super::Running;
use crate::evidence::pod_watch::parse_event;
use crate::world::facts::PodFacts;
use crate::world::port::{WatchItem, Watched, WorldError};

pub(super) async fn start(ctx: &Context) -> Result<Running, WorldError> {
    let mut running = Running::new();
    let kinds = [
        (Watched::Pods, "pod-watch.jsonl"),
        (Watched::EndpointSlices, "endpointslice-watch.jsonl"),
        (Watched::Events, "events-watch.jsonl"),
        (Watched::Deployment, "deployment-watch.jsonl"),
    ];
    for (what, file) in kinds {
        match ctx.world.cluster.watch(what).await {
            Ok(items) => {
                let part = follow(ctx.clone(), what, file, items, running.stop());
                running.part(ctx, part);
            }
            // Pods are what the probe is for; the others add to it.
            Err(error) if what == Watched::Pods => return Err(error),
            Err(error) => ctx.say(&format!("{file} is not written: {error}")),
        }
    }
    Ok(running)
}

async fn follow(
    ctx: Context,
    what: Watched,
    file: &'static str,
    mut items: BoxStream<'static, WatchItem>,
    stop: CancellationToken,
) {
    let mut state = State::default();
    loop {
        let item = tokio::select! {
            biased;
            item = items.next() => item,
            () = stop.cancelled() => {
                // The watch stood until now: what did not come did not happen.
                ctx.recorder.record(file, &json!({"arrival": ctx.now(), "type": "CONTACT"}));
                return;
            }
        };
        let record = match item {
            Some(WatchItem::Contact { arrival }) => json!({"arrival": arrival, "type": "CONTACT"}),
            Some(WatchItem::Gap { arrival, reason }) => {
                ctx.say(&format!("{file} has a gap: {reason}"));
                json!({"arrival": arrival, "type": "GAP", "reason": reason})
            }
            Some(WatchItem::Event { arrival, kind, object }) => {
                if what == Watched::Pods && kind != "DELETED" {
                    meet(&ctx, &object);
                }
                json!({"arrival": arrival, "type": kind, "object": object})
            }
            None => return,
        };
        let line = record.to_string();
        ctx.recorder.line(file, line.as_bytes());
        if what != Watched::Events
            && let Ok(event) = parse_event(line.as_bytes())
            && let Some(change) = &event.change
        {
            state.see(&ctx.live, event.arrival, change);
        }
    }
}

/// A pod that was not there at the start and runs now is followed from now on.
fn meet(ctx: &Context, object: &serde_json::Value) {
    if !ctx.follows_new_pods() {
        return;
    }
    let Some(pod) = PodFacts::from_object(object.clone()) else {
        return;
    };
    let known = ctx.pods.borrow().iter().any(|p| p.pod == pod.identity);
    if !known && pod.phase == "Running" && !pod.terminating() {
        let target = Target::of(&pod, &ctx.plan.environment);
        ctx.pods.send_modify(|pods| pods.push(target));
    }
}

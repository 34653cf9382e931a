//! A container's log of every pod that is followed, with the runtime's stamps and the arrival beside it.

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::super::live::Seen;
use super::super::target::Target;
use super::Running;
use super::haproxy_log::LINGER;
use crate::evidence::envoy_log::{self, EnvoyEvent, JsonKeys};
use crate::evidence::hc_log::{self, FsmNames, HcEvent};
use crate::language::Id;
use crate::time::Instant;
use crate::world::port::{LogEnd, LogItem, WorldError};

/// What a probe of this kind knows of itself.
#[derive(Clone)]
struct Source {
    probe: Id,
    /// Key of the environment's `containers`.
    key: Id,
    /// Name in the pod.
    container: String,
    /// Of the file.
    stem: String,
}

pub(super) async fn start(ctx: &Context, probe: &Id, key: &Id) -> Result<Running, WorldError> {
    let source = Source {
        probe: probe.clone(),
        key: key.clone(),
        container: ctx.container(key),
        stem: stem(ctx, probe, key),
    };
    let mut running = Running::new();
    for pod in ctx.pods.borrow().clone() {
        let items = ctx.world.cluster.follow_log(&pod.pod, &source.container, None).await?;
        let part = follow(ctx.clone(), source.clone(), pod, items, running.stop());
        running.part(ctx, part);
    }
    if ctx.follows_new_pods() {
        let part = newcomers(ctx.clone(), source, running.stop());
        running.part(ctx, part);
    }
    Ok(running)
}

/// The log of a known container has a known name; a second probe on the same container has its own.
fn stem(ctx: &Context, probe: &Id, key: &Id) -> String {
    use crate::language::plan::ProbeKind;
    let known = match key.as_str() {
        "hc" => "hc",
        "sidecar" => "envoy",
        "app" => "app",
        _ => return probe.to_string(),
    };
    let same = |kind: &ProbeKind| matches!(kind, ProbeKind::ContainerLog { container } if container == key);
    let first = ctx.plan.probes.iter().find(|p| same(&p.kind));
    if first.is_some_and(|p| p.name == *probe) {
        known.to_owned()
    } else {
        probe.to_string()
    }
}

/// The logs of pods that come later are read from their beginning.
async fn newcomers(ctx: Context, source: Source, stop: CancellationToken) {
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
            let since = Some(Instant::from_nanos(0));
            match ctx.world.cluster.follow_log(&pod.pod, &source.container, since).await {
                Ok(items) => {
                    let part = follow(ctx.clone(), source.clone(), pod, items, stop.clone());
                    inner.part(&ctx, part);
                }
                Err(error) => ctx.say(&format!(
                    "{} of {} is not followed: {error}",
                    source.container, pod.pod.name
                )),
            }
        }
    }
    for done in inner.done {
        let _ = done.await;
    }
}

async fn follow(
    ctx: Context,
    source: Source,
    pod: Target,
    mut items: BoxStream<'static, LogItem>,
    stop: CancellationToken,
) {
    let file = format!("{}{}.log", source.stem, ctx.suffix(&pod));
    let arrivals = format!("{file}.arrival.tsv");
    let fsm = &ctx.plan.environment.fsm;
    let aliases: Vec<_> = fsm.aliases.iter().map(|(a, b)| (a.clone(), b.clone())).collect();
    let names = FsmNames::new(&fsm.states, &aliases);
    let keys = JsonKeys::new(&[]);
    // The files are there from the beginning: empty ones say that nothing was logged.
    ctx.recorder.append(&file, b"");
    ctx.recorder.append(&arrivals, b"");
    let mut end = std::pin::pin!(async {
        stop.cancelled().await;
        ctx.sleep(LINGER).await;
    });
    loop {
        let item = tokio::select! {
            biased;
            item = items.next() => item,
            () = &mut end => return,
        };
        match item {
            Some(LogItem::Line { arrival, runtime, text }) => {
                ctx.recorder.line(&file, &text);
                let mut line = format!("{arrival}\t").into_bytes();
                if let Some(runtime) = runtime {
                    line.extend_from_slice(runtime.as_bytes());
                    line.push(b' ');
                }
                line.extend_from_slice(&text);
                ctx.recorder.line(&arrivals, &line);
                see(&ctx, &source, &pod, arrival, &text, &names, &keys);
            }
            Some(LogItem::Gap { arrival, reason }) => {
                ctx.recorder
                    .line(&arrivals, format!("{arrival}\tgap: {reason}").as_bytes());
                ctx.say(&format!("{file} has a gap: {reason}"));
            }
            Some(LogItem::End { arrival, why }) => {
                let code = match &why {
                    LogEnd::ContainerEnded => 0,
                    LogEnd::PodGone | LogEnd::Lost(_) => 1,
                };
                ctx.recorder
                    .line(&arrivals, format!("{arrival}\texit: {code}").as_bytes());
                match why {
                    LogEnd::ContainerEnded => {
                        let (pod, container) = (pod.pod.name.clone(), source.key.clone());
                        ctx.live.saw(arrival, Seen::ContainerExit { pod, container });
                    }
                    LogEnd::PodGone => ctx.say(&format!("{file}: the pod was gone before its log was read to the end")),
                    LogEnd::Lost(reason) => ctx.say(&format!("{file}: the follower was lost: {reason}")),
                }
                return;
            }
            None => return,
        }
    }
}

fn see(ctx: &Context, source: &Source, pod: &Target, at: Instant, text: &[u8], names: &FsmNames, keys: &JsonKeys) {
    let name = || pod.pod.name.clone();
    let shown = String::from_utf8_lossy(text).into_owned();
    ctx.live.saw(
        at,
        Seen::Line {
            probe: source.probe.clone(),
            text: shown,
        },
    );
    if source.key == "sidecar" {
        match envoy_log::parse_line(text, keys) {
            Some(envoy_log::ParsedLine::Request(request)) => {
                let health = &ctx.plan.environment.workload.health_path;
                let path = request.path.as_deref().and_then(|p| p.split('?').next());
                if let (true, Some(cluster)) = (path == Some(health.as_str()), &request.cluster) {
                    ctx.live
                        .update(|s| s.gauges.entry(name()).or_default().check_goes_to(cluster));
                }
            }
            Some(envoy_log::ParsedLine::Event(_, EnvoyEvent::Sigterm)) => {
                ctx.live.saw(
                    at,
                    Seen::Sigterm {
                        pod: name(),
                        container: source.key.clone(),
                    },
                );
            }
            Some(envoy_log::ParsedLine::Event(..)) | None => {}
        }
        return;
    }
    let Some(line) = hc_log::parse_line(text, names) else {
        return;
    };
    let seen = match line.what {
        HcEvent::Transition { from, to } => Seen::Transition { pod: name(), from, to },
        HcEvent::DrainListeners { .. } => Seen::DrainListeners { pod: name() },
        HcEvent::Health { to, .. } if to >= 400 => Seen::HealthFail { pod: Some(name()) },
        HcEvent::Sigterm => Seen::Sigterm {
            pod: name(),
            container: source.key.clone(),
        },
        HcEvent::Start { .. }
        | HcEvent::Health { .. }
        | HcEvent::Poll { .. }
        | HcEvent::DrainTimeout
        | HcEvent::PreStop { .. }
        | HcEvent::Exiting
        | HcEvent::AgentActive { .. }
        | HcEvent::Other(_) => return,
    };
    ctx.live.saw(at, seen);
}

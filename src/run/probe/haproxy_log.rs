//! HAProxy's log, raw lines as it wrote them.

use futures::StreamExt;
use futures::stream::BoxStream;

use super::super::context::Context;
use super::super::live::Seen;
use super::Running;
use crate::evidence::haproxy_log::{HaproxyEvent, Parser, ServerChange};
use crate::language::Id;
use crate::language::expression::LbChange;
use crate::time::Duration;
use crate::world::port::{LogItem, WorldError};

const FILE: &str = "haproxy.log";

/// Lines on their way when the run ends are waited for this long.
pub(super) const LINGER: Duration = Duration::from_millis(250);

pub(super) async fn start(ctx: &Context, name: &Id) -> Result<Running, WorldError> {
    let lines = ctx.world.load_balancer.follow_log().await?;
    // The file is there from the beginning: an empty one says that nothing was logged.
    ctx.recorder.append(FILE, b"");
    let mut running = Running::new();
    let stop = running.stop();
    running.part(ctx, follow(ctx.clone(), name.clone(), lines, stop));
    Ok(running)
}

async fn follow(
    ctx: Context,
    name: Id,
    mut lines: BoxStream<'static, LogItem>,
    stop: tokio_util::sync::CancellationToken,
) {
    let config = ctx.world.load_balancer.configuration().await.ok();
    let config = config.map(|text| crate::evidence::haproxy_config::parse(&text, crate::evidence::FileId(0)).0);
    let mut parser = Parser::new(config.as_ref(), None);
    parser.set_near(ctx.now());
    let mut end = std::pin::pin!(async {
        stop.cancelled().await;
        ctx.sleep(LINGER).await;
    });
    loop {
        let item = tokio::select! {
            biased;
            item = lines.next() => item,
            () = &mut end => return,
        };
        match item {
            Some(LogItem::Line { arrival, text, .. }) => {
                ctx.recorder.line(FILE, &text);
                see(&ctx, &name, &mut parser, arrival, &text);
            }
            Some(LogItem::Gap { reason, .. }) => ctx.say(&format!("the load balancer's log has a gap: {reason}")),
            Some(LogItem::End { why, .. }) => {
                ctx.say(&format!("the load balancer's log ended: {why:?}"));
                return;
            }
            None => return,
        }
    }
}

fn see(ctx: &Context, name: &Id, parser: &mut Parser, at: crate::time::Instant, text: &[u8]) {
    let shown = String::from_utf8_lossy(text).into_owned();
    ctx.live.saw(
        at,
        Seen::Line {
            probe: name.clone(),
            text: shown,
        },
    );
    let Some(line) = parser.line(text) else { return };
    let backend = &ctx.plan.environment.load_balancer.backend;
    match line.what {
        HaproxyEvent::ServerState(state) if *state.backend == **backend => {
            let change = match state.to {
                ServerChange::Down | ServerChange::DownByTracking => LbChange::Down,
                ServerChange::Up | ServerChange::Running | ServerChange::LeavingMaint | ServerChange::LeavingDrain => {
                    LbChange::Up
                }
                ServerChange::Stopping => LbChange::Nolb,
                ServerChange::Maint => LbChange::Maint,
                ServerChange::Drain => LbChange::Drain,
            };
            ctx.live.saw(
                at,
                Seen::Lb {
                    server: state.server.to_string(),
                    change,
                },
            );
        }
        HaproxyEvent::HealthCheck(check) if *check.backend == **backend && !check.ok => {
            let target = ctx.target().and_then(|t| t.server);
            if target.as_deref() == Some(&*check.server) {
                ctx.live.saw(at, Seen::HealthFail { pod: None });
            }
        }
        HaproxyEvent::ProxyStopped(_) => ctx.live.saw(at, Seen::LbReload),
        HaproxyEvent::ServerState(_)
        | HaproxyEvent::HealthCheck(_)
        | HaproxyEvent::Request(_)
        | HaproxyEvent::ProxyStarted(_)
        | HaproxyEvent::NoServer(_) => {}
    }
}

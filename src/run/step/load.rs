//! `load`: open-loop load in the background.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::End;
use crate::language::plan::{Connections, Load, LoadEnd, Protocol as PlanProtocol, Step};
use crate::run::context::Context;
use crate::run::live::Seen;
use crate::run::load::{Plan, Tally, generate};
use crate::world::port::{ConnectionUse, HttpRequest, Protocol};

pub(super) async fn run(ctx: &Context, step: &Step, name: &str, verb: &Load) -> End {
    let request = match build(ctx, name, verb) {
        Ok(request) => request,
        Err(end) => return end,
    };
    let shown = format!("load {}/s {} {}", verb.rate, request.method, request.path);
    let plan = Plan {
        rate: verb.rate,
        request,
        file: format!("load-{name}.jsonl"),
    };
    let stop = ctx.stop_traffic.child_token();
    let tally = Arc::new(Tally::default());
    let going = generate(ctx.clone(), plan, stop.clone(), Arc::clone(&tally));
    // The end is a condition of its own, so that the generator's beat does not depend on it.
    let (ctx2, end) = (ctx.clone(), verb.end.clone());
    ctx.tasks.spawn(async move {
        match end {
            LoadEnd::Duration(d) => ctx2.sleep(d).await,
            LoadEnd::Until(until) => {
                ctx2.live
                    .until(|| (ctx2.holds(&until, None) == Some(true)).then_some(()))
                    .await;
            }
            LoadEnd::Steps => std::future::pending().await,
        }
        stop.cancel();
    });
    let (ctx3, id, name) = (ctx.clone(), step.id.clone(), name.to_owned());
    ctx.loads.send_modify(|n| *n += 1);
    ctx.tasks.spawn(async move {
        going.await;
        let (sent, whole) = (tally.sent.load(Ordering::Relaxed), tally.whole.load(Ordering::Relaxed));
        ctx3.say(&format!("{name}: {sent} requests, {whole} answered whole"));
        if let Some(id) = id {
            ctx3.live.saw(ctx3.now(), Seen::Over { id, whole: None });
        }
        ctx3.loads.send_modify(|n| *n -= 1);
    });
    End::ok(format!("{shown} in the background"))
}

fn build(ctx: &Context, name: &str, verb: &Load) -> Result<Arc<HttpRequest>, End> {
    let mut headers = Vec::new();
    for header in &verb.headers {
        headers.push((header.name.clone(), ctx.fill(&header.value)?));
    }
    Ok(Arc::new(HttpRequest {
        method: verb.method.as_str().to_owned(),
        path: ctx.fill(&verb.path)?,
        headers,
        body: verb.body.as_ref().map(|b| ctx.fill(b)).transpose()?,
        timeout: verb.request_timeout,
        connection: match verb.connections {
            Connections::New => ConnectionUse::New,
            Connections::Reused => ConnectionUse::Pool(format!("load-{name}")),
        },
        protocol: match verb.protocol {
            PlanProtocol::H1 => Protocol::H1,
            PlanProtocol::H2 => Protocol::H2,
        },
        read_rate: None,
        stop_after: None,
        // Requests that are on their way when the steps end are waited for.
        cancel: ctx.abort_traffic.child_token(),
        keep_body: 0,
    }))
}

//! `snapshot`: HAProxy's statistics now.

use super::End;
use crate::language::plan::Snapshot;
use crate::run::context::Context;
use crate::world::port::{ErrorKind, WorldError};

pub(super) async fn run(ctx: &Context, verb: &Snapshot) -> End {
    let mut sampler = match ctx.world.load_balancer.stats().await {
        Ok(sampler) => sampler,
        Err(error) => return End::failed(&error),
    };
    match sampler.sample().await.reply {
        Ok(text) => {
            let file = format!("haproxy-stat-{}.csv", verb.name);
            ctx.recorder.replace(&file, text.as_bytes());
            End::ok(format!("snapshot {file}"))
        }
        Err(why) => End::failed(&WorldError::new(
            ErrorKind::Failed,
            "read the load balancer's statistics",
            why,
        )),
    }
}

//! The hosts' clocks, read after the last step; preflight has read them before the first.

use futures::future::join_all;

use super::super::context::Context;

/// Reads every host's clock into `clocks.jsonl`. A clock that cannot be read leaves what is stamped with it untied.
pub(super) async fn exchange(ctx: &Context) {
    let hosts = ctx.world.hosts.list();
    let reads = hosts.iter().map(|host| ctx.world.hosts.exchange_clocks(&host.name));
    for (host, result) in hosts.iter().zip(join_all(reads).await) {
        match result {
            Ok(exchanges) => exchanges.iter().for_each(|e| ctx.recorder.record("clocks.jsonl", e)),
            Err(error) => ctx.say(&format!("the clock of {} was not read: {error}", host.name)),
        }
    }
}

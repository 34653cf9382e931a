//! `exec`: a command in a container of the target.

use super::{End, command, no_target};
use crate::language::plan::Exec;
use crate::run::context::Context;

pub(super) async fn run(ctx: &Context, verb: &Exec) -> End {
    let Some(target) = ctx.target() else { return no_target() };
    let argv = match command::argv(ctx, &verb.argv) {
        Ok(argv) => argv,
        Err(end) => return end,
    };
    let container = ctx.container(&verb.container);
    let output = ctx.world.cluster.exec(&target.pod, &container, &argv).await;
    let shown = format!("exec in {container}: {}", argv.join(" "));
    command::end(ctx, &shown, output, verb.save_as.as_deref()).on(target)
}

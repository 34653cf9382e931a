//! `ssh`: a command on a host.

use super::{End, command};
use crate::language::plan::Ssh;
use crate::run::context::Context;

pub(super) async fn run(ctx: &Context, verb: &Ssh) -> End {
    let host = match ctx.fill(&verb.host) {
        Ok(host) => host,
        Err(error) => return error.into(),
    };
    let argv = match command::argv(ctx, &verb.argv) {
        Ok(argv) => argv,
        Err(end) => return end,
    };
    let output = ctx.world.hosts.run(&host, &argv, verb.sudo).await;
    let sudo = if verb.sudo { "sudo " } else { "" };
    let shown = format!("{host}: {sudo}{}", argv.join(" "));
    command::end(ctx, &shown, output, verb.save_as.as_deref())
}

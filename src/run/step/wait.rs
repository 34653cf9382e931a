//! `wait`: a fixed time.

use super::End;
use crate::language::plan::Wait;
use crate::run::context::Context;

pub(super) async fn run(ctx: &Context, verb: &Wait) -> End {
    ctx.sleep(verb.duration).await;
    End::ok(format!("waited {}", verb.duration))
}

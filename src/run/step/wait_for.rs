//! `wait_for`: until an event has happened or a condition holds.

use super::End;
use crate::language::plan::WaitFor;
use crate::run::context::Context;

pub(super) async fn run(ctx: &Context, verb: &WaitFor) -> End {
    let since = ctx.now();
    ctx.live
        .until(|| (ctx.holds(&verb.condition, None) == Some(true)).then_some(()))
        .await;
    End::ok(format!("`{}` after {}", verb.condition.text, shown(ctx.now() - since)))
}

/// Milliseconds are enough for a person.
fn shown(d: crate::time::Duration) -> String {
    format!("{:.3} s", d.as_secs_f64())
}

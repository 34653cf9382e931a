//! `mark`: a named event on the timeline.

use super::End;
use crate::language::plan::Mark;
use crate::run::context::Context;
use crate::run::live::Seen;

pub(super) async fn run(ctx: &Context, verb: &Mark) -> End {
    ctx.live.saw(ctx.now(), Seen::Mark(verb.name.clone()));
    let mut end = End::ok(format!("mark {}", verb.name));
    end.results.insert(
        crate::language::vocabulary::StepField::Stdout,
        crate::run::live::Value::Text(verb.name.to_string()),
    );
    end
}

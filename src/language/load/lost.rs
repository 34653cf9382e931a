//! Steps whose names are known although something in them is wrong.

use crate::language::Id;
use crate::language::expression::StepShape;
use crate::language::plan::resolve::LostStep;
use crate::language::source::Node;

/// Every step of a tree that has an id, right or wrong.
pub(super) fn steps(node: &Node, out: &mut Vec<LostStep>) {
    let id = node.entry("id").and_then(|entry| entry.value.text()).and_then(Id::new);
    if let Some(id) = id {
        out.push(LostStep { id, shape: shape(node) });
    }
    node.items().iter().for_each(|item| steps(item, out));
    node.entries().iter().for_each(|entry| steps(&entry.value, out));
}

fn shape(step: &Node) -> StepShape {
    let has = |verb: &str| step.entry(verb).is_some();
    if has("load") {
        StepShape::Load
    } else if has("delete_pod") || has("evict_pod") || has("scale") {
        StepShape::Api
    } else if has("exec") || has("ssh") {
        StepShape::Command
    } else if has("poll") {
        StepShape::PollHttp
    } else if step.entries().iter().any(|entry| entry.key.starts_with("req")) {
        StepShape::Request
    } else {
        StepShape::Other
    }
}

//! Cuts out of a tree what is wrong, and nothing else.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use super::pointer;
use crate::language::source::{Node, NodeKind, Segment};

/// A place to cut out.
pub(super) type Cut = Vec<Segment>;

/// What an error makes unusable: unknown keys themselves, otherwise the value.
pub(super) fn cuts(error: &ValidationError<'_>) -> Vec<Cut> {
    let at = pointer(error);
    let below = |key: &str| at.iter().cloned().chain([Segment::Key(key.to_owned())]).collect();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.iter().map(|key| below(key)).collect(),
        ValidationErrorKind::PropertyNames { error } => error.instance().as_str().map(below).into_iter().collect(),
        _ => vec![at],
    }
}

/// Cuts the places out, later items of a list first. False when the root itself is wrong.
pub(super) fn prune(root: &mut Node, wrong: &BTreeSet<Cut>) -> bool {
    let mut cut = true;
    for at in wrong.iter().rev() {
        let Some((last, parent)) = at.split_last() else {
            return false;
        };
        let Some(node) = find(root, parent) else { continue };
        match (&mut node.kind, last) {
            (NodeKind::List(items), Segment::Index(index)) if *index < items.len() => {
                items.remove(*index);
            }
            (NodeKind::Map(entries), Segment::Key(key)) => entries.retain(|entry| &entry.key != key),
            _ => cut = false,
        }
    }
    cut
}

fn find<'a>(root: &'a mut Node, at: &[Segment]) -> Option<&'a mut Node> {
    at.iter()
        .try_fold(root, |node, segment| match (&mut node.kind, segment) {
            (NodeKind::List(items), Segment::Index(index)) => items.get_mut(*index),
            (NodeKind::Map(entries), Segment::Key(key)) => entries
                .iter_mut()
                .find(|entry| &entry.key == key)
                .map(|entry| &mut entry.value),
            _ => None,
        })
}

//! Keys that stand twice in a mapping.

use std::collections::HashMap;

use super::{Bytes, Node, NodeKind, span};
use crate::diagnostic::{Code, Diagnostic, FileId};

/// Reports every key that stands twice and drops the later ones.
pub(super) fn take(root: &mut Node, file: FileId) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    walk(root, file, &mut out);
    out
}

fn walk(node: &mut Node, file: FileId, out: &mut Vec<Diagnostic>) {
    match &mut node.kind {
        NodeKind::List(items) => items.iter_mut().for_each(|item| walk(item, file, out)),
        NodeKind::Map(entries) => {
            let mut seen: HashMap<String, Bytes> = HashMap::new();
            entries.retain_mut(|entry| {
                walk(&mut entry.value, file, out);
                let Some(first) = seen.get(&entry.key) else {
                    seen.insert(entry.key.clone(), entry.key_at);
                    return true;
                };
                let diagnostic = Diagnostic::error(
                    Code::DuplicateKey,
                    format!("`{}` stands twice in the same mapping", entry.key),
                )
                .at(span(file, entry.key_at), "again here")
                .at(span(file, *first), "first here")
                .help("keep one; a later key never silently replaces an earlier one");
                // A key that an alias brings in twice is one mistake, at one place.
                if !out.contains(&diagnostic) {
                    out.push(diagnostic);
                }
                false
            });
        }
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Text(_) => {}
    }
}

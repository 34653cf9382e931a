//! Keys that do not exist where they stand.

use super::report::Report;
use super::{place, words};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::nearest::nearest;
use crate::language::source::{Entry, Node, Segment};

impl Report<'_> {
    pub(super) fn unknown_key(&self, at: &[Segment], parent: &Node, entry: &Entry) -> Diagnostic {
        let span = self.tree.span(entry.key_at);
        let definition = self.shape.definition(at);
        if let Some(pattern) = definition.as_ref().and_then(place::Definition::key_pattern) {
            return words::bad_name(&entry.key, &pattern, span);
        }
        let known = definition.as_ref().map(place::Definition::keys).unwrap_or_default();
        let what = self.shape.name_of(at);
        let close = nearest(&entry.key, known.iter().map(String::as_str)).map(|key| format!("did you mean `{key}`?"));
        let help = close.or_else(|| self.belongs(at, parent, &entry.key));
        let all = || format!("keys here are {}", known.join(", "));
        Diagnostic::error(Code::UnknownKey, format!("{what} has no key `{}`", entry.key))
            .at(span, "unknown here")
            .help(help.unwrap_or_else(all))
    }

    /// Where a key would be right: inside a neighbour, one level up, or somewhere else.
    fn belongs(&self, at: &[Segment], parent: &Node, key: &str) -> Option<String> {
        let has = |place: &[Segment]| {
            self.shape
                .definition(place)
                .is_some_and(|found| found.keys().iter().any(|k| k == key))
        };
        for entry in parent.entries() {
            let inside: Vec<Segment> = at.iter().cloned().chain([Segment::Key(entry.key.clone())]).collect();
            if has(&inside) {
                return Some(format!("`{key}` belongs inside `{}: {{ ... }}`", entry.key));
            }
        }
        if let Some((Segment::Key(own), above)) = at.split_last()
            && has(above)
        {
            return Some(format!("`{key}` belongs beside `{own}`, one level up"));
        }
        match self.shape.owners(key).as_slice() {
            [] => None,
            [one] => Some(format!("`{key}` belongs under {one}")),
            [first, .., last] => Some(format!("`{key}` belongs under {first} or {last}")),
        }
    }
}

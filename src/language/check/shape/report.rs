//! The validator's errors in an author's words.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

use super::{Shape, pointer, prune, words};
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::language::ID_PATTERN;
use crate::language::source::{Entry, Node, NodeKind, Segment, Tree};

/// Turns errors into words.
pub(super) struct Report<'a> {
    pub(super) shape: &'a Shape,
    pub(super) tree: &'a Tree,
    pub(super) sources: &'a SourceMap,
    pub(super) found: Vec<Diagnostic>,
    /// Values that are right by the schema and useless all the same.
    pub(super) spoiled: Vec<prune::Cut>,
    /// Values that something is said about already.
    seen: BTreeSet<Vec<Segment>>,
}

impl<'a> Report<'a> {
    pub(super) fn new(shape: &'a Shape, tree: &'a Tree, sources: &'a SourceMap) -> Self {
        Self {
            shape,
            tree,
            sources,
            found: Vec::new(),
            spoiled: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    pub(super) fn all(&mut self, errors: &[ValidationError<'_>]) {
        // Unknown keys first: a step with a misspelt verb needs no second finding that it has none.
        for error in errors {
            if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
                self.unknown_keys(pointer(error), unexpected);
            }
        }
        let mut missing: Vec<(Vec<Segment>, Vec<String>)> = Vec::new();
        for error in errors {
            let at = pointer(error);
            match error.kind() {
                ValidationErrorKind::AdditionalProperties { .. } => {}
                ValidationErrorKind::Required { property } => {
                    let key = property.as_str().unwrap_or_default().to_owned();
                    match missing.iter_mut().find(|(place, _)| *place == at) {
                        Some((_, keys)) => keys.push(key),
                        None => missing.push((at, vec![key])),
                    }
                }
                // One finding for a value: a wrong type also fails its pattern.
                _ if !self.seen.insert(at.clone()) => {}
                _ => {
                    if let Some(node) = self.tree.root.at_pointer(&at) {
                        let diagnostic = self.value(error, &at, node);
                        self.found.push(diagnostic);
                    }
                }
            }
        }
        for (at, keys) in missing {
            self.missing(&at, &keys);
        }
    }

    fn unknown_keys(&mut self, at: Vec<Segment>, keys: &[String]) {
        let Some(node) = self.tree.root.at_pointer(&at) else {
            return;
        };
        if let Some(diagnostic) = self.cut_by_yaml(&at, node) {
            self.found.push(diagnostic);
        } else {
            let unknown = keys
                .iter()
                .filter_map(|key| node.entry(key))
                .map(|entry| self.unknown_key(&at, node, entry));
            let unknown: Vec<Diagnostic> = unknown.collect();
            self.found.extend(unknown);
        }
        self.seen.insert(at);
    }

    fn missing(&mut self, at: &[Segment], keys: &[String]) {
        let Some(node) = self.tree.root.at_pointer(at) else {
            return;
        };
        // A verb that is missing beside an unknown key is that key, misspelt.
        let kinds = self.shape.definition(at).map(|found| found.kinds()).unwrap_or_default();
        if self.seen.contains(at) && keys.iter().all(|key| kinds.contains(key)) && !kinds.is_empty() {
            return;
        }
        let span = self.tree.span(node.at);
        if at.is_empty() && keys.iter().any(|key| key == "gtrun") {
            let first = node
                .entries()
                .first()
                .map_or(span, |entry| self.tree.span(entry.key_at));
            let message = "the file does not say which language version it is written in";
            self.found.push(
                Diagnostic::error(Code::MissingKey, message)
                    .at(first, "")
                    .help("begin it with `gtrun: 1`"),
            );
            return;
        }
        let place = self
            .tree
            .key_of(at)
            .map_or(first_key(node, span, self.tree), |entry| self.tree.span(entry.key_at));
        let list = words::list(keys);
        let verb = if keys.len() == 1 { "is" } else { "are" };
        let message = format!("{} needs {list}", self.shape.name_of(at));
        self.found
            .push(Diagnostic::error(Code::MissingKey, message).at(place, format!("{list} {verb} missing")));
    }

    fn value(&self, error: &ValidationError<'_>, at: &[Segment], node: &Node) -> Diagnostic {
        let key = self.tree.key_of(at);
        let span = self.tree.span(node.at);
        let key_or_value = key.map_or(span, |entry| self.tree.span(entry.key_at));
        if node.kind == NodeKind::Null {
            return words::null(self.shape, at, key_or_value, span);
        }
        if let Some(diagnostic) = self.kinds(at, node, span) {
            return diagnostic;
        }
        match error.kind() {
            ValidationErrorKind::MinItems { .. } | ValidationErrorKind::MinProperties { .. } => {
                let message = format!("{} is empty", self.shape.name_of(at));
                Diagnostic::error(Code::Empty, message)
                    .at(key_or_value, "")
                    .help("add something, or remove the key")
            }
            ValidationErrorKind::MaxProperties { .. } => {
                let second = node.entries().get(1).map_or(span, |entry| self.tree.span(entry.key_at));
                let diagnostic = Diagnostic::error(Code::Variation, "a sweep goes through one thing");
                diagnostic
                    .at(second, "a second")
                    .help("for combinations there is `matrix`")
            }
            ValidationErrorKind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default().to_owned();
                let place = node.entry(&name).map_or(span, |entry| self.tree.span(entry.key_at));
                words::bad_name(&name, ID_PATTERN, place)
            }
            _ => words::wrong_value(self.shape, at, node, span, self.sources),
        }
    }

    /// An object that has not exactly one of its kinds: verbs of a step, kinds of a probe.
    fn kinds(&self, at: &[Segment], node: &Node, span: Span) -> Option<Diagnostic> {
        let definition = self.shape.definition(at)?;
        let kinds = definition.kinds();
        let NodeKind::Map(entries) = &node.kind else {
            return None;
        };
        if kinds.is_empty() {
            return None;
        }
        let present: Vec<&Entry> = entries.iter().filter(|entry| kinds.contains(&entry.key)).collect();
        let (what, kind) = (self.shape.name_of(at), definition.kind_word());
        if let [first, second, ..] = present.as_slice() {
            let message = format!(
                "{what} has one {kind}, here are two: `{}` and `{}`",
                first.key, second.key
            );
            let help =
                "make two list items of it; what is to happen at the same time stands under `parallel`".to_owned();
            return Some(
                Diagnostic::error(Code::TwoVerbs, message)
                    .at(self.tree.span(second.key_at), "the second")
                    .at(self.tree.span(first.key_at), "the first")
                    .maybe_help((kind == "verb").then_some(help)),
            );
        }
        if !present.is_empty() {
            return None;
        }
        let place = first_key(node, span, self.tree);
        let diagnostic = Diagnostic::error(Code::NoVerb, format!("{what} needs a {kind}"));
        Some(
            diagnostic
                .at(place, format!("no {kind} here"))
                .help(format!("one of {}", kinds.join(", "))),
        )
    }
}

/// The first key of a mapping, else the whole value.
fn first_key(node: &Node, span: Span, tree: &Tree) -> Span {
    node.entries().first().map_or(span, |entry| tree.span(entry.key_at))
}

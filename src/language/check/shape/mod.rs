//! Does a tree have the shape that the schema describes?
//!
//! The schema finds what is wrong; the words come from here, because a validator knows neither authors nor places. What is wrong
//! is cut out of the tree, so that everything else can still be checked in the same pass.

mod place;
mod prune;
mod words;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic, SourceMap};
use crate::language::nearest::did_you_mean;
use crate::language::schema::{environment_schema, scenario_schema};
use crate::language::source::{Entry, Node, NodeKind, Segment, Tree};

/// A schema, compiled once for all files.
pub(crate) struct Shape {
    schema: Value,
    validator: Option<Validator>,
}

/// Scenario files.
pub(crate) static SCENARIO: LazyLock<Shape> = LazyLock::new(|| Shape::new(scenario_schema()));
/// Environment files.
pub(crate) static ENVIRONMENT: LazyLock<Shape> = LazyLock::new(|| Shape::new(environment_schema()));

/// A tree cut down to what is right, and what was wrong.
pub(crate) struct Checked {
    pub(crate) root: Node,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// False when so much is wrong that nothing is left to read.
    pub(crate) usable: bool,
}

impl Shape {
    fn new(schema: Value) -> Self {
        // The schema is our own and a test compiles it: `None` never happens.
        let validator = jsonschema::validator_for(&schema).ok();
        Self { schema, validator }
    }

    /// Checks a file.
    pub(crate) fn check(&self, tree: Tree, sources: &SourceMap) -> Checked {
        let Some(validator) = &self.validator else {
            return Checked {
                root: tree.root,
                diagnostics: Vec::new(),
                usable: false,
            };
        };
        let mut diagnostics = words::leading_zeros(self, &tree, sources);
        let mut root = tree.root.clone();
        let report = Report {
            shape: self,
            tree: &tree,
            sources,
        };
        // What is cut out may leave its parent incomplete: again until nothing is wrong. Only the first round is reported.
        for round in 0..16 {
            let json = root.json();
            let errors: Vec<ValidationError<'_>> = validator.iter_errors(&json).collect();
            if errors.is_empty() {
                return Checked {
                    root,
                    diagnostics,
                    usable: true,
                };
            }
            if round == 0 {
                diagnostics.extend(report.all(&errors));
                if diagnostics.iter().any(|d| matches!(d.code, Code::LanguageVersion)) {
                    diagnostics.retain(|d| d.code == Code::LanguageVersion);
                    break;
                }
            }
            let wrong: BTreeSet<prune::Cut> = errors.iter().flat_map(prune::cuts).collect();
            if !prune::prune(&mut root, &wrong) {
                break;
            }
        }
        Checked {
            root,
            diagnostics,
            usable: false,
        }
    }
}

/// The pointer of an error.
fn pointer(error: &ValidationError<'_>) -> Vec<Segment> {
    let segments = error.instance_path().into_iter();
    segments
        .map(|segment| match segment {
            LocationSegment::Property(key) => Segment::Key(key.to_string()),
            LocationSegment::Index(index) => Segment::Index(index),
        })
        .collect()
}

/// Turns errors into words.
struct Report<'a> {
    shape: &'a Shape,
    tree: &'a Tree,
    sources: &'a SourceMap,
}

impl Report<'_> {
    fn all(&self, errors: &[ValidationError<'_>]) -> Vec<Diagnostic> {
        let mut out = Vec::new();
        let mut seen: BTreeSet<Vec<Segment>> = BTreeSet::new();
        // Unknown keys first: a step with a misspelt verb needs no second finding that it has none.
        let unknown = errors.iter().filter_map(|error| match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => Some((pointer(error), unexpected)),
            _ => None,
        });
        for (at, keys) in unknown {
            let Some(node) = self.tree.root.at_pointer(&at) else {
                continue;
            };
            if let Some(cut) = self.cut_by_yaml(&at, node) {
                out.push(cut);
                seen.insert(at);
                continue;
            }
            for key in keys {
                if let Some(entry) = node.entry(key) {
                    out.push(self.unknown_key(&at, node, entry));
                }
            }
            seen.insert(at);
        }
        for error in errors {
            let at = pointer(error);
            if matches!(error.kind(), ValidationErrorKind::AdditionalProperties { .. }) {
                continue;
            }
            let Some(node) = self.tree.root.at_pointer(&at) else {
                continue;
            };
            // One finding for a value: a wrong type also fails its pattern. Missing keys are each their own.
            let missing = matches!(error.kind(), ValidationErrorKind::Required { .. });
            if !missing && !seen.insert(at.clone()) || missing && self.covered(&at, &seen) {
                continue;
            }
            out.push(self.value(error, &at, node));
        }
        out
    }

    /// True when a finding at this very object already says that something is wrong with its keys.
    fn covered(&self, at: &[Segment], seen: &BTreeSet<Vec<Segment>>) -> bool {
        seen.contains(at) && self.shape.definition(at).is_some_and(|found| !found.kinds().is_empty())
    }

    fn unknown_key(&self, at: &[Segment], parent: &Node, entry: &Entry) -> Diagnostic {
        let span = self.tree.span(entry.key_at);
        let definition = self.shape.definition(at);
        let pattern = definition.as_ref().and_then(place::Definition::key_pattern);
        if let Some(pattern) = pattern {
            return words::bad_key(&entry.key, &pattern, span, at);
        }
        let known: Vec<String> = definition.as_ref().map(place::Definition::keys).unwrap_or_default();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let what = self.shape.name_of(at);
        let diagnostic = Diagnostic::error(Code::UnknownKey, format!("{what} has no key `{}`", entry.key));
        let close = crate::language::nearest::nearest(&entry.key, known.iter().copied())
            .map(|key| format!("did you mean `{key}`?"));
        let help = close
            .or_else(|| self.belongs(at, parent, &entry.key))
            .or_else(|| did_you_mean(&entry.key, known.iter().copied()));
        let fallback = || Some(format!("keys here are {}", known.join(", "))).filter(|_| !known.is_empty());
        diagnostic.at(span, "unknown here").maybe_help(help.or_else(fallback))
    }

    /// Where a key would be right: inside a neighbour, one level up, or somewhere else.
    fn belongs(&self, at: &[Segment], parent: &Node, key: &str) -> Option<String> {
        for entry in parent.entries() {
            let inside: Vec<Segment> = at.iter().cloned().chain([Segment::Key(entry.key.clone())]).collect();
            if self
                .shape
                .definition(&inside)
                .is_some_and(|found| found.keys().iter().any(|k| k == key))
            {
                return Some(format!("`{key}` belongs inside `{}: {{ ... }}`", entry.key));
            }
        }
        if let Some((Segment::Key(own), above)) = at.split_last().map(|(last, above)| (last.clone(), above)) {
            if self
                .shape
                .definition(above)
                .is_some_and(|found| found.keys().iter().any(|k| k == key))
            {
                return Some(format!("`{key}` belongs beside `{own}`, one level up"));
            }
        }
        let places = self.shape.owners(key);
        match places.as_slice() {
            [] => None,
            [one] => Some(format!("`{key}` belongs under {one}")),
            [first, .., last] => Some(format!("`{key}` belongs under {first} or {last}")),
        }
    }

    /// YAML cut an expression: a comma in a flow mapping, or `: ` in an assertion.
    fn cut_by_yaml(&self, at: &[Segment], node: &Node) -> Option<Diagnostic> {
        let NodeKind::Map(entries) = &node.kind else {
            return None;
        };
        let is_assertion = self
            .shape
            .definition(at)
            .is_some_and(|found| found.name() == Some("Assertion"));
        let first = entries.first()?;
        let written = self.sources.slice(self.tree.span(first.key_at));
        let begins = written.contains('(') && !written.contains(')');
        let plain = !written.starts_with(['"', '\'']);
        if is_assertion
            && plain
            && (begins || written.contains(' '))
            && !["assert", "name", "because"].contains(&first.key.as_str())
        {
            let span = self.tree.span(first.key_at).to(self.tree.span(first.value.at));
            let text = self.sources.slice(span);
            let named = matches!(first.key.rsplit([',', '(', ' ']).next(), Some("from" | "until"));
            let help = if named {
                format!("named arguments take `=`: write `{}`", text.replacen(": ", "=", 1))
            } else {
                format!("put the assertion in quotes: `'{text}'`")
            };
            return Some(
                Diagnostic::error(
                    Code::YamlCut,
                    "YAML made a mapping of this assertion: `: ` begins a value",
                )
                .at(span, "read as key and value")
                .help(help),
            );
        }
        // `{ wait_for: before(a, b), timeout: 5s }`: the comma ends the text and `b)` becomes a key without a value.
        let (before, rest) = entries.iter().zip(entries.iter().skip(1)).find(|(before, rest)| {
            let text = before.value.text().unwrap_or_default();
            rest.value.kind == NodeKind::Null
                && rest.key.matches(')').count() > rest.key.matches('(').count()
                && text.matches('(').count() > text.matches(')').count()
        })?;
        let span = self.tree.span(before.value.at).to(self.tree.span(rest.key_at));
        let text = self.sources.slice(span);
        Some(
            Diagnostic::error(
                Code::YamlCut,
                "YAML ended this text at its comma: inside `{ }` and `[ ]` a comma separates",
            )
            .at(span, "one text was meant")
            .help(format!("put it in quotes: `{}: \"{text}\"`", before.key)),
        )
    }

    fn value(&self, error: &ValidationError<'_>, at: &[Segment], node: &Node) -> Diagnostic {
        let key = self.tree.key_of(at);
        let span = self.tree.span(node.at);
        let definition = self.shape.definition(at);
        if node.kind == NodeKind::Null {
            return words::null(
                self.shape,
                at,
                key.map_or(span, |entry| self.tree.span(entry.key_at)),
                span,
            );
        }
        if let Some(found) = &definition
            && !found.kinds().is_empty()
            && let NodeKind::Map(entries) = &node.kind
        {
            let kinds = found.kinds();
            let present: Vec<&Entry> = entries.iter().filter(|entry| kinds.contains(&entry.key)).collect();
            let what = self.shape.name_of(at);
            let kind = found.kind_word();
            if let [first, second, ..] = present.as_slice() {
                return Diagnostic::error(
                    Code::TwoVerbs,
                    format!(
                        "{what} has one {kind}, here are two: `{}` and `{}`",
                        first.key, second.key
                    ),
                )
                .at(self.tree.span(second.key_at), "the second")
                .at(self.tree.span(first.key_at), "the first")
                .maybe_help((kind == "verb").then(|| {
                    "make two list items of it; what is to happen at the same time stands under `parallel`".to_owned()
                }));
            }
            if present.is_empty() {
                let place = entries.first().map_or(span, |entry| self.tree.span(entry.key_at));
                return Diagnostic::error(Code::NoVerb, format!("{what} needs a {kind}"))
                    .at(place, format!("no {kind} here"))
                    .help(format!("one of {}", kinds.join(", ")));
            }
        }
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let missing = property.as_str().unwrap_or_default();
                if at.is_empty() && missing == "gtrun" {
                    let first = node
                        .entries()
                        .first()
                        .map_or(span, |entry| self.tree.span(entry.key_at));
                    return Diagnostic::error(
                        Code::MissingKey,
                        "the file does not say which language version it is written in",
                    )
                    .at(first, "")
                    .help("begin it with `gtrun: 1`");
                }
                let place = key.map_or(span, |entry| self.tree.span(entry.key_at));
                Diagnostic::error(
                    Code::MissingKey,
                    format!("{} needs `{missing}`", self.shape.name_of(at)),
                )
                .at(place, format!("`{missing}` is missing"))
            }
            ValidationErrorKind::MinItems { .. } | ValidationErrorKind::MinProperties { .. } => {
                let place = key.map_or(span, |entry| self.tree.span(entry.key_at));
                Diagnostic::error(Code::Empty, format!("{} is empty", self.shape.name_of(at)))
                    .at(place, "")
                    .help("add something, or remove the key")
            }
            ValidationErrorKind::MaxProperties { .. } => {
                let second = node.entries().get(1).map_or(span, |entry| self.tree.span(entry.key_at));
                Diagnostic::error(Code::Variation, "a sweep goes through one thing")
                    .at(second, "a second")
                    .help("for combinations there is `matrix`")
            }
            ValidationErrorKind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default().to_owned();
                let place = node.entry(&name).map_or(span, |entry| self.tree.span(entry.key_at));
                words::bad_key(&name, crate::language::ID_PATTERN, place, at)
            }
            _ => words::wrong_value(self.shape, definition.as_ref(), at, node, span, self.sources),
        }
    }
}

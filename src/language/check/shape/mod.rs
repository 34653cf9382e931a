//! Does a tree have the shape that the schema describes?
//!
//! The schema finds what is wrong; the words come from here, because a validator knows neither authors nor places. What is wrong
//! is cut out of the tree, so that everything else can still be checked in the same pass.

mod cut_text;
mod duration;
mod keys;
mod place;
mod prune;
mod report;
mod words;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::paths::LocationSegment;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic, SourceMap};
use crate::language::schema::{environment_schema, scenario_schema};
use crate::language::source::{Node, Segment, Tree};

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
        let mut diagnostics = words::leading_zeros(self, &tree, sources);
        let mut root = tree.root.clone();
        let usable = self.cut(&mut root, &tree, sources, &mut diagnostics);
        Checked {
            root,
            diagnostics,
            usable,
        }
    }

    /// Cuts out what is wrong until nothing is: what is cut out may leave its parent incomplete. Only the first round is reported.
    fn cut(&self, root: &mut Node, tree: &Tree, sources: &SourceMap, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let Some(validator) = &self.validator else { return false };
        for round in 0..16 {
            let json = root.json();
            let errors: Vec<ValidationError<'_>> = validator.iter_errors(&json).collect();
            if errors.is_empty() {
                return true;
            }
            let mut wrong: BTreeSet<prune::Cut> = errors.iter().flat_map(prune::cuts).collect();
            if round == 0 {
                let mut report = report::Report::new(self, tree, sources);
                report.all(&errors);
                diagnostics.extend(report.found);
                wrong.extend(report.spoiled);
                // In another version everything else may mean something else.
                if let Some(alone) = diagnostics.iter().find(|d| d.code == Code::LanguageVersion) {
                    *diagnostics = vec![alone.clone()];
                    return false;
                }
            }
            if !prune::prune(root, &wrong) {
                return false;
            }
        }
        false
    }

    /// The section that a misspelt top-level key was meant to be.
    pub(crate) fn meant(&self, key: &str) -> Option<String> {
        let keys = self.definition(&[]).map(|found| found.keys()).unwrap_or_default();
        crate::language::nearest::nearest(key, keys.iter().map(String::as_str)).map(str::to_owned)
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

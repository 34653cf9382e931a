//! From a path to plans: reads the file and what it includes, chooses the environment, resolves every run.

mod choose;
mod include;
mod lost;
mod part;
#[cfg(test)]
mod tests;

pub use choose::{Chosen, EnvironmentChoice};

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::diagnostic::{Code, Diagnostic, Severity, SourceMap, tidy};
use crate::language::environment::EnvironmentFile;
use crate::language::files::Files;
use crate::language::plan::{Assertion, Suite, resolve};
use crate::language::scenario::Document;

/// What a user says beside the scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadOptions {
    /// `--set name=value`, in the order of the command line.
    pub set: Vec<String>,
    /// `--env NAME|FILE`.
    pub environment: Option<String>,
    /// The value of `GTRUN_ENV`.
    pub gtrun_env: Option<String>,
    /// gtrun's own environment, for `env.NAME`.
    pub env: BTreeMap<String, String>,
    /// `--repeat N`.
    pub repeat: Option<u32>,
    /// `--seed N`.
    pub seed: Option<u64>,
    /// True when `env` is gtrun's whole environment: a name that is not in it is an error. False where nothing runs, as in
    /// `gtrun validate`: a secret that is missing on the machine of a reviewer is none of his business.
    pub env_known: bool,
}

/// A scenario with everything it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Its runs: one, or what matrix, sweep, repeat and controls make of it.
    pub suite: Suite,
    /// The files that were read.
    pub sources: SourceMap,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// Files that cannot be used, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejected {
    /// Everything that was found, warnings included, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read.
    pub sources: SourceMap,
}

/// Loads a scenario: its file, what it includes, its environment, and all its runs.
///
/// # Errors
/// Every finding about the files at once.
pub fn load(path: &Path, options: &LoadOptions, files: &dyn Files) -> Result<Loaded, Rejected> {
    let mut reading = Reading::new(files);
    let suite = reading.suite(path, options);
    reading.finish(suite)
}

/// What `gtrun validate` looks at in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A scenario: checked completely.
    Scenario,
    /// A part of one, for `include`: its shape is checked, and what can be checked without the rest.
    Part,
    /// An environment.
    Environment,
    /// A Kubernetes manifest, which may stand beside scenarios.
    Manifest,
}

/// Checks a file of any kind without running anything.
pub fn validate(path: &Path, options: &LoadOptions, files: &dyn Files) -> (Option<FileKind>, Rejected) {
    let mut reading = Reading::new(files);
    let kind = reading.validate(path, options);
    let Reading {
        sources,
        mut diagnostics,
        ..
    } = reading;
    tidy(&mut diagnostics);
    (kind, Rejected { diagnostics, sources })
}

/// The assertions of a scenario, for evidence that exists already: steps, probes and environment only give the names.
///
/// # Errors
/// Every finding about the files at once.
pub fn load_assertions(
    path: &Path,
    options: &LoadOptions,
    files: &dyn Files,
) -> Result<(Vec<Assertion>, SourceMap), Rejected> {
    let loaded = load(path, options, files)?;
    let first = loaded.suite.runs.into_iter().next();
    Ok((first.map(|run| run.plan.assertions).unwrap_or_default(), loaded.sources))
}

/// Loads an environment alone, as `gtrun doctor` and `gtrun lab` need it.
///
/// # Errors
/// Every finding about the file at once.
pub fn load_environment(
    options: &LoadOptions,
    beside: &Path,
    files: &dyn Files,
) -> Result<(crate::language::plan::Environment, SourceMap), Rejected> {
    let mut reading = Reading::new(files);
    let environment = reading.environment_alone(options, beside);
    reading.finish_with(environment)
}

/// Files being read, and what was found so far.
pub(super) struct Reading<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) sources: SourceMap,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Top-level keys that stand in any of the scenario's files, right or wrong.
    pub(super) written: BTreeSet<String>,
    /// Steps that were cut out of the tree.
    pub(super) lost: Vec<resolve::LostStep>,
}

impl<'a> Reading<'a> {
    fn new(files: &'a dyn Files) -> Self {
        Self {
            files,
            sources: SourceMap::default(),
            diagnostics: Vec::new(),
            written: BTreeSet::new(),
            lost: Vec::new(),
        }
    }

    fn failed(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }

    fn suite(&mut self, path: &Path, options: &LoadOptions) -> Option<Suite> {
        let document = self.scenario(path)?;
        let chosen = self.environment_of(path, &document, options)?;
        Some(self.resolve(&document, chosen, options))
    }

    fn resolve(&mut self, document: &Document, chosen: Chosen, options: &LoadOptions) -> Suite {
        let (suite, found) = resolve::suite(document, &chosen, options, &self.lost, &self.sources);
        self.diagnostics.extend(found);
        suite
    }

    fn validate(&mut self, path: &Path, options: &LoadOptions) -> Option<FileKind> {
        let tree = self.tree(path)?;
        if include::is_manifest(&tree) {
            let _: Option<Document> = self.typed(tree, &crate::language::check::shape::SCENARIO);
            return Some(FileKind::Manifest);
        }
        if tree.root.entry("kind").is_some() {
            let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
            let document: Option<EnvironmentFile> = self.typed(tree, &crate::language::check::shape::ENVIRONMENT);
            if let Some(document) = document {
                let name = choose::name_of(path);
                let _ = resolve::environment(&document, &name, path, &directory, &mut self.diagnostics);
            }
            return Some(FileKind::Environment);
        }
        let has = |key: &str| tree.root.entry(key).is_some();
        let includes = has("include");
        let part = self.is_part(path) || !(has("steps") || has("assertions") || includes);
        let document: Document = self.document(path, tree)?;
        if part {
            part::check(&document, &self.sources, &mut self.diagnostics);
            return Some(FileKind::Part);
        }
        self.require_whole(&document);
        if let Some(chosen) = self.environment_of(path, &document, options) {
            self.resolve(&document, chosen, options);
        }
        Some(FileKind::Scenario)
    }

    /// Parts stand in a folder `common`.
    fn is_part(&self, path: &Path) -> bool {
        path.parent()
            .is_some_and(|parent| parent.components().any(|part| part.as_os_str() == "common"))
    }

    fn finish(self, suite: Option<Suite>) -> Result<Loaded, Rejected> {
        let failed = self.failed();
        let Self {
            sources,
            mut diagnostics,
            ..
        } = self;
        tidy(&mut diagnostics);
        match suite {
            Some(suite) if !failed => Ok(Loaded {
                suite,
                sources,
                warnings: diagnostics,
            }),
            _ => Err(Rejected { diagnostics, sources }),
        }
    }

    fn finish_with<T>(self, value: Option<T>) -> Result<(T, SourceMap), Rejected> {
        let failed = self.failed();
        let Self {
            sources,
            mut diagnostics,
            ..
        } = self;
        tidy(&mut diagnostics);
        match value {
            Some(value) if !failed => Ok((value, sources)),
            _ => Err(Rejected { diagnostics, sources }),
        }
    }

    pub(super) fn error(&mut self, code: Code, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, message));
    }
}

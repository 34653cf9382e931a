//! One file, and the files that it includes.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{Reading, lost};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::language::check::shape::{SCENARIO, Shape};
use crate::language::files::{Files, lexical};
use crate::language::scenario::Document;
use crate::language::source::{self, Deserializer, Entry, MAX_BYTES, Tree};
use crate::language::value::At;

/// Includes may be nested this deep.
const MAX_INCLUDES: usize = 8;

impl Reading<'_> {
    /// Reads a file as a tree.
    pub(super) fn tree(&mut self, path: &Path) -> Option<Tree> {
        let name = path.display().to_string();
        match self.files.read(path, MAX_BYTES) {
            Ok(bytes) => {
                let (_, tree, diagnostics) = source::read(&name, &bytes, &mut self.sources);
                self.diagnostics.extend(diagnostics);
                tree
            }
            Err(error) => {
                let reason = super::choose::reason(&error);
                self.error(Code::Unreadable, format!("{name} cannot be read: {reason}"));
                None
            }
        }
    }

    /// Checks a tree against its schema and reads what is right of it.
    pub(super) fn typed<T: DeserializeOwned>(&mut self, tree: Tree, shape: &Shape) -> Option<T> {
        let file = tree.file;
        if let Some(diagnostic) = another_kind(&tree, std::ptr::eq(shape, &raw const *SCENARIO)) {
            self.diagnostics.push(diagnostic);
            return None;
        }
        let checked = shape.check(tree, &self.sources);
        self.diagnostics.extend(checked.diagnostics);
        if !checked.usable {
            return None;
        }
        match T::deserialize(Deserializer::new(&checked.root, file, self.sources.text(file))) {
            Ok(value) => Some(value),
            Err(error) => {
                let span = error.span.unwrap_or(Span::new(file, 0, 0));
                self.diagnostics
                    .push(Diagnostic::error(code_of(&error.message), error.message).at(span, ""));
                None
            }
        }
    }

    /// A scenario's file with everything that it includes.
    pub(super) fn scenario(&mut self, path: &Path) -> Option<Document> {
        let tree = self.tree(path)?;
        let document = self.document(path, tree)?;
        self.require_whole(&document);
        Some(document)
    }

    /// A document with everything that it includes.
    pub(super) fn document(&mut self, path: &Path, tree: Tree) -> Option<Document> {
        let root = self.repository(path);
        self.merged(path, tree, &root, &mut vec![path.to_path_buf()])
    }

    fn merged(&mut self, path: &Path, tree: Tree, root: &Path, stack: &mut Vec<PathBuf>) -> Option<Document> {
        lost::steps(&tree.root, &mut self.lost);
        for entry in tree.root.entries() {
            // A name is never inherited; a misspelt section was meant to be there.
            if stack.len() == 1 || entry.key != "name" {
                self.written.extend(
                    [Some(entry.key.clone()), SCENARIO.meant(&entry.key)]
                        .into_iter()
                        .flatten(),
                );
            }
        }
        let document: Document = self.typed(tree, &SCENARIO)?;
        let mut below: Option<Document> = None;
        for include in document.include.clone() {
            let Some(part) = self.included(path, &include, root, stack) else {
                // What it would have brought is not missing.
                self.written.extend(["steps".to_owned(), "assertions".to_owned()]);
                continue;
            };
            // A later file wins over an earlier one.
            below = Some(match below {
                Some(earlier) => part.over(earlier),
                None => part,
            });
        }
        Some(match below {
            Some(below) => document.over(below),
            None => document,
        })
    }

    fn included(
        &mut self,
        path: &Path,
        include: &At<String>,
        root: &Path,
        stack: &mut Vec<PathBuf>,
    ) -> Option<Document> {
        let target = path.parent().unwrap_or(Path::new("")).join(&include.value);
        if escapes(path, &include.value, root, self.files) {
            let message = format!("`{}` is outside the repository of the scenario", include.value);
            let diagnostic = Diagnostic::error(Code::IncludeOutside, message).at(include.span, "");
            self.diagnostics.push(
                diagnostic
                    .help("includes stay inside the repository, so that a check reads nothing else of the machine"),
            );
            return None;
        }
        let Ok(canonical) = self.files.canonical(&target) else {
            let diagnostic = Diagnostic::error(Code::IncludeMissing, format!("there is no file {}", target.display()))
                .at(include.span, "");
            self.diagnostics
                .push(diagnostic.help("includes are relative to the file that names them"));
            return None;
        };
        if !canonical.starts_with(root) {
            let message = format!("`{}` is outside the repository of the scenario", include.value);
            let diagnostic = Diagnostic::error(Code::IncludeOutside, message).at(include.span, "");
            self.diagnostics
                .push(diagnostic.help("the link leads out of the repository"));
            return None;
        }
        let circle = stack
            .iter()
            .any(|open| self.files.canonical(open).is_ok_and(|open| open == canonical));
        if circle || stack.len() > MAX_INCLUDES {
            let message = if circle {
                "this include leads back to a file that is being read".to_owned()
            } else {
                format!("includes are nested deeper than {MAX_INCLUDES}")
            };
            let chain = stack
                .iter()
                .chain([&target])
                .map(|file| file.display().to_string())
                .collect::<Vec<_>>()
                .join(" -> ");
            self.diagnostics.push(
                Diagnostic::error(Code::IncludeCircle, message)
                    .at(include.span, "")
                    .help(chain),
            );
            return None;
        }
        let tree = match self.files.read(&target, MAX_BYTES) {
            Ok(bytes) => {
                let (_, tree, diagnostics) = source::read(&target.display().to_string(), &bytes, &mut self.sources);
                self.diagnostics.extend(diagnostics);
                tree
            }
            Err(error) => {
                let message = format!("{} cannot be read: {}", target.display(), super::choose::reason(&error));
                self.diagnostics
                    .push(Diagnostic::error(Code::IncludeMissing, message).at(include.span, ""));
                None
            }
        }?;
        stack.push(target.clone());
        let merged = self.merged(&target, tree, root, stack);
        stack.pop();
        merged
    }

    /// After merging, a scenario has a name, a step and an assertion. What is written and wrong is reported already.
    pub(super) fn require_whole(&mut self, document: &Document) {
        let needs = [
            ("name", document.name.is_none(), "`name`"),
            ("steps", document.steps.is_none(), "at least one step in `steps`"),
            (
                "assertions",
                document.assertions.is_none(),
                "at least one assertion in `assertions`",
            ),
        ];
        let missing: Vec<&str> = needs
            .iter()
            .filter(|(key, missing, _)| *missing && !self.written.contains(*key))
            .map(|(_, _, what)| *what)
            .collect();
        if let Some((last, first)) = missing.split_last() {
            let list = if first.is_empty() {
                (*last).to_owned()
            } else {
                format!("{} and {last}", first.join(", "))
            };
            let diagnostic = Diagnostic::error(Code::NotAScenario, format!("a scenario needs {list}"));
            let diagnostic = diagnostic.at(document.gtrun.span, "neither this file nor its includes have it");
            self.diagnostics
                .push(diagnostic.help("a file that is only a part of scenarios stands in a folder `common`"));
        }
    }

    /// The folder that includes stay in: the repository's root, else the scenario's own folder.
    pub(super) fn repository(&self, path: &Path) -> PathBuf {
        let own = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let Ok(own) = self.files.canonical(own) else {
            return own.to_path_buf();
        };
        let root = own.ancestors().find(|folder| self.files.exists(&folder.join(".git")));
        root.map_or_else(|| own.clone(), Path::to_path_buf)
    }
}

/// True for a Kubernetes manifest, which may stand beside scenarios.
pub(super) fn is_manifest(tree: &Tree) -> bool {
    tree.root.entry("apiVersion").is_some() && tree.root.entry("gtrun").is_none()
}

/// Another kind of file than the one that is read: everything else that could be said of it would be beside the point.
fn another_kind(tree: &Tree, scenario: bool) -> Option<Diagnostic> {
    let entry = |key: &str| tree.root.entry(key);
    let wrong = |key: &Entry, message: &str, help: &str| {
        Diagnostic::error(Code::WrongFile, message)
            .at(tree.span(key.key_at), "")
            .help(help)
    };
    if let Some(key) = entry("apiVersion").filter(|_| is_manifest(tree)) {
        let message = "this is a Kubernetes manifest, neither a scenario nor an environment";
        return Some(wrong(key, message, "`gtrun new NAME` writes a scenario to start from"));
    }
    if scenario {
        let help = "name it with `--env`, and give the scenario's file";
        return entry("kind").map(|key| wrong(key, "this is an environment, not a scenario", help));
    }
    let key = entry("steps").or_else(|| entry("assertions"))?;
    Some(if entry("kind").is_some() {
        let message = format!("an environment has no {}", key.key);
        wrong(key, &message, "they stand in a scenario, and a scenario has no `kind`")
    } else {
        wrong(
            key,
            "this is a scenario, not an environment",
            "an environment has `kind: sim`, `lab` or `cluster`",
        )
    })
}

/// The kind of what a type refused although the schema let it pass.
fn code_of(message: &str) -> Code {
    if message.contains("duration") {
        Code::Duration
    } else {
        Code::WrongType
    }
}

/// True for a path that leads out of the repository by its words alone, whether or not something is there.
fn escapes(path: &Path, include: &str, root: &Path, files: &dyn Files) -> bool {
    let own = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let Ok(own) = files.canonical(own) else { return false };
    !lexical(&own.join(include)).starts_with(root)
}

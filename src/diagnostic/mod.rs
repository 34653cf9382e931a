//! Errors and warnings with a code, a place, and help, and their renderers.
//!
//! A [`Diagnostic`] names bytes of files in a [`SourceMap`]; a renderer turns both into text. The same type serves a syntax
//! error, a wrong name in an assertion, and an assertion that failed at run time.

mod code;
mod github;
mod human;
mod json;
mod junit;
mod sarif;
mod source_map;

pub use code::Code;
pub use github::github;
pub use human::{Style, render_human};
pub use json::json;
pub use junit::junit;
pub use sarif::sarif;
pub use source_map::{FileId, Position, SourceFile, SourceMap, Span};

use serde::{Deserialize, Serialize};

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing, changes nothing.
    Advice,
    /// The file is used as it is, but it probably does not say what its author meant.
    Warning,
    /// The file is not used.
    Error,
}

/// A place in a file with a few words about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The bytes that are underlined.
    pub span: Span,
    /// What stands under the line; may be empty.
    pub text: String,
}

/// One finding about a file: what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Which kind of finding: the key into `docs/errors.md` and `gtrun explain`.
    pub code: Code,
    /// How much it weighs.
    pub severity: Severity,
    /// One sentence, no full stop.
    pub message: String,
    /// The culprit first, then what it collides with.
    pub labels: Vec<Label>,
    /// What to do, when there is something to say.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error of this kind.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// A warning of this kind.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }

    /// Adds a place. The first one is the culprit: its line and column are what other tools show.
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Says what to do.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Says what to do, when there is something to say.
    pub fn maybe_help(mut self, text: Option<String>) -> Self {
        self.help = text.or(self.help);
        self
    }

    /// The culprit's place.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// Sorts by file and place, and drops exact repetitions.
pub fn tidy(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(|d| (d.span().map(|s| (s.file, s.start, s.end)), d.code));
    diagnostics.dedup();
}

use serde::{Deserialize, Serialize};

use crate::diagnostic::Span;
use crate::language::expression::Expression;

/// A claim that the evidence of the run must carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// The claim.
    pub expression: Expression,
    /// The author's short name for it.
    pub name: Option<String>,
    /// Why it must hold, in the author's words.
    pub because: Option<String>,
    /// The list item in the scenario file.
    pub span: Span,
}

impl Assertion {
    /// The text as the author wrote it, variables included.
    pub fn text(&self) -> &str {
        &self.expression.text
    }
}

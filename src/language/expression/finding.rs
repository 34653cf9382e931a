use super::TextSpan;
use crate::diagnostic::Code;

/// What is wrong with an expression, at a place inside its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which kind of finding.
    pub code: Code,
    /// Where in the expression's text.
    pub at: TextSpan,
    /// One sentence.
    pub message: String,
    /// A few words for the place itself.
    pub label: String,
    /// What to do.
    pub help: Option<String>,
}

impl Finding {
    /// A finding without help.
    pub(crate) fn new(code: Code, at: TextSpan, message: impl Into<String>) -> Self {
        Self {
            code,
            at,
            message: message.into(),
            label: String::new(),
            help: None,
        }
    }

    /// Says something at the place.
    pub(crate) fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Says what to do.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Says what to do, when there is something to say.
    pub(crate) fn maybe_help(mut self, text: Option<String>) -> Self {
        self.help = text.or(self.help);
        self
    }
}

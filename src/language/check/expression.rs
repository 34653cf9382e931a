//! Findings inside an expression as diagnostics of the file that holds it.

use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::language::expression::{Finding, TextSpan};
use crate::language::source::place_in_scalar;

/// An expression's text and the scalar in a file that holds it.
pub(crate) struct Located<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: Span,
    pub(crate) sources: &'a SourceMap,
}

impl Located<'_> {
    /// The place in the file of a place in the text; the whole scalar where the file spells it otherwise.
    pub(crate) fn place(&self, at: TextSpan) -> Span {
        place_in_scalar(self.sources, self.span, self.text, at.start, at.end).unwrap_or(self.span)
    }

    /// The finding at its place in the file.
    pub(crate) fn diagnostic(&self, finding: &Finding) -> Diagnostic {
        let Finding {
            code,
            at,
            message,
            label,
            help,
        } = finding;
        Diagnostic::error(*code, message.clone())
            .at(self.place(*at), label.clone())
            .maybe_help(help.clone())
    }

    /// True for a scalar without quotes whose source is its value.
    fn plain(&self) -> bool {
        self.sources.slice(self.span) == self.text
    }

    /// YAML ended the text too early: at ` #`, or at a comma in a flow list or mapping. `Some(None)` for the rest of a text whose
    /// beginning is reported already.
    pub(crate) fn cut_by_yaml(&self) -> Option<Option<Diagnostic>> {
        if !self.plain() {
            return None;
        }
        let (opened, closed) = (self.text.matches('(').count(), self.text.matches(')').count());
        let odd_quotes = ['"', '\'', '/']
            .iter()
            .any(|quote| self.text.matches(*quote).count() % 2 == 1);
        let file = self.sources.text(self.span.file);
        let behind = &file[(self.span.end as usize).min(file.len())..];
        let before = &file[..(self.span.start as usize).min(file.len())];
        let line = behind.lines().next().unwrap_or("");
        if (opened > closed || odd_quotes) && line.trim_start().starts_with('#') && line.starts_with([' ', '\t']) {
            let whole = format!("{}{}", self.text, line.trim_end());
            let end = Span::new(
                self.span.file,
                self.span.end as usize,
                self.span.end as usize + line.trim_end().len(),
            );
            let message = "YAML ended this text at ` #`: what follows is a comment";
            return Some(Some(
                Diagnostic::error(Code::YamlCut, message)
                    .at(end, "read as a comment")
                    .help(format!("put the whole text in quotes: '{whole}'")),
            ));
        }
        if opened > closed && behind.trim_start().starts_with(',') {
            let rest = balanced(behind, opened - closed);
            let end = Span {
                end: self.span.end + u32::try_from(rest.len()).unwrap_or(0),
                ..self.span
            };
            let message = "YAML ended this text at its comma: inside `[ ]` and `{ }` a comma separates";
            let help = format!("put it in quotes: \"{}{rest}\"", self.text);
            return Some(Some(
                Diagnostic::error(Code::YamlCut, message)
                    .at(end, "one text was meant")
                    .help(help),
            ));
        }
        if closed > opened && before.trim_end().ends_with(',') {
            return Some(None);
        }
        None
    }
}

/// The rest of a line up to where so many open parentheses are closed.
fn balanced(rest: &str, open: usize) -> &str {
    let mut open = open;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 1 => return &rest[..=at],
            ')' => open -= 1,
            '\n' => return rest[..at].trim_end(),
            _ => {}
        }
    }
    rest
}

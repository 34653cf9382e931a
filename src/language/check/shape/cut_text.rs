//! Expressions that YAML cut: at a comma in a flow mapping, or at `: `.

use super::report::Report;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::source::{Node, NodeKind, Segment};

impl Report<'_> {
    /// The finding, when unknown keys are the rest of an expression.
    pub(super) fn cut_by_yaml(&mut self, at: &[Segment], node: &Node) -> Option<Diagnostic> {
        self.colon_in_assertion(at, node)
            .or_else(|| self.comma_in_mapping(at, node))
    }

    /// `- never(rst, from: delete)`: a mapping with the key `never(rst, from`.
    fn colon_in_assertion(&self, at: &[Segment], node: &Node) -> Option<Diagnostic> {
        let is_assertion = self
            .shape
            .definition(at)
            .is_some_and(|found| found.name() == Some("Assertion"));
        let first = node.entries().first()?;
        let written = self.sources.slice(self.tree.span(first.key_at));
        let own = ["assert", "name", "because"].contains(&first.key.as_str());
        if !is_assertion || own || written.starts_with(['"', '\'']) || !written.contains(['(', ' ', '.']) {
            return None;
        }
        let span = self.tree.span(first.key_at).to(self.tree.span(first.value.at));
        let text = self.sources.slice(span);
        let named = matches!(first.key.rsplit([',', '(', ' ']).next(), Some("from" | "until"));
        let help = if named {
            format!("named arguments take `=`: write `{}`", text.replacen(": ", "=", 1))
        } else {
            format!(
                "put the assertion in quotes, or write `==`: `{}`",
                text.replacen(": ", " == ", 1)
            )
        };
        let message = "YAML made a mapping of this assertion: `: ` begins a value";
        Some(
            Diagnostic::error(Code::YamlCut, message)
                .at(span, "read as key and value")
                .help(help),
        )
    }

    /// `{ wait_for: log(app, /x/), timeout: 5s }`: the comma ends the text, and `/x/)` becomes a key without a value.
    fn comma_in_mapping(&mut self, at: &[Segment], node: &Node) -> Option<Diagnostic> {
        let entries = node.entries();
        let count = |text: &str, c: char| text.matches(c).count();
        let (before, rest) = entries.iter().zip(entries.iter().skip(1)).find(|(before, rest)| {
            let text = before.value.text().unwrap_or_default();
            let closes = count(&rest.key, ')') > count(&rest.key, '(');
            rest.value.kind == NodeKind::Null && closes && count(text, '(') > count(text, ')')
        })?;
        self.spoiled
            .push(at.iter().cloned().chain([Segment::Key(before.key.clone())]).collect());
        let span = self.tree.span(before.value.at).to(self.tree.span(rest.key_at));
        let text = self.sources.slice(span);
        let message = "YAML ended this text at its comma: inside `{ }` and `[ ]` a comma separates";
        let help = format!("put it in quotes: `{}: \"{text}\"`", before.key);
        Some(
            Diagnostic::error(Code::YamlCut, message)
                .at(span, "one text was meant")
                .help(help),
        )
    }
}

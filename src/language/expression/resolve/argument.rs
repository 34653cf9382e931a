//! What stands in the parentheses of a name.

use super::super::syntax::{Argument, Expr, ExprKind, Name, WordAt};
use super::super::{EventRef, Finding, Window};
use super::Resolver;
use crate::diagnostic::Code;
use crate::language::nearest::did_you_mean;
use crate::language::vocabulary::Function;

impl Resolver<'_> {
    /// The event and the window of `exists`, `never` and `count`.
    pub(super) fn windowed_event(&mut self, name: &Name, function: Function) -> Option<(EventRef, Window)> {
        self.no_fields(name)?;
        let (event, window) = self.with_window(name, function, "X")?;
        Some((self.event(&event.value)?, window))
    }

    /// One positional argument and the window beside it.
    pub(super) fn with_window<'n>(
        &mut self,
        name: &'n Name,
        function: Function,
        what: &str,
    ) -> Option<(&'n Argument, Window)> {
        let arguments = name.arguments.as_deref().unwrap_or_default();
        let usage = format!("it is written `{}`", function.usage());
        let mut window = Window::default();
        let mut first = None;
        for argument in arguments {
            let Some(label) = &argument.label else {
                if first.replace(argument).is_some() {
                    let finding = Finding::new(
                        Code::Arguments,
                        argument.value.at,
                        format!("`{function}` takes one `{what}`"),
                    );
                    return self.report(
                        finding
                            .label("one too many")
                            .help("a window is named: `from=A`, `until=B`"),
                    );
                }
                continue;
            };
            let side = match label.text.as_str() {
                "from" => &mut window.from,
                "until" => &mut window.until,
                other => {
                    let finding = Finding::new(
                        Code::Arguments,
                        label.at,
                        format!("`{function}` has no argument `{other}`"),
                    );
                    return self.report(finding.maybe_help(did_you_mean(other, ["from", "until"])));
                }
            };
            if side.is_some() {
                return self.report(Finding::new(
                    Code::Arguments,
                    label.at,
                    format!("`{}` stands here twice", label.text),
                ));
            }
            *side = Some(self.event(&argument.value)?);
        }
        match first {
            Some(first) => Some((first, window)),
            None => self.report(
                Finding::new(Code::Arguments, name.word.at, format!("`{function}` needs `{what}`")).help(usage),
            ),
        }
    }

    /// Exactly so many arguments without names.
    pub(super) fn positional<'n, const N: usize>(
        &mut self,
        name: &'n Name,
        word: &str,
        what: &[&str; N],
    ) -> Option<[&'n Argument; N]> {
        let arguments = name.arguments.as_deref().unwrap_or_default();
        let usage = format!("it is written `{word}({})`", what.join(", "));
        if let Some(label) = arguments.iter().find_map(|argument| argument.label.as_ref()) {
            let finding = Finding::new(
                Code::Arguments,
                label.at,
                format!("`{word}` has no argument `{}`", label.text),
            );
            let window = matches!(label.text.as_str(), "from" | "until");
            let help = if window {
                "`exists`, `never`, `count` and `always` take a window".to_owned()
            } else {
                usage
            };
            return self.report(finding.help(help));
        }
        let found: Option<[&Argument; N]> = arguments.iter().collect::<Vec<_>>().try_into().ok();
        if found.is_none() {
            let count = arguments.len();
            let plural = if N == 1 { "argument" } else { "arguments" };
            let message = format!(
                "`{word}` takes {N} {plural}, here {} {count}",
                if count == 1 { "is" } else { "are" }
            );
            return self.report(Finding::new(Code::Arguments, name.word.at, message).help(usage));
        }
        found
    }

    pub(super) fn no_fields(&mut self, name: &Name) -> Option<()> {
        let Some(field) = name.fields.first() else {
            return Some(());
        };
        self.report(Finding::new(
            Code::UnknownInExpression,
            field.at,
            format!("`{}` has no field `{}`", name.word.text, field.text),
        ))
    }

    /// A name of a step, given where `word` expects one.
    pub(super) fn bare<'e>(&mut self, expr: &'e Expr, word: &str, what: &str) -> Option<&'e WordAt> {
        match &expr.kind {
            ExprKind::Name(Name {
                word,
                arguments: None,
                fields,
            }) if fields.is_empty() => Some(word),
            ExprKind::Sub(..) => {
                let finding = Finding::new(
                    Code::Arguments,
                    expr.at,
                    format!("`{word}` takes the id of {what}, not a difference"),
                );
                self.report(finding.help("ids have no `-`; they are written with `_`"))
            }
            ExprKind::Text(text) => {
                let finding = Finding::new(
                    Code::Arguments,
                    expr.at,
                    format!("`{word}` takes the id of {what}, not a text"),
                );
                self.report(finding.help(format!("write it without quotes: `{word}({text})`")))
            }
            _ => self.report(Finding::new(
                Code::Arguments,
                expr.at,
                format!("`{word}` takes the id of {what}"),
            )),
        }
    }
}

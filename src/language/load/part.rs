//! What can be checked in a part of a scenario, whose other files are not known.

use crate::diagnostic::{Code, Diagnostic, SourceMap};
use crate::language::check::expression::Located;
use crate::language::expression::parse;
use crate::language::scenario::{Document, Step, Verb};
use crate::language::value::At;

/// Reads the expressions of a part: their names belong to the scenario that includes it.
pub(super) fn check(document: &Document, sources: &SourceMap, diagnostics: &mut Vec<Diagnostic>) {
    let mut texts = Vec::new();
    for assertion in document.assertions.iter().flat_map(|list| &list.value) {
        texts.push(&assertion.value.assert);
    }
    for list in [&document.steps, &document.finally] {
        for step in list.iter().flat_map(|list| &list.value) {
            expressions(&step.value, &mut texts);
        }
    }
    for text in texts {
        let located = Located {
            text: &text.value.0,
            span: text.span,
            sources,
        };
        if let Some(cut) = located.cut_by_yaml() {
            diagnostics.extend(cut);
        } else if let Err(finding) = parse(&text.value.0) {
            diagnostics.push(located.diagnostic(&finding));
        }
    }
    if document.name.is_some() && document.steps.is_none() && document.assertions.is_none() {
        let span = document.name.as_ref().map_or(document.gtrun.span, |name| name.span);
        let message = "a part has no use for a name: names are not inherited";
        diagnostics.push(
            Diagnostic::warning(Code::Discouraged, message)
                .at(span, "")
                .help("a scenario has steps and assertions too"),
        );
    }
}

fn expressions<'a>(step: &'a Step, out: &mut Vec<&'a At<crate::language::scenario::Expr>>) {
    out.extend(&step.when);
    match &step.kind {
        Verb::WaitFor(expression) => out.push(expression),
        Verb::Load(load) => out.extend(load.until.iter()),
        Verb::Poll(poll) => out.extend(&poll.until),
        Verb::Parallel(branches) => branches
            .values()
            .flatten()
            .for_each(|inner| expressions(&inner.value, out)),
        Verb::Request(_)
        | Verb::DeletePod(_)
        | Verb::EvictPod(_)
        | Verb::Scale(_)
        | Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Wait(_)
        | Verb::Exec(_)
        | Verb::Ssh(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_) => {}
    }
}

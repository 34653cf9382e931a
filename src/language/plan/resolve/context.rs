use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::scope::LostStep;
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::language::check::expression::Located;
use crate::language::expression::{Expression, Place, Scope};
use crate::language::load::{Chosen, LoadOptions};
use crate::language::scenario::{Document, Expr};
use crate::language::value::At;
use crate::language::{Id, Variable};
use crate::time::Duration;

/// Everything that resolving one run needs, and what was found on the way.
pub(super) struct Context<'a> {
    pub(super) document: &'a Document,
    pub(super) chosen: &'a Chosen,
    pub(super) options: &'a LoadOptions,
    pub(super) lost: &'a [LostStep],
    pub(super) sources: &'a SourceMap,
    /// Variables with the values of this run.
    pub(super) vars: IndexMap<Id, Variable>,
    /// Names that expressions may say; complete once the probes are known.
    pub(super) scope: Scope,
    /// Steps that have certainly run, or may have, before the one that is being resolved.
    pub(super) ran: BTreeSet<Id>,
    /// The pod's grace period, when it is known.
    pub(super) grace: Option<Duration>,
    pub(super) secrets: Vec<String>,
    pub(super) found: Vec<Diagnostic>,
    pub(super) used: BTreeSet<Id>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        document: &'a Document,
        chosen: &'a Chosen,
        options: &'a LoadOptions,
        lost: &'a [LostStep],
        sources: &'a SourceMap,
        vars: IndexMap<Id, Variable>,
    ) -> Self {
        Self {
            document,
            chosen,
            options,
            lost,
            sources,
            vars,
            scope: Scope::default(),
            ran: BTreeSet::new(),
            grace: None,
            secrets: Vec::new(),
            found: Vec::new(),
            used: BTreeSet::new(),
        }
    }

    /// Reports an error; `None`, so that the caller can go on without the value.
    pub(super) fn error<T>(
        &mut self,
        code: Code,
        message: impl Into<String>,
        span: Span,
        help: Option<String>,
    ) -> Option<T> {
        self.found
            .push(Diagnostic::error(code, message).at(span, "").maybe_help(help));
        None
    }

    /// Reads an expression at this place.
    pub(super) fn expression(&mut self, text: &At<Expr>, place: Place) -> Option<Expression> {
        let located = Located {
            text: &text.value.0,
            span: text.span,
            sources: self.sources,
        };
        if let Some(cut) = located.cut_by_yaml() {
            self.found.extend(cut);
            return None;
        }
        match Expression::read(&text.value.0, text.span, place, &self.scope) {
            Ok(expression) => {
                self.used.extend(expression.names.vars.keys().cloned());
                Some(expression)
            }
            Err(findings) => {
                self.found
                    .extend(findings.iter().map(|finding| located.diagnostic(finding)));
                None
            }
        }
    }
}

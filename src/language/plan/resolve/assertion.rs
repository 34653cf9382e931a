//! The claims.

use super::context::Context;
use crate::language::expression::Place;
use crate::language::plan::Assertion;

impl Context<'_> {
    pub(super) fn assertions(&mut self) -> Vec<Assertion> {
        let document = self.document;
        let mut out = Vec::new();
        for item in document.assertions.iter().flat_map(|list| &list.value) {
            if let Some(expression) = self.expression(&item.value.assert, Place::Assertion) {
                let (name, because) = (item.value.name.clone(), item.value.because.clone());
                out.push(Assertion {
                    expression,
                    name,
                    because,
                    span: item.span,
                });
            }
        }
        out
    }
}

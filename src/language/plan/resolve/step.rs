//! Steps: their common keys, ids and order.

use super::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::Id;
use crate::language::expression::Place;
use crate::language::plan::{Retry, Step, Verb};
use crate::language::scenario;
use crate::language::value::{At, PositiveCount};
use crate::language::vocabulary::is_reserved;

impl Context<'_> {
    /// A list of steps, each after the one before it.
    pub(super) fn steps(&mut self, file: &[At<scenario::Step>]) -> Vec<Step> {
        let mut out = Vec::new();
        for step in file {
            if let Some(resolved) = self.step(step) {
                out.push(resolved);
            }
            self.ran.extend(step.value.id.as_ref().map(|id| id.value.0.clone()));
        }
        out
    }

    /// From here on every step may have run: `finally`.
    pub(super) fn all_steps_ran(&mut self) {
        let ids: Vec<Id> = self
            .document_steps()
            .iter()
            .filter_map(|step| step.value.id.as_ref())
            .map(|id| id.value.0.clone())
            .collect();
        self.ran.extend(ids);
        self.ran.extend(self.lost.iter().map(|lost| lost.id.clone()));
    }

    fn step(&mut self, file: &At<scenario::Step>) -> Option<Step> {
        let scenario::Step {
            id,
            when,
            timeout,
            on_timeout,
            expect,
            retry,
            key: _,
            kind,
        } = &file.value;
        if let Some(id) = id {
            self.check_id(id, kind);
        }
        let when = when.as_ref().map(|text| self.expression(text, Place::When));
        let own_timeout = timeout.as_ref().map(|timeout| self.value(timeout));
        let retry = retry.as_ref().map(|retry| {
            let (times, every) = (self.value(&retry.value.times), self.value(&retry.value.every));
            Some(Retry {
                times: times.map(|PositiveCount(n)| n)?,
                every: every?,
            })
        });
        let verb = self.verb(kind)?;
        let timeout = match own_timeout {
            Some(timeout) => Some(timeout?),
            None => self.default_timeout(&verb),
        };
        self.check_common(file, &verb);
        Some(Step {
            id: id.as_ref().map(|id| id.value.0.clone()),
            when: flatten(when)?,
            timeout,
            on_timeout: on_timeout.as_ref().map(|at| at.value).unwrap_or_default(),
            expect: expect.as_ref().map(|at| at.value).unwrap_or_default(),
            retry: flatten(retry)?,
            span: file.value.key,
            verb,
        })
    }

    fn check_id(&mut self, id: &At<scenario::IdText>, verb: &scenario::Verb) {
        let name = id.value.0.as_str();
        if is_reserved(name) {
            let other = format!(
                "{name}_{}",
                if matches!(verb, scenario::Verb::Request(_)) {
                    "request"
                } else {
                    "step"
                }
            );
            let help = Some(format!("call it for example `{other}`"));
            let _: Option<()> = self.error(
                Code::ReservedId,
                format!("`{name}` cannot be an id: it has a meaning in expressions"),
                id.span,
                help,
            );
        }
        if name.ends_with("_before") || name.ends_with("_after") {
            let message = format!("`{name}` cannot be an id: `_before` and `_after` make an order of two events");
            let _: Option<()> = self.error(Code::ReservedId, message, id.span, None);
        }
        let first = self
            .document_steps()
            .into_iter()
            .filter_map(|step| step.value.id.as_ref())
            .find(|first| first.value == id.value)
            .map(|first| first.span);
        if let Some(first) = first.filter(|first| *first != id.span) {
            let diagnostic = Diagnostic::error(Code::DuplicateId, format!("two steps are called `{name}`"));
            self.found.push(
                diagnostic
                    .at(id.span, "again here")
                    .at(first, "first here")
                    .help("ids are unique in the whole file, `parallel` and `finally` included"),
            );
        }
    }

    /// Common keys that mean nothing beside this verb.
    fn check_common(&mut self, file: &At<scenario::Step>, verb: &Verb) {
        let step = &file.value;
        let can_refuse = matches!(
            verb,
            Verb::DeletePod(_)
                | Verb::EvictPod(_)
                | Verb::Scale(_)
                | Verb::RolloutRestart(_)
                | Verb::DrainNode(_)
                | Verb::Label(_)
                | Verb::Exec(_)
                | Verb::Ssh(_)
        );
        if let Some(expect) = &step.expect
            && !can_refuse
            && expect.value != crate::language::plan::Expect::Any
            && expect.value != crate::language::plan::Expect::Ok
        {
            let help = match verb {
                Verb::Request(_) | Verb::Load(_) => {
                    "what a request comes to is for the assertions: `outcome(long) == refused`"
                }
                _ => "calls to the API and commands can be refused or fail",
            };
            let _: Option<()> = self.error(
                Code::UnknownKey,
                format!("`expect: {}` says nothing about `{}`", word(expect.value), verb.name()),
                expect.span,
                Some(help.into()),
            );
        }
        let instant = matches!(verb, Verb::Wait(_) | Verb::Mark(_));
        if let (Some(timeout), true) = (&step.timeout, instant) {
            let help = match verb {
                Verb::Wait(_) => "`wait` takes exactly its own time",
                _ => "a mark takes no time",
            };
            let _: Option<()> = self.error(
                Code::UnknownKey,
                format!("`timeout` says nothing about `{}`", verb.name()),
                timeout.span,
                Some(help.into()),
            );
        }
        if let (Some(retry), true) = (
            &step.retry,
            instant
                || matches!(
                    verb,
                    Verb::WaitFor(_) | Verb::Poll(_) | Verb::Load(_) | Verb::Parallel(_) | Verb::Snapshot(_)
                ),
        ) {
            let _: Option<()> = self.error(
                Code::UnknownKey,
                format!("`retry` says nothing about `{}`", verb.name()),
                retry.span,
                None,
            );
        }
    }
}

fn word(expect: crate::language::plan::Expect) -> &'static str {
    match expect {
        crate::language::plan::Expect::Ok => "ok",
        crate::language::plan::Expect::Refused => "refused",
        crate::language::plan::Expect::Error => "error",
        crate::language::plan::Expect::Any => "any",
    }
}

/// `None` when the key is there and wrong.
fn flatten<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
    }
}

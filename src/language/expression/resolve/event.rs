//! Names in the place of an event, and the ids that events and functions take.

use super::super::syntax::{Expr, ExprKind, Name};
use super::super::{Event, EventRef, Finding, LbChange, Pattern, ProbeShape, Side, StepShape, TextSpan};
use super::{Resolver, suffixed};
use crate::diagnostic::Code;
use crate::language::Id;
use crate::language::nearest::{did_you_mean, nearest};
use crate::language::vocabulary::{EventName, Function, Root, ServerChoice, Signal};

impl Resolver<'_> {
    /// An expression in the place of an event.
    pub(super) fn event(&mut self, expr: &Expr) -> Option<EventRef> {
        match &expr.kind {
            ExprKind::Name(name) => self.event_of_name(expr.at, name),
            ExprKind::Text(text) => {
                let finding = Finding::new(Code::ExpressionType, expr.at, "expected an event, found a text");
                self.report(finding.help(format!("events have no quotes: `{text}`")))
            }
            ExprKind::Or(..) | ExprKind::And(..) | ExprKind::Not(_) => {
                let finding = Finding::new(Code::ExpressionType, expr.at, "expected one event, found a condition");
                self.report(finding.help("join two claims instead: `exists(X) or exists(Y)`"))
            }
            ExprKind::Compare(..)
            | ExprKind::In(..)
            | ExprKind::Add(..)
            | ExprKind::Sub(..)
            | ExprKind::Neg(_)
            | ExprKind::Number(_)
            | ExprKind::Percent(_)
            | ExprKind::Rate(..)
            | ExprKind::Duration(_)
            | ExprKind::Pattern(_) => self.report(Finding::new(Code::ExpressionType, expr.at, "expected an event")),
        }
    }

    pub(super) fn event_of_name(&mut self, at: TextSpan, name: &Name) -> Option<EventRef> {
        let word = name.word.text.as_str();
        let Some(event) = EventName::parse(word) else {
            return self.step_event(at, name);
        };
        self.no_fields(name)?;
        let arguments = name.arguments.as_deref().unwrap_or_default();
        if let Some(label) = arguments.iter().find_map(|argument| argument.label.as_ref()) {
            let finding = Finding::new(
                Code::Arguments,
                label.at,
                format!("`{event}` has no argument `{}`", label.text),
            );
            return self.report(finding.help("a window belongs to `exists`, `never`, `count` and `always`"));
        }
        let (fewest, most) = event.arity();
        if !(fewest..=most).contains(&arguments.len()) {
            let wants = match (fewest, most) {
                (0, 0) => "no arguments".to_owned(),
                (1, 1) => "1 argument".to_owned(),
                (a, b) if a == b => format!("{a} arguments"),
                (a, b) => format!("{a} or {b} arguments"),
            };
            let count = arguments.len();
            let verb = if count == 1 { "is" } else { "are" };
            let finding = Finding::new(
                Code::Arguments,
                at,
                format!("`{event}` takes {wants}, here {verb} {count}"),
            );
            return self.report(finding.help(format!("it is written `{}`", event.usage())));
        }
        let values: Vec<&Expr> = arguments.iter().map(|argument| &argument.value).collect();
        let event = self.event_with(event, &values)?;
        Some(EventRef { at, event })
    }

    fn event_with(&mut self, event: EventName, values: &[&Expr]) -> Option<Event> {
        let word = event.as_str();
        Some(match (event, values) {
            (EventName::Transition, [from, to]) => {
                let (from, to) = (self.side(from), self.side(to));
                Event::Transition(from?, to?)
            }
            (EventName::Log, [probe, pattern]) => {
                let (probe, pattern) = (self.probe(probe, word, true), self.pattern(pattern));
                Event::Log(probe?, pattern?)
            }
            (EventName::Rst, [request]) => Event::Rst(Some(self.request(request, word)?)),
            (EventName::Cut, [request]) => Event::Cut(self.request(request, word)?),
            (EventName::Finished, [request]) => Event::Finished(self.request(request, word)?),
            (EventName::Failed, [request]) => Event::Failed(self.request(request, word)?),
            (EventName::Goaway, [request]) => Event::Goaway(self.request(request, word)?),
            (EventName::Started, [step]) => Event::Started(self.step(step, word)?),
            (EventName::Ended, [step]) => Event::Ended(self.step(step, word)?),
            (EventName::Mark, [mark]) => Event::Mark(self.mark(mark)?),
            (EventName::Sigterm, [container]) => Event::Sigterm(Some(self.container(container, word)?)),
            (EventName::ContainerExit, [container]) => Event::ContainerExit(Some(self.container(container, word)?)),
            (EventName::LbDown, values) => self.lb(LbChange::Down, values)?,
            (EventName::LbUp, values) => self.lb(LbChange::Up, values)?,
            (EventName::LbDrain, values) => self.lb(LbChange::Drain, values)?,
            (EventName::LbNolb, values) => self.lb(LbChange::Nolb, values)?,
            (EventName::LbMaint, values) => self.lb(LbChange::Maint, values)?,
            (EventName::Rst, _) => Event::Rst(None),
            (EventName::Sigterm, _) => Event::Sigterm(None),
            (EventName::ContainerExit, _) => Event::ContainerExit(None),
            (EventName::Delete, _) => Event::Delete,
            (EventName::Drain, _) => Event::Drain,
            (EventName::DrainListeners, _) => Event::DrainListeners,
            (EventName::ActiveZero, _) => Event::ActiveZero,
            (EventName::FirstActiveZero, _) => Event::FirstActiveZero,
            (EventName::HealthFail, _) => Event::HealthFail,
            (EventName::LbReload, _) => Event::LbReload,
            (EventName::PodTerminating, _) => Event::PodTerminating,
            (EventName::PodGone, _) => Event::PodGone,
            (EventName::PodReady, _) => Event::PodReady,
            (EventName::NotReady, _) => Event::NotReady,
            (EventName::EndpointRemoved, _) => Event::EndpointRemoved,
            (EventName::RolloutStarted, _) => Event::RolloutStarted,
            (EventName::RolloutFinished, _) => Event::RolloutFinished,
            // The arity was checked before: these never have another number of arguments.
            (
                EventName::Transition
                | EventName::Log
                | EventName::Cut
                | EventName::Started
                | EventName::Ended
                | EventName::Finished
                | EventName::Failed
                | EventName::Goaway
                | EventName::Mark,
                _,
            ) => return None,
        })
    }

    fn lb(&mut self, change: LbChange, values: &[&Expr]) -> Option<Event> {
        let choice = match values.first() {
            Some(value) => Some(self.server(value, change.as_str())?),
            None => None,
        };
        Some(Event::Lb(change, choice))
    }

    /// `any` or `others`.
    pub(super) fn server(&mut self, expr: &Expr, word: &str) -> Option<ServerChoice> {
        let text = match &expr.kind {
            ExprKind::Name(name) if name.arguments.is_none() && name.fields.is_empty() => name.word.text.as_str(),
            _ => "",
        };
        if let Some(choice) = ServerChoice::parse(text) {
            return Some(choice);
        }
        let finding = Finding::new(Code::Arguments, expr.at, format!("`{word}` takes `any` or `others`"));
        self.report(finding.help(format!("without an argument, `{word}` is about the target's server; `any` is any server, `others` any but the target's")))
    }

    fn step_event(&mut self, at: TextSpan, name: &Name) -> Option<EventRef> {
        let word = name.word.text.as_str();
        let plain = name.arguments.is_none() && name.fields.is_empty();
        if plain && self.is_step(word) {
            return Some(EventRef {
                at,
                event: Event::Step(Id::trusted(word)),
            });
        }
        let at = name.word.at;
        let finding = |text: String| Finding::new(Code::ExpressionType, at, text);
        if Function::parse(word).is_some() || suffixed(word).is_some() && !plain {
            return self.report(
                finding(format!("expected an event, but `{word}` is a function"))
                    .help("events are names such as `lb_down` and `ended(long)`"),
            );
        }
        if Signal::parse(word).is_some() {
            let help = if word == "active" {
                "the event is `active_zero`"
            } else {
                "a signal has values; an event happens"
            };
            return self.report(finding(format!("expected an event, but `{word}` is a signal")).help(help));
        }
        if Root::parse(word).is_some() {
            return self.report(finding(format!("expected an event, but `{name}` is a value")));
        }
        let steps: Vec<&str> = self
            .scope
            .steps
            .iter()
            .flat_map(|steps| steps.keys().map(Id::as_str))
            .collect();
        if !plain && steps.contains(&word) {
            return self.report(finding(format!(
                "`{word}` is a step; as an event it takes no arguments"
            )));
        }
        let events = EventName::ALL.iter().map(|event| event.as_str());
        let close = nearest(word, events.chain(steps.iter().copied())).map(|close| format!("did you mean `{close}`?"));
        let help = close
            .unwrap_or_else(|| "`gtrun explain events` lists the events; the id of any step is one too".to_owned());
        self.report(
            Finding::new(
                Code::UnknownInExpression,
                at,
                format!("`{word}` is no event and no step"),
            )
            .help(help),
        )
    }

    fn side(&mut self, expr: &Expr) -> Option<Side> {
        let text = match &expr.kind {
            ExprKind::Name(name) if name.arguments.is_none() && name.fields.is_empty() => name.word.text.as_str(),
            ExprKind::Text(text) => text.as_str(),
            _ => {
                let finding = Finding::new(Code::Arguments, expr.at, "`transition` takes states");
                return self
                    .report(finding.help("it is written `transition(CLOSING, CLOSED)`; `any` leaves a side open"));
            }
        };
        if text == "any" {
            return Some(Side::Any);
        }
        let own = match &self.scope.fsm {
            Some(fsm) if fsm.knows(text) => Some(fsm.canonical(text)),
            Some(_) => None,
            None => Some(self.scope.believed.states.get(text).map_or(text, String::as_str)),
        };
        if let Some(own) = own.map(str::to_owned) {
            if own != text {
                self.used.states.insert(text.to_owned(), own.clone());
            }
            return Some(Side::State(own));
        }
        let fsm = self.scope.fsm.iter();
        let known: Vec<&str> = fsm
            .flat_map(|fsm| fsm.states.iter().chain(fsm.aliases.keys()))
            .map(String::as_str)
            .collect();
        let finding = Finding::new(
            Code::UnknownInExpression,
            expr.at,
            format!("the FSM has no state `{text}`"),
        );
        self.report(finding.maybe_help(did_you_mean(text, known.iter().copied())))
    }

    fn pattern(&mut self, expr: &Expr) -> Option<Pattern> {
        let ExprKind::Pattern(text) = &expr.kind else {
            let finding = Finding::new(Code::Arguments, expr.at, "`log` takes a pattern between slashes");
            return self.report(finding.help("it is written `log(app, /ready/)`"));
        };
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim()
                    .trim_start_matches("error: ");
                let finding = Finding::new(
                    Code::ExpressionSyntax,
                    expr.at,
                    format!("this is no regular expression: {reason}"),
                );
                self.report(finding)
            }
        }
    }

    /// The id of a request step.
    pub(super) fn request(&mut self, expr: &Expr, word: &str) -> Option<Id> {
        self.step_of(expr, word, "a request", StepShape::Request)
    }

    /// The id of a load step.
    pub(super) fn load(&mut self, expr: &Expr, word: &str) -> Option<Id> {
        self.step_of(expr, word, "a load", StepShape::Load)
    }

    fn step_of(&mut self, expr: &Expr, word: &str, what: &str, shape: StepShape) -> Option<Id> {
        let name = self.bare(expr, word, what)?;
        let Some(steps) = &self.scope.steps else {
            return Some(Id::trusted(&name.text));
        };
        let of_shape: Vec<&str> = steps
            .iter()
            .filter(|(_, s)| **s == shape)
            .map(|(id, _)| id.as_str())
            .collect();
        match steps.get(name.text.as_str()) {
            Some(found) if *found == shape => Some(Id::trusted(&name.text)),
            Some(found) => {
                let is = match found {
                    StepShape::Request => "a request",
                    StepShape::Load => "a load",
                    StepShape::Api | StepShape::Command | StepShape::PollHttp | StepShape::Other => "another step",
                };
                let help = match (found, shape) {
                    (StepShape::Load, StepShape::Request) => {
                        Some("a load is asked with `requests`, `disrupted`, `disruption_rate` and `latency`".to_owned())
                    }
                    (StepShape::Request, StepShape::Load) => {
                        Some("a request is asked with `status`, `outcome`, `duration` and `fate`".to_owned())
                    }
                    _ => did_you_mean(&name.text, of_shape.iter().copied()),
                };
                let finding = Finding::new(
                    Code::Arguments,
                    expr.at,
                    format!("`{word}` takes the id of {what}, but `{}` is {is}", name.text),
                );
                self.report(finding.maybe_help(help))
            }
            None => {
                let finding = Finding::new(
                    Code::UnknownInExpression,
                    expr.at,
                    format!("there is no step `{}`", name.text),
                );
                let none = || {
                    Some(format!(
                        "the scenario has no step that is {what}; `{word}` needs one with an `id`"
                    ))
                };
                self.report(finding.maybe_help(did_you_mean(&name.text, of_shape.iter().copied()).or_else(none)))
            }
        }
    }

    /// The id of any step.
    pub(super) fn step(&mut self, expr: &Expr, word: &str) -> Option<Id> {
        let name = self.bare(expr, word, "a step")?;
        if self.is_step(&name.text) {
            return Some(Id::trusted(&name.text));
        }
        let known: Vec<&str> = self
            .scope
            .steps
            .iter()
            .flat_map(|steps| steps.keys().map(Id::as_str))
            .collect();
        let none = || Some("give the step an `id`".to_owned());
        let finding = Finding::new(
            Code::UnknownInExpression,
            expr.at,
            format!("there is no step `{}`", name.text),
        );
        self.report(finding.maybe_help(did_you_mean(&name.text, known.iter().copied()).or_else(none)))
    }

    /// The name of a probe, of one with lines when those are wanted.
    pub(super) fn probe(&mut self, expr: &Expr, word: &str, lines: bool) -> Option<Id> {
        let name = self.bare(expr, word, "a probe")?;
        let Some(probes) = &self.scope.probes else {
            return Some(Id::trusted(&name.text));
        };
        let known: Vec<&str> = probes
            .iter()
            .filter(|(_, s)| !lines || **s == ProbeShape::Log)
            .map(|(id, _)| id.as_str())
            .collect();
        match probes.get(name.text.as_str()) {
            Some(ProbeShape::Other) if lines => {
                let finding = Finding::new(Code::Arguments, expr.at, format!("probe `{}` has no lines", name.text));
                self.report(finding.help(format!("probes with lines are {}", known.join(", "))))
            }
            Some(_) => Some(Id::trusted(&name.text)),
            None => {
                let finding = Finding::new(
                    Code::UnknownInExpression,
                    expr.at,
                    format!("there is no probe `{}`", name.text),
                );
                self.report(finding.maybe_help(did_you_mean(&name.text, known.iter().copied())))
            }
        }
    }

    fn mark(&mut self, expr: &Expr) -> Option<Id> {
        let name = self.bare(expr, "mark", "a mark")?;
        let known = self.scope.marks.as_deref();
        if known.is_none_or(|marks| marks.iter().any(|mark| mark == name.text.as_str())) {
            return Some(Id::trusted(&name.text));
        }
        let finding = Finding::new(
            Code::UnknownInExpression,
            expr.at,
            format!("no step sets the mark `{}`", name.text),
        );
        let close = did_you_mean(&name.text, known.unwrap_or_default().iter().map(Id::as_str));
        self.report(finding.help(close.unwrap_or_else(|| format!("add a step `- mark: {}`", name.text))))
    }

    fn container(&mut self, expr: &Expr, word: &str) -> Option<Id> {
        let name = self.bare(expr, word, "a container")?;
        let known = self.scope.containers.as_deref();
        if known.is_none_or(|containers| containers.iter().any(|container| container == name.text.as_str())) {
            return Some(Id::trusted(&name.text));
        }
        let finding = Finding::new(
            Code::UnknownInExpression,
            expr.at,
            format!("the environment has no container `{}`", name.text),
        );
        self.report(finding.maybe_help(did_you_mean(
            &name.text,
            known.unwrap_or_default().iter().map(Id::as_str),
        )))
    }
}

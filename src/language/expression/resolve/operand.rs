//! Names and arithmetic in the place of a value.

use super::super::syntax::{Expr, ExprKind, Name, Per, WordAt};
use super::super::{Event, Finding, LbChange, Operand, OperandKind, Place, StepShape, TextSpan, Type};
use super::{REPLY, Resolver};
use crate::diagnostic::Code;
use crate::language::nearest::{did_you_mean, nearest};
use crate::language::vocabulary::{
    EventField, EventName, Function, Root, RunField, Signal, StepField, TargetField, Word, WordSet,
};
use crate::language::{Id, Scalar};

impl Resolver<'_> {
    /// A value; `hint` is the type that the other side has, which decides what a bare word means.
    pub(super) fn operand(&mut self, expr: &Expr, hint: Option<Type>) -> Option<Operand> {
        let at = expr.at;
        let literal = |ty, kind| Some(Operand { at, ty, kind });
        match &expr.kind {
            ExprKind::Number(n) => literal(Type::Number, OperandKind::Number(*n)),
            ExprKind::Percent(n) => literal(Type::Percent, OperandKind::Percent(*n)),
            ExprKind::Rate(n, Per::Second) => literal(Type::Rate, OperandKind::Rate(*n)),
            ExprKind::Rate(n, Per::Minute) => literal(Type::Rate, OperandKind::Rate(n / 60.0)),
            ExprKind::Duration(d) => literal(Type::Duration, OperandKind::Duration(*d)),
            ExprKind::Text(text) => match hint {
                Some(Type::Word(set)) => self.word(at, text, set),
                _ => literal(Type::Text, OperandKind::Text(text.clone())),
            },
            ExprKind::Add(a, b) => self.sum(at, a, b, OperandKind::Add),
            ExprKind::Sub(a, b) => self.sum(at, a, b, OperandKind::Sub),
            ExprKind::Neg(a) => {
                let inner = self.operand(a, None)?;
                self.number_like(&inner)?;
                literal(inner.ty, OperandKind::Neg(Box::new(inner)))
            }
            ExprKind::Name(name) => self.operand_of_name(at, name, hint),
            ExprKind::Pattern(_) => self.report(Finding::new(
                Code::ExpressionType,
                at,
                "a pattern belongs to `log(P, /regex/)`",
            )),
            ExprKind::Or(..) | ExprKind::And(..) | ExprKind::Not(_) | ExprKind::Compare(..) | ExprKind::In(..) => self
                .report(Finding::new(
                    Code::ExpressionType,
                    at,
                    "expected a value, found a condition",
                )),
        }
    }

    /// A value of exactly this type.
    pub(super) fn operand_of_type(&mut self, expr: &Expr, ty: Type) -> Option<Operand> {
        let operand = self.operand(expr, Some(ty))?;
        if operand.ty == ty {
            return Some(operand);
        }
        let wanted = Operand {
            at: operand.at,
            ty,
            kind: OperandKind::Bool(false),
        };
        self.mismatch(&wanted, &operand)
    }

    fn sum(
        &mut self,
        at: TextSpan,
        a: &Expr,
        b: &Expr,
        kind: fn(Box<Operand>, Box<Operand>) -> OperandKind,
    ) -> Option<Operand> {
        let (a, b) = (self.operand(a, None), self.operand(b, None));
        let (a, b) = (a?, b?);
        self.number_like(&a)?;
        self.number_like(&b)?;
        if a.ty != b.ty {
            let finding = Finding::new(
                Code::ExpressionType,
                at,
                format!("{} and {} cannot be added", a.ty, b.ty),
            );
            let help = matches!(
                (a.ty, b.ty),
                (Type::Duration, Type::Number) | (Type::Number, Type::Duration)
            );
            return self.report(finding.maybe_help(help.then(|| "give the number a unit: `2s`".to_owned())));
        }
        Some(Operand {
            at,
            ty: a.ty,
            kind: kind(Box::new(a), Box::new(b)),
        })
    }

    fn number_like(&mut self, operand: &Operand) -> Option<()> {
        match operand.ty {
            Type::Number | Type::Duration | Type::Percent | Type::Rate => Some(()),
            Type::Text | Type::Bool | Type::Word(_) => self.report(Finding::new(
                Code::ExpressionType,
                operand.at,
                format!("{} cannot be added or subtracted", operand.ty),
            )),
        }
    }

    /// True for a bare word that means something only beside a typed value.
    pub(super) fn may_be_word(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => {
                let word = name.word.text.as_str();
                let signal_or_reply =
                    Signal::parse(word).is_some() || (self.place == Place::PollUntil && reply(word).is_some());
                name.arguments.is_none()
                    && name.fields.is_empty()
                    && !signal_or_reply
                    && !matches!(word, "true" | "false" | "down_time")
            }
            ExprKind::Text(_) => true,
            _ => false,
        }
    }

    pub(super) fn operand_of_name(&mut self, at: TextSpan, name: &Name, hint: Option<Type>) -> Option<Operand> {
        let word = name.word.text.as_str();
        let plain = name.arguments.is_none() && name.fields.is_empty();
        if plain && let Some(Type::Word(set)) = hint {
            return self.word(at, word, set);
        }
        if plain && matches!(word, "true" | "false") {
            return Some(Operand {
                at,
                ty: Type::Bool,
                kind: OperandKind::Bool(word == "true"),
            });
        }
        if let Some(root) = Root::parse(word) {
            return self.path(at, name, root);
        }
        if plain
            && self.place == Place::PollUntil
            && let Some(field) = reply(word)
        {
            return Some(Operand {
                at,
                ty: reply_type(field),
                kind: OperandKind::Reply(field),
            });
        }
        if let Some(signal) = Signal::parse(word) {
            return self.signal(at, name, signal);
        }
        if let Some(event) = EventName::parse(word) {
            return self.event_field(at, name, event);
        }
        if let Some(function) = Function::parse(word) {
            return self.function_value(at, name, function);
        }
        if plain && hint == Some(Type::Text) {
            return Some(Operand {
                at,
                ty: Type::Text,
                kind: OperandKind::Text(word.to_owned()),
            });
        }
        self.unknown_value(name)
    }

    fn unknown_value<T>(&mut self, name: &Name) -> Option<T> {
        let word = name.word.text.as_str();
        let at = name.word.at;
        if let Some(shape) = self.scope.steps.as_ref().and_then(|steps| steps.get(word)) {
            let finding = Finding::new(Code::ExpressionType, at, format!("`{word}` is a step, not a value"));
            let field = name.fields.first().map_or("status", |field| field.text.as_str());
            let help = match shape {
                StepShape::Request => {
                    format!("a request is asked with `status({word})`, `outcome({word})`, `duration({word})`")
                }
                StepShape::Load => format!("a load is asked with `requests({word})`, `disrupted({word})`"),
                StepShape::Api | StepShape::Command | StepShape::PollHttp | StepShape::Other => {
                    format!("its results are `steps.{word}.{field}`")
                }
            };
            return self.report(finding.help(help));
        }
        if self.scope.vars.contains_key(word) {
            let finding = Finding::new(Code::UnknownInExpression, at, format!("`{word}` is a variable"));
            return self.report(finding.help(format!("write `vars.{word}`")));
        }
        let orders: Vec<String> = EventName::ALL
            .iter()
            .flat_map(|event| [format!("{event}_before"), format!("{event}_after")])
            .collect();
        let known = Function::ALL
            .iter()
            .map(|f| f.as_str())
            .chain(Signal::ALL.iter().map(|s| s.as_str()));
        let known = known
            .chain(EventName::ALL.iter().map(|e| e.as_str()))
            .chain(Root::ALL.iter().map(|r| r.as_str()));
        let help = nearest(word, known.chain(orders.iter().map(String::as_str)))
            .map(|close| format!("did you mean `{close}`?"));
        let finding = Finding::new(
            Code::UnknownInExpression,
            at,
            format!("`{word}` is no event, function, signal or word that fits here"),
        );
        self.report(finding.help(help.unwrap_or_else(|| "`gtrun explain` lists all names".to_owned())))
    }

    /// A word of this set.
    fn word(&mut self, at: TextSpan, text: &str, set: WordSet) -> Option<Operand> {
        let ty = Type::Word(set);
        if let Some(word) = set.word(text) {
            return Some(Operand {
                at,
                ty,
                kind: OperandKind::Word(word),
            });
        }
        let words = set.words();
        let known = words.iter().map(|word| word.as_str());
        let finding = Finding::new(Code::WrongWord, at, format!("`{text}` is not {ty}"));
        let elsewhere = WordSet::ALL.iter().find_map(|other| other.word(text)).map(Word::set);
        let finding = match elsewhere {
            Some(other) => finding.label(format!("this is {}", Type::Word(other))),
            None => finding,
        };
        self.report(finding.maybe_help(did_you_mean(text, known)))
    }

    fn signal(&mut self, at: TextSpan, name: &Name, signal: Signal) -> Option<Operand> {
        self.no_fields(name)?;
        if name.arguments.is_some() {
            return self.report(Finding::new(
                Code::Arguments,
                at,
                format!("`{signal}` is a signal and takes no arguments"),
            ));
        }
        if self.place == Place::Assertion && !self.in_always {
            let finding = Finding::new(
                Code::NotHere,
                at,
                format!("`{signal}` has many values in a run; which moment is meant?"),
            );
            return self.report(finding.help(format!(
                "write `always({signal} ..., from=delete, until=lb_down)`, or name an event such as `active_zero`"
            )));
        }
        let ty = match signal {
            Signal::Active | Signal::Downstream | Signal::Upstream | Signal::ReadyReplicas => Type::Number,
            Signal::LbStatus => Type::Word(WordSet::LbStatus),
            Signal::Health => Type::Word(WordSet::Health),
        };
        Some(Operand {
            at,
            ty,
            kind: OperandKind::Signal(signal),
        })
    }

    /// `lb_down.sessions`: a field of an event.
    fn event_field(&mut self, at: TextSpan, name: &Name, event: EventName) -> Option<Operand> {
        let [field] = name.fields.as_slice() else {
            if let Some(second) = name.fields.get(1) {
                return self.report(Finding::new(
                    Code::UnknownInExpression,
                    second.at,
                    "a field has no fields",
                ));
            }
            let finding = Finding::new(Code::ExpressionType, at, format!("`{event}` is an event, not a value"));
            return self.report(finding.help(format!(
                "`gap(delete, {event})` is a duration, `count({event})` a number"
            )));
        };
        let without = Name {
            word: name.word.clone(),
            arguments: name.arguments.clone(),
            fields: Vec::new(),
        };
        let head = TextSpan::new(at.start, field.at.start.saturating_sub(1));
        let event_ref = self.event_of_name(head, &without)?;
        self.not_in_always(at, "a field of an event")?;
        let fields: &[(EventField, Type)] = match &event_ref.event {
            Event::Lb(LbChange::Down, _) => &[(EventField::Sessions, Type::Number), (EventField::Reason, Type::Text)],
            Event::ContainerExit(_) => &[(EventField::Code, Type::Number)],
            Event::Rst(_) => &[(EventField::Sender, Type::Word(WordSet::Party))],
            _ => &[],
        };
        match fields.iter().find(|(known, _)| known.as_str() == field.text) {
            Some((known, ty)) => Some(Operand {
                at,
                ty: *ty,
                kind: OperandKind::EventField(event_ref, *known),
            }),
            None => {
                let finding = Finding::new(
                    Code::UnknownInExpression,
                    field.at,
                    format!("`{event}` has no field `{}`", field.text),
                );
                let help = did_you_mean(&field.text, fields.iter().map(|(known, _)| known.as_str()));
                self.report(finding.help(help.unwrap_or_else(|| {
                    "fields are lb_down.sessions, lb_down.reason, container_exit(C).code, rst.sender".to_owned()
                })))
            }
        }
    }

    fn function_value(&mut self, at: TextSpan, name: &Name, function: Function) -> Option<Operand> {
        let word = function.as_str();
        self.no_fields(name)?;
        let (ty, kind) = match function {
            Function::Count => {
                let (event, window) = self.windowed_event(name, function)?;
                self.not_in_always(at, "`count`")?;
                (Type::Number, OperandKind::Count(event, window))
            }
            Function::Gap => {
                let [x, y] = self.positional(name, word, &["X", "Y"])?;
                let (x, y) = (self.event(&x.value), self.event(&y.value));
                self.only_after_the_run(at, function)?;
                (Type::Duration, OperandKind::Gap(x?, y?))
            }
            Function::Status
            | Function::Outcome
            | Function::Duration
            | Function::Bytes
            | Function::Fate
            | Function::Cause => {
                let [request] = self.positional(name, word, &["R"])?;
                let request = self.request(&request.value, word)?;
                self.not_in_always(at, &format!("`{word}`"))?;
                match function {
                    Function::Status => (Type::Number, OperandKind::Status(request)),
                    Function::Outcome => (Type::Word(WordSet::Outcome), OperandKind::Outcome(request)),
                    Function::Duration => (Type::Duration, OperandKind::DurationOf(request)),
                    Function::Bytes => (Type::Number, OperandKind::Bytes(request)),
                    Function::Fate => {
                        self.only_after_the_run(at, function)?;
                        (Type::Word(WordSet::Fate), OperandKind::Fate(request))
                    }
                    _ => {
                        self.only_after_the_run(at, function)?;
                        (Type::Word(WordSet::Cause), OperandKind::Cause(request))
                    }
                }
            }
            Function::Requests | Function::Disrupted | Function::DisruptionRate => {
                let [load] = self.positional(name, word, &["L"])?;
                let load = self.load(&load.value, word);
                self.only_after_the_run(at, function)?;
                match function {
                    Function::Requests => (Type::Number, OperandKind::Requests(load?)),
                    Function::Disrupted => (Type::Number, OperandKind::Disrupted(load?)),
                    _ => (Type::Percent, OperandKind::DisruptionRate(load?)),
                }
            }
            Function::Latency => {
                let [load, percentile] = self.positional(name, word, &["L", "99%"])?;
                let load = self.load(&load.value, word);
                let percentile = self.operand_of_type(&percentile.value, Type::Percent);
                self.only_after_the_run(at, function)?;
                let percentile = percentile?;
                let value = percentile.constant().filter(|value| *value > 0.0 && *value <= 100.0);
                let Some(value) = value else {
                    let finding = Finding::new(
                        Code::Arguments,
                        percentile.at,
                        "a percentile is above 0% and at most 100%",
                    );
                    return self.report(finding.help("100% is the largest value"));
                };
                (Type::Duration, OperandKind::Latency(load?, value))
            }
            Function::DownTime => {
                let choice = match name.arguments.as_deref() {
                    None => None,
                    Some(_) => {
                        let [choice] = self.positional(name, word, &["any"])?;
                        Some(self.server(&choice.value, word)?)
                    }
                };
                self.only_after_the_run(at, function)?;
                (Type::Duration, OperandKind::DownTime(choice))
            }
            Function::Before
            | Function::After
            | Function::Within
            | Function::Exists
            | Function::Never
            | Function::Always
            | Function::Protected
            | Function::Broken
            | Function::Complete => {
                let finding = Finding::new(
                    Code::ExpressionType,
                    at,
                    format!("`{word}` is a condition, not a value"),
                );
                return self.report(finding.help(format!("write it without a comparison: `{}`", function.usage())));
            }
        };
        Some(Operand { at, ty, kind })
    }

    /// `vars.x`, `steps.x.y`, `target.x`, `run.x`, `env.X`.
    fn path(&mut self, at: TextSpan, name: &Name, root: Root) -> Option<Operand> {
        if name.arguments.is_some() {
            return self.report(
                Finding::new(Code::Arguments, name.word.at, format!("`{root}` takes no arguments"))
                    .help(format!("write `{root}.name`")),
            );
        }
        let fields: Vec<&WordAt> = name.fields.iter().collect();
        let (ty, kind) = match (root, fields.as_slice()) {
            (Root::Vars, [field]) => {
                let variable = self.variable(field)?;
                let kind = match variable.value {
                    Scalar::Bool(value) => OperandKind::Bool(value),
                    Scalar::Number(value) => OperandKind::Number(value),
                    Scalar::Duration(ref value) => OperandKind::Duration(*value),
                    Scalar::Percent(value) => OperandKind::Percent(value),
                    Scalar::Rate(value) => OperandKind::Rate(value),
                    Scalar::Text(ref value) => OperandKind::Text(value.clone()),
                };
                (variable.ty(), kind)
            }
            (Root::Target, [field]) => match TargetField::parse(&field.text) {
                Some(known) => (Type::Text, OperandKind::Target(known)),
                None => return self.unknown_field(root, field, TargetField::ALL.iter().map(|f| f.as_str())),
            },
            (Root::Run, [field]) => match RunField::parse(&field.text) {
                Some(known) => (Type::Text, OperandKind::Run(known)),
                None => return self.unknown_field(root, field, RunField::ALL.iter().map(|f| f.as_str())),
            },
            (Root::Env, [field]) => {
                let value = self.scope.env.get(&field.text).cloned();
                if value.is_none() && self.scope.env_known {
                    let finding = Finding::new(
                        Code::MissingEnv,
                        field.at,
                        format!("the environment variable `{}` is not set", field.text),
                    );
                    return self.report(finding.help(format!("start gtrun with {}=...", field.text)));
                }
                (Type::Text, OperandKind::Env(field.text.clone(), value))
            }
            (Root::Steps, [step, field]) => return self.step_result(at, step, field),
            (Root::Vars | Root::Target | Root::Run | Root::Env | Root::Steps, _) => {
                let form = if root == Root::Steps { "steps.<id>.<result>" } else { "" };
                let form = if form.is_empty() {
                    format!("{root}.<name>")
                } else {
                    form.to_owned()
                };
                return self.report(
                    Finding::new(Code::UnknownInExpression, at, format!("`{name}` names nothing"))
                        .help(format!("it is written `{form}`")),
                );
            }
        };
        Some(Operand { at, ty, kind })
    }

    fn unknown_field<'k, T>(
        &mut self,
        root: Root,
        field: &WordAt,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> Option<T> {
        let finding = Finding::new(
            Code::UnknownInExpression,
            field.at,
            format!("`{root}` has no `{}`", field.text),
        );
        self.report(finding.maybe_help(did_you_mean(&field.text, known)))
    }

    fn step_result(&mut self, at: TextSpan, step: &WordAt, field: &WordAt) -> Option<Operand> {
        let shape = match &self.scope.steps {
            None => self.scope.believed.steps.get(step.text.as_str()).copied(),
            Some(steps) => match steps.get(step.text.as_str()) {
                Some(shape) => Some(*shape),
                None => {
                    let finding = Finding::new(
                        Code::UnknownInExpression,
                        step.at,
                        format!("there is no step `{}`", step.text),
                    );
                    let help = did_you_mean(&step.text, steps.keys().map(Id::as_str));
                    return self.report(finding.maybe_help(help));
                }
            },
        };
        let known = results(shape);
        let parsed = StepField::parse(&field.text).filter(|field| known.contains(field));
        let Some(parsed) = parsed else {
            let finding = Finding::new(
                Code::UnknownInExpression,
                field.at,
                format!("step `{}` has no result `{}`", step.text, field.text),
            );
            let help = did_you_mean(&field.text, known.iter().map(|f| f.as_str()));
            return self.report(finding.help(help.unwrap_or_else(|| "this verb leaves no results".to_owned())));
        };
        self.not_in_always(at, "a result of a step")?;
        if let Some(shape) = shape {
            self.used.steps.insert(Id::trusted(&step.text), shape);
        }
        let ty = match parsed {
            StepField::Status | StepField::Bytes | StepField::LocalPort | StepField::Exit => Type::Number,
            StepField::Duration => Type::Duration,
            StepField::Stdout | StepField::Body => Type::Text,
            StepField::Outcome => match shape {
                Some(StepShape::Request | StepShape::PollHttp) => Type::Word(WordSet::Outcome),
                Some(StepShape::Load | StepShape::Api | StepShape::Command | StepShape::Other) | None => {
                    Type::Word(WordSet::StepOutcome)
                }
            },
        };
        Some(Operand {
            at,
            ty,
            kind: OperandKind::StepResult(Id::trusted(&step.text), parsed),
        })
    }
}

/// What a step of this shape leaves behind; everything for one that is not known.
pub(crate) fn results(shape: Option<StepShape>) -> &'static [StepField] {
    use StepField::{Body, Bytes, Duration, Exit, LocalPort, Outcome, Status, Stdout};
    match shape {
        Some(StepShape::Request) => &[Status, Outcome, Duration, Bytes, LocalPort],
        Some(StepShape::Api) => &[Status, Outcome],
        Some(StepShape::Command) => &[Exit, Stdout, Outcome],
        Some(StepShape::PollHttp) => &[Status, Outcome],
        Some(StepShape::Load | StepShape::Other) => &[],
        None => &[Status, Outcome, Duration, Bytes, LocalPort, Exit, Stdout, Body],
    }
}

fn reply(word: &str) -> Option<StepField> {
    REPLY.into_iter().find(|field| field.as_str() == word)
}

fn reply_type(field: StepField) -> Type {
    match field {
        StepField::Status | StepField::Exit | StepField::Bytes | StepField::LocalPort => Type::Number,
        StepField::Duration => Type::Duration,
        StepField::Outcome => Type::Word(WordSet::Outcome),
        StepField::Body | StepField::Stdout => Type::Text,
    }
}

impl Operand {
    /// The value of a constant in the unit of its type (durations in seconds); `None` for what only a run can tell.
    pub fn constant(&self) -> Option<f64> {
        match &self.kind {
            OperandKind::Number(n) | OperandKind::Percent(n) | OperandKind::Rate(n) => Some(*n),
            OperandKind::Duration(d) => Some(d.as_secs_f64()),
            OperandKind::Add(a, b) => Some(a.constant()? + b.constant()?),
            OperandKind::Sub(a, b) => Some(a.constant()? - b.constant()?),
            OperandKind::Neg(a) => Some(-a.constant()?),
            OperandKind::Text(_)
            | OperandKind::Bool(_)
            | OperandKind::Word(_)
            | OperandKind::Count(..)
            | OperandKind::Gap(..)
            | OperandKind::Status(_)
            | OperandKind::Outcome(_)
            | OperandKind::DurationOf(_)
            | OperandKind::Bytes(_)
            | OperandKind::Fate(_)
            | OperandKind::Cause(_)
            | OperandKind::Requests(_)
            | OperandKind::Disrupted(_)
            | OperandKind::DisruptionRate(_)
            | OperandKind::Latency(..)
            | OperandKind::DownTime(_)
            | OperandKind::Signal(_)
            | OperandKind::EventField(..)
            | OperandKind::StepResult(..)
            | OperandKind::Reply(_)
            | OperandKind::Target(_)
            | OperandKind::Run(_)
            | OperandKind::Env(..) => None,
        }
    }
}

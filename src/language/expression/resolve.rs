//! A syntax tree to a condition: every name resolved, every type checked, all findings at once.

mod argument;
mod event;
mod operand;

pub(crate) use operand::results;

use super::syntax::{CompareOp, Expr, ExprKind, Name, WordAt};
use super::{
    Condition, ConditionKind, EventRef, Finding, Operand, OperandKind, Place, Scope, TextSpan, Type, UsedNames, Window,
};
use crate::diagnostic::Code;
use crate::language::nearest::did_you_mean;
use crate::language::vocabulary::{EventName, Fate, Function, Root, Signal, StepField, Word, WordSet};
use crate::language::{Id, Variable};
use crate::time::Duration;

/// Resolves an expression.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn resolve(expr: &Expr, scope: &Scope, place: Place) -> Result<(Condition, UsedNames), Vec<Finding>> {
    let mut resolver = Resolver {
        scope,
        place,
        in_always: false,
        findings: Vec::new(),
        used: UsedNames::default(),
    };
    match resolver.condition(expr) {
        Some(condition) if resolver.findings.is_empty() => Ok((condition, resolver.used)),
        _ => Err(resolver.findings),
    }
}

struct Resolver<'a> {
    scope: &'a Scope,
    place: Place,
    /// Inside `always(...)`, where signals have values and nothing else is known.
    in_always: bool,
    findings: Vec<Finding>,
    /// What names meant.
    used: UsedNames,
}

/// `X_before` and `X_after`, when the whole word means nothing by itself.
fn suffixed(word: &str) -> Option<(&str, Function)> {
    if EventName::parse(word).is_some() || Function::parse(word).is_some() {
        return None;
    }
    let split = |suffix, function| {
        word.strip_suffix(suffix)
            .filter(|event| !event.is_empty())
            .map(|event| (event, function))
    };
    split("_before", Function::Before).or_else(|| split("_after", Function::After))
}

impl Resolver<'_> {
    /// Notes a finding; the caller goes on with what else can be checked.
    fn report<T>(&mut self, finding: Finding) -> Option<T> {
        self.findings.push(finding);
        None
    }

    fn condition(&mut self, expr: &Expr) -> Option<Condition> {
        let at = expr.at;
        let kind = match &expr.kind {
            ExprKind::Or(a, b) => {
                let (a, b) = (self.condition(a), self.condition(b));
                ConditionKind::Or(Box::new(a?), Box::new(b?))
            }
            ExprKind::And(a, b) => {
                let (a, b) = (self.condition(a), self.condition(b));
                ConditionKind::And(Box::new(a?), Box::new(b?))
            }
            ExprKind::Not(a) => ConditionKind::Not(Box::new(self.condition(a)?)),
            ExprKind::Compare(a, op, b) => return self.compare(at, a, *op, b),
            ExprKind::In(value, low, high) => return self.range(at, value, low, high),
            ExprKind::Name(name) => return self.name(at, name),
            ExprKind::Add(..)
            | ExprKind::Sub(..)
            | ExprKind::Neg(_)
            | ExprKind::Number(_)
            | ExprKind::Percent(_)
            | ExprKind::Rate(..)
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::Pattern(_) => {
                let finding = Finding::new(Code::ExpressionType, at, "a value alone claims nothing");
                return self.report(
                    finding
                        .label("expected a condition")
                        .help("compare it with something: `== 200`, `<= 5s`, `in 1s..2s`"),
                );
            }
        };
        Some(Condition { at, kind })
    }

    /// A name in the place of a condition.
    fn name(&mut self, at: TextSpan, name: &Name) -> Option<Condition> {
        let word = name.word.text.as_str();
        let condition = |kind| Some(Condition { at, kind });
        if let Some((event, function)) = suffixed(word)
            && let Some([_]) = name.arguments.as_deref()
        {
            return self.order_by_suffix(at, name, event, function);
        }
        if let Some(function) = Function::parse(word) {
            return self.function_condition(at, name, function);
        }
        let is_root = Root::parse(word).is_some();
        let is_literal = matches!(word, "true" | "false") && name.arguments.is_none();
        let is_event = EventName::parse(word).is_some() && name.fields.is_empty();
        if is_event || (!is_root && !is_literal && name.fields.is_empty() && self.is_step(word)) {
            let event = self.event_of_name(at, name)?;
            self.not_in_always(at, "an event")?;
            return condition(ConditionKind::Exists(event, Window::default()));
        }
        let operand = self.operand_of_name(at, name, None)?;
        if operand.ty == Type::Bool {
            return condition(ConditionKind::Holds(operand));
        }
        let finding = Finding::new(
            Code::ExpressionType,
            at,
            format!("`{name}` is {}, not a condition", operand.ty),
        );
        self.report(
            finding
                .label("expected a condition")
                .help(comparison_example(name, operand.ty)),
        )
    }

    fn order_by_suffix(&mut self, at: TextSpan, name: &Name, event: &str, function: Function) -> Option<Condition> {
        let end = name.word.at.start + event.len();
        let event_at = TextSpan::new(name.word.at.start, end);
        let word = WordAt {
            text: event.to_owned(),
            at: event_at,
        };
        let first = self.event_of_name(
            event_at,
            &Name {
                word,
                arguments: None,
                fields: Vec::new(),
            },
        );
        self.no_fields(name)?;
        let second = self
            .positional(name, function.as_str(), &["Y"])
            .map(|[other]| other)
            .and_then(|other| self.event(&other.value));
        self.order(at, function, first?, second?)
    }

    fn order(&mut self, at: TextSpan, function: Function, x: EventRef, y: EventRef) -> Option<Condition> {
        self.only_after_the_run(at, function)?;
        if x.event == y.event {
            let finding = Finding::new(Code::Arguments, at, format!("`{}` is compared with itself", x.event));
            return self.report(finding.help("name two events"));
        }
        let (first, second) = if function == Function::After { (y, x) } else { (x, y) };
        Some(Condition {
            at,
            kind: ConditionKind::Before(first, second),
        })
    }

    /// A function that is a condition by itself.
    fn function_condition(&mut self, at: TextSpan, name: &Name, function: Function) -> Option<Condition> {
        let kind = match function {
            Function::Before | Function::After => {
                self.no_fields(name)?;
                let [x, y] = self.positional(name, function.as_str(), &["X", "Y"])?;
                let (x, y) = (self.event(&x.value), self.event(&y.value));
                return self.order(at, function, x?, y?);
            }
            Function::Within => {
                self.no_fields(name)?;
                let [x, y, limit] = self.positional(name, "within", &["X", "Y", "d"])?;
                let (x, y) = (self.event(&x.value), self.event(&y.value));
                let limit = self.operand_of_type(&limit.value, Type::Duration);
                self.only_after_the_run(at, function)?;
                let gap = Operand {
                    at,
                    ty: Type::Duration,
                    kind: OperandKind::Gap(x?, y?),
                };
                let zero = Operand {
                    at,
                    ty: Type::Duration,
                    kind: OperandKind::Duration(Duration::ZERO),
                };
                ConditionKind::In(gap, zero, limit?)
            }
            Function::Exists | Function::Never => {
                let (event, window) = self.windowed_event(name, function)?;
                if function == Function::Exists {
                    self.not_in_always(at, "an event")?;
                    ConditionKind::Exists(event, window)
                } else {
                    self.only_after_the_run(at, function)?;
                    ConditionKind::Never(event, window)
                }
            }
            Function::Always => {
                self.no_fields(name)?;
                self.only_after_the_run(at, function)?;
                let (inner, window) = self.with_window(name, function, "cond")?;
                self.in_always = true;
                let inner = self.condition(&inner.value);
                self.in_always = false;
                ConditionKind::Always(Box::new(inner?), window)
            }
            Function::Protected | Function::Broken => {
                self.no_fields(name)?;
                let [request] = self.positional(name, function.as_str(), &["R"])?;
                let request = self.request(&request.value, function.as_str());
                self.only_after_the_run(at, function)?;
                let fate = if function == Function::Protected {
                    Fate::Protected
                } else {
                    Fate::Broken
                };
                let ty = Type::Word(WordSet::Fate);
                let word = Operand {
                    at,
                    ty,
                    kind: OperandKind::Word(Word::Fate(fate)),
                };
                ConditionKind::Compare(
                    Operand {
                        at,
                        ty,
                        kind: OperandKind::Fate(request?),
                    },
                    CompareOp::Eq,
                    word,
                )
            }
            Function::Complete => {
                self.no_fields(name)?;
                let [probe] = self.positional(name, "complete", &["P"])?;
                let probe = self.probe(&probe.value, "complete", false);
                self.only_after_the_run(at, function)?;
                ConditionKind::Complete(probe?)
            }
            Function::Count
            | Function::Gap
            | Function::Status
            | Function::Outcome
            | Function::Duration
            | Function::Bytes
            | Function::Fate
            | Function::Cause
            | Function::Requests
            | Function::Disrupted
            | Function::DisruptionRate
            | Function::Latency
            | Function::DownTime => {
                let operand = self.operand_of_name(at, name, None)?;
                let finding = Finding::new(
                    Code::ExpressionType,
                    at,
                    format!("`{name}` is {}, not a condition", operand.ty),
                );
                return self.report(
                    finding
                        .label("expected a condition")
                        .help(comparison_example(name, operand.ty)),
                );
            }
        };
        Some(Condition { at, kind })
    }

    fn compare(&mut self, at: TextSpan, a: &Expr, op: CompareOp, b: &Expr) -> Option<Condition> {
        let (left, right) = self.pair(a, b)?;
        if !matches!(op, CompareOp::Eq | CompareOp::Ne) && !ordered(left.ty) {
            let finding = Finding::new(
                Code::ExpressionType,
                at,
                format!("{} has no order: `{op}` makes no sense here", left.ty),
            );
            return self.report(finding.help("`==` and `!=` compare words and texts"));
        }
        Some(Condition {
            at,
            kind: ConditionKind::Compare(left, op, right),
        })
    }

    fn range(&mut self, at: TextSpan, value: &Expr, low: &Expr, high: &Expr) -> Option<Condition> {
        let value = self.operand(value, None)?;
        let (low, high) = (
            self.operand_of_type(low, value.ty),
            self.operand_of_type(high, value.ty),
        );
        let (low, high) = (low?, high?);
        if !ordered(value.ty) {
            let finding = Finding::new(
                Code::ExpressionType,
                value.at,
                format!("{} has no order: it lies in no range", value.ty),
            );
            return self.report(finding);
        }
        if let (Some(l), Some(h)) = (low.constant(), high.constant())
            && l > h
        {
            let finding = Finding::new(
                Code::Arguments,
                low.at.to(high.at),
                "the range is empty: its lower end is above its upper end",
            );
            return self.report(finding.help("both ends are included: `in 2s..7s`"));
        }
        Some(Condition {
            at,
            kind: ConditionKind::In(value, low, high),
        })
    }

    /// Both sides of a comparison, with the same type. A bare word means what the other side can be.
    fn pair(&mut self, a: &Expr, b: &Expr) -> Option<(Operand, Operand)> {
        // Without a type on the other side, a bare word has no meaning that could be wrong.
        let (left, right) = if self.may_be_word(a) && !self.may_be_word(b) {
            let right = self.operand(b, None)?;
            (self.operand(a, Some(right.ty))?, right)
        } else if self.may_be_word(b) {
            let left = self.operand(a, None)?;
            let right = self.operand(b, Some(left.ty))?;
            (left, right)
        } else {
            let left = self.operand(a, None);
            let right = self.operand(b, left.as_ref().map(|left| left.ty));
            (left?, right?)
        };
        if left.ty == right.ty {
            return Some((left, right));
        }
        self.mismatch(&left, &right)
    }

    /// Reports that two types differ, and how to write it right.
    fn mismatch<T>(&mut self, left: &Operand, right: &Operand) -> Option<T> {
        let finding = Finding::new(
            Code::ExpressionType,
            right.at,
            format!("{} is compared with {}", left.ty, right.ty),
        );
        let finding = finding.label(format!("this is {}", right.ty));
        let help = match (left.ty, &right.kind, right.ty) {
            (Type::Duration, OperandKind::Number(n), _) => Some(format!("a duration has a unit: `{n}s` or `{n}ms`")),
            (Type::Percent, OperandKind::Number(n), _) => Some(format!("a share is written as a percentage: `{n}%`")),
            (Type::Rate, OperandKind::Number(n), _) => Some(format!("a rate has a unit: `{n}/s`")),
            (Type::Number, _, Type::Duration | Type::Percent | Type::Rate) => {
                Some("write the number without a unit".to_owned())
            }
            _ => None,
        };
        self.report(finding.maybe_help(help))
    }

    /// Refuses what only the finished run can tell, where a condition is asked during the run.
    fn only_after_the_run(&mut self, at: TextSpan, function: Function) -> Option<()> {
        self.not_in_always(at, &format!("`{function}`"))?;
        if self.place == Place::Assertion {
            return Some(());
        }
        let finding = Finding::new(Code::NotHere, at, format!("`{function}` is known only after the run"));
        let help = match function {
            Function::Never => "during the run, `not exists(...)` says that it has not happened so far",
            Function::Fate | Function::Protected | Function::Broken | Function::Cause => {
                "during the run, `status(R)` and `outcome(R)` are known"
            }
            Function::Before
            | Function::After
            | Function::Within
            | Function::Exists
            | Function::Count
            | Function::Gap
            | Function::Always
            | Function::Status
            | Function::Outcome
            | Function::Duration
            | Function::Bytes
            | Function::Requests
            | Function::Disrupted
            | Function::DisruptionRate
            | Function::Latency
            | Function::DownTime
            | Function::Complete => "here stand events, signals such as `active == 0`, and results of steps",
        };
        self.report(finding.help(help))
    }

    fn not_in_always(&mut self, at: TextSpan, what: &str) -> Option<()> {
        if !self.in_always {
            return Some(());
        }
        let signals: Vec<&str> = Signal::ALL.iter().map(|signal| signal.as_str()).collect();
        let finding = Finding::new(Code::NotHere, at, format!("{what} has no value at every moment"));
        self.report(finding.help(format!("`always` watches signals: {}", signals.join(", "))))
    }

    fn is_step(&self, word: &str) -> bool {
        self.scope.steps.as_ref().is_none_or(|steps| steps.contains_key(word))
    }

    fn variable(&mut self, word: &WordAt) -> Option<Variable> {
        match self.scope.vars.get_key_value(word.text.as_str()) {
            Some((id, variable)) => {
                self.used.vars.insert(id.clone(), variable.clone());
                Some(variable.clone())
            }
            None => {
                let known: Vec<&str> = self.scope.vars.keys().map(Id::as_str).collect();
                let finding = Finding::new(
                    Code::UnknownInExpression,
                    word.at,
                    format!("there is no variable `{}`", word.text),
                );
                let declared = did_you_mean(&word.text, known.iter().copied());
                self.report(finding.help(declared.unwrap_or_else(|| "declare it in `vars:`".to_owned())))
            }
        }
    }
}

fn ordered(ty: Type) -> bool {
    match ty {
        Type::Number | Type::Duration | Type::Percent | Type::Rate => true,
        Type::Text | Type::Bool | Type::Word(_) => false,
    }
}

/// How a value of this type is turned into a condition.
fn comparison_example(name: &Name, ty: Type) -> String {
    let rest = match ty {
        Type::Number => "== 200",
        Type::Duration => "<= 5s",
        Type::Percent => "<= 0.1%",
        Type::Rate => ">= 50/s",
        Type::Text => "== \"...\"",
        Type::Bool => "== true",
        Type::Word(set) => {
            return format!(
                "compare it: `{name} == {}`",
                set.words().first().map_or("...", |word| word.as_str())
            );
        }
    };
    format!("compare it: `{name} {rest}`")
}

/// Fields that the last reply of a poll has under its bare name.
const REPLY: [StepField; 5] = [
    StepField::Status,
    StepField::Body,
    StepField::Outcome,
    StepField::Exit,
    StepField::Stdout,
];

//! Fills templates in: variables and gtrun's environment now, the rest is left open for the run.

use handlebars::Template as Parsed;
use handlebars::template::{Parameter, TemplateElement};

use super::context::Context;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::language::check::expression::Located;
use crate::language::expression::{TextSpan, results};
use crate::language::nearest::did_you_mean;
use crate::language::plan::template::decimal;
use crate::language::plan::{Placeholder, Segment, Template};
use crate::language::value::{AsWritten, Scalar, Templated, Written};
use crate::language::vocabulary::{Root, RunField, StepField, TargetField};
use crate::language::{Id, Variable};
use crate::time::Duration;

const FORMS: &str = "templates are `{{ vars.name }}`, `{{ seconds vars.name }}` and `{{ millis vars.name }}`";

/// A part of a template's text.
enum Part {
    Literal(String),
    Tag(Tag),
}

/// `{{ helper path }}`
struct Tag {
    /// From the first brace to the last.
    at: TextSpan,
    helper: Option<Helper>,
    path: String,
    path_at: TextSpan,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Helper {
    Seconds,
    Millis,
}

impl Helper {
    fn apply(self, duration: Duration) -> String {
        decimal(
            duration,
            match self {
                Self::Seconds => 1_000_000_000,
                Self::Millis => 1_000_000,
            },
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Millis => "millis",
        }
    }
}

/// When a value is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    /// For the plan: variables and gtrun's environment only.
    Now,
    /// When the step runs.
    Later,
}

/// What a tag stands for.
enum Filled {
    Value(Variable),
    Secret { name: String, value: String },
    Open(Placeholder),
}

impl Context<'_> {
    /// A typed value.
    pub(super) fn value<T: Scalar + Clone>(&mut self, templated: &Templated<T>) -> Option<T> {
        let text = match &templated.written {
            Written::Value(value) => return Some(value.clone()),
            Written::Template(text) => text,
        };
        let parts = self.parts(text, templated.span)?;
        let variable = match parts.as_slice() {
            // A scalar that is one placeholder keeps the type of its value.
            [Part::Tag(tag)] => match self.fill(tag, text, templated.span, Needed::Now)? {
                Filled::Value(variable) => variable,
                Filled::Secret { value, .. } => {
                    crate::language::source::scalar(&value).unwrap_or_else(|| Variable::from_text(&value))
                }
                Filled::Open(_) => return None,
            },
            _ => {
                let mut out = String::new();
                for part in &parts {
                    match part {
                        Part::Literal(literal) => out.push_str(literal),
                        Part::Tag(tag) => match self.fill(tag, text, templated.span, Needed::Now)? {
                            Filled::Value(variable) => out.push_str(&variable.text),
                            Filled::Secret { value, .. } => out.push_str(&value),
                            Filled::Open(_) => return None,
                        },
                    }
                }
                crate::language::source::scalar(&out).unwrap_or_else(|| Variable::from_text(&out))
            }
        };
        T::from_variable(&variable)
            .map_err(|message| {
                self.error::<()>(
                    Code::TemplateType,
                    format!("the template gives `{}`: {message}", variable.text),
                    templated.span,
                    None,
                )
            })
            .ok()
    }

    /// A text that may stay open until its step runs.
    pub(super) fn text(&mut self, templated: &Templated<String>) -> Option<Template> {
        match &templated.written {
            Written::Value(text) => Some(Template::literal(text.clone())),
            Written::Template(text) => self.template(text, templated.span),
        }
    }

    /// A text, number or boolean that is passed on as it is written.
    pub(super) fn as_written(&mut self, templated: &Templated<AsWritten>) -> Option<Template> {
        match &templated.written {
            Written::Value(AsWritten(text)) => Some(Template::literal(text.clone())),
            Written::Template(text) => self.template(text, templated.span),
        }
    }

    fn template(&mut self, text: &str, span: Span) -> Option<Template> {
        let parts = self.parts(text, span)?;
        let mut segments: Vec<Segment> = Vec::new();
        let mut good = true;
        for part in parts {
            let literal = match part {
                Part::Literal(literal) => literal,
                Part::Tag(tag) => match self.fill(&tag, text, span, Needed::Later) {
                    Some(Filled::Value(variable)) => variable.text,
                    Some(Filled::Secret { name, value }) => {
                        if !self.secrets.contains(&value) && !value.is_empty() {
                            self.secrets.push(value.clone());
                        }
                        segments.push(Segment::Secret {
                            name,
                            value: Some(value),
                        });
                        continue;
                    }
                    Some(Filled::Open(placeholder)) => {
                        segments.push(Segment::Placeholder(placeholder));
                        continue;
                    }
                    None => {
                        good = false;
                        continue;
                    }
                },
            };
            match segments.last_mut() {
                Some(Segment::Literal(before)) => before.push_str(&literal),
                _ if literal.is_empty() => {}
                _ => segments.push(Segment::Literal(literal)),
            }
        }
        good.then_some(Template { segments })
    }

    /// Reads the text. Everything that handlebars knows and the language does not is an error.
    fn parts(&mut self, text: &str, span: Span) -> Option<Vec<Part>> {
        let parsed = match Parsed::compile(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let (line, column) = error.pos().unwrap_or((1, 1));
                let at = offset(text, line, column);
                let tag = text[..at].rfind("{{").unwrap_or(at);
                let unclosed = !text[tag..].contains("}}");
                let message = if unclosed {
                    "this placeholder has no end: `}}` is missing"
                } else {
                    "this placeholder cannot be read"
                };
                let end = text[tag..].find("}}").map_or(text.len(), |n| tag + n + 2);
                return self.template_error(text, span, TextSpan::new(tag, end), message);
            }
        };
        let mut out = Vec::new();
        for (element, place) in parsed.elements.iter().zip(&parsed.mapping) {
            let start = offset(text, place.0, place.1);
            let end = text[start..].find("}}").map_or(text.len(), |n| start + n + 2);
            let at = TextSpan::new(start, end);
            match element {
                TemplateElement::RawString(raw) => out.push(Part::Literal(raw.clone())),
                TemplateElement::Expression(tag)
                    if !text[start..].starts_with("{{~") && !text[..end].ends_with("~}}") =>
                {
                    let name = tag.name.as_name().map(str::to_owned);
                    let argument = match tag.params.as_slice() {
                        [] => Some(None),
                        [path @ Parameter::Path(_)] => path.as_name().map(|path| Some(path.to_owned())),
                        _ => None,
                    };
                    let (Some(name), Some(argument), true) = (name, argument, tag.hash.is_empty()) else {
                        return self.template_error(text, span, at, "this placeholder says more than a path");
                    };
                    let (helper, path) = match argument {
                        None => (None, name),
                        Some(path) => match name.as_str() {
                            "seconds" => (Some(Helper::Seconds), path),
                            "millis" => (Some(Helper::Millis), path),
                            other => {
                                let message = format!("there is no helper `{other}`");
                                return self.template_error(text, span, at, &message);
                            }
                        },
                    };
                    let path_start = text[start..end].rfind(&path).map_or(start, |n| start + n);
                    let path_at = TextSpan::new(path_start, path_start + path.len());
                    out.push(Part::Tag(Tag {
                        at,
                        helper,
                        path,
                        path_at,
                    }));
                }
                TemplateElement::Expression(_) => return self.template_error(text, span, at, "`~` is not known here"),
                TemplateElement::HtmlExpression(_) => {
                    return self.template_error(text, span, at, "nothing is escaped, so two braces are enough");
                }
                TemplateElement::HelperBlock(_) => {
                    return self.template_error(text, span, at, "blocks are not known here");
                }
                TemplateElement::Comment(_) => {
                    return self.template_error(text, span, at, "comments are written with `#`, outside the text");
                }
                TemplateElement::DecoratorExpression(_)
                | TemplateElement::DecoratorBlock(_)
                | TemplateElement::PartialExpression(_)
                | TemplateElement::PartialBlock(_) => {
                    return self.template_error(text, span, at, "partials are not known here");
                }
                // The enum may grow; what it grows is not of this language.
                _ => return self.template_error(text, span, at, "this is not known here"),
            }
        }
        Some(out)
    }

    fn template_error<T>(&mut self, text: &str, span: Span, at: TextSpan, message: &str) -> Option<T> {
        let located = Located {
            text,
            span,
            sources: self.sources,
        };
        self.found.push(
            Diagnostic::error(Code::TemplateSyntax, message)
                .at(located.place(at), "")
                .help(FORMS),
        );
        None
    }

    fn fill(&mut self, tag: &Tag, text: &str, span: Span, needed: Needed) -> Option<Filled> {
        let located = Located {
            text,
            span,
            sources: self.sources,
        };
        let place = located.place(tag.path_at);
        let whole = located.place(tag.at);
        let parts: Vec<&str> = tag.path.split('.').collect();
        let Some(root) = Root::parse(parts[0]) else {
            return self.unknown_root(&tag.path, place);
        };
        let filled = match (root, &parts[1..]) {
            (Root::Vars, [name]) => Filled::Value(self.variable(name, place)?),
            (Root::Env, [name]) => {
                let value = self.options.env.get(*name).cloned();
                let known = self.options.env_known;
                match value {
                    Some(value) => Filled::Secret {
                        name: (*name).to_owned(),
                        value,
                    },
                    None if known => {
                        return self.error(
                            Code::MissingEnv,
                            format!("the environment variable `{name}` is not set"),
                            place,
                            Some(format!("start gtrun with {name}=...")),
                        );
                    }
                    None => Filled::Secret {
                        name: (*name).to_owned(),
                        value: String::new(),
                    },
                }
            }
            (Root::Target, [field]) => match TargetField::parse(field) {
                Some(field) => Filled::Open(Placeholder::Target(field)),
                None => {
                    return self.unknown_field(
                        root,
                        field,
                        place,
                        &TargetField::ALL.iter().map(|f| f.as_str()).collect::<Vec<_>>(),
                    );
                }
            },
            (Root::Run, [field]) => match RunField::parse(field) {
                Some(field) => Filled::Open(Placeholder::Run(field)),
                None => {
                    return self.unknown_field(
                        root,
                        field,
                        place,
                        &RunField::ALL.iter().map(|f| f.as_str()).collect::<Vec<_>>(),
                    );
                }
            },
            (Root::Steps, [id, field]) => Filled::Open(self.step_result(id, field, place)?),
            (Root::Steps, _) => {
                return self.error(
                    Code::UnknownName,
                    format!("`{}` names nothing", tag.path),
                    place,
                    Some("write `steps.<id>.<result>`".into()),
                );
            }
            (Root::Vars | Root::Env | Root::Target | Root::Run, _) => {
                return self.error(
                    Code::UnknownName,
                    format!("`{}` names nothing", tag.path),
                    place,
                    Some(format!("write `{root}.<name>`")),
                );
            }
        };
        match (filled, tag.helper) {
            (Filled::Open(_), _) if needed == Needed::Now => {
                let message = format!("`{}` becomes known only during the run", tag.path);
                self.error(
                    Code::TooEarly,
                    message,
                    whole,
                    Some("here only `vars` and `env` may stand".into()),
                )
            }
            (filled, None) => Some(filled),
            (Filled::Value(variable), Some(helper)) => match variable.value {
                crate::language::Scalar::Duration(duration) => {
                    let text = helper.apply(duration);
                    let number = text.parse().unwrap_or_default();
                    Some(Filled::Value(Variable::from_number(&text, number)))
                }
                _ => {
                    let message = format!(
                        "`{}` wants a duration, and `{}` is `{}`",
                        helper.name(),
                        tag.path,
                        variable.text
                    );
                    self.error(
                        Code::TemplateType,
                        message,
                        place,
                        Some("give the variable a unit, as 60s, or leave the helper out".into()),
                    )
                }
            },
            (Filled::Open(Placeholder::Step(id, field @ StepField::Duration)), Some(Helper::Seconds)) => {
                Some(Filled::Open(Placeholder::Seconds(id, field)))
            }
            (Filled::Open(Placeholder::Step(id, field @ StepField::Duration)), Some(Helper::Millis)) => {
                Some(Filled::Open(Placeholder::Millis(id, field)))
            }
            (Filled::Open(_) | Filled::Secret { .. }, Some(helper)) => self.error(
                Code::TemplateType,
                format!("`{}` wants a duration, and `{}` is none", helper.name(), tag.path),
                place,
                None,
            ),
        }
    }

    fn unknown_root<T>(&mut self, path: &str, place: Span) -> Option<T> {
        let first = path.split('.').next().unwrap_or(path);
        let help = if self.vars.contains_key(first) {
            Some(format!("write `vars.{first}`"))
        } else if self.scope.steps.as_ref().is_some_and(|steps| steps.contains_key(first)) {
            Some(format!("results of steps are `steps.{first}.<result>`"))
        } else {
            did_you_mean(first, Root::ALL.iter().map(|root| root.as_str()))
        };
        self.error(
            Code::UnknownName,
            format!("there is nothing called `{first}`"),
            place,
            help,
        )
    }

    fn unknown_field<T>(&mut self, root: Root, field: &str, place: Span, known: &[&str]) -> Option<T> {
        self.error(
            Code::UnknownName,
            format!("`{root}` has no `{field}`"),
            place,
            did_you_mean(field, known.iter().copied()),
        )
    }

    fn variable(&mut self, name: &str, place: Span) -> Option<Variable> {
        if let Some((id, variable)) = self.vars.get_key_value(name) {
            self.used.insert(id.clone());
            return Some(variable.clone());
        }
        let known: Vec<String> = self.vars.keys().map(|id| format!("vars.{id}")).collect();
        let help = did_you_mean(&format!("vars.{name}"), known.iter().map(String::as_str))
            .unwrap_or_else(|| format!("declare it: `vars: {{ {name}: ... }}`"));
        self.error(
            Code::UnknownName,
            format!("there is no variable `{name}`"),
            place,
            Some(help),
        )
    }

    fn step_result(&mut self, id: &str, field: &str, place: Span) -> Option<Placeholder> {
        let steps = self.scope.steps.clone()?;
        let Some((known_id, shape)) = steps.get_key_value(id) else {
            return self.error(
                Code::UnknownName,
                format!("there is no step `{id}`"),
                place,
                did_you_mean(id, steps.keys().map(Id::as_str)),
            );
        };
        let known = results(Some(*shape));
        let Some(result) = StepField::parse(field).filter(|field| known.contains(field)) else {
            let help = did_you_mean(field, known.iter().map(|f| f.as_str()))
                .or_else(|| Some("this verb leaves no results".into()));
            return self.error(
                Code::UnknownName,
                format!("step `{id}` has no result `{field}`"),
                place,
                help,
            );
        };
        if !self.ran.contains(known_id) {
            let message = format!("step `{id}` has not run yet when this step begins");
            return self.error(
                Code::TooEarly,
                message,
                place,
                Some("use results of steps above only".into()),
            );
        }
        Some(Placeholder::Step(known_id.clone(), result))
    }
}

/// The byte of a line and a column in characters, both from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = &text[line_start.min(text.len())..];
    line_start
        + rest
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(rest.len(), |(i, _)| i)
}

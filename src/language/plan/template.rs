use std::fmt;

use handlebars::template::{Parameter, Template as Parsed, TemplateElement};
use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::language::Id;
use crate::language::vocabulary::{RunField, StepField, TargetField};
use crate::time::Duration;

/// A text in which the names that are known only during the run are still open. Variables are already filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// What it consists of.
    pub segments: Vec<Segment>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Text as it is.
    Literal(String),
    /// A value of gtrun's own environment; `None` when read back from a run folder, where it is not kept.
    Secret {
        /// Name of the environment variable.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// What becomes known during the run.
    Placeholder(Placeholder),
}

/// A name that becomes known during the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder {
    /// `{{ target.node }}`
    Target(TargetField),
    /// `{{ run.id }}`
    Run(RunField),
    /// `{{ steps.evict.status }}`
    Step(Id, StepField),
    /// `{{ seconds steps.long.duration }}`
    Seconds(Id, StepField),
    /// `{{ millis steps.long.duration }}`
    Millis(Id, StepField),
}

/// What is known at the moment of rendering.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TemplateContext {
    /// The target, once it is known.
    pub target: IndexMap<TargetField, String>,
    /// The run.
    pub run: IndexMap<RunField, String>,
    /// Results of the steps that have ended.
    pub steps: IndexMap<Id, IndexMap<StepField, String>>,
}

/// A template could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The name has no value: the step never ran, or has no such result.
    #[error("`{0}` has no value yet")]
    Unknown(String),
    /// The secret is not kept in a run folder.
    #[error("`env.{0}` is a secret and not kept in a run folder")]
    Secret(String),
    /// `seconds` and `millis` want a duration.
    #[error("`{0}` is no duration")]
    NoDuration(String),
    /// The text, read back from a file that gtrun wrote, is no template.
    #[error("`{0}` is no template: {1}")]
    Malformed(String, String),
}

impl Template {
    /// A text without placeholders.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            segments: if text.is_empty() {
                Vec::new()
            } else {
                vec![Segment::Literal(text)]
            },
        }
    }

    /// The text, when nothing in it is open and nothing in it is secret.
    pub fn as_literal(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills in what is open.
    ///
    /// # Errors
    /// When a name has no value at this moment.
    pub fn render(&self, context: &TemplateContext) -> Result<String, TemplateError> {
        let mut out = String::new();
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => out.push_str(text),
                Segment::Secret { name, value } => {
                    out.push_str(value.as_ref().ok_or_else(|| TemplateError::Secret(name.clone()))?)
                }
                Segment::Placeholder(placeholder) => out.push_str(&placeholder.value(context)?),
            }
        }
        Ok(out)
    }

    /// The steps whose results it uses.
    pub fn steps(&self) -> impl Iterator<Item = &Id> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Placeholder(
                Placeholder::Step(id, _) | Placeholder::Seconds(id, _) | Placeholder::Millis(id, _),
            ) => Some(id),
            Segment::Placeholder(Placeholder::Target(_) | Placeholder::Run(_))
            | Segment::Literal(_)
            | Segment::Secret { .. } => None,
        })
    }

    /// Reads what [`Template`]'s `Display` wrote.
    fn read_back(text: &str) -> Result<Self, TemplateError> {
        let malformed = |why: String| TemplateError::Malformed(text.to_owned(), why);
        let parsed = Parsed::compile(text).map_err(|e| malformed(e.reason().to_string()))?;
        let mut segments: Vec<Segment> = Vec::new();
        for element in &parsed.elements {
            match element {
                TemplateElement::RawString(raw) => match segments.last_mut() {
                    Some(Segment::Literal(text)) => text.push_str(raw),
                    _ => segments.push(Segment::Literal(raw.clone())),
                },
                TemplateElement::Expression(tag) => {
                    let name = parameter(&tag.name).ok_or_else(|| malformed("a name was expected".into()))?;
                    let argument = tag.params.first().and_then(parameter);
                    segments.push(
                        open(&name, argument.as_deref()).ok_or_else(|| malformed(format!("`{name}` is unknown")))?,
                    );
                }
                _ => return Err(malformed("only `{{ path }}` and `{{ helper path }}` exist".into())),
            }
        }
        Ok(Self { segments })
    }
}

/// The text of a path in handlebars' tree.
fn parameter(parameter: &Parameter) -> Option<String> {
    parameter.as_name().map(str::to_owned)
}

/// What `{{ name }}` or `{{ name argument }}` stands for during a run.
fn open(name: &str, argument: Option<&str>) -> Option<Segment> {
    let path: Vec<&str> = argument.unwrap_or(name).split('.').collect();
    Some(match (path.as_slice(), argument.map(|_| name)) {
        (["env", name], None) => Segment::Secret {
            name: (*name).to_owned(),
            value: None,
        },
        (["target", field], None) => Segment::Placeholder(Placeholder::Target(TargetField::parse(field)?)),
        (["run", field], None) => Segment::Placeholder(Placeholder::Run(RunField::parse(field)?)),
        (["steps", id, field], helper) => {
            let (id, field) = (Id::new(id)?, StepField::parse(field)?);
            Segment::Placeholder(match helper {
                None => Placeholder::Step(id, field),
                Some("seconds") => Placeholder::Seconds(id, field),
                Some("millis") => Placeholder::Millis(id, field),
                Some(_) => return None,
            })
        }
        _ => return None,
    })
}

impl Placeholder {
    fn value(&self, context: &TemplateContext) -> Result<String, TemplateError> {
        let unknown = || TemplateError::Unknown(self.path());
        let step = |id: &Id, field: &StepField| {
            context
                .steps
                .get(id)
                .and_then(|s| s.get(field))
                .cloned()
                .ok_or_else(unknown)
        };
        let duration = |id: &Id, field: &StepField| {
            step(id, field)?
                .parse::<Duration>()
                .map_err(|_| TemplateError::NoDuration(self.path()))
        };
        match self {
            Self::Target(field) => context.target.get(field).cloned().ok_or_else(unknown),
            Self::Run(field) => context.run.get(field).cloned().ok_or_else(unknown),
            Self::Step(id, field) => step(id, field),
            Self::Seconds(id, field) => Ok(decimal(duration(id, field)?, 1_000_000_000)),
            Self::Millis(id, field) => Ok(decimal(duration(id, field)?, 1_000_000)),
        }
    }

    /// The name, as in templates and messages.
    pub fn path(&self) -> String {
        match self {
            Self::Target(field) => format!("target.{field}"),
            Self::Run(field) => format!("run.{field}"),
            Self::Step(id, field) | Self::Seconds(id, field) | Self::Millis(id, field) => format!("steps.{id}.{field}"),
        }
    }
}

/// A duration as a decimal number of units of so many nanoseconds, without trailing zeros: `15`, `1.5`.
pub(crate) fn decimal(duration: Duration, unit: i64) -> String {
    let nanos = duration.as_nanos();
    let (whole, rest) = (nanos / unit, (nanos % unit).unsigned_abs());
    if rest == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let sign = if nanos < 0 && whole == 0 { "-" } else { "" };
    let fraction = format!("{rest:0digits$}");
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

impl fmt::Display for Template {
    /// As an author writes it; secrets by their name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => f.write_str(&text.replace("{{", "\\{{"))?,
                Segment::Secret { name, .. } => write!(f, "{{{{ env.{name} }}}}")?,
                Segment::Placeholder(placeholder) => {
                    let helper = match placeholder {
                        Placeholder::Seconds(..) => "seconds ",
                        Placeholder::Millis(..) => "millis ",
                        Placeholder::Target(_) | Placeholder::Run(_) | Placeholder::Step(..) => "",
                    };
                    write!(f, "{{{{ {helper}{} }}}}", placeholder.path())?;
                }
            }
        }
        Ok(())
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::read_back(&text).map_err(serde::de::Error::custom)
    }
}

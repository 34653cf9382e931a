use std::fmt;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Text as it is.
    Literal(String),
    /// A value of gtrun's own environment; `None` when read back from a run folder, where it is not kept.
    Secret {
        /// Name of the environment variable.
        name: String,
        /// Its value.
        #[serde(skip)]
        value: Option<String>,
    },
    /// What becomes known during the run.
    Placeholder(Placeholder),
}

/// A name that becomes known during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// A template in `plan.json`: a text when nothing is open, else its segments.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Segments(Vec<Segment>),
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.as_literal() {
            Some(text) => s.serialize_str(text),
            None => self.segments.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match Stored::deserialize(d)? {
            Stored::Text(text) => Self::literal(text),
            Stored::Segments(segments) => Self { segments },
        })
    }
}

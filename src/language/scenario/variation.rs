use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::{IdText, Preconditions};
use crate::language::Variable;
use crate::language::environment::WorldFile;
use crate::language::plan::{Cycle, Must};
use crate::language::value::{At, Opt, Plain, PositiveCount};

/// Values of variables.
pub type Row = IndexMap<At<IdText>, Plain<Variable>>;

/// One run for each combination: `{ mode: [current, improved], work: [15s, 60s], exclude: [{ mode: current, work: 15s }] }`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    /// Values by variable.
    pub axes: IndexMap<At<IdText>, Vec<Plain<Variable>>>,
    /// Combinations beside those of the axes.
    pub include: Vec<At<Row>>,
    /// Combinations to leave out: those that have all these values.
    pub exclude: Vec<At<Row>>,
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Axes;
        impl<'de> Visitor<'de> for Axes {
            type Value = Matrix;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("variables, each with a list of values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Matrix, A::Error> {
                let mut out = Matrix::default();
                while let Some(key) = map.next_key::<At<IdText>>()? {
                    match key.value.0.as_str() {
                        "include" => out.include = map.next_value()?,
                        "exclude" => out.exclude = map.next_value()?,
                        _ => {
                            out.axes.insert(key, map.next_value()?);
                        }
                    }
                }
                Ok(out)
            }
        }
        d.deserialize_map(Axes)
    }
}

impl JsonSchema for Matrix {
    fn schema_name() -> Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Plain<Variable>>();
        let id = crate::language::ID_PATTERN;
        let row = serde_json::json!({ "type": "object", "minProperties": 1, "propertyNames": { "pattern": id }, "additionalProperties": value });
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "pattern": id },
            "properties": {
                "include": { "type": "array", "items": row, "description": "Combinations beside those of the lists." },
                "exclude": { "type": "array", "items": row, "description": "Combinations to leave out: those that have all these values." },
            },
            "additionalProperties": { "type": "array", "minItems": 1, "items": value },
        })
    }
}

/// One run for each point: of a cycle (`phase`), or of a variable's range. Exactly one of both.
#[derive(Debug, Clone, PartialEq)]
pub enum Sweep {
    /// Moves a step across a cycle.
    Phase(Phase),
    /// Steps a variable through a range or a list.
    Variable(VariableSweep),
}

/// Moves a step across a cycle: `{ of: kill, against: haproxy_check, points: 12 }`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Id of the step that is moved.
    pub of: At<IdText>,
    /// The cycle.
    pub against: Cycle,
    /// Number of points, evenly spread over the cycle.
    pub points: Plain<PositiveCount>,
}

/// A variable and the values that it goes through.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableSweep {
    /// The variable.
    pub name: At<IdText>,
    /// Its values.
    pub values: SweptVariable,
}

/// `{ from: 10s, to: 60s, points: 6 }` or `{ values: [10s, 20s] }`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweptVariable {
    /// First value.
    #[serde(default)]
    pub from: Opt<Plain<Variable>>,
    /// Last value.
    #[serde(default)]
    pub to: Opt<Plain<Variable>>,
    /// Number of values, both ends included.
    #[serde(default)]
    pub points: Opt<Plain<PositiveCount>>,
    /// The values themselves, instead of a range.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub values: Opt<Vec<Plain<Variable>>>,
}

impl<'de> Deserialize<'de> for Sweep {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Sweep;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`phase`, or one variable")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sweep, A::Error> {
                let key = map
                    .next_key::<At<IdText>>()?
                    .ok_or_else(|| A::Error::custom("an empty sweep runs nothing"))?;
                let sweep = if key.value.0.as_str() == "phase" {
                    Sweep::Phase(map.next_value()?)
                } else {
                    Sweep::Variable(VariableSweep {
                        name: key,
                        values: map.next_value()?,
                    })
                };
                match map.next_key::<At<IdText>>()? {
                    None => Ok(sweep),
                    Some(_) => Err(A::Error::custom(
                        "a sweep goes through one thing; for combinations there is `matrix`",
                    )),
                }
            }
        }
        d.deserialize_map(One)
    }
}

impl JsonSchema for Sweep {
    fn schema_name() -> Cow<'static, str> {
        "Sweep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut phase = generator.subschema_for::<Phase>();
        phase.insert(
            "description".to_owned(),
            "Moves a step across a cycle, instead of a variable.".into(),
        );
        let variable = generator.subschema_for::<SweptVariable>();
        json_schema!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "propertyNames": { "pattern": crate::language::ID_PATTERN },
            "properties": { "phase": phase },
            "additionalProperties": variable,
        })
    }
}

/// A negative control: a variant that must fail.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Variables that are different in it.
    #[serde(default)]
    pub vars: IndexMap<At<IdText>, Plain<Variable>>,
    /// Preconditions that are different in it.
    #[serde(default)]
    pub preconditions: Opt<Preconditions>,
    /// What is different in the world, in `sim` and `lab`.
    #[serde(default)]
    pub world: Opt<WorldFile>,
    /// fail: an assertion must fail (exit 2); a preflight miss or an inconclusive run does not count.
    pub must: At<Must>,
}

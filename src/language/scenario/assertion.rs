use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::step::Expr;
use crate::diagnostic::Span;
use crate::language::value::{At, Opt};

/// A claim: an expression, or an object with the expression, a name and a reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// The expression.
    pub assert: At<Expr>,
    /// A short name for it.
    pub name: Option<String>,
    /// Why it must hold.
    pub because: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AssertionObject")]
struct Object {
    /// The expression.
    assert: At<Expr>,
    /// A short name for it, shown instead of the expression.
    #[serde(default)]
    name: Opt<String>,
    /// Why it must hold; shown when it does not.
    #[serde(default)]
    because: Opt<String>,
}

enum Shape {
    Text(String),
    Object(Object),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Shape;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expression, or an object with `assert`")
            }
            fn visit_str<E>(self, text: &str) -> Result<Shape, E> {
                Ok(Shape::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shape, A::Error> {
                Object::deserialize(MapAccessDeserializer::new(map)).map(Shape::Object)
            }
        }
        d.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for Assertion {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let At { value, span } = At::<Shape>::deserialize(d)?;
        Ok(match value {
            Shape::Text(text) => Self {
                assert: At {
                    value: Expr(text),
                    span,
                },
                name: None,
                because: None,
            },
            Shape::Object(Object { assert, name, because }) => Self {
                assert,
                name: name.0,
                because: because.0,
            },
        })
    }
}

impl Assertion {
    /// Where the expression stands.
    pub fn span(&self) -> Span {
        self.assert.span
    }
}

impl JsonSchema for Assertion {
    fn schema_name() -> Cow<'static, str> {
        "Assertion".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let object = Object::json_schema(generator);
        let properties = object.get("properties").cloned().unwrap_or_default();
        json_schema!({
            "type": ["string", "object"],
            "minLength": 1,
            "required": ["assert"],
            "additionalProperties": false,
            "properties": properties,
            "description": "A claim: `active_zero_before(lb_down)`, or { assert: \"...\", name: \"...\", because: \"...\" }.",
            "examples": ["active_zero_before(lb_down)", "status(long) == 200"],
        })
    }
}

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, Visitor};

use super::Scalar;
use super::at::find;
use crate::diagnostic::Span;

/// A scalar that is written down, or filled in from a template when the plan is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Templated<T> {
    /// Where it stands.
    pub span: Span,
    /// What stands there.
    pub written: Written<T>,
}

/// What stands in a file for a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Written<T> {
    /// The value.
    Value(T),
    /// A text with `{{ }}` in it.
    Template(String),
}

/// A scalar in whose place no template may stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Plain<T> {
    /// Where it stands.
    pub span: Span,
    /// The value.
    pub value: T,
}

impl<'de, T: Scalar> Deserialize<'de> for Templated<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let found = find::<Raw, D>(d, true)?;
        let written = match found.value {
            Raw::Text(text) if text.contains("{{") => Written::Template(text),
            raw => Written::Value(raw.read::<T>(&found.raw).map_err(de::Error::custom)?),
        };
        Ok(Self {
            span: found.span,
            written,
        })
    }
}

impl<'de, T: Scalar> Deserialize<'de> for Plain<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let found = find::<Raw, D>(d, true)?;
        let value = found.value.read::<T>(&found.raw).map_err(de::Error::custom)?;
        Ok(Self {
            span: found.span,
            value,
        })
    }
}

/// A scalar before it is known what it must be.
enum Raw {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
}

impl Raw {
    fn read<T: Scalar>(self, written: &str) -> Result<T, String> {
        match self {
            Self::Text(text) => T::from_text(&text),
            Self::Integer(value) => T::from_integer(value, written),
            Self::Float(value) => T::from_float(value, written),
            Self::Bool(value) => T::from_bool(value, written),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct AnyScalar(PhantomData<Raw>);
        impl Visitor<'_> for AnyScalar {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true or false")
            }
            fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw::Text(text.to_owned()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Integer(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Integer))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Float(value))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Bool(value))
            }
        }
        d.deserialize_any(AnyScalar(PhantomData))
    }
}

impl<T: Scalar> JsonSchema for Templated<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrTemplate", T::NAME).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::templated_schema()
    }
}

impl<T: Scalar> JsonSchema for Plain<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::plain_schema()
    }
}

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};

use crate::language::{ID_PATTERN, Id};

/// The language version. This gtrun reads version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version;

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match i64::deserialize(d)? {
            1 => Ok(Self),
            other => Err(D::Error::custom(format!(
                "this gtrun reads language version 1, the file says {other}"
            ))),
        }
    }
}

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "const": 1 })
    }
}

/// A scenario's name: lower-case letters, digits and `-`, at most 63.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioName(pub String);

impl<'de> Deserialize<'de> for ScenarioName {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > 63 || !text.chars().all(inner) {
            return Err(D::Error::custom(
                "a name is lower-case letters, digits and `-`, at most 63",
            ));
        }
        Ok(Self(text))
    }
}

impl JsonSchema for ScenarioName {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z0-9-]{1,63}$", "examples": ["s2-improved-long-request"] })
    }
}

/// An id: lower-case letters, digits and `_`, a letter first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdText(pub Id);

impl<'de> Deserialize<'de> for IdText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        Id::new(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is no id: lower-case letters, digits and `_`, a letter first"
            ))
        })
    }
}

impl JsonSchema for IdText {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": ID_PATTERN })
    }
}

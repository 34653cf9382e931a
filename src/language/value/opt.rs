use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer};

/// An optional key: absent or a value, never null.
///
/// A plain `Option` would accept null, and its `"default": null` in a schema stops editors from offering any completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opt<T>(pub Option<T>);

impl<T> Default for Opt<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Opt<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T> Opt<T> {
    /// This value, else the other one.
    pub fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Opt<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        T::deserialize(d).map(|value| Self(Some(value)))
    }
}

impl<T: JsonSchema> JsonSchema for Opt<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, MapAccess, Visitor};

use crate::diagnostic::{FileId, Span};
use crate::language::source::{AT, FIELDS, WRITTEN};

/// A value and where it stands. Two are equal when their values are.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

/// What the tree gives for a value with its place.
pub(super) struct Found<T> {
    pub(super) span: Span,
    /// The scalar as written; empty unless asked for.
    pub(super) raw: String,
    pub(super) value: T,
}

/// Asks the tree for a value with its place, and with the scalar as written when `written`.
pub(super) fn find<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    d: D,
    written: bool,
) -> Result<Found<T>, D::Error> {
    d.deserialize_struct(if written { WRITTEN } else { AT }, &FIELDS, Fields(PhantomData))
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Found<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a file")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Found<T>, A::Error> {
        let (mut numbers, mut raw, mut value) = ([0u32; 3], String::new(), None);
        #[allow(clippy::needless_range_loop, reason = "the fields come in this order")]
        for index in 0..FIELDS.len() {
            if fields.next_key::<Cow<'de, str>>()?.is_none() {
                break;
            }
            match index {
                0..=2 => numbers[index] = fields.next_value()?,
                3 => raw = fields.next_value()?,
                _ => value = Some(fields.next_value()?),
            }
        }
        let [file, start, end] = numbers;
        let value = value.ok_or_else(|| de::Error::custom("a value was expected"))?;
        Ok(Found {
            span: Span {
                file: FileId(file),
                start,
                end,
            },
            raw,
            value,
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        find(d, false).map(|found| Self {
            value: found.value,
            span: found.span,
        })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
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

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for At<T> {}

impl<T: Hash> Hash for At<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

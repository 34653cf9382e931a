//! A tree as serde's input, with the place of every value for the types that ask for it.

use std::fmt;

use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{Bytes, Entry, Node, NodeKind};
use crate::diagnostic::{FileId, Span};

/// Name of the struct that a type asks for to get a value with its place: [`FIELDS`] in this order.
pub(crate) const AT: &str = "$gtrun::At";
/// The same, with the scalar as it is written in the file.
pub(crate) const WRITTEN: &str = "$gtrun::Written";
/// What these structs hold.
pub(crate) const FIELDS: [&str; 5] = ["file", "start", "end", "raw", "value"];

/// A value that a type refused, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadError {
    pub(crate) message: String,
    pub(crate) span: Option<Span>,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            span: None,
        }
    }
}

/// Reads a node of a file.
#[derive(Clone, Copy)]
pub(crate) struct Deserializer<'a> {
    node: &'a Node,
    file: FileId,
    text: &'a str,
}

impl<'a> Deserializer<'a> {
    /// A node of this file with this text.
    pub(crate) fn new(node: &'a Node, file: FileId, text: &'a str) -> Self {
        Self { node, file, text }
    }

    fn inner(self, node: &'a Node) -> Self {
        Self { node, ..self }
    }

    fn span(self, at: Bytes) -> Span {
        Span {
            file: self.file,
            start: at.start,
            end: at.end,
        }
    }

    /// The innermost place wins.
    fn placed<T>(self, result: Result<T, ReadError>) -> Result<T, ReadError> {
        result.map_err(|error| ReadError {
            span: error.span.or_else(|| Some(self.span(self.node.at))),
            ..error
        })
    }

    /// The scalar as written, without the quotes.
    fn raw(self) -> String {
        let slice = |at: Bytes| self.text.get(at.start as usize..at.end as usize);
        match &self.node.kind {
            NodeKind::Text(text) => text.clone(),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Integer(_) | NodeKind::Float(_) => slice(self.node.defined)
                .unwrap_or_default()
                .trim_matches(['"', '\''])
                .to_owned(),
            NodeKind::List(_) | NodeKind::Map(_) => String::new(),
        }
    }
}

impl<'de> de::Deserializer<'de> for Deserializer<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let result = match &self.node.kind {
            NodeKind::Null => visitor.visit_unit(),
            NodeKind::Bool(value) => visitor.visit_bool(*value),
            NodeKind::Integer(value) => visitor.visit_i64(*value),
            NodeKind::Float(value) => visitor.visit_f64(*value),
            NodeKind::Text(text) => visitor.visit_borrowed_str(text),
            NodeKind::List(items) => visitor.visit_seq(Items {
                parent: self,
                items: items.iter(),
            }),
            NodeKind::Map(entries) => visitor.visit_map(Entries {
                parent: self,
                entries: entries.iter(),
                value: None,
            }),
        };
        self.placed(result)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let result = visitor.visit_some(self);
        self.placed(result)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        let result = visitor.visit_newtype_struct(self);
        self.placed(result)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let result = match &self.node.kind {
            NodeKind::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(de::Error::custom("expected a word")),
        };
        self.placed(result)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == AT || name == WRITTEN {
            let raw = if name == WRITTEN { self.raw() } else { String::new() };
            let span = self.span(self.node.at);
            return self.placed(visitor.visit_map(Placed {
                span,
                raw,
                value: Value::Node(self),
                next: 0,
            }));
        }
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}

struct Items<'a> {
    parent: Deserializer<'a>,
    items: std::slice::Iter<'a, Node>,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.items.next() else { return Ok(None) };
        let inner = self.parent.inner(node);
        inner.placed(seed.deserialize(inner)).map(Some)
    }
}

struct Entries<'a> {
    parent: Deserializer<'a>,
    entries: std::slice::Iter<'a, Entry>,
    value: Option<&'a Node>,
}

impl<'a> MapAccess<'a> for Entries<'a> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(&entry.value);
        let span = self.parent.span(entry.key_at);
        seed.deserialize(Key { key: &entry.key, span })
            .map(Some)
            .map_err(|error| ReadError {
                span: error.span.or(Some(span)),
                ..error
            })
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let node = self
            .value
            .take()
            .ok_or_else(|| <ReadError as de::Error>::custom("a value was asked for before its key"))?;
        let inner = self.parent.inner(node);
        inner.placed(seed.deserialize(inner))
    }
}

/// A key with its place.
#[derive(Clone, Copy)]
struct Key<'a> {
    key: &'a str,
    span: Span,
}

impl<'de> de::Deserializer<'de> for Key<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_str(self.key)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_enum(self.key.into_deserializer())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == AT || name == WRITTEN {
            return visitor.visit_map(Placed {
                span: self.span,
                raw: self.key.to_owned(),
                value: Value::Key(self),
                next: 0,
            });
        }
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple tuple_struct
        map identifier ignored_any
    }
}

/// The fields of a value with its place, one after the other.
struct Placed<'a> {
    span: Span,
    raw: String,
    value: Value<'a>,
    next: usize,
}

enum Value<'a> {
    Node(Deserializer<'a>),
    Key(Key<'a>),
}

impl<'a> MapAccess<'a> for Placed<'a> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some(field) = FIELDS.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        seed.deserialize(StrDeserializer::new(field)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        match self.next {
            1 => seed.deserialize(U32Deserializer::new(self.span.file.0)),
            2 => seed.deserialize(U32Deserializer::new(self.span.start)),
            3 => seed.deserialize(U32Deserializer::new(self.span.end)),
            4 => seed.deserialize(StrDeserializer::new(&self.raw)),
            _ => match &self.value {
                Value::Node(node) => seed.deserialize(*node),
                Value::Key(key) => seed.deserialize(*key),
            },
        }
    }
}

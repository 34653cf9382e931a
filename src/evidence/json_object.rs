//! One JSON object of a log line as a flat list of its fields: keys are not known beforehand, nested values are
//! passed over, nothing is copied that need not be.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::stamp::{self, Stamp};

/// A value that is no object and no list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar<'a> {
    /// A string.
    Text(Cow<'a, str>),
    /// A number as decimal digits.
    Number(String),
    /// true or false.
    Bool(bool),
    /// null.
    Null,
    /// An object or a list, passed over.
    Nested,
}

impl Scalar<'_> {
    /// As text: numbers and booleans too; `None` for null, nested, and Envoy's `-` for "no value".
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(t) if t != "-" => Some(Cow::Borrowed(t.as_ref())),
            Self::Number(n) => Some(Cow::Borrowed(n.as_str())),
            Self::Bool(b) => Some(Cow::Borrowed(if *b { "true" } else { "false" })),
            Self::Text(_) | Self::Null | Self::Nested => None,
        }
    }

    /// As an unsigned number, written as a number or as a string; fractions are cut.
    pub(crate) fn number(&self) -> Option<u64> {
        let text = self.text()?;
        let whole = text.split_once('.').map_or(text.as_ref(), |(whole, _)| whole);
        super::reading::number(whole.trim().as_bytes())
    }

    /// As a stamp: ISO text, or a number since 1970.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let text = self.text()?;
        stamp::iso_whole(text.as_bytes()).or_else(|| stamp::epoch(text.as_bytes()))
    }
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Owned(v.to_owned())))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(v.to_string()))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(v.to_string()))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(v.to_string()))
            }
            fn visit_bool<E>(self, v: bool) -> Result<Self::Value, E> {
                Ok(Scalar::Bool(v))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Scalar::Null)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nested)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nested)
            }
        }
        d.deserialize_any(Any)
    }
}

/// The fields of one object, in the order of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, Scalar<'a>)>);

impl<'a> Fields<'a> {
    /// Reads a text that is one JSON object; anything else is `None`.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let start = text.iter().position(|b| !b.is_ascii_whitespace())?;
        if text[start] != b'{' {
            return None;
        }
        serde_json::from_slice(text).ok()
    }

    /// The value of the first of the keys that is there.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<&Scalar<'a>> {
        keys.iter()
            .find_map(|key| self.0.iter().find(|(k, _)| k == key))
            .map(|(_, v)| v)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Scalar<'a>> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Object;
        struct Key<'a>(Cow<'a, str>);
        impl<'de> Deserialize<'de> for Key<'de> {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                match Scalar::deserialize(d)? {
                    Scalar::Text(t) => Ok(Key(t)),
                    _ => Err(serde::de::Error::custom("a key is text")),
                }
            }
        }
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(24);
                while let Some((Key(k), v)) = map.next_entry::<Key<'de>, Scalar<'de>>()? {
                    fields.push((k, v));
                }
                Ok(Fields(fields))
            }
        }
        d.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scalars_of_every_kind() {
        let f = Fields::parse(
            br#" {"ts":1780211558.25,"n":"7","m":-1,"dash":"-","x":null,"deep":{"a":[1]},"esc":"a\"b","ok":true}"#,
        )
        .expect("an object");
        let number = |k: &str| f.get(k).and_then(Scalar::number);
        assert_eq!((number("n"), number("m"), number("dash")), (Some(7), None, None));
        assert_eq!(f.get("esc").and_then(Scalar::text).as_deref(), Some("a\"b"));
        assert_eq!(f.get("deep"), Some(&Scalar::Nested));
        assert_eq!(
            f.first(&["time", "ts"])
                .and_then(Scalar::stamp)
                .map(|s| s.at.to_rfc3339())
                .as_deref(),
            Some("2026-05-31T07:12:38.250Z")
        );
        assert_eq!(Fields::parse(b"[1]"), None);
        assert_eq!(Fields::parse(b"{\"cut\":"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Fields::parse(&text);
        }
    }
}

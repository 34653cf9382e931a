//! An object with exactly one kind key and common keys beside it: steps, probes, log sources, polls.
//!
//! serde's own enums would lose the spans (untagged, flatten) or the common keys (externally tagged). This one visitor buffers
//! nothing, yields a plain enum for exhaustive matches, and makes the schema that editors complete best: all kinds as optional
//! properties, `oneOf` over what is required.

use serde_json::{Map, Value};

/// Declares such an object. A new kind is one line and one struct.
macro_rules! one_of {
    (
        $(#[$outer_meta:meta])* $outer:ident, $(#[$kind_meta:meta])* $kind:ident, $what:literal, $kinds_are:literal;
        common { $( $(#[doc = $common_doc:literal])* $common:ident : $common_type:ty ),* $(,)? }
        kinds { $( $(#[doc = $doc:literal])* $key:ident => $variant:ident($type:ty) ),* $(,)? }
    ) => {
        $(#[$outer_meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $outer {
            $( $(#[doc = $common_doc])* pub $common: Option<$common_type>, )*
            /// Place of the key that names the kind.
            pub key: $crate::diagnostic::Span,
            /// The kind.
            pub kind: $kind,
        }

        $(#[$kind_meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $kind { $( $(#[doc = $doc])* $variant($type) ),* }

        impl $kind {
            /// The keys that name a kind.
            pub const KEYS: &'static [&'static str] = &[$( stringify!($key) ),*];

            /// The key of this kind.
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => stringify!($key) ),* }
            }
        }

        impl<'de> serde::Deserialize<'de> for $outer {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Object;
                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $outer;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, concat!($what, " with one of: {}"), $kind::KEYS.join(", "))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$outer, A::Error> {
                        use serde::de::Error as _;
                        $( let mut $common: Option<$common_type> = None; )*
                        let mut found: Option<($crate::diagnostic::Span, $kind)> = None;
                        while let Some(key) = map.next_key::<$crate::language::value::At<String>>()? {
                            match key.value.as_str() {
                                $( stringify!($common) => $common = Some(map.next_value()?), )*
                                $( stringify!($key) => {
                                    if let Some((_, first)) = &found {
                                        let first = first.name();
                                        return Err(A::Error::custom(format!(concat!($what, " has one ", $kinds_are, ", here are two: `{}` and `{}`"), first, stringify!($key))));
                                    }
                                    found = Some((key.span, $kind::$variant(map.next_value()?)));
                                } )*
                                other => return Err(A::Error::unknown_field(other, &[$( stringify!($key), )* $( stringify!($common), )*])),
                            }
                        }
                        let (key, kind) = found.ok_or_else(|| A::Error::custom(concat!($what, " without a ", $kinds_are)))?;
                        Ok($outer { $( $common, )* key, kind })
                    }
                }
                d.deserialize_map(Object)
            }
        }

        impl schemars::JsonSchema for $outer {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($outer).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut properties = serde_json::Map::new();
                $( $crate::language::one_of::property(&mut properties, stringify!($key), generator.subschema_for::<$type>(), concat!("" $(, $doc, "\n")*)); )*
                $( $crate::language::one_of::property(&mut properties, stringify!($common), generator.subschema_for::<$common_type>(), concat!("" $(, $common_doc, "\n")*)); )*
                let one: Vec<serde_json::Value> = $kind::KEYS.iter().map(|key| serde_json::json!({ "required": [key] })).collect();
                schemars::json_schema!({
                    "type": "object",
                    "properties": properties,
                    "additionalProperties": false,
                    "oneOf": one,
                })
            }
        }
    };
}
pub(crate) use one_of;

/// Adds a property with its own description.
pub(crate) fn property(properties: &mut Map<String, Value>, key: &str, schema: schemars::Schema, doc: &str) {
    let mut value = schema.to_value();
    if let Some(object) = value.as_object_mut() {
        object.insert("description".to_owned(), description(doc).into());
    }
    properties.insert(key.to_owned(), value);
}

/// A doc comment as a description: without the leading spaces, its lines joined as schemars joins them.
fn description(doc: &str) -> String {
    let lines: Vec<&str> = doc.lines().map(str::trim).collect();
    lines
        .split(|line| line.is_empty())
        .map(|part| part.join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
        .trim()
        .to_owned()
}

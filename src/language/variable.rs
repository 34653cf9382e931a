use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::language::expression::Type;
use crate::time::Duration;

/// The value of a variable: a scalar, with the text that the author wrote.
///
/// A text that spells a duration, a percentage or a rate is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// As it is written.
    pub text: String,
    /// What it means.
    pub value: Scalar,
}

/// What a scalar means.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// true or false.
    Bool(bool),
    /// A number without a unit.
    Number(f64),
    /// A length of time.
    Duration(Duration),
    /// A percentage as written: 0.1 for `0.1%`.
    Percent(f64),
    /// A rate per second.
    Rate(f64),
    /// Any other text.
    Text(String),
}

impl Variable {
    /// A text; when it spells a duration, a percentage or a rate, that.
    pub fn from_text(text: &str) -> Self {
        let value = if let Ok(duration) = text.parse() {
            Scalar::Duration(duration)
        } else if let Some(percent) = text.strip_suffix('%').and_then(decimal) {
            Scalar::Percent(percent)
        } else if let Some(rate) = rate(text) {
            Scalar::Rate(rate)
        } else {
            Scalar::Text(text.to_owned())
        };
        Self {
            text: text.to_owned(),
            value,
        }
    }

    /// A number, with the text that was written for it.
    pub fn from_number(text: &str, number: f64) -> Self {
        Self {
            text: text.to_owned(),
            value: Scalar::Number(number),
        }
    }

    /// true or false.
    pub fn from_bool(value: bool) -> Self {
        Self {
            text: value.to_string(),
            value: Scalar::Bool(value),
        }
    }

    /// Its type.
    pub fn ty(&self) -> Type {
        match self.value {
            Scalar::Bool(_) => Type::Bool,
            Scalar::Number(_) => Type::Number,
            Scalar::Duration(_) => Type::Duration,
            Scalar::Percent(_) => Type::Percent,
            Scalar::Rate(_) => Type::Rate,
            Scalar::Text(_) => Type::Text,
        }
    }
}

/// Digits with an optional fraction, nothing else.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let ends = text.starts_with('.') || text.ends_with('.');
    (plain && !ends).then(|| text.parse().ok()).flatten()
}

/// `50/s` or `30/m`, per second.
pub(crate) fn rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/')?;
    let number = decimal(number)?;
    match unit {
        "s" => Some(number),
        "m" => Some(number / 60.0),
        _ => None,
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A variable whose plain form would be read back as another one: `1.20`, or a text that looks like a duration.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Exact {
    Number(String),
    Text(String),
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Scalar::Bool(value) => s.serialize_bool(value),
            Scalar::Number(number)
                if number.fract() == 0.0 && number.abs() < 9e15 && (number as i64).to_string() == self.text =>
            {
                s.serialize_i64(number as i64)
            }
            Scalar::Number(number) if number.to_string() == self.text && number.fract() != 0.0 => {
                s.serialize_f64(number)
            }
            Scalar::Number(_) => Exact::Number(self.text.clone()).serialize(s),
            Scalar::Text(_) if Self::from_text(&self.text) != *self => Exact::Text(self.text.clone()).serialize(s),
            Scalar::Duration(_) | Scalar::Percent(_) | Scalar::Rate(_) | Scalar::Text(_) => s.serialize_str(&self.text),
        }
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Variable;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true or false")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Variable, E> {
                Ok(Variable::from_bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Variable, E> {
                Ok(Variable::from_number(&value.to_string(), value as f64))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Variable, E> {
                Ok(Variable::from_number(&value.to_string(), value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Variable, E> {
                Ok(Variable::from_number(&value.to_string(), value))
            }
            fn visit_str<E>(self, text: &str) -> Result<Variable, E> {
                Ok(Variable::from_text(text))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Variable, A::Error> {
                Ok(
                    match Exact::deserialize(serde::de::value::MapAccessDeserializer::new(map))? {
                        Exact::Number(text) => {
                            let number = text
                                .parse()
                                .map_err(|_| serde::de::Error::custom(format!("`{text}` is no number")))?;
                            Variable::from_number(&text, number)
                        }
                        Exact::Text(text) => Variable {
                            value: Scalar::Text(text.clone()),
                            text,
                        },
                    },
                )
            }
        }
        d.deserialize_any(Visitor)
    }
}

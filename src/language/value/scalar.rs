use schemars::{Schema, json_schema};
use serde_json::json;

use crate::language::Variable;
use crate::language::plan::CountOrPercent;
use crate::language::variable::{decimal, rate};
use crate::time::Duration;

/// A scalar type of the language: how it is read, and its schema.
///
/// The schema never needs `anyOf`: a pattern binds texts only, so `type: [integer, string]` with a pattern means "a number, or a
/// template". Editors then offer completions, and a message names one thing.
pub trait Scalar: Sized {
    /// Name of its definition in the schema.
    const NAME: &'static str;
    /// What it is, for messages: `a duration such as 200ms, 5s, 1m30s`.
    const EXPECTED: &'static str;

    /// From a text.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence for the author.
    fn from_text(text: &str) -> Result<Self, String>;

    /// From a whole number; `written` is its text in the file.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_integer(value: i64, written: &str) -> Result<Self, String> {
        let _ = value;
        Err(format!("expected {}, found the number `{written}`", Self::EXPECTED))
    }

    /// From a number with a fraction; `written` is its text in the file.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_float(value: f64, written: &str) -> Result<Self, String> {
        let _ = value;
        Err(format!("expected {}, found the number `{written}`", Self::EXPECTED))
    }

    /// From true or false.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_bool(value: bool, written: &str) -> Result<Self, String> {
        let _ = value;
        Err(format!("expected {}, found `{written}`", Self::EXPECTED))
    }

    /// From the value of a template that is one placeholder.
    ///
    /// # Errors
    /// What is wrong with it.
    fn from_variable(variable: &Variable) -> Result<Self, String> {
        match variable.value {
            crate::language::Scalar::Bool(value) => Self::from_bool(value, &variable.text),
            crate::language::Scalar::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Self::from_integer(value as i64, &variable.text)
            }
            crate::language::Scalar::Number(value) => Self::from_float(value, &variable.text),
            crate::language::Scalar::Duration(_)
            | crate::language::Scalar::Percent(_)
            | crate::language::Scalar::Rate(_)
            | crate::language::Scalar::Text(_) => Self::from_text(&variable.text),
        }
    }

    /// Schema without templates.
    fn plain_schema() -> Schema;

    /// Schema with templates.
    fn templated_schema() -> Schema;
}

/// A text with a placeholder in it, as a part of a pattern.
const TEMPLATE: &str = r".*\{\{.*\}\}.*";

/// Units from large to small, each at most once; the empty text is excluded by `minLength`.
const DURATION: &str =
    r"(?:\d+(?:\.\d+)?h)?(?:\d+(?:\.\d+)?m)?(?:\d+(?:\.\d+)?s)?(?:\d+(?:\.\d+)?ms)?(?:\d+(?:\.\d+)?us)?";

/// A text type: one pattern, or a template.
fn text_schemas(pattern: &str, description: &str, examples: &[&str], template: bool) -> Schema {
    let (pattern, description) = if template {
        (
            format!("^(?:{pattern}|{TEMPLATE})$"),
            format!("{description}, or a template."),
        )
    } else {
        (format!("^(?:{pattern})$"), format!("{description}."))
    };
    json_schema!({ "type": "string", "minLength": 1, "pattern": pattern, "description": description, "examples": examples })
}

impl Scalar for Duration {
    const NAME: &'static str = "Duration";
    const EXPECTED: &'static str = "a duration such as 200ms, 5s, 1m30s";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: crate::time::DurationError| error.to_string())
    }

    fn from_integer(_: i64, written: &str) -> Result<Self, String> {
        Err(format!("a duration needs a unit: {written}s or {written}ms?"))
    }

    fn from_float(_: f64, written: &str) -> Result<Self, String> {
        Err(format!("a duration needs a unit: {written}s or {written}ms?"))
    }

    fn plain_schema() -> Schema {
        text_schemas(
            DURATION,
            "A duration with units from large to small, each once: 200ms, 5s, 1m30s, 2h",
            &["200ms", "5s", "1m30s"],
            false,
        )
    }

    fn templated_schema() -> Schema {
        text_schemas(
            DURATION,
            "A duration with units from large to small, each once: 200ms, 5s, 1m30s, 2h",
            &["200ms", "5s", "1m30s", "{{ vars.grace }}"],
            true,
        )
    }
}

/// A duration that may be negative: the offset of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset(pub Duration);

impl Scalar for Offset {
    const NAME: &'static str = "Offset";
    const EXPECTED: &'static str = "a duration such as 20ms or -10ms";

    fn from_text(text: &str) -> Result<Self, String> {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        Duration::from_text(rest).map(|d| Self(d.times(sign)))
    }

    fn from_integer(value: i64, written: &str) -> Result<Self, String> {
        Duration::from_integer(value, written).map(Self)
    }

    fn plain_schema() -> Schema {
        text_schemas(
            &format!("-?{DURATION}"),
            "A duration, negative for a clock that is behind",
            &["20ms", "-10ms"],
            false,
        )
    }

    fn templated_schema() -> Schema {
        text_schemas(
            &format!("-?{DURATION}"),
            "A duration, negative for a clock that is behind",
            &["20ms", "-10ms"],
            true,
        )
    }
}

/// Requests per second, from `50/s` or `30/m`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

const RATE: &str = r"\d+(?:\.\d+)?/[sm]";

impl Scalar for Rate {
    const NAME: &'static str = "Rate";
    const EXPECTED: &'static str = "a rate such as 50/s or 30/m";

    fn from_text(text: &str) -> Result<Self, String> {
        rate(text)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a rate; write for example 50/s or 30/m"))
    }

    fn from_integer(_: i64, written: &str) -> Result<Self, String> {
        Err(format!("a rate needs a unit: {written}/s or {written}/m?"))
    }

    fn from_float(_: f64, written: &str) -> Result<Self, String> {
        Err(format!("a rate needs a unit: {written}/s or {written}/m?"))
    }

    fn plain_schema() -> Schema {
        text_schemas(RATE, "A rate: 50/s, 30/m", &["50/s"], false)
    }

    fn templated_schema() -> Schema {
        text_schemas(RATE, "A rate: 50/s, 30/m", &["50/s"], true)
    }
}

/// Bytes per second, from `1MB/s`, `64kB/s`, `500B/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRate(pub u64);

const BYTE_RATE: &str = r"\d+(?:\.\d+)?(?:B|kB|MB|GB)/s";

impl Scalar for ByteRate {
    const NAME: &'static str = "ByteRate";
    const EXPECTED: &'static str = "a rate of bytes such as 64kB/s or 1MB/s";

    fn from_text(text: &str) -> Result<Self, String> {
        let units = [("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("B/s", 1.0)];
        let read = units
            .iter()
            .find_map(|(unit, factor)| Some(decimal(text.strip_suffix(unit)?)? * factor));
        let bytes = read
            .filter(|bytes| *bytes >= 1.0 && *bytes < 1e15)
            .map(|bytes| bytes as u64);
        bytes
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a rate of bytes; write for example 500B/s, 64kB/s or 1MB/s"))
    }

    fn plain_schema() -> Schema {
        text_schemas(BYTE_RATE, "Bytes per second: 500B/s, 64kB/s, 1MB/s", &["1MB/s"], false)
    }

    fn templated_schema() -> Schema {
        text_schemas(BYTE_RATE, "Bytes per second: 500B/s, 64kB/s, 1MB/s", &["1MB/s"], true)
    }
}

/// A schema for whole numbers from `least` to `most`, or a template.
fn integer_schema(least: u64, most: u64, template: bool) -> Schema {
    if template {
        let description = format!("A whole number from {least}, or a template.");
        json_schema!({ "type": ["integer", "string"], "minimum": least, "maximum": most, "pattern": format!("^{TEMPLATE}$"), "description": description })
    } else {
        json_schema!({ "type": "integer", "minimum": least, "maximum": most })
    }
}

/// A whole number within bounds.
fn integer(value: i64, least: i64, most: i64, expected: &str) -> Result<i64, String> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("expected {expected}, found {value}"))
    }
}

fn no_number<T>(text: &str, expected: &str) -> Result<T, String> {
    let octal = text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    if octal {
        let plain = text.trim_start_matches('0');
        return Err(format!(
            "`{text}` has a leading zero; numbers are decimal: write {}",
            if plain.is_empty() { "0" } else { plain }
        ));
    }
    Err(format!("expected {expected}, found the text `{text}`"))
}

/// A whole number, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u32);

impl Scalar for Count {
    const NAME: &'static str = "Count";
    const EXPECTED: &'static str = "a whole number, 0 or more";

    fn from_text(text: &str) -> Result<Self, String> {
        no_number(text, Self::EXPECTED)
    }

    fn from_integer(value: i64, _: &str) -> Result<Self, String> {
        integer(value, 0, i64::from(u32::MAX), Self::EXPECTED).map(|value| Self(value.unsigned_abs() as u32))
    }

    fn plain_schema() -> Schema {
        integer_schema(0, u64::from(u32::MAX), false)
    }

    fn templated_schema() -> Schema {
        integer_schema(0, u64::from(u32::MAX), true)
    }
}

/// A whole number, 1 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositiveCount(pub u32);

impl Scalar for PositiveCount {
    const NAME: &'static str = "PositiveCount";
    const EXPECTED: &'static str = "a whole number, 1 or more";

    fn from_text(text: &str) -> Result<Self, String> {
        no_number(text, Self::EXPECTED)
    }

    fn from_integer(value: i64, _: &str) -> Result<Self, String> {
        integer(value, 1, i64::from(u32::MAX), Self::EXPECTED).map(|value| Self(value.unsigned_abs() as u32))
    }

    fn plain_schema() -> Schema {
        integer_schema(1, u64::from(u32::MAX), false)
    }

    fn templated_schema() -> Schema {
        integer_schema(1, u64::from(u32::MAX), true)
    }
}

/// A TCP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port(pub u16);

impl Scalar for Port {
    const NAME: &'static str = "Port";
    const EXPECTED: &'static str = "a port from 1 to 65535";

    fn from_text(text: &str) -> Result<Self, String> {
        no_number(text, Self::EXPECTED)
    }

    fn from_integer(value: i64, _: &str) -> Result<Self, String> {
        integer(value, 1, i64::from(u16::MAX), Self::EXPECTED).map(|value| Self(value.unsigned_abs() as u16))
    }

    fn plain_schema() -> Schema {
        integer_schema(1, u64::from(u16::MAX), false)
    }

    fn templated_schema() -> Schema {
        integer_schema(1, u64::from(u16::MAX), true)
    }
}

/// A number with or without a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(pub f64);

impl Scalar for Ratio {
    const NAME: &'static str = "Number";
    const EXPECTED: &'static str = "a number";

    fn from_text(text: &str) -> Result<Self, String> {
        no_number(text, Self::EXPECTED)
    }

    fn from_integer(value: i64, _: &str) -> Result<Self, String> {
        Ok(Self(value as f64))
    }

    fn from_float(value: f64, _: &str) -> Result<Self, String> {
        Ok(Self(value))
    }

    fn plain_schema() -> Schema {
        json_schema!({ "type": "number" })
    }

    fn templated_schema() -> Schema {
        json_schema!({ "type": ["number", "string"], "pattern": format!("^{TEMPLATE}$") })
    }
}

/// true or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flag(pub bool);

impl Scalar for Flag {
    const NAME: &'static str = "Flag";
    const EXPECTED: &'static str = "true or false";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("expected true or false, found the text `{text}`"))
    }

    fn from_bool(value: bool, _: &str) -> Result<Self, String> {
        Ok(Self(value))
    }

    fn plain_schema() -> Schema {
        json_schema!({ "type": "boolean" })
    }

    fn templated_schema() -> Schema {
        json_schema!({ "type": ["boolean", "string"], "pattern": format!("^{TEMPLATE}$"), "description": "true, false, or a template." })
    }
}

impl Scalar for String {
    const NAME: &'static str = "Text";
    const EXPECTED: &'static str = "a text";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn from_variable(variable: &Variable) -> Result<Self, String> {
        Ok(variable.text.clone())
    }

    fn plain_schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }

    fn templated_schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "description": "A text; `{{ vars.x }}` in it is filled in." })
    }
}

/// A text, or a number or a boolean that is passed on as it is written: `"1.20"` and `1.20` are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsWritten(pub String);

impl Scalar for AsWritten {
    const NAME: &'static str = "AsWritten";
    const EXPECTED: &'static str = "a text, a number, true or false";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn from_integer(_: i64, written: &str) -> Result<Self, String> {
        Ok(Self(written.to_owned()))
    }

    fn from_float(_: f64, written: &str) -> Result<Self, String> {
        Ok(Self(written.to_owned()))
    }

    fn from_bool(_: bool, written: &str) -> Result<Self, String> {
        Ok(Self(written.to_owned()))
    }

    fn plain_schema() -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"], "description": "A text; a number or a boolean is passed on as it is written." })
    }

    fn templated_schema() -> Schema {
        json_schema!({
            "type": ["string", "number", "boolean"],
            "description": "A text in which `{{ vars.x }}` is filled in; a number or a boolean is passed on as it is written."
        })
    }
}

impl Scalar for Variable {
    const NAME: &'static str = "Variable";
    const EXPECTED: &'static str = "a text, a number, true or false";

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self::from_text(text))
    }

    fn from_integer(value: i64, written: &str) -> Result<Self, String> {
        Ok(Self::from_number(written, value as f64))
    }

    fn from_float(value: f64, written: &str) -> Result<Self, String> {
        Ok(Self::from_number(written, value))
    }

    fn from_bool(value: bool, _: &str) -> Result<Self, String> {
        Ok(Self::from_bool(value))
    }

    fn plain_schema() -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"], "description": "A scalar: a text, a duration, a number, true or false." })
    }

    fn templated_schema() -> Schema {
        Self::plain_schema()
    }
}

impl Scalar for CountOrPercent {
    const NAME: &'static str = "CountOrPercent";
    const EXPECTED: &'static str = "a number of pods or a percentage such as 25%";

    fn from_text(text: &str) -> Result<Self, String> {
        let percent = text
            .strip_suffix('%')
            .and_then(|digits| digits.parse::<u32>().ok())
            .filter(|percent| *percent <= 100);
        percent
            .map(Self::Percent)
            .ok_or_else(|| format!("`{text}` is neither a number of pods nor a percentage such as 25%"))
    }

    fn from_integer(value: i64, _: &str) -> Result<Self, String> {
        integer(value, 0, i64::from(u32::MAX), Self::EXPECTED).map(|value| Self::Count(value.unsigned_abs() as u32))
    }

    fn plain_schema() -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": r"^\d{1,3}%$", "description": "A number of pods, or a percentage: 1, 25%." })
    }

    fn templated_schema() -> Schema {
        let pattern = format!(r"^(?:\d{{1,3}}%|{TEMPLATE})$");
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": pattern, "description": json!("A number of pods, a percentage, or a template: 1, 25%.") })
    }
}

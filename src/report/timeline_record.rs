use serde::Deserialize;
use serde_json::{Map, Value};

use crate::time::{Bracket, Instant};

/// One line of `timeline.jsonl` as a report reads it: the keys that every event has, and the rest by name.
///
/// Reports are also made of folders that an older version judged, so an unknown event or field is no error.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TimelineRecord {
    /// Name on disk: `haproxy_backend_down`.
    pub event: String,
    /// Middle of the bracket, or the only stamp there is.
    #[serde(default)]
    pub ts: Option<Instant>,
    /// It happened after this moment.
    #[serde(default)]
    pub lo: Option<Instant>,
    /// It happened at this moment or before.
    #[serde(default)]
    pub hi: Option<Instant>,
    /// File that told of it.
    #[serde(default)]
    pub source: Option<String>,
    /// Everything else: `svname`, `from`, `to`, `downstream`, `host`, `id`.
    // serde(flatten) is the right tool here: spans do not matter and the remaining keys are open.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl TimelineRecord {
    /// The bracket; a record with nothing but `ts` is a point.
    pub fn bracket(&self) -> Bracket {
        match (self.lo, self.hi, self.ts) {
            (None, None, Some(at)) => Bracket {
                lo: Some(at),
                hi: Some(at),
            },
            (lo, hi, _) => Bracket { lo, hi },
        }
    }

    /// A field as text; numbers as they are written.
    pub fn text(&self, field: &str) -> Option<String> {
        match self.fields.get(field)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The first of these fields that is there, as text.
    pub fn any_text(&self, fields: &[&str]) -> Option<String> {
        fields.iter().find_map(|field| self.text(field))
    }

    /// A field as a number.
    pub fn number(&self, field: &str) -> Option<f64> {
        self.fields.get(field)?.as_f64()
    }

    /// The fields as `name=value`, for a person.
    pub fn details(&self) -> String {
        let shown = self
            .fields
            .keys()
            .filter_map(|name| Some(format!("{name}={}", self.text(name)?)));
        shown.collect::<Vec<_>>().join(" ")
    }
}

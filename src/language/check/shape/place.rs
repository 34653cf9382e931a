//! Which part of the schema describes a place in a file, and what the place is called.

use serde_json::Value;

use super::Shape;
use crate::language::source::{Entry, Segment, Tree};

/// The part of the schema that describes a value.
pub(super) struct Definition<'a> {
    /// Name under `$defs`, when it has one.
    name: Option<&'a str>,
    schema: &'a Value,
}

impl<'a> Definition<'a> {
    pub(super) fn name(&self) -> Option<&'a str> {
        self.name
    }

    pub(super) fn schema(&self) -> &'a Value {
        self.schema
    }

    /// Keys that an object may have.
    pub(super) fn keys(&self) -> Vec<String> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Keys of which exactly one must be there: verbs, kinds of probes.
    pub(super) fn kinds(&self) -> Vec<String> {
        let branches = self
            .schema
            .get("oneOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        branches
            .iter()
            .filter_map(|branch| branch.pointer("/required/0")?.as_str().map(str::to_owned))
            .collect()
    }

    /// What such a key is called.
    pub(super) fn kind_word(&self) -> &'static str {
        match self.name {
            Some("Step") => "verb",
            Some("Poll") => "source",
            _ => "kind",
        }
    }

    /// The words of which the value must be one.
    pub(super) fn words(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(options) = self.schema.get("enum").and_then(Value::as_array) {
            return options.iter().map(text).collect();
        }
        let branches = self
            .schema
            .get("oneOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        branches
            .iter()
            .filter_map(|branch| branch.get("const").map(text))
            .collect()
    }

    /// The pattern that keys must match, when keys are free.
    pub(super) fn key_pattern(&self) -> Option<String> {
        self.schema
            .get("patternProperties")?
            .as_object()?
            .keys()
            .next()
            .cloned()
    }
}

impl Shape {
    /// The definition that a pointer leads to.
    pub(super) fn definition(&self, at: &[Segment]) -> Option<Definition<'_>> {
        let mut found = self.follow(&self.schema);
        for segment in at {
            let schema = found.schema;
            let inner = match segment {
                Segment::Index(_) => schema.get("items")?,
                Segment::Key(key) => {
                    let own = schema.get("properties").and_then(|properties| properties.get(key));
                    let by_pattern = || schema.get("patternProperties")?.as_object()?.values().next();
                    own.or_else(by_pattern)
                        .or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))?
                }
            };
            found = self.follow(inner);
        }
        Some(found)
    }

    fn follow<'a>(&'a self, schema: &'a Value) -> Definition<'a> {
        let name = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix("#/$defs/"));
        match name.and_then(|name| self.schema.get("$defs")?.get(name)) {
            Some(target) => Definition { name, schema: target },
            None => Definition { name: None, schema },
        }
    }

    /// What a place is called in messages: `a step`, `` `request` ``, `the file`.
    pub(super) fn name_of(&self, at: &[Segment]) -> String {
        match at {
            [] => "the file".to_owned(),
            [.., Segment::Key(key)] => match self.definition(at).and_then(|found| found.name()) {
                Some("Probe") => format!("probe `{key}`"),
                Some("Control") => format!("control `{key}`"),
                Some(_) | None => format!("`{key}`"),
            },
            [.., Segment::Index(_)] => match self.definition(at).and_then(|found| found.name()) {
                Some("Step") => "a step".to_owned(),
                Some("Assertion") => "an assertion".to_owned(),
                Some(_) | None => match at {
                    [.., Segment::Key(list), Segment::Index(_)] => format!("an item of `{list}`"),
                    _ => "an item".to_owned(),
                },
            },
        }
    }

    /// Places in the schema that have this key, as an author would say them.
    pub(super) fn owners(&self, key: &str) -> Vec<String> {
        let mut out = Vec::new();
        self.search(&self.schema, &mut Vec::new(), key, &mut out);
        out.dedup();
        out
    }

    fn search<'a>(&'a self, schema: &'a Value, path: &mut Vec<&'a str>, key: &str, out: &mut Vec<String>) {
        // Steps hold steps under `parallel`: six levels see everything once.
        if path.len() > 6 {
            return;
        }
        let found = self.follow(schema);
        if let Some(properties) = found.schema.get("properties").and_then(Value::as_object) {
            if properties.contains_key(key) && !path.is_empty() {
                let place = path
                    .iter()
                    .filter(|part| !matches!(**part, "steps" | "probes"))
                    .copied()
                    .collect::<Vec<_>>()
                    .join(".");
                let text = match (path.as_slice(), place.as_str()) {
                    (["steps"], _) => "a step".to_owned(),
                    (["probes"], _) => "a probe".to_owned(),
                    (_, place) => format!("`{place}`"),
                };
                if !out.contains(&text) {
                    out.push(text);
                }
            }
            for (name, inner) in properties {
                if matches!(name.as_str(), "parallel" | "finally" | "controls") {
                    continue;
                }
                path.push(name);
                self.search(inner, path, key, out);
                path.pop();
            }
        }
        let lists = ["items", "additionalProperties"]
            .iter()
            .filter_map(|k| found.schema.get(*k))
            .filter(|value| value.is_object());
        let patterns = found
            .schema
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|p| p.values());
        for inner in lists.chain(patterns) {
            if inner.get("$ref").is_some() {
                self.search(inner, path, key, out);
            }
        }
    }
}

impl Tree {
    /// The entry whose value a pointer leads to; `None` for items of lists and for the root.
    pub(super) fn key_of(&self, at: &[Segment]) -> Option<&Entry> {
        match at.split_last()? {
            (Segment::Key(key), parent) => self.root.at_pointer(parent)?.entry(key),
            (Segment::Index(_), _) => None,
        }
    }
}

//! Markdown tables.

use serde_json::Value;

use crate::language::schema::scenario_schema;

/// A table of rows.
pub(super) fn rows(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

/// The keys of a definition; `Document` is the root.
pub(super) fn keys(schema: &Value, definition: &str) -> String {
    let found = if definition == "file" {
        Some(schema)
    } else {
        schema.pointer(&format!("/$defs/{definition}"))
    };
    let Some(properties) = found
        .and_then(|found| found.get("properties"))
        .and_then(Value::as_object)
    else {
        return format!("(there is no definition {definition})\n");
    };
    let required = found
        .and_then(|found| found.get("required"))
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let line = |(key, property): (&String, &Value)| {
        let needed = required.iter().any(|name| name == key);
        let mark = if needed { ", required" } else { "" };
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        vec![
            format!("`{key}`"),
            format!("{}{mark}", kind(schema, property)),
            text.replace('\n', " "),
        ]
    };
    rows(&["key", "value", "meaning"], properties.iter().map(line))
}

/// Every verb with its own table of options.
pub(super) fn verbs() -> String {
    let schema = scenario_schema();
    let Some(step) = schema.pointer("/$defs/Step") else {
        return String::new();
    };
    let kinds = step.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let verbs: Vec<&str> = kinds
        .iter()
        .filter_map(|branch| branch.pointer("/required/0")?.as_str())
        .collect();
    let mut out = String::new();
    for verb in verbs {
        let Some(property) = step.pointer(&format!("/properties/{verb}")) else {
            continue;
        };
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        out.push_str(&format!("### `{verb}`\n\n{text}\n\n"));
        match definition(&schema, property) {
            Some((name, found)) if found.get("properties").is_some() => {
                out.push_str(&format!("{}\n", keys(&schema, name)))
            }
            _ => out.push_str(&format!("Takes {}.\n\n", kind(&schema, property))),
        }
    }
    out
}

/// The definition that a property refers to.
fn definition<'a>(schema: &'a Value, property: &'a Value) -> Option<(&'a str, &'a Value)> {
    let name = property.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    Some((name, schema.pointer(&format!("/$defs/{name}"))?))
}

/// The kind of a value in a few words.
pub(super) fn kind(schema: &Value, property: &Value) -> String {
    if let Some((name, found)) = definition(schema, property) {
        let words: Vec<String> = found
            .get("oneOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|branch| Some(format!("`{}`", branch.get("const")?.as_str()?)))
            .collect();
        if !words.is_empty() {
            return words.join(", ");
        }
        let plain = name.strip_suffix("OrTemplate").unwrap_or(name);
        return match plain {
            "Duration" | "Offset" => "duration",
            "Count" | "PositiveCount" | "Port" => "whole number",
            "Number" => "number",
            "Flag" => "true or false",
            "Text" | "AsWritten" => "text",
            "Rate" => "rate, as 50/s",
            "ByteRate" => "bytes per second, as 1MB/s",
            "CountOrPercent" => "number or percentage",
            "Variable" => "scalar",
            "Id" | "Name" | "Connection" | "FileName" => "name",
            "Expression" => "expression",
            "Version" => "1",
            "Step" => "step",
            "Assertion" => "assertion",
            "RetryOn" => "word of HAProxy",
            _ => "mapping",
        }
        .to_owned();
    }
    let ty = property.get("type");
    match ty.and_then(Value::as_str) {
        Some("array") => format!(
            "list of {}",
            plural(
                &property
                    .get("items")
                    .map_or("values".to_owned(), |items| kind(schema, items))
            )
        ),
        Some("object") => {
            let inner = property.get("additionalProperties").filter(|value| value.is_object());
            let by_pattern = property
                .get("patternProperties")
                .and_then(Value::as_object)
                .and_then(|patterns| patterns.values().next());
            match inner.or(by_pattern) {
                Some(inner) => format!("mapping of name to {}", kind(schema, inner)),
                None => "mapping".to_owned(),
            }
        }
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(other) => other.to_owned(),
        None => "value".to_owned(),
    }
}

fn plural(word: &str) -> String {
    match word {
        "step" | "assertion" | "text" | "mapping" | "name" | "scalar" => format!("{word}s"),
        other => other.to_owned(),
    }
}

//! Diagnostics as SARIF 2.1.0, for code scanning.

use serde_json::{Value, json};

use super::{Code, Diagnostic, Severity, SourceMap, Span};

/// A log with one run. Each file's diagnostics come with their own sources.
pub fn sarif<'a>(found: impl IntoIterator<Item = (&'a [Diagnostic], &'a SourceMap)>, version: &str) -> Value {
    let rules: Vec<Value> = Code::ALL.iter().map(|code| rule(*code)).collect();
    let results: Vec<Value> = found
        .into_iter()
        .flat_map(|(diagnostics, sources)| {
            diagnostics
                .iter()
                .map(|diagnostic| result(diagnostic, sources))
                .collect::<Vec<_>>()
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "gtrun", "semanticVersion": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.to_string(),
        "name": format!("{code:?}"),
        "shortDescription": { "text": code.title() },
        "fullDescription": { "text": code.explanation() },
        "help": { "text": format!("{}\n\n{}", code.explanation(), code.example()) },
    })
}

fn result(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    };
    let text = match &diagnostic.help {
        Some(help) => format!("{}. {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let index = Code::ALL.iter().position(|code| *code == diagnostic.code);
    let mut labels = diagnostic.labels.iter();
    let locations: Vec<Value> = labels
        .next()
        .map(|label| json!({ "physicalLocation": location(label.span, sources) }))
        .into_iter()
        .collect();
    let related: Vec<Value> = labels
        .enumerate()
        .map(|(id, label)| json!({ "id": id + 1, "physicalLocation": location(label.span, sources), "message": { "text": label.text } }))
        .collect();
    let mut value = json!({ "ruleId": diagnostic.code.to_string(), "ruleIndex": index, "level": level, "message": { "text": text }, "locations": locations });
    if !related.is_empty() {
        value["relatedLocations"] = related.into();
    }
    value
}

fn location(span: Span, sources: &SourceMap) -> Value {
    let (start, end) = (sources.start(span), sources.end(span));
    json!({
        "artifactLocation": { "uri": uri(sources.name(span.file)) },
        "region": { "startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column },
    })
}

/// A path as a relative reference: what is no plain character is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.replace('\\', "/").trim_start_matches("./").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

//! Diagnostics as workflow commands of GitHub Actions: annotations on the lines of a pull request.

use std::fmt::Write;

use super::{Diagnostic, Severity, SourceMap};

/// One line a diagnostic.
pub fn github(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let level = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "notice",
        };
        let mut properties = Vec::new();
        if let Some(span) = diagnostic.span() {
            let (start, end) = (sources.start(span), sources.end(span));
            properties.push(format!("file={}", property(sources.name(span.file))));
            properties.push(format!("line={}", start.line));
            properties.push(format!("endLine={}", end.line));
            // GitHub takes columns only within one line, the last one included.
            if start.line == end.line {
                properties.push(format!("col={}", start.column));
                properties.push(format!("endColumn={}", end.column.saturating_sub(1).max(start.column)));
            }
        }
        properties.push(format!(
            "title={}",
            property(&format!("{} {}", diagnostic.code, diagnostic.code.title()))
        ));
        let text = match &diagnostic.help {
            Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        // Writing into a String cannot fail.
        let _ = writeln!(out, "::{level} {}::{}", properties.join(","), data(&text));
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

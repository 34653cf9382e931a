//! A comment for a pull request: the verdict and the table first, the rest folded away.

use super::Document;
use super::next_step::next_command;
use super::wording::{
    SIMULATED, SIMULATED_MEANS, answer, cause_words, count, fate_word, interval_words, margin, outcome_word, readable,
    run_word, seconds,
};
use crate::verdict::Outcome;

/// The comment.
pub(super) fn render(document: &Document) -> String {
    let report = &document.report;
    let mut out = String::new();
    let simulated = if report.simulated {
        format!("{SIMULATED} ")
    } else {
        String::new()
    };
    out.push_str(&format!(
        "## {simulated}{}: {}\n\n",
        run_word(report.verdict),
        prose(&document.title())
    ));
    if report.simulated {
        out.push_str(&format!("> **{SIMULATED}**: {SIMULATED_MEANS}.\n\n"));
    }
    out.push_str(&format!("{}\n\n", prose(&report.summary)));
    if !report.assertions.is_empty() {
        out.push_str("| verdict | claim | margin | why |\n|---|---|---|---|\n");
        for finding in &report.assertions {
            let name = finding
                .name
                .as_ref()
                .map(|name| format!("{}: ", prose(name)))
                .unwrap_or_default();
            let margin = margin(finding)
                .map(|text| text.trim_start_matches("margin ").to_owned())
                .unwrap_or_default();
            let reason = finding
                .reason
                .as_ref()
                .map(|reason| format!("<br>{}", prose(reason)))
                .unwrap_or_default();
            out.push_str(&format!(
                "| **{}** | {name}{} | {margin} | {}{reason} |\n",
                outcome_word(finding.verdict),
                code(&finding.assert),
                prose(&finding.explanation),
            ));
        }
        out.push('\n');
    }
    for warning in document.warnings() {
        out.push_str(&format!("- warning: {}\n", prose(warning)));
    }
    if let Some(how) = report.cleanup.as_deref().filter(|how| how.starts_with("failed")) {
        out.push_str(&format!("- **cleanup {}**\n", prose(how)));
    }
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
    out.push_str(&requests(document));
    out.push_str(&loads(document));
    out.push_str(&order(document));
    if let Some(command) = next_command(document) {
        out.push_str(&format!("Next: {}\n\n", code(&command)));
    }
    let environment = report.environment.as_deref().unwrap_or("not known");
    let folder = document.folder.display().to_string();
    out.push_str(&format!(
        "Environment {}, exit code {}, evidence in {}.\n",
        code(environment),
        report.exit,
        code(&folder)
    ));
    out
}

fn requests(document: &Document) -> String {
    let requests = &document.report.requests;
    if requests.is_empty() {
        return String::new();
    }
    let mut out = folded(&count(requests.len() as u64, "request"));
    out.push_str("| request | fate | client saw | how it was shown |\n|---|---|---|---|\n");
    for request in requests {
        let cause = request
            .cause
            .map(|cause| format!(": {}", cause_words(cause)))
            .unwrap_or_default();
        let reason = request
            .reason
            .as_ref()
            .map(|reason| format!("<br>{}", prose(reason)))
            .unwrap_or_default();
        out.push_str(&format!(
            "| {} | **{}**{cause} | {} | {}{reason} |\n",
            code(&request.id),
            fate_word(request.fate),
            answer(request),
            prose(&request.explanation),
        ));
    }
    out + END
}

fn loads(document: &Document) -> String {
    let loads = &document.report.loads;
    if loads.is_empty() {
        return String::new();
    }
    let mut out = folded(&count(loads.len() as u64, "load"));
    out.push_str("| load | requests | disrupted | by cause | DOWN intervals |\n|---|---|---|---|---|\n");
    for load in loads {
        let causes: Vec<String> = load.by_cause.iter().map(|(cause, n)| format!("{cause} {n}")).collect();
        out.push_str(&format!(
            "| {} | {} | **{}** | {} | {} |\n",
            code(&load.id),
            load.requests,
            load.disrupted,
            prose(&causes.join(", ")),
            load.down_intervals.len(),
        ));
    }
    out + END
}

fn order(document: &Document) -> String {
    let order = &document.report.order;
    let mut out = folded("order and intervals");
    let word = outcome_word(order.active_zero_before_lb_down);
    out.push_str(&format!(
        "**{word}** `active_zero` before `lb_down`. {}",
        prose(&order.explanation)
    ));
    if order.active_zero_before_lb_down == Outcome::Inconclusive {
        out.push_str(
            &order
                .reason
                .as_ref()
                .map(|reason| format!(" {}", prose(reason)))
                .unwrap_or_default(),
        );
    }
    out.push_str("\n\n| interval | measured | at least | at most |\n|---|---|---|---|\n");
    let shown = |value: Option<f64>, absent: &str| value.map_or_else(|| absent.to_owned(), seconds);
    for (name, interval) in document.intervals.named() {
        out.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            interval_words(name),
            shown(interval.value_s, "not measured"),
            shown(interval.bounds_s.0, "open"),
            shown(interval.bounds_s.1, "open"),
        ));
    }
    out + END
}

const END: &str = "\n</details>\n\n";

fn folded(summary: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n")
}

/// A code span that holds any text, also in a table.
fn code(text: &str) -> String {
    let text = readable(&text.replace(['\n', '\r', '\t'], " "));
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let room = if longest > 0 { " " } else { "" };
    format!("{fence}{room}{}{room}{fence}", text.replace('|', r"\|"))
}

/// A sentence in a table cell: what stands in backticks stays code, everything else is text and nothing but text: no
/// markup, no mention of a person, no link that the evidence brought along.
fn prose(text: &str) -> String {
    let text = readable(&text.replace(['\n', '\r', '\t'], " "));
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return parts.into_iter().map(plain).collect::<Vec<_>>().join(r"\`");
    }
    parts
        .iter()
        .enumerate()
        .map(|(i, part)| if i % 2 == 0 { plain(part) } else { code(part) })
        .collect()
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '[' | ']' | '\\' | '~' | '#' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    // An underscore inside a word is no emphasis; at its edge it would be.
    out.replace(" _", r" \_")
        .replace("_ ", r"\_ ")
        .replace("://", "&#58;//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_cannot_write_markup() {
        assert_eq!(
            prose("`active_zero` by <NOSRV> | @someone"),
            r"`active_zero` by &lt;NOSRV> \| &#64;someone"
        );
        assert_eq!(prose("one ` tick and *stars*"), r"one \` tick and \*stars\*");
        assert_eq!(prose("a\nb [x](http://y)"), r"a b \[x\](http&#58;//y)");
        assert_eq!(code("log(app, /a|`b`/)"), r"`` log(app, /a\|`b`/) ``");
    }
}

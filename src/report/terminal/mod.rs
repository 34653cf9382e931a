//! What a run prints at its end: every assertion with its margin and its sentence, the account of the requests, the few
//! events that decided as a swim-lane, and one last line.

pub(in crate::report) mod ink;
mod swim_lane;

pub use ink::Look;

use ink::{Colour, Sheet};

use super::Document;
use super::next_step::last_line;
use super::wording::{
    SIMULATED, answer, cause_words, count, fate_word, interval_words, kind_words, margin, outcome_word, seconds,
};
use crate::verdict::{Finding, LoadFinding, Outcome, RequestFinding, RunVerdict};

/// The whole report as lines of at most the look's width where words allow it.
pub fn render(document: &Document, look: &Look) -> String {
    let mut sheet = Sheet::new(look);
    title(&mut sheet, document);
    assertions(&mut sheet, document);
    requests(&mut sheet, document);
    loads(&mut sheet, document);
    order(&mut sheet, document);
    intervals(&mut sheet, document);
    swim_lane::draw(&mut sheet, document);
    warnings(&mut sheet, document);
    sheet.blank();
    sheet.line(&format!("evidence and reports: {}", document.folder.display()));
    sheet.paint(run_colour(document.report.verdict), &last_line(document));
    sheet.into_text()
}

fn title(sheet: &mut Sheet, document: &Document) {
    let environment = document
        .report
        .environment
        .as_deref()
        .unwrap_or("environment not known");
    let simulated = if document.report.simulated {
        format!(", {SIMULATED}")
    } else {
        String::new()
    };
    let interrupted = if document.report.interrupted {
        ", interrupted"
    } else {
        ""
    };
    sheet.blank();
    sheet.paint(
        Colour::Bold,
        &format!("{} ({environment}{simulated}{interrupted})", document.title()),
    );
}

fn assertions(sheet: &mut Sheet, document: &Document) {
    if document.report.assertions.is_empty() {
        return;
    }
    sheet.blank();
    let column = if document
        .report
        .assertions
        .iter()
        .any(|f| f.verdict == Outcome::Inconclusive)
    {
        14
    } else {
        6
    };
    for finding in &document.report.assertions {
        assertion(sheet, document, finding, column);
    }
}

fn assertion(sheet: &mut Sheet, document: &Document, finding: &Finding, column: usize) {
    let mut head = finding.assert.clone();
    if let Some(name) = &finding.name {
        head = format!("{name}: {head}");
    }
    if let Some(kind) = kind_words(finding.kind) {
        head = format!("{head} ({kind})");
    }
    if let Some(margin) = margin(finding) {
        head = format!("{head}  {margin}");
    }
    sheet.headed(
        outcome_colour(finding.verdict),
        outcome_word(finding.verdict),
        column,
        &head,
    );
    sheet.indented(column, &finding.explanation);
    if let Some(because) = &finding.because {
        sheet.indented(column, &format!("claimed because: {because}"));
    }
    if !finding.error_budget.is_empty() {
        sheet.faint(column, &format!("error: {}", finding.error_budget.join(", ")));
    }
    undecided(sheet, column, finding.reason.as_deref(), &finding.explanation);
    if finding.verdict != Outcome::Pass
        && let Some(place) = document.place(finding)
    {
        sheet.faint(column, &format!("at {place}"));
    }
}

fn requests(sheet: &mut Sheet, document: &Document) {
    let requests = &document.report.requests;
    if requests.is_empty() {
        return;
    }
    sheet.heading("requests");
    let column = requests.iter().map(|r| r.id.chars().count()).max().unwrap_or(0).min(24) + 2;
    for request in requests {
        let head = format!(
            "{}  {}{}",
            fate_word(request.fate),
            answer(request),
            whose_word(request)
        );
        sheet.headed(super::scene::fate_tone(request.fate).into(), &request.id, column, &head);
        let cause = request
            .cause
            .map(|cause| format!("{}; ", cause_words(cause)))
            .unwrap_or_default();
        sheet.indented(column, &format!("{cause}{}", request.explanation));
        undecided(sheet, column, request.reason.as_deref(), &request.explanation);
        if let Some(by) = &request.target_by {
            sheet.faint(column, &format!("target found by: {by}"));
        }
    }
}

/// The reason, where the sentence before it does not say the same.
fn undecided(sheet: &mut Sheet, column: usize, reason: Option<&str>, explanation: &str) {
    if let Some(reason) = reason.filter(|reason| *reason != explanation) {
        sheet.indented(column, &format!("undecided because: {reason}"));
    }
}

/// Where the client's side comes from, when not from the client.
fn whose_word(request: &RequestFinding) -> String {
    request
        .client_by
        .as_ref()
        .map(|by| format!(" (as {by} tells it)"))
        .unwrap_or_default()
}

fn loads(sheet: &mut Sheet, document: &Document) {
    for load in &document.report.loads {
        sheet.heading(&format!("load {}", load.id));
        load_lines(sheet, load);
    }
}

fn load_lines(sheet: &mut Sheet, load: &LoadFinding) {
    let colour = if load.disrupted > 0 { Colour::Red } else { Colour::Green };
    let mut head = format!("{} disrupted of {}", load.disrupted, count(load.requests, "request"));
    if let Some(rate) = load.rate {
        head.push_str(&format!(", {}", percent(rate)));
    }
    if let Some((least, most)) = load.rate_interval {
        head.push_str(&format!(" (95 %: {} to {})", percent(least), percent(most)));
    }
    sheet.paint_indented(colour, 2, &head);
    let listed = |what: &str, counts: &std::collections::BTreeMap<String, u64>| {
        let parts: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
        (!parts.is_empty()).then(|| format!("{what}: {}", parts.join(", ")))
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend(listed("by outcome", &load.by_outcome));
    lines.extend(listed("by cause", &load.by_cause));
    if load.hidden > 0 {
        lines.push(format!(
            "hidden from the load's own file, found in other sources: {}",
            count(load.hidden, "request")
        ));
    }
    if !load.latency_s.is_empty() {
        let parts: Vec<String> = load
            .latency_s
            .iter()
            .map(|(name, s)| format!("{name} {}", seconds(*s)))
            .collect();
        lines.push(format!("latency: {}", parts.join(", ")));
    }
    for down in &load.down_intervals {
        let length = match (down.from.midpoint(), down.until.midpoint()) {
            (Some(from), Some(until)) => format!("for {}", seconds((until - from).as_secs_f64())),
            _ => "and its end was not seen".to_owned(),
        };
        let killed = down
            .killed
            .map(|n| format!(", {n} in flight killed"))
            .unwrap_or_default();
        lines.push(format!("{} DOWN {length}{killed}", down.server));
    }
    lines.extend(
        load.reason
            .as_ref()
            .map(|reason| format!("undecided because: {reason}")),
    );
    for line in lines {
        sheet.indented(2, &line);
    }
}

fn order(sheet: &mut Sheet, document: &Document) {
    let order = &document.report.order;
    let nothing_ran = matches!(document.report.verdict, Some(RunVerdict::Invalid | RunVerdict::Skipped));
    if nothing_ran && document.events.is_empty() {
        return;
    }
    // An assertion that says the same has already said it.
    if document
        .report
        .assertions
        .iter()
        .any(|f| f.assert.contains("active_zero") && f.assert.contains("lb_down"))
    {
        return;
    }
    sheet.heading("active_zero before lb_down");
    let verdict = order.active_zero_before_lb_down;
    let column = outcome_word(verdict).len() + 4;
    sheet.headed(
        outcome_colour(verdict),
        &format!("  {}", outcome_word(verdict)),
        column,
        &order.explanation,
    );
    undecided(sheet, column, order.reason.as_deref(), &order.explanation);
    if order.by_server.len() > 1 {
        for (server, outcome) in &order.by_server {
            sheet.indented(column, &format!("{server}: {}", outcome_word(*outcome)));
        }
    }
}

fn intervals(sheet: &mut Sheet, document: &Document) {
    let named = document.intervals.named();
    if named
        .iter()
        .all(|(_, interval)| *interval == super::Interval::default())
    {
        return;
    }
    sheet.heading("intervals");
    for (name, interval) in named {
        let value = interval.value_s.map_or_else(|| "not measured".to_owned(), seconds);
        let bounds = match interval.bounds_s {
            (Some(least), Some(most)) => format!("  between {} and {}", seconds(least), seconds(most)),
            (Some(least), None) => format!("  at least {}", seconds(least)),
            (None, Some(most)) => format!("  at most {}", seconds(most)),
            (None, None) => String::new(),
        };
        sheet.line(&format!("  {:<24}{value:>12}{bounds}", interval_words(name)));
    }
}

fn warnings(sheet: &mut Sheet, document: &Document) {
    let cleanup_failed = document
        .report
        .cleanup
        .as_deref()
        .filter(|how| how.starts_with("failed"));
    let lines: Vec<&str> = document.warnings().collect();
    if !lines.is_empty() {
        sheet.heading(if lines.len() == 1 { "warning" } else { "warnings" });
        for warning in lines {
            sheet.headed(Colour::Yellow, "  !", 4, warning);
        }
    }
    if let Some(how) = cleanup_failed {
        sheet.blank();
        sheet.paint(Colour::Red, &format!("cleanup {how}"));
    }
}

/// A rate as a percentage: `0.08 %`.
fn percent(rate: f64) -> String {
    format!("{:.2} %", rate * 100.0)
}

const fn outcome_colour(outcome: Outcome) -> Colour {
    match outcome {
        Outcome::Pass => Colour::Green,
        Outcome::Fail => Colour::Red,
        Outcome::Inconclusive => Colour::Yellow,
    }
}

const fn run_colour(verdict: Option<RunVerdict>) -> Colour {
    match verdict {
        Some(RunVerdict::Pass) => Colour::Green,
        Some(RunVerdict::Fail | RunVerdict::Invalid) => Colour::Red,
        Some(RunVerdict::Inconclusive | RunVerdict::Skipped) => Colour::Yellow,
        None => Colour::Bold,
    }
}

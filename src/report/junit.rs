//! JUnit for CI: a suite a scenario, a case an assertion. Inconclusive is an error and never green, unless the run was
//! told to let it pass: then it is skipped, with its reason.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::Document;
use super::wording::{SIMULATED, SIMULATED_MEANS, margin, outcome_word, run_word};
use crate::verdict::{Finding, Outcome, RunVerdict};

/// The file for one run or several.
pub(super) fn render(documents: &[Document]) -> String {
    let mut file = Report::new("gtrun");
    file.add_test_suites(documents.iter().map(suite));
    // Writing XML into memory fails on a name that is no name; every name here is text.
    file.to_string()
        .unwrap_or_else(|error| format!("<!-- gtrun could not write this file: {error} -->\n"))
}

fn suite(document: &Document) -> TestSuite {
    let report = &document.report;
    let simulated = if report.simulated {
        format!(" ({SIMULATED})")
    } else {
        String::new()
    };
    let title = document.title();
    let mut suite = TestSuite::new(format!("{title}{simulated}"));
    let environment = report.environment.as_deref().unwrap_or("not known");
    suite.add_property(Property::new("environment", environment));
    suite.add_property(Property::new("simulated", report.simulated.to_string()));
    suite.add_property(Property::new("verdict", run_word(report.verdict)));
    suite.add_property(Property::new("exit", report.exit.to_string()));
    let mut cases: Vec<TestCase> = report
        .assertions
        .iter()
        .map(|finding| case(document, finding))
        .collect();
    if let Some(status) = whole_run(document, cases.is_empty()) {
        cases.push(TestCase::new("run", status));
    }
    if let Some(how) = report.cleanup.as_deref().filter(|how| how.starts_with("failed")) {
        cases.push(TestCase::new(
            "cleanup",
            trouble(NonSuccessKind::Error, "cleanup", &format!("cleanup {how}")),
        ));
    }
    for mut case in cases {
        case.set_classname(title.clone());
        suite.add_test_case(case);
    }
    let mut said = Vec::new();
    if report.simulated {
        said.push(format!("{SIMULATED}: {SIMULATED_MEANS}"));
    }
    said.push(report.summary.clone());
    said.extend(document.warnings().map(|warning| format!("warning: {warning}")));
    suite.set_system_out(said.join("\n"));
    suite
}

/// One assertion, or a step that is a claim.
fn case(document: &Document, finding: &Finding) -> TestCase {
    let name = finding
        .name
        .as_ref()
        .map_or_else(|| finding.assert.clone(), |name| format!("{name}: {}", finding.assert));
    let reason = finding.reason.as_deref().unwrap_or("the evidence cannot decide");
    let status = match finding.verdict {
        Outcome::Pass => TestCaseStatus::success(),
        Outcome::Fail => trouble(NonSuccessKind::Failure, "assertion", &finding.explanation),
        Outcome::Inconclusive if document.report.exit == 0 => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("inconclusive: {reason}"));
            status
        }
        Outcome::Inconclusive => trouble(NonSuccessKind::Error, "inconclusive", reason),
    };
    let mut said = vec![outcome_word(finding.verdict).to_owned(), finding.explanation.clone()];
    if document.report.simulated {
        said.insert(0, SIMULATED.to_owned());
    }
    said.extend(margin(finding));
    said.extend(finding.error_budget.iter().map(|part| format!("error: {part}")));
    said.extend(
        finding
            .events
            .iter()
            .map(|event| format!("{} {} ({})", event.event, event.at, event.source)),
    );
    let mut case = TestCase::new(name, status);
    case.set_system_out(said.join("\n"));
    case
}

/// What happened to the run as such, where the assertions do not say it already.
fn whole_run(document: &Document, nothing_else: bool) -> Option<TestCaseStatus> {
    let report = &document.report;
    let summary = report.summary.as_str();
    match report.verdict {
        Some(RunVerdict::Skipped) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(summary.to_owned());
            Some(status)
        }
        Some(RunVerdict::Invalid) => Some(trouble(NonSuccessKind::Error, "nothing proved", summary)),
        _ if report.interrupted => Some(trouble(NonSuccessKind::Error, "interrupted", summary)),
        // A simulated pass where a real one was required, a failed cleanup.
        Some(RunVerdict::Pass) if report.exit != 0 => Some(trouble(NonSuccessKind::Error, "nothing proved", summary)),
        None if nothing_else && report.exit != 0 => Some(trouble(NonSuccessKind::Error, "nothing read", summary)),
        None if nothing_else => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("the folder holds no scenario: nothing was claimed");
            Some(status)
        }
        Some(RunVerdict::Pass | RunVerdict::Fail | RunVerdict::Inconclusive) | None => None,
    }
}

fn trouble(kind: NonSuccessKind, what: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(what.to_owned());
    status.set_message(message.to_owned());
    status
}

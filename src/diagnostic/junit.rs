//! Diagnostics as JUnit: one test case a file.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Diagnostic, Severity, SourceMap, Style, render_human};

/// A report with one suite: files with errors fail, warnings stand in the case's output.
///
/// # Errors
/// When a text cannot be written as XML.
pub fn junit<'a>(
    found: impl IntoIterator<Item = (&'a str, &'a [Diagnostic], &'a SourceMap)>,
) -> Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new("gtrun validate");
    for (file, diagnostics, sources) in found {
        let (errors, others): (Vec<Diagnostic>, Vec<Diagnostic>) =
            diagnostics.iter().cloned().partition(|d| d.severity == Severity::Error);
        let status = match errors.as_slice() {
            [] => TestCaseStatus::success(),
            [first, rest @ ..] => {
                let more = if rest.is_empty() {
                    String::new()
                } else {
                    format!(" (and {} more)", rest.len())
                };
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(first.code.to_string());
                status.set_message(format!("{}{more}", first.message));
                status.set_description(render_human(&errors, sources, Style::PLAIN));
                status
            }
        };
        let mut case = TestCase::new(file, status);
        case.set_classname("gtrun.validate");
        if !others.is_empty() {
            case.set_system_out(render_human(&others, sources, Style::PLAIN));
        }
        suite.add_test_case(case);
    }
    let mut report = Report::new("gtrun validate");
    report.add_test_suite(suite);
    report.to_string()
}

use super::Document;
use super::wording::{SIMULATED, SIMULATED_MEANS, run_word};
use crate::verdict::RunVerdict;

/// The line that ends the report: SIMULATED where it is, the verdict, what happened, and for every exit other than 0
/// the next command to try.
pub fn last_line(document: &Document) -> String {
    let report = &document.report;
    let mut line = String::new();
    if report.simulated {
        line.push_str(SIMULATED);
        line.push(' ');
    }
    line.push_str(run_word(report.verdict));
    if report.exit != 0 {
        line.push_str(&format!(" (exit {})", report.exit));
    }
    let summary = report.summary.trim().trim_end_matches('.');
    if !summary.is_empty() {
        line.push_str(&format!(": {summary}"));
    }
    if let Some(command) = next_command(document) {
        line.push_str(&format!("; next: {command}"));
    } else if report.simulated {
        line.push_str(&format!(" ({SIMULATED_MEANS})"));
    }
    line
}

/// The next command to try after an exit other than 0.
pub fn next_command(document: &Document) -> Option<String> {
    let report = &document.report;
    if report.exit == 0 {
        return None;
    }
    let folder = shell_word(&document.folder.display().to_string());
    if report.cleanup.as_deref().is_some_and(|how| how.starts_with("failed")) {
        return Some(format!("gtrun cleanup {folder}"));
    }
    if report.interrupted {
        return Some(format!("gtrun collect {folder}"));
    }
    let scenario = shell_word(&document.folder.join("scenario.yaml").display().to_string());
    Some(match report.verdict {
        // Passed and yet not 0: a simulated run where a real one was required.
        Some(RunVerdict::Pass) => {
            "the same command with --env lab, or with the name of a cluster's environment".to_owned()
        }
        Some(RunVerdict::Fail | RunVerdict::Inconclusive) => format!("gtrun serve {folder}"),
        // Is it the scenario, or the place where it ran?
        Some(RunVerdict::Invalid | RunVerdict::Skipped) if report.simulated => format!("gtrun validate {scenario}"),
        Some(RunVerdict::Invalid | RunVerdict::Skipped) => format!("gtrun run {scenario} --env sim"),
        None => "gtrun collect DIR, with a folder that holds for example haproxy.log, envoy.log or curl.out".to_owned(),
    })
}

/// A path so that a POSIX shell reads it as one word.
fn shell_word(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&b);
    if !path.is_empty() && path.bytes().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        assert_eq!(
            shell_word("artifacts/20260101-000000/s2"),
            "artifacts/20260101-000000/s2"
        );
        assert_eq!(shell_word("my runs/it's"), r"'my runs/it'\''s'");
    }
}

//! Several runs: which may go side by side, what they come to together, and the controls that must fail.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::RunResult;
use crate::cli::exit::Exit;
use crate::language::plan::{Plan, PlannedRun};
use crate::verdict::RunVerdict;

/// A step of it acts on the cluster or a host.
pub(super) fn acts(plan: &Plan) -> bool {
    plan.all_steps().iter().any(|s| s.verb.acts()) || !plan.ensure.is_empty()
}

/// Runs side by side share a world: at most one of them may act on it.
pub(super) fn may_run_together(runs: &[PlannedRun]) -> Result<(), String> {
    let acting: Vec<&str> = runs
        .iter()
        .filter(|r| acts(&r.plan))
        .map(|r| r.plan.name.as_str())
        .collect();
    if acting.len() > 1 {
        return Err(format!(
            "with --parallel at most one scenario may act on the cluster; {} do: leave --parallel out",
            acting.join(", ")
        ));
    }
    let mut environments: Vec<&str> = runs.iter().map(|r| r.plan.environment.name.as_str()).collect();
    environments.dedup();
    if environments.len() > 1 {
        return Err(format!(
            "with --parallel all scenarios run in one environment, not in {}",
            environments.join(", ")
        ));
    }
    Ok(())
}

/// Results as they come in.
#[derive(Default)]
pub(super) struct Tally {
    runs: Vec<Counted>,
}

struct Counted {
    name: String,
    folder: Option<PathBuf>,
    exit: Exit,
    line: String,
}

impl Tally {
    /// One more run. A control counts turned round: it must fail, by an assertion.
    pub(super) fn add(&mut self, suite: &str, run: &PlannedRun, result: RunResult) {
        let mut name = suite.to_owned();
        if !run.path.is_empty() {
            name.push('/');
            name.push_str(&run.path);
        }
        let (exit, line) = match &run.control {
            None => (result.exit, result.line),
            Some(control) => control_result(control.as_str(), &result),
        };
        self.runs.push(Counted {
            name,
            folder: result.folder,
            exit,
            line,
        });
    }

    /// Folders of the runs.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.runs.iter().filter_map(|r| r.folder.as_deref())
    }

    /// The exit of all of them: a failure is never hidden by something that proved nothing.
    pub(super) fn exit(&self) -> Exit {
        self.runs
            .iter()
            .map(|r| r.exit)
            .reduce(Exit::worst)
            .unwrap_or(Exit::NothingProved)
    }

    /// A line a run and one for all, when there are several.
    pub(super) fn summary(&self) -> Option<String> {
        if self.runs.len() < 2 {
            return None;
        }
        let mut out = String::from("\n");
        for run in &self.runs {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}: {}", run.name, run.line);
        }
        let passed = self.runs.iter().filter(|r| r.exit == Exit::Success).count();
        let exit = self.exit();
        let _ = write!(out, "{passed} of {} runs passed", self.runs.len());
        if exit != Exit::Success {
            let worst = self.runs.iter().find(|r| r.exit == exit);
            let _ = write!(out, " (exit {})", exit.code());
            if let Some(folder) = worst.and_then(|r| r.folder.as_ref()) {
                let _ = write!(out, "; next: gtrun report {}", folder.display());
            }
        }
        out.push('\n');
        Some(out)
    }
}

/// A control has failed when an assertion failed; a run that proved nothing does not count.
fn control_result(control: &str, result: &RunResult) -> (Exit, String) {
    match result.verdict {
        Some(RunVerdict::Fail) => (Exit::Success, format!("control {control} failed, as it must")),
        Some(RunVerdict::Pass) => (
            Exit::Failed,
            format!("control {control} passed: the assertions cannot tell a bad drain from a good one"),
        ),
        Some(RunVerdict::Inconclusive | RunVerdict::Invalid | RunVerdict::Skipped) | None => (
            Exit::Inconclusive,
            format!("control {control} proved nothing: {}", result.line),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(verdict: Option<RunVerdict>, exit: Exit) -> RunResult {
        RunResult {
            folder: None,
            exit,
            verdict,
            line: String::new(),
        }
    }

    #[test]
    fn only_a_failed_assertion_makes_a_control_good() {
        let exit = |verdict| control_result("no_drain", &result(verdict, Exit::NothingProved)).0;
        assert_eq!(exit(Some(RunVerdict::Fail)), Exit::Success);
        assert_eq!(exit(Some(RunVerdict::Pass)), Exit::Failed);
        assert_eq!(exit(Some(RunVerdict::Inconclusive)), Exit::Inconclusive);
        assert_eq!(exit(Some(RunVerdict::Invalid)), Exit::Inconclusive);
        assert_eq!(exit(None), Exit::Inconclusive);
    }
}

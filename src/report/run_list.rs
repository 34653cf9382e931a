use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::terminal::Look;
use super::terminal::ink::{Colour, Sheet};
use super::wording::{SIMULATED, run_word};
use crate::verdict::Report;

/// One run below a folder of artifacts.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEntry {
    /// The run's folder.
    pub folder: PathBuf,
    /// The same from the artifacts folder on: `20260101-000000/s2-improved/mode=current/1`.
    pub name: String,
    /// Its verdict; `None` when nothing has judged it, or its `verdict.json` cannot be read.
    pub report: Option<Report>,
}

/// Files that show that a folder is one of a run, judged or not, also of the old scripts.
const SIGNS: [&str; 5] = [
    "verdict.json",
    "plan.json",
    "journal.jsonl",
    "run.log",
    "timeline.jsonl",
];

/// A run's folder is `<stamp>/<scenario>/<key=value,...>/<phase>/<n>` at the deepest.
const DEPTH: usize = 6;

/// All runs below a folder, the newest first. Links are not followed; what cannot be read is not there.
pub fn find_runs(artifacts: &Path) -> Vec<RunEntry> {
    let mut found = Vec::new();
    let mut folders = vec![(artifacts.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if SIGNS.iter().any(|name| folder.join(name).is_file()) {
            found.push(entry(artifacts, folder.clone()));
        }
        if depth == DEPTH {
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| (entry.path(), depth + 1)));
    }
    found.sort_by(|a, b| newest_first(&a.name, &b.name));
    found
}

/// By the stamp, which sorts as text, the newest first; inside one stamp by name.
fn newest_first(a: &str, b: &str) -> std::cmp::Ordering {
    let split = |name: &str| {
        name.split_once('/')
            .map(|(s, r)| (s.to_owned(), r.to_owned()))
            .unwrap_or((name.to_owned(), String::new()))
    };
    let ((stamp_a, rest_a), (stamp_b, rest_b)) = (split(a), split(b));
    stamp_b.cmp(&stamp_a).then_with(|| rest_a.cmp(&rest_b))
}

fn entry(artifacts: &Path, folder: PathBuf) -> RunEntry {
    let name = folder
        .strip_prefix(artifacts)
        .unwrap_or(&folder)
        .to_string_lossy()
        .replace('\\', "/");
    let report = fs::read_to_string(folder.join("verdict.json"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok());
    RunEntry {
        name: if name.is_empty() { ".".to_owned() } else { name },
        folder,
        report,
    }
}

/// One line a run, for a person.
pub fn render_list(runs: &[RunEntry], look: &Look) -> String {
    let mut sheet = Sheet::new(look);
    let column = runs
        .iter()
        .map(|run| run.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(60)
        + 2;
    for run in runs {
        let rest = match &run.report {
            Some(report) => {
                let environment = report.environment.as_deref().unwrap_or("?");
                let simulated = if report.simulated {
                    format!(" {SIMULATED}")
                } else {
                    String::new()
                };
                format!(
                    "{:<13}{environment}{simulated}  {}",
                    run_word(report.verdict),
                    report.summary
                )
            }
            None => "not judged: gtrun collect".to_owned(),
        };
        sheet.headed(Colour::Bold, &run.name, column, &rest);
    }
    sheet.into_text()
}

/// The same for a program: an array, the newest first.
pub fn render_list_json(runs: &[RunEntry]) -> String {
    let rows: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "folder": run.folder.display().to_string(),
                "name": run.name,
                "judged": run.report.is_some(),
                "scenario": run.report.as_ref().and_then(|r| r.scenario.clone()),
                "verdict": run.report.as_ref().and_then(|r| r.verdict),
                "exit": run.report.as_ref().map(|r| r.exit),
                "environment": run.report.as_ref().and_then(|r| r.environment.clone()),
                "simulated": run.report.as_ref().map(|r| r.simulated),
                "summary": run.report.as_ref().map(|r| r.summary.clone()),
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_newest_first_and_the_unjudged_are_said() {
        let root = tempfile::tempdir().expect("a folder");
        for (folder, file) in [
            ("20260101-000000/s2", "verdict.json"),
            ("20260102-000000/s1/mode=current/1", "run.log"),
            ("20260102-000000/empty", "notes.txt"),
        ] {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(file), "{}").expect("a file");
        }
        let runs = find_runs(root.path());
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["20260102-000000/s1/mode=current/1", "20260101-000000/s2"]);
        assert!(runs.iter().all(|run| run.report.is_none()));
        assert_eq!(
            render_list(&runs[..1], &Look::plain(100)),
            "20260102-000000/s1/mode=current/1  not judged: gtrun collect\n"
        );
        assert!(find_runs(&root.path().join("absent")).is_empty());
    }
}

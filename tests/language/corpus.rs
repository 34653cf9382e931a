//! `tests/corpus`: files that are right, and files that are wrong with the whole standard error beside each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use gtrun::diagnostic::Code;

use crate::{expect_file, repository, yaml_files};

/// Runs `gtrun validate` on a file, from the repository's root, as an author does.
fn validate(file: &Path) -> (Option<i32>, String) {
    let root = repository("");
    let relative = file.strip_prefix(&root).expect("the file is in the repository");
    let output = Command::cargo_bin("gtrun")
        .expect("the binary is built")
        .current_dir(&root)
        .env_clear()
        .arg("validate")
        .arg(relative)
        .output();
    let output = output.expect("the command runs");
    (
        output.status.code(),
        String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    )
}

/// Checks files two at a time: each is a process of its own.
fn validate_all(files: &[PathBuf]) -> Vec<(&PathBuf, Option<i32>, String)> {
    let half = files.len().div_ceil(2).max(1);
    let check = |files: &'_ [PathBuf]| files.iter().map(|file| validate(file)).collect::<Vec<_>>();
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .chunks(half)
            .map(|part| scope.spawn(move || check(part)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no check panics"))
            .collect::<Vec<_>>()
    });
    files
        .iter()
        .zip(results)
        .map(|(file, (code, stderr))| (file, code, stderr))
        .collect()
}

#[test]
fn right_files_are_accepted_without_a_word() {
    let folders = [
        "tests/corpus/ok",
        "tests/corpus/ok/common",
        "tests/corpus/ok/environments",
        "scenarios",
        "scenarios/environments",
        "examples",
        "examples/common",
    ];
    let files: Vec<_> = folders.iter().flat_map(|folder| yaml_files(folder)).collect();
    assert!(files.len() > 30, "only {} files found", files.len());
    let trouble: Vec<String> = validate_all(&files)
        .into_iter()
        .filter(|(_, code, stderr)| *code != Some(0) || !stderr.is_empty())
        .map(|(file, code, stderr)| format!("{}: exit {code:?}\n{stderr}", file.display()))
        .collect();
    assert!(trouble.is_empty(), "{}", trouble.join("\n"));
}

#[test]
fn wrong_files_are_explained() {
    let files = yaml_files("tests/corpus/invalid");
    assert!(files.len() >= 80, "only {} files found", files.len());
    let mut trouble = Vec::new();
    for (file, code, stderr) in validate_all(&files) {
        // Warnings alone are no error: the files that show them are named so.
        let warning = file
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("warn-"));
        let expected = if warning { Some(0) } else { Some(65) };
        if code != expected {
            trouble.push(format!("{}: exit {code:?}, not {expected:?}\n{stderr}", file.display()));
        }
        trouble.extend(expect_file(&file.with_extension("stderr"), &stderr).err());
    }
    assert!(trouble.is_empty(), "{}", trouble.join("\n"));
}

/// Codes that no file can give by `gtrun validate`: they come from the command line or from a run.
const ELSEWHERE: [Code; 5] = [
    Code::Unreadable,
    Code::SetValue,
    Code::MissingEnv,
    Code::AssertionFailed,
    Code::AssertionInconclusive,
];

#[test]
fn every_code_has_a_case() {
    let mut seen: BTreeSet<&Code> = BTreeSet::new();
    for file in yaml_files("tests/corpus/invalid") {
        let text = std::fs::read_to_string(file.with_extension("stderr")).expect("every case has its expected text");
        seen.extend(Code::ALL.iter().filter(|code| text.contains(&format!("{code}:"))));
    }
    let missing: Vec<String> = Code::ALL
        .iter()
        .filter(|code| !seen.contains(code) && !ELSEWHERE.contains(code))
        .map(Code::to_string)
        .collect();
    assert!(missing.is_empty(), "no case for {}", missing.join(", "));
}

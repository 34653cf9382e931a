//! `action.yml` and the hook: right by GitHub's schema, and their commands do what they promise.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::repository;

fn yaml(path: &str) -> Value {
    let text = std::fs::read_to_string(repository(path)).expect("the file is there");
    serde_saphyr::from_str(&text).expect("it is YAML")
}

#[test]
fn the_action_is_one() {
    let schema: Value = serde_json::from_str(include_str!("github-action.schema.json")).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<String> = validator
        .iter_errors(&yaml("action.yml"))
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// The second step's script, with the binary of this build where the first step would have put it.
#[test]
fn the_command_of_the_action_annotates() {
    let action = yaml("action.yml");
    let script = action["runs"]["steps"][1]["run"]
        .as_str()
        .expect("the second step has a script");
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("gtrun/bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("gtrun"), bin.join("gtrun")).expect("a link");
    let sarif = folder.path().join("out.sarif");
    let run = |paths: &str, sarif: &Path| {
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script])
            .current_dir(repository(""))
            .env("RUNNER_TEMP", folder.path())
            .env("PATHS", paths)
            .env("CHANGED_SINCE", "")
            .env("ENVIRONMENT", "")
            .env("SARIF", sarif)
            .output()
            .expect("bash runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, text) = run("scenarios tests/corpus/invalid/0101-misspelt-verb.yaml", &sarif);
    assert_eq!(code, Some(65), "{text}");
    assert!(
        text.starts_with("::error file=tests/corpus/invalid/0101-misspelt-verb.yaml,line=5,"),
        "{text}"
    );
    assert!(
        std::fs::read_to_string(&sarif)
            .expect("SARIF is written")
            .contains("\"GT0101\"")
    );
    assert_eq!(run("scenarios", Path::new("")), (Some(0), String::new()));
    // A path is a word and no script.
    assert_eq!(run("scenarios; touch x", Path::new("")).0, Some(65));
}

#[test]
fn the_hook_names_the_command() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    assert_eq!(
        (&hooks[0]["id"], &hooks[0]["entry"]),
        (&"gtrun-validate".into(), &"gtrun validate".into())
    );
}

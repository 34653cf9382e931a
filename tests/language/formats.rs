//! What other programs get: annotations, SARIF, JUnit, JSON, and only the files that a change touches.

use std::path::Path;
use std::process::Command as Process;

use assert_cmd::Command;
use serde_json::Value;

use crate::repository;

const BROKEN: &str = "tests/corpus/invalid/0201-duplicate-id.yaml";

/// Standard output of `gtrun validate` in this folder.
fn output(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::cargo_bin("gtrun")
        .expect("the binary is built")
        .current_dir(folder)
        .env_remove("GTRUN_ENV")
        .arg("validate")
        .args(arguments)
        .output();
    let output = output.expect("the command runs");
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("standard output is UTF-8"),
    )
}

#[test]
fn github_gets_annotations() {
    let (code, text) = output(&repository(""), &["--format", "github", BROKEN]);
    let expected = "::error file=tests/corpus/invalid/0201-duplicate-id.yaml,line=6,endLine=6,col=9,endColumn=12,title=GT0201 the same id twice::two steps are called `load`%0Ahelp: ids are unique in the whole file, `parallel` and `finally` included\n::error file=tests/corpus/invalid/0201-duplicate-id.yaml,line=10,endLine=10,col=17,endColumn=20,title=GT0201 the same id twice::two steps are called `load`%0Ahelp: ids are unique in the whole file, `parallel` and `finally` included\n";
    assert_eq!((code, text.as_str()), (Some(65), expected));
}

#[test]
fn json_gets_every_place() {
    let (code, text) = output(&repository(""), &["--format", "json", BROKEN]);
    let value: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        (code, &value["files"], &value["errors"], &value["warnings"]),
        (Some(65), &1.into(), &2.into(), &0.into())
    );
    let first = &value["diagnostics"][0];
    assert_eq!(
        (&first["code"], &first["severity"]),
        (&"GT0201".into(), &"error".into())
    );
    let place = |index: usize| {
        [
            &first["places"][index]["line"],
            &first["places"][index]["column"],
            &first["places"][index]["end_column"],
        ]
        .map(Value::as_u64)
    };
    assert_eq!(
        (place(0), place(1)),
        ([Some(6), Some(9), Some(13)], [Some(4), Some(9), Some(13)])
    );
}

#[test]
fn sarif_names_rules_and_places() {
    let (code, text) = output(
        &repository(""),
        &[
            "--format",
            "sarif",
            BROKEN,
            "tests/corpus/invalid/warn-0606-unused-variable.yaml",
        ],
    );
    assert_eq!(code, Some(65));
    let value: Value = serde_json::from_str(&text).expect("it is JSON");
    // The standard's own schema (OASIS). Two of its patterns hold a stray `]`, which not every engine takes for itself.
    let text_of_schema = include_str!("sarif-2.1.0.schema.json").replace("-[a-zA-Z]{2}]?$", "-[a-zA-Z]{2}?$");
    let schema: Value = serde_json::from_str(&text_of_schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let results = value["runs"][0]["results"].as_array().expect("there are results");
    let levels: Vec<&str> = results.iter().filter_map(|result| result["level"].as_str()).collect();
    assert_eq!(levels, ["error", "error", "warning"]);
    let rules = value["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .expect("there are rules");
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("it has an index")).expect("it is small");
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 6);
    assert_eq!(
        results[0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"],
        4
    );
}

#[test]
fn junit_has_a_case_for_each_file() {
    let (code, text) = output(&repository(""), &["--format", "junit", BROKEN, "scenarios/s2.yaml"]);
    assert_eq!(code, Some(65));
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gtrun validate\" tests=\"2\" skipped=\"0\" failures=\"1\" errors=\"0\">"), "{text}");
    assert!(
        text.contains("<testcase name=\"scenarios/s2.yaml\" classname=\"gtrun.validate\"/>"),
        "{text}"
    );
    assert!(
        text.contains("<failure message=\"two steps are called `load` (and 1 more)\" type=\"GT0201\">"),
        "{text}"
    );
}

#[test]
fn folders_are_searched_and_manifests_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("a/s.yaml", include_str!("../../scenarios/s4-watch.yaml"));
    write(
        "a/common/part.yml",
        "gtrun: 1\nprobes: { active: { envoy_active: { every: 50ms } } }\n",
    );
    write("a/deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\n");
    write(".hidden/s.yaml", "broken");
    write("target/s.yaml", "broken");
    assert_eq!(output(folder.path(), &["."]), (Some(0), "2 files right\n".to_owned()));
    write("a/environments/x.yaml", "gtrun: 1\nkind: cluster\n");
    assert_eq!(output(folder.path(), &["."]).0, Some(65));
    assert_eq!(
        output(folder.path(), &["a/deployment.yaml"]).0,
        Some(65),
        "a manifest that is named is wrong"
    );
    assert_eq!(output(folder.path(), &["nothing"]).0, Some(65));
    assert_eq!(output(folder.path(), &[]).0, Some(64));
}

#[test]
fn only_what_a_change_touches_is_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let git = |arguments: &[&str]| {
        let done = Process::new("git")
            .current_dir(folder.path())
            .args([
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@example.test",
                "-c",
                "commit.gpgsign=false",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(arguments)
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    let scenario = |name: &str| {
        format!(
            "gtrun: 1\nname: {name}\ninclude: [common/probes.yaml]\nsteps: [{{ wait: 1s }}]\nassertions: [never(lb_down)]\n"
        )
    };
    write("s/old-and-broken.yaml", "gtrun: 1\nname: x\nsteps: [{ wait: 5 }]\n");
    write("s/a.yaml", &scenario("a"));
    write(
        "s/common/probes.yaml",
        "gtrun: 1\nprobes: { active: { envoy_active: { every: 50ms } } }\n",
    );
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    let check = || output(folder.path(), &["s", "--format", "json", "--changed-since", "HEAD"]);
    let counts = |(code, text): (Option<i32>, String)| {
        let value: Value = serde_json::from_str(&text).expect("it is JSON");
        (code, value["files"].as_u64(), value["errors"].as_u64())
    };
    assert_eq!(counts(check()), (Some(0), Some(0), Some(0)), "nothing has changed");
    write("s/new.yaml", &scenario("b").replace("1s", "1"));
    assert_eq!(
        counts(check()),
        (Some(65), Some(1), Some(1)),
        "a file that git does not know yet"
    );
    std::fs::remove_file(folder.path().join("s/new.yaml")).expect("it is there");
    write(
        "s/common/probes.yaml",
        "gtrun: 1\nprobes: { active: { envoy_active: { every: 50 } } }\n",
    );
    assert_eq!(
        counts(check()),
        (Some(65), Some(2), Some(2)),
        "the part, and the scenario that includes it"
    );
    assert_eq!(
        output(folder.path(), &["s", "--changed-since", "no-such-commit"]).0,
        Some(64)
    );
    assert_eq!(
        output(folder.path(), &["s", "--changed-since", "--output=/tmp/x"]).0,
        Some(64)
    );
}

//! `gtrun report`, `list`, `diff` and `serve` as processes, on the recorded results in `tests/report`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin_cmd;

/// A command in the package's root, its environment as a pipe has it.
fn gtrun(arguments: &[&str]) -> (i32, String, String) {
    let mut command = cargo_bin_cmd!("gtrun");
    command.args(arguments).env_remove("NO_COLOR").env("COLUMNS", "100");
    let out = command.output().expect("the binary");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        out.status.code().expect("an exit code"),
        text(&out.stdout),
        text(&out.stderr),
    )
}

#[test]
fn a_report_is_printed_in_every_format() {
    for (format, begins) in [
        ("html", "<!doctype html>"),
        ("md", "## FAIL: s1-baseline-long-request"),
        ("junit", "<?xml"),
        ("json", "{"),
        ("perfetto", "{"),
    ] {
        let (exit, out, err) = gtrun(&["report", "tests/report/failed-real", "--format", format]);
        assert_eq!((exit, err.as_str()), (0, ""), "{format}");
        assert!(out.starts_with(begins) && out.ends_with('\n'), "{format}: {out:.80}");
    }
    let (exit, out, _) = gtrun(&["report", "tests/report/failed-real"]);
    assert_eq!(exit, 0);
    assert!(!out.contains('\x1b'), "colours in a pipe");
    assert!(
        out.lines()
            .last()
            .expect("a line")
            .contains("; next: gtrun cleanup tests/report/failed-real")
    );
}

#[test]
fn what_cannot_be_reported_is_said_with_the_next_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let (exit, out, err) = gtrun(&["report", path]);
    assert_eq!((exit, out.as_str()), (1, ""));
    assert!(err.contains("gtrun collect"), "{err}");
    let (exit, _, err) = gtrun(&["report", "--artifacts", path]);
    assert_eq!(exit, 1);
    assert!(err.contains("next: gtrun run SCENARIO"), "{err}");
    let (exit, _, err) = gtrun(&["diff", path, "tests/report/failed-real"]);
    assert_eq!(exit, 1);
    assert!(err.contains("gtrun collect"), "{err}");
    let (exit, _, err) = gtrun(&["list", "--artifacts", "tests/report/absent"]);
    assert_eq!(exit, 1);
    assert!(err.contains("next: gtrun list --artifacts DIR"), "{err}");
    let (exit, ..) = gtrun(&["report", path, "--format", "pdf"]);
    assert_eq!(exit, 64);
}

#[test]
fn runs_are_listed() {
    let (exit, out, _) = gtrun(&["list", "--artifacts", "tests/report"]);
    assert_eq!(exit, 0);
    let passed = out
        .lines()
        .find(|line| line.starts_with("passed-simulated"))
        .expect("the run");
    assert!(passed.contains("PASS") && passed.contains("SIMULATED"), "{passed}");
    let (_, out, _) = gtrun(&["list", "--artifacts", "tests/report", "--format", "json", "-n", "2"]);
    let rows: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
}

#[test]
fn the_documents_name_no_command_that_there_is_not() {
    let (_, help, _) = gtrun(&["--help"]);
    let listed = help
        .split("Commands:")
        .nth(1)
        .expect("commands")
        .lines()
        .filter_map(|line| line.strip_prefix("  "));
    let known: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    let mut files = vec![std::path::PathBuf::from("README.md")];
    for folder in ["docs", "docs/decisions"] {
        files.extend(
            std::fs::read_dir(folder)
                .expect("a folder")
                .flatten()
                .map(|entry| entry.path()),
        );
    }
    let mut seen = 0;
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(file).expect("a document");
        // Fenced blocks line by line, and code spans outside of them.
        let blocks = text.split("```").enumerate();
        let code = blocks.flat_map(|(i, block)| match i % 2 {
            1 => block.lines().collect::<Vec<_>>(),
            _ => block.split('`').skip(1).step_by(2).collect(),
        });
        for word in code.filter_map(|line| line.strip_prefix("gtrun ")?.split_whitespace().next()) {
            seen += 1;
            // `gtrun scenarios/s2.yaml` is `gtrun run scenarios/s2.yaml`; capitals stand for anything.
            let file_or_option =
                word.starts_with("scenarios") || word.starts_with('-') || word.starts_with(char::is_uppercase);
            assert!(
                known.contains(&word) || file_or_option,
                "{}: gtrun {word}",
                file.display()
            );
        }
    }
    assert!(
        seen > 10,
        "only {seen} commands found: this test looks in the wrong place"
    );
}

#[cfg(unix)]
#[test]
fn reports_are_served_on_loopback_until_sigterm() {
    let mut server = Command::new(assert_cmd::cargo::cargo_bin!("gtrun"))
        .args(["serve", "tests/report"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut first = String::new();
    BufReader::new(server.stdout.take().expect("its output"))
        .read_line(&mut first)
        .expect("a line");
    let address = first.split('/').nth(2).expect("an address").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{first}");
    let get = |path: &str, host: &str| {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert!(get("/", &address).contains("href=\"passed-simulated/\""));
    let page = get("/passed-simulated/", &address);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("SIMULATED") && page.contains("content-security-policy"));
    assert!(get("/passed-simulated/hc.log", &address).contains("text/plain"));
    assert!(get("/../../Cargo.toml", &address).starts_with("HTTP/1.1 404"));
    assert!(get("/", "elsewhere.example").starts_with("HTTP/1.1 403"));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(server.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("a signal");
    assert_eq!(server.wait().expect("its end").code(), Some(0));
}

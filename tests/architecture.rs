//! Holds the source to docs/architecture.md: who may use whom, what the pure rooms must not know, how long a file may be.
//!
//! Paths are read from the tokens of each file (comments and string literals blanked), so that `use crate::x`,
//! `use crate::{x, y}`, an inline `crate::x::f()` and a `super::super::x` are all seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file longer than this, its tests not counted, has more than one noun in it.
const MAX_LINES: usize = 600;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "helpers", "helper", "common", "misc"];

/// A room of `src/` and the rooms that it may use.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    /// No clock, no network, no runtime: the same input gives the same bytes.
    pure: bool,
}

/// The flow: language -> run (over a world) -> evidence -> timeline -> verdict -> report. A room uses rooms above it;
/// `diagnostic` and `time` are for everyone. Two exceptions: `run` and the worlds use the record types and readers of
/// `evidence` (to write the files that those read, and for live conditions), and `selfcheck` stands over everything.
const ROOMS: [Room; 11] = [
    Room {
        name: "time",
        may_use: &[],
        pure: true,
    },
    Room {
        name: "diagnostic",
        may_use: &["time"],
        pure: true,
    },
    Room {
        name: "language",
        may_use: &["diagnostic", "time"],
        pure: true,
    },
    Room {
        name: "world",
        may_use: &["diagnostic", "time", "language", "evidence"],
        pure: false,
    },
    Room {
        name: "run",
        may_use: &["diagnostic", "time", "language", "world", "evidence"],
        pure: false,
    },
    Room {
        name: "evidence",
        may_use: &["diagnostic", "time", "language"],
        pure: true,
    },
    Room {
        name: "timeline",
        may_use: &["diagnostic", "time", "language", "evidence"],
        pure: true,
    },
    Room {
        name: "verdict",
        may_use: &["diagnostic", "time", "language", "evidence", "timeline"],
        pure: true,
    },
    Room {
        name: "report",
        may_use: &["diagnostic", "time", "language", "evidence", "timeline", "verdict"],
        pure: true,
    },
    Room {
        name: "selfcheck",
        may_use: &[
            "diagnostic",
            "time",
            "language",
            "world",
            "run",
            "evidence",
            "timeline",
            "verdict",
            "report",
        ],
        pure: false,
    },
    Room {
        name: "cli",
        may_use: &[
            "diagnostic",
            "time",
            "language",
            "world",
            "run",
            "evidence",
            "timeline",
            "verdict",
            "report",
            "selfcheck",
        ],
        pure: false,
    },
];

/// A crate that only one place may name, so that it can be replaced there.
const SOLE_USERS: [(&str, &str); 4] = [
    ("serde_saphyr", "language/source"),
    ("kube", "world/cluster"),
    ("openssh", "world/cluster"),
    ("reqwest", "world/cluster"),
];

/// What a pure room must not name: sequences of path segments.
const IMPURE: [&[&str]; 14] = [
    &["tokio"],
    &["hyper"],
    &["axum"],
    &["rand"],
    &["kube"],
    &["openssh"],
    &["reqwest"],
    &["nix"],
    &["std", "net", "TcpStream"],
    &["std", "process"],
    &["std", "env"],
    &["SystemTime"],
    &["Utc", "now"],
    &["Local", "now"],
];

#[test]
fn the_source_keeps_its_directions() {
    let files = sources(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").as_path());
    assert!(
        files.len() > 20,
        "only {} files found: this test looks in the wrong place",
        files.len()
    );
    let trouble: Vec<String> = files.iter().flat_map(|(path, text)| offences(path, text)).collect();
    assert!(
        trouble.is_empty(),
        "{} offences:\n{}",
        trouble.len(),
        trouble.join("\n")
    );
}

#[test]
fn every_kind_of_offence_is_seen() {
    let seen = |path: &str, text: &str| offences(path, text);
    for (path, text, what) in [
        (
            "verdict/fate.rs",
            "use crate::world::port::Cluster;",
            "verdict must not use world",
        ),
        (
            "verdict/fate.rs",
            "fn f() { crate::run::go(); }",
            "verdict must not use run",
        ),
        (
            "evidence/mod.rs",
            "use crate::{time::Instant, verdict::{Fate, Cause}};",
            "evidence must not use verdict",
        ),
        (
            "evidence/capture/pcap.rs",
            "use super::super::super::report::render;",
            "evidence must not use report",
        ),
        (
            "timeline/mod.rs",
            "use super::verdict;",
            "timeline must not use verdict",
        ),
        (
            "language/check/names.rs",
            "use serde_saphyr::Spanned;",
            "serde_saphyr belongs to language/source",
        ),
        (
            "run/step/delete.rs",
            "let api: kube::Api<Pod> = x;",
            "kube belongs to world/cluster",
        ),
        (
            "cli/serve.rs",
            "use reqwest as http;",
            "reqwest belongs to world/cluster",
        ),
        (
            "report/html/mod.rs",
            "async fn f() { tokio::time::sleep(d).await }",
            "report is pure and must not know tokio",
        ),
        (
            "timeline/mod.rs",
            "let now = chrono::Utc::now();",
            "timeline is pure and must not know Utc::now",
        ),
        (
            "verdict/mod.rs",
            "use std::{env, fmt};",
            "verdict is pure and must not know std::env",
        ),
        (
            "time/instant.rs",
            "use std::time::SystemTime;",
            "time is pure and must not know SystemTime",
        ),
        ("plumbing/mod.rs", "", "plumbing is no room of the architecture"),
        ("run/helpers.rs", "", "helpers says nothing"),
    ] {
        let found = seen(path, text);
        assert!(
            found.iter().any(|line| line.contains(what)),
            "{path}: {text}\nwanted {what}, found {found:?}"
        );
    }
    let long = "\n".repeat(MAX_LINES + 1);
    assert!(seen("verdict/fate.rs", &long).iter().any(|line| line.contains("lines")));
}

#[test]
fn what_is_allowed_stays_allowed() {
    for (path, text) in [
        (
            "verdict/fate.rs",
            "//! [`crate::run::Journal`]\nuse crate::timeline::Timeline; /* crate::world */",
        ),
        (
            "verdict/fate.rs",
            "let s = \"crate::world::sim\"; let r = r#\"use tokio::\"x\"\"#; let c = '\"'; crate::time::ZERO",
        ),
        (
            "run/probe/gauge.rs",
            "use crate::evidence::envoy_stats::read; use std::time::Instant;",
        ),
        ("language/source/parse.rs", "use serde_saphyr::Spanned;"),
        (
            "world/cluster/pods.rs",
            "use kube::Api; use super::super::port::Cluster;",
        ),
        (
            "evidence/mod.rs",
            "mod tests { use super::*; fn run<'a>(run: &'a str) { run.len(); } }",
        ),
        ("selfcheck/mod.rs", "use crate::{verdict, world::sim::{self, truth}};"),
        (
            "report/mod.rs",
            "use std::net::SocketAddr; use chrono::{DateTime, Utc};",
        ),
    ] {
        assert_eq!(offences(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

/// All Rust files below a folder, by their path from it.
fn sources(root: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(root)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of src/") {
            let path = entry.expect("an entry of src/").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path
                    .strip_prefix(root)
                    .expect("below src/")
                    .to_string_lossy()
                    .replace('\\', "/");
                files.push((name, fs::read_to_string(&path).expect("a source file")));
            }
        }
    }
    files.sort();
    files
}

/// Everything that is wrong with one file, as lines for a person.
fn offences(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    if lines > MAX_LINES {
        found.push(format!(
            "src/{path} has {lines} lines before its tests, more than {MAX_LINES}: split it by noun"
        ));
    }
    for part in path.trim_end_matches(".rs").split('/') {
        if EMPTY_NAMES.contains(&part) {
            found.push(format!("src/{path}: the name {part} says nothing about what is inside"));
        }
    }
    if matches!(path, "lib.rs" | "main.rs") {
        return found;
    }
    let name = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        found.push(format!("src/{path}: {name} is no room of the architecture"));
        return found;
    };
    let paths = used_paths(path, &tokens(text));
    let used: BTreeSet<&str> = paths
        .iter()
        .filter(|p| p[0] == "crate")
        .filter_map(|p| p.get(1).map(String::as_str))
        .collect();
    for other in ROOMS
        .iter()
        .map(|r| r.name)
        .filter(|other| *other != name && used.contains(other))
    {
        if !room.may_use.contains(&other) {
            found.push(format!("src/{path}: {name} must not use {other}"));
        }
    }
    for (foreign, place) in SOLE_USERS {
        if !path.starts_with(place) && paths.iter().any(|p| p[0] == foreign) {
            found.push(format!("src/{path}: {foreign} belongs to {place}"));
        }
    }
    if room.pure {
        for forbidden in IMPURE {
            let root_only = forbidden.len() == 1 && forbidden[0].starts_with(char::is_lowercase);
            let hit = |p: &Vec<String>| match root_only {
                true => p[0] == forbidden[0],
                false => p
                    .windows(forbidden.len())
                    .any(|w| w.iter().zip(forbidden).all(|(a, b)| a == b)),
            };
            if paths.iter().any(hit) {
                found.push(format!(
                    "src/{path}: {name} is pure and must not know {}",
                    forbidden.join("::")
                ));
            }
        }
    }
    found
}

/// An identifier, `::`, or one other character.
fn tokens(text: &str) -> Vec<String> {
    let source: Vec<char> = text.chars().collect();
    let at = |i: usize| source.get(i).copied().unwrap_or('\0');
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut i) = (Vec::new(), 0);
    while i < source.len() {
        let start = i;
        match (at(i), at(i + 1)) {
            ('/', '/') => i += source[i..].iter().take_while(|c| **c != '\n').count(),
            ('/', '*') => {
                let mut depth = 1;
                i += 2;
                while i < source.len() && depth > 0 {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                }
            }
            ('r', '"' | '#') if raw_hashes(&source, i + 1).is_some() => {
                let hashes = raw_hashes(&source, i + 1).unwrap_or(0);
                i += 2 + hashes;
                while i < source.len() && !(at(i) == '"' && (1..=hashes).all(|n| at(i + n) == '#')) {
                    i += 1;
                }
                i += 1 + hashes;
            }
            ('"', _) => {
                i += 1;
                while i < source.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            // A character literal, not a lifetime.
            ('\'', '\\') => {
                i += 3
                    + source[(i + 3).min(source.len())..]
                        .iter()
                        .take_while(|c| **c != '\'')
                        .count()
                    + 1
            }
            ('\'', _) if at(i + 2) == '\'' => i += 3,
            (':', ':') => {
                out.push("::".to_owned());
                i += 2;
            }
            (c, _) if word(c) => {
                while word(at(i)) {
                    i += 1;
                }
                out.push(source[start..i].iter().collect());
            }
            (c, _) => {
                if !c.is_whitespace() {
                    out.push(c.to_string());
                }
                i += 1;
            }
        }
    }
    out
}

/// How many `#` stand before the quote of a raw string that may begin here.
fn raw_hashes(source: &[char], from: usize) -> Option<usize> {
    let hashes = source[from..].iter().take_while(|c| **c == '#').count();
    (source.get(from + hashes) == Some(&'"')).then_some(hashes)
}

/// Every path of the file, `{}` groups written out, `super` up to the crate's root as `crate`.
fn used_paths(file: &str, tokens: &[String]) -> Vec<Vec<String>> {
    let module: Vec<&str> = file
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| *part != "mod")
        .collect();
    let mut paths = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let starts = i == 0 || (tokens[i - 1] != "::" && tokens[i - 1] != ".");
        let named = tokens[i].starts_with(|c: char| c.is_alphabetic() || c == '_');
        if starts && named && (tokens.get(i + 1).is_some_and(|t| t == "::") || i > 0 && tokens[i - 1] == "use") {
            let before = paths.len();
            i = read_path(tokens, i, &mut Vec::new(), &mut paths);
            for path in &mut paths[before..] {
                let ups = path.iter().take_while(|part| *part == "super").count();
                if ups >= module.len() {
                    path.splice(..ups, ["crate".to_owned()]);
                }
            }
        } else {
            i += 1;
        }
    }
    paths
}

/// Reads one path or group from `i`, adds its ends to `paths`, and returns where it stopped.
fn read_path(tokens: &[String], mut i: usize, prefix: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    let depth = prefix.len();
    while let Some(token) = tokens.get(i) {
        if token == "{" && tokens.get(i.wrapping_sub(1)).is_some_and(|t| t == "::") {
            i += 1;
            while tokens.get(i).is_some_and(|t| t != "}") {
                if tokens[i].starts_with(|c: char| c.is_alphabetic() || c == '_') {
                    i = read_path(tokens, i, prefix, paths);
                } else {
                    i += 1;
                }
            }
            prefix.truncate(depth);
            return i + 1;
        }
        if !token.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            break;
        }
        prefix.push(token.clone());
        if tokens.get(i + 1).is_none_or(|t| t != "::") {
            i += 1;
            break;
        }
        i += 2;
    }
    if prefix.len() > depth {
        paths.push(prefix.clone());
    }
    prefix.truncate(depth);
    i.max(1)
}

//! Small inputs from public reports of other people's trouble, each with the meaning that a reader must find in it.
//! They go through the one entrance, a run folder.

use std::path::{Path, PathBuf};

use gtrun::evidence::run_folder::{self, ReadOptions};
use gtrun::evidence::{Evidence, NoteKind};
use gtrun::time::{Bracket, Instant};

mod capture;
mod client;
mod envoy_log;
mod envoy_stats;
mod haproxy_csv;
mod haproxy_log;
mod log_stream;
mod watch;

/// A file of a case.
fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/cases")
        .join(name)
}

/// Reads a folder of files of cases under the names that a run folder has.
fn read(files: &[(&str, &str)]) -> Evidence {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (from, name) in files {
        std::fs::copy(case(from), folder.path().join(name)).expect(from);
    }
    run_folder::read(folder.path(), &ReadOptions::default()).expect("the folder can be listed")
}

fn at(text: &str) -> Instant {
    Instant::parse(text).expect(text)
}

/// The stamp that a floored bracket came from.
fn stamp(bracket: Bracket) -> String {
    let lo = bracket.lo.expect("a stamp");
    (lo + gtrun::time::Duration::from_nanos(1)).to_rfc3339()
}

fn notes(evidence: &Evidence, kind: NoteKind) -> Vec<&str> {
    evidence
        .notes
        .iter()
        .filter(|n| n.kind == kind)
        .map(|n| n.text.as_str())
        .collect()
}

/// Trimmed zeros and offsets break an order by text.
#[test]
fn case_53_stamps_are_ordered_by_time() {
    let text = std::fs::read_to_string(case("53-iso-text-does-not-sort/stamps.txt")).expect("stamps");
    let mut stamps: Vec<&str> = text.lines().collect();
    stamps.sort_by_key(|t| at(t));
    assert_eq!(
        stamps,
        [
            "2026-05-31T07:12:53Z",
            "2026-05-31T07:12:53.5Z",
            "2026-05-31T07:12:53.57518Z",
            "2026-05-31T07:12:53.575182Z",
            "2026-05-31T16:12:53.576+09:00",
            "2026-05-31T07:12:53.6Z",
            "2026-05-31T07:12:53.600000001Z",
            "2026-05-31T07:12:54Z",
        ]
    );
}

//! Whole reports of the recorded results in `tests/report`, as snapshots beside them.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::terminal::Look;
use super::*;

const SAMPLES: [&str; 4] = [
    "passed-simulated",
    "failed-real",
    "collected-old-folder",
    "refused-in-preflight",
];

fn sample(name: &str) -> Document {
    let folder: PathBuf = ["tests", "report", name].iter().collect();
    Document::read(&folder).expect("a sample")
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "../../tests/report/snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_format_of_every_sample() {
    for name in SAMPLES {
        let document = sample(name);
        for (format, extension) in [
            (Format::Terminal, "txt"),
            (Format::Markdown, "md"),
            (Format::Junit, "xml"),
            (Format::Json, "json"),
            (Format::Perfetto, "perfetto"),
        ] {
            snapshot(&format!("{name}.{extension}"), &render(&document, format));
        }
    }
}

#[test]
fn a_narrow_terminal_and_colours() {
    snapshot("narrow", &terminal::render(&sample("failed-real"), &Look::plain(60)));
    let coloured = terminal::render(
        &sample("failed-real"),
        &Look {
            colour: true,
            width: 100,
        },
    );
    let plain = terminal::render(&sample("failed-real"), &Look::plain(100));
    let stripped = regex::Regex::new("\x1b\\[[0-9]+m")
        .expect("a pattern")
        .replace_all(&coloured, "")
        .into_owned();
    assert!(coloured.contains("\x1b[31mFAIL\x1b[0m"));
    assert_eq!(stripped, plain, "a meaning rests on colour alone");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    // What may be copied from the terminal is never broken: the folder, and the last line with its command.
    let unwrapped = |line: &str| line.starts_with("evidence and reports") || line.starts_with("cleanup");
    for width in [80, 100, 132] {
        for name in SAMPLES {
            let text = terminal::render(&sample(name), &Look::plain(width));
            let wide: Vec<&str> = text
                .lines()
                .rev()
                .skip(1)
                .filter(|l| !unwrapped(l) && l.chars().count() > width)
                .collect();
            assert!(wide.is_empty(), "{width}: {wide:#?}");
        }
    }
}

#[test]
fn simulated_is_said_everywhere_and_only_where_it_is_true() {
    for format in [
        Format::Html,
        Format::Markdown,
        Format::Junit,
        Format::Perfetto,
        Format::Terminal,
    ] {
        assert!(
            render(&sample("passed-simulated"), format).contains("SIMULATED"),
            "{format:?}"
        );
        assert!(
            !render(&sample("failed-real"), format).contains("SIMULATED"),
            "{format:?}"
        );
    }
    assert!(render(&sample("passed-simulated"), Format::Json).contains("\"simulated\": true"));
    let text = render(&sample("passed-simulated"), Format::Terminal);
    assert!(text.lines().last().expect("a line").starts_with("SIMULATED PASS"));
}

#[test]
fn every_exit_but_zero_ends_with_the_next_command() {
    for name in SAMPLES {
        let mut document = sample(name);
        for exit in [0, 1, 2, 3, 130, 143] {
            for verdict in [
                None,
                Some(crate::verdict::RunVerdict::Pass),
                Some(crate::verdict::RunVerdict::Fail),
                Some(crate::verdict::RunVerdict::Inconclusive),
                Some(crate::verdict::RunVerdict::Invalid),
                Some(crate::verdict::RunVerdict::Skipped),
            ] {
                document.report.exit = exit;
                document.report.verdict = verdict;
                let text = render(&document, Format::Terminal);
                let last = text.lines().last().expect("a line");
                assert_eq!(last.contains("; next: "), exit != 0, "{last}");
                assert_eq!(last.contains(&format!("(exit {exit})")), exit != 0, "{last}");
            }
        }
    }
}

#[test]
fn junit_is_read_back_and_nothing_but_a_pass_is_green() {
    let count = |name: &str, exit: i32| {
        let mut document = sample(name);
        document.report.exit = exit;
        let file = quick_junit::Report::deserialize_from_str(&render(&document, Format::Junit)).expect("JUnit");
        let suite = &file.test_suites[0];
        (suite.tests, suite.failures, suite.errors, suite.skipped)
    };
    assert_eq!(count("passed-simulated", 0), (5, 0, 0, 0));
    // One failure, one inconclusive, the cleanup.
    assert_eq!(count("failed-real", 2), (5, 1, 2, 0));
    // `--inconclusive=pass` skips what is undecided.
    assert_eq!(count("failed-real", 0), (5, 1, 1, 1));
    assert_eq!(count("collected-old-folder", 0), (1, 0, 0, 1));
    assert_eq!(count("refused-in-preflight", 1), (1, 0, 1, 0));
    // A simulated pass where a real one was required.
    assert_eq!(count("passed-simulated", 1), (6, 0, 1, 0));
}

#[test]
fn the_page_is_whole_and_the_evidence_cannot_write_into_it() {
    for name in SAMPLES {
        let page = render(&sample(name), Format::Html);
        assert!(
            page.starts_with("<!doctype html>") && page.ends_with("</html>\n"),
            "{name}: {page:.300}"
        );
        for forbidden in ["<script", "javascript:", "src=", "@import", "url(", "\u{1b}"] {
            assert!(!page.contains(forbidden), "{name} holds {forbidden}");
        }
        // Links lead to files of the same folder and nowhere else.
        assert!(
            page.split("href=\"").skip(1).all(|link| link.starts_with("./")),
            "{name}"
        );
        balanced(name, &page);
    }
    let page = render(&sample("failed-real"), Format::Html);
    assert!(page.contains("./rst%20lb%231.pcap") && page.contains("&lt;script&gt;"));
}

/// Every element that is opened is closed, in order: what no void element may leave out.
fn balanced(name: &str, page: &str) {
    let body = page.split("</style>").nth(1).expect("a body");
    let tag = regex::Regex::new(r"<(/?)([a-z0-9]+)[^>]*?(/?)>").expect("a pattern");
    let mut open = vec!["html", "head"];
    for found in tag.captures_iter(body) {
        let (closes, element, empty) = (
            &found[1] == "/",
            found.get(2).expect("a name").as_str(),
            &found[3] == "/",
        );
        if empty || matches!(element, "br" | "meta") {
            continue;
        }
        if closes {
            assert_eq!(
                open.pop(),
                Some(element),
                "{name}: {}",
                &body[found.get(0).expect("all").start()..][..80]
            );
        } else {
            open.push(element);
        }
    }
    assert_eq!(
        open.pop(),
        None,
        "{name}: the html element itself was opened before the style"
    );
}

/// The sample with every free text replaced: what evidence and authors can write.
fn with_text(name: &str, text: &str) -> Document {
    fn fill(value: &mut serde_json::Value, key: &str, text: &str) {
        const FREE: [&str; 20] = [
            "scenario",
            "environment",
            "summary",
            "assert",
            "name",
            "because",
            "error_budget",
            "explanation",
            "reason",
            "event",
            "source",
            "id",
            "target_by",
            "server",
            "termination",
            "envoy_flags",
            "warnings",
            "cleanup",
            "clock",
            "trouble",
        ];
        match value {
            serde_json::Value::String(old) if FREE.contains(&key) => *old = text.to_owned(),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| fill(item, key, text)),
            serde_json::Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| fill(value, key, text)),
            _ => {}
        }
    }
    let mut document = sample(name);
    let mut report = serde_json::to_value(&document.report).expect("JSON");
    fill(&mut report, "", text);
    document.report = serde_json::from_value(report).expect("a report");
    for record in &mut document.events {
        record.source = Some(text.to_owned());
        record.fields.insert("status".to_owned(), text.into());
        record.fields.insert("svname".to_owned(), text.into());
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_text_breaks_a_format(text in r#"[<>&"'`|\\*_\[\]{}@#:/ \n\r\t\x00-\x08\x1b\x7f\u{85}\u{202e}a-zé]{0,40}"#) {
        let document = with_text("failed-real", &text);
        balanced(&text, &render(&document, Format::Html));
        let page = render(&document, Format::Html);
        prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
        let terminal = render(&document, Format::Terminal);
        prop_assert!(!terminal.chars().any(|c| c.is_control() && c != '\n'));
        let file = quick_junit::Report::deserialize_from_str(&render(&document, Format::Junit));
        prop_assert!(file.is_ok(), "{:?}", file.err());
        for format in [Format::Json, Format::Perfetto] {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&render(&document, format)).is_ok());
        }
        let comment = render(&document, Format::Markdown);
        prop_assert!(!comment.chars().any(|c| c.is_control() && c != '\n'));
        let table: Vec<&str> = comment.lines().filter(|line| line.starts_with("| **")).collect();
        prop_assert_eq!(table.len(), 4, "{}", comment);
    }
}

#[test]
fn perfetto_is_json_with_time_that_runs_forward() {
    for name in SAMPLES {
        let file: serde_json::Value = serde_json::from_str(&render(&sample(name), Format::Perfetto)).expect("JSON");
        let events = file["traceEvents"].as_array().expect("events");
        for event in events.iter().filter(|event| event["ph"] != "M") {
            assert!(event["ts"].as_f64().is_some_and(|ts| ts >= 0.0), "{event}");
            assert!(
                event["ph"] != "X" || event["dur"].as_f64().is_some_and(|dur| dur >= 0.0),
                "{event}"
            );
        }
    }
}

#[test]
fn reports_are_written_whole_and_twice_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |name: &str| {
        let from = Path::new("tests/report/passed-simulated").join(name);
        std::fs::copy(from, folder.path().join(name)).expect("a copy");
    };
    ["verdict.json", "timeline.jsonl", "intervals.json", "hc.log"]
        .into_iter()
        .for_each(copy);
    let read = || Format::IN_FOLDER.map(|f| std::fs::read(folder.path().join(f.file_name())).expect("a report"));
    write_all(folder.path()).expect("reports");
    let first = read();
    write_all(folder.path()).expect("reports");
    assert_eq!(first, read());
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(names.len(), 8, "{names:?}");
}

#[test]
fn a_folder_without_a_verdict_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Document::read(folder.path()).expect_err("no verdict").to_string();
    assert!(error.contains("gtrun collect"), "{error}");
    std::fs::write(folder.path().join("verdict.json"), "{\n\"verdict\": 7}").expect("a file");
    let error = Document::read(folder.path()).expect_err("no verdict").to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn a_comparison_names_what_changed() {
    let text = render_comparison(&sample("failed-real"), &sample("passed-simulated"), &Look::plain(100));
    snapshot("comparison", &text);
    let same = render_comparison(&sample("failed-real"), &sample("failed-real"), &Look::plain(100));
    assert!(same.ends_with("9 of the compared results are the same\n"), "{same}");
}

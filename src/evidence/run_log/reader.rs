//! Reads `run.log` line by line: `STAMP [TAG] text`.

use std::io::{self, BufRead};

use super::{RunLog, RunLogEntry, RunLogLine, RunLogTarget};
use crate::evidence::haproxy_log::path_of;
use crate::evidence::lines::Lines;
use crate::evidence::reading::{Reading, excerpt};
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::Duration;

/// Lines that are kept; a load that logs each request would not stop.
const LINES: usize = 100_000;

/// Reads a run log.
pub(crate) fn read<R: BufRead>(source: R, file: FileId, reading: &mut Reading) -> io::Result<RunLog> {
    let mut log = RunLog {
        file: Some(file),
        ..RunLog::default()
    };
    let mut resolution = Resolution::default();
    let mut digits = Vec::new();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next_line()? {
        // What a command printed may stand between the lines, without a stamp.
        let Some((stamp, used)) = stamp::iso(line.bytes) else {
            continue;
        };
        let rest = line.bytes[used..].trim_ascii();
        let (tag, text) = match rest
            .strip_prefix(b"[")
            .and_then(|r| Some((r, memchr::memchr(b']', r)?)))
        {
            Some((r, end)) => (Some(&r[..end]), r[end + 1..].trim_ascii()),
            None => (None, rest),
        };
        if log.scenario.is_none() {
            log.scenario = tag.map(|t| excerpt(t, 100));
        }
        let text = excerpt(text, 1024);
        if log.mode.is_none() && text.starts_with("init_artifacts") {
            log.mode = value(&text, "mode=").map(str::to_owned);
        }
        if let Some(pod) = text.strip_prefix("target=") {
            log.target = Some(RunLogTarget {
                pod: pod.split_whitespace().next().map(str::to_owned),
                node: value(&text, "node=").map(str::to_owned),
                server: value(&text, "backend=")
                    .or_else(|| value(&text, "server="))
                    .map(str::to_owned),
            });
        }
        if log.entries.len() == LINES {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!("only the first {LINES} lines of the run log are used"),
            );
            break;
        }
        resolution.saw(stamp.digits);
        digits.push(stamp.digits);
        log.entries.push(RunLogEntry {
            at: stamp::pending(stamp.at),
            place: Place {
                file,
                line: line.number,
            },
            what: parse(&text),
        });
    }
    for (entry, digits) in log.entries.iter_mut().zip(digits) {
        stamp::widen(&mut entry.at, resolution.of(digits));
    }
    if log.entries.is_empty() {
        reading.note_file(file, NoteKind::Incomplete, "the run log holds no line with a stamp");
    }
    Ok(log)
}

/// The word after `key` in a text of blank-separated `key=value`.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.split_whitespace()
        .find_map(|w| w.strip_prefix(key))
        .filter(|v| !v.is_empty())
}

fn parse(text: &str) -> RunLogLine {
    line(text).unwrap_or_else(|| RunLogLine::Other(text.to_owned()))
}

fn line(text: &str) -> Option<RunLogLine> {
    let word = |t: &str| t.split_whitespace().next().map(str::to_owned);
    if let Some(rest) = text.strip_prefix("long request:") {
        return Some(RunLogLine::RequestStarted {
            id: "long".to_owned(),
            path: path(rest),
        });
    }
    if text == "curl finished" {
        return Some(RunLogLine::RequestFinished { id: "long".to_owned() });
    }
    if let Some(rest) = text.strip_prefix("request ") {
        if let Some((id, command)) = rest.split_once(": ") {
            return Some(RunLogLine::RequestStarted {
                id: id.to_owned(),
                path: path(command),
            });
        }
        let id = rest.strip_suffix(" finished")?;
        return Some(RunLogLine::RequestFinished { id: id.to_owned() });
    }
    if let Some(rest) = text.strip_prefix("delete pod ") {
        let grace = value(rest, "--grace-period=")
            .and_then(|g| g.parse::<i64>().ok())
            .filter(|g| (0..=1_000_000_000).contains(g))
            .map(Duration::from_secs);
        return Some(RunLogLine::DeletePod {
            pod: word(rest)?,
            grace,
        });
    }
    if let Some(rest) = text.strip_prefix("terminate pod ") {
        return Some(RunLogLine::DeletePod {
            pod: word(rest)?,
            grace: None,
        });
    }
    if text.starts_with("haproxy reload") {
        return Some(RunLogLine::HaproxyReload);
    }
    if let Some(rest) = text.strip_prefix("preStop finished") {
        let pod = rest.split(',').next().and_then(word);
        return rest.contains("SIGTERM").then_some(RunLogLine::Sigterm { pod });
    }
    if let Some(rest) = text.strip_prefix("pod gone") {
        return Some(RunLogLine::PodGone { pod: word(rest) });
    }
    if text.starts_with("rollout restart") {
        return Some(RunLogLine::RolloutRestart);
    }
    if text == "rollout done" || text.starts_with("rollout status rc=0") || text.starts_with("rollout finished") {
        return Some(RunLogLine::RolloutFinished);
    }
    if let Some(rest) = text.strip_prefix("summary") {
        let code = value(rest, "curl_http_code=")?;
        let first = word(rest)?;
        return Some(RunLogLine::Summary {
            id: if first.contains('=') { "long".to_owned() } else { first },
            status: code.parse::<u16>().ok().filter(|c| *c >= 100),
            total: value(rest, "time_total=").and_then(|t| crate::evidence::client::reader::seconds(t.as_bytes())),
            exit: value(rest, "exit=").and_then(|e| e.parse().ok()),
        });
    }
    None
}

/// Path and query of the URL in `curl /sleep?seconds=60`.
fn path(command: &str) -> Option<String> {
    let url = command
        .split_whitespace()
        .map(|w| w.trim_matches(['"', '\'']))
        .find(|w| w.starts_with('/') || w.contains("://"))?;
    Some(path_of(url).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_line_that_means_something() {
        let long = || "long".to_owned();
        for (text, expected) in [
            (
                "long request: curl https://service-a.example.test/sleep?seconds=20",
                RunLogLine::RequestStarted {
                    id: long(),
                    path: Some("/sleep?seconds=20".into()),
                },
            ),
            (
                "request r1: curl /sleep?seconds=5.7&id=r1",
                RunLogLine::RequestStarted {
                    id: "r1".into(),
                    path: Some("/sleep?seconds=5.7&id=r1".into()),
                },
            ),
            ("request r1 finished", RunLogLine::RequestFinished { id: "r1".into() }),
            (
                "delete pod worker1 --grace-period=210 --wait=false",
                RunLogLine::DeletePod {
                    pod: "worker1".into(),
                    grace: Some(Duration::from_secs(210)),
                },
            ),
            ("preStop finished, SIGTERM to pod", RunLogLine::Sigterm { pod: None }),
            (
                "preStop finished worker2, SIGTERM",
                RunLogLine::Sigterm {
                    pod: Some("worker2".into()),
                },
            ),
            ("pod gone", RunLogLine::PodGone { pod: None }),
            ("haproxy reload (-sf)", RunLogLine::HaproxyReload),
            ("rollout status rc=0", RunLogLine::RolloutFinished),
            (
                "summary curl_http_code=000 time_total=6.500585 exit=28",
                RunLogLine::Summary {
                    id: long(),
                    status: None,
                    total: Some(Duration::from_micros(6_500_585)),
                    exit: Some(28),
                },
            ),
            (
                "summary r3 curl_http_code=502 time_total=8.329493 exit=0",
                RunLogLine::Summary {
                    id: "r3".into(),
                    status: Some(502),
                    total: Some(Duration::from_micros(8_329_493)),
                    exit: Some(0),
                },
            ),
            (
                "summary client total=315",
                RunLogLine::Other("summary client total=315".into()),
            ),
        ] {
            assert_eq!(parse(text), expected);
        }
    }

    #[test]
    fn a_whole_log() {
        let text = "2026-11-29T16:56:28Z [S1] init_artifacts dir=. mode=current\n\
            2026-11-29T16:56:29Z [S1] target=service-a-igw-65dbb6bf97-8dxcb node=node-a backend=worker1\n\
            \n  71 root     ps\n\
            2026-11-29T16:56:41Z [S1] curl finished\n";
        let log = read(text.as_bytes(), FileId(0), &mut Reading::default()).expect("io");
        assert_eq!(
            (log.scenario.as_deref(), log.mode.as_deref()),
            (Some("S1"), Some("current"))
        );
        assert_eq!(log.target.and_then(|t| t.server).as_deref(), Some("worker1"));
        assert_eq!(log.entries.len(), 3);
        assert_eq!(log.entries[2].at.width(), Some(Duration::from_secs(1)));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(long request|request |delete pod |summary |preStop finished)?[ -~é]{0,60}") {
            let _ = parse(&text);
        }
    }
}

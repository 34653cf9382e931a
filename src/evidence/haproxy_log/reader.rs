//! A whole log of HAProxy.

use std::io::{self, BufRead};

use super::parser::Parser;
use super::{HaproxyLine, HaproxyLog};
use crate::evidence::lines::Lines;
use crate::evidence::reading::Reading;
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::{Bracket, Duration};

/// Reads a log.
pub(crate) fn read<R: BufRead>(
    source: R,
    file: FileId,
    parser: &mut Parser,
    reading: &mut Reading,
) -> io::Result<HaproxyLog> {
    let mut log = HaproxyLog {
        file,
        resolution: Duration::ZERO,
        lines: Vec::new(),
    };
    let mut resolution = Resolution::default();
    let mut digits: Vec<u8> = Vec::new();
    let mut unknown_zone = Vec::new();
    let mut zone = None;
    let mut unread = 0u32;
    let mut terminal = 0u32;
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next_line()? {
        if let Some(length) = line.too_long {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!("a line of {length} bytes was skipped; HAProxy's own limit is 64 kB"),
            );
            continue;
        }
        let Some(parsed) = parser.line(line.bytes) else {
            if Parser::looks_like_access(line.bytes) {
                unread += 1;
                if unread <= 3 {
                    let what = if line.unterminated {
                        "the last line is cut and was not used"
                    } else {
                        "a request in a log format that is not known; keep haproxy.cfg in the folder"
                    };
                    reading.note(file, line.number, NoteKind::Incomplete, what);
                }
            }
            continue;
        };
        if parsed.for_the_terminal {
            terminal += 1;
        }
        if let Some(z) = parsed.zone {
            zone = Some(z);
        }
        if parsed.unknown_zone {
            unknown_zone.push(log.lines.len());
        }
        if parsed.at.is_some() {
            resolution.saw(parsed.digits);
        }
        digits.push(parsed.digits);
        log.lines.push(HaproxyLine {
            at: parsed.at.map_or(Bracket::OPEN, stamp::pending),
            place: Place {
                file,
                line: line.number,
            },
            pid: parsed.pid,
            what: parsed.what,
        });
    }
    for (line, digits) in log.lines.iter_mut().zip(&digits) {
        stamp::widen(&mut line.at, resolution.of(*digits));
    }
    log.resolution = resolution.finest();
    if unread > 3 {
        reading.note_file(
            file,
            NoteKind::Incomplete,
            format!("{unread} lines in all are in a log format that is not known"),
        );
    }
    match zone {
        // One line with both kinds of stamps tells the zone of all.
        Some(ahead) => {
            for i in &unknown_zone {
                shift(&mut log.lines[*i], ahead);
            }
        }
        None if !unknown_zone.is_empty() => {
            reading.mark_unknown_zone(file);
            reading.note_file(
                file,
                NoteKind::Remark,
                "the stamps are local time without a zone and were read as UTC; name the zone under `load_balancer: { log: \
                 { zone: ... } }` in the environment file, or log in the format rfc5424 or iso",
            );
        }
        None => {}
    }
    if terminal > 0 && (terminal as usize) < log.lines.len() {
        // What goes to the terminal without a stamp is logged as well.
        log.lines.retain(|l| l.at != Bracket::OPEN);
    }
    if log.lines.is_empty() {
        reading.note_file(file, NoteKind::Incomplete, "no line of HAProxy was found in the log");
    }
    Ok(log)
}

fn shift(line: &mut HaproxyLine, ahead: Duration) {
    let back = Duration::ZERO - ahead;
    line.at = line.at.shifted(back);
    if let super::HaproxyEvent::Request(r) = &mut line.what {
        r.accepted = r.accepted.shifted(back);
    }
}

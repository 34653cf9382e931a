//! A whole log of HAProxy.

use std::io::{self, BufRead};

use super::parser::Parser;
use super::{HaproxyEvent, HaproxyLine, HaproxyLog};
use crate::evidence::lines::Lines;
use crate::evidence::reading::Reading;
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::thinning::Keeper;
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::{Bracket, Duration};

/// Reads a log. Beyond `room` lines only those that matter are kept.
pub(crate) fn read<R: BufRead>(
    source: R,
    file: FileId,
    parser: &mut Parser,
    room: usize,
    reading: &mut Reading,
) -> io::Result<HaproxyLog> {
    let mut log = HaproxyLog {
        file,
        resolution: Duration::ZERO,
        lines: Vec::new(),
        omitted: 0,
    };
    let mut resolution = Resolution::default();
    let mut keeper: Keeper<Read> = Keeper::new(room);
    let mut unknown_zone = false;
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
        unknown_zone |= parsed.unknown_zone;
        if parsed.at.is_some() {
            resolution.saw(parsed.digits);
        }
        let regular = is_regular(&parsed.what);
        let read = Read {
            digits: parsed.digits,
            unknown_zone: parsed.unknown_zone,
            for_the_terminal: parsed.for_the_terminal,
            line: HaproxyLine {
                at: parsed.at.map_or(Bracket::OPEN, stamp::pending),
                place: Place {
                    file,
                    line: line.number,
                },
                pid: parsed.pid,
                what: parsed.what,
            },
        };
        keeper.push(read, parsed.at, regular);
    }
    let (mut kept, omitted, lost) = keeper.finish();
    log.omitted = omitted;
    reading.thinned(file, "lines", omitted, lost);
    log.resolution = resolution.finest();
    // What goes to the terminal without a stamp is logged with one as well.
    if terminal > 0 && kept.iter().any(|r| !r.for_the_terminal) {
        kept.retain(|r| !r.for_the_terminal);
    }
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
            for read in kept.iter_mut().filter(|r| r.unknown_zone) {
                shift(&mut read.line, ahead);
            }
        }
        None if unknown_zone => {
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
    log.lines = kept
        .into_iter()
        .map(|mut read| {
            stamp::widen(&mut read.line.at, resolution.of(read.digits));
            read.line
        })
        .collect();
    if log.lines.is_empty() {
        reading.note_file(file, NoteKind::Incomplete, "no line of HAProxy was found in the log");
    }
    Ok(log)
}

/// A line before the resolution and the zone of the file are known.
struct Read {
    line: HaproxyLine,
    digits: u8,
    unknown_zone: bool,
    for_the_terminal: bool,
}

/// The line says only that a request was answered, or that a check passed.
fn is_regular(what: &HaproxyEvent) -> bool {
    match what {
        HaproxyEvent::Request(r) => {
            r.termination.is_normal()
                && r.status.is_some_and(|s| s < 400)
                && r.server.is_some()
                && r.retries == 0
                && !r.redispatched
        }
        HaproxyEvent::HealthCheck(_)
        | HaproxyEvent::ServerState(_)
        | HaproxyEvent::ProxyStopped(_)
        | HaproxyEvent::ProxyStarted(_)
        | HaproxyEvent::NoServer(_) => false,
    }
}

fn shift(line: &mut HaproxyLine, ahead: Duration) {
    let back = Duration::ZERO - ahead;
    line.at = line.at.shifted(back);
    if let HaproxyEvent::Request(r) = &mut line.what {
        r.accepted = r.accepted.shifted(back);
    }
}

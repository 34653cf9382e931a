//! `load-<id>.jsonl` of gtrun and `client.tsv` of the old scripts: one line a request, with absolute times.

use std::io::{self, BufRead};

use super::{Load, LoadDetail, LoadRecord, LoadRequest};
use crate::evidence::client::Outcome;
use crate::evidence::client::reader::{exact, seconds};
use crate::evidence::lines::Lines;
use crate::evidence::reading::{Reading, excerpt, number};
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::thinning::{Keeper, room};
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::Bracket;

/// Reads `load-<id>.jsonl`.
pub(crate) fn read_own<R: BufRead>(source: R, file: FileId, id: &str, reading: &mut Reading) -> io::Result<Load> {
    let mut load = empty(file, id, LoadDetail::EveryRequest);
    let mut records = Records::default();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next_line()? {
        if line.bytes.is_empty() {
            continue;
        }
        match serde_json::from_slice::<LoadRecord>(line.bytes) {
            Ok(r) => records.push(
                LoadRequest {
                    place: Place {
                        file,
                        line: line.number,
                    },
                    intended: exact(r.intended),
                    started: exact(r.started),
                    ended: r.ended.map_or(
                        Bracket {
                            lo: Some(r.started),
                            hi: None,
                        },
                        exact,
                    ),
                    status: r.status,
                    outcome: r.outcome,
                    total: r.ended.map(|e| e - r.started),
                    local_port: r.local_port,
                    connection: r.connection.zip(r.ordinal),
                    bytes: r.bytes,
                    server: r.server.map(|s| reading.name(&s)),
                    error: r.error.map(|e| reading.name(&e)),
                },
                (),
            ),
            Err(e) => {
                let what = if line.unterminated {
                    "the last record is cut and was not used".to_owned()
                } else {
                    format!("not a record of a load: {e}")
                };
                reading.note(file, line.number, NoteKind::Incomplete, what);
            }
        }
    }
    records.finish(&mut load, reading);
    Ok(load)
}

/// An empty load of a file.
pub(crate) fn empty(file: FileId, id: &str, detail: LoadDetail) -> Load {
    Load {
        id: id.to_owned(),
        file,
        detail,
        requests: Vec::new(),
        omitted: Vec::new(),
        stated: None,
    }
}

/// Takes the records of a file, of which beyond a number those of answered requests keep their total time only.
pub(crate) struct Records<T> {
    keeper: Keeper<(LoadRequest, T)>,
    omitted: Vec<u32>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self {
            keeper: Keeper::new(room::LOAD),
            omitted: Vec::new(),
        }
    }
}

impl<T> Records<T> {
    /// Takes a record.
    pub(crate) fn push(&mut self, request: LoadRequest, with: T) {
        if self.keeper.is_full() && request.outcome == Outcome::Ok {
            let us = request.total.map(|t| t.as_nanos() / 1_000);
            if let Some(us) = us.and_then(|us| u32::try_from(us).ok()) {
                self.omitted.push(us);
                return;
            }
        }
        let at = request.started.lo;
        self.keeper.push((request, with), at, false);
    }

    /// Fills the load.
    pub(crate) fn finish(self, load: &mut Load, reading: &mut Reading) -> Vec<T> {
        let (kept, _, lost) = self.keeper.finish();
        reading.thinned(load.file, "records", self.omitted.len() as u64, lost);
        load.omitted = self.omitted;
        let (requests, with) = kept.into_iter().unzip();
        load.requests = requests;
        with
    }
}

/// Reads `client.tsv`: columns by name, `start, end, http_code, time_total, error, local_port` and more.
pub(crate) fn read_tsv<R: BufRead>(
    source: R,
    file: FileId,
    id: &str,
    reading: &mut Reading,
) -> io::Result<Option<Load>> {
    let mut lines = Lines::new(source);
    let header: Vec<String> = match lines.next_line()? {
        Some(line) => line
            .bytes
            .split(|b| *b == b'\t')
            .map(|f| String::from_utf8_lossy(f).trim().to_ascii_lowercase())
            .collect(),
        None => Vec::new(),
    };
    let column = |names: &[&str]| header.iter().position(|h| names.contains(&h.as_str()));
    let (Some(start), Some(code)) = (column(&["start", "started"]), column(&["http_code", "code", "status"])) else {
        reading.note(
            file,
            1,
            NoteKind::Unreadable,
            "the first line must name the columns, at least start and http_code, separated by tabs",
        );
        return Ok(None);
    };
    let (end, total) = (column(&["end", "ended"]), column(&["time_total", "total"]));
    let (error, port) = (column(&["error"]), column(&["local_port", "port"]));
    let (exit, bytes) = (column(&["exit", "exitcode"]), column(&["bytes", "size_download"]));
    let (server, intended) = (column(&["pod", "server"]), column(&["intended", "due"]));
    let mut load = empty(file, id, LoadDetail::EveryRequest);
    let mut resolution = Resolution::default();
    let mut records: Records<[u8; 3]> = Records::default();
    while let Some(line) = lines.next_line()? {
        if line.bytes.is_empty() {
            continue;
        }
        let fields: Vec<&[u8]> = line.bytes.split(|b| *b == b'\t').collect();
        let field = |c: Option<usize>| c.and_then(|i| fields.get(i)).map(|f| f.trim_ascii());
        if line.unterminated && fields.len() < header.len() {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                "the last line is cut and was not used",
            );
            continue;
        }
        let Some(started) = field(Some(start)).and_then(stamp::iso_whole) else {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                "no stamp in the column `start`; the line was not used",
            );
            continue;
        };
        let ended = field(end).and_then(stamp::iso_whole);
        let due = field(intended).and_then(stamp::iso_whole);
        for s in [Some(started), ended, due].into_iter().flatten() {
            resolution.saw(s.digits);
        }
        let digits = [started, ended.unwrap_or(started), due.unwrap_or(started)].map(|s| s.digits);
        let status = field(Some(code))
            .and_then(number)
            .and_then(|n| u16::try_from(n).ok())
            .filter(|n| *n >= 100);
        let message = field(error)
            .filter(|e| !e.is_empty() && *e != b"-")
            .map(|e| excerpt(e, 256));
        let exit = field(exit).and_then(|f| std::str::from_utf8(f).ok()?.parse().ok());
        let record = LoadRequest {
            place: Place {
                file,
                line: line.number,
            },
            intended: due.map_or(Bracket::OPEN, |s| stamp::pending(s.at)),
            started: stamp::pending(started.at),
            ended: ended.map_or(Bracket::OPEN, |s| stamp::pending(s.at)),
            status,
            outcome: outcome(status, exit, message.as_deref()),
            total: field(total).and_then(seconds),
            local_port: field(port)
                .and_then(number)
                .and_then(|n| u16::try_from(n).ok())
                .filter(|p| *p != 0),
            connection: None,
            bytes: field(bytes).and_then(number),
            server: field(server)
                .filter(|s| !s.is_empty() && *s != b"-")
                .map(|s| reading.name_of(s)),
            error: message.map(|m| reading.name(&m)),
        };
        records.push(record, digits);
    }
    let digits = records.finish(&mut load, reading);
    for (r, [started, ended, due]) in load.requests.iter_mut().zip(digits) {
        stamp::widen(&mut r.started, resolution.of(started));
        stamp::widen(&mut r.ended, resolution.of(ended));
        stamp::widen(&mut r.intended, resolution.of(due));
    }
    Ok(Some(load))
}

/// How a request ended, from its status, an exit code of curl where there is one, and an error in whatever words.
pub(crate) fn outcome(status: Option<u16>, exit: Option<i32>, error: Option<&str>) -> Outcome {
    if exit.is_some() {
        return crate::evidence::client::curl_outcome(status, exit, error);
    }
    let Some(error) = error else {
        return match status {
            Some(code) if code < 400 => Outcome::Ok,
            Some(_) => Outcome::HttpError,
            None => Outcome::Unknown,
        };
    };
    let error = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| error.contains(w));
    if says(&["refused_stream"]) {
        Outcome::RefusedStream
    } else if says(&["refused"]) {
        Outcome::Refused
    } else if says(&["timeout", "timed out", "deadline exceeded"]) {
        Outcome::Timeout
    } else if says(&["no such host", "name or service not known", "dns", "lookup"]) {
        Outcome::DnsError
    } else if says(&["tls", "ssl", "x509", "certificate"]) {
        Outcome::TlsError
    } else if status.is_some_and(|code| code >= 400) && !says(&["eof", "reset", "closed", "incomplete", "truncated"]) {
        // Tools that call a whole answer with an error status an error.
        Outcome::HttpError
    } else if status.is_some() {
        Outcome::Truncated
    } else if says(&["reset"]) {
        Outcome::Reset
    } else if says(&["eof", "closed", "empty reply", "disconnected", "goaway"]) {
        Outcome::ClosedEarly
    } else if says(&["cancel", "abort", "interrupt"]) {
        Outcome::Aborted
    } else {
        Outcome::Unknown
    }
}

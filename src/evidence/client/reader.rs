//! `requests.jsonl` of gtrun and `curl[-id].out` of the old scripts.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use super::{ClientRequest, Outcome, RequestRecord, curl};
use crate::evidence::lines::Lines;
use crate::evidence::reading::{Reading, excerpt};
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::{Bracket, Duration, Instant};

/// Reads `curl.out` (id `long`) or `curl-r1.out`: a body of any kind, then curl's own error, then `key=value` lines.
///
/// The last line of a key counts: a body may hold lines that look alike.
pub(crate) fn read_curl<R: BufRead>(
    source: R,
    file: FileId,
    id: &str,
    reading: &mut Reading,
) -> io::Result<Option<ClientRequest>> {
    let mut request = ClientRequest {
        id: id.to_owned(),
        attempt: 1,
        place: Place { file, line: 1 },
        started: Bracket::OPEN,
        first_byte: Bracket::OPEN,
        ended: Bracket::OPEN,
        total: None,
        method: None,
        path: None,
        status: None,
        outcome: Outcome::Unknown,
        exit: None,
        local_port: None,
        connects: None,
        bytes: None,
        connection: None,
        goaway: None,
        error: None,
    };
    let mut seen_code = false;
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next_line()? {
        if let Some(message) = line.bytes.strip_prefix(b"curl: (") {
            if let Some(end) = memchr::memchr(b')', message) {
                request.exit = request.exit.or_else(|| parse(&message[..end]));
                request.error = Some(excerpt(message[end + 1..].trim_ascii(), 512));
            }
            continue;
        }
        let Some(equals) = memchr::memchr(b'=', line.bytes) else {
            continue;
        };
        let (key, value) = (&line.bytes[..equals], line.bytes[equals + 1..].trim_ascii());
        match key {
            b"curl_http_code" | b"http_code" | b"response_code" => {
                if let Some(code) = parse::<u16>(value) {
                    seen_code = true;
                    request.status = (code >= 100).then_some(code);
                    request.place.line = line.number;
                }
            }
            b"time_total" => request.total = seconds(value).or(request.total),
            b"local_port" => request.local_port = parse::<u16>(value).filter(|p| *p != 0).or(request.local_port),
            b"num_connects" => request.connects = parse(value).or(request.connects),
            b"size_download" | b"bytes" => {
                request.bytes = seconds(value).map(|d| d.as_nanos().unsigned_abs() / 1_000_000_000);
            }
            b"exit" | b"exitcode" => {
                if let Some(exit) = parse(value) {
                    request.exit = Some(exit);
                }
            }
            b"errormsg" if !value.is_empty() => request.error = Some(excerpt(value, 512)),
            _ => {}
        }
    }
    if !seen_code && request.exit.is_none() {
        reading.note_file(
            file,
            NoteKind::Unreadable,
            "neither curl_http_code nor exit was found; let curl write them with -w, or the run ended while it ran",
        );
        return Ok(None);
    }
    // curl sent it again on another connection when one that it had kept was closed under it.
    request.attempt = request.connects.unwrap_or(1).max(1);
    request.outcome = curl::outcome(request.status, request.exit, request.error.as_deref());
    if request.exit.is_none() {
        reading.note_file(
            file,
            NoteKind::Incomplete,
            "no exit code of curl: a cut body cannot be told from a whole one; append `exit=$?`",
        );
    }
    Ok(Some(request))
}

/// Reads `requests.jsonl`; the last record of an id and attempt counts.
pub(crate) fn read_requests<R: BufRead>(
    source: R,
    file: FileId,
    reading: &mut Reading,
) -> io::Result<Vec<ClientRequest>> {
    let mut order: Vec<(u32, RequestRecord)> = Vec::new();
    let mut index: BTreeMap<(String, u32), usize> = BTreeMap::new();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next_line()? {
        if line.bytes.is_empty() {
            continue;
        }
        let record: RequestRecord = match serde_json::from_slice(line.bytes) {
            Ok(r) => r,
            Err(e) => {
                let what = if line.unterminated {
                    "the last record is cut and was not used".to_owned()
                } else {
                    format!("not a request record: {e}")
                };
                reading.note(file, line.number, NoteKind::Incomplete, what);
                continue;
            }
        };
        let number = line.number;
        match index.get(&(record.id.clone(), record.attempt)) {
            Some(&i) => order[i] = (number, record),
            None => {
                index.insert((record.id.clone(), record.attempt), order.len());
                order.push((number, record));
            }
        }
    }
    Ok(order
        .into_iter()
        .map(|(n, r)| request(r, Place { file, line: n }))
        .collect())
}

/// A stamp of gtrun's own clock: exact to the nanosecond.
pub(crate) fn exact(t: Instant) -> Bracket {
    Bracket::floored(t, Duration::from_nanos(1))
}

fn request(r: RequestRecord, place: Place) -> ClientRequest {
    ClientRequest {
        id: r.id,
        attempt: r.attempt.max(1),
        place,
        started: exact(r.started),
        first_byte: r.first_byte.map_or(Bracket::OPEN, exact),
        ended: r.ended.map_or(
            Bracket {
                lo: Some(r.started),
                hi: None,
            },
            exact,
        ),
        total: r.ended.map(|e| e - r.started),
        method: r.method,
        path: r.path,
        status: r.status,
        outcome: r.outcome.unwrap_or(Outcome::Unknown),
        exit: None,
        local_port: r.local_port,
        connects: None,
        bytes: r.bytes,
        connection: match (r.connection, r.ordinal) {
            (Some(c), Some(n)) => Some(format!("{c}#{n}")),
            (c, _) => c,
        },
        goaway: r.goaway.map(exact),
        error: r.error,
    }
}

fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Seconds with a decimal point (some locales write a comma).
pub(crate) fn seconds(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text)
        .ok()?
        .trim()
        .trim_end_matches('s')
        .replace(',', ".");
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && (0.0..1e9).contains(&value)).then(|| Duration::from_secs_f64(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curl(text: &[u8]) -> Option<ClientRequest> {
        read_curl(text, FileId(0), "long", &mut Reading::default()).expect("memory cannot fail")
    }

    #[test]
    fn a_cut_body_is_not_whole_whatever_its_status() {
        let r = curl(
            b"chunkchunkcurl_http_code=404\ncurl: (18) transfer closed with outstanding read data remaining\n\n\
              curl_http_code=200\ntime_total=8.006060\nlocal_port=34080\nnum_connects=1\nexit=18\n",
        )
        .expect("a request");
        assert_eq!((r.status, r.exit, r.outcome), (Some(200), Some(18), Outcome::Truncated));
        assert_eq!(
            (r.total, r.local_port, r.attempt),
            (Some(Duration::from_micros(8_006_060)), Some(34080), 1)
        );
    }

    #[test]
    fn no_status_at_all() {
        let r =
            curl(b"curl: (52) Empty reply from server\n\ncurl_http_code=000\nexit=52\nnum_connects=2\n").expect("one");
        assert_eq!((r.status, r.outcome, r.attempt), (None, Outcome::ClosedEarly, 2));
        assert_eq!(curl(b"<html>cut"), None);
        assert_eq!(
            curl(b"\ncurl_http_code=200\n").map(|r| r.outcome),
            Some(Outcome::Unknown)
        );
    }

    #[test]
    fn the_last_record_of_an_attempt_counts() {
        let text = r#"{"id":"long","attempt":1,"path":"/sleep","started":"2026-11-29T16:12:45.703Z"}
{"id":"other","attempt":1,"started":"2026-11-29T16:12:46Z"}
{"id":"long","attempt":1,"path":"/sleep","started":"2026-11-29T16:12:45.703Z","ended":"2026-11-29T16:12:54Z","status":502,"outcome":"http_error","local_port":34900}
{"id":"long","attempt":2,"sta"#;
        let mut reading = Reading::default();
        let all = read_requests(text.as_bytes(), FileId(0), &mut reading).expect("io");
        assert_eq!(all.len(), 2);
        assert_eq!(
            (all[0].outcome, all[0].place.line, all[0].status),
            (Outcome::HttpError, 3, Some(502))
        );
        assert_eq!(all[1].outcome, Outcome::Unknown);
        assert_eq!(reading.into_notes().len(), 1);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = curl(&text);
            let _ = read_requests(&text[..], FileId(0), &mut Reading::default());
        }
    }
}

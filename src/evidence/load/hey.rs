//! hey: its summary and its `-o csv`. hey keeps connections, and Go's transport repeats a GET whose kept connection
//! was closed under it, so losses are hidden; the CSV leaves failed requests out altogether.

use std::io::{self, BufRead};

use super::reader::{Records, empty, outcome};
use super::{Load, LoadDetail, LoadRequest, StatedTotals};
use crate::evidence::client::reader::seconds;
use crate::evidence::lines::Lines;
use crate::evidence::reading::{Reading, excerpt, number};
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::Bracket;

/// Reads either form; the first line tells which.
pub(crate) fn read<R: BufRead>(source: R, file: FileId, id: &str, reading: &mut Reading) -> io::Result<Option<Load>> {
    let mut lines = Lines::new(source);
    let mut totals = StatedTotals::default();
    let mut section = Section::Head;
    let mut any = false;
    while let Some(line) = lines.next_line()? {
        let text = line.bytes.trim_ascii();
        if line.number == 1 && text.starts_with(b"response-time,") {
            return read_csv(text.to_vec(), lines, file, id, reading).map(Some);
        }
        if text.is_empty() {
            continue;
        }
        if text.starts_with(b"Status code distribution:") {
            section = Section::Status;
            any = true;
            continue;
        }
        if text.starts_with(b"Error distribution:") {
            section = Section::Errors;
            any = true;
            continue;
        }
        let bracketed = || {
            let rest = text.strip_prefix(b"[")?;
            let end = memchr::memchr(b']', rest)?;
            Some((number(&rest[..end])?, rest[end + 1..].trim_ascii()))
        };
        match section {
            Section::Head => {}
            Section::Status => {
                if let Some((code, rest)) = bracketed() {
                    let count = rest.split(|b| *b == b' ').next().and_then(number).unwrap_or(0);
                    totals.by_status.push((u16::try_from(code).unwrap_or(0), count));
                    totals.requests += count;
                }
            }
            Section::Errors => {
                if let Some((count, rest)) = bracketed() {
                    totals.errors.push((excerpt(rest, 256), count));
                    totals.requests += count;
                }
            }
        }
    }
    if !any {
        reading.note_file(
            file,
            NoteKind::Unreadable,
            "no `Status code distribution`; the load tool was stopped before its summary",
        );
        return Ok(None);
    }
    let mut load = empty(file, id, LoadDetail::Summary);
    load.stated = Some(totals);
    Ok(Some(load))
}

enum Section {
    Head,
    Status,
    Errors,
}

/// `response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset`, all in seconds; the
/// offset is since the start of the tool, which the file does not tell.
fn read_csv<R: BufRead>(
    header: Vec<u8>,
    mut lines: Lines<R>,
    file: FileId,
    id: &str,
    reading: &mut Reading,
) -> io::Result<Load> {
    let columns: Vec<&[u8]> = header.split(|b| *b == b',').map(|c| c.trim_ascii()).collect();
    let column = |name: &[u8]| columns.iter().position(|c| *c == name);
    let (time, status) = (column(b"response-time"), column(b"status-code"));
    let mut load = empty(file, id, LoadDetail::SuccessesOnly);
    let mut records = Records::default();
    while let Some(line) = lines.next_line()? {
        if line.bytes.is_empty() || line.unterminated {
            continue;
        }
        let fields: Vec<&[u8]> = line.bytes.split(|b| *b == b',').collect();
        let field = |c: Option<usize>| c.and_then(|i| fields.get(i)).copied();
        let code = field(status).and_then(number).and_then(|n| u16::try_from(n).ok());
        let record = LoadRequest {
            place: Place {
                file,
                line: line.number,
            },
            intended: Bracket::OPEN,
            started: Bracket::OPEN,
            ended: Bracket::OPEN,
            status: code,
            outcome: outcome(code, None, None),
            total: field(time).and_then(seconds),
            local_port: None,
            connection: None,
            bytes: None,
            server: None,
            error: None,
        };
        records.push(record, ());
    }
    records.finish(&mut load, reading);
    reading.note_file(
        file,
        NoteKind::Incomplete,
        "hey's CSV has no failed requests and no absolute times; use a load of gtrun, vegeta or fortio",
    );
    Ok(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<Load> {
        read(text.as_bytes(), FileId(0), "hey", &mut Reading::default()).expect("memory cannot fail")
    }

    #[test]
    fn the_summary_states_totals() {
        let load = read_text(
            "\nSummary:\n  Total:\t62.0651 secs\n\nStatus code distribution:\n  [200]\t496 responses\n  [502]\t3 responses\n\n\
             Error distribution:\n  [2]\tGet \"http://10.77.0.211/\": EOF\n",
        )
        .expect("a load");
        let totals = load.stated.expect("totals");
        assert_eq!(totals.requests, 501);
        assert_eq!(totals.by_status, [(200, 496), (502, 3)]);
        assert_eq!(totals.errors, [("Get \"http://10.77.0.211/\": EOF".to_owned(), 2)]);
        assert!(read_text("\nSummary:\n").is_none());
    }

    #[test]
    fn its_csv_hides_failures() {
        let load = read_text(
            "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n\
             0.0537,0.0001,0.0000,0.0000,0.0535,0.0001,200,0.1\n0.06,0,0,0,0,0,503,0.2\n",
        )
        .expect("a load");
        assert_eq!(load.detail, LoadDetail::SuccessesOnly);
        assert_eq!(
            load.requests.iter().map(|r| r.status).collect::<Vec<_>>(),
            [Some(200), Some(503)]
        );
    }
}

//! `haproxy-stat-before.csv`, `-after.csv`, `-timeline.csv` and single snapshots.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::sync::Arc;

use super::row::{self, Header, Kind};
use super::{StatFields, StatKind, StatRow, StatSample, StatSeries, StatusClass};
use crate::evidence::lines::{Line, Lines};
use crate::evidence::reading::{Reading, excerpt};
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::thinning::{Thinning, retain, room};
use crate::evidence::{FileId, NoteKind, Place, Sampled};
use crate::time::Duration;

/// Reads the rows of one reply to `show stat`, as text.
pub fn parse_snapshot(text: &str) -> Vec<StatRow> {
    let series = read(text.as_bytes(), FileId(0), StatKind::Snapshot, &mut Reading::default());
    // Reading from memory cannot fail.
    series
        .map(|s| s.samples.into_iter().flat_map(|s| s.rows).collect())
        .unwrap_or_default()
}

/// Reads a file.
pub(crate) fn read<R: BufRead>(
    source: R,
    file: FileId,
    kind: StatKind,
    reading: &mut Reading,
) -> io::Result<StatSeries> {
    let mut series = Series::new(file, kind);
    let mut lines = Lines::new(source);
    let mut header: Option<Header> = None;
    while let Some(line) = lines.next_line()? {
        if let Some(length) = line.too_long {
            let what = format!("a line of {length} bytes was skipped; a row of HAProxy has less than 4 kB");
            reading.note(file, line.number, NoteKind::Incomplete, what);
            continue;
        }
        if line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let unquoted = split(line.bytes);
        let fields: Vec<&[u8]> = unquoted.iter().map(AsRef::as_ref).collect();
        // It may come again and again, before each snapshot.
        if memchr::memmem::find(line.bytes, b"pxname").is_some()
            && let Some(h) = Header::parse(&fields)
        {
            if h.leading.is_empty() {
                series.close();
            }
            header = Some(h);
            continue;
        }
        match &header {
            Some(header) => series.row(header, &line, &fields, reading),
            None => reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                "a row before the header was not used; the header line with pxname and svname must come first",
            ),
        }
    }
    if header.is_none() {
        reading.note_file(
            file,
            NoteKind::Unreadable,
            "no header with pxname and svname; store the reply of `show stat` with its first line",
        );
    }
    Ok(series.finish(reading))
}

/// Fields of a line, RFC 4180. A quoted field is unquoted; an unbalanced quote ends with the line.
fn split(line: &[u8]) -> Vec<Cow<'_, [u8]>> {
    if memchr::memchr(b'"', line).is_none() {
        return line.split(|b| *b == b',').map(Cow::Borrowed).collect();
    }
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(line);
    let mut record = csv::ByteRecord::new();
    match csv.read_byte_record(&mut record) {
        Ok(_) => record.iter().map(|f| Cow::Owned(f.to_vec())).collect(),
        Err(_) => Vec::new(),
    }
}

struct Series {
    series: StatSeries,
    digits: Vec<u8>,
    resolution: Resolution,
    thinning: Thinning,
    /// Rows may still be added to the last sample.
    open: bool,
    lost: u64,
    unknown: Vec<Arc<str>>,
}

impl Series {
    fn new(file: FileId, kind: StatKind) -> Self {
        Self {
            series: StatSeries {
                file,
                kind,
                samples: Vec::new(),
            },
            digits: Vec::new(),
            resolution: Resolution::default(),
            thinning: Thinning::default(),
            open: false,
            lost: 0,
            unknown: Vec::new(),
        }
    }

    fn close(&mut self) {
        self.open = false;
    }

    /// There is no room for one more sample.
    fn is_full(&self) -> bool {
        self.series.samples.len() >= room::HAPROXY_CSV && !self.thinning.due(self.series.samples.len())
    }

    fn row(&mut self, header: &Header, line: &Line<'_>, fields: &[&[u8]], reading: &mut Reading) {
        let file = self.series.file;
        let leading = header.leading.len();
        let (when, digits) = stamps(&header.leading, fields);
        if when.sent.is_some() || when.stamp.is_some() {
            let rest = fields.get(leading..).unwrap_or_default();
            // A failed poll: our own wording, or what the tool printed instead of rows.
            let words = rest.first().copied().unwrap_or_default();
            if rest.len() <= 3 || words.starts_with(b"unknown:") {
                if line.unterminated && !words.starts_with(b"unknown:") {
                    reading.note(
                        file,
                        line.number,
                        NoteKind::Incomplete,
                        "the last row is cut and was not used",
                    );
                    return;
                }
                let reason = rest.join(&b","[..]);
                let reason = reason.strip_prefix(b"unknown:").unwrap_or(&reason).trim_ascii();
                self.start(line.number, when, digits);
                if let Some(sample) = self.series.samples.last_mut() {
                    sample.failed = Some(if reason.is_empty() {
                        "empty reply".to_owned()
                    } else {
                        excerpt(reason, 200)
                    });
                }
                self.close();
                return;
            }
        }
        if fields.len() <= header.last_used() || (line.unterminated && fields.len() < header.width) {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!(
                    "a row of {} columns under a header of {} was not used: it is cut",
                    fields.len(),
                    header.width
                ),
            );
            return;
        }
        // While a sample is open its predecessor is the last but one.
        let samples = &self.series.samples;
        let before = samples
            .len()
            .checked_sub(1 + usize::from(self.open))
            .map_or(&[][..], |i| &samples[i].rows);
        let row = match row::parse(header, fields, before, reading) {
            Kind::Row(row) => Some(row),
            Kind::NotAServer => None,
            Kind::Nameless => {
                reading.note(
                    file,
                    line.number,
                    NoteKind::Incomplete,
                    "a row without a server's name was not used (HAProxy 2.3 printed such rows)",
                );
                return;
            }
        };
        let same_poll = self.open
            && self.series.samples.last().is_some_and(|s| {
                s.when.stamp == when.stamp
                    && s.when.sent == when.sent
                    && row
                        .as_ref()
                        .is_none_or(|r| !s.rows.iter().any(|o| o.server == r.server && o.proxy == r.proxy))
            });
        if !same_poll {
            if self.is_full() {
                self.open = false;
                self.lost += 1;
                return;
            }
            self.start(line.number, when, digits);
        }
        let Some(row) = row else { return };
        if row.status.class == StatusClass::Unknown && !self.unknown.contains(&row.status.text) {
            if self.unknown.len() < 50 {
                self.unknown.push(Arc::clone(&row.status.text));
            }
            let what = if row.status.text.is_empty() {
                format!(
                    "server {}/{} has no status in this row: unknown, not down",
                    row.proxy, row.server
                )
            } else {
                format!(
                    "status `{}` of {}/{} is not known and is taken for no state",
                    row.status.text, row.proxy, row.server
                )
            };
            reading.note(file, line.number, NoteKind::UnknownName, what);
        }
        if let Some(sample) = self.series.samples.last_mut() {
            sample.rows.push(row);
        }
    }

    fn start(&mut self, number: u32, when: Sampled, digits: u8) {
        if self.thinning.due(self.series.samples.len()) {
            let keep = self.thinning.keep(&self.series.samples, same);
            retain(&mut self.series.samples, &keep);
            retain(&mut self.digits, &keep);
        }
        if let Some(before) = self.series.samples.last_mut() {
            before.rows.shrink_to_fit();
        }
        if when.stamp.is_some() {
            self.resolution.saw(digits);
        }
        self.digits.push(digits);
        self.series.samples.push(StatSample {
            when,
            place: Place {
                file: self.series.file,
                line: number,
            },
            failed: None,
            rows: Vec::new(),
        });
        self.open = true;
    }

    fn finish(mut self, reading: &mut Reading) -> StatSeries {
        for (sample, digits) in self.series.samples.iter_mut().zip(&self.digits) {
            if sample.when.stamp.is_some() {
                sample.when.resolution = self.resolution.of(*digits);
            }
        }
        reading.thinned(self.series.file, "rows", 0, self.lost);
        if self.series.samples.is_empty() {
            reading.note_file(self.series.file, NoteKind::Incomplete, "no row of HAProxy's statistics");
        }
        self.series
    }
}

/// When a row was polled: `sent` and `received` of gtrun, else the first leading column that is a stamp.
fn stamps(leading: &[String], fields: &[&[u8]]) -> (Sampled, u8) {
    let mut when = Sampled {
        sent: None,
        received: None,
        stamp: None,
        resolution: Duration::from_nanos(1),
    };
    let mut digits = 9;
    for (name, field) in leading.iter().zip(fields) {
        let field = field.trim_ascii();
        let Some(s) = stamp::iso_whole(field).or_else(|| stamp::epoch(field)) else {
            continue;
        };
        match name.as_str() {
            "sent" => when.sent = Some(s.at),
            "received" => when.received = Some(s.at),
            _ if when.stamp.is_none() => {
                when.stamp = Some(s.at);
                digits = s.digits;
                when.resolution = s.resolution();
            }
            _ => {}
        }
    }
    (when, digits)
}

/// Equal but for what traffic alone counts up: with the same states, work in flight in both or in neither, and no
/// new failure of any kind.
fn same(a: &StatSample, b: &StatSample) -> bool {
    let equal = |a: &StatRow, b: &StatRow| {
        let busy = |n: Option<u64>| n.map(|n| n > 0);
        let calm = |r: &StatRow| StatFields {
            scur: None,
            qcur: None,
            stot: None,
            hrsp_2xx: None,
            ..(*r.fields).clone()
        };
        Arc::ptr_eq(&a.fields, &b.fields)
            || (busy(a.scur) == busy(b.scur) && busy(a.qcur) == busy(b.qcur) && calm(a) == calm(b))
    };
    a.failed.is_some() == b.failed.is_some()
        && a.rows.len() == b.rows.len()
        && a.rows.iter().zip(&b.rows).all(|(a, b)| equal(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "pxname,svname,qcur,scur,stot,status,weight,chkdown,lastchg,type,check_status,check_code,";

    fn read_text(text: &str) -> (StatSeries, Vec<crate::evidence::Note>) {
        let mut reading = Reading::default();
        let series = read(text.as_bytes(), FileId(0), StatKind::Timeline, &mut reading).expect("memory cannot fail");
        (series, reading.into_notes())
    }

    #[test]
    fn polls_of_one_stamp_are_told_apart() {
        let (s, notes) = read_text(&format!(
            "ts,# {HEADER}\n\
             2026-11-29T16:12:41Z,fe,FRONTEND,,0,0,OPEN,,,,0,,,\n\
             2026-11-29T16:12:41Z,be,w1,0,1,1,UP,1,0,3,2,L7OK,200,\n\
             2026-11-29T16:12:41Z,fe,FRONTEND,,0,0,OPEN,,,,0,,,\n\
             2026-11-29T16:12:41Z,be,w1,0,0,1,UP 1/2,1,0,3,2,* L7STS,,\n\
             2026-11-29T16:12:42Z,2026/11/29 16:12:42 socat[1] E connect: refused\n\
             2026-11-29T16:12:43Z,be,w1,0,0,1,DOWN,1,1,0,2,L7STS,503,\n"
        ));
        assert_eq!(notes, []);
        assert_eq!(s.samples.len(), 4);
        assert_eq!(s.samples[0].rows[0].scur, Some(1));
        let second = &s.samples[1].rows[0];
        assert_eq!(
            (
                second.status.class,
                second.check_running,
                second.check_status.as_deref()
            ),
            (StatusClass::GoingDown, true, Some("L7STS"))
        );
        assert!(s.samples[2].failed.as_deref().is_some_and(|f| f.contains("refused")));
        assert_eq!(s.samples[3].rows[0].status.class, StatusClass::Down);
    }

    #[test]
    fn both_sides_failed_polls_and_repeated_headers() {
        let (s, notes) = read_text(&format!(
            "sent,received,# {HEADER}\n\
             2026-11-29T16:12:41.1Z,2026-11-29T16:12:41.2Z,be,w1,0,1,1,UP,1,0,3,2,L7OK,200,\n\
             2026-11-29T16:12:41.6Z,2026-11-29T16:12:41.9Z,unknown: no answer\n\
             sent,received,# {HEADER}\n\
             2026-11-29T16:12:42.1Z,2026-11-29T16:12:42.2Z,\"b\"\"e\",w1,0,1,1,UP,1,0,3,2,\"L7,OK\",200,\n"
        ));
        assert_eq!(notes, []);
        assert_eq!(s.samples.len(), 3);
        assert_eq!(s.samples[1].failed.as_deref(), Some("no answer"));
        assert_eq!(s.samples[2].rows[0].proxy.as_ref(), "b\"e");
        assert!(s.samples[2].when.sent.is_some() && s.samples[2].when.received.is_some());
    }

    #[test]
    fn a_cut_file_loses_its_last_row_only() {
        let (s, notes) = read_text(&format!(
            "ts,# {HEADER}\n2026-11-29T16:12:41Z,be,w1,0,1,1,UP,1,0,3,2,L7OK,200,\n2026-11-29T16:12:42Z,be,w1,0,0,1,DO"
        ));
        assert_eq!(s.samples.len(), 1);
        assert_eq!(notes.len(), 1);
        let (_, notes) = read_text("garbage\n");
        assert!(notes.iter().any(|n| n.kind == NoteKind::Unreadable));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&text[..], FileId(0), StatKind::Timeline, &mut Reading::default());
            let with_header = [b"ts,# pxname,svname,status,type\n", &text[..]].concat();
            let _ = read(&with_header[..], FileId(0), StatKind::Timeline, &mut Reading::default());
        }
    }
}

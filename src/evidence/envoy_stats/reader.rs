//! `envoy-active[-node].tsv` in both forms, and the JSON lines of a sampler on a port-forward.

use std::io::{self, BufRead};

use serde::Deserialize;

use super::reply::Collector;
use super::{GaugeSample, GaugeSeries, Reading as Gauges};
use crate::evidence::lines::{Line, Lines};
use crate::evidence::reading::{Reading, excerpt};
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::thinning::{Thinning, retain};
use crate::evidence::{FileId, NoteKind, Place, Sampled};
use crate::time::{Duration, Instant};

/// Reads a file of samples.
pub(crate) fn read<R: BufRead>(
    source: R,
    file: FileId,
    subject: Option<String>,
    room: usize,
    reading: &mut Reading,
) -> io::Result<GaugeSeries> {
    let mut series = Series {
        series: GaugeSeries {
            file,
            subject,
            samples: Vec::new(),
        },
        digits: Vec::new(),
        resolution: Resolution::default(),
        thinning: Thinning::default(),
        room,
        lost: 0,
    };
    let mut lines = Lines::new(source);
    let mut open: Option<(u32, When, Collector)> = None;
    while let Some(line) = lines.next_line()? {
        if let Some(length) = line.too_long {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!("a line of {length} bytes was skipped; ask Envoy only for what matches _rq_active"),
            );
            continue;
        }
        if line.bytes.starts_with(b"{\"") && is_json_sample(line.bytes) {
            json_line(&mut series, &line, reading);
            continue;
        }
        if let Some((when, rest)) = record_start(line.bytes) {
            if let Some((number, when, collector)) = open.take() {
                series.push_reply(number, when, collector);
            }
            let mut collector = Collector::default();
            match rest
                .strip_prefix(b"unknown: ")
                .or_else(|| rest.strip_prefix(b"unknown:"))
            {
                Some(reason) => series.push(line.number, when, Gauges::Unknown(excerpt(reason, 200))),
                None if line.unterminated => {
                    series.push(line.number, when, Gauges::Unknown("the record is cut".to_owned()));
                }
                None => {
                    collector.line(rest, reading);
                    open = Some((line.number, when, collector));
                }
            }
            continue;
        }
        match &mut open {
            Some((_, _, collector)) => {
                // The last line of a cut file may be a number that lost its end.
                if !line.unterminated {
                    collector.line(line.bytes, reading);
                }
            }
            None if line.bytes.trim_ascii().is_empty() => {}
            None => reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                "a line before the first stamp was not used; each sample begins with a stamp and a tab",
            ),
        }
    }
    if let Some((number, when, collector)) = open {
        series.push_reply(number, when, collector);
    }
    Ok(series.finish(reading))
}

/// When a sample was taken, as its record says.
#[derive(Debug, Clone, Copy)]
enum When {
    /// One stamp, taken after the fetch.
    Stamp(Instant, u8),
    /// Both sides.
    Both(Instant, Instant),
}

/// `stamp TAB ...` or `sent TAB received TAB ...`, and what follows.
fn record_start(line: &[u8]) -> Option<(When, &[u8])> {
    let (first, used) = stamp::iso(line)?;
    let rest = line.get(used..)?.strip_prefix(b"\t")?;
    match stamp::iso(rest) {
        Some((second, used)) if matches!(rest.get(used), None | Some(b'\t')) => Some((
            When::Both(first.at, second.at),
            rest.get(used + 1..).unwrap_or_default(),
        )),
        _ => Some((When::Stamp(first.at, first.digits), rest)),
    }
}

/// One sample as a JSON line.
#[derive(Deserialize)]
struct JsonSample<'a> {
    #[serde(borrow)]
    sent: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    received: Option<std::borrow::Cow<'a, str>>,
    status: Option<u16>,
    #[serde(borrow)]
    body: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<std::borrow::Cow<'a, str>>,
}

/// A reply in JSON begins with `{"stats"`.
fn is_json_sample(line: &[u8]) -> bool {
    !line.starts_with(b"{\"stats\"")
}

fn json_line(series: &mut Series, line: &Line<'_>, reading: &mut Reading) {
    let file = series.series.file;
    let instant =
        |t: &Option<std::borrow::Cow<'_, str>>| t.as_deref().and_then(|t| stamp::iso_whole(t.as_bytes())).map(|s| s.at);
    let sample: JsonSample<'_> = match serde_json::from_slice(line.bytes) {
        Ok(s) => s,
        Err(e) => {
            let what = if line.unterminated {
                "the last record is cut and was not used".to_owned()
            } else {
                format!("not a sample: {e}")
            };
            reading.note(file, line.number, NoteKind::Incomplete, what);
            return;
        }
    };
    let (Some(sent), Some(received)) = (instant(&sample.sent), instant(&sample.received)) else {
        reading.note(
            file,
            line.number,
            NoteKind::Incomplete,
            "a sample without `sent` or `received` was not used",
        );
        return;
    };
    let gauges = match (sample.error, sample.status, sample.body) {
        (Some(error), _, _) => Gauges::Unknown(excerpt(error.as_bytes(), 200)),
        (None, Some(200) | None, Some(body)) => {
            let mut collector = Collector::default();
            for l in body.lines() {
                collector.line(l.as_bytes(), reading);
            }
            series.push_reply(line.number, When::Both(sent, received), collector);
            return;
        }
        (None, Some(code), _) => Gauges::Unknown(format!("HTTP status {code}")),
        (None, None, None) => Gauges::Unknown("empty reply".to_owned()),
    };
    series.push(line.number, When::Both(sent, received), gauges);
}

struct Series {
    series: GaugeSeries,
    digits: Vec<u8>,
    resolution: Resolution,
    thinning: Thinning,
    room: usize,
    lost: u64,
}

impl Series {
    fn push_reply(&mut self, number: u32, when: When, collector: Collector) {
        let reading = collector.finish(self.series.samples.last().map(|s| &s.reading));
        self.push(number, when, reading);
    }

    fn push(&mut self, number: u32, when: When, reading: Gauges) {
        let (when, digits) = match when {
            When::Stamp(at, digits) => {
                self.resolution.saw(digits);
                (
                    Sampled {
                        sent: None,
                        received: None,
                        stamp: Some(at),
                        resolution: stamp::resolution(digits),
                    },
                    digits,
                )
            }
            When::Both(sent, received) => (
                Sampled {
                    sent: Some(sent),
                    received: Some(received),
                    stamp: None,
                    resolution: Duration::from_nanos(1),
                },
                9,
            ),
        };
        if self.series.samples.len() >= self.room {
            self.lost += 1;
            return;
        }
        self.digits.push(digits);
        self.series.samples.push(GaugeSample {
            when,
            place: Place {
                file: self.series.file,
                line: number,
            },
            reading,
        });
        if self.thinning.due(self.series.samples.len()) {
            let keep = self
                .thinning
                .keep(&self.series.samples, |a, b| same(&a.reading, &b.reading));
            retain(&mut self.series.samples, &keep);
            retain(&mut self.digits, &keep);
        }
    }

    fn finish(mut self, reading: &mut Reading) -> GaugeSeries {
        for (sample, digits) in self.series.samples.iter_mut().zip(&self.digits) {
            if sample.when.stamp.is_some() {
                sample.when.resolution = self.resolution.of(*digits);
            }
        }
        reading.thinned(self.series.file, "samples", 0, self.lost);
        if self.series.samples.is_empty() {
            reading.note_file(self.series.file, NoteKind::Incomplete, "no sample of Envoy's gauges");
        }
        self.series
    }
}

/// Nothing has changed.
fn same(a: &Gauges, b: &Gauges) -> bool {
    match (a, b) {
        (Gauges::Values(a), Gauges::Values(b)) => a == b,
        (Gauges::Unknown(_), Gauges::Unknown(_)) => true,
        (Gauges::Values(_), Gauges::Unknown(_)) | (Gauges::Unknown(_), Gauges::Values(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(text: &str) -> GaugeSeries {
        read(text.as_bytes(), FileId(0), None, 1000, &mut Reading::default()).expect("memory cannot fail")
    }

    fn value(s: &GaugeSample, name: &str) -> Option<u64> {
        match &s.reading {
            Gauges::Values(v) => v.get(name).copied(),
            Gauges::Unknown(_) => None,
        }
    }

    #[test]
    fn old_records_have_one_stamp_and_many_lines() {
        let s = series(
            "2026-05-31T07:12:49Z\tcluster.a.upstream_rq_active: 3\nhttp.b.downstream_rq_active: 3\n\
             2026-05-31T07:12:51Z\texec-failed\n2026-05-31T07:12:53Z\t\n2026-05-31T07:12:55Z\tcluster.a.upstream_rq_active: 1",
        );
        assert_eq!(s.samples.len(), 4);
        // 12 may have been cut to 1.
        assert_eq!(s.samples[3].reading, Gauges::Unknown("the record is cut".into()));
        assert_eq!(value(&s.samples[0], "http.b.downstream_rq_active"), Some(3));
        assert_eq!(s.samples[1].reading, Gauges::Unknown("exec-failed".into()));
        assert_eq!(s.samples[2].reading, Gauges::Unknown("empty reply".into()));
        assert_eq!(s.samples[0].when.resolution, Duration::from_secs(1));
        assert_eq!(s.samples[1].place.line, 3);
    }

    #[test]
    fn new_records_have_both_sides() {
        let s = series(
            "2026-05-31T07:12:49.1Z\t2026-05-31T07:12:49.102Z\tcluster.a.upstream_rq_active: 1\nhttp.b.downstream_rq_active: 0\n\
             2026-05-31T07:12:49.3Z\t2026-05-31T07:12:49.6Z\tunknown: timed out\n",
        );
        assert_eq!(s.samples.len(), 2);
        assert_eq!(
            s.samples[0].when.sent.map(|t| t.to_rfc3339()).as_deref(),
            Some("2026-05-31T07:12:49.100Z")
        );
        assert_eq!(value(&s.samples[0], "http.b.downstream_rq_active"), Some(0));
        assert_eq!(s.samples[1].reading, Gauges::Unknown("timed out".into()));
    }

    #[test]
    fn json_lines_of_a_port_forward() {
        let s = series(concat!(
            r#"{"sent": "2026-11-29T16:56:30.7Z", "status": 200, "body": "http.b.downstream_rq_active: 2\n", "received": "2026-11-29T16:56:30.71Z"}"#,
            "\n",
            r#"{"sent": "2026-11-29T16:56:30.8Z", "error": "RemoteDisconnected: end", "received": "2026-11-29T16:56:31.8Z"}"#,
            "\n",
        ));
        assert_eq!(value(&s.samples[0], "http.b.downstream_rq_active"), Some(2));
        assert_eq!(s.samples[1].reading, Gauges::Unknown("RemoteDisconnected: end".into()));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&text[..], FileId(0), None, 1000, &mut Reading::default());
        }
    }
}
